"""What programs read: sockets."""

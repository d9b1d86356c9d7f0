"""How a running agent is connected to this server: lines to copy, with its own address."""

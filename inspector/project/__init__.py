"""How the application runs: settings, addresses, the server, its worker, its command line."""

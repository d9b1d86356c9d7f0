"""Tests with real neighbours: the server as a process, sockets, PostgreSQL, Redis."""

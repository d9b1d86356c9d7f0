"""Messages to addresses outside: near misses, overflows and loops of growing sessions, signed, sent by a worker."""

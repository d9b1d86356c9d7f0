"""What readers of every format share: bytes, strict JSON, limits, notes, pairing, requests, shelf, first looks."""

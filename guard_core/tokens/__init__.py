"""Token counts: the byte heuristic, its calibration, a lexical estimate, and real tokenizers."""

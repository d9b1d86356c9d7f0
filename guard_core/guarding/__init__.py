"""A live agent guarded by a policy: the same decisions as a replay's, one call at a time, over a log that grows."""

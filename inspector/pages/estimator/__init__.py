"""How far estimates of prompt tokens are off."""

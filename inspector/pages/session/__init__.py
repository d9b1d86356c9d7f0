"""What all pages of one session share: frame, strip, family, addresses."""

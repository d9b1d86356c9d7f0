"""Sweeps: sessions under a grid of settings, as a heat map with a recommended one."""

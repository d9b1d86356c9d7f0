"""The stress gallery: scenarios of the simulator under policies and profiles."""

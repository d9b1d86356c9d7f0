"""Guards for agent frameworks, each in a module that imports its framework; the extra of its name installs it."""

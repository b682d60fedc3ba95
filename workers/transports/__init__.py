"""Ways to reach a device: files, commands and facts."""

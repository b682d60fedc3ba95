"""Which variant is the fastest of its SoC, by how much, how steadily, and at what error."""

"""Best variants of a SoC as a page."""

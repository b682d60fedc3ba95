"""Charts as SVG: no colour alone, a text alternative each, every text escaped."""

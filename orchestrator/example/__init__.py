"""A month of a farm that never was: what analysis and reports make of changes whose truth is known."""

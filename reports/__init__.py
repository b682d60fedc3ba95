"""Reports: a model built from a run's results, and its renderers."""

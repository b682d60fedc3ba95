"""A run's results as pages for people and files for machines; entry point: ``reports.write``."""

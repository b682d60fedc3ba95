"""The ``tilefarm`` command."""

"""Tilefarm's host side: what to run, where it runs, what came of it."""

__version__ = "0.1.0"

"""Tuning tables as files that an app builds in."""

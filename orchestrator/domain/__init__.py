"""The words of design.md as frozen values: no I/O, imported by every other layer."""

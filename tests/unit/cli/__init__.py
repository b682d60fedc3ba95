"""The command line, in process and without devices."""

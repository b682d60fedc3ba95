"""Tests of planning, on small kernels of their own (toy.py) and on the shipped matrix.yaml."""

"""A month of a farm that never was: what analysis and reports make of changes whose truth is known."""

from pathlib import Path


def matrix_file() -> Path:
    return Path(__file__).parent / "matrix.yaml"

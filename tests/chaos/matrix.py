"""What a chaos run measures: cases by the number, each with an answer of its own, around canaries."""

from pathlib import Path

_MATRIX = """
version: 1
suites:
  smoke:
    description: {cases} cases whose answers all differ.
    repeats: 2
    warmup: 0
    replays: 1
    deadline_s: 20
    blocks:
      - kernel: scale
        workloads: [{{n: [{sizes}], percent: [{percents}]}}]
        axes: {{api: gles, precision: fp32, vector: [1, 4]}}
probes:
  repeats: 2
  warmup: 0
  replays: 1
  blocks:
    - name: canary
      kernel: canary
      workloads: [{{}}]
      axes: {{api: gles}}
"""
_FIRST = 33
_PERCENTS = range(100, 150)


def write_matrix(folder: Path, cases: int, first: int = _FIRST) -> Path:
    """``cases`` cases for each phone, an even number; those of another ``first`` are others."""
    points = cases // 2
    percents = max(n for n in range(1, len(_PERCENTS) + 1) if points % n == 0)
    sizes = points // percents
    path = folder / "matrix.yaml"
    text = _MATRIX.format(
        cases=cases,
        sizes=", ".join(str(first + 8 * n) for n in range(sizes)),
        percents=", ".join(map(str, _PERCENTS[:percents])),
    )
    path.write_text(text, "utf-8")
    return path

"""Several processes at one history: each run is in it once, whoever comes first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.history.history import History

CHILD = """
import sys
from pathlib import Path
from orchestrator.history.history import History
from tests.unit.history.test_history import night

url, folder, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
print("ready", flush=True)
sys.stdin.readline()
history = History(url, folder)
print(sum(history.store(night(name)) for name in names))
history.close()
"""
SHARED = [f"202612{day:02}T010000Z-nightly-both" for day in range(1, 5)]


def together(url: str, folder: Path, *names: list[str]) -> list[int]:
    """How many runs were new to each of some processes that begin at once."""
    root = Path(__file__).parents[3]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, url, str(folder), *own],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own in names
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.communicate(timeout=120) for child in children]
    for child, (_, errors) in zip(children, said, strict=True):
        assert child.returncode == 0, errors
    return [int(out) for out, _ in said]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_ingesters_of_three_processes_make_one_new_history(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Its tables, too, are made by one of them."""
    url = f"sqlite:///{tmp_path}/new/tilefarm.db"
    if kind == "postgresql":
        url = str(request.getfixturevalue("empty_postgres"))
    own = [[f"2026110{n}T010000Z-nightly-only"] for n in range(3)]
    new = together(url, tmp_path / "history", *[SHARED + name for name in own])
    assert sum(new) == len(SHARED) + 3
    history = History(url, tmp_path / "history")
    try:
        assert [run.run_id for run in history.runs()] == sorted([*SHARED, *(n[0] for n in own)])
        assert history.check() == []
    finally:
        history.close()

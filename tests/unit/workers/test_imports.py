"""What a worker process loads before it has any work: there may be dozens on one host."""

import subprocess
import sys

HEAVY = ("numpy", "scipy", "jinja2", "sqlalchemy", "duckdb", "ruamel", "typer", "hypothesis")


def test_an_idle_worker_loads_nothing_that_it_does_not_need() -> None:
    """numpy alone is 11 MB a process; it is for tensors that come home and for phones that are hot."""
    code = f"import sys, workers.serve; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

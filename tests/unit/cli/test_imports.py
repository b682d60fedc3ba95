"""What each command loads before it knows which one it is: `tilefarm status` waits for it as `run` does."""

import subprocess
import sys

HEAVY = ("scipy", "duckdb", "sqlalchemy", "alembic", "pyarrow")


def test_no_command_waits_for_the_libraries_of_the_history() -> None:
    """scipy.stats alone is half a second; it is for those that judge."""
    code = f"import sys, orchestrator.cli.app; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

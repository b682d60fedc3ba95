"""What nights measured a second time, from the files of their verdicts: nights without any have no column."""

from collections.abc import Mapping
from pathlib import Path

from orchestrator.history import trial_files
from orchestrator.history.connection import Connection
from orchestrator.history.history import SECOND

_SECOND = """
SELECT run_id, device_id, case_id, second
FROM read_parquet($files, filename = true) JOIN
     (SELECT unnest($files) AS filename, unnest($runs) AS run_id) USING (filename)
WHERE second IS NOT NULL
"""


def second_looks(files: Mapping[str, Path]) -> dict[tuple[str, str, str], str]:
    """(run, device, case) → what was kept of it.

    Args:
        files: run id → its file of verdicts.

    Raises:
        InfraError: a file is missing or damaged.
    """
    having = {run: path for run, path in files.items() if SECOND in trial_files.names(path)}
    if not having:
        return {}
    with Connection() as ask:
        rows = ask.rows(_SECOND, {"files": [str(p) for p in having.values()], "runs": list(having)})
    return {(row["run_id"], row["device_id"], row["case_id"]): row[SECOND] for row in rows}

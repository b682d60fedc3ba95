"""Where decisions about findings are, and what they mean for a run that is judged."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.domain.results import RunInfo
from orchestrator.domain.settings import Settings
from orchestrator.triage.folder import TriageFolder, by_finding
from orchestrator.triage.restarts import Restarts

if TYPE_CHECKING:
    from orchestrator.verdicts.decided import Decided


def triage_folder(settings: Settings, run: RunInfo) -> TriageFolder:
    """Of the run's suite: TILEFARM_TRIAGE, else beside the matrix that the run was planned from."""
    return TriageFolder(settings.triage or Path(run.matrix or "matrix.yaml").parent / "triage", run.suite)


def decided_for(settings: Settings, run: RunInfo) -> "Decided":
    """Files that are not in order cost no verdict: what they say does not count, and the run says so."""
    from orchestrator.verdicts.decided import Decided  # its libraries take half a second

    decisions, problems = triage_folder(settings, run).load_what_can_be()
    return Decided(
        triage={i: d.triage(s, run.run_id, run.started_at) for i, (d, s) in by_finding(decisions).items()},
        restarts=Restarts.of(decisions),
        today=datetime.now(UTC).date(),
        unread=problems,
    )

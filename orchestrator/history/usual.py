"""The clock that each series usually has: a night at two clocks is summarised at that one, so that it
compares with the nights before (docs/statistics.md, step 1)."""

from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.errors import InfraError
from orchestrator.domain.results import RunResults
from orchestrator.history.history import History
from orchestrator.history.query import median_clocks


def usual_clocks(history: History, results: RunResults) -> dict[tuple[str, str], float]:
    """(device, case) → Hz, over the last whole runs of the suite before this one; without clocks none.

    An earlier file that cannot be read costs these clocks only: the run must be stored all the same, and
    `tilefarm db check` names the file.
    """
    run = results.run
    before = [r for r in history.runs(run.suite) if r.whole_suite and r.run_id < run.run_id][-RULE.window :]
    try:
        return median_clocks([history.path(r) for r in before]) if before else {}
    except InfraError:
        return {}

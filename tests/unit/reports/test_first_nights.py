"""Until a suite has a week of nights, its report compares two runs beside what the history says."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.finding import Findings
from reports.write import write_reports
from tests.results_fixture import TODAY
from tests.unit.reports.sample_findings import sample_findings


def pages(folder: Path, found: Findings) -> dict[str, str]:
    results = sample_findings().results
    reports = write_reports(results, results, folder, TODAY, findings=found, series={})
    return {path.name: path.read_text() for path in (reports.index, *reports.socs.values())}


@pytest.mark.parametrize("young", [True, False], ids=["first nights", "a month"])
def test_two_runs_are_compared_while_no_speed_is_judged(tmp_path: Path, young: bool) -> None:
    found = sample_findings().findings
    if young:
        found = replace(
            found, findings=[], groups=[], series=[replace(r, verdict="new") for r in found.series]
        )
    for text in pages(tmp_path, found).values():
        assert ("Change against the previous run" in text) == young

"""ReportModel → JUnit XML: one suite a device, one test case a planned point, and a suite of changes.

Unexpected failure → ``failure``; infrastructure or a missing result → ``error``; refused, pruned or known
failure → ``skipped`` with the reason; an unexpected pass passes and says so in ``system-out``. A case that
passed but is slower than the caller's bound → ``failure`` of type ``slower``. Points of an API that a device
does not have are no tests of it. A night that was missed before this one → ``error``; a point that the run
before measured and this one's plan dropped → ``skipped``. A degraded run is told by the output of a test
that passes. Changes: ``reports/machines/junit_changes.py``.
"""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping

from orchestrator.analysis.compare import Change
from orchestrator.analysis.one_sided import OneSided
from orchestrator.analysis.other_api import of_other_api
from orchestrator.analysis.outcome import JudgedTrial, Outcome
from orchestrator.domain.results import CaseInfo, MissedNight, Missing, Pruned, RunInfo, RunResults
from reports.findings import repro_command
from reports.machines.junit_changes import changes_suite
from reports.machines.xunit import Suite, child, document, printed
from reports.model import ReportModel
from reports.numbers import duration
from reports.scope import degraded_title, gone

MAX_LOG = 4_000
"""Characters of a failure's log."""
MAX_LOGS = 2_000_000
"""Of all logs together."""
MAX_BAD, MAX_CALM = 5_000, 20_000
"""Test cases of points: what failed or is not there, and the rest. Beyond them they are counted by device and
kernel: a farm of 200 phones has 400,000 points a night, and no reader of JUnit takes 200 MB."""
_BAD = ("failure", "error")


def render_junit(model: ReportModel, results: RunResults) -> str:
    """Well-formed XML 1.0, whatever the names hold."""
    return _Junit(model, results).text()


class _Junit:
    def __init__(self, model: ReportModel, results: RunResults) -> None:
        self._model, self._run, self._infos = model, results.run, results.cases
        self._slow = {(c.device_id, c.case_id): c for c in model.slow}
        self._suites = {
            d.device_id: _Points(f"{d.soc.name} / {d.name}", d.device_id, results.cases)
            for d in results.devices
        }
        self._bad, self._calm, self._logs = MAX_BAD, MAX_CALM, MAX_LOGS
        self._add_points(results)

    def text(self) -> str:
        suites: list[Suite] = list(self._suites.values())
        for points in self._suites.values():
            points.add_rest()
        if self._run.degraded:
            suites.append(_degraded(self._run))
        if self._run.missed_nights:
            suites.append(_nights(self._run))
        changes = changes_suite(self._model)
        suites += [changes] if changes is not None else []
        return document(f"tilefarm {self._run.suite} {self._run.run_id}", suites, self._run.started_at)

    def _add_points(self, results: RunResults) -> None:
        for item in self._model.trials:
            self._trial(item)
        for pruned in results.pruned:
            if not of_other_api(pruned):
                self._pruned(pruned)
        pruned_keys = {(p.device_id, p.case_id) for p in results.pruned}
        for missing in results.missing:
            self._missing(missing)
        comparison = self._model.comparison
        for item in comparison.missing if comparison is not None and gone(self._model) else ():
            if item.gone and (item.device_id, item.case_id) not in pruned_keys:
                self._gone(item)

    def _trial(self, item: JudgedTrial) -> None:
        trial = item.trial
        points = self._suites[item.device.device_id]
        slow = self._slow.get((trial.device_id, trial.case_id))
        tag, kind = _tag(item, slow)
        case = self._point(points, trial.case_id, tag, trial.duration_ms / 1e3)
        if case is None:
            return
        message = ": ".join(part for part in (trial.reason, item.note) if part)
        said = ""
        match item.outcome:
            case Outcome.FAILURE:
                repro = repro_command(self._run, trial.case_id, item.device)
                child(case, "failure", message, kind, f"{message}\nrepeat: {repro}")
            case Outcome.INFRA:
                child(case, "error", message, kind)
            case Outcome.UNSUPPORTED:
                child(case, "skipped", f"{trial.verdict.value}: {message}")
            case Outcome.EXPECTED_FAILURE:
                child(case, "skipped", f"known {trial.verdict.value}: {message}")
            case Outcome.UNEXPECTEDLY_PASSED | Outcome.PASSED:
                if slow is not None:
                    child(case, "failure", _slower(slow), kind)
                if item.outcome is Outcome.UNEXPECTEDLY_PASSED:
                    said = f"unexpected pass: {item.note}\n"
        facts = f"outcome={item.outcome.value} role={item.info.role} code_hash={trial.code_hash}"
        printed(case, "system-out", f"{said}{facts} driver={trial.driver}", MAX_LOG)
        if item.outcome is Outcome.FAILURE and trial.log and self._logs > 0:
            self._logs -= min(len(trial.log), MAX_LOG)
            printed(case, "system-err", trial.log, MAX_LOG)

    def _pruned(self, pruned: Pruned) -> None:
        case = self._point(self._of(pruned.device_id), pruned.case_id, "skipped")
        if case is not None:
            child(case, "skipped", f"{pruned.verdict.value}: {'; '.join(pruned.reasons)}")

    def _missing(self, missing: Missing) -> None:
        case = self._point(self._of(missing.device_id), missing.case_id, "error")
        if case is not None:
            child(case, "error", missing.why, "missing")

    def _gone(self, item: OneSided) -> None:
        """Measured in the run before: no planned point of this one."""
        case = self._of(item.device_id).case(f"{item.label} {item.case_id}", "gone")
        child(case, "skipped", f"not measured any more: {item.why}")

    def _of(self, device_id: str) -> "_Points":
        return self._suites.setdefault(device_id, _Points(device_id, device_id, self._infos))

    def _point(self, points: "_Points", case_id: str, tag: str, time_s: float = 0.0) -> ET.Element | None:
        """None: it is only counted."""
        left = self._bad if tag in _BAD else self._calm
        if left <= 0:
            points.count(case_id, tag)
            return None
        if tag in _BAD:
            self._bad -= 1
        else:
            self._calm -= 1
        return points.point(case_id, time_s)


class _Points(Suite):
    """Of one device."""

    def __init__(self, name: str, device_id: str, infos: Mapping[str, CaseInfo]) -> None:
        super().__init__(name, {"device_id": device_id})
        self._infos = infos
        self._rest: Counter[tuple[str, str]] = Counter()

    def point(self, case_id: str, time_s: float) -> ET.Element:
        info = self._infos.get(case_id)
        name = info.case.label if info is not None else case_id or "every case"
        return self.case(f"{name} {case_id}", self._kernel(case_id), time_s)

    def count(self, case_id: str, tag: str) -> None:
        self._rest[self._kernel(case_id), tag] += 1

    def add_rest(self) -> None:
        """What was only counted."""
        for (kernel, tag), number in self._rest.items():
            case = self.case(f"{number} more: {tag or 'passed'}", kernel)
            if tag:
                child(case, tag, f"{number} more points: see results.json", "more" if tag in _BAD else "")

    def _kernel(self, case_id: str) -> str:
        info = self._infos.get(case_id)
        return info.case.kernel if info is not None else "device"


def _tag(item: JudgedTrial, slow: Change | None) -> tuple[str, str]:
    """Element and its type; empty: a pass."""
    match item.outcome:
        case Outcome.FAILURE:
            return "failure", item.trial.verdict.value
        case Outcome.INFRA:
            return "error", "infra"
        case Outcome.UNSUPPORTED | Outcome.EXPECTED_FAILURE:
            return "skipped", ""
        case Outcome.UNEXPECTEDLY_PASSED | Outcome.PASSED:
            return ("failure", "slower") if slow is not None else ("", "")


def _degraded(run: RunInfo) -> Suite:
    suite = Suite("degraded", {})
    case = suite.case(degraded_title(run), "run")
    printed(case, "system-out", "\n".join(run.degraded), MAX_LOG)
    return suite


def _nights(run: RunInfo) -> Suite:
    suite = Suite("nights before this one", {})
    for night in run.missed_nights:
        _night(suite, night)
    return suite


def _night(suite: Suite, night: MissedNight) -> None:
    child(suite.case(night.night, "night"), "error", night.why, "missed")


def _slower(change: Change) -> str:
    before = duration(change.before.median_ns) if change.before is not None else "–"
    after = duration(change.after.median_ns) if change.after is not None else "–"
    return f"median {before} → {after}, ×{change.ratio:.3f}: above the bound that the caller set"

"""ReportModel → JUnit XML: one suite a device, one test case a planned point.

Unexpected failure → ``failure``; infrastructure or a missing result → ``error``; refused, pruned or known
failure → ``skipped`` with the reason; an unexpected pass passes and says so in ``system-out``. A case that
passed but is slower than the caller's bound → ``failure`` of type ``slower``. Points of an API that a device
does not have are no tests of it. A night that was missed before this one → ``error``; a point that the run
before measured and this one's plan dropped → ``skipped``.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping

from orchestrator.analysis.compare import Change
from orchestrator.analysis.one_sided import OneSided
from orchestrator.analysis.other_api import of_other_api
from orchestrator.analysis.outcome import JudgedTrial, Outcome
from orchestrator.domain.results import MissedNight, Missing, Pruned, RunResults
from reports.findings import repro_command
from reports.model import ReportModel
from reports.numbers import duration
from reports.scope import gone
from reports.text import visible, visible_block

MAX_LOG = 4_000


def render_junit(model: ReportModel, results: RunResults) -> str:
    """Well-formed XML 1.0, whatever the names hold."""
    slow = {(c.device_id, c.case_id): c for c in model.slow}
    suites = {d.device_id: _Suite(f"{d.soc.name} / {d.name}", d.device_id) for d in results.devices}
    for item in model.trials:
        suites[item.device.device_id].add_trial(
            item, results, slow.get((item.device.device_id, item.trial.case_id))
        )
    for pruned in results.pruned:
        if of_other_api(pruned):
            continue
        suites.setdefault(pruned.device_id, _Suite(pruned.device_id, pruned.device_id)).add_pruned(
            pruned, results
        )
    pruned_keys = {(p.device_id, p.case_id) for p in results.pruned}
    for missing in results.missing:
        suites.setdefault(missing.device_id, _Suite(missing.device_id, missing.device_id)).add_missing(
            missing, results
        )
    for item in model.comparison.missing if model.comparison is not None and gone(model) else ():
        if item.gone and (item.device_id, item.case_id) not in pruned_keys:
            suite = suites.setdefault(item.device_id, _Suite(item.device_id, item.device_id))
            suite.add_gone(item)
    if results.run.missed_nights:
        suites[" nights"] = _Suite("nights before this one", "")
        for night in results.run.missed_nights:
            suites[" nights"].add_night(night)
    root = ET.Element(
        "testsuites", {"name": f"tilefarm {visible(results.run.suite)} {visible(results.run.run_id)}"}
    )
    for suite in suites.values():
        root.append(suite.element(results.run.started_at))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(s.get(name, "0")) for s in root)))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


class _Suite:
    def __init__(self, name: str, device_id: str) -> None:
        self._name, self._device_id = name, device_id
        self._cases: list[ET.Element] = []
        self._time_s = 0.0

    def add_trial(self, item: JudgedTrial, results: RunResults, slow: Change | None) -> None:
        trial = item.trial
        case = self._case(results, trial.case_id, trial.duration_ms / 1e3)
        properties = {"case_id": trial.case_id, "code_hash": trial.code_hash, "driver": trial.driver}
        _add_properties(case, properties | {"outcome": item.outcome.value, "role": item.info.role})
        message = ": ".join(part for part in (trial.reason, item.note) if part)
        match item.outcome:
            case Outcome.FAILURE:
                repro = repro_command(results.run, trial.case_id, item.device)
                _child(case, "failure", message, trial.verdict.value, f"{message}\nrepeat: {repro}")
                if trial.log:
                    ET.SubElement(case, "system-err").text = visible_block(trial.log, MAX_LOG)
            case Outcome.INFRA:
                _child(case, "error", message, "infra")
            case Outcome.UNSUPPORTED:
                _child(case, "skipped", f"{trial.verdict.value}: {message}")
            case Outcome.EXPECTED_FAILURE:
                _child(case, "skipped", f"known {trial.verdict.value}: {message}")
            case Outcome.UNEXPECTEDLY_PASSED | Outcome.PASSED:
                if slow is not None:
                    _child(case, "failure", _slower(slow), "slower")
                if item.outcome is Outcome.UNEXPECTEDLY_PASSED:
                    ET.SubElement(case, "system-out").text = visible(f"unexpected pass: {item.note}")

    def add_pruned(self, pruned: Pruned, results: RunResults) -> None:
        case = self._case(results, pruned.case_id, 0.0)
        _child(case, "skipped", f"{pruned.verdict.value}: {'; '.join(pruned.reasons)}")

    def add_missing(self, missing: Missing, results: RunResults) -> None:
        case = self._case(results, missing.case_id, 0.0)
        _child(case, "error", missing.why, "missing")

    def add_gone(self, item: OneSided) -> None:
        """Measured in the run before: no planned point of this one."""
        case = self._named(f"{item.label} {item.case_id}", "gone", 0.0)
        _child(case, "skipped", f"not measured any more: {item.why}")

    def add_night(self, night: MissedNight) -> None:
        _child(self._named(night.night, "night", 0.0), "error", night.why, "missed")

    def element(self, started_at: str) -> ET.Element:
        suite = ET.Element(
            "testsuite",
            {
                "name": visible(self._name),
                "tests": str(len(self._cases)),
                "failures": str(self._count("failure")),
                "errors": str(self._count("error")),
                "skipped": str(self._count("skipped")),
                "time": f"{self._time_s:.3f}",
                "timestamp": visible(started_at).removesuffix("Z"),
            },
        )
        _add_properties(suite, {"device_id": self._device_id})
        suite.extend(self._cases)
        return suite

    def _count(self, tag: str) -> int:
        return sum(case.find(tag) is not None for case in self._cases)

    def _case(self, results: RunResults, case_id: str, time_s: float) -> ET.Element:
        info = results.cases.get(case_id)
        kernel = info.case.kernel if info is not None else "device"
        name = info.case.label if info is not None else case_id or "every case"
        return self._named(f"{name} {case_id}", kernel, time_s)

    def _named(self, name: str, kernel: str, time_s: float) -> ET.Element:
        case = ET.Element(
            "testcase",
            {
                "classname": visible(f"{self._name.split(' / ')[0]}.{kernel}"),
                "name": visible(name),
                "time": f"{time_s:.3f}",
            },
        )
        self._time_s += time_s
        self._cases.append(case)
        return case


def _slower(change: Change) -> str:
    before = duration(change.before.median_ns) if change.before is not None else "–"
    after = duration(change.after.median_ns) if change.after is not None else "–"
    return f"median {before} → {after}, ×{change.ratio:.3f}: above the bound that the caller set"


def _add_properties(parent: ET.Element, values: Mapping[str, str]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", {"name": name, "value": visible(value)})


def _child(case: ET.Element, tag: str, message: str, kind: str = "", text: str = "") -> None:
    attributes = {"message": visible(message)}
    if kind:
        attributes["type"] = visible(kind)
    ET.SubElement(case, tag, attributes).text = visible_block(text) if text else None

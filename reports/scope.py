"""What a run covers, in words: the whole suite or a person's selection of it, and what never came."""

from dataclasses import dataclass

from orchestrator.analysis.outcome import Outcome
from orchestrator.domain.results import RunInfo
from reports.model import ReportModel
from reports.text import shell_word


def scope_note(run: RunInfo) -> str:
    """``A selection of the suite: -k 'tile=8x8' --set vector=1``; empty for the whole suite."""
    if run.whole_suite:
        return ""
    words = ["-k", shell_word(run.selection)] if run.selection else []
    return "A selection of the suite: " + " ".join(words + override_words(run))


def override_words(run: RunInfo) -> list[str]:
    """The ``--set`` options of a command line."""
    return [word for text in run.overrides for word in ("--set", shell_word(text))]


def other_api_note(model: ReportModel) -> str:
    """``Not counted: 138 points of another API (llvmpipe 85, lavapipe 53)``; empty without any."""
    per_soc = [(s.soc, s.counts.other_api) for s in model.socs if s.counts.other_api]
    if not per_soc:
        return ""
    named = ", ".join(f"{soc} {n}" for soc, n in per_soc)
    total = sum(n for _, n in per_soc)
    return f"Not counted: {total} {'point' if total == 1 else 'points'} of another API ({named})"


@dataclass(frozen=True, slots=True)
class Lost:
    """Results that never came, of one device and for one reason."""

    device: str
    what: str
    """One case's short name, a number of cases, or ``the whole device``."""
    why: str


def uncounted(model: ReportModel) -> tuple[Lost, ...]:
    """Results that exist and do not count because the canary did not vouch for their batch."""
    groups: dict[tuple[str, str], list[str]] = {}
    for f in model.findings(Outcome.INFRA):
        if f.uncounted:
            groups.setdefault((f.device_name, f.reason), []).append(f.case_id)
    return tuple(Lost(device, _cases(ids, model), why) for (device, why), ids in groups.items())


def _cases(ids: list[str], model: ReportModel) -> str:
    return model.labels.get(ids[0], ids[0]) if len(ids) == 1 else f"{len(ids)} cases"


def lost(model: ReportModel) -> tuple[Lost, ...]:
    """Everything missing, grouped by device and reason, in the order of the results."""
    names = {d.device.device_id: d.device.name for soc in model.socs for d in soc.devices}
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for m in model.missing:
        groups.setdefault((m.device_id, m.why, bool(m.case_id)), []).append(m.case_id)
    found: list[Lost] = []
    for (device_id, why, planned), ids in groups.items():
        what = _cases(ids, model) if planned else "the whole device"
        found.append(Lost(names.get(device_id, device_id), what, why))
    return tuple(found)


def gone(model: ReportModel) -> tuple[Lost, ...]:
    """Cases that the run before measured and that this one dropped: by its plan, or with their device.

    Only between runs of a whole suite: a selection leaves out what nobody asked for.
    """
    comparison = model.comparison
    if comparison is None or not (model.run.whole_suite and comparison.before.whole_suite):
        return ()
    names = {d.device.device_id: d.device.name for soc in model.socs for d in soc.devices}
    groups: dict[tuple[str, str], list[str]] = {}
    for item in comparison.missing:
        if item.gone:
            groups.setdefault((names.get(item.device_id, item.device_id), item.why), []).append(item.case_id)
    return tuple(Lost(device, _cases(ids, model), why) for (device, why), ids in groups.items())


def gone_title(model: ReportModel) -> str:
    """Above what :func:`gone` lists."""
    before = model.comparison.before.run_id if model.comparison is not None else ""
    return f"Measured in run {before}, not in this one"


def missed_title(run: RunInfo) -> str:
    """Above the list of ``run.missed_nights``."""
    one = len(run.missed_nights) == 1
    return f"{'1 night' if one else f'{len(run.missed_nights)} nights'} before this one brought no results"


def degraded_title(run: RunInfo) -> str:
    """Above the list of ``run.degraded``."""
    times = len(run.degraded)
    who = "a worker" if times == 1 else f"{times} times a worker"
    return f"DEGRADED: {who} took nothing from its queues and was replaced; what was measured counts"

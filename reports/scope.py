"""What a run covers, in words: the whole suite or a person's selection of it, and what never came."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Lost:
    """Results that never came, of one device and for one reason."""

    device: str
    what: str
    """One case's short name, a number of cases, or ``the whole device``."""
    why: str


def lost(model: ReportModel) -> tuple[Lost, ...]:
    """Everything missing, grouped by device and reason, in the order of the results."""
    names = {d.device.device_id: d.device.name for soc in model.socs for d in soc.devices}
    groups: dict[tuple[str, str, bool], list[str]] = {}
    for m in model.missing:
        groups.setdefault((m.device_id, m.why, bool(m.case_id)), []).append(m.case_id)
    found: list[Lost] = []
    for (device_id, why, planned), ids in groups.items():
        if not planned:
            what = "the whole device"
        elif len(ids) == 1:
            what = model.labels.get(ids[0], ids[0])
        else:
            what = f"{len(ids)} cases"
        found.append(Lost(names.get(device_id, device_id), what, why))
    return tuple(found)

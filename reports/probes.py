"""What the probes of a run say about each device: delivered precision, and what has no answer."""

from collections import defaultdict
from collections.abc import Iterable

from orchestrator.analysis.demotion import asked_and_got
from orchestrator.analysis.other_api import of_other_api
from orchestrator.analysis.outcome import JudgedTrial, Outcome
from orchestrator.analysis.precision import NO_GAIN, sentence
from orchestrator.domain.case import Case, axis_text
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import RunResults
from reports.model import PrecisionTable, Unprobed
from reports.numbers import significant

_PLACEHOLDERS = ("bits", "asked")
"""What a probe without a precision of its own has on that axis."""


def precision_tables(results: RunResults, device_id: str) -> tuple[PrecisionTable, ...]:
    """One an API, in order probed."""
    groups: dict[str, list[Precision]] = defaultdict(list)
    for found in results.precision:
        if found.device_id == device_id:
            groups[found.api].append(found)
    return tuple(
        PrecisionTable(api, tuple(rows), tuple(dict.fromkeys(sentence(row) for row in rows if _is_news(row))))
        for api, rows in groups.items()
    )


def precision_news(tables: Iterable[PrecisionTable]) -> tuple[str, ...]:
    """Of one device, what a kernel's author must know: what hints and narrow types buy, what came out wrong.

    A plain highp that is fp32 is no news. APIs that say the same share a line.
    """
    said: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        for row in table.rows:
            if _is_news(row):
                said[sentence(row)].append(table.api)
    return tuple(f"{text} ({', '.join(apis)})" for text, apis in said.items())


def _is_news(row: Precision) -> bool:
    return row.demoted or bool(row.remarks) or row.asked in ("mediump", "fp16")


def precision_brief(tables: Iterable[PrecisionTable]) -> tuple[str, ...]:
    """One line an API, shared by those that say the same: what each width became and what it buys.

    ``mediump runs as fp32, no gain; fp16 at 1.9 times the rate of fp32 (vulkan)``
    """
    said: dict[str, list[str]] = defaultdict(list)
    for table in tables:
        words = [_brief(row) for row in table.rows if row.demoted or row.asked in ("mediump", "fp16")]
        odd = sum(len(row.remarks) for row in table.rows)
        words += [f"{odd} remark{'' if odd == 1 else 's'} in the report"] if odd else []
        if words:
            said["; ".join(words)].append(table.api)
    return tuple(f"{text} ({', '.join(apis)})" for text, apis in said.items())


def _brief(row: Precision) -> str:
    if row.demoted:
        return asked_and_got(row)
    gain = row.relative_speed is not None and row.relative_speed >= NO_GAIN
    if row.asked == "mediump" and row.delivered == "fp32" and not gain:
        return "mediump runs as fp32, no gain"
    name = f"mediump runs as {row.delivered}" if row.asked == "mediump" else row.asked
    if row.relative_speed is None:
        return f"{name}, rate not known"
    base = "highp" if row.asked == "mediump" else "fp32"
    return f"{name} at {significant(row.relative_speed, 2)} times the rate of {base}"


def unprobed(results: RunResults, trials: Iterable[JudgedTrial], device_id: str) -> tuple[Unprobed, ...]:
    """Probes that were refused on the device or dropped before dispatch, with the reason.

    Those of an API that it does not have are none of its own.
    """
    refused = [
        Unprobed(probe_label(t.info.case), t.trial.reason)
        for t in trials
        if t.probe and t.outcome is Outcome.UNSUPPORTED
    ]
    dropped = [
        Unprobed(probe_label(info.case), "; ".join(p.reasons))
        for p in results.pruned
        if p.device_id == device_id
        and not of_other_api(p)
        and (info := results.cases.get(p.case_id))
        and info.role != "op"
    ]
    return (*dropped, *refused)


def probe_label(case: Case) -> str:
    """``fma vulkan fp16 highp``: values of its axes and workload alone, a probe has few."""
    words = [axis_text(v) for v in (*case.axes.values(), *case.workload.values())]
    return " ".join([case.kernel, *(w for w in words if w not in _PLACEHOLDERS)])

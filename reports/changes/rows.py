"""The table of all series: order, first rows as HTML, all rows as compact JSON and as CSV."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.domain.finding import SeriesRow
from reports.changes.model import TableRow
from reports.changes.words import VERDICTS, change, history_words, name
from reports.numbers import DASH, duration
from reports.svg.sparkline import sparkline
from reports.text import visible

FIRST_ROWS = 100
"""Rows that need no script; also a page of the script's table."""
MAX_LABEL = 400
"""Characters of a variant's name in the table, of a reason likewise."""
FLAGS = ("hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic", "improved")


def by_importance(rows: Iterable[SeriesRow]) -> tuple[SeriesRow, ...]:
    """What moved first, slower and faster alike by size of the change; then flags; then the rest."""
    return tuple(sorted(rows, key=_importance))


def _importance(row: SeriesRow) -> tuple[int, float, str]:
    rank = (
        0 if row.verdict in ("regressed", "improved") else 1 if row.flags else 1 + VERDICTS.index(row.verdict)
    )
    size = abs(row.effect) if math.isfinite(row.effect) else 0.0
    return rank, -size, row.case_id


def first_rows(
    rows: Sequence[SeriesRow], labels: Mapping[str, str], anchors: Mapping[str, str]
) -> tuple[TableRow, ...]:
    """``anchors``: case id → detail of its finding."""
    return tuple(
        TableRow(
            series=row,
            label=label(row, labels),
            change=change_text(row),
            latency=_latency(row),
            detectable=_detectable(row),
            anchor=anchors.get(row.case_id, ""),
            spark=sparkline(row.history, history_words(row.history)),
        )
        for row in rows[:FIRST_ROWS]
    )


def label(row: SeriesRow, labels: Mapping[str, str]) -> str:
    return visible(labels.get(row.case_id, row.case_id), MAX_LABEL)


def table_data(rows: Sequence[SeriesRow], labels: Mapping[str, str], anchors: Mapping[str, str]) -> str:
    """All rows for table.js; words that repeat stand once. No NaN, and nothing that ends a script element."""
    words, whys = _Words(), _Words()
    packed = [
        [
            VERDICTS.index(row.verdict),
            [words.index(w) for w in label(row, labels).split(" ")],
            _whole(row.effect, 1e4) if row.verdict not in ("new", "missing") else None,
            change_text(row),
            _whole(row.detectable, 1e4) or None,
            _detectable(row),
            _whole(row.latency_ns, 1.0) or None,
            _latency(row),
            row.phones,
            sum(1 << FLAGS.index(f) for f in row.flags),
            whys.index(visible(row.why, MAX_LABEL)),
            anchors.get(row.case_id, ""),
            ",".join("" if v is None else str(v) for v in (_whole(h, 1e3) for h in row.history)),
        ]
        for row in rows
    ]
    data = {
        "verdicts": VERDICTS,
        "flags": [name(f) for f in FLAGS],
        "words": words.all,
        "whys": whys.all,
        "page": FIRST_ROWS,
        "rows": packed,
    }
    return script_safe(json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")))


def script_safe(text: str) -> str:
    """JSON that cannot end or open an element, whatever its strings hold."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def table_csv(rows: Sequence[SeriesRow], labels: Mapping[str, str]) -> str:
    """Every row; a cell that a spreadsheet would calculate has an apostrophe in front."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(
        [
            "soc",
            "case_id",
            "variant",
            "verdict",
            "log_ratio",
            "detectable",
            "latency_ns",
            "phones",
            "flags",
            "why",
        ]
    )
    for row in rows:
        texts = [row.soc, row.case_id, labels.get(row.case_id, ""), row.verdict]
        numbers = [_plain(v) for v in (row.effect, row.detectable, row.latency_ns)]
        rest = [str(row.phones), " ".join(row.flags), row.why]
        write.writerow([*map(_inert, texts), *numbers, *map(_inert, rest)])
    return out.getvalue()


def _inert(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def _plain(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def change_text(row: SeriesRow) -> str:
    if row.verdict in ("new", "missing") or not math.isfinite(row.effect):
        return DASH
    return change(row.effect)


def _latency(row: SeriesRow) -> str:
    return duration(row.latency_ns) if math.isfinite(row.latency_ns) and row.latency_ns > 0 else DASH


def _detectable(row: SeriesRow) -> str:
    if not math.isfinite(row.detectable) or row.detectable <= 0:
        return DASH
    return f"{math.expm1(min(row.detectable, 5.0)) * 100:.1f} %"


def _whole(value: float, scale: float) -> int | None:
    return round(value * scale) if math.isfinite(value) else None


class _Words:
    def __init__(self) -> None:
        self._at: dict[str, int] = {}

    def index(self, word: str) -> int:
        return self._at.setdefault(word, len(self._at))

    @property
    def all(self) -> list[str]:
        return list(self._at)

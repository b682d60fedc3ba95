"""The table of all series: order, first rows as HTML, all rows as compact JSON and as CSV."""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from orchestrator.domain.finding import SeriesRow
from reports.changes.model import TableRow
from reports.changes.naming import Names
from reports.changes.words import VERDICTS, change, history_words, latency, name, spaced
from reports.numbers import DASH
from reports.svg.sparkline import sparkline
from reports.text import visible

FIRST_ROWS = 100
"""Rows that need no script; also a page of the script's table."""
MAX_LABEL = 400
"""Characters of a variant's name in the table, of a reason likewise."""
MAX_WORD = 100
"""Characters of one axis and its value in the script's table."""
FLAGS = ("hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic", "improved", "drifting")
FLAG_WORDS = (*FLAGS[:-2], "numerics_improved", "drifting")
"""As pages call them: *improved* is not about speed."""
COLUMNS = (
    "soc",
    "case_id",
    "kernel",
    "variant",
    "verdict",
    "log_ratio",
    "detectable",
    "latency_ns",
    "phones",
    "flags",
    "why",
)
"""Of the CSV."""


Drifts = Mapping[str, str]
"""Case id → how far it drifted by now, of a SoC's variants that drift."""


def by_importance(rows: Iterable[SeriesRow], drifts: Drifts) -> tuple[SeriesRow, ...]:
    """What moved first, slower and faster alike by size; then flags and drifts; then the rest."""
    return tuple(sorted(rows, key=lambda row: _importance(row, drifts)))


def _importance(row: SeriesRow, drifts: Drifts) -> tuple[int, float, str]:
    rank = 1 if row.flags or row.case_id in drifts else 1 + VERDICTS.index(row.verdict)
    if row.verdict in ("regressed", "improved"):
        rank = 0
    size = abs(row.effect) if math.isfinite(row.effect) else 0.0
    return rank, -size, row.case_id


def first_rows(
    rows: Sequence[SeriesRow], names: Names, anchors: Mapping[str, str], drifts: Drifts
) -> tuple[TableRow, ...]:
    """``anchors``: case id → detail of its finding."""
    return tuple(
        TableRow(
            series=row,
            label=visible(names.short(row.case_id), MAX_LABEL),
            full=visible(names.full(row.case_id), MAX_LABEL),
            change=change_text(row),
            latency=latency(row.latency_ns),
            detectable=_detectable(row),
            flags=tuple(FLAG_WORDS[FLAGS.index(f)] for f in _flags(row, drifts)),
            why=_why(row, drifts),
            anchor=anchors.get(row.case_id, ""),
            spark=_spark(row),
        )
        for row in rows[:FIRST_ROWS]
    )


def _flags(row: SeriesRow, drifts: Drifts) -> list[str]:
    """In the order of ``FLAGS``."""
    own = {*row.flags, *(["drifting"] if row.case_id in drifts else [])}
    return [f for f in FLAGS if f in own]


def _why(row: SeriesRow, drifts: Drifts) -> str:
    return visible(spaced(row.why) or drifts.get(row.case_id, ""), MAX_LABEL)


def table_data(rows: Sequence[SeriesRow], names: Names, anchors: Mapping[str, str], drifts: Drifts) -> str:
    """All rows for table.js; words that repeat stand once. No NaN, and nothing that ends a script element."""
    words, whys = _Words(), _Words()
    shown: dict[int, str] = {}
    packed = [
        [
            VERDICTS.index(row.verdict),
            _name(row, names, words, shown),
            _whole(row.effect, 1e4) if row.verdict not in ("new", "missing") else None,
            change_text(row),
            _whole(row.detectable, 1e4) or None,
            _detectable(row),
            _whole(row.latency_ns, 1.0) or None,
            latency(row.latency_ns),
            row.phones,
            sum(1 << FLAGS.index(f) for f in _flags(row, drifts)),
            whys.index(_why(row, drifts)),
            anchors.get(row.case_id, ""),
            ",".join("" if v is None else str(v) for v in (_whole(h, 1e3) for h in row.history)),
        ]
        for row in rows
    ]
    data = {
        "verdicts": VERDICTS,
        "flags": [name(word) for word in FLAG_WORDS],
        "words": words.all,
        "shown": {str(at): text for at, text in shown.items()},
        "shared": {visible(s.kernel, MAX_WORD): visible(s.text, MAX_LABEL) for s in names.shared},
        "whys": whys.all,
        "page": FIRST_ROWS,
        "rows": packed,
    }
    return script_safe(json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")))


def _spark(row: SeriesRow) -> Markup:
    """From the numbers that table.js has, so that both draw and say the same."""
    history = [round(v, 3) if math.isfinite(v) else math.nan for v in row.history]
    return sparkline(history, history_words(history))


def _name(row: SeriesRow, names: Names, words: "_Words", shown: dict[int, str]) -> list[int]:
    """Kernel, then each axis that varies; ``shown`` has the words that are shorter on the page."""
    made = [words.index(visible(names.kernel(row.case_id) or row.case_id, MAX_WORD))]
    for pair, short in names.of(row.case_id).pairs:
        at = words.index(visible(pair, MAX_WORD))
        if short != pair:
            shown[at] = visible(short, MAX_WORD)
        made.append(at)
    return made


def script_safe(text: str) -> str:
    """JSON that cannot end or open an element, whatever its strings hold."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def table_csv(rows: Sequence[SeriesRow], names: Names, drifts: Drifts) -> str:
    """Every row; a cell that a spreadsheet would calculate has an apostrophe in front."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(COLUMNS)
    for row in rows:
        texts = [row.soc, row.case_id, names.kernel(row.case_id), names.full(row.case_id), row.verdict]
        numbers = [_plain(v) for v in (row.effect, row.detectable, row.latency_ns)]
        rest = [str(row.phones), " ".join(_flags(row, drifts)), _why(row, drifts)]
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

"""ReportModel → self-contained HTML pages: no network, text escaped, a script on pages of changes only."""

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from orchestrator.analysis.compare import PROVISIONAL
from orchestrator.analysis.outcome import Outcome
from orchestrator.analysis.pairs import API_AXIS, Pair
from orchestrator.analysis.words import plural
from orchestrator.domain.case import Case, axis_text
from orchestrator.domain.finding import EVERYTHING
from reports import clocks, numbers, roofline
from reports.best.model import BestPage
from reports.changes import words
from reports.changes.model import SocChanges
from reports.findings import MAX_DETAILED
from reports.labels import compact
from reports.model import ReportModel, SocPage
from reports.scope import (
    degraded_title,
    gone,
    gone_title,
    missed_title,
    other_api_note,
    scope_note,
    uncounted,
)
from reports.svg.marks import SHAPES, legend_mark
from reports.svg.strip import STATE_SHAPES
from reports.text import shell_word, visible, visible_block

TEMPLATES = Path(__file__).parent / "templates"
ROOF_FRAME: Mapping[str, int] = {
    "width": roofline.WIDTH,
    "height": roofline.HEIGHT,
    "left": roofline.LEFT,
    "right": roofline.RIGHT,
    "top": roofline.TOP,
    "bottom": roofline.BOTTOM,
}
MAX_LISTED = 400
"""Rows of a list of changes or missing results; further ones are counted."""
MAX_CARDS = 24
"""Groups of a page; those with most findings first."""
MAX_IN_CARD = 3
"""Findings of a card that are not folded."""
MAX_FOLDED = 100
"""Findings of a card, folded ones with them."""
MAX_LOGS_CHARACTERS = 200_000
"""Logs inlined in one page, together."""


@cache
def environment() -> Environment:
    """Autoescape on; every printed string goes through :func:`visible` first."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name, function in _FILTERS.items():
        made.filters[name] = function
    return made


def render_index(model: ReportModel) -> str:
    return environment().get_template("index.html.j2").render(shared_names(model))


def render_soc(model: ReportModel, page: SocPage) -> str:
    ids = {d.device.device_id for d in page.devices}
    slow = [c for c in model.slow if c.device_id in ids]
    own = {"soc": page, "ids": ids, "slow": slow, "log_budget": LogBudget()}
    return environment().get_template("soc.html.j2").render(shared_names(model) | own)


def render_changes(model: ReportModel, page: SocChanges) -> str:
    """A SoC against its history. Its one script is allowed by its hash, so that no other one runs."""
    script = table_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = {"soc": page, "script": script, "script_hash": f"sha256-{digest}"}
    return environment().get_template("changes.html.j2").render(shared_names(model) | own)


def render_best(model: ReportModel, page: BestPage) -> str:
    """Which variants of a SoC to ship."""
    return environment().get_template("best.html.j2").render(shared_names(model) | {"page": page})


@cache
def table_script() -> str:
    return (TEMPLATES / "table.js").read_text("utf-8")


def shared_names(model: ReportModel) -> dict[str, object]:
    """What every template may use."""
    return {
        "model": model,
        "names": {d.device.device_id: d.device.name for soc in model.socs for d in soc.devices},
        "outcomes": Outcome,
        "provisional": PROVISIONAL,
        "scope_note": scope_note(model.run),
        "other_api_note": other_api_note(model),
        "uncounted": uncounted(model),
        "degraded_title": degraded_title(model.run),
        "missed_title": missed_title(model.run),
        "gone": gone(model),
        "gone_title": gone_title(model),
        "bar": numbers.bar,
        "fact": numbers.fact,
        "clock_mark": clocks.mark,
        "clock_sentence": clocks.sentence,
        "by_clock": clocks.named_by_clock,
        "decimals_for": numbers.decimals_for,
        "heat_step": numbers.heat_step,
        "heat_steps": numbers.HEAT_STEPS,
        "roof_frame": ROOF_FRAME,
        "pair_groups": _pair_groups,
        "pair_variant": _pair_variant,
        "max_detailed": MAX_DETAILED,
        "max_listed": MAX_LISTED,
        "best": model.shipped,
        "shell": shell_word,
        "changes": model.changes,
        "max_cards": MAX_CARDS,
        "max_in_card": MAX_IN_CARD,
        "max_folded": MAX_FOLDED,
        "glyphs": words.GLYPHS,
        "kinds": words.KINDS,
        "said": words.name,
        "confirmed": words.CONFIRMED,
        "night": words.night,
        "long_night": words.long_night,
        "effect": words.change,
        "everything": EVERYTHING,
        "plural": plural,
        "verdicts": words.VERDICTS,
        "shapes": SHAPES,
        "states": STATE_SHAPES,
        "k_mark": legend_mark,
    }


def _pair_groups(pairs: Sequence[Pair]) -> list[tuple[str, list[Pair], float]]:
    """By workload, in order seen, with its smallest median; within one by kernel, then the fastest first.

    At most ``MAX_LISTED`` in all.
    """
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.case.workload_label, []).append(pair)
    found: list[tuple[str, list[Pair], float]] = []
    left = MAX_LISTED
    for title, rows in groups.items():
        rows.sort(key=lambda p: (p.case.kernel, p.gles.stats.median_ns if p.gles.stats else math.inf))
        if left > 0:
            sides = (s.stats for p in rows for s in (p.gles, p.vulkan) if s.stats is not None)
            found.append((title, rows[:left], min((s.median_ns for s in sides), default=0.0)))
        left -= len(rows)
    return found


def _pair_variant(case: Case) -> str:
    """All axes but the API."""
    return compact((name, axis_text(value)) for name, value in case.axes.items() if name != API_AXIS)


class LogBudget:
    """Keeps one page's inlined logs, together, below a bound."""

    def __init__(self, characters: int = MAX_LOGS_CHARACTERS) -> None:
        self._left = characters

    def take(self, log: str) -> bool:
        """True when this log may be inlined."""
        if len(log) > self._left:
            return False
        self._left -= len(log)
        return True


def _block(text: str) -> Markup:
    """Several lines, for ``<pre>``."""
    return escape(visible_block(text))


_FILTERS: Mapping[str, Callable[..., object]] = {
    "sig": numbers.significant,
    "plain": numbers.plain,
    "units": numbers.units,
    "duration": numbers.duration,
    "latency": words.latency,
    "ms": numbers.milliseconds,
    "percent": numbers.percent,
    "ratio": numbers.ratio,
    "mb": numbers.megabytes,
    "share": numbers.tolerance_share,
    "rate": numbers.rate,
    "binary": numbers.binary_size,
    "position": numbers.position,
    "mhz": clocks.megahertz,
    "block": _block,
}


def _finalize(value: object) -> object:
    """Strings are made visible, and sizes kept in one line; Markup (built by our own templates from escaped
    parts) passes."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return words.tied(visible(value))

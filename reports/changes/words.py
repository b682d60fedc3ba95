"""Verdicts, effects and nights in words: improvements as plainly as regressions."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from reports.numbers import DASH, duration, significant

VERDICTS = ("regressed", "improved", "inconclusive", "missing", "new", "same")
"""Of a row, by what a reader wants to see first; the two that moved stand side by side."""
GLYPHS = {
    "regressed": "▲",
    "improved": "▼",
    "inconclusive": "?",
    "missing": "∅",
    "new": "+",
    "same": "=",
    "drifting": "∿",
    "hash_changed": "≠",
    "nmse_doubled": "≠",
    "limit_crossed": "✕",
    "nondeterministic": "≁",
    "numerics_improved": "▼",
}
KINDS = {
    "regressed": "bad",
    "improved": "good",
    "inconclusive": "warn",
    "missing": "warn",
    "drifting": "warn",
    "hash_changed": "warn",
    "nmse_doubled": "bad",
    "limit_crossed": "bad",
    "nondeterministic": "bad",
    "numerics_improved": "good",
}
"""Colours that repeat what the word says."""
NAMES = {
    "hash_changed": "output bits changed",
    "nmse_doubled": "error at least doubled",
    "limit_crossed": "beyond its tolerance",
    "nondeterministic": "nondeterministic",
    "numerics_improved": "error became smaller",
}
CAUSES = {
    "code": "code changed",
    "driver": "driver or OS changed",
    "device": "one phone alone",
    "environment": "neither code nor driver changed",
}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LEAST_CHANCE = 1e-9
NO_BREAK = "\u00a0"
_SIZE = re.compile(r"(?<=\d) (?:% )?(?:slower|faster)\b")
_PERCENT = re.compile(r"((?<![\w.-])-)?(\d[\d.]*)%(?!\w)")
_NIGHT = re.compile(r"\bnight (\d{4}-\d\d-\d\d)(?:-[\w.-]*\w)?")
"""As a scheduler calls one: date and suite."""
CONFIRMED = {
    "yes": "confirmed by a second measurement",
    "no": "not confirmed by a second measurement",
    "unknown": "a second measurement could not tell",
    "not asked": "not measured a second time",
}


def name(what: str) -> str:
    return NAMES.get(what, what.replace("_", " "))


def change(effect: float) -> str:
    """A log ratio of latency: ``5.1 % slower``, ``4.9 % faster``, ``no change``, ``×2.40 slower``."""
    if not math.isfinite(effect):
        return DASH
    if abs(effect) < 0.0005:
        return "no change"
    word = "slower" if effect > 0 else "faster"
    factor = math.exp(min(abs(effect), 50.0))
    if factor >= 2:
        return f"×{factor:.3g} {word}"
    return f"{abs(math.expm1(effect)) * 100:.1f} % {word}"


def signed(effect: float) -> str:
    """``+5.1 %`` for charts and narrow columns."""
    if not math.isfinite(effect):
        return DASH
    percent = math.expm1(min(effect, 20.0)) * 100
    sign = "+" if percent >= 0.05 else "−" if percent <= -0.05 else "±"
    digits = 1 if abs(percent) < 100 else 0
    return f"{sign}{abs(percent):.{digits}f} %"


def tick(effect: float) -> str:
    """As :func:`signed`, without a decimal that is 0."""
    return signed(effect).replace(".0 %", " %").replace("±0 %", "0 %")


def cause_words(cause: str, changed: str = "") -> str:
    """``driver or OS changed: driver 744``"""
    said = CAUSES.get(cause, cause)
    return f"{said}: {changed}" if changed and changed not in (cause, said) else said


def error_change(effect: float) -> str:
    """A log10 ratio of NMSE: ``NMSE ×2.30``; empty where none is known."""
    if not math.isfinite(effect) or not effect:
        return ""
    factor = 10 ** min(effect, 30.0)
    return f"NMSE ×{significant(factor, 2 if factor >= 1e4 else 3)}"


def chance(p: float, equals: str = "") -> str:
    """``0.0031``, ``< 1e-9``: what is smaller says no more. ``equals`` stands before a number."""
    return (
        f"< {LEAST_CHANCE:.0e}".replace("e-0", "e-")
        if 0 <= p < LEAST_CHANCE
        else f"{equals}{significant(p, 2)}"
    )


def spaced(text: str) -> str:
    """``−2.1 %``, as the rest of a page writes what the analysis calls ``-2.1%``."""
    return _PERCENT.sub(lambda m: f"{'−' if m[1] else ''}{m[2]} %", text)


def tied(text: str) -> str:
    """``2.4 % slower`` that no line ends in."""
    return _SIZE.sub(lambda m: m[0].replace(" ", NO_BREAK), text)


def latency(ns: float) -> str:
    """``–`` where there is none."""
    return duration(ns) if math.isfinite(ns) and ns > 0 else DASH


def night(run_id: str) -> str:
    """``20261201T010000Z-nightly-a1b2`` → ``1 Dec``; other ids as they are, cut."""
    found = _date(run_id)
    return f"{found[2]} {MONTHS[found[1] - 1]}" if found else run_id[:12]


def long_night(run_id: str) -> str:
    """``1 Dec 2026``"""
    found = _date(run_id)
    return f"{found[2]} {MONTHS[found[1] - 1]} {found[0]}" if found else run_id


def _date(run_id: str) -> tuple[int, int, int] | None:
    """Run ids start with the time at which the run started."""
    found = re.match(r"(\d{4})(\d\d)(\d\d)[T-]\d{6}", run_id, re.ASCII)
    if found is None or not 1 <= int(found[2]) <= len(MONTHS):
        return None
    return int(found[1]), int(found[2]), int(found[3])


def readable(text: str, runs: Iterable[str], phones: Mapping[str, str]) -> str:
    """A sentence of the analysis as a page says it: nights as dates, ``9 Nov``, phones by their name and id,
    ``Phone E 2 (sm6375-2)``, a space before each percent sign.

    Args:
        phones: device id → its name.
    """
    said = _NIGHT.sub(lambda m: f"night of {night(m[1].replace('-', '') + '-000000')}", dated(text, runs))
    said = spaced(said)
    named = {i: f"{name} ({i})" for i, name in phones.items() if name and name != i}
    if not named:
        return said
    every = "|".join(re.escape(i) for i in sorted(named, key=len, reverse=True))
    return re.sub(rf"(?<![\w.:/(-])(?:{every})(?![\w/)]|[-.:]\w)", lambda m: named[m[0]], said)


def dated(text: str, runs: Iterable[str]) -> str:
    """A sentence with nights in place of their run ids."""
    known = [re.escape(r) for r in sorted(runs, key=len, reverse=True) if _date(r)]
    return re.sub("|".join(known), lambda m: night(m[0]), text) if known else text


def history_words(history: Sequence[float]) -> str:
    """A sparkline's text: ``13 of 14 nights, between +0.2 % and +5.4 %, last +5.2 %``."""
    known = [v for v in history if math.isfinite(v)]
    if not known:
        return "no night measured"
    last = f"last {signed(history[-1])}" if math.isfinite(history[-1]) else "not measured in the last"
    return f"{len(known)} of {len(history)} nights, {signed(min(known))} to {signed(max(known))}, {last}"

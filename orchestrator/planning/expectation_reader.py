"""One entry of ``expectations:`` in matrix.yaml: a known failure, a known flake or a known slowness."""

from dataclasses import replace
from datetime import date

from orchestrator.domain.expectation import FLAKE_NIGHTS, FLAKE_REPLAYS, Expectation
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.fields import Record
from orchestrator.planning.suggest import did_you_mean, shown
from orchestrator.planning.yaml_tree import Problem

EXPECTATION_REQUIRED = ("when", "reason", "owner", "expires", "soc", "driver")
KINDS = ("verdict", "flakes", "slow")
"""Exactly one of these says what is expected."""
EXPECTATION_KEYS = (*EXPECTATION_REQUIRED, *KINDS)
MAX_SLOWER = 10.0
MAX_REPLAYS = 100_000
MAX_NIGHTS = 90
"""As far as the history is looked at."""


def read_expectation(record: Record, when: str) -> Expectation | None:
    """None: what is wrong is reported."""
    expires = record.date("expires")
    plain = Expectation(
        when=when,
        verdict=Verdict.PASS,
        soc=record.text("soc", "*"),
        driver=record.text("driver", "*"),
        reason=record.text("reason"),
        owner=record.text("owner"),
        expires=expires or date.max,
        line=record.node.line,
    )
    given = [key for key in KINDS if key in record.node.entries]
    if not given:
        what = "say what is expected: verdict, flakes or slow"
        record.problems.append(Problem(record.node.line, record.where, what))
        return None
    if len(given) > 1:
        record.problem(given[1], f"an entry with {given[0]} already says what is expected; write two entries")
        return None
    readers = {"verdict": _fails, "flakes": _flakes, "slow": _slow}
    found = readers[given[0]](record, plain)
    return None if expires is None else found


def _fails(record: Record, plain: Expectation) -> Expectation | None:
    text = record.text("verdict")
    known = [v.value for v in Verdict if v.blames_kernel]
    if text in known:
        return replace(plain, verdict=Verdict(text))
    if text:
        record.problem("verdict", f"{shown(text)} is not a known failure.{did_you_mean(text, known)}")
    return None


def _flakes(record: Record, plain: Expectation) -> Expectation | None:
    """``{replays: 59, nights: 14}``, each with this default."""
    inner = Record.read(
        record.node.entries["flakes"],
        record.at("flakes"),
        record.problems,
        known=("replays", "nights"),
        line=record.line("flakes"),
    )
    if inner is None:
        return None
    return replace(
        plain,
        kind="flakes",
        verdict=Verdict.NONDETERMINISTIC,
        replays=inner.integer("replays", FLAKE_REPLAYS, 2, MAX_REPLAYS),
        nights=inner.integer("nights", FLAKE_NIGHTS, 1, MAX_NIGHTS),
    )


def _slow(record: Record, plain: Expectation) -> Expectation | None:
    slower = record.number("slow", 1, MAX_SLOWER)
    return None if slower is None else replace(plain, kind="slow", slower=slower)

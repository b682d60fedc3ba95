"""A night's second look: what is asked of whom, and what the answers make of the first look's findings."""

import shutil
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.speed.rule import Rule
from orchestrator.domain.case import Case
from orchestrator.domain.confirmation import Confirmation, Duel, DuelAnswer, Wanted
from orchestrator.domain.finding import Finding, Findings, SeriesRow
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Sensors, Timing, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history import trial_files
from orchestrator.history.history import History
from orchestrator.verdicts.confirming import Questions, questions
from orchestrator.verdicts.judge import first_look, judge_run
from tests.results_fixture import case, code_hash, device, info, passing, results, run_info, trial

PHONES = ("phone-1", "phone-2", "phone-3")
CASES = [case(seq=128 * n, tile=tile) for n in range(1, 19) for tile in ("16x16", "32x16")]
MOVED = CASES[5]
NIGHTS = 9
TONIGHT = "20261210T010000Z-smoke-aaaa"
SAMPLES = 64


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight nights without a change, stored once for all tests."""
    folder = tmp_path_factory.mktemp("past")
    opened = History(f"sqlite:///{folder}/tilefarm.db", folder / "history")
    for number in range(1, NIGHTS):
        opened.store(night(number, Change(), 20))
    opened.close()
    return folder


@pytest.fixture
def history(past: Path, tmp_path: Path) -> Generator[History]:
    shutil.copytree(past, tmp_path, dirs_exist_ok=True)
    opened = History(f"sqlite:///{tmp_path}/tilefarm.db", tmp_path / "history")
    yield opened
    opened.close()


@dataclass(frozen=True)
class Change:
    """What is otherwise tonight, of one case."""

    effect: float = 0.0
    code: str = "1"
    phones: tuple[str, ...] = PHONES


def timed(log_ns: float, n: int) -> Timing:
    """Two alternating times: no ramp, and no two modes."""
    ns = [round(np.exp(log_ns) * (1.001 if i % 2 else 0.999)) for i in range(n)]
    return Timing([1_000_000], 2 * ns[0], [t + 5000 for t in ns], ns, "trusted", ns[0], 10)


def clocked(made: Trial, hz: int = 900_000_000) -> Trial:
    n = len(made.timing.samples_ns) if made.timing else 0
    return replace(made, sensors=Sensors([hz] * (n + 1), [30_000] * (n + 1), False))


def night(number: int, change: Change, samples: int) -> RunResults:
    rng = np.random.default_rng(number)
    run_id = TONIGHT if number == NIGHTS else f"202612{number + 1:02d}T010000Z-smoke-aaaa"
    common = {phone: rng.normal(0, 0.01) for phone in PHONES}
    trials: list[Trial] = []
    for n, point in enumerate(CASES):
        for phone in PHONES:
            tonight = point == MOVED and number == NIGHTS
            effect = change.effect if tonight and phone in change.phones else 0.0
            log_ns = 14 + n / 10 + common[phone] + rng.normal(0, 0.002) + effect
            code = change.code if tonight else "1"
            trials.append(clocked(passing(point, phone, timed(log_ns, samples), run_id=run_id, code=code)))
    infos = [info(p, code=change.code if p == MOVED and number == NIGHTS else "1") for p in CASES]
    return results(
        devices=[device(phone) for phone in PHONES],
        infos=infos,
        trials=trials,
        run=replace(run_info(run_id), started_at=f"2026-12-{number + 1:02d}T01:00:00+00:00"),
    )


def nights(history: History, change: Change, samples: int = SAMPLES) -> RunResults:
    tonight = night(NIGHTS, change, samples)
    history.store(tonight)
    return tonight


def asked(history: History, tonight: RunResults) -> Questions:
    return questions(first_look(history, tonight))


def duel(wanted: Wanted, answer: DuelAnswer, effect: float = 0.1) -> Duel:
    return Duel(wanted, answer, effect, effect - 0.01, effect + 0.01, 0.00003, 16, 16, clock="gpu")


def answered(found: Questions, *duels: Duel, why: str = "") -> Confirmation:
    return Confirmation(TONIGHT, list(duels), unpaid=found.unpaid, why=why, wanted=found.wanted)


def measured_again(found: Questions, log_ns: float, *, hz: int = 900_000_000) -> Confirmation:
    trials = [
        clocked(passing(MOVED, w.device_id, timed(log_ns, 20), run_id="other", code="1"), hz)
        for w in found.wanted
    ]
    return replace(answered(found), again=trials)


def row(found: Findings, point: Case = MOVED) -> SeriesRow:
    return next(r for r in found.series if r.case_id == point.case_id)


def only(findings: list[Finding]) -> Finding:
    speed = [f for f in findings if f.kind == "speed"]
    assert len(speed) == 1
    return speed[0]


def test_a_changed_code_is_measured_in_turns_on_two_phones(history: History) -> None:
    found = asked(history, nights(history, Change(0.1, "2")))
    assert found.unpaid == 0
    assert found.samples == len(CASES) * len(PHONES) * SAMPLES
    assert len(found.wanted) == 2
    assert len({w.device_id for w in found.wanted}) == 2
    assert found.wanted[0].p <= found.wanted[1].p
    for w in found.wanted:
        assert (w.how, w.whose, w.case_id) == ("turns", "soc", MOVED.case_id)
        assert (w.code_before, w.code_after) == (code_hash(MOVED, "1"), code_hash(MOVED, "2"))
        assert w.baseline_run == "20261209T010000Z-smoke-aaaa"
        assert w.threshold == pytest.approx(np.log(1.02))


def test_an_unchanged_code_is_measured_once_more(history: History) -> None:
    found = asked(history, nights(history, Change(0.1)))
    assert [(w.how, w.code_before, w.baseline_run) for w in found.wanted] == [("again", "", "")] * 2


def test_nothing_is_asked_of_a_night_like_the_others(history: History) -> None:
    found = asked(history, nights(history, Change()))
    assert (found.wanted, found.unpaid) == ([], 0)


def test_a_night_of_few_samples_pays_for_the_least_at_least(history: History) -> None:
    found = asked(history, nights(history, Change(0.1, "2"), 40))
    assert (len(found.wanted), found.unpaid) == (2, 0)


def nothing(_rule: Rule, _measured: int) -> float:
    return 0.0


def test_what_the_night_cannot_pay_for_is_not_asked(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rule, "samples_for_confirmation", nothing)
    tonight = nights(history, Change(0.1, "2"), 40)
    found = asked(history, tonight)
    assert (found.wanted, found.unpaid) == ([], 1)
    judged = judge_run(history, tonight, confirmation=answered(found))
    assert only(judged.findings).confirmed == "not asked"


def test_one_phone_alone_is_asked_alone(history: History) -> None:
    found = asked(history, nights(history, Change(0.1, "1", ("phone-2",))))
    assert [(w.device_id, w.how, w.whose) for w in found.wanted] == [("phone-2", "again", "phone")]


def test_codes_that_differ_confirm_a_finding(history: History) -> None:
    tonight = nights(history, Change(0.1, "2"))
    found = asked(history, tonight)
    judged = judge_run(
        history, tonight, confirmation=answered(found, *(duel(w, "different") for w in found.wanted))
    )
    finding = only(judged.findings)
    assert (finding.confirmed, finding.cause) == ("yes", "code")
    assert "the codes differ when measured in turns" in finding.detail
    assert [(d.answer, d.pairs, d.effect) for d in finding.duels] == [("different", 16, 0.1)] * 2
    assert not judged.unconfirmed
    assert row(judged).verdict == "regressed"


def test_codes_that_do_not_differ_raise_no_alarm_and_hide_nothing(history: History) -> None:
    tonight = nights(history, Change(0.1, "2"))
    found = asked(history, tonight)
    judged = judge_run(
        history, tonight, confirmation=answered(found, *(duel(w, "same", 0.001) for w in found.wanted))
    )
    assert not [f for f in judged.findings if f.kind == "speed"]
    assert judged.counts["regressed"] == 0
    finding = only(judged.unconfirmed)
    assert (finding.confirmed, finding.cause, finding.what) == ("no", "environment", "regressed")
    assert "measured in turns the codes do not differ" in finding.detail
    assert row(judged).verdict == "inconclusive"
    assert "in turns same: +0.1%" in row(judged).why


def test_an_open_duel_is_neither_yes_nor_no(history: History) -> None:
    tonight = nights(history, Change(0.1, "2"))
    found = asked(history, tonight)
    judged = judge_run(
        history, tonight, confirmation=answered(found, *(duel(w, "unknown", 0.02) for w in found.wanted))
    )
    assert only(judged.unconfirmed).confirmed == "unknown"
    assert row(judged).verdict == "inconclusive"


def test_a_question_without_an_answer_changes_nothing(history: History) -> None:
    tonight = nights(history, Change(0.1, "2"))
    found = asked(history, tonight)
    gone = [replace(duel(w, "unknown"), pairs=0, valid=0, why="its shader is gone") for w in found.wanted]
    for confirmation, why in (
        (answered(found, *gone), "its shader is gone"),
        (answered(found, why="ended by Ctrl-C"), "ended by Ctrl-C"),
        (answered(found), "no answer came"),
    ):
        judged = judge_run(history, tonight, confirmation=confirmation)
        finding = only(judged.findings)
        assert finding.confirmed == "unknown"
        assert why in finding.detail
        assert row(judged).verdict == "regressed"
        assert not judged.unconfirmed


def test_one_phone_that_answers_is_enough_for_codes_in_turns(history: History) -> None:
    tonight = nights(history, Change(0.1, "2"))
    found = asked(history, tonight)
    one = answered(found, duel(found.wanted[0], "different"), why="the broker went")
    assert only(judge_run(history, tonight, confirmation=one).findings).confirmed == "yes"


def test_an_answer_about_another_code_is_no_answer(history: History) -> None:
    tonight = nights(history, Change(0.1, "2"))
    found = asked(history, tonight)
    stale = [replace(w, code_after="0ther") for w in found.wanted]
    confirmation = Confirmation(TONIGHT, [duel(w, "same", 0.0) for w in stale], wanted=stale)
    assert only(judge_run(history, tonight, confirmation=confirmation).findings).confirmed == "not asked"


def tonight_ns(tonight: RunResults, phone: str) -> float:
    times = next(t.timing for t in tonight.trials if t.device_id == phone and t.case_id == MOVED.case_id)
    assert times is not None
    return float(np.log(np.median(times.samples_ns)))


def test_a_second_measurement_that_says_the_same_confirms(history: History) -> None:
    tonight = nights(history, Change(0.1))
    found = asked(history, tonight)
    again = [
        clocked(passing(MOVED, w.device_id, timed(tonight_ns(tonight, w.device_id), 20), run_id="other"))
        for w in found.wanted
    ]
    finding = only(judge_run(history, tonight, confirmation=replace(answered(found), again=again)).findings)
    assert (finding.confirmed, finding.cause, finding.duels) == ("yes", "environment", [])
    assert "measured again: +" in finding.detail


def test_a_second_measurement_that_does_not_find_it_raises_no_alarm(history: History) -> None:
    tonight = nights(history, Change(0.1))
    found = asked(history, tonight)
    again = [
        clocked(passing(MOVED, w.device_id, timed(tonight_ns(tonight, w.device_id) - 0.1, 20)))
        for w in found.wanted
    ]
    judged = judge_run(history, tonight, confirmation=replace(answered(found), again=again))
    assert not [f for f in judged.findings if f.kind == "speed"]
    assert only(judged.unconfirmed).confirmed == "no"


@pytest.mark.parametrize("what", ["another clock", "infra", "one phone only"])
def test_a_second_measurement_that_cannot_be_compared_says_nothing(history: History, what: str) -> None:
    tonight = nights(history, Change(0.1))
    found = asked(history, tonight)
    again = [
        clocked(
            passing(MOVED, w.device_id, timed(tonight_ns(tonight, w.device_id) - 0.1, 20)),
            600_000_000 if what == "another clock" else 900_000_000,
        )
        for w in found.wanted
    ]
    if what == "infra":
        again = [trial(MOVED, t.device_id, Verdict.INFRA, reason="the phone went") for t in again]
    if what == "one phone only":
        again = again[:1]
    judged = judge_run(history, tonight, confirmation=replace(answered(found), again=again))
    finding = only(judged.findings)
    assert finding.confirmed == "unknown"
    assert {"another clock": "another clock", "infra": "the phone went"}.get(what, "") in finding.detail
    assert row(judged).verdict == "regressed"


def test_an_item_of_one_phone_is_confirmed_by_itself(history: History) -> None:
    tonight = nights(history, Change(0.1, "1", ("phone-2",)))
    found = asked(history, tonight)
    for shift, word in ((0.0, "yes"), (-0.1, "no")):
        again = [clocked(passing(MOVED, "phone-2", timed(tonight_ns(tonight, "phone-2") + shift, 20)))]
        judged = judge_run(history, tonight, confirmation=replace(answered(found), again=again))
        finding = only(judged.findings if word == "yes" else judged.unconfirmed)
        assert (finding.device_id, finding.confirmed) == ("phone-2", word)


def counting(history: History) -> set[str]:
    """Phones whose tonight counts for the baseline of the case that moved."""
    tonight = next(run for run in history.runs() if run.run_id == TONIGHT)
    said = trial_files.read(history.verdict_path(tonight), ["device_id", "case_id", "accepted"])
    return {row["device_id"] for row in said if row["case_id"] == MOVED.case_id and row["accepted"]}


@pytest.mark.parametrize(
    ("code", "answer", "count"),
    [("1", "not again", set[str]()), ("2", "unknown", set[str]()), ("2", "same", set(PHONES))],
)
def test_a_night_that_moved_and_was_not_confirmed_is_no_part_of_a_baseline(
    history: History, code: str, answer: DuelAnswer | str, count: set[str]
) -> None:
    """Unless the codes were found alike: the new one is then the baseline's, and what else moved the case is
    measured without turns the next time."""
    tonight = nights(history, Change(0.1, code))
    found = asked(history, tonight)
    if answer == "not again":
        again = [
            clocked(passing(MOVED, w.device_id, timed(tonight_ns(tonight, w.device_id) - 0.1, 20)))
            for w in found.wanted
        ]
        confirmation = replace(answered(found), again=again)
    else:
        word: DuelAnswer = "same" if answer == "same" else "unknown"
        confirmation = answered(found, *(duel(w, word, 0.001) for w in found.wanted))
    assert row(judge_run(history, tonight, confirmation=confirmation)).verdict == "inconclusive"
    assert counting(history) == count

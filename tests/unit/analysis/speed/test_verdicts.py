"""A night of a small made-up farm: what each case and each series is said to be."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from orchestrator.analysis.speed.again import Again, again
from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis, analyse
from orchestrator.analysis.speed.baseline import History, Tonight
from orchestrator.analysis.speed.plan import Plan, plan
from orchestrator.analysis.speed.rows import Floats, Ints
from orchestrator.analysis.speed.rule import RULE, Rule
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed, Turns, Verdicts, verdicts
from tests.unit.analysis.speed.made import past, tonight

VARIANTS, PHONES, NIGHTS = 60, 3, 14
SERIES = VARIANTS * PHONES
CASE = 5


@dataclass(frozen=True, slots=True)
class Made:
    matrix: Matrix
    history: History
    log_ns: Floats
    """Tonight, unchanged."""

    def run(self, log_ns: Floats, epoch: Ints | None = None) -> NightAnalysis:
        return analyse(self.matrix, self.history, tonight(log_ns, epoch))


def made(*, changed: bool = True, seed: int = 1) -> Made:
    """One SoC, three phones, night-to-night noise of 0.5 %. Series are ordered by phone, then variant."""
    rng = np.random.default_rng(seed)
    device = np.repeat(np.arange(PHONES, dtype=np.int64), VARIANTS)
    values = rng.normal(15, 1, (SERIES, 1)) + rng.normal(0, 0.005, (SERIES, NIGHTS + 1))
    values += rng.normal(0, 0.015, (PHONES, NIGHTS + 1))[device]
    matrix = Matrix(
        device=device,
        test=np.tile(np.arange(VARIANTS, dtype=np.int64), PHONES),
        soc=np.zeros(PHONES, np.int64),
        code_changed=np.full(VARIANTS, changed),
        threshold=np.full(VARIANTS, RULE.threshold),
        sentinel=np.tile(np.arange(VARIANTS) >= VARIANTS - 8, PHONES),
    )
    return Made(matrix, past(values[:, :-1]), values[:, -1])


def moved(log_ns: Floats, effect: float, phones: tuple[int, ...] = (0, 1, 2)) -> Floats:
    found = log_ns.copy()
    found[[p * VARIANTS + CASE for p in phones]] += effect
    return found


def judged(
    farm: Made,
    log_ns: Floats,
    answer: int | None = None,
    *,
    second: Floats | None = None,
    on: tuple[int, ...] = (0, 1, 2),
) -> tuple[Verdicts, NightAnalysis, Plan]:
    """``answer``: of each comparison in turns on the phones ``on``; −1 on the others. None: none was made."""
    night = farm.run(log_ns)
    chosen = plan(farm.matrix, night, 10**9)
    turns = Turns.none(SERIES)
    if answer is not None:
        here = np.isin(farm.matrix.device, on)
        turns = Turns(chosen.series, np.where(here, answer, -1), night.deltas.delta)
    again_: Again | None = None if second is None else again(farm.matrix, night, farm.history, second)
    return verdicts(farm.matrix, night, ~np.isnan(log_ns), chosen, turns, again_), night, chosen


def said(found: Verdicts, case: int = CASE) -> Speed:
    return SPEEDS[int(found.tests[case])]


def said_of(found: Verdicts, phone: int) -> Speed:
    return SPEEDS[int(found.series[phone * VARIANTS + CASE])]


@pytest.mark.parametrize(("effect", "verdict"), [(0.06, Speed.REGRESSED), (-0.06, Speed.IMPROVED)], ids=str)
def test_a_change_on_all_phones_is_confirmed_in_turns(effect: float, verdict: Speed) -> None:
    farm = made()
    found, night, chosen = judged(farm, moved(farm.log_ns, effect), 1)
    assert said(found) is verdict
    assert found.confirmed[CASE]
    assert night.screened.found.sum() == 1
    assert chosen.series.reshape(PHONES, VARIANTS)[:, CASE].sum() == 2
    others = np.delete(found.tests, CASE)
    assert (others == SPEEDS.index(Speed.SAME)).all()


def test_a_finding_that_measuring_in_turns_denies_is_not_the_code() -> None:
    farm = made()
    found, _, _ = judged(farm, moved(farm.log_ns, 0.06), -1)
    assert said(found) is Speed.INCONCLUSIVE
    assert found.not_the_code[CASE]


@pytest.mark.parametrize(("before", "asked"), [((), True), ((0,), True), ((0, 1), False)], ids=str)
def test_what_one_phone_showed_before_is_news_of_its_soc(before: tuple[int, ...], asked: bool) -> None:
    farm = made()
    night = farm.run(moved(farm.log_ns, 0.06))
    told = np.isin(farm.matrix.device, before) & (farm.matrix.test == CASE)
    chosen = plan(farm.matrix, night, 10**9, told)
    assert night.screened.found[CASE]
    assert bool(chosen.tests[CASE]) is asked


def nothing(_rule: Rule, _measured: int) -> float:
    return 0.0


def test_a_finding_beyond_the_budget_stands_unconfirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rule, "samples_for_confirmation", nothing)
    farm = made()
    found, _, chosen = judged(farm, moved(farm.log_ns, 0.06))
    assert (chosen.tests.sum(), chosen.unpaid >= 1) == (0, True)
    assert said(found) is Speed.REGRESSED
    assert not found.confirmed[CASE]


def test_one_phone_is_an_item_of_that_phone_and_no_verdict_on_the_soc() -> None:
    farm = made()
    found, night, _ = judged(farm, moved(farm.log_ns, 0.08, phones=(1,)), 1, on=(1,))
    assert not night.screened.found[CASE]
    assert said(found) is not Speed.REGRESSED
    assert [said_of(found, p) for p in range(3)] == [Speed.SAME, Speed.REGRESSED, Speed.SAME]


def test_a_suspect_needs_two_phones_that_differ_in_turns() -> None:
    """Unusual, but smaller than the threshold: measuring in turns may say that it is not."""
    farm = made()
    slightly = moved(farm.log_ns, 0.016)
    night = farm.run(slightly)
    assert night.screened.suspect[CASE]
    assert said(judged(farm, slightly, 1)[0]) is Speed.REGRESSED
    assert said(judged(farm, slightly, 0)[0]) is Speed.INCONCLUSIVE
    assert said(judged(farm, slightly, -1)[0]) is Speed.SAME
    assert said(judged(farm, slightly, 1, on=(0,))[0]) is not Speed.REGRESSED


def test_unchanged_code_is_measured_again_and_must_say_the_same() -> None:
    farm = made(changed=False)
    slower = moved(farm.log_ns, 0.06)
    fresh = np.random.default_rng(9).normal(0, 0.005, SERIES)
    assert said(judged(farm, slower, second=slower + fresh)[0]) is Speed.REGRESSED
    assert said(judged(farm, slower, second=farm.log_ns + fresh)[0]) is Speed.INCONCLUSIVE


def test_unchanged_code_is_never_a_suspect() -> None:
    assert not made(changed=False).run(moved(made().log_ns, 0.016)).screened.suspect.any()


def test_a_driver_that_slows_everything_is_the_phones_shift_and_no_case_s() -> None:
    """``whole`` judges it."""
    farm = made(changed=False)
    night = farm.run(farm.log_ns + 0.08)
    assert night.shifts.all[:, -1] == pytest.approx(0.08, abs=0.03)
    assert not night.screened.found.any()


def test_missing_new_and_inconclusive_are_told_apart() -> None:
    farm = made()
    log_ns = farm.log_ns.copy()
    log_ns[0::VARIANTS] = np.nan  # case 0: measured, no number
    log_ns[1::VARIANTS] = np.nan  # case 1: not measured
    history = replace(farm.history, accepted=farm.history.accepted.copy())
    history.accepted[2::VARIANTS] = False  # case 2: never seen
    history.accepted[3::VARIANTS, 6:] = False  # case 3: six nights
    log_ns[4] = np.nan  # case 4: not on the first phone
    night = analyse(farm.matrix, history, tonight(log_ns))
    measured = ~np.isnan(log_ns)
    measured[0::VARIANTS] = True
    chosen = plan(farm.matrix, night, 0)
    found = verdicts(farm.matrix, night, measured, chosen, Turns.none(SERIES))
    expected = [Speed.INCONCLUSIVE, Speed.MISSING, Speed.NEW, Speed.NEW, Speed.SAME]
    assert [said(found, case) for case in range(5)] == expected
    assert [SPEEDS[int(code)] for code in found.series[:5]] == [*expected[:4], Speed.MISSING]


def test_a_swapped_phone_starts_anew_and_the_others_go_on() -> None:
    farm = made()
    log_ns = moved(farm.log_ns, 0.06)
    log_ns[:VARIANTS] += 0.15
    epoch = np.where(farm.matrix.device == 0, 1, 0)
    night = farm.run(log_ns, epoch)
    assert np.isnan(night.deltas.delta[:VARIANTS]).all()
    assert night.screened.found[CASE]
    assert night.pooled.phones[CASE] == 2


def test_a_kernel_may_have_a_threshold_of_its_own() -> None:
    farm = made()
    lenient = replace(farm.matrix, threshold=np.full(VARIANTS, np.log(1.10)))
    assert not analyse(lenient, farm.history, tonight(moved(farm.log_ns, 0.06))).screened.found.any()


def test_the_night_before_the_seventh_says_nothing() -> None:
    farm = made()
    short = History(*(getattr(farm.history, name)[:, :6] for name in History.__slots__))
    night = analyse(farm.matrix, short, tonight(moved(farm.log_ns, 0.5)))
    assert not night.screened.found.any()
    assert not night.phone.found.any()


def test_a_farm_without_any_history_is_new() -> None:
    farm = made()
    none = History(*(getattr(farm.history, name)[:, :0] for name in History.__slots__))
    night = analyse(farm.matrix, none, tonight(farm.log_ns))
    found = verdicts(
        farm.matrix, night, ~np.isnan(farm.log_ns), plan(farm.matrix, night, 0), Turns.none(SERIES)
    )
    assert (found.tests == SPEEDS.index(Speed.NEW)).all()


def test_neither_unit_nor_order_of_series_nor_sign_matters() -> None:
    farm = made()
    log_ns = moved(farm.log_ns, 0.06)
    one = farm.run(log_ns)
    scaled = analyse(
        farm.matrix,
        replace(farm.history, log_ns=farm.history.log_ns + np.log(1000)),
        tonight(log_ns + np.log(1000)),
    )
    np.testing.assert_allclose(scaled.pooled.p, one.pooled.p, rtol=1e-6)

    order = np.random.default_rng(2).permutation(SERIES)
    shuffled = analyse(
        replace(
            farm.matrix,
            device=farm.matrix.device[order],
            test=farm.matrix.test[order],
            sentinel=farm.matrix.sentinel[order],
        ),
        History(*(getattr(farm.history, name)[order] for name in History.__slots__)),
        Tonight(*(getattr(tonight(log_ns), name)[order] for name in Tonight.__slots__)),
    )
    np.testing.assert_allclose(shuffled.pooled.p, one.pooled.p, rtol=1e-6)
    np.testing.assert_array_equal(shuffled.screened.found, one.screened.found)

    mirrored = analyse(farm.matrix, replace(farm.history, log_ns=-farm.history.log_ns), tonight(-log_ns))
    np.testing.assert_allclose(mirrored.pooled.delta, -one.pooled.delta, atol=1e-9)
    np.testing.assert_array_equal(mirrored.screened.found, one.screened.found)

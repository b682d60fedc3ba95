from dataclasses import replace

import pytest

from orchestrator.analysis.compare import PROVISIONAL, Change, Comparison, compare
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.results import Missing, Pruned
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import calculated, fma_case, probe_info, probed
from tests.results_fixture import PREVIOUS_RUN_ID, case, device, passing, results, run_info, timing, trial

POINT, OTHER = case(tile="32x16"), case(tile="8x8")


def _compare(
    before: Trial,
    after: Trial,
    old_device: DeviceRecord | None = None,
    new_device: DeviceRecord | None = None,
) -> Comparison:
    old = results(
        trials=[before], points=[POINT], run=run_info(PREVIOUS_RUN_ID), devices=[old_device or device()]
    )
    return compare(old, results(trials=[after], points=[POINT], devices=[new_device or device()]))


def _change(before: Trial, after: Trial) -> Change:
    return _compare(before, after).changes[0]


def _ran(ms: float = 16.0, **changes: str) -> Trial:
    return passing(POINT, "local-1", timing(round(ms * 1e6)), **changes)


def test_provisional_by_name() -> None:
    assert PROVISIONAL == "provisional: two runs only, not a verdict"


def test_ratio_of_medians() -> None:
    change = _change(_ran(10), _ran(12))
    assert change.ratio == pytest.approx(1.2)
    assert change.moved
    assert change.cause == "environment"


def test_within_noise_is_not_pointed_out() -> None:
    quiet = _change(_ran(10), _ran(10.4))
    assert not quiet.moved
    assert not quiet.notable
    assert quiet.cause == "none"
    wide = _change(
        passing(POINT, "local-1", timing(10_000_000, spread=0.3)),
        passing(POINT, "local-1", timing(12_000_000, spread=0.3)),
    )
    assert not wide.moved


def test_faster_moves_as_far_as_slower() -> None:
    assert _change(_ran(12), _ran(10)).moved


def test_changed_code_is_named_as_the_cause_and_excuses_other_bits() -> None:
    change = _change(_ran(bits="a"), _ran(bits="b", code="2"))
    assert (change.code_changed, change.hash_changed, change.cause) == (True, True, "code")
    assert not change.notable


def test_other_bits_from_the_same_code_are_notable() -> None:
    assert _change(_ran(bits="a"), _ran(bits="b")).notable


def test_another_clock_is_not_comparable() -> None:
    change = _change(_ran(), passing(POINT, "local-1", timing(20_000_000, gpu_timer="trusted")))
    assert change.ratio is None
    assert change.not_comparable == "clock changed: wall → gpu"
    assert not change.moved


def test_wrong_results_have_no_ratio() -> None:
    wrong = replace(_ran(5), verdict=Verdict.MISMATCH)
    change = _change(_ran(10), wrong)
    assert change.not_comparable == "not correct in both runs"
    assert change.verdict_changed
    assert change.notable


def test_lost_infrastructure_is_no_change_of_the_kernel() -> None:
    assert not _change(_ran(), trial(POINT, "local-1", Verdict.INFRA)).notable


def test_g1_24_driver_change_opens_an_epoch() -> None:
    newer = device(version="OpenGL ES 3.2 Mesa 25.0.1")
    found = _compare(
        _ran(10), _ran(20, driver="llvmpipe (LLVM 15.0.6, 256 bits); OpenGL ES 3.2 Mesa 25.0.1"), None, newer
    )
    assert [(e.what, e.before, e.after) for e in found.epochs] == [
        (
            "gles driver",
            "llvmpipe (LLVM 15.0.6, 256 bits); OpenGL ES 3.2 Mesa 22.3.6",
            "llvmpipe (LLVM 15.0.6, 256 bits); OpenGL ES 3.2 Mesa 25.0.1",
        )
    ]
    assert found.changes[0].new_epoch
    assert found.changes[0].cause == "driver"
    assert found.slowdowns(1.10) == ()


def test_a_trial_that_died_before_naming_its_driver_opens_no_epoch() -> None:
    assert not _change(_ran(), trial(POINT, "local-1", Verdict.CRASHED, driver="")).new_epoch


def test_g1_24_another_driver_library_os_build_or_limit_opens_an_epoch() -> None:
    base = device()
    other_library = replace(base, profiles=[replace(base.profiles[0], library="libGLES_mali.so")])
    found = [
        _compare(_ran(10), _ran(20), base, new)
        for new in (other_library, device(os_build="Debian 13"), device(shared_bytes=16_384))
    ]
    whats = [[e.what for e in c.epochs] for c in found]
    assert whats == [["gles library"], ["OS build"], ["gles limit shared_bytes"]]
    assert [c.changes[0].cause for c in found] == ["driver", "device", "device"]
    assert all(c.changes[0].new_epoch for c in found)


def test_g4_03_renaming_and_rehosting_keep_the_history() -> None:
    renamed = replace(device(), name="my phone", host="other", serial="x", health={"battery": "3 %"})
    found = _compare(_ran(10), _ran(12), None, renamed)
    assert found.epochs == ()
    assert found.changes[0].ratio == pytest.approx(1.2)


def test_g4_03_another_device_under_the_old_name_starts_anew() -> None:
    swapped = device("local-2", name=device().name)
    found = _compare(_ran(), passing(POINT, "local-2"), None, swapped)
    assert found.changes == ()
    assert [n.why for n in found.new] == ["device not in the other run"]
    assert [m.why for m in found.missing] == ["device not in the other run"]


def test_slowdowns_over_the_bound_within_one_epoch() -> None:
    assert len(_compare(_ran(10), _ran(12)).slowdowns(1.10)) == 1
    assert _compare(_ran(10), _ran(12)).slowdowns(1.25) == ()
    assert _compare(_ran(12), _ran(10)).slowdowns(1.10) == ()


def test_one_sided_cases_say_why() -> None:
    now = results(
        trials=[passing(POINT, "local-1")],
        points=[POINT, OTHER],
    )
    pruned = Pruned("local-1", OTHER.case_id, Verdict.UNSUPPORTED, ["shared_bytes 36864 > 16384"])
    missing = Missing("local-1", OTHER.case_id, "phone vanished")
    before = results(trials=[passing(OTHER, "local-1")], points=[POINT, OTHER])
    assert [m.why for m in compare(before, now).missing] == ["not planned in the other run"]
    assert [m.why for m in compare(before, replace(now, pruned=[pruned])).missing] == [
        "pruned in the other run: shared_bytes 36864 > 16384"
    ]
    assert [m.why for m in compare(before, replace(now, missing=[missing])).missing] == [
        "no result in the other run: phone vanished"
    ]
    assert [n.label for n in compare(before, now).new] == [POINT.label]


def test_changes_are_in_the_order_of_what_a_reader_must_see() -> None:
    pass_, wrong, crashed, infra = Verdict.PASS, Verdict.MISMATCH, Verdict.CRASHED, Verdict.INFRA
    rows = [
        # name, verdicts, times in ms, bits: before and after
        ("same", pass_, pass_, (10.0, 10.1), "aa"),
        ("lost", pass_, infra, (10.0, 10.0), "aa"),
        ("a little slower", pass_, pass_, (10.0, 11.0), "aa"),
        ("much faster", pass_, pass_, (10.0, 5.0), "aa"),
        ("slower", pass_, pass_, (10.0, 18.0), "aa"),
        ("other bits", pass_, pass_, (10.0, 10.0), "ab"),
        ("better", wrong, pass_, (10.0, 10.0), "aa"),
        ("as bad", wrong, crashed, (10.0, 10.0), "aa"),
        ("worse", pass_, wrong, (10.0, 10.0), "aa"),
    ]
    points = {name: case(tile=f"{n}x8") for n, (name, *_) in enumerate(rows, start=1)}

    def run(at: int) -> list[Trial]:
        return [
            replace(
                passing(points[name], "local-1", timing(round(ms[at] * 1e6)), bits=bits[at]),
                verdict=(old, new)[at],
            )
            for name, old, new, ms, bits in rows
        ]

    known = list(points.values())
    found = compare(
        results(trials=run(0), points=known, run=run_info(PREVIOUS_RUN_ID)),
        results(trials=run(1), points=known),
    )
    names = {p.case_id: name for name, p in points.items()}
    assert [names[c.case_id] for c in found.changes] == [
        "worse", "as bad", "better", "other bits", "much faster", "slower", "a little slower", "same", "lost",
    ]  # fmt: skip
    assert [names[c.case_id] for c in found.changes if c.became_wrong] == ["worse"]
    assert [names[c.case_id] for c in found.slowdowns(1.05)] == ["slower", "a little slower"]


def _probed_runs(before: Trial, after: Trial) -> Comparison:
    infos = [probe_info(fma_case())]
    old = results(trials=[before], infos=infos, run=run_info(PREVIOUS_RUN_ID))
    return compare(old, results(trials=[after], infos=infos))


def test_a_slower_probe_is_neither_notable_nor_beyond_a_bound() -> None:
    found = _probed_runs(calculated("local-1", 200), calculated("local-1", 100))
    assert found.changes[0].ratio == pytest.approx(2.0)
    assert not found.changes[0].notable
    assert found.slowdowns(1.1) == ()


def test_a_probe_that_became_wrong_is_notable() -> None:
    wrong = probed(fma_case(), "local-1", verdict=Verdict.MISMATCH, reason="r")
    assert _probed_runs(calculated("local-1", 200), wrong).changes[0].notable

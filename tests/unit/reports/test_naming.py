"""Names of variants and nights on pages of changes."""

from typing import Any

import pytest

from reports.changes.naming import Names, Shared
from reports.changes.words import change, dated, error_change, long_night, night, tick
from tests.results_fixture import case


def test_only_what_varies_is_in_a_name() -> None:
    points = [case(tile=t, precision=p) for t in ("8x8", "64x16") for p in ("fp32", "fp16_storage")]
    names = Names({p.case_id: p for p in points})
    assert [names.short(p.case_id) for p in points[:2]] == [
        f"{points[0].kernel} fp32 8x8",
        f"{points[0].kernel} fp16_storage 8x8",
    ]
    (shared,) = names.shared
    assert "seq=512" in shared.text.split(" ")
    assert "tile" not in shared.text
    assert names.full(points[0].case_id).split(" ")[0] == points[0].kernel
    assert {"tile=8x8", "precision=fp32", "seq=512", "seed=1"} <= set(
        names.full(points[0].case_id).split(" ")
    )


def test_what_is_equal_to_another_axis_everywhere_is_said_once() -> None:
    points = [case(seq=s, kv_seq=s) for s in (512, 2048)]
    names = Names({p.case_id: p for p in points})
    assert names.short(points[1].case_id) == "attention_flash kv_seq=2048"
    assert "seq=kv_seq" in names.shared[0].text.split(" ")


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ([{"layout": "row", "hint": "highp"}, {"layout": "column", "hint": "mediump"}], "row highp"),
        ([{"a": "outer", "b": "inner"}, {"a": "inner", "b": "outer"}], "a=outer b=inner"),
        ([{"mask": "none"}, {"mask": "causal"}], "mask=none"),
        ([{"on": True}, {"on": False}], "on=true"),
        ([{"rows": 1}, {"rows": 4}], "rows=1"),
    ],
)
def test_words_stand_alone_where_nobody_asks_of_what(axes: list[dict[str, Any]], expected: str) -> None:
    points = [case(**a) for a in axes]
    names = Names({p.case_id: p for p in points})
    assert names.short(points[0].case_id) == f"{points[0].kernel} {expected}"


def test_kernels_share_their_own_axes_and_unknown_cases_have_their_id() -> None:
    points = [case("attention_flash", tile="8x8"), case("scale", vector=1), case("scale", vector=4)]
    names = Names({p.case_id: p for p in points})
    assert names.short(points[0].case_id) == "attention_flash"
    assert names.short(points[2].case_id) == "scale vector=4"
    assert names.short("0123abcd") == names.full("0123abcd") == "0123abcd"
    assert names.kernel("0123abcd") == ""
    assert [s.kernel for s in names.shared] == ["attention_flash", "scale"]
    assert isinstance(names.shared[0], Shared)


@pytest.mark.parametrize(
    ("run", "short", "long"),
    [
        ("20261201T010000Z-nightly-a1b2", "1 Dec", "1 Dec 2026"),
        ("20261122-010000-2222", "22 Nov", "22 Nov 2026"),
        ("20261322T010000Z-x", "20261322T010", "20261322T010000Z-x"),
        ("release candidate one", "release cand", "release candidate one"),
        ("", "", ""),
    ],
)
def test_a_run_is_called_by_its_night(run: str, short: str, long: str) -> None:
    assert night(run) == short
    assert long_night(run) == long


def test_sentences_have_dates_for_the_runs_that_are_known() -> None:
    runs = ["20261122T010000Z-nightly", "20261122T010000Z-nightly-2", "odd"]
    text = "slower since 20261122T010000Z-nightly-2, not odd 20261123T010000Z-nightly"
    assert dated(text, runs) == "slower since 22 Nov, not odd 20261123T010000Z-nightly"
    assert dated(text, []) == text


def test_changes_in_words() -> None:
    assert change(0.05) == "5.1 % slower"
    assert change(-0.05) == "4.9 % faster"
    assert change(float("nan")) == "–"
    assert change(1e300) == change(50.0)
    assert error_change(2.0) == "NMSE ×100"
    assert error_change(5.32) == "NMSE ×208930"
    assert error_change(0.0) == error_change(float("inf") * 0) == ""
    assert tick(0.0) == "0 %"
    assert tick(0.18232) == "+20 %"

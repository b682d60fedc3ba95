"""Findings with one cause are one line."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.speed.causes import Cause
from orchestrator.analysis.speed.groups import Judged, groups

PRECISIONS, TILES, KERNELS = (
    ("fp32", "fp16_storage", "fp16"),
    ("8x8", "16x16", "32x16"),
    ("flash", "naive", "sgemm"),
)


def farm(*moved: tuple[str, ...], soc: str = "SM8650", effect: float = 0.06) -> list[Judged]:
    """All points of three kernels; a driver slowed those with all words of any of ``moved``."""
    items: list[Judged] = []
    for words in product(KERNELS, PRECISIONS, TILES):
        kernel, precision, tile = words
        shows = any(set(m) <= set(words) for m in moved)
        items.append(
            Judged(
                soc=soc,
                case_id="-".join(words),
                kernel=kernel,
                axes={"precision": precision, "tile": tile, "causal": False},
                effect=effect if shows else 0.001,
                cause=Cause.DRIVER if shows else None,
                since="driver 744" if shows else "",
            )
        )
    return items


def titles(items: list[Judged]) -> list[str]:
    return [g.title for g in groups(items)]


def test_all_variants_of_one_precision_are_one_group() -> None:
    (group,) = groups(farm(("fp16_storage",)))
    assert group.title == "precision=fp16_storage on SM8650 since driver 744"
    assert (len(group.case_ids), group.named, group.slower) == (9, 9, True)
    assert group.effect == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ([()], ["all variants on SM8650 since driver 744"]),
        ([("flash",)], ["kernel=flash on SM8650 since driver 744"]),
        ([("flash", "fp16")], ["kernel=flash precision=fp16 on SM8650 since driver 744"]),
        (
            [("flash",), ("8x8", "fp16")],
            ["kernel=flash on SM8650 since driver 744", "precision=fp16 tile=8x8 on SM8650 since driver 744"],
        ),
        ([("flash", "fp16", "8x8")], ["case=flash-fp16-8x8 on SM8650 since driver 744"]),
        ([("none",)], []),
    ],
    ids=["all", "kernel", "two terms", "two groups", "one", "nothing"],
)
def test_groups_are_the_shortest_words_for_what_moved(
    moved: list[tuple[str, ...]], expected: list[str]
) -> None:
    assert titles(farm(*moved)) == expected


def test_a_case_that_the_test_missed_does_not_split_a_group() -> None:
    items = farm(("fp16_storage",))
    missed = next(i for i, item in enumerate(items) if item.cause)
    items[missed] = farm(("none",))[missed]
    (group,) = groups(items)
    assert (group.title, len(group.case_ids), group.named) == (
        "precision=fp16_storage on SM8650 since driver 744",
        8,
        9,
    )


def test_words_that_many_unmoved_cases_share_explain_nothing() -> None:
    """One slow tile of each kernel and precision is not "all flash"."""
    assert titles(farm(("flash", "8x8"), ("naive", "16x16"))) == [
        "kernel=flash tile=8x8 on SM8650 since driver 744",
        "kernel=naive tile=16x16 on SM8650 since driver 744",
    ]


def test_slower_and_faster_and_socs_are_apart() -> None:
    items = farm(("flash",)) + farm(("flash",), soc="G710", effect=-0.06)
    found = groups(items)
    assert {(g.soc, g.slower, len(g.case_ids)) for g in found} == {("SM8650", True, 9), ("G710", False, 9)}


@given(st.permutations(range(27)), st.sets(st.integers(0, 26)))
def test_every_finding_is_in_one_group_whatever_the_order(order: list[int], moved: set[int]) -> None:
    still, all_moved = farm(("none",)), farm(())
    items = [all_moved[i] if i in moved else still[i] for i in range(27)]
    found = groups(items)
    assert sorted(c for g in found for c in g.case_ids) == sorted(items[i].case_id for i in moved)
    assert groups([items[i] for i in order]) == found

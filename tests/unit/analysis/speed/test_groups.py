"""Findings with one cause are one line."""

from dataclasses import replace
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


def farm(
    *moved: tuple[str, ...], soc: str = "SM8650", effect: float = 0.06, cause: Cause = Cause.DRIVER
) -> list[Judged]:
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
                op="attention" if kernel in ("flash", "naive") else "gemm",
                axes={"precision": precision, "tile": tile, "causal": False},
                effect=effect if shows else 0.001,
                cause=cause if shows else None,
                since="night 18" if shows else "",
            )
        )
    return items


def titles(items: list[Judged]) -> list[str]:
    return [g.title for g in groups(items)]


def test_all_variants_of_one_precision_are_one_group() -> None:
    (group,) = groups(farm(("fp16_storage",)))
    assert group.title == "precision=fp16_storage"
    assert (len(group.members), group.named, group.slower) == (9, 9, True)
    assert group.effect == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ([()], ["all variants"]),
        ([("flash",)], ["flash"]),
        ([("flash",), ("naive",)], ["op=attention"]),
        ([("flash", "fp16")], ["flash precision=fp16"]),
        (
            [("flash",), ("8x8", "fp16")],
            ["flash", "precision=fp16 tile=8x8"],
        ),
        ([("flash", "fp16", "8x8")], ["case=flash-fp16-8x8"]),
        ([("none",)], []),
    ],
    ids=["all", "kernel", "two kernels", "two terms", "two groups", "one", "nothing"],
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
    assert (group.title, len(group.members), group.named) == (
        "precision=fp16_storage",
        8,
        9,
    )


def test_words_that_many_unmoved_cases_share_explain_nothing() -> None:
    """One slow tile of each kernel and precision is not "all flash"."""
    assert titles(farm(("flash", "8x8"), ("naive", "16x16"))) == [
        "flash tile=8x8",
        "naive tile=16x16",
    ]


def test_slower_and_faster_and_socs_are_apart() -> None:
    items = farm(("flash",)) + farm(("flash",), soc="G710", effect=-0.06)
    found = groups(items)
    assert {(g.socs, g.slower, len(g.members)) for g in found} == {
        (("SM8650",), True, 9),
        (("G710",), False, 9),
    }


def test_new_code_is_one_group_on_all_socs_that_show_it() -> None:
    socs = ("A", "B", "C")
    items = [i for soc in socs for i in farm(("flash", "8x8"), soc=soc, cause=Cause.CODE)]
    items += farm(("none",), soc="D")
    (group,) = groups(items)
    assert (group.title, group.socs, len(group.members), group.named) == ("flash tile=8x8", socs, 9, 9)


def test_new_code_that_one_soc_suffers_from_is_a_group_of_that_soc() -> None:
    items = farm(("flash",), soc="A", cause=Cause.CODE)
    items += [i for soc in "CDE" for i in farm(("none",), soc=soc)]
    items += [replace(i, since="night 20") for i in farm(("naive",), soc="B", cause=Cause.CODE)]
    assert [(g.title, g.socs, g.since) for g in groups(items)] == [
        ("flash", ("A",), "night 18"),
        ("naive", ("B",), "night 20"),
    ]


def test_a_driver_is_a_group_of_each_soc() -> None:
    items = farm(("fp16",), soc="A") + farm(("fp16",), soc="B")
    assert [(g.title, g.socs) for g in groups(items)] == [
        ("precision=fp16", ("A",)),
        ("precision=fp16", ("B",)),
    ]


def test_of_words_that_name_the_same_cases_the_usual_one_is_said() -> None:
    """All blurs have columns=1; nobody calls them so."""
    blurs = [
        replace(i, op="blur", axes={**i.axes, "columns": 1}) for i in farm(("naive",)) if i.kernel == "naive"
    ]
    others = [i for i in farm(("none",)) if i.kernel != "naive"]
    assert titles(blurs + others) == ["naive"]
    two = [replace(b, kernel=f"blur{n % 2}") for n, b in enumerate(blurs)]
    assert titles(two + others) == ["op=blur"]


def test_a_value_that_only_one_kernel_has_is_said_with_the_kernel() -> None:
    items = [
        replace(i, axes={**i.axes, "rows": 2}) if i.kernel == "flash" else i for i in farm(("flash", "8x8"))
    ]
    others = [replace(i, axes={**i.axes, "tile": "4x4"}) if i.kernel != "flash" else i for i in items]
    (group,) = groups(others)
    assert (group.title, group.kernel) == ("tile=8x8 of flash", "flash")


def test_cases_that_moved_again_for_another_reason_take_nothing_from_a_group() -> None:
    """A driver slowed nine; new code then moved two of them further."""
    items = [
        replace(i, cause=Cause.CODE, since="night 22")
        if i.cause and i.kernel == "flash" and "8x8" in i.case_id
        else i
        for i in farm(("fp16",), ("fp16_storage",))
    ]
    found = groups(items)
    assert [(g.title, g.cause, len(g.members), g.named) for g in found if g.cause is Cause.DRIVER] == [
        ("precision=fp16", Cause.DRIVER, 8, 9),
        ("precision=fp16_storage", Cause.DRIVER, 8, 9),
    ]


@given(st.permutations(range(27)), st.sets(st.integers(0, 26)))
def test_every_finding_is_in_one_group_whatever_the_order(order: list[int], moved: set[int]) -> None:
    still, all_moved = farm(("none",)), farm(())
    items = [all_moved[i] if i in moved else still[i] for i in range(27)]
    found = groups(items)
    assert sorted(c for g in found for _, c in g.members) == sorted(items[i].case_id for i in moved)
    assert groups([items[i] for i in order]) == found

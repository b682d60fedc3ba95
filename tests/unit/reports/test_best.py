"""What the page of best variants says: marks, what is clear, what is on the front, which notes."""

from dataclasses import replace

import pytest

from orchestrator.domain.best import Best, Margin, Pick, SocBest, WorkloadBest
from reports.best.build import build_best
from reports.best.model import BestPage
from reports.build import build_report
from reports.html import render_best, render_index
from reports.model import ReportModel
from tests.results_fixture import TODAY
from tests.unit.reports.best_sample import RUNS, best, variant, workload
from tests.unit.reports.pages import Page
from tests.unit.reports.sample import sample

NAN = float("nan")


def page_of(*workloads: WorkloadBest, **changes: object) -> BestPage:
    (soc, _) = best().socs
    found = replace(best(), socs=[replace(soc, workloads=list(workloads), **changes)])
    return build_best(found, {}, {soc.soc: "soc-SM8650.html"}, {}, {}).pages[0]


def picked(
    log_ratio: float = 0.05,
    low: float = 0.04,
    *,
    nights: int = 14,
    phones: int = 2,
    tied: bool = False,
) -> WorkloadBest:
    made = workload()
    shares = made.picks[0].phones[:phones]
    margin = Margin("bbbb", log_ratio, low, log_ratio + 0.01, low, 20)
    pick = Pick("any", "aaaa", "aaaa", margin, ["bbbb"] if tied else [], "", shares, nights)
    return replace(made, picks=[pick])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (picked(), "with a clear winner"),
        (picked(nights=6), "not sure yet"),
        (picked(phones=1), "not sure yet"),
        (picked(low=-0.01), "not sure yet"),
        (picked(low=NAN), "not sure yet"),
        (picked(nights=6, tied=True), "tied"),
    ],
)
def test_a_winner_is_clear_where_nights_phones_and_the_interval_say_so(
    found: WorkloadBest, said: str
) -> None:
    assert page_of(found).sentence == f"SM8650: 1 workload, 1 {said}; 2 phones, 2 nights."


def test_a_mark_stands_for_one_precision_on_all_charts() -> None:
    """The fastest precision of one workload is not that of the next."""
    first = workload()
    turned = [replace(v, axes=v.axes | {"precision": p}) for v, p in zip(
        first.variants, ("fp32", "fp16_storage", "fp32"), strict=True)]  # fmt: skip
    page = page_of(first, replace(first, variants=turned))
    legends = [{precision: shape for shape, precision in part.legend} for part in page.parts]
    assert legends[0] == legends[1]
    assert len(set(legends[0].values())) == 2
    assert [{r.variant.precision: r.shape for r in part.rows} for part in page.parts] == legends


def test_what_is_shipped_is_listed_with_the_front() -> None:
    made = workload()
    off = [replace(v, front=v.case_id == "aaaa") for v in made.variants]
    (part,) = page_of(replace(made, variants=off)).parts
    assert [r.variant.case_id for r in part.front] == ["aaaa", "bbbb"]
    assert part.beside
    assert not page_of(made).parts[0].beside
    shown = Page(html(replace(made, variants=off)))
    table = next(t for t in shown.all("table") if "On the front" in t.text)
    assert "On the front, and what is shipped" in table.text
    assert "(shipped, not on the front)" in table.text


def html(*workloads: WorkloadBest) -> str:
    return render_best(model(), page_of(*workloads))


def model() -> ReportModel:
    return build_report(sample(), None, TODAY, best=best())


def test_driver_notes_are_of_the_soc_and_name_their_api() -> None:
    page = page_of(workload(), driver_warnings={"gles": ["the gles driver of x changed"]}, warnings=["new"])
    assert page.notes == ("new", "the gles driver of x changed")


def test_the_index_names_a_soc_once() -> None:
    page = Page(render_index(model()))
    table = next(t for t in page.all("table") if "What to ship on each SoC" in t.text)
    assert [td.text for td in table.all("td")][:2] == [
        "1 workload, 1 tied; 2 phones, 2 nights.",
        "no warnings",
    ]


def test_no_variant_is_said() -> None:
    soc = SocBest("SM1", "V", workloads=[WorkloadBest("scale", {})])
    found = Best("r", "nightly", RUNS, [], "0", socs=[soc])
    assert build_best(found, {}, {"SM1": "soc-SM1.html"}, {}, {}).pages[0].sentence == (
        "SM1: no variant may be shipped yet."
    )


def test_the_pick_is_in_the_chart_however_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.best.chart.MAX_POINTS", 1)
    made = workload()
    slow = [replace(v, front=v.case_id == "aaaa") for v in made.variants]
    (part,) = page_of(replace(made, variants=[*slow, variant("eeee", 1.0, 1e-3)])).parts
    assert 'class="chosen"' in part.chart

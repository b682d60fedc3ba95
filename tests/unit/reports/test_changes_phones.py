"""Phones in sentences of changes: by one name, on the page of their SoC, and virtual ones called so."""

from dataclasses import replace

import pytest

from orchestrator.domain.finding import DeviceNight
from reports.changes.words import readable
from reports.html import render_changes
from tests.unit.reports.one_soc import WHOLE, group, night, pages
from tests.unit.reports.sample_nights import NIGHTS

PHONES = {"sm6375-2": "Phone E 2", "sm6375-20": "Phone E 20", "bare": "bare", "1.2.3.4:5555": "Desk"}


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("all 39 variants on sm6375-2 since 26 Nov", "all 39 variants on Phone E 2 (sm6375-2) since 26 Nov"),
        ("sm6375-2: offline", "Phone E 2 (sm6375-2): offline"),
        ("sm6375-20, not bare", "Phone E 20 (sm6375-20), not bare"),
        ("1.2.3.4:5555: offline", "Desk (1.2.3.4:5555): offline"),
        ("Phone E 2 (sm6375-2) alone", "Phone E 2 (sm6375-2) alone"),
        ("xsm6375-2 sm6375-2.log a/sm6375-2", "xsm6375-2 sm6375-2.log a/sm6375-2"),
        ("in turns different: +8.2% in 16 pairs", "in turns different: +8.2 % in 16 pairs"),
        ("-2.1% at first; 12% of x", "−2.1 % at first; 12 % of x"),
        ("100%25 and a-3% and ²%", "100%25 and a-3 % and ²%"),
        ("night 2026-11-09-nightly: the host was off", "night of 9 Nov: the host was off"),
        (f"since {NIGHTS[0]}", "since 17 Nov"),
    ],
)
def test_a_sentence_calls_phones_and_nights_as_the_rest_of_the_page_does(said: str, read: str) -> None:
    assert readable(said, NIGHTS, PHONES) == read


def test_a_card_and_the_page_say_name_and_id_of_a_phone() -> None:
    said = "all 4 variants on adb-s24-1 since 27 Nov: 12.7 % slower together (this phone alone)"
    soc = pages(night([replace(WHOLE, device_id="adb-s24-1")], [group(said, "whole")]))["SM8650"]
    assert soc.cards[0].title == "all 4 variants on Galaxy S24 (1) (adb-s24-1)"
    assert "Galaxy S24 (1) (adb-s24-1)" in soc.sentence


def test_an_absent_phone_of_another_soc_stands_on_its_own_page_only() -> None:
    gone = DeviceNight("mt-3", "MT6989", verdict="missing")
    said = (
        "mt-3: offline",
        "adb-s24-1: held",
        "night 2026-11-23-nightly: off",
        "DEGRADED: x",
        "who: offline",
    )
    model = night([], [], not_measured=said, devices=(gone,))
    assert model.changes is not None
    everywhere = ("night of 23 Nov: off", "DEGRADED: x", "who: offline")
    here = pages(model)
    assert here["MT6989"].not_measured == ("mt-3: offline", *everywhere)
    assert here["SM8650"].not_measured == ("Galaxy S24 (1) (adb-s24-1): held", *everywhere)
    assert len(model.changes.not_measured) == len(said)
    assert "mt-3" not in render_changes(model, here["SM8650"])


def test_a_page_says_first_that_its_phones_are_virtual() -> None:
    model = night([], [], virtual=True)
    html = render_changes(model, pages(model)["SM8650"])
    assert html.index("<h1") < html.index("virtual phone") < html.index('id="groups"')
    real = night([], [])
    assert "virtual phone" not in render_changes(real, pages(real)["SM8650"])

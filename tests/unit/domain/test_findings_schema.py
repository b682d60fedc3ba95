"""findings.json and confirmation.json: schemas that tools can check, and strict JSON whatever the numbers."""

import json
import math
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any, NoReturn

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.confirmation import Confirmation, Duel, Wanted
from orchestrator.domain.finding import (
    DeviceNight,
    Finding,
    Findings,
    Group,
    PhoneChange,
    SeriesRow,
    Triage,
)
from orchestrator.domain.wire import adapter, from_json, to_json
from tests.unit.domain.messages import TRIAL
from tests.unit.reports.sample_findings import sample_findings

NAN, INF = math.nan, math.inf
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
SAMPLE = sample_findings().findings
DUEL = Duel(
    Wanted("phone-1", "c1", "turns", "a", "b", "run"), "unknown", NAN, -INF, INF, NAN, 8, 0, [1], [NAN]
)
CONFIRMATION = Confirmation("run", [DUEL], [TRIAL], 3)


def strictly(text: str) -> Any:
    """JSON as its standard has it: NaN, Infinity and -Infinity are no numbers of it."""

    def refuse(literal: str) -> NoReturn:
        raise AssertionError(f"{literal} is no JSON")

    return json.loads(text, parse_constant=refuse)


@cache
def schema(kind: type) -> dict[str, Any]:
    return adapter(kind).json_schema(mode="serialization")


def check(value: object) -> Any:
    document = strictly(to_json(value))
    jsonschema.validate(document, schema(type(value)), cls=jsonschema.Draft202012Validator)
    return document


def test_the_schemas_are_schemas_and_accept_what_we_write() -> None:
    for value in (SAMPLE, CONFIRMATION):
        assert check(value)["format"] == 1


@settings(max_examples=40)
@given(numbers=st.lists(NUMBERS, min_size=9, max_size=9))
def test_g4_01_no_number_makes_a_literal_that_json_does_not_have(numbers: list[float]) -> None:
    a, b, c, d, e, f, g, h, i = numbers
    phone = PhoneChange("phone-1", a, b, c, 7)
    finding = Finding(
        "f1", "speed", "regressed", "SM8650", "c1", effect=d, low=e, high=f, q=g, phones=[phone]
    )
    value = Findings(
        "run",
        "nightly",
        ["run"],
        "Words.",
        {"regressed": 1},
        groups=[Group("g1", "words", "code", "regressed", "SM8650", effect=i, findings=["f1"])],
        findings=[replace(finding, triage=Triage("acknowledged"))],
        series=[SeriesRow("SM8650", "c1", "regressed", "", a, b, c, 2, numbers)],
        devices=[DeviceNight("phone-1", "SM8650", numbers, numbers)],
        method={"q": h},
    )
    check(value)
    again = from_json(Findings, to_json(value), "here")
    assert to_json(again) == to_json(value)
    assert repr(again.series[0].history) == repr(numbers)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("findings", 0, "kind"), "looks"),
        (("findings", 0, "what"), "slower"),
        (("findings", 0, "effect"), "much"),
        (("series", 0, "verdict"), "pass"),
        (("groups", 0, "cause"), "weather"),
        (("counts", "regressed"), "many"),
        (("run_id",), 7),
    ],
)
def test_the_schema_refuses_what_we_never_write(path: tuple[str | int, ...], value: object) -> None:
    document = deepcopy(check(SAMPLE))
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema(Findings), cls=jsonschema.Draft202012Validator)

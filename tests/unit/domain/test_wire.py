"""Versioned JSON: what goes in comes out, whatever the numbers; what is wrong says where."""

import json
import math
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import WireError
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, CheckJob
from orchestrator.domain.trial import Element, Trial
from orchestrator.domain.wire import (
    MAX_MESSAGE_BYTES,
    WIRE_VERSION,
    decode,
    encode,
    from_json,
    pack,
    to_json,
    unpack,
    unpack_one,
)
from tests.unit.domain.messages import BATCH, JOB, MESSAGES, TRIAL
from tests.unit.domain.strategies import numbers, quick

every_message = pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)


def strict(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(literal: str) -> NoReturn:
        raise AssertionError(f"{literal} is not JSON")

    return json.loads(text, parse_constant=refuse)


def same(a: object, b: object) -> bool:
    """Equal, with NaN equal to NaN."""
    return repr(a) == repr(b)


@every_message
def test_every_message_survives_as_text(message: object) -> None:
    text = to_json(message)
    strict(text)
    assert same(from_json(type(message), text, "test"), message)


@every_message
def test_every_message_survives_as_a_celery_message(message: object) -> None:
    text = json.dumps(encode(message), allow_nan=False)
    assert same(decode(type(message), strict(text), "test"), message)


@every_message
def test_every_message_survives_as_a_packed_text(message: object) -> None:
    text = pack(message)
    strict(text)
    assert same(unpack(type(message), text, "test"), message)
    assert same(unpack_one([Progress, type(message)], text.encode(), "test"), message)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "not the text of a Tilefarm message"),
        ({"wire": 1}, "not the text of a Tilefarm message"),
        ("", "no JSON"),
        (b"\xff{}", "no JSON"),
        ("[" * 100_000, "no JSON: recursion limit"),
        ('{"a":' * 100_000, "no JSON: recursion limit"),
        ('{"wire": ' + "9" * 100_000 + "}", "no JSON"),
        ('{"wire": NaN}', "no JSON"),
        ('{"wire": true, "kind": "Progress"}', "wire version True"),
        ('{"wire": 2, "kind": "Progress"}', "wire version 2, and this Tilefarm reads version 1: upgrade"),
        ('{"wire": "' + "9" * 1000 + '"}', f"wire version {'9' * 40}…, and"),
        ('{"wire": 1, "kind": "Trial"}', "a Trial of wire version 1, expected a Progress"),
        ('{"wire": 1, "kind": "' + "T" * 1000 + '"}', f"a {'T' * 40}… of wire version 1"),
        (" " * (MAX_MESSAGE_BYTES + 1), f"a message of its kind has at most {MAX_MESSAGE_BYTES}"),
    ],
)
def test_a_text_that_is_no_message_says_where_and_what(text: object, says: str) -> None:
    with pytest.raises(WireError) as caught:
        unpack(Progress, text, "events 1-0")
    assert str(caught.value).startswith("events 1-0: ")
    assert says in str(caught.value)


def test_what_nobody_would_read_is_not_written() -> None:
    with pytest.raises(WireError, match="at most 100"):
        pack(TRIAL, at_most=100)
    with pytest.raises(WireError, match="Progress: cannot be written as JSON"):
        pack(Progress("phone", "batch", detail="\ud800"))


@quick
@given(numbers, numbers)
def test_any_number_survives(got: float, ref: float) -> None:
    element = Element(7, got, ref)
    assert same(from_json(Element, to_json(element), "test"), element)


def test_whole_numbers_and_numpy_numbers_are_numbers() -> None:
    """Kernels compute their tolerances with numpy, or write 0."""
    check = CheckJob("o", "e" * 64, 0, np.float64(0.1), np.float64("nan"))
    assert same(from_json(CheckJob, to_json(check), "test"), CheckJob("o", "e" * 64, 0.0, 0.1, math.nan))
    assert json.dumps(encode(check), allow_nan=False)


def test_numbers_that_json_lacks_are_words() -> None:
    body = strict(to_json(TRIAL))
    first = body["outputs"][0]
    assert (first["max_abs"], first["nmse"], first["max_rel"]) == ("nan", "inf", "-inf")
    assert first["worst"] == {"index": 9, "got": "nan", "ref": "-inf"}


def test_a_message_in_old_words_is_still_read() -> None:
    """Optional fields may be missing: an older worker or an older run wrote less."""
    body = strict(to_json(JOB))
    for optional in ("deadline_ms", "warmup", "warmup_ms", "repeats", "replays"):
        del body[optional]
    assert from_json(type(JOB), json.dumps(body), "test").repeats == 10


@pytest.mark.parametrize(
    ("envelope", "says"),
    [
        (None, "not a Tilefarm message"),
        ([1], "not a Tilefarm message"),
        ("{}", "not a Tilefarm message"),
        ({}, "not a Tilefarm message"),
        (
            {"wire": WIRE_VERSION + 1, "kind": "Batch", "body": {}},
            f"this Tilefarm reads version {WIRE_VERSION}",
        ),
        ({"wire": str(WIRE_VERSION), "kind": "Batch", "body": {}}, "wire version 1"),
        ({"wire": WIRE_VERSION, "kind": "Trial", "body": {}}, "a Trial of wire version 1, expected a Batch"),
        ({"wire": WIRE_VERSION, "body": {}}, "a None of wire version 1, expected a Batch"),
        ({"wire": WIRE_VERSION, "kind": "Batch", "body": {}}, "run_id"),
        ({"wire": WIRE_VERSION, "kind": "Batch"}, "Batch"),
    ],
)
def test_a_wrong_envelope_says_where_and_what(envelope: object, says: str) -> None:
    with pytest.raises(WireError) as caught:
        decode(Batch, envelope, "queue device.x")
    assert str(caught.value).startswith("queue device.x: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cases", 0, "checks", 0, "atol"), "much"),
        (("cases", 0, "passes", 0, "grid"), [1, 2]),
        (("cases", 0, "buffers", 1, "role"), "inn"),
        (("cases", 0, "attempt"), 1.5),
        (("blob_store",), None),
    ],
)
def test_a_wrong_shape_names_the_field(path: tuple[str | int, ...], value: object) -> None:
    envelope = encode(BATCH)
    place: Any = envelope["body"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    dotted = ".".join(str(step) for step in path)
    with pytest.raises(WireError, match=rf"here: {dotted}"):
        decode(Batch, envelope, "here")
    with pytest.raises(WireError, match=rf"here: {dotted}"):
        from_json(Batch, json.dumps(envelope["body"]), "here")


def test_a_wrong_message_is_not_repeated_whole_in_the_error() -> None:
    envelope = encode(BATCH)
    envelope["body"]["cases"] = "x" * 1_000_000
    with pytest.raises(WireError) as caught:
        decode(Batch, envelope, "here")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"device_id": "d"', b"\xff\xfe{}", "{" * 5000])
def test_what_is_not_json_is_a_wire_error(text: str | bytes) -> None:
    with pytest.raises(WireError, match=r"^trials\.jsonl:3: "):
        from_json(Progress, text, "trials.jsonl:3")


@quick
@given(st.integers(0, len(to_json(TRIAL)) - 1))
def test_a_message_cut_anywhere_is_never_half_read(cut: int) -> None:
    with pytest.raises(WireError):
        from_json(Trial, to_json(TRIAL)[:cut], "cut")


def test_a_number_must_be_one() -> None:
    with pytest.raises(WireError):
        from_json(Element, '{"index": 1, "got": "NotANumber", "ref": 0}', "test")
    assert math.isnan(from_json(Element, '{"index": 1, "got": "nan", "ref": 0}', "test").got)

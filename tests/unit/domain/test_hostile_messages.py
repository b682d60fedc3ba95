"""Whatever lies in Redis or in a run's files is a value or a WireError; what we write is read again."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.batch_check import check_batch
from orchestrator.domain.device_check import presentable, read_hold, read_registration, read_report
from orchestrator.domain.errors import TilefarmError, WireError
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.health import Condition, Failed, Vitals, Vouched
from orchestrator.domain.job import Batch
from orchestrator.domain.lease import Hold
from orchestrator.domain.limits import printable
from orchestrator.domain.run_state import RunState, Target
from orchestrator.domain.submission import Service, Submission
from orchestrator.domain.trial import Trial
from orchestrator.domain.wire import from_json, pack, to_json, unpack, unpack_one
from orchestrator.execution.run_folder import Manifest, load_results
from orchestrator.storage.submissions import read_submission
from tests.unit.domain.messages import BATCH, DEVICE, JOB, RESULTS, TRIAL
from tests.unit.domain.strategies import quick

SINCE = "2026-12-01T01:00:00+00:00"
RUN = "20261201T010000Z-smoke-abcd"
VITALS = Vitals(1.0, 80, True, 30.5, 1 << 30, "none", "awake")
REGISTRATION = Registration(DEVICE, "w1", SINCE, 4711)
REPORT = AgentReport(
    "shelf", 7, SINCE, "adb", [PhoneReport("R58", "p-1", Condition.HOT, "36 °C", SINCE, "", True, VITALS)]
)
HOLD = Hold("p-1", "anna@desk", "new battery", SINCE, "R58", "shelf")
STATE = RunState(
    RUN, "smoke", "anna", "ondemand", "running", SINCE, SINCE, "ci", [Target("", "SM8650", "x", 7)]
)
SUBMISSION = Submission(RUN, "smoke", "anna", "nightly", SINCE, "ci", "s3://b/x", "a" * 64)
NEWS = (Vitals, Failed, Vouched)

Reader = Callable[[bytes], object]
READERS: dict[str, tuple[object, Reader]] = {
    "batch": (BATCH, lambda text: check_batch(unpack(Batch, text, "here"), "here")),
    "trial": (TRIAL, lambda text: unpack(Trial, text, "here")),
    "progress": (Progress("p", "started", "c"), lambda text: unpack(Progress, text, "here")),
    "registration": (REGISTRATION, lambda text: read_registration(text, "here")),
    "report": (REPORT, lambda text: read_report(text, "here")),
    "hold": (HOLD, lambda text: read_hold(text, "here")),
    "state": (STATE, lambda text: unpack(RunState, text, "here")),
    "news": (VITALS, lambda text: unpack_one(NEWS, text, "here")),
    "service": (Service("orchestrator", "ci", 7, SINCE), lambda text: unpack(Service, text, "here")),
}
FILES: dict[str, tuple[object, type[object]]] = {
    "manifest.json": (Manifest(RESULTS, {"local-1": [JOB]}, "file:///blobs", "nightly"), Manifest),
    "trials.jsonl": (TRIAL, Trial),
}
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
every_reader = pytest.mark.parametrize("kind", sorted(READERS))


def problem(read: Reader, text: bytes) -> str:
    """Empty, or why it is refused; any other error is the test's."""
    try:
        read(text)
    except WireError as e:
        return str(e)
    return ""


def mutated(data: st.DataObject, message: object) -> bytes:
    """A field, however deep, that says something else; or bytes that are other bytes."""
    text = message if isinstance(message, str) else json.dumps(message)
    if data.draw(st.booleans()):
        raw = text.encode()
        at = data.draw(st.integers(0, len(raw)))
        return raw[:at] + data.draw(st.binary(max_size=6)) + raw[data.draw(st.integers(at, len(raw))) :]
    found: Any = [json.loads(text)]
    place, key = found, 0
    while (keys := _keys(place[key])) and data.draw(st.integers(0, 3)):
        place, key = place[key], data.draw(st.sampled_from(keys))
    place[key] = data.draw(json_values)
    return json.dumps(found[0]).encode()


def _keys(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return sorted(cast("dict[str, object]", value))
    return list(range(len(cast("list[object]", value)))) if isinstance(value, list) else []


@every_reader
def test_what_we_write_is_read(kind: str) -> None:
    value, read = READERS[kind]
    assert problem(read, pack(value).encode()) == ""


@every_reader
@quick
@given(st.data())
def test_a_message_that_says_something_else_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    value, read = READERS[kind]
    why = problem(read, mutated(data, pack(value)))
    assert why == "" or why.startswith("here: ")
    assert len(why) < 600


@every_reader
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{" * 50_000,
        b"[" * 50_000,
        b'{"wire":1,"wire":2}',
        b'"\\ud800"',
        b"1" * 9000,
    ],
)
def test_what_is_no_message_is_refused_by_all(kind: str, text: bytes) -> None:
    assert problem(READERS[kind][1], text).startswith("here: ")


@every_reader
@quick
@given(st.integers(0, 10**6))
def test_a_message_cut_anywhere_is_refused(kind: str, cut: int) -> None:
    value, read = READERS[kind]
    text = pack(value).encode()
    assert problem(read, text[: cut % len(text)])


@quick
@given(st.data())
def test_a_submission_is_read_or_refused(data: st.DataObject) -> None:
    assert read_submission(RUN.encode(), pack(SUBMISSION).encode()) == SUBMISSION
    found = read_submission(
        data.draw(st.sampled_from([RUN.encode(), b"\xff/.."])), mutated(data, pack(SUBMISSION))
    )
    assert isinstance(found, WireError) or found.run_id == RUN


@pytest.mark.parametrize("name", sorted(FILES))
@quick
@given(st.data())
def test_a_file_of_a_run_is_read_or_refused(name: str, data: st.DataObject) -> None:
    value, cls = FILES[name]
    why = problem(lambda text: from_json(cls, text, "here"), mutated(data, to_json(value)))
    assert why == "" or why.startswith("here: ")


@settings(quick, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_results_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    file = tmp_path / "results.json"
    file.write_bytes(mutated(data, to_json(RESULTS)))
    with suppress(TilefarmError):
        load_results(file)


@pytest.mark.parametrize(
    "changed",
    [
        replace(REGISTRATION, record=replace(DEVICE, device_id="a/b")),
        replace(REGISTRATION, record=replace(DEVICE, device_id="A:*")),
        replace(REGISTRATION, record=replace(DEVICE, name="x" * 201)),
        replace(REGISTRATION, record=replace(DEVICE, soc=replace(DEVICE.soc, name="x" * 201))),
        replace(REGISTRATION, pid=-1),
        replace(REGISTRATION, pid=1 << 31),
        replace(REGISTRATION, worker_id="a b"),
    ],
)
def test_a_device_that_cannot_be_is_not_served(changed: Registration) -> None:
    assert problem(lambda text: read_registration(text, "here"), pack(changed).encode())


def test_a_phones_words_are_fit_for_people_before_anybody_sees_them() -> None:
    hostile = "\x1b]0;x\x07\n\u202eSM\u2028" + "8" * 5000
    record = presentable(
        replace(
            DEVICE,
            name=hostile,
            os_build=hostile,
            soc=replace(DEVICE.soc, name=hostile, vendor=hostile),
            health={hostile: hostile},
        )
    )
    assert (
        problem(
            lambda text: read_registration(text, "here"), pack(replace(REGISTRATION, record=record)).encode()
        )
        == ""
    )
    words = [record.name, record.os_build, record.soc.name, *record.health, *record.health.values()]
    assert all(word == printable(word) for word in words)
    assert record.serial == DEVICE.serial


@given(st.text(st.characters(), max_size=60), st.integers(1, 20))
def test_printable_text_is_short_has_one_line_and_can_be_written(text: str, at_most: int) -> None:
    shown = printable(text, at_most)
    assert len(shown) <= at_most
    assert shown.splitlines() in ([shown], [])
    assert shown.encode().decode() == shown
    assert printable(shown, at_most) == shown

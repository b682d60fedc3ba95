"""Submitted runs in Redis: one of each id, nothing broken is believed, one orchestrator leads."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.errors import WireError
from orchestrator.domain.names import SUBMISSIONS_KEY
from orchestrator.domain.run_state import RunState
from orchestrator.domain.submission import Service, Submission
from orchestrator.domain.wire import pack
from orchestrator.storage.redis_client import RedisClient, connect
from orchestrator.storage.run_states import RunStates
from orchestrator.storage.submissions import Submissions

RUN_ID = "20261201T010203Z-smoke-aaaa"
ONE = Submission(
    RUN_ID, "smoke", "ann@desk", "ondemand", "2026-12-01T01:02:03+00:00", "desk", "memory://b", "a" * 64
)
STATE = RunState(RUN_ID, "smoke", "ann@desk", "ondemand", "submitted", "2026-12-01", "2026-12-01", "desk")


@pytest.fixture
def client(url: str, raw: object) -> Generator[RedisClient]:
    found = connect(url)
    yield found
    found.close()


def test_a_run_is_submitted_once_with_its_state(client: RedisClient) -> None:
    submissions, states = Submissions(client), RunStates(client)
    assert submissions.put(ONE, STATE)
    assert submissions.all() == {RUN_ID: ONE}
    assert states.get(RUN_ID) == STATE
    other = replace(ONE, user="bob@desk")
    assert not submissions.put(other, replace(STATE, user="bob@desk"))
    assert submissions.all() == {RUN_ID: ONE}
    assert submissions.strike_off(RUN_ID)
    assert not submissions.strike_off(RUN_ID)
    assert not submissions.put(ONE, STATE), "its state is still there: it has run"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (RUN_ID.encode(), b"not JSON"),
        (RUN_ID.encode(), b"[" * 100_000),
        (RUN_ID.encode(), pack(ONE).replace('"wire": 1', '"wire": 2').encode()),
        (RUN_ID.encode(), pack(STATE).encode()),
        (RUN_ID.encode(), pack(replace(ONE, run_id=RUN_ID.replace("aaaa", "bbbb"))).encode()),
        (RUN_ID.encode(), pack(replace(ONE, manifest="../../etc/passwd")).encode()),
        (RUN_ID.encode(), pack(replace(ONE, known="A" * 64)).encode()),
        (RUN_ID.encode(), pack(replace(ONE, blob_store="simplecache::sftp://host/b")).encode()),
        (b"../../etc", pack(replace(ONE, run_id="../../etc")).encode()),
        (b".hidden", pack(replace(ONE, run_id=".hidden")).encode()),
        (b"\xff\xfe", pack(ONE).encode()),
    ],
)
def test_what_must_not_be_believed_is_an_error_and_can_be_struck_off(
    client: RedisClient, raw: Any, field: bytes, text: bytes
) -> None:
    raw.hset(SUBMISSIONS_KEY, field, text)
    submissions = Submissions(client)
    ((run_id, found),) = submissions.all().items()
    assert isinstance(found, WireError)
    assert "tilefarm:submissions" in str(found)
    assert submissions.strike_off(run_id)
    assert not submissions.all()


def test_one_orchestrator_leads_until_it_resigns(client: RedisClient) -> None:
    submissions = Submissions(client)
    assert submissions.lead("host-a /out")
    assert submissions.lead("host-a /out")
    assert not submissions.lead("host-b /out")
    submissions.resign("host-b /out")
    assert not submissions.lead("host-b /out")
    submissions.resign("host-a /out")
    assert submissions.lead("host-b /out")


def test_services_say_that_they_live_and_a_broken_one_is_left_out(client: RedisClient, raw: Any) -> None:
    submissions = Submissions(client)
    service = Service("orchestrator", "host-a", 1, "2026-12-01T01:00:00+00:00", "/out")
    submissions.serves(service)
    raw.set("tilefarm:service:orchestrator:x", "?")
    assert submissions.services("orchestrator") == [service]
    assert submissions.services("beat") == []
    submissions.serves_no_more(service)
    assert submissions.services("orchestrator") == []

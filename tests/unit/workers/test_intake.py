"""A message from the queue is a batch, or is refused with a reason before the phone is touched."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import WireError
from orchestrator.domain.job import Batch, PassJob
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import pack
from orchestrator.execution.broker import Broker
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import RedisClient, Script
from tests.unit.domain.strategies import quick
from tests.unit.workers.fake_device import FakeDevice, bench
from tests.unit.workers.jobs import Stock
from tests.unit.workers.told import trials
from workers.intake import taken


@pytest.fixture(scope="module")
def batch() -> Batch:
    stock = Stock(BlobStore("memory://intake"))
    return stock.batch(stock.job("case-1"), stock.job("case-2"), run_id="intake")


def test_a_good_batch_is_taken(batch: Batch, client: RedisClient) -> None:
    assert taken(pack(batch), bench(FakeDevice()), client) == batch


def test_a_batch_that_asks_too_much_ends_as_infra_and_touches_nothing(
    batch: Batch, client: RedisClient, redis_url: str
) -> None:
    phone = FakeDevice()
    huge = replace(batch.cases[0], passes=[PassJob("; reboot", (1, 1, 1), 0, ("x", "o"))], code_hash="$(id)")
    asked = replace(batch, run_id="intake-huge", cases=[huge, batch.cases[1]], planned_for="pool0-x")
    assert taken(pack(asked), bench(phone), client) is None
    found = trials(redis_url, "intake-huge")
    assert [(t.case_id, t.verdict, t.target) for t in found] == [
        ("case-1", Verdict.INFRA, "pool0-x"),
        ("case-2", Verdict.INFRA, "pool0-x"),
    ]
    assert "refused: batch for fake-1: cases.0" in found[0].reason
    assert found[0].code_hash == ""
    assert (phone.pushed, phone.jobs, phone.removed) == ([], [], [])


def test_where_nobody_can_be_told_it_is_dropped(batch: Batch, client: RedisClient, redis_url: str) -> None:
    phone = bench(FakeDevice())
    asked = replace(batch, run_id="intake-case", cases=[replace(batch.cases[0], case_id="../../x")])
    assert taken(pack(asked), phone, client) is None
    assert taken(pack(replace(batch, run_id="../intake")), phone, client) is None
    assert trials(redis_url, "intake-case") == []


@pytest.mark.parametrize(
    ("change", "says"),
    [(('"wire": 1', '"wire": 2'), "upgrade the older side"), (('"blob_store"', '"blobs"'), "blob_store")],
)
def test_a_batch_of_another_version_is_not_waited_for(
    batch: Batch, client: RedisClient, redis_url: str, change: tuple[str, str], says: str
) -> None:
    """The run gives this device up with both versions, and does not wait a quarter of an hour."""
    run_id = f"intake-{len(says)}"
    text = pack(replace(batch, run_id=run_id)).replace(*change)
    assert taken(text, bench(FakeDevice()), client) is None
    broker = Broker(redis_url)
    why = broker.given_up(run_id)["fake-1"]
    broker.close()
    assert "its worker cannot read its work" in why
    assert says in why


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


class _Silent:
    """A Redis that takes everything: here only what is raised counts."""

    def register_script(self, script: str) -> Script:
        del script

        def done(keys: Sequence[str], args: Sequence[str | int | bytes]) -> int:
            del keys, args
            return 1

        return done


@quick
@given(st.one_of(anything, st.text(max_size=60), st.binary(max_size=60)), st.data())
def test_any_message_is_a_batch_or_refused(message: object, data: st.DataObject) -> None:
    client: Any = _Silent()
    assert taken(message, bench(FakeDevice()), client) is None
    text = pack(BASE)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(at, len(text)))
    mutated = text[:at] + data.draw(st.text(max_size=5)) + text[cut:]
    try:
        found = taken(mutated, bench(FakeDevice()), client)
    except WireError:
        raise AssertionError("refused messages are told, not raised") from None
    assert found is None or isinstance(found, Batch)


BASE = Stock(BlobStore("memory://intake")).batch(Stock(BlobStore("memory://intake")).job("case-1"))

"""The cache of blobs on a device: what goes, what stays, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from orchestrator.domain.errors import DeviceLost, InfraError, NoSpace
from orchestrator.domain.verdict import Verdict
from tests.unit.workers.fake_device import WORKDIR, FakeDevice, bench
from tests.unit.workers.jobs import Stock
from workers.blob_cache import BlobCache
from workers.read_ahead import read_ahead, sizes
from workers.session import make_room, run_batch
from workers.transports.base import CommandResult

KIB = 1024


def blob(n: int) -> str:
    return f"{n:064x}"


def fill(phone: FakeDevice, *numbers: int, size: int = KIB) -> None:
    for n in numbers:
        phone.files[f"{WORKDIR}/blobs/{blob(n)}"] = bytes(size)


def cache(phone: FakeDevice, needed: Sequence[int], quota: int = 8 * KIB) -> BlobCache:
    return BlobCache(bench(phone, blob_quota=quota), [blob(n) for n in needed])


def push(phone: FakeDevice, *needed: int, quota: int = 8 * KIB, size: int = KIB) -> list[str]:
    """Digests that were pushed."""
    asked: list[str] = []

    def blobs(missing: Sequence[str]) -> list[tuple[str, bytes]]:
        asked.extend(missing)
        return [(digest, bytes(size)) for digest in missing]

    cache(phone, needed, quota).fill(lambda missing: blobs(list(missing)))
    return asked


def test_only_what_is_missing_is_pushed(phone: FakeDevice) -> None:
    fill(phone, 1, 2)
    assert push(phone, 2, 3) == [blob(3)]
    assert phone.blobs() == {blob(1), blob(2), blob(3)}


def test_the_blobs_that_were_not_used_for_longest_go_first(phone: FakeDevice) -> None:
    fill(phone, 1, 2, 3, 4, 5, 6, 7, 8)
    push(phone, 2, 9)
    assert phone.blobs() == {blob(n) for n in (2, 4, 5, 6, 7, 8, 9)}, "1 for the new one, 3 to spare"


def test_blobs_of_the_batch_stay_however_old_they_are(phone: FakeDevice) -> None:
    fill(phone, 1, 2, 3)
    push(phone, 1, 2, 3, 4, quota=KIB)
    assert phone.blobs() == {blob(n) for n in (1, 2, 3, 4)}


def test_over_the_quota_old_blobs_go_though_nothing_is_missing(phone: FakeDevice) -> None:
    fill(phone, 1, 2, 3, 4)
    assert push(phone, 4, quota=2 * KIB) == []
    assert phone.blobs() == {blob(4)}


def test_half_a_push_of_a_killed_worker_goes_with_the_next_batch_though_there_is_room(
    phone: FakeDevice,
) -> None:
    """Seed 1 of the chaos test left one behind."""
    fill(phone, 1, 2)
    phone.files[f"{WORKDIR}/blobs/.77.part"] = bytes(KIB)
    assert push(phone, 2) == []
    assert phone.blobs() == {blob(1), blob(2)}


def test_a_full_phone_gives_up_the_oldest_first(phone: FakeDevice) -> None:
    fill(phone, 1, 2, 3)
    phone.capacity = 3 * KIB + 100
    push(phone, 4)
    assert phone.blobs() == {blob(2), blob(3), blob(4)}


def test_a_full_phone_gives_up_all_others_where_that_is_not_enough(phone: FakeDevice) -> None:
    fill(phone, 1, 2, 3)
    phone.capacity = 3 * KIB + 100
    push(phone, 3, 4, size=2 * KIB)
    assert phone.blobs() == {blob(3), blob(4)}
    with pytest.raises(NoSpace):
        push(phone, 3, 4, 5, size=2 * KIB)


def test_make_room_frees_what_was_asked_for(phone: FakeDevice, stock: Stock) -> None:
    job = stock.job("case-1")
    fill(phone, 1, 2, 3)
    small = bench(phone, blob_quota=8)
    make_room(small, stock.batch(job), KIB)
    assert phone.blobs() == {blob(3)}, "one byte to spare takes a second one"
    make_room(small, stock.batch(job))
    assert phone.blobs() == set()


@dataclass(slots=True)
class NoAges(FakeDevice):
    """Android 5: its ls knows no order."""

    error: InfraError | None = None
    asked: list[str] = field(default_factory=list[str])

    def run(self, argv: Sequence[str], **_: object) -> CommandResult:
        self.asked.append(argv[0])
        if self.error is not None:
            raise self.error
        return CommandResult(1, b"ls: Unknown option '-1'. Aborting.\n")


@pytest.mark.parametrize("error", [None, DeviceLost("gone for a moment")])
def test_a_device_that_tells_no_ages_makes_room_all_the_same(error: InfraError | None) -> None:
    phone = NoAges(error=error)
    fill(phone, 1, 2, 3, 4)
    push(phone, 4, 5, quota=4 * KIB)
    assert {blob(4), blob(5)} <= phone.blobs()
    assert len(phone.blobs()) < 5


def test_the_order_is_asked_for_only_when_something_must_go(phone: FakeDevice) -> None:
    asking = NoAges()
    fill(asking, 1)
    push(asking, 1, 2)
    assert asking.asked == []


def test_what_a_batch_reads_is_used_now(phone: FakeDevice, stock: Stock) -> None:
    """The first case's blobs are older on the phone, and used by the second batch."""
    first, second = stock.job("case-1"), stock.job("case-2", shader=b"another\n")
    place = bench(phone, blob_quota=10 * KIB)
    for job in (first, second, first):
        (trial,) = run_batch(place, stock.batch(job), [job], stock.store, lambda _news: None)
        assert trial.verdict is Verdict.PASS
    fill(phone, 7, size=9 * KIB + 700)
    cache(phone, [7], 8).make_room(1)
    assert first.blobs() <= phone.blobs()
    assert not second.blobs() <= phone.blobs()


@dataclass(slots=True)
class Shelf:
    held: list[str] = field(default_factory=list[str])
    broken: str = ""

    def get(self, digest: str) -> bytes:
        self.held.append(digest)
        if digest == self.broken:
            raise InfraError(f"blob {digest} cannot be read")
        return digest.encode()


def test_blobs_come_in_order_whatever_their_size() -> None:
    digests = [blob(n) for n in range(20)]
    expected = {digest: 10 * (n % 3) for n, digest in enumerate(digests)}
    found = list(read_ahead(Shelf(), digests, expected, held_bytes=25))
    assert found == [(digest, digest.encode()) for digest in digests]


def test_no_more_is_read_ahead_than_may_be_held() -> None:
    shelf = Shelf()
    digests = [blob(n) for n in range(5)]
    reading = read_ahead(shelf, digests, dict.fromkeys(digests, 10), held_bytes=25)
    next(reading)
    assert set(shelf.held) <= set(digests[:2])
    assert [digest for digest, _ in reading] == digests[1:]


def test_a_blob_that_cannot_be_read_ends_the_reading() -> None:
    digests = [blob(n) for n in range(5)]
    reading = read_ahead(Shelf(broken=blob(2)), digests, {})
    assert [next(reading)[0] for _ in range(2)] == digests[:2]
    with pytest.raises(InfraError, match="cannot be read"):
        next(reading)


def test_a_job_tells_the_bytes_of_what_it_needs(stock: Stock) -> None:
    job = stock.job("case-1")
    told = sizes([job])
    assert told.keys() == job.blobs()
    reference, given = job.checks[0].reference, next(b.blob for b in job.buffers if b.blob)
    assert told[reference] == len(stock.store.get(reference))
    assert told[given] == len(stock.store.get(given))

"""The blob store: a name is a promise about the content, on every kind of file system."""

import threading
import uuid
from pathlib import Path

import pytest

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.storage.blobs import BlobStore


@pytest.fixture(params=["file", "memory", "path"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    folder = tmp_path / "blob store, été"
    urls = {"file": folder.as_uri(), "path": str(folder), "memory": f"memory://{uuid.uuid4().hex}"}
    return BlobStore(urls[request.param])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def on_disk(folder: Path) -> BlobStore:
    return BlobStore(folder.as_uri())


@pytest.mark.parametrize("data", [b"", b"shader\n", bytes(range(256)) * 5000])
def test_what_was_put_comes_back_under_its_digest(store: BlobStore, data: bytes) -> None:
    digest = store.put(data)
    assert digest == sha256_hex(data)
    assert store.get(digest) == data
    assert store.put(data) == digest, "twice is harmless"
    assert store.get(digest) == data


def test_another_process_finds_it_by_the_same_url(on_disk: BlobStore) -> None:
    digest = on_disk.put(b"reference")
    assert BlobStore(on_disk.url).get(digest) == b"reference"


def test_a_missing_blob_names_store_and_remedy(store: BlobStore) -> None:
    digest = sha256_hex(b"never put")
    with pytest.raises(InfraError) as caught:
        store.get(digest)
    assert digest in str(caught.value)
    assert store.url in str(caught.value)
    assert "TILEFARM_BLOBS" in str(caught.value)


def only_file(folder: Path) -> Path:
    (found,) = [p for p in folder.rglob("*") if p.is_file()]
    return found


@pytest.mark.parametrize("damage", [b"", b"referencE", b"reference+"])
def test_a_damaged_blob_is_noticed(on_disk: BlobStore, folder: Path, damage: bytes) -> None:
    digest = on_disk.put(b"reference")
    only_file(folder).write_bytes(damage)
    with pytest.raises(InfraError, match=rf"blob {digest} .* is damaged"):
        on_disk.get(digest)


def test_twenty_that_put_the_same_at_once_leave_one_whole_blob(on_disk: BlobStore, folder: Path) -> None:
    data = bytes(range(256)) * 4096
    together = threading.Barrier(20)
    digests: list[str] = []
    seen: list[bytes] = []

    def put() -> None:
        mine = BlobStore(on_disk.url)
        together.wait()
        digest = mine.put(data)
        digests.append(digest)
        seen.append(mine.get(digest))

    threads = [threading.Thread(target=put) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert digests == [sha256_hex(data)] * 20
    assert seen == [data] * 20, "nobody saw half a blob"
    assert only_file(folder).name == digests[0], "and no partial file stays"


def test_a_store_that_cannot_be_written_says_so(on_disk: BlobStore, folder: Path) -> None:
    folder.write_bytes(b"a file where the folder should be")
    with pytest.raises(InfraError, match="cannot write"):
        on_disk.put(b"data")


def test_a_url_that_nobody_can_open_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"blob store .*TILEFARM_BLOBS"):
        BlobStore("nosuch://bucket")


def test_a_blob_is_read_within_a_bound(store: BlobStore) -> None:
    digest = store.put(b"12345678")
    assert store.get(digest, at_most=8) == b"12345678"
    assert store.get(store.put(b""), at_most=0) == b""
    with pytest.raises(InfraError, match="more than 7 bytes"):
        store.get(digest, at_most=7)

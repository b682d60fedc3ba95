"""From a prepared run to blobs and back: what arrives is what was handed in, or nothing is made of it."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError, WireError
from orchestrator.domain.submission import Submission
from orchestrator.domain.trial import Trial
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import Manifest, RunFolder
from orchestrator.execution.service import taking
from orchestrator.execution.service.taking import Taken, hand_in
from orchestrator.storage.blobs import BlobStore
from tests.results_fixture import case, device, results, run_info, trial
from tests.unit.domain.messages import JOB

RUN_ID = "20261201T010203Z-smoke-aaaa"


@pytest.fixture
def store() -> BlobStore:
    return BlobStore(f"memory://{uuid.uuid4().hex}")


def prepared(out: Path, store: BlobStore, known: list[Trial] | None = None) -> Submission:
    run = run_info(RUN_ID, finished=False)
    planned = results(points=[case()], trials=[], devices=[device("local-1")], run=run)
    manifest = Manifest(planned, {"local-1": [JOB]}, store.url, "nightly", user="ann@desk")
    digests = hand_in(RunFolder.create(out, manifest, known or []), store)
    return Submission(RUN_ID, "smoke", "ann@desk", "nightly", "now", "desk", store.url, *digests)


def test_a_run_arrives_as_it_was_handed_in_however_often_it_is_taken(
    tmp_path: Path, store: BlobStore
) -> None:
    failed = replace(trial(case(), "local-1"), run_id=RUN_ID)
    submission = prepared(tmp_path / "client", store, [failed])
    taken = Taken(tmp_path / "server")
    assert not taken.made(RUN_ID)
    taken.take(submission)
    assert taken.made(RUN_ID)
    ours, theirs = (RunFolder(tmp_path / who / "runs" / RUN_ID) for who in ("server", "client"))
    assert ours.manifest() == theirs.manifest()
    assert list(ours.trials().values()) == [failed]
    ours.append([replace(failed, case_id="b" * 16)])
    taken.take(submission)
    assert len(ours.trials()) == 2, "what is there is left as it is"
    assert [p.name for p in (tmp_path / "server" / "runs").iterdir()] == [RUN_ID]


def test_what_was_begun_is_known_until_it_is_forgotten(tmp_path: Path, store: BlobStore) -> None:
    submission = prepared(tmp_path / "client", store)
    Taken(tmp_path / "server").take(submission)
    damaged = tmp_path / "server" / "submissions" / "20261201T010203Z-smoke-bbbb.json"
    damaged.write_text(to_json(submission)[:40])
    taken = Taken(tmp_path / "server")
    assert taken.all() == [submission]
    taken.forget(RUN_ID)
    taken.forget(RUN_ID)
    assert taken.all() == []


def test_a_taker_that_died_before_the_folder_was_there_leaves_nothing_in_the_way(
    tmp_path: Path, store: BlobStore
) -> None:
    submission = prepared(tmp_path / "client", store)
    taken = Taken(tmp_path / "server")
    with pytest.raises(InfraError, match="cannot be read"):
        taken.take(replace(submission, manifest="0" * 64))
    assert [s.run_id for s in Taken(tmp_path / "server").all()] == [RUN_ID]
    taken.take(submission)
    assert RunFolder(tmp_path / "server" / "runs" / RUN_ID).manifest().lane == "nightly"


@pytest.mark.parametrize(
    "change",
    [{"lane": "ondemand"}, {"run_id": "20261201T010203Z-smoke-cccc"}, {"user": "bob@desk"}],
    ids=lambda change: next(iter(change)),
)
def test_a_manifest_that_is_not_that_of_its_submission_is_refused(
    tmp_path: Path, store: BlobStore, change: dict[str, str]
) -> None:
    submission = prepared(tmp_path / "client", store)
    with pytest.raises(WireError, match="manifest"):
        Taken(tmp_path / "server").take(replace(submission, **change))
    assert not list((tmp_path / "server").glob("runs/*"))


def test_trials_of_another_run_are_refused(tmp_path: Path, store: BlobStore) -> None:
    submission = prepared(tmp_path / "client", store, [trial(case(), "local-1")])
    with pytest.raises(WireError, match="of another run"):
        Taken(tmp_path / "server").take(submission)


def test_blobs_are_proven_and_bounded(
    tmp_path: Path, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = prepared(tmp_path / "client", store)
    shape = replace(submission, manifest=store.put(b'{"planned": 3}'))
    with pytest.raises(WireError, match="planned"):
        Taken(tmp_path / "server").take(shape)
    monkeypatch.setattr(taking, "MANIFEST_BYTES", 100)
    with pytest.raises(InfraError, match="more than 100 bytes"):
        Taken(tmp_path / "server").take(submission)
    with pytest.raises(WireError, match="too large to be submitted"):
        prepared(tmp_path / "other", store)

"""Settings mean the same in every process, wherever it was started."""

from pathlib import Path

import pytest

from orchestrator.domain.settings import Settings


def test_without_a_setting_blobs_lie_beside_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TILEFARM_BLOBS", raising=False)
    monkeypatch.delenv("TILEFARM_OUT", raising=False)
    assert Settings().blob_store() == (tmp_path / "out" / "blobs").as_uri()
    assert Settings(out=Path("elsewhere")).blob_store() == (tmp_path / "elsewhere" / "blobs").as_uri()


def test_a_relative_blob_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker opens it from another folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEFARM_BLOBS", "shared/blobs")
    assert Settings().blob_store() == (tmp_path / "shared" / "blobs").as_uri()


@pytest.mark.parametrize("url", ["s3://bucket/blobs", "memory://blobs", "file:///srv/blobs"])
def test_a_url_stays_as_it_is(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_BLOBS", url)
    assert Settings().blob_store() == url


def test_other_variables_of_the_environment_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_SOMETHING_ELSE", "1")
    monkeypatch.setenv("TILEFARM_BROKER", "redis://farm:6379/0")
    assert Settings().broker == "redis://farm:6379/0"


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """``TILEFARM_OUT=`` would otherwise mean the working folder."""
    default = Settings().workdir
    for name in ("OUT", "WORKDIR", "RUNNER_DIR"):
        monkeypatch.setenv(f"TILEFARM_{name}", "")
    assert Settings().out == Path("out")
    assert Settings().workdir == default
    assert Settings().runner_dir.name == "build"

"""A run of a farm is ended by `tilefarm cancel` or Ctrl-C, also while it waits in its queues."""

import getpass
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from orchestrator.cli import dispatch as cli_dispatch
from orchestrator.cli import resume as cli_resume
from orchestrator.cli.dispatch import EXIT_INTERRUPTED, dispatch
from orchestrator.cli.fleet import Fleet
from orchestrator.domain.errors import BrokerUnavailable, UsageError
from orchestrator.domain.event import Progress
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.execution.broker import Broker
from orchestrator.execution.dispatch import DispatchLimits
from tests.results_fixture import device
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_runs import NEW, started
from tests.unit.domain.messages import BATCH
from tests.unit.execution.redis_fixture import redis_url

__all__ = ["redis_url"]


def test_a_run_that_only_waits_in_its_queues_is_cancelled(
    invoke: Invoke, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setenv("TILEFARM_BROKER", redis_url)
    unknown = invoke("cancel", "cancel-queued")
    assert isinstance(unknown.exception, UsageError)
    broker = Broker(redis_url)
    broker.send(replace(BATCH, run_id="cancel-queued", device_id="cancel-phone"), "ondemand")
    done = invoke("cancel", "cancel-queued", "--why", "wrong branch", "--json")
    assert done.exit_code == 0, done.exception
    why = json.loads(done.stdout)["why"]
    assert why.startswith("cancelled by uid-")
    assert why.endswith(": wrong branch")
    assert broker.cancelled("cancel-queued") == why
    broker.close()


class _Interrupted(Broker):
    """The person presses Ctrl-C while the run waits for news."""

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress]]:
        raise KeyboardInterrupt
        yield


class _Away(_Interrupted):
    def cancel(self, run_id: str, why: str) -> bool:
        raise BrokerUnavailable("broker: gone")


@pytest.mark.parametrize("kind", [_Interrupted, _Away])
def test_ctrl_c_ends_the_run_in_the_farm_or_says_how_to_go_on(
    tmp_path: Path, redis_url: str, kind: type[_Interrupted], capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = f"{NEW}-{kind.__name__.lower()}"
    folder, broker = started(tmp_path, run_id), kind(redis_url)
    fleet = Fleet(broker, [device("local-1")], [])
    with pytest.raises(typer.Exit) as ended:
        dispatch(folder, fleet, Settings(out=tmp_path, broker=redis_url), {}, Gate())
    assert ended.value.exit_code == EXIT_INTERRUPTED
    assert f"tilefarm run --resume {run_id}" in capsys.readouterr().err
    assert bool(broker.cancelled(run_id)) is (kind is _Interrupted)
    broker.close()


@pytest.mark.parametrize(("own", "gone_s"), [("", 60.0), ("redis://farm:6379/0", 300.0)])
def test_a_farm_has_time_to_restart_a_phone(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch, own: str, gone_s: float
) -> None:
    """An agent reboots what is silent, and the run waits for that; a private worker has nobody who does."""
    given: list[DispatchLimits] = []

    def carry_out(*args: object) -> None:
        given.extend(a for a in args if isinstance(a, DispatchLimits))
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_dispatch, "carry_out", carry_out)
    broker = Broker(redis_url)
    fleet = Fleet(broker, [device("local-1")], [])
    with pytest.raises(typer.Exit):
        dispatch(started(tmp_path, NEW), fleet, Settings(out=tmp_path, broker=own), {}, Gate())
    assert [limits.gone_s for limits in given] == [gone_s]
    broker.close()


def test_a_command_of_a_service_leaves_its_run_in_the_farm(tmp_path: Path, redis_url: str) -> None:
    run_id = f"{NEW}-unattended"
    folder, broker = started(tmp_path, run_id), _Interrupted(redis_url)
    fleet, settings = Fleet(broker, [device("local-1")], []), Settings(out=tmp_path, broker=redis_url)
    with pytest.raises(typer.Exit) as ended:
        dispatch(folder, fleet, settings, {}, Gate(), unattended=True)
    assert ended.value.exit_code == EXIT_INTERRUPTED
    assert not broker.cancelled(run_id)
    assert all(state.phase != "cancelled" for state in broker.runs() if state.run_id == run_id)
    broker.close()


@pytest.mark.parametrize("unattended", [False, True])
def test_only_a_person_goes_on_with_a_cancelled_run(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch, unattended: bool
) -> None:
    run_id = f"{NEW}-go-on-{unattended}"
    started(tmp_path, run_id)
    broker = Broker(redis_url)
    broker.send(replace(BATCH, run_id=run_id, device_id="go-on-phone"), "ondemand")
    assert broker.cancel(run_id, "wrong branch")

    def dispatched(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr(cli_resume, "dispatch", dispatched)
    settings = Settings(out=tmp_path, broker=redis_url)
    cli_resume.resume_run(settings, run_id, Gate(), unattended=unattended)
    assert bool(broker.cancelled(run_id)) is unattended
    broker.close()


def test_a_run_tells_its_farm_how_it_ended(tmp_path: Path, redis_url: str) -> None:
    """Also one whose trials were all on disk already, and that needs no device."""
    run_id = f"{NEW}-told"
    started(tmp_path, run_id, median_ns=1000)
    cli_resume.resume_run(Settings(out=tmp_path, broker=redis_url), run_id, Gate())
    broker = Broker(redis_url)
    (state,) = (s for s in broker.runs() if s.run_id == run_id)
    broker.close()
    assert (state.phase, state.exit_code) == ("finished", 0)
    assert [(t.device_id, t.done, t.total, t.lost) for t in state.targets] == [("local-1", 1, 1, 0)]
    assert Path(state.report).is_file()


@pytest.mark.parametrize(
    "words",
    [
        ("agent",),
        ("worker", "--device", "local"),
        ("hold", "x", "--why", "y"),
        ("release", "x"),
        ("cancel", "x"),
        ("watch", "x"),
        ("submit",),
        ("orchestrator",),
    ],
    ids=lambda words: words[0],
)
def test_commands_for_a_farm_say_so_without_one(invoke: Invoke, words: tuple[str, ...]) -> None:
    error = invoke(*words).exception
    assert isinstance(error, UsageError)
    assert "TILEFARM_BROKER is not set" in str(error)
    assert "needs the farm's Redis, e.g. redis://localhost:6379/0" in str(error)

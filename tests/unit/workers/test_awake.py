"""A phone is awake before it measures, and what hangs says whether it still was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from orchestrator.domain.errors import DeadlineExceeded, InfraError
from orchestrator.domain.health import Vitals
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from tests.unit.workers.fake_device import Act, FakeDevice, bench
from tests.unit.workers.jobs import Stock
from workers.awake import TRIES, awake
from workers.session import run_batch
from workers.transports.base import CommandResult


@dataclass(slots=True)
class Sleeper(FakeDevice):
    """Its power manager says what it is told to, and what it was asked is kept."""

    wakefulness: str = "Asleep"
    wakes: bool = False
    asked: list[str] = field(default_factory=list[str])

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        del timeout_s, env
        self.asked.append(" ".join(argv))
        if "KEYCODE_WAKEUP" in self.asked[-1] and self.wakes:
            self.wakefulness = "Awake"
        said = {
            "dumpsys power": f"  mWakefulness={self.wakefulness}\n",
            "dumpsys battery": "temperature: 340\n",
        }
        return CommandResult(0, said.get(self.asked[-1], "").encode())


def vitals(wakefulness: str) -> Vitals:
    return Vitals(0.0, wakefulness=wakefulness)


def woken(phone: Sleeper, first: str) -> Vitals:
    return awake(phone, vitals(first), lambda: vitals(phone.wakefulness.lower()), sleep=lambda _: None)


@pytest.mark.parametrize("first", ["asleep", "dozing", "dreaming"])
def test_g1_18_a_sleeping_phone_is_woken_before_a_batch(first: str) -> None:
    """G1-18: it is told to wake and to stay awake, and asked whether it did."""
    phone = Sleeper(wakes=True)
    assert woken(phone, first).wakefulness == "awake"
    assert phone.asked == ["sh -c input keyevent KEYCODE_WAKEUP; svc power stayon true"]


def test_g1_18_a_phone_that_sleeps_on_gets_no_batch() -> None:
    """G1-18: the reason says what was tried."""
    phone = Sleeper()
    with pytest.raises(
        InfraError, match=r"asleep, and does not wake up \(input keyevent KEYCODE_WAKEUP; svc"
    ):
        woken(phone, "asleep")
    assert len(phone.asked) == TRIES


@pytest.mark.parametrize("first", ["awake", ""])
def test_a_phone_that_is_awake_or_does_not_tell_is_left_alone(first: str) -> None:
    phone = Sleeper()
    assert woken(phone, first).wakefulness == first
    assert phone.asked == []


def run(phone: FakeDevice) -> list[Trial]:
    stock = Stock(BlobStore("memory://awake"))
    batch = stock.batch(stock.job("case-1"), stock.job("case-2"))
    return run_batch(bench(phone), batch, batch.cases, stock.store, lambda _: None)


def test_g1_18_a_hang_says_whether_the_phone_was_awake() -> None:
    """G1-18: a fence that never signals, with the screen off."""
    phone = Sleeper({"case-1": Act(status="hung", fields={"stage": "dispatch", "deadline_ms": 120_000})})
    hung, fine = run(phone)
    assert hung.verdict is Verdict.HUNG
    assert hung.reason == "still in dispatch after 120000 ms; the phone is asleep, battery 34.0 °C"
    assert (fine.verdict, fine.reason) == (Verdict.PASS, "")


def test_g1_18_so_does_a_phone_that_went_silent_altogether() -> None:
    """G1-18: the host's own deadline; the transport has ended the process by its id (tests/contract)."""

    class Silent(Sleeper):
        def stream(
            self,
            argv: Sequence[str],
            on_line: Callable[[bytes], None],
            *,
            timeout_s: float,
            idle_timeout_s: float,
            env: Mapping[str, str] | None = None,
        ) -> int:
            raise DeadlineExceeded("phone: silent: not done after 30 s")

    for trial in run(Silent()):
        assert trial.verdict is Verdict.INFRA
        assert trial.reason == "phone: silent: not done after 30 s; the phone is asleep, battery 34.0 °C"


def test_nobody_asks_a_phone_on_which_nothing_hung() -> None:
    phone = Sleeper()
    assert {t.verdict for t in run(phone)} == {Verdict.PASS}
    assert phone.asked == []

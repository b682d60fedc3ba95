"""``tilefarm hold`` and ``tilefarm release``: a person takes a device of the farm for themselves."""

import json
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, say
from orchestrator.cli.person import person
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import BrokerUnavailable, UsageError
from orchestrator.domain.health import Condition
from orchestrator.domain.lease import Hold
from orchestrator.domain.limits import printable
from orchestrator.domain.moment import utc_now
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.broker import Broker
from workers.discovery import LOCAL, host_name

POLL_S = 0.5

DeviceArgument = Annotated[str, typer.Argument(help="Serial or device id; one device.")]


def hold(
    device: DeviceArgument,
    why: Annotated[str, typer.Option("--why", help="For those who miss it, e.g. 'new battery'.")],
    as_json: JsonOption = False,
) -> None:
    """Keep a device of the farm for yourself: no worker touches it until it is released.

    Waits for the end of the batch that runs there now; Ctrl-C ends the waiting, not the hold.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm hold R58N12ABCDE --why 'new battery'
    """
    if not why.strip():
        raise UsageError("--why is empty: say what the device is needed for; others will read it")
    if printable(why) != why:
        raise UsageError("--why is not one line of at most 1000 printable characters: others will read it")
    broker = _broker("hold")
    found = _one(broker, device)
    mine = Hold(
        device_id=found.device_id,
        by=person(),
        why=why,
        since=utc_now(),
        serial=found.serial,
        host=found.host,
    )
    if not broker.hold(mine):
        other = broker.holds().get(found.device_id)
        was = other.sentence if other else "held"
        raise UsageError(f"{found.device_id} is {was}. `tilefarm release {found.device_id}` ends that")
    try:
        _await_free(broker, mine)
    except BrokerUnavailable as e:
        raise BrokerUnavailable(
            f"{found.device_id} is held in your name, but whether it is free by now is not known: {e}"
        ) from e
    if as_json:
        print_json(json.loads(to_json(mine)))
    else:
        say(f"{found.device_id} is yours. Give it back with `tilefarm release {found.device_id}`")


def release(device: DeviceArgument, as_json: JsonOption = False) -> None:
    """Give a held device back to the farm.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm release R58N12ABCDE
    """
    broker = _broker("release")
    holds = broker.holds()
    named = [h for h in holds.values() if _means(device, h.device_id, h.serial, h.host)]
    if len(named) > 1:
        ids = ", ".join(h.device_id for h in named)
        raise UsageError(f"{len(named)} held devices answer to {device}: {ids}. Give one device id")
    if not named:
        raise UsageError(f"{device} is not held. Held now: {', '.join(sorted(holds)) or 'none'}")
    held = named[0]
    if not broker.release(held):
        raise UsageError(
            f"{held.device_id}: the hold of {held.by} ended meanwhile. Look again: tilefarm devices"
        )
    if as_json:
        print_json(json.loads(to_json(held)))
    else:
        say(f"{held.device_id} is back in the farm (was {held.sentence})")


def _broker(command: str) -> Broker:
    return Broker(broker_url(Settings(), f"`tilefarm {command}`"))


@dataclass(frozen=True, slots=True)
class _Place:
    """A device that a hold can be for."""

    device_id: str
    serial: str
    host: str


def _one(broker: Broker, name: str) -> _Place:
    """The one device of that name: served, or a phone that an agent knows though no worker serves it now.

    Raises:
        UsageError: none, or several.
    """
    records = [r.record for r in broker.registrations().values()]
    places = {r.device_id: _Place(r.device_id, r.serial, r.host) for r in records}
    serials = {(r.host, r.serial) for r in records}
    for agent in broker.agents():
        for phone in agent.phones:
            device_id = phone.device_id or _nameless(agent.host, phone.serial)
            if (agent.host, phone.serial) not in serials:
                places.setdefault(device_id, _Place(device_id, phone.serial, agent.host))
    socs = {r.device_id for r in records if r.soc.name == name}
    found = [p for p in places.values() if p.device_id in socs or _means(name, p.device_id, p.serial, p.host)]
    if not found and name == LOCAL:
        found = [p for p in places.values() if p.serial.startswith(f"{LOCAL}:") and p.host == host_name()]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(p.device_id for p in found or places.values()) or "none"
    what = f"{len(found)} devices answer to {name}" if found else f"no device {name} is known"
    raise UsageError(f"{what}: {listed}. Give one device id")


def _means(name: str, device_id: str, serial: str, host: str) -> bool:
    """``local:NAME`` is of this machine; a phone's serial may hang on several hosts."""
    if name == device_id:
        return True
    return name == serial and (not serial.startswith(f"{LOCAL}:") or host == host_name())


def _nameless(host: str, serial: str) -> str:
    """For a phone that never told who it is: its agent knows it by host and serial."""
    return f"serial-{sha256_hex(f'{host} {serial}'.encode('utf-8', 'surrogateescape'))[:12]}"


def _await_free(broker: Broker, mine: Hold) -> None:
    """No worker has it, and its agent is not just recovering it."""
    told = False
    while not (broker.fence(mine.device_id) and _agent_left(broker, mine)):
        if not told:
            say(f"{mine.device_id} is yours once what goes on there has ended (a batch, a restart: minutes)")
            told = True
        time.sleep(POLL_S)  # Redis does not call us; for as long as the batch lasts


def _agent_left(broker: Broker, mine: Hold) -> bool:
    """The agent of its host says so; where it has none, nobody is there who would recover it."""
    return all(
        phone.condition is Condition.MAINTENANCE
        for agent in broker.agents()
        for phone in agent.phones
        if phone.device_id == mine.device_id or (agent.host, phone.serial) == (mine.host, mine.serial)
    )

"""``tilefarm hold`` and ``tilefarm release``: a person takes a device of the farm for themselves."""

import getpass
import json
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from orchestrator.cli.fleet import answers_to
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, say
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import UsageError
from orchestrator.domain.lease import Hold
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.broker import Broker
from workers.discovery import host_name

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
    broker = _broker("hold")
    record = _registered(broker, device)
    mine = Hold(
        device_id=record.device_id,
        by=f"{getpass.getuser()}@{host_name()}",
        why=why,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        serial=record.serial,
        host=record.host,
    )
    if not broker.hold(mine):
        other = broker.holds().get(record.device_id)
        was = other.sentence if other else "held"
        raise UsageError(f"{record.device_id} is {was}. `tilefarm release {record.device_id}` ends that")
    if not broker.fence(record.device_id):
        say(f"{record.device_id} is yours once the batch that runs there has ended (at most minutes)")
        while not broker.fence(record.device_id):
            time.sleep(POLL_S)  # Redis does not call us; for as long as the batch lasts
    if as_json:
        print_json(json.loads(to_json(mine)))
    else:
        say(f"{record.device_id} is yours. Give it back with `tilefarm release {record.device_id}`")


def release(device: DeviceArgument, as_json: JsonOption = False) -> None:
    """Give a held device back to the farm.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm release R58N12ABCDE
    """
    broker = _broker("release")
    for held in broker.holds().values():
        if device in (held.device_id, held.serial):
            broker.release(held.device_id)
            if as_json:
                print_json(json.loads(to_json(held)))
            else:
                say(f"{held.device_id} is back in the farm (was {held.sentence})")
            return
    there = ", ".join(sorted(broker.holds())) or "none"
    raise UsageError(f"{device} is not held. Held now: {there}")


def _broker(command: str) -> Broker:
    settings = Settings()
    if not settings.broker:
        raise UsageError(
            f"TILEFARM_BROKER is not set: `tilefarm {command}` speaks to a farm's Redis, e.g. "
            "redis://localhost:6379/0"
        )
    return Broker(settings.broker)


def _registered(broker: Broker, name: str) -> DeviceRecord:
    """The one device of that name.

    Raises:
        UsageError: none, or several.
    """
    records = [r.record for r in broker.registrations().values()]
    found = [r for r in records if answers_to(r, name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(r.device_id for r in found or records) or "none"
    what = f"{len(found)} devices answer to {name}" if found else f"no device {name} is registered"
    raise UsageError(f"{what}: {listed}. Give one device id")

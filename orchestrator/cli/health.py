"""``tilefarm health``: does a part of the farm live? For health checks of containers and for alerts."""

import json
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import redis
import typer

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, say
from orchestrator.domain.agent import AgentReport
from orchestrator.domain.errors import BrokerUnavailable, InfraError
from orchestrator.domain.names import agent_key
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json, unpack
from orchestrator.storage.broker_health import broker_health
from orchestrator.storage.redis_client import RedisClient, connect, shown
from orchestrator.storage.submissions import Submissions
from workers.discovery import host_name

ANSWER_S = 5.0


class Part(StrEnum):
    """Of a farm."""

    BROKER = "broker"
    ORCHESTRATOR = "orchestrator"
    BEAT = "beat"
    AGENT = "agent"


Finding = tuple[str, dict[str, Any]]
"""One line for people, and the same for scripts."""


def health(
    part: Annotated[Part, typer.Argument(help="What is asked about.")],
    host: Annotated[
        str, typer.Option("--host", help="Host of the service or agent. Default: this one.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Ask whether a part of the farm lives: exit code 0, or 3 with the reason.

    A service or agent lives while it renews its word in Redis; the broker is well while it keeps what it is
    told and has room.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm health broker
    """
    url = broker_url(Settings(), f"health of the {part}")
    client = connect(url, answer_s=ANSWER_S)
    try:
        line, document = _ask(part, client, url, host or host_name())
    except redis.RedisError as e:
        raise BrokerUnavailable(f"broker {shown(url)}: {e}") from e
    finally:
        client.close()
    if as_json:
        print_json(document)
    else:
        say(line)


def _ask(part: Part, client: RedisClient, url: str, host: str) -> Finding:
    if part is Part.BROKER:
        return _broker(client, url)
    look: Callable[[RedisClient, Part, str], Finding | None] = _agent if part is Part.AGENT else _service
    if (found := look(client, part, host)) is None:
        raise InfraError(f"no {part} lives on {host}: start `tilefarm {part}` there, and see its log")
    return found


def _broker(client: RedisClient, url: str) -> Finding:
    found = broker_health(client)
    if troubles := found.troubles():
        raise InfraError(f"broker {shown(url)}: {'; '.join(troubles)}")
    line = f"broker {shown(url)}: {found.used_bytes >> 20} of {found.max_bytes >> 20} MiB in use"
    return line, asdict(found)


def _service(client: RedisClient, part: Part, host: str) -> Finding | None:
    for service in Submissions(client).services(part):
        if service.host == host:
            line = f"{part} on {host}: process {service.pid} since {service.started_at}"
            return line, asdict(service)
    return None


def _agent(client: RedisClient, _part: Part, host: str) -> Finding | None:
    key = agent_key(host)
    text = client.get(key)
    if not text:
        return None
    report = unpack(AgentReport, text, key)
    line = f"agent on {host}: process {report.pid} since {report.started_at}, {len(report.phones)} phones"
    return line, json.loads(to_json(report))

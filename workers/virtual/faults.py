"""Faults on demand: what a virtual phone does wrong, when, and how often.

As text (command line and control file): ``KIND[:key=value[,key=value…]]``, a comma in a value written
``\\,``; for example ``drop:on=runner-.* run,after=600`` or ``disk_full:after=65536``.
"""

import re
from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from orchestrator.domain.errors import UsageError

Kind = Literal["drop", "stall", "drip", "disk_full", "reboot", "unauthorized", "offline", "wrong_digest"]


class Fault(BaseModel):
    """One scripted fault.

    A service's label is its name with the command of a shell in it, or ``sync SEND PATH`` and the like.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    on: str = ""
    """Regular expression searched in the label; empty matches every service."""
    after: int = Field(default=0, ge=0)
    """Bytes of the service that still pass (sent for a shell or RECV, received for SEND)."""
    after_text: str = ""
    """Bytes pass up to and with this text."""
    at: Literal["bytes", "exit"] = "bytes"
    """``exit``: all output passes, the exit status does not."""
    times: int = Field(default=0, ge=0)
    """How often it fires; 0 is for ever. A drip fires once for all that a service sends."""
    chunk: int = Field(default=1, ge=1)
    """drip: bytes at a time."""
    every_ms: int = Field(default=50, ge=1)
    """drip: pause between chunks."""
    down_ms: int = Field(default=200, ge=0)
    """reboot: how long the phone accepts no link."""

    @field_validator("on")
    @classmethod
    def _is_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as e:
            raise ValueError(f"not a regular expression: {e}") from e
        return value

    def matches(self, label: str) -> bool:
        return re.search(self.on, label) is not None

    def passes(self, sent: bytes, data: bytes) -> int | None:
        """How many bytes of ``data`` pass before the fault, or None when all do.

        ``sent`` holds everything that the service has sent already."""
        if self.at == "exit":
            return None
        if self.after_text:
            text = self.after_text.encode()
            found = (sent + data).find(text, max(0, len(sent) - len(text) + 1))
            return None if found < 0 else found + len(text) - len(sent)
        rest = self.after - len(sent)
        return max(0, rest) if rest < len(data) else None


def parse_fault(text: str) -> Fault:
    """A fault from its text form.

    Raises:
        UsageError: says what is wrong and which kinds and keys exist.
    """
    kind, _, rest = text.strip().partition(":")
    fields: dict[str, str] = {"kind": kind}
    for part in re.split(r"(?<!\\),", rest) if rest else []:
        key, _, value = part.partition("=")
        fields[key.strip()] = value.replace("\\,", ",")
    try:
        return Fault.model_validate(fields)
    except ValidationError as e:
        problems = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in e.errors())
        keys = ", ".join(name for name in Fault.model_fields if name != "kind")
        raise UsageError(f"fault {text!r}: {problems}. Keys: {keys}.") from e


class FaultBox:
    """The faults in force; may be changed while the phone runs."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults = list(faults)
        self._fired: dict[int, int] = {}

    def add(self, fault: Fault | str) -> None:
        self._faults.append(parse_fault(fault) if isinstance(fault, str) else fault)

    def replace(self, faults: Iterable[Fault]) -> None:
        self._faults = list(faults)
        self._fired.clear()

    def clear(self) -> None:
        self.replace(())

    def find(self, kinds: set[Kind], label: str) -> Fault | None:
        """The first fault of these kinds that matches and is not used up."""
        for fault in self._faults:
            used_up = fault.times and self._fired.get(id(fault), 0) >= fault.times
            if fault.kind in kinds and not used_up and fault.matches(label):
                return fault
        return None

    def fired(self, fault: Fault) -> None:
        self._fired[id(fault)] = self._fired.get(id(fault), 0) + 1

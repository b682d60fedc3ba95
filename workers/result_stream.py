"""The runner's result stream, proven whole (docs/wire-formats.md, "Result stream").

Records count only once the final record has come and its byte count and digest agree with
what was read: output cut anywhere is infrastructure, never a result.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from orchestrator.domain.errors import TruncatedOutput
from orchestrator.domain.limits import printable
from orchestrator.domain.trial import Difference, Numerics, Sensors, Timing
from workers.transports.lines import MAX_LINE_BYTES

MAX_STREAM_BYTES = 64 << 20
"""Of a whole batch: a thousand cases with the longest logs that the runner writes."""
RESULT_FORMAT = 1
_LONGEST_DRIVER = 500

Status = Literal["ok", "compile_failed", "unsupported", "crashed", "hung", "error"]


OTHERS = "others"
"""In ``hashes``: of all results beyond the 64 that are told by name."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An output that was kept and has no reference: its bytes are the result."""

    hash: str
    """sha256 of the bytes of the first verified sequence, which are those kept."""
    hashes: dict[str, int]
    """As in Numerics."""
    kept: bool
    """Its file was written."""
    keep_error: str = ""
    dtype: str = ""
    count: int = 0
    guard: Literal["ok", "damaged"] = "ok"
    unwritten: int = 0
    unwritten_first: int | None = None
    idle_hashes: dict[str, int] = field(default_factory=dict[str, int])
    differs: Difference | None = None


@dataclass(frozen=True, slots=True)
class EndRecord:
    """One case's end record."""

    case: str
    index: int
    status: Status
    stage: str = ""
    reason: str = ""
    log: str = ""
    log_truncated: bool = False
    signal: int | None = None
    exit_code: int | None = None
    deadline_ms: int | None = None
    timing: Timing | None = None
    sensors: Sensors | None = None
    outputs: list[Numerics] = field(default_factory=list[Numerics])
    kept: dict[str, Kept] = field(default_factory=dict[str, Kept])


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """An end record and the driver that was loaded in the process that made it."""

    end: EndRecord
    driver: str


_END = TypeAdapter(EndRecord)


class ResultStream:
    """Feed it lines; ``finish`` proves them whole and gives the records.

    With ``run_id`` only the output of that run counts (a probe belongs to none).
    """

    def __init__(self, source: str, run_id: str = "") -> None:
        self._source = source
        self._run_id = run_id
        self._greeted = False
        self._digest = hashlib.sha256()
        self._bytes = 0
        self._driver = ""
        self._records: list[CaseRecord] = []
        self._final = False

    def feed(self, line: bytes) -> tuple[str, str]:
        """Take one line with its LF.

        Returns:
            (record type, case id or "") for live display.

        Raises:
            TruncatedOutput: not a record of this format.
        """
        if self._final:
            raise TruncatedOutput(f"{self._source}: output after the final record")
        if not line.endswith(b"\n") or len(line) > MAX_LINE_BYTES:
            raise TruncatedOutput(f"{self._source}: a line was cut after {len(line)} bytes")
        record = self._parse(line)
        kind = str(record.get("type", ""))
        if kind == "final":
            self._prove(record)
            return kind, ""
        self._digest.update(line)
        self._bytes += len(line)
        if self._bytes > MAX_STREAM_BYTES:
            raise TruncatedOutput(f"{self._source}: more than {MAX_STREAM_BYTES} bytes, which no batch gives")
        if kind == "hello":
            self._greet(record)
        if kind == "driver":
            named = f"{record.get('renderer', '')}; {record.get('version', '')}"
            self._driver = printable(named, _LONGEST_DRIVER)
        if kind == "end":
            self._records.append(CaseRecord(self._end(record), self._driver))
        return kind, str(record.get("case", ""))

    def finish(self) -> list[CaseRecord]:
        """All end records, in order.

        Raises:
            TruncatedOutput: the final record never came.
        """
        if not self._final:
            raise TruncatedOutput(
                f"{self._source}: output ended after {self._bytes} bytes without a final record"
            )
        if self._run_id and not self._greeted:
            raise TruncatedOutput(f"{self._source}: no hello record of run {self._run_id}")
        return self._records

    def _greet(self, record: dict[str, Any]) -> None:
        if record.get("format") != RESULT_FORMAT:
            raise TruncatedOutput(
                f"{self._source}: runner speaks format {_short(record.get('format'))}, this host "
                f"{RESULT_FORMAT}; rebuild the runner with `make runner`"
            )
        if self._run_id and record.get("run") != self._run_id:
            raise TruncatedOutput(
                f"{self._source}: output of run {_short(record.get('run'))}, not {self._run_id}"
            )
        self._greeted = True

    def _parse(self, line: bytes) -> dict[str, Any]:
        try:
            record = json.loads(line, parse_int=_whole_number)
        except (ValueError, RecursionError) as e:
            raise TruncatedOutput(f"{self._source}: not a record: {line[:80]!r}") from e
        if not isinstance(record, dict):
            raise TruncatedOutput(f"{self._source}: not a record: {line[:80]!r}")
        return cast("dict[str, Any]", record)

    def _end(self, record: dict[str, Any]) -> EndRecord:
        try:
            return _END.validate_python({k: v for k, v in record.items() if k != "type"})
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            at = ".".join(str(part)[:40] for part in first["loc"])
            raise TruncatedOutput(f"{self._source}: bad end record: {at}: {first['msg']}") from e

    def _prove(self, record: dict[str, Any]) -> None:
        said = (record.get("cases"), record.get("bytes"), record.get("sha256"))
        seen = (len(self._records), self._bytes, self._digest.hexdigest())
        if said != seen:
            raise TruncatedOutput(f"{self._source}: the final record says {_short(said)}, read were {seen}")
        self._final = True


def _whole_number(text: str) -> int:
    """All of ours fit 64 bits: a longer one would overflow whatever computes with it."""
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("a number beyond 64 bits")
    return number


def _short(value: object) -> str:
    return printable(str(value), 200)

"""The Device protocol: what every transport promises. One contract suite runs on all of them.

Every call has a total deadline: however slowly bytes drip, it ends by then. All arguments that reach
a shell on the device are quoted by the transport; nothing that comes from a device is trusted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

MAX_PULL_BYTES = 1 << 32
"""What a phone says of a file's size is not taken as a reason to fill this host's memory."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    exit_code: int
    stdout: bytes
    """Standard output alone, on old Androids too; CR LF already turned into LF."""
    stderr: bytes = b""
    """The end of what was written to standard error, for people; empty where the transport does not tell."""


class Device(Protocol):
    """One GPU reached through a transport.

    Errors: DeviceLost, DeadlineExceeded, TruncatedOutput, TransferFailed, NoSpace (all InfraError).
    """

    @property
    def serial(self) -> str: ...

    @property
    def workdir(self) -> str:
        """Absolute folder on the device that belongs to Tilefarm."""
        ...

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run to its end. Output without a proven exit status raises TruncatedOutput."""
        ...

    def stream(
        self,
        argv: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        timeout_s: float,
        idle_timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> int:
        """Run and hand over each line of stdout (with its LF) as it comes; returns the exit code.

        Ends the process on the device when a deadline passes (total, or without any output)."""
        ...

    def push(self, data: bytes, path: str, *, timeout_s: float, mode: int = 0o644) -> None:
        """Write a file: temporary name, digest proven on the device, then renamed.

        Folders are made as needed; a partial file is removed."""
        ...

    def pull(self, path: str, *, timeout_s: float, at_most: int = MAX_PULL_BYTES) -> bytes:
        """Whole file, its size checked. A missing one, or one longer than ``at_most``, is TransferFailed."""
        ...

    def list_dir(self, path: str, *, timeout_s: float) -> Mapping[str, int]:
        """Plain files in a folder → size; empty when the folder is missing."""
        ...

    def remove(self, path: str, *, timeout_s: float) -> None:
        """Remove a file or a folder with everything in it, below workdir only."""
        ...

    def properties(self, *, timeout_s: float) -> Mapping[str, str]:
        """``getprop`` (local: a few facts of the machine). Never cached, empty values left out."""
        ...

"""The verdict of a trial: exactly one of nine words."""

from enum import StrEnum


class Verdict(StrEnum):
    PASS = "pass"
    MISMATCH = "mismatch"
    NONDETERMINISTIC = "nondeterministic"
    COMPILE_FAILED = "compile_failed"
    CRASHED = "crashed"
    HUNG = "hung"
    UNSUPPORTED = "unsupported"
    """The device lacks a limit or feature (named)."""
    INVALID = "invalid"
    """No device could run it (named)."""
    INFRA = "infra"
    """adb, host, phone or power failed; it says nothing about the kernel."""

    @property
    def blames_kernel(self) -> bool:
        """True when the kernel (or the driver under it) gave a wrong result or none."""
        return self in _BLAMES_KERNEL


_BLAMES_KERNEL = frozenset(
    {
        Verdict.MISMATCH,
        Verdict.NONDETERMINISTIC,
        Verdict.COMPILE_FAILED,
        Verdict.CRASHED,
        Verdict.HUNG,
    }
)

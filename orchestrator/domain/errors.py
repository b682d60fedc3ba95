"""One tree of errors: each says where, what, and what next, and knows its exit code."""

from collections.abc import Sequence


class TilefarmError(Exception):
    """Base of all errors that are shown to a person without a traceback."""

    exit_code = 3


class UsageError(TilefarmError):
    """A wrong option, selection or environment setting."""

    exit_code = 2


class FilesError(TilefarmError):
    """Everything that is wrong with files that people write, in one go."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class MatrixError(FilesError):
    """Of matrix.yaml."""


class KernelFolderError(TilefarmError):
    """A kernel folder that cannot be loaded or whose template cannot be rendered."""

    exit_code = 2


class ShaderRefused(KernelFolderError):
    """The host's compiler does not take a shader: a verdict about its cases, not the end of a run."""


class WireError(TilefarmError):
    """A message or file of an unknown version or a wrong shape."""


class InfraError(TilefarmError):
    """Host, adb, phone, power or broker failed; it says nothing about the kernel.

    A trial that ends so has the verdict ``infra``, by which it is tried again.
    """

    of_device = False
    """The device or its link failed: what may bring it back is worth trying. Else host or farm did."""


class DeviceLost(InfraError):
    """The device vanished, rebooted or stopped answering."""

    of_device = True


class DeadlineExceeded(InfraError):
    """A call to a device took longer than its total deadline."""

    of_device = True


class TruncatedOutput(InfraError):
    """Output ended before its end marker or its digest: the link dropped."""

    of_device = True


class TransferFailed(InfraError):
    """A push or pull failed; the message carries the device's reason."""

    of_device = True


class NoSpace(TransferFailed):
    """The device has no space left for a push, and a restart would make none."""

    of_device = False


class LeaseLost(InfraError):
    """The device belongs to somebody else by now: what was measured meanwhile does not count."""


class RunCancelled(InfraError):
    """A person ended the run: the device is left clean, and nothing more is reported."""


class BrokerUnavailable(InfraError):
    """Redis cannot be reached or started."""


class NotInstalled(TilefarmError):
    """A program or driver this needs is not installed; the message names the fix."""

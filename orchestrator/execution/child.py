"""Child processes of this command that must not outlive it."""

import shutil
from collections.abc import Sequence


def dies_with_us(command: Sequence[str]) -> list[str]:
    """The command, told by the kernel to end (SIGTERM) when this process is gone, also after kill -9.

    ``setpriv`` becomes the command, so the process id is the command's own. Without it (not Linux) the
    command is left as it is, and is ended on every orderly way out.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", *command] if setpriv else list(command)

"""Processes that must not outlive the one that started them, however that one ends."""

import shutil
from collections.abc import Sequence
from typing import Literal


def death_signal(signal: Literal["TERM", "KILL"]) -> list[str]:
    """Words before a command: the kernel sends it the signal when its starter is gone, also after kill -9.

    ``setpriv`` becomes the command, so the process id is the command's own. Empty where there is none (not
    Linux). A ``preexec_fn`` could do it too, but is unsafe in processes with threads.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", signal, "--"] if setpriv else []


def dies_with_us(command: Sequence[str]) -> list[str]:
    """The command, told to end (SIGTERM) when this process is gone. Without setpriv it is left as it is, and
    is ended on every orderly way out."""
    return [*death_signal("TERM"), *command]

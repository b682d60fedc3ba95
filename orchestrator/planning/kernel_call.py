"""Calls into somebody's kernel.py: whatever it raises becomes an error that names the kernel and the case."""

from collections.abc import Callable
from typing import TypeVar

from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError

T = TypeVar("T")


def ask(case: Case, what: str, call: Callable[[], T]) -> T:
    """The call's result; ``what`` names the methods that it uses.

    Raises:
        KernelFolderError: the kernel's own code failed.
    """
    try:
        return call()
    except KernelFolderError:
        raise
    except Exception as e:
        detail = f"{type(e).__name__}: {e}"
        raise KernelFolderError(f"kernels/{case.kernel}: {what} failed for {case.label}: {detail}") from e

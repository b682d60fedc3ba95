"""Calls into somebody's kernel.py: whatever is wrong becomes an error that names the kernel and the case."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

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


def refuse(case: Case, what: str) -> NoReturn:
    """The kernel's answer for this case cannot be used.

    Raises:
        KernelFolderError: always.
    """
    raise KernelFolderError(f"kernels/{case.kernel}/kernel.py: {what} (case {case.label})")


def refuse_if(case: Case, fault: str | None) -> None:
    """Nothing without a fault.

    Raises:
        KernelFolderError: there is one.
    """
    if fault is not None:
        refuse(case, fault)

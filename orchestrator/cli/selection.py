"""Selection of cases from the options of several commands, checked before any device is opened."""

import re
from collections.abc import Sequence

from orchestrator.cli.options import Inputs
from orchestrator.domain.errors import UsageError
from orchestrator.planning.expression import parse
from orchestrator.planning.plan import build_plan

_CASE_ID = re.compile(r"[0-9a-f]{16}")


def with_cases(select: str | None, case_ids: Sequence[str] | None) -> str | None:
    """``--case`` ids joined with the ``-k`` expression, as one expression.

    Raises:
        UsageError: something that is no case id, and could change the expression.
    """
    for case_id in case_ids or ():
        if not _CASE_ID.fullmatch(case_id):
            raise UsageError(
                f"--case {case_id!r}: no case id. They have 16 digits of 0-9 a-f; `tilefarm plan` lists them"
            )
    if not case_ids:
        return select
    wanted = f"case in ({', '.join(case_ids)})"
    return f"({select}) and {wanted}" if select else wanted


def check_selection(
    inputs: Inputs,
    suite: str,
    select: str | None,
    case_ids: Sequence[str] | None,
    overrides: Sequence[str] | None,
    *,
    probes: bool = True,
) -> str | None:
    """The selection as one expression, once suite, ``-k``, ``--case`` and ``--set`` are known to be right.

    Raises:
        UsageError: one of them is wrong, or nothing is selected.
    """
    if select:
        parse(select)  # on its own, before it is joined with case ids
    selection = with_cases(select, case_ids)
    # Planning for no device says everything that planning for some would say about these options.
    build_plan(
        inputs.matrix,
        suite,
        inputs.kernels,
        [],
        selection=selection,
        overrides=overrides or [],
        probes=probes,
    )
    return selection

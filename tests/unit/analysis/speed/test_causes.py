"""Why a series moved."""

import pytest

from orchestrator.analysis.speed.causes import Cause, EnvironmentKey, Evidence, attribute
from orchestrator.analysis.speed.confirm import Answer

OLD = EnvironmentKey("743", "S1")
NEW = EnvironmentKey("744", "S1")
C = ("glslang 13", "glslang 14")


def seen(
    *,
    code: bool = False,
    after: EnvironmentKey = OLD,
    phones: int = 3,
    showing: int = 3,
    turns: Answer | None = None,
    compilers: tuple[str, str] | None = None,
) -> Evidence:
    return Evidence(code, OLD, after, phones, showing, turns, compilers)


@pytest.mark.parametrize(
    ("evidence", "cause", "why"),
    [
        (seen(code=True), Cause.CODE, "the code changed"),
        (seen(code=True, turns=Answer.DIFFERENT, after=NEW), Cause.CODE, "measured in turns"),
        (seen(code=True, after=NEW), Cause.CODE, "so did the driver 743 → 744"),
        (
            seen(code=True, after=NEW, turns=Answer.SAME),
            Cause.DRIVER,
            "do not differ; driver 743 → 744",
        ),
        (seen(after=NEW), Cause.DRIVER, "driver 743 → 744"),
        (seen(after=EnvironmentKey("743", "S2")), Cause.DRIVER, "os build S1 → S2"),
        (seen(showing=1), Cause.DEVICE, "1 of 3 phones"),
        (seen(code=True, showing=1), Cause.DEVICE, "1 of 3 phones"),
        (seen(), Cause.ENVIRONMENT, "neither code nor software"),
        (seen(code=True, turns=Answer.SAME), Cause.ENVIRONMENT, "do not differ"),
        (seen(phones=1, showing=1), Cause.ENVIRONMENT, "neither code nor software"),
        (seen(phones=1, showing=1, code=True), Cause.CODE, "the code changed"),
        (seen(compilers=C), Cause.CODE, "the SPIR-V compiler changed: glslang 13 → glslang 14"),
        (seen(compilers=C, after=NEW), Cause.CODE, "glslang 14; so did the driver 743 → 744"),
        (seen(compilers=C, code=True), Cause.CODE, "glslang 14: measure both codes in turns"),
        (seen(compilers=C, code=True, turns=Answer.SAME), Cause.CODE, "do not differ; the SPIR-V"),
        (seen(compilers=C, code=True, turns=Answer.DIFFERENT), Cause.CODE, "measured in turns"),
        (seen(compilers=C, showing=1), Cause.DEVICE, "1 of 3 phones"),
    ],
    ids=lambda value: value.why if hasattr(value, "why") else None,
)
def test_causes(evidence: Evidence, cause: Cause, why: str) -> None:
    said = attribute(evidence)
    assert said.cause is cause
    assert why in said.why

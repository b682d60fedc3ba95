"""docs/tuning.md: its C program compiles and finds its entry, its numbers are the code's, tables fit the
schema."""

import json
import math
import subprocess
from pathlib import Path

import jsonschema
import pytest

from orchestrator.analysis.best.fallback import LEAST_SOCS
from orchestrator.analysis.best.pick import ALIKE, NEAR
from orchestrator.analysis.best.table import tuning_table
from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.wire import to_json
from reports.tuning.c_header import render_c_header
from tests.docs.pages import blocks
from tests.farm import REPOSITORY
from tests.unit.reports.best_sample import best
from tests.unit.reports.hostile import NASTY

PAGE = REPOSITORY / "docs" / "tuning.md"


@pytest.mark.parametrize("compiler", [["gcc", "-std=c99"], ["g++", "-std=c++11", "-x", "c++"]], ids=" ".join)
def test_the_program_of_the_page_finds_its_entry(tmp_path: Path, compiler: list[str]) -> None:
    (program,) = blocks(PAGE, "c")
    (tmp_path / "tilefarm_tuning.h").write_text(render_c_header(tuning_table(best(), "tilefarm export")))
    (tmp_path / "main.c").write_text(program)
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(
        [*compiler, *strict, "-o", tmp_path / "main", tmp_path / "main.c"], check=True, timeout=300
    )
    shown = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "attention_flash, tile 64x16\n"


def test_its_numbers_are_the_codes() -> None:
    text = PAGE.read_text()
    assert f"the last {RULE.window} nights of the suite" in text
    assert f"fewer than {RULE.min_nights} nights" in text
    assert f"the difference is below {math.expm1(NEAR) * 100:.0f} %" in text
    assert f"by more than a factor of {ALIKE:.0f}" in text
    assert LEAST_SOCS == 2
    assert "A vendor with one measured SoC has none" in text


@pytest.mark.parametrize("text", ["", NASTY.replace("\ud800", "")], ids=["plain", "hostile"])
def test_tables_and_best_variants_fit_their_schemas(text: str) -> None:
    found = best(text=text, virtual=True)
    for name, document in (("best", found), ("tuning", tuning_table(found, f"tilefarm export {text}"))):
        schema = json.loads((REPOSITORY / "docs" / f"{name}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(json.loads(to_json(document), parse_constant=_refuse), schema)


def _refuse(literal: str) -> None:
    raise AssertionError(f"{literal} is no JSON")

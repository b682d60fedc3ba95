"""results.json has a schema that tools can check it with."""

import json
from copy import deepcopy
from typing import Any

import jsonschema
import pytest

from orchestrator.domain.results import RESULTS_FORMAT, RunResults
from orchestrator.domain.wire import adapter, to_json
from tests.unit.domain.messages import RESULTS


def schema() -> dict[str, Any]:
    return adapter(RunResults).json_schema(mode="serialization")


def test_the_schema_is_a_schema_and_accepts_what_we_write() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    sample = json.loads(to_json(RESULTS))
    jsonschema.validate(sample, schema(), cls=jsonschema.Draft202012Validator)
    assert sample["format"] == RESULTS_FORMAT


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trials", 0, "verdict"), "passed"),
        (("trials", 0, "outputs", 0, "guard"), "maybe"),
        (("devices", 0, "soc", "confidence"), "surely"),
        (("run", "run_id"), 7),
        (("pruned", 0, "verdict"), "pass"),
        (("trials", 0, "timing", "wall_ns"), "fast"),
    ],
)
def test_the_schema_refuses_what_we_never_write(path: tuple[str | int, ...], value: object) -> None:
    sample = deepcopy(json.loads(to_json(RESULTS)))
    place: Any = sample
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sample, schema(), cls=jsonschema.Draft202012Validator)


def test_the_schema_names_the_nine_verdicts_of_the_design() -> None:
    assert schema()["$defs"]["Verdict"]["enum"] == [
        "pass",
        "mismatch",
        "nondeterministic",
        "compile_failed",
        "crashed",
        "hung",
        "unsupported",
        "invalid",
        "infra",
    ]

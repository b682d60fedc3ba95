"""``tilefarm plan``, ``kernels`` and ``run`` about probes, canaries, and what was dropped and why."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import plan as plan_module
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import UsageError
from orchestrator.domain.results import Missing
from tests.unit.cli.conftest import Invoke
from tests.unit.planning.toy import PHONE_LIMITS, device, profile

MATRIX = """\
version: 1
suites:
  smoke:
    budget: {minutes: 1}
    blocks:
      - kernel: attention_flash
        workloads: [{seq: 128, head_dim: 128, heads: 1}]
        axes: {api: [gles, vulkan], precision: [fp32, fp16_storage], tile: 64x32}
probes:
  blocks:
    - kernel: precision_probe
      axes: {api: [gles, vulkan], asked: [highp, mediump]}
    - kernel: canary
      axes: {api: [gles, vulkan]}
"""
PHONE = device("phone", profile(), soc="SM8650", transport="adb", resource="phone")
BOTH = device("desk", profile(limits=PHONE_LIMITS), profile(api="vulkan"), resource="gpu")


@dataclass
class FakeFleet:
    devices: list[DeviceRecord]
    missing: list[Missing] = field(default_factory=list[Missing])


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    @contextmanager
    def open_fake(*_: object) -> Generator[FakeFleet]:
        yield FakeFleet([PHONE, BOTH])

    monkeypatch.setattr(plan_module, "open_fleet", open_fake)
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX)
    return str(path)


def test_the_plan_shows_each_api_its_probes_its_guard_and_what_fits_in_halves_only(
    matrix: str, invoke: Invoke
) -> None:
    shown = invoke("plan", "--matrix", matrix).output
    assert "phone (SM8650): 2 precision_probe, 1 attention_flash; about" in shown
    assert "  gles: 1 cases, 2 probes, guarded by a canary within ×25 of what its first one takes" in shown
    assert "  vulkan: 1 cases, 2 probes, guarded by a canary" in shown
    assert "asked=mediump]  inputs=rows  (probe)" in shown
    fits = "fp16_storage fits (16384 of 16384 shared_bytes), fp32 does not (32768)"
    assert f"  attention_flash (gles) tile 64x32: {fits}" in shown
    assert f"  attention_flash (vulkan) tile 64x32: {fits}" in shown
    words = [" ".join(line.split()) for line in shown.splitlines()]
    assert "phone 4 cases: 2 precision_probe, 2 attention_flash lacks api vulkan" in words
    assert any("precision=fp32" in line and "shared_bytes 32768 > 16384" in line for line in words)


def test_the_plan_ends_with_points_pruned_points_and_time_beside_the_budget(
    matrix: str, invoke: Invoke
) -> None:
    shown = invoke("plan", "--matrix", matrix).output
    ending = shown[shown.index("suite smoke: ") :].splitlines()
    assert ending[0] == "suite smoke: 10 points"
    assert re.fullmatch(
        r"  phone: 3 run, 5 pruned; about \d+ s of a budget of 60 s, 3 times guessed", ending[1]
    )
    assert re.fullmatch(
        r"  desk: 6 run, 2 pruned; about \d+ s of a budget of 60 s, 6 times guessed", ending[2]
    )
    assert re.fullmatch(r"  inputs and references before that: about \d+ s on this machine", ending[3])
    document = json.loads(invoke("plan", "--matrix", matrix, "--json").output)
    assert (document["points"], document["budget_s"]) == (10, 60)
    assert [d["pruned"] for d in document["devices"]] == [5, 2]
    assert document["prepare_s"] > 0


def test_the_plan_as_json_holds_the_same(matrix: str, invoke: Invoke) -> None:
    document: dict[str, Any] = json.loads(invoke("plan", "--matrix", matrix, "--json").output)
    phone, desk = document["devices"]
    assert [c["role"] for c in phone["cases"]] == ["probe", "probe", "op"]
    assert [(c["api"], c["factor"], c["expected_ns"]) for c in desk["canaries"]] == [
        ("gles", 25.0, 0),
        ("vulkan", 25.0, 0),
    ]
    (fit,) = phone["half_fits"]
    assert (fit["half_bytes"], fit["full_bytes"], fit["limit_bytes"]) == (16_384, 32_768, 16_384)
    assert fit["sentence"].startswith("attention_flash (gles) tile 64x32: fp16_storage fits")


def test_without_probes_the_plan_says_that_nothing_guards(matrix: str, invoke: Invoke) -> None:
    shown = invoke("plan", "--matrix", matrix, "--no-probes").output
    assert "precision_probe" not in shown
    assert "  gles: 1 cases, 0 probes, no canary" in shown


def test_kernels_shows_roles(invoke: Invoke) -> None:
    shown = invoke("kernels").output
    assert "attention_flash (op attention)" in shown
    assert "precision_probe (probe: measures a device once a run)" in shown
    assert "canary (canary: vouches for a device before and after each batch)" in shown
    document = json.loads(invoke("kernels", "--json").output)
    roles = {k["name"]: k["role"] for k in document["kernels"]}
    assert (roles["attention_naive"], roles["fma"], roles["canary"]) == ("op", "probe", "canary")


def test_a_resumed_run_has_its_probes_as_planned(invoke: Invoke) -> None:
    done = invoke("run", "--resume", "latest", "--no-probes")
    assert isinstance(done.exception, UsageError)
    assert "leave out --no-probes" in str(done.exception)


@pytest.fixture
def three_phones(matrix: str, monkeypatch: pytest.MonkeyPatch) -> str:
    @contextmanager
    def open_three(*_: object) -> Generator[FakeFleet]:
        yield FakeFleet([PHONE, replace(PHONE, device_id="second"), replace(PHONE, device_id="third")])

    monkeypatch.setattr(plan_module, "open_fleet", open_three)
    return matrix


def test_the_plan_shows_cases_that_any_phone_of_a_soc_may_run(three_phones: str, invoke: Invoke) -> None:
    shown = invoke("plan", "--matrix", three_phones, "--phones", "1")
    assert shown.exit_code == 0
    assert "any of phone, second, third (SM8650): 1 attention_flash; about" in shown.output
    assert "  gles: 1 cases, 0 probes, guarded by a canary within ×25 of what its first one" in shown.output
    assert "suite smoke: 10 points, each on 1 phone of each SoC" in shown.output
    assert "  second: 2 run and a share of 1, 5 pruned; about" in shown.output
    document = json.loads(invoke("plan", "--matrix", three_phones, "--phones", "1", "--json").output)
    bare = invoke("plan", "--matrix", three_phones, "--phones", "1", "--no-probes").output
    assert "second (SM8650): nothing of its own; about 0 s" in bare
    (group,) = document["anywhere"]
    assert (group["soc"], group["devices"]) == ("SM8650", ["phone", "second", "third"])
    assert [c["role"] for c in group["cases"]] == ["op"]
    assert [[c["role"] for c in d["cases"]] for d in document["devices"]] == [["probe"] * 2] * 3


def test_a_lack_of_phones_is_a_warning_missing_and_no_success(three_phones: str, invoke: Invoke) -> None:
    shown = invoke("plan", "--matrix", three_phones, "--phones", "4")
    assert shown.exit_code == 3
    assert "warning: 4 phones of SM8650 wanted, 3 there (phone, second, third)" in shown.output
    document = json.loads(invoke("plan", "--matrix", three_phones, "--phones", "4", "--json").stdout)
    assert [m["device"] for m in document["missing"]] == ["SM8650 (phone 4 of 4)"]


def test_two_phones_a_case_leave_one_without_it(three_phones: str, invoke: Invoke) -> None:
    shown = invoke("plan", "--matrix", three_phones, "--phones", "2").output
    assert re.search(r"  (phone|second|third): not needed; other phones of its SoC run all cases", shown)


def test_who_names_devices_means_each_of_them(three_phones: str, invoke: Invoke) -> None:
    path = Path(three_phones)
    path.write_text(path.read_text().replace("    budget:", "    min_phones_per_soc: 1\n    budget:"))
    document = json.loads(invoke("plan", "--matrix", three_phones, "--json").output)
    assert (document["phones_per_soc"], len(document["anywhere"])) == (1, 1)
    document = json.loads(invoke("plan", "--matrix", three_phones, "--device", "SM8650", "--json").output)
    assert (document["phones_per_soc"], document["anywhere"]) == (None, [])

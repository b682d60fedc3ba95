"""The drivers of this machine as devices: which there are, what opens them, and who serves them."""

import pytest

from tests.farm import Farm
from tests.phones import SWIFTSHADER

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 2
    blocks:
      - kernel: attention_flash
        workloads: [{seq: 33, head_dim: 16, heads: 1}]
        axes: {api: [gles, vulkan], precision: fp32, tile: 8x8}
"""


@pytest.fixture
def machine(farm: Farm) -> Farm:
    """A machine on which the loader finds SwiftShader beside lavapipe."""
    farm.environment |= {"VK_ADD_DRIVER_FILES": SWIFTSHADER, "TILEFARM_VALIDATE": "1"}
    (farm.folder / "matrix.yaml").write_text(MATRIX)
    return farm


def planned(machine: Farm, *words: str) -> dict[str, int]:
    """SoC → cases, of the devices that these words name."""
    document = machine.json("plan", "--matrix", str(machine.folder / "matrix.yaml"), *words)
    return {d["soc"]: len(d["cases"]) for d in document["devices"]}


def test_each_driver_of_this_machine_is_a_device(machine: Farm) -> None:
    assert planned(machine, "--device", "local") == {"llvmpipe": 1, "lavapipe": 1, "SwiftShader": 1}


def test_without_the_loaders_variable_there_is_no_swiftshader(machine: Farm) -> None:
    del machine.environment["VK_ADD_DRIVER_FILES"]
    assert planned(machine, "--device", "local") == {"llvmpipe": 1, "lavapipe": 1}


@pytest.mark.parametrize("name", ["SwiftShader", "local:SwiftShader"])
def test_one_driver_by_name_executes_alone(machine: Farm, name: str) -> None:
    words = ("--matrix", str(machine.folder / "matrix.yaml"), "--device", name)
    done = machine.run("run", *words)
    assert "opening local:SwiftShader" in done.stderr
    assert "opening local:l" not in done.stderr, "nothing else is opened"
    (trial,) = machine.latest().trials
    assert trial.verdict.value == "pass"
    assert trial.driver.startswith("SwiftShader Device")


def test_a_worker_serves_one_device_and_says_which_there_are(machine: Farm, broker: str) -> None:
    machine.environment["TILEFARM_BROKER"] = broker
    done = machine.run("worker", "--device", "local", expect=2)
    for name in ("llvmpipe", "lavapipe", "SwiftShader"):
        assert f"--device local:{name}" in done.stderr


def test_a_machine_without_vulkan_has_its_gles(machine: Farm) -> None:
    machine.environment |= {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json"}
    assert planned(machine, "--device", "local") == {"llvmpipe": 1}

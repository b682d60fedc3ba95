"""The shipped smoke suite on every driver that needs no GPU, Vulkan under the validation layer.

llvmpipe through GLES, lavapipe and SwiftShader through Vulkan: three SoCs of one machine. All of the suite
takes minutes of compiling a driver (`make run`). Here run its small attention cases, among them every input
with a history that bites in a few rows, the cases that it expects to fail, and the other kernels.
"""

from collections.abc import Mapping

import pytest

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from tests.farm import Farm, small_probes
from tests.phones import SWIFTSHADER

SMOKE_S = 1500.0
SMALL = "not op=attention or seq<=33 or (attention_flash and vector=1 and seq=512)"
SOCS = {"llvmpipe": "gles", "lavapipe": "vulkan", "SwiftShader": "vulkan"}


def by_soc(results: RunResults) -> Mapping[str, DeviceRecord]:
    return {d.soc.name: d for d in results.devices}


@pytest.mark.timeout(SMOKE_S + 60)
def test_smoke_covers_both_apis_and_passes_on_three_drivers(farm: Farm) -> None:
    farm.environment |= {
        "VK_ADD_DRIVER_FILES": str(SWIFTSHADER),
        "TILEFARM_VALIDATE": "1",
        "ANDROID_ADB_SERVER_PORT": "1",
    }
    matrix = str(small_probes(farm.folder))
    words = ("--matrix", matrix, "--suite", "smoke", "--device", "local", "-k", SMALL)
    done = farm.run("run", *words, wait_s=SMOKE_S)
    results = farm.latest()
    devices = by_soc(results)
    assert {name: [p.api for p in d.profiles] for name, d in devices.items()} == {
        name: [api] for name, api in SOCS.items()
    }
    assert len({d.resource for d in devices.values()}) == 1, "drivers of one processor do not know it"

    ours = {d.device_id: name for name, d in devices.items()}
    known = [t for t in results.trials if t.verdict is not Verdict.PASS]
    assert {t.verdict for t in known} == {Verdict.MISMATCH}
    assert {ours[t.device_id]: results.cases[t.case_id].case.kernel for t in known} == {
        "llvmpipe": "attention_flash",  # its loops end after 65,535 iterations
        "lavapipe": "attention_flash",
        "SwiftShader": "scale",  # its packHalf2x16 makes NaN of infinity
    }
    assert "No unexpected failure" in done.stdout

    for trial in results.trials:
        info = results.cases[trial.case_id]
        assert info.role == "probe" or info.replays >= 12
        assert trial.canary is not None, f"nothing vouches for {info.case.label}"
        if trial.verdict is Verdict.PASS:
            assert all(len(o.hashes) == 1 for o in trial.outputs)
    variants = [c for c in results.cases.values() if c.role == "op"]
    apis = {
        api: {str(c.case.axes["precision"]) for c in variants if c.case.axes["api"] == api}
        for api in SOCS.values()
    }
    assert apis == {"gles": {"fp32", "fp16_storage"}, "vulkan": {"fp32", "fp16_storage", "fp16", "fp16_all"}}

    refused = {r for p in results.pruned if ours[p.device_id] == "SwiftShader" for r in p.reasons}
    assert "lacks float16" in refused
    asked = {(ours[p.device_id], p.asked): p.delivered for p in results.precision}
    assert {asked[soc, "highp"] for soc in SOCS} == {"fp32"}
    assert asked["llvmpipe", "mediump"] == "fp16"
    assert asked["lavapipe", "mediump"] == "fp32"
    assert asked["SwiftShader", "mediump"] == "fp32"
    assert asked["lavapipe", "fp16"] == "fp16"
    assert not any(p.demoted for p in results.precision)

    index = (farm.out / "latest" / "index.html").read_text()
    assert "separate drivers of this machine" in index
    for name in SOCS:
        page = (farm.out / "latest" / f"soc-{name}.html").read_text()
        assert "GLES and Vulkan" in page
        assert "mediump" in page

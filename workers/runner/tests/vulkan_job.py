#!/usr/bin/env python3
"""Runs hand-made jobs on every Vulkan driver of the machine, under the Khronos validation layer.

    python3 tests/vulkan_job.py build/linux/tilefarm-runner ../../.venv/bin/glslangValidator [DRIVER_ID…]

Checks the probe, every record against docs/wire-formats.md, and that the layer said nothing; then that it
does speak up when a shader breaks a rule. Drivers whose ids (VkDriverId) are named must be among them.
Standard library only. Exit code 0 when all is well.
"""

import array
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpu_job import Job, Record, check_stream, expect

COUNT = 1024
HEAD = "#version 450\n"
SIZE = "layout(local_size_x = 64) in;\n"
BUFFERS = (
    "layout(std430, binding = 0) readonly buffer In { float x[]; } a;\n"
    "layout(std430, binding = 1) writeonly buffer Out { float y[]; } b;\n"
)
INDEX = "    uint i = gl_GlobalInvocationID.x;\n"
SHADERS = {
    "double": HEAD + SIZE + BUFFERS + "void main() {\n" + INDEX + "    b.y[i] = 2.0 * a.x[i];\n}\n",
    "plus": HEAD + SIZE + BUFFERS + "void main() {\n" + INDEX + "    b.y[i] = a.x[i] + 1.0;\n}\n",
    "constants": HEAD
    + "layout(local_size_x_id = 2) in;\n"
    + "layout(constant_id = 0) const int TIMES = 1;\nlayout(constant_id = 1) const uint PLUS = 0u;\n"
    + BUFFERS
    + "void main() {\n"
    + INDEX
    + "    b.y[i] = float(TIMES) * a.x[i] + float(PLUS);\n}\n",
    "pushed": HEAD
    + SIZE
    + "layout(push_constant) uniform Shape { int times; uint plus; } shape;\n"
    + BUFFERS
    + "void main() {\n"
    + INDEX
    + "    b.y[i] = float(shape.times) * a.x[i] + float(shape.plus);\n}\n",
    "subgroup": HEAD
    + "#extension GL_KHR_shader_subgroup_arithmetic : require\n"
    + SIZE
    + BUFFERS
    + "void main() {\n"
    + INDEX
    + "    b.y[i] = a.x[i] + a.x[i] * float(min(subgroupAdd(1u), 1u));\n}\n",
    "third": HEAD
    + SIZE
    + BUFFERS
    + "layout(std430, binding = 2) readonly buffer More { float z[]; } c;\n"
    + "void main() {\n"
    + INDEX
    + "    b.y[i] = a.x[i] + c.z[i];\n}\n",
    "half": HEAD
    + "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n"
    + SIZE
    + BUFFERS
    + "void main() {\n"
    + INDEX
    + "    b.y[i] = float(float16_t(a.x[i]) * 2.0hf);\n}\n",
}


def compiled(glslang: str, folder: Path) -> dict[str, bytes]:
    modules: dict[str, bytes] = {}
    for name, source in SHADERS.items():
        text, module = folder / f"{name}.comp", folder / f"{name}.spv"
        text.write_text(source)
        subprocess.run(
            [glslang, "--quiet", "--target-env", "vulkan1.1", "-o", str(module), str(text)], check=True
        )
        modules[name] = module.read_bytes()
    # OpCapability ClipDistance: harmless to drivers, and nobody enabled that feature.
    modules["unclean"] = modules["double"][:20] + struct.pack("<2I", 0x20011, 32) + modules["double"][20:]
    modules["text"] = b"#version 310 es\nvoid main() {}\n\n"
    modules["cut"] = modules["double"][:-12]
    modules["no end"] = modules["double"][:-8]
    modules["empty word"] = modules["double"] + struct.pack("<I", 0x36)
    return modules


class VulkanJob(Job):
    def __init__(self, folder: Path, adapter: str, modules: dict[str, bytes], enable: str = "") -> None:
        header = [f"adapter vulkan {adapter}"] + ([f"enable {enable}"] if enable else [])
        super().__init__(folder, "vulkan", tuple(header))
        self.modules = modules

    def one(self, name: str, module: str, times: float, plus: float, extra: tuple[str, ...] = ()) -> None:
        """A case of one pass: y = times · x + plus."""
        self.passes(name, [(module, "x,y", extra)], times, plus)

    def passes(
        self, name: str, passes: list[tuple[str, str, tuple[str, ...]]], times: float, plus: float
    ) -> None:
        values = [i / 8 for i in range(COUNT)]
        reference = array.array("d", (times * v + plus for v in values))
        lines = [
            f"buffer x in f32 {COUNT} {self.blob(array.array('f', values).tobytes())}",
            f"buffer t scratch f32 {COUNT}",
            f"buffer y out f32 {COUNT}",
        ]
        for module, bindings, extra in passes:
            lines += [f"pass {self.blob(self.modules[module])} {COUNT // 64} 1 1 0 {bindings}", *extra]
        lines += [f"check y {self.blob(reference.tobytes())} 1e-6 1e-6 1e-10"]
        self.case(name, lines, deadline_ms=60000, replays=3)


def run(runner: str, folder: Path, **more: str) -> tuple[bytes, str]:
    environment = {**os.environ, "TILEFARM_VALIDATE": "1", **more}
    done = subprocess.run(
        [runner, "run", str(folder)], check=False, capture_output=True, timeout=120, env=environment
    )
    expect(done.returncode == 0, f"exit code {done.returncode}: {done.stderr.decode()}")
    return done.stdout, done.stderr.decode()


def run_probe(runner: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    command = [runner, "probe", "--api", "vulkan"]
    return subprocess.run(command, check=False, capture_output=True, timeout=120, env={**os.environ, **more})


def profiles_of(probe: subprocess.CompletedProcess[bytes]) -> list[Record]:
    return [r for r in map(json.loads, probe.stdout.splitlines()) if r["type"] == "profile"]


def probe(runner: str) -> list[Record]:
    done = run_probe(runner, TILEFARM_VALIDATE="1")
    expect(done.returncode == 0, f"probe (scripts/setup test installs drivers): {done.stderr.decode()}")
    expect("validation" not in done.stderr.decode(), f"probe: {done.stderr.decode()}")
    return profiles_of(done)


def check_other_probes(runner: str, profiles: list[Record]) -> None:
    """Without the layer the same is found; without an installed layer the wish for it is refused."""
    plain = profiles_of(run_probe(runner))
    for key in ("adapter", "library", "driver", "limits", "subgroup"):
        expect([p[key] for p in plain] == [p[key] for p in profiles], f"{key} differs under validation")
    no_layer = run_probe(runner, TILEFARM_VALIDATE="1", VK_LAYER_PATH="/nonexistent")
    expect(no_layer.returncode == 3 and no_layer.stdout == b"", f"no layer: {no_layer}")
    expect(b"apt-get install vulkan-validationlayers" in no_layer.stderr, f"no layer: {no_layer.stderr!r}")
    with tempfile.TemporaryDirectory() as temporary:
        broken = Path(temporary) / "broken.json"
        broken.write_text('{"file_format_version": "1.0.0", "ICD": {"library_path": "/nonexistent.so"}}')
        files = ":".join(filter(None, (os.environ.get("VK_ADD_DRIVER_FILES"), str(broken))))
        beside = profiles_of(run_probe(runner, TILEFARM_VALIDATE="1", VK_ADD_DRIVER_FILES=files))
        expect(len(beside) == len(profiles), "a driver that does not load hides the others")


def check_profile(profile: Record) -> None:
    where = profile["adapter"]
    advertised: dict[str, bool] = profile["advertised"]
    features: dict[str, bool] = profile["features"]
    lost = [n for n, good in features.items() if good and not advertised[n]]
    expect(not lost and set(advertised) == set(features), f"{where}: proven and not advertised: {lost}")
    unproven = {n for n in advertised if advertised[n] and not features[n] and n != "io16"}
    expect(set(profile["unproven"]) == unproven, f"{where}: {profile['unproven']}")
    for name in ("pack_half", "timer_query", "subgroup_basic"):
        expect(features[name], f"{where}: {name}: {profile['unproven'].get(name)}")
    subgroup = profile["subgroup"]
    expect(subgroup["measured"] == subgroup["advertised"] > 0, f"{where}: {subgroup}")
    library = Path(profile["library"])
    expect(library.is_file() and not library.name.startswith("libvulkan.so"), f"{where}: library {library}")
    expect(profile["timer_bits"] > 0 and profile["timer_period_ns"] > 0, f"{where}: timer")
    if profile["driver"]["id"] == "10":  # SwiftShader
        expect(not features["float16"] and not features["storage16"], f"{where}: {features}")
        expect(profile["limits"]["invocations"] == 256, f"{where}: {profile['limits']}")
    if profile["driver"]["id"] == "13":  # lavapipe
        expect(features["float16"] and features["storage16"], f"{where}: {features}")


def main_job(folder: Path, profile: Record, modules: dict[str, bytes]) -> None:
    size = profile["subgroup"]["advertised"]
    job = VulkanJob(folder, profile["adapter"], modules)
    job.one("pass", "double", 2, 0)
    job.one("again", "double", 2, 0)
    job.one("constants", "constants", 3, 5, ("constants 3,5,64",))
    job.one("other-constants", "constants", 7, 1, ("constants 7,1,64",))
    job.one("pushed", "pushed", 3, 5, ("values 3,5",))
    job.passes("values", [("pushed", "x,t", ("values 3,5",)), ("pushed", "t,y", ("values 2,1",))], 6, 11)
    job.one("too-few-values", "pushed", 3, 5, ("values 3",))
    job.one("too-many-values", "pushed", 3, 5, ("values 3,5,0",))
    job.one("no-values", "pushed", 3, 5, ("constants 3,5",))
    job.one("unread-values", "double", 2, 0, ("values 1",))
    job.passes("passes", [("double", "x,t", ()), ("plus", "t,t", ()), ("plus", "t,y", ())], 2, 2)
    job.one("this-subgroup", "double", 2, 0, (f"subgroup {size}",))
    job.one("other-subgroup", "double", 2, 0, (f"subgroup {2 * size}",))
    job.one("too-wide", "constants", 2, 0, ("constants 2,0,65536",))
    job.one("no-width", "constants", 2, 0, ("constants 2,0,0",))
    job.one("subgroup", "subgroup", 2, 0)
    job.one("text", "text", 2, 0)
    job.one("cut", "cut", 2, 0)
    job.one("no-end", "no end", 2, 0)
    job.one("empty-word", "empty word", 2, 0)
    job.one("third", "third", 2, 0)
    job.one("not-enabled", "half", 2, 0)
    job.one("last", "double", 2, 0)
    job.write()


def check_main(ends: dict[str, Record], profile: Record) -> None:
    where, limits, size = profile["adapter"], profile["limits"], profile["subgroup"]["advertised"]
    half = "the job does not enable float16" if profile["advertised"]["float16"] else "lacks float16"
    good = (
        "pass",
        "again",
        "constants",
        "other-constants",
        "pushed",
        "values",
        "passes",
        "this-subgroup",
        "last",
    )
    for name in (*good, "subgroup"):
        record = ends[name]
        expect(record["status"] == "ok", f"{where}: {name}: {record}")
        output: dict[str, Any] = record["outputs"][0]
        expect(output["failing"] == 0 and output["guard"] == "ok", f"{where}: {name}: {output}")
        expect(output["hashes"] == {output["hash"]: 4}, f"{where}: {name}: {output['hashes']}")
        timing: dict[str, Any] = record["timing"]
        expect(len(timing["wall_ns"]) == len(timing["gpu_ns"]) == 3, f"{where}: {name}: {timing}")
        expect(
            all(0 <= g <= w for g, w in zip(timing["gpu_ns"], timing["wall_ns"], strict=True)), f"{timing}"
        )
    expect(len(ends["values"]["timing"]["compile_ns"]) == 1, f"{where}: one program for two dispatches")
    expect(ends["again"]["timing"]["reused"] == 1, f"{where}: a module of the case before is compiled again")
    refusals = {
        "other-subgroup": f"subgroup {2 * size} != {size}",
        "too-wide": f"group_x 65536 > {limits['group_x']}",
        "not-enabled": half,
    }
    for name, reason in refusals.items():
        record = ends[name]
        expect((record["status"], record.get("reason")) == ("unsupported", reason), f"{where}: {record}")
    logs = {
        "text": "no SPIR-V: it begins with 0x72657623",
        "cut": "words, and ",
        "no-end": "it ends within a function",
        "empty-word": "an instruction of 0 words",
        "third": "the shader uses binding 2, and the pass binds only 2",
        "too-few-values": "the shader reads 8 bytes of values, and the pass gives 4",
        "too-many-values": "the shader reads 8 bytes of values, and the pass gives 12",
        "no-values": "the shader reads 8 bytes of values, and the pass gives 0",
        "unread-values": "the shader reads no values, and the pass gives 1",
        "no-width": "a work group of no invocations",
    }
    for name, part in logs.items():
        record = ends[name]
        expect(record["status"] == "compile_failed" and part in record["log"], f"{where}: {record}")


def check_adapter(runner: str, profile: Record, modules: dict[str, bytes]) -> None:
    where = profile["adapter"]
    with tempfile.TemporaryDirectory() as temporary:
        main_job(Path(temporary), profile, modules)
        out, spoken = run(runner, Path(temporary))
        check_main(check_stream(out, children=1), profile)
        expect("validation" not in spoken, f"{where}: {spoken}")
    with tempfile.TemporaryDirectory() as temporary:
        job = VulkanJob(Path(temporary), where, modules)
        job.one("unclean", "unclean", 2, 0)
        job.one("clean", "double", 2, 0)
        job.write()
        ends = check_stream(run(runner, Path(temporary))[0], children=1)
        unclean = ends["unclean"]
        expect(unclean["status"] == "error", f"{where}: {unclean}")
        expect(unclean["reason"].startswith("validation: VUID-"), f"{where}: {unclean}")
        expect(ends["clean"]["status"] == "ok", f"{where}: {ends['clean']}")
    with tempfile.TemporaryDirectory() as temporary:
        job = VulkanJob(Path(temporary), where, modules, "float16")
        job.one("half", "half", 2, 0)
        job.write()
        half = check_stream(run(runner, Path(temporary))[0], children=int(profile["features"]["float16"]))
        wanted = "ok" if profile["features"]["float16"] else "error"
        expect(half["half"]["status"] == wanted, f"{where}: {half}")
        out = run(runner, Path(temporary), TILEFARM_IMPOSE="float16=0")[0]
        half = check_stream(out, children=0)
        expect(half["half"].get("reason") == "lacks float16", f"{where}: {half}")


def check_imposed(runner: str, profile: Record, modules: dict[str, bytes]) -> None:
    """What TILEFARM_IMPOSE takes away is gone for kernels, too, and not only in the profile."""
    with tempfile.TemporaryDirectory() as temporary:
        job = VulkanJob(Path(temporary), profile["adapter"], modules)
        job.one("subgroup", "subgroup", 2, 0)
        job.one("double", "double", 2, 0)
        job.write()
        impose = "subgroup_arithmetic=0,timer_query=0"
        ends = check_stream(run(runner, Path(temporary), TILEFARM_IMPOSE=impose)[0], children=1)
        expect(ends["subgroup"].get("reason") == "lacks subgroup_arithmetic", f"imposed: {ends}")
        expect(ends["subgroup"]["status"] == "unsupported", f"imposed: {ends}")
        timing = ends["double"]["timing"]
        expect(timing["gpu_timer"] == "absent" and not timing["gpu_ns"], f"imposed: {timing}")


def test_g1_19_no_pipeline_cache_is_left_or_read(
    runner: str, profile: Record, modules: dict[str, bytes]
) -> None:
    """G1-19: with a home of its own a run leaves nothing there that a later driver could stumble over."""
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryDirectory() as home:
        job = VulkanJob(Path(temporary), profile["adapter"], modules)
        job.one("double", "double", 2, 0)
        job.write()
        for _ in range(2):
            out = run(runner, Path(temporary), HOME=home, XDG_CACHE_HOME=f"{home}/cache")[0]
            record = check_stream(out, children=1)["double"]
            expect(record["status"] == "ok" and record["timing"]["reused"] == 0, f"G1-19: {record}")
        left = [str(path) for path in Path(home).rglob("*")]
        expect(not left, f"G1-19: {profile['adapter']} left {left}")


def main() -> int:
    runner, glslang = sys.argv[1:3]
    profiles = probe(runner)
    expect(len({p["adapter"] for p in profiles}) == len(profiles) > 0, "adapters are not distinct")
    missing = set(sys.argv[3:]) - {p["driver"]["id"] for p in profiles}
    expect(not missing, f"no driver of id {missing} here: scripts/setup test installs them")
    with tempfile.TemporaryDirectory() as temporary:
        modules = compiled(glslang, Path(temporary))
    check_other_probes(runner, profiles)
    for profile in profiles:
        check_profile(profile)
        check_adapter(runner, profile, modules)
        check_imposed(runner, profile, modules)
        test_g1_19_no_pipeline_cache_is_left_or_read(runner, profile, modules)
    print(f"vulkan_job: all records are as documented on {len(profiles)} drivers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""A device made ready: the right runner, installed once, and a probe that is believed only when whole."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError, NotInstalled, TruncatedOutput
from tests.unit.workers import streams
from tests.unit.workers.fake_device import WORKDIR, FakeDevice
from workers.bench import install_runner, probe, runner_build
from workers.transports.base import CommandResult

PROFILE: dict[str, object] = {
    "format": 1,
    "api": "gles",
    "vendor": "Qualcomm",
    "renderer": "Adreno (TM) 750",
    "version": "OpenGL ES 3.2 V@0762.10",
    "glsl": "OpenGL ES GLSL ES 3.20",
    "library": "/vendor/lib64/egl/libGLESv2_adreno.so",
    "limits": {"shared_bytes": 32768, "invocations": 1024},
    "extensions": ["GL_EXT_disjoint_timer_query"],
    "features": {"pack_half": True, "timer_query": False},
    "timer_bits": 0,
    "imposed": False,
    "imposed_limits": [],
}


def probed(*lines: bytes, exit_code: int = 0) -> FakeDevice:
    return FakeDevice(probe_result=CommandResult(exit_code, b"".join(lines)))


def profile_line(**changes: object) -> bytes:
    return streams.line("profile", **(PROFILE | changes))


def runner(folder: Path, preset: str) -> Path:
    path = folder / preset / "tilefarm-runner"
    path.parent.mkdir(parents=True)
    path.write_bytes(f"\x7fELF {preset}".encode())
    return path


@pytest.mark.parametrize(
    ("properties", "preset"),
    [
        ({}, "linux"),
        ({"ro.product.cpu.abi": "arm64-v8a"}, "android-arm64-v8a"),
        ({"ro.product.cpu.abi": "armeabi-v7a"}, "android-armeabi-v7a"),
        ({"ro.product.cpu.abi": "x86_64"}, "android-x86_64"),
        ({"ro.product.cpu.abi": "arm64-v8a", "ro.tilefarm.virtual": "1"}, "linux"),
        ({"ro.product.cpu.abi": "arm64-v8a", "ro.tilefarm.virtual": "0"}, "android-arm64-v8a"),
    ],
)
def test_each_device_gets_the_build_it_can_execute(
    tmp_path: Path, properties: dict[str, str], preset: str
) -> None:
    for name in ("linux", "android-arm64-v8a", "android-armeabi-v7a", "android-x86_64"):
        runner(tmp_path, name)
    assert runner_build(properties, tmp_path) == tmp_path / preset / "tilefarm-runner"


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({}, "run `make runner`"),
        ({"ro.product.cpu.abi": "arm64-v8a"}, "ANDROID_NDK_HOME"),
        ({"ro.product.cpu.abi": "riscv64"}, "no runner for ABI 'riscv64'; known: arm64-v8a"),
    ],
)
def test_a_runner_that_is_not_built_says_how(tmp_path: Path, properties: dict[str, str], says: str) -> None:
    with pytest.raises(NotInstalled) as caught:
        runner_build(properties, tmp_path)
    assert says in str(caught.value)


def test_a_runner_is_installed_once_and_can_be_executed(tmp_path: Path) -> None:
    phone = FakeDevice()
    build = runner(tmp_path, "linux")
    path = install_runner(phone, build)
    assert path == f"{WORKDIR}/bin/tilefarm-runner-{sha256_hex(build.read_bytes())[:16]}"
    assert phone.files[path] == build.read_bytes()
    assert phone.modes[path] & 0o111
    assert install_runner(phone, build) == path
    assert phone.pushed == [path]


def test_another_build_is_another_file(tmp_path: Path) -> None:
    """A worker of an older version may still be running the old one."""
    phone = FakeDevice()
    build = runner(tmp_path, "linux")
    old = install_runner(phone, build)
    build.write_bytes(b"\x7fELF newer")
    assert install_runner(phone, build) != old
    assert old in phone.files


def test_a_runner_cut_short_is_installed_again(tmp_path: Path) -> None:
    phone = FakeDevice()
    build = runner(tmp_path, "linux")
    path = install_runner(phone, build)
    phone.files[path] = b"\x7fE"
    install_runner(phone, build)
    assert phone.files[path] == build.read_bytes()


def test_a_probe_gives_one_profile_an_api() -> None:
    phone = probed(streams.whole(profile_line(), profile_line(api="vulkan", renderer="Turnip")))
    gles, vulkan = probe(phone, f"{WORKDIR}/bin/tilefarm-runner-x")
    assert (gles.api, gles.renderer, gles.limits["shared_bytes"]) == ("gles", "Adreno (TM) 750", 32768)
    assert gles.features == {"pack_half": True, "timer_query": False}
    assert (vulkan.api, vulkan.renderer) == ("vulkan", "Turnip")


RUNNER = f"{WORKDIR}/bin/tilefarm-runner-x"


def test_no_driver_says_what_to_install() -> None:
    with pytest.raises(InfraError, match=r"found no GPU driver \(exit code 3\).*libegl1"):
        probe(probed(exit_code=3), RUNNER)


def test_drivers_and_proofs_that_hang_fit_into_a_probe() -> None:
    """The runner ends each by itself (probe.c: 60 s an opening, 20 s a proof); cut off before, the whole
    probe is lost. Two GPUs that never open and thirteen proofs of a third that hang must fit."""
    given: list[float] = []

    class Timed(FakeDevice):
        def run(
            self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
        ) -> CommandResult:
            given.append(timeout_s)
            return super().run(argv, timeout_s=timeout_s, env=env)

    whole = CommandResult(0, streams.whole(profile_line()))
    assert len(probe(Timed(probe_result=whole), RUNNER)) == 1
    assert given[0] >= 2 * 60 + 13 * 20


def test_words_of_a_failed_probe_are_shown_safely() -> None:
    """They come from a phone: no escape sequence reaches the terminal."""
    with pytest.raises(InfraError) as caught:
        probe(probed(b"CANNOT LINK EXECUTABLE \x1b[31m\xff", exit_code=1), RUNNER)
    assert "CANNOT LINK EXECUTABLE" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_failed_probe_says_what_the_runner_said() -> None:
    said = b"tilefarm-runner: vulkan 13-6d65: validation: VUID-VkDeviceCreateInfo-pNext"
    with pytest.raises(InfraError, match="validation: VUID-VkDeviceCreateInfo-pNext"):
        probe(FakeDevice(probe_result=CommandResult(3, b"", said)), RUNNER)


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_g2_01_a_probe_that_is_cut_gives_no_profile(cut: int) -> None:
    with pytest.raises(TruncatedOutput):
        probe(probed(streams.whole(profile_line())[:cut]), RUNNER)


@pytest.mark.parametrize(
    "line", [profile_line(format=2), profile_line(limits="many"), streams.line("profile")]
)
def test_a_profile_of_another_shape_is_named(line: bytes) -> None:
    with pytest.raises(TruncatedOutput, match=r"bad profile|speaks format"):
        probe(probed(streams.whole(line)), RUNNER)


def test_what_a_newer_runner_adds_to_a_profile_is_passed_over() -> None:
    assert probe(probed(streams.whole(profile_line(novelty=1))), RUNNER)[0].api == "gles"

"""What this machine reaches, and what it says of devices that it cannot use."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError, NotInstalled, UsageError
from orchestrator.domain.profile import Profile
from orchestrator.domain.settings import Settings
from tests.unit.workers import gpus
from tests.unit.workers.test_bench import runner
from workers import discovery
from workers.discovery import Reachable, Unreachable, discover, find
from workers.transports.adb_listing import PhoneListing, parse_listing
from workers.transports.phones import Phone

LISTING = (
    "adb-XXXX (2)._adb-tls-connect._tcp\tdevice\n"
    "192.168.1.5:5555\tdevice\n"
    "R5CX1234\tunauthorized\n"
    "\n"
    "0123456789\tno permissions (user in plugdev group; are your udev rules wrong?)\n"
)


@pytest.fixture
def adb(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | Exception], None]:
    """Let the adb server list this, or fail like this."""

    def listing(answer: str | Exception) -> None:
        def start(server: object) -> object:
            if isinstance(answer, NotInstalled):
                raise answer
            return server

        def rows(_server: object) -> object:
            if isinstance(answer, Exception):
                raise answer
            return parse_listing(answer)

        def each_by_itself(listings: Sequence[PhoneListing], _open: object) -> list[Phone]:
            return [Phone(row) for row in listings if row.usable]

        monkeypatch.setattr(discovery, "distinct_phones", each_by_itself)
        monkeypatch.setattr(discovery, "start_server", start)
        monkeypatch.setattr(discovery, "list_phones", rows)

    return listing


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    runner(tmp_path / "build", "linux")
    return Settings(runner_dir=tmp_path / "build", workdir=tmp_path / "work")


Machine = Callable[..., None]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Let the probe of this machine find these profiles, or fail; at first llvmpipe and lavapipe."""

    def has(*profiles: Profile, error: Exception | None = None) -> None:
        def probed(*_: object) -> list[Profile]:
            if error is not None:
                raise error
            return list(profiles)

        monkeypatch.setattr(discovery, "probe", probed)

    has(gpus.gles(), gpus.vulkan())
    return has


Adb = Callable[[str | Exception], None]
OWN = ["local:llvmpipe", "local:lavapipe"]


def serials(devices: Sequence[Reachable | Unreachable]) -> list[str]:
    return [d.serial for d in devices]


def test_g2_02_every_row_is_found_and_unusable_ones_say_why(adb: Adb, settings: Settings) -> None:
    adb(LISTING)
    found = discover(settings)
    assert serials(found.reachable) == [*OWN, "adb-XXXX (2)._adb-tls-connect._tcp", "192.168.1.5:5555"]
    assert [f.transport for f in found.reachable] == ["local", "local", "adb", "adb"]
    assert serials(found.unreachable) == ["R5CX1234", "0123456789"]
    assert "accept this host's key" in found.unreachable[0].why
    assert "udev" in found.unreachable[1].why


@pytest.mark.parametrize("wanted", ["local", "local:lavapipe", "local:nosuch"])
def test_for_this_machines_own_gpus_adb_is_not_asked(adb: Adb, settings: Settings, wanted: str) -> None:
    adb(AssertionError("asked"))
    assert serials(discover(settings, [wanted]).reachable) == OWN


def test_for_a_phone_no_gpu_of_this_machine_is_probed(adb: Adb, machine: Machine, settings: Settings) -> None:
    adb(LISTING)
    machine(error=AssertionError("probed"))
    assert serials(discover(settings, ["192.168.1.5:5555"]).to_open(["192.168.1.5:5555"])) == [
        "192.168.1.5:5555"
    ]
    assert find("192.168.1.5:5555", settings).transport == "adb"


def test_without_adb_this_machines_own_gpus_are_still_there(adb: Adb, settings: Settings) -> None:
    adb(NotInstalled("adb is not installed: apt install adb"))
    found = discover(settings)
    assert serials(found.reachable) == OWN
    assert list(found.unreachable) == [], "nothing is missing that nobody has"
    assert "apt install adb" in found.no_adb
    assert discover(settings, ["lavapipe"]).no_adb == "", "nobody asked for a phone"


def test_an_adb_server_that_does_not_answer_is_missing(adb: Adb, settings: Settings) -> None:
    adb(InfraError("no answer"))
    assert discover(settings).unreachable == [Unreachable("adb", "no answer")]


@pytest.mark.parametrize(
    ("wanted", "opened"),
    [
        ([], ["local:NVIDIA-H200", "P1", "P2"]),
        (["local"], ["local:NVIDIA-H200"]),
        (["lavapipe"], ["local:lavapipe"]),
        (["local:lavapipe"], ["local:lavapipe"]),
        (["NVIDIA-H200"], ["local:NVIDIA-H200"]),
        (["P2"], ["P2"]),
        (["SM8650"], ["P1", "P2"]),  # known only once they are open
        (["local", "SM8650"], ["local:NVIDIA-H200", "P1", "P2"]),
    ],
)
def test_what_a_name_opens(
    adb: Adb, machine: Machine, settings: Settings, wanted: list[str], opened: list[str]
) -> None:
    """On a workstation with a GPU, lavapipe spends no night unless somebody asks for it."""
    adb("P1\tdevice\nP2\tdevice\n")
    machine(gpus.H200_GLES, gpus.h200(), gpus.vulkan())
    assert serials(discover(settings, wanted).to_open(wanted)) == opened


def test_a_device_id_names_a_gpu_of_this_machine(adb: Adb, settings: Settings) -> None:
    adb(LISTING)
    (name,) = [n for n in discover(settings).reachable[1].also if n.startswith("local-")]
    assert name.endswith("-lavapipe")
    assert serials(discover(settings, [name]).to_open([name])) == ["local:lavapipe"]


def test_a_machine_without_a_driver_says_why(adb: Adb, machine: Machine, settings: Settings) -> None:
    adb("P1\tdevice\n")
    machine(error=InfraError("no driver: apt install libegl1"))
    found = discover(settings)
    assert (serials(found.reachable), found.unreachable) == (
        ["P1"],
        [Unreachable("local", "no driver: apt install libegl1")],
    )
    with pytest.raises(InfraError, match="apt install libegl1"):
        find("local", settings)


def test_a_runner_that_is_not_built_says_how(tmp_path: Path) -> None:
    settings = Settings(runner_dir=tmp_path / "none", workdir=tmp_path / "work")
    (own,) = discover(settings, ["local"]).unreachable
    assert own.serial == "local"
    assert "make runner" in own.why


def test_a_folder_that_cannot_be_written_names_its_setting(settings: Settings) -> None:
    (own,) = discover(settings.model_copy(update={"workdir": Path("/proc/nope")}), ["local"]).unreachable
    assert "TILEFARM_WORKDIR" in own.why


def test_a_serial_is_found_as_adb_lists_it(adb: Adb, settings: Settings) -> None:
    adb(LISTING)
    serial = "adb-XXXX (2)._adb-tls-connect._tcp"
    assert find(serial, settings) == Reachable("adb", serial)


@pytest.mark.parametrize("name", ["local:lavapipe", "lavapipe"])
@pytest.mark.parametrize("trouble", [NotInstalled("no adb"), InfraError("no answer")])
def test_a_gpu_of_this_machine_is_found_by_its_names(
    adb: Adb, settings: Settings, name: str, trouble: Exception
) -> None:
    adb(trouble)
    assert find(name, settings).serial == "local:lavapipe"


def test_local_is_the_one_gpu_or_a_question(machine: Machine, settings: Settings) -> None:
    """One worker serves one device."""
    with pytest.raises(UsageError, match=r"several.*--device local:llvmpipe, --device local:lavapipe"):
        find("local", settings)
    machine(gpus.H200_GLES, gpus.h200(), gpus.vulkan())
    assert find("local", settings).serial == "local:NVIDIA-H200"


@pytest.mark.parametrize(
    ("serial", "says"),
    [
        ("R5CX1234", "unauthorized: accept this host's key"),
        ("nosuch", "not listed by adb. Devices here: local:llvmpipe, local:lavapipe, adb-XXXX"),
        ("adb-XXXX", "not listed by adb"),
        ("local:nosuch", "no such GPU on this machine. Devices here: local:llvmpipe, local:lavapipe"),
    ],
)
def test_a_serial_that_cannot_be_used_says_why(adb: Adb, settings: Settings, serial: str, says: str) -> None:
    adb(LISTING)
    with pytest.raises(UsageError) as caught:
        find(serial, settings)
    assert says in str(caught.value)


def test_without_adb_every_serial_says_so(adb: Adb, settings: Settings) -> None:
    adb(NotInstalled("adb is not installed: apt install adb"))
    with pytest.raises(UsageError, match="apt install adb"):
        find("R5CX1234", settings)


def test_a_phone_that_is_listed_twice_is_one_device(
    adb: Adb, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    adb("emulator-5554\tdevice\n127.0.0.1:5555\tdevice\n")

    def twins(listings: Sequence[PhoneListing], _open: object) -> list[Phone]:
        return [Phone(listings[0], also=(listings[1].serial,))]

    monkeypatch.setattr(discovery, "distinct_phones", twins)
    found = [find(serial, settings).serial for serial in ("127.0.0.1:5555", "emulator-5554")]
    assert found == ["emulator-5554"] * 2
    assert len(discover(settings).reachable) == len(OWN) + 1


def test_a_phone_that_does_not_answer_is_not_used(
    adb: Adb, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    adb("R5CX1234\tdevice\n")

    def silent(listings: Sequence[PhoneListing], _open: object) -> list[Phone]:
        return [Phone(listings[0], problem="tells no serial number; it may still be booting")]

    monkeypatch.setattr(discovery, "distinct_phones", silent)
    assert serials(discover(settings).unreachable) == ["R5CX1234"]

"""What this machine reaches, and what it says of devices that it cannot use."""

from collections.abc import Callable, Sequence

import pytest

from orchestrator.domain.errors import InfraError, NotInstalled, UsageError
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


def test_g2_02_every_row_is_found_and_unusable_ones_say_why(adb: Callable[[str | Exception], None]) -> None:
    adb(LISTING)
    found = discover()
    assert found.reachable == [
        Reachable("local", "local"),
        Reachable("adb", "adb-XXXX (2)._adb-tls-connect._tcp"),
        Reachable("adb", "192.168.1.5:5555"),
    ]
    assert [u.serial for u in found.unreachable] == ["R5CX1234", "0123456789"]
    assert "accept this host's key" in found.unreachable[0].why
    assert "udev" in found.unreachable[1].why


def test_without_phones_adb_is_not_asked(adb: Callable[[str | Exception], None]) -> None:
    adb(AssertionError("asked"))
    assert discover(phones=False).reachable == [Reachable("local", "local")]


def test_without_adb_the_machines_own_gpu_is_still_there(adb: Callable[[str | Exception], None]) -> None:
    adb(NotInstalled("adb is not installed: apt install adb"))
    found = discover()
    assert found.reachable == [Reachable("local", "local")]
    assert found.unreachable == [], "nothing is missing that nobody has"
    assert "apt install adb" in found.no_adb


def test_an_adb_server_that_does_not_answer_is_missing(adb: Callable[[str | Exception], None]) -> None:
    adb(InfraError("no answer"))
    assert discover().unreachable == [Unreachable("adb", "no answer")]


def test_a_serial_is_found_as_adb_lists_it(adb: Callable[[str | Exception], None]) -> None:
    adb(LISTING)
    assert find("adb-XXXX (2)._adb-tls-connect._tcp") == Reachable(
        "adb", "adb-XXXX (2)._adb-tls-connect._tcp"
    )
    assert find("local") == Reachable("local", "local")


@pytest.mark.parametrize(
    ("serial", "says"),
    [
        ("R5CX1234", "unauthorized: accept this host's key"),
        ("nosuch", "not listed by adb. Devices here: local, adb-XXXX"),
        ("adb-XXXX", "not listed by adb"),
    ],
)
def test_a_serial_that_cannot_be_used_says_why(
    adb: Callable[[str | Exception], None], serial: str, says: str
) -> None:
    adb(LISTING)
    with pytest.raises(UsageError) as caught:
        find(serial)
    assert says in str(caught.value)


def test_without_adb_every_serial_says_so(adb: Callable[[str | Exception], None]) -> None:
    adb(NotInstalled("adb is not installed: apt install adb"))
    with pytest.raises(UsageError, match="apt install adb"):
        find("R5CX1234")


def test_a_phone_that_is_listed_twice_is_one_device(
    adb: Callable[[str | Exception], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    adb("emulator-5554\tdevice\n127.0.0.1:5555\tdevice\n")

    def twins(listings: Sequence[PhoneListing], _open: object) -> list[Phone]:
        return [Phone(listings[0], also=(listings[1].serial,))]

    monkeypatch.setattr(discovery, "distinct_phones", twins)
    assert find("127.0.0.1:5555").serial == find("emulator-5554").serial == "emulator-5554"
    assert len(discover().reachable) == 2


def test_a_phone_that_does_not_answer_is_not_used(
    adb: Callable[[str | Exception], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    adb("R5CX1234\tdevice\n")

    def silent(listings: Sequence[PhoneListing], _open: object) -> list[Phone]:
        return [Phone(listings[0], problem="tells no serial number; it may still be booting")]

    monkeypatch.setattr(discovery, "distinct_phones", silent)
    assert [u.serial for u in discover().unreachable] == ["R5CX1234"]

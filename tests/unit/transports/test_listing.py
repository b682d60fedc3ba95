"""Rows of the adb server's list (field cases G2-02, G2-08)."""

import pytest

from workers.transports.adb_listing import PhoneListing, is_address, parse_listing

ODD = "adb-28161FDH2000XX-abcdef (2)._adb-tls-connect._tcp"
NO_PERMISSIONS = (
    "no permissions (user in plugdev group; are your udev rules wrong?); see [http://developer.android.com]"
)


def states(text: str) -> dict[str, str]:
    return {row.serial: row.state for row in parse_listing(text)}


def test_g2_02_serials_with_spaces():
    text = (
        f"{ODD}\tdevice\n"
        "192.168.1.5:5555\tdevice\n"
        "emulator-5554\toffline\n"
        f"0123456789\t{NO_PERMISSIONS}\n"
        "ABCDEF\tunauthorized\n"
        "\n"
        "GHI\toffline\n"
        "   \n"
    )
    assert states(text) == {
        ODD: "device",
        "192.168.1.5:5555": "device",
        "emulator-5554": "offline",
        "0123456789": "no permissions",
        "ABCDEF": "unauthorized",
        "GHI": "offline",
    }


def test_g2_02_padded_rows_of_devices_l():
    text = (
        "List of devices attached\r\n"
        f"{ODD} device product:husky model:Pixel_8_Pro device:husky transport_id:7\r\n"
        "192.168.1.5:5555       device product:a model:b device:c transport_id:12\r\n"
        "emulator-5554          offline transport_id:3\r\n"
        "ABCDEF unauthorized usb:1-4 transport_id:9\r\n"
        f"0123456789             {NO_PERMISSIONS} usb:1-2 transport_id:10\r\n"
        "\r\n"
    )
    assert states(text) == {
        ODD: "device",
        "192.168.1.5:5555": "device",
        "emulator-5554": "offline",
        "ABCDEF": "unauthorized",
        "0123456789": "no permissions",
    }


def test_g2_08_banner_lines_are_no_phones():
    text = (
        "adb server version (41) doesn't match this client (39); killing...\n"
        "* daemon not running; starting now at tcp:5037\n"
        "* daemon started successfully\n"
        "List of devices attached\n"
        "ABC\tdevice\n"
    )
    assert states(text) == {"ABC": "device"}


@pytest.mark.parametrize(
    "word", ["unauthorized", "offline", "no permissions (x)", "bootloader", "authorizing"]
)
def test_a_phone_that_cannot_be_used_says_why(word: str):
    (row,) = parse_listing(f"ABC\t{word}\n")
    assert row.reason
    assert not row.usable


def test_g2_08_unauthorized_names_the_action_of_the_operator():
    (row,) = parse_listing("ABC\tunauthorized\n")
    assert "accept" in row.reason
    assert "screen" in row.reason


def test_a_usable_phone_has_no_reason():
    assert parse_listing("ABC\tdevice\n") == [PhoneListing("ABC", "device", "")]


def test_a_state_that_nobody_knows_yet_is_told_and_not_used():
    (row,) = parse_listing("ABC\tfrobnicating wildly\n")
    assert (row.state, row.usable) == ("unknown", False)
    assert "frobnicating wildly" in row.reason


def test_nothing_listed():
    assert parse_listing("") == []


@pytest.mark.parametrize(
    "serial", ["10.0.0.1:22", "shelf-3_a.lan:5555", "[::1]:5555", "[fe80::1%eth0]:5555", "localhost:65535"]
)
def test_addresses(serial: str):
    assert is_address(serial)
    assert states(f"{serial}\tdevice\n") == {serial: "device"}


@pytest.mark.parametrize(
    "serial",
    [
        *("R58N12ABCDE", ODD, "emulator-5554", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536"),
        *("10.0.0.1:22:33", "10.0.0.1:reconnect", "10.0.0.1:22\n", "10.0.0.1:\u0662\u0662", " a:1", "a b:1"),
        *("0c:98:38:aa:bb:cc", "-a:1", "::1:22", "usb:1", "model:5", "product:5", "device:5", "tcp:5555"),
    ],
)
def test_what_is_no_address(serial: str):
    assert not is_address(serial)


@pytest.mark.parametrize("serial", ["usb:1-4", "product:a", "model:b", "device:c", "tcp:10.0.0.1:22"])
def test_a_serial_that_adb_would_look_for_among_other_phones_is_not_served(serial: str):
    (row,) = parse_listing(f"{serial}\tdevice\n")
    assert (row.state, row.usable) == ("unknown", False)
    assert "other phones" in row.reason

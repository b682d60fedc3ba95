"""Adb servers of other versions, and things that only look like one (field case G2-08)."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from orchestrator.domain.errors import InfraError
from workers.transports.adb import AdbServer, list_phones

CALL_S = 30.0


@contextmanager
def answering(*answers: bytes) -> Generator[AdbServer]:
    """A server that gives the n-th client the n-th answer, whatever it asks, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                client, _ = listener.accept()
                with client:
                    client.recv(1024)
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield AdbServer("127.0.0.1", int(listener.getsockname()[1]))
        thread.join(CALL_S)


def block(text: bytes) -> bytes:
    return b"OKAY%04x%s" % (len(text), text)


def test_g2_08_a_replaced_server_is_seen_by_its_version():
    with answering(block(b"0029"), block(b"0027")) as server:
        assert [server.version(), server.version()] == [41, 39]


def test_g2_08_banners_in_the_list_of_an_older_server():
    text = b"* daemon not running; starting now at tcp:5037\n* daemon started successfully\nA B (2)\tdevice\n"
    with answering(block(text)) as server:
        assert [row.serial for row in list_phones(server)] == ["A B (2)"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"OK",
        b"OKAY",
        b"OKAY00",
        b"OKAY0004x",
        b"OKAY0004zzzz",
        b"OKAYzzzz",
        b"HTTP/1.1 400\r\n\r\n",
        b"FAIL",
    ],
)
def test_half_answers_and_other_protocols_are_infra_errors(answer: bytes):
    with answering(answer) as server, pytest.raises(InfraError, match="adb server 127"):
        server.version()


def test_half_a_list_is_no_list():
    with (
        answering(block(b"A\tdevice\nB\tdevice\n")[:-9]) as server,
        pytest.raises(InfraError, match="hung up"),
    ):
        list_phones(server)


def test_a_failure_carries_the_servers_reason():
    with answering(b"FAIL0009not today") as server, pytest.raises(InfraError, match="not today"):
        server.version()

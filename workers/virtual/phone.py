"""A phone without a phone: speaks adb's transport protocol on a TCP port of this machine."""

import asyncio
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.domain.errors import UsageError
from workers.virtual.faults import Fault, FaultBox, parse_fault
from workers.virtual.link import Body, Link
from workers.virtual.listener import Listener
from workers.virtual.profile import PhoneProfile
from workers.virtual.root import PhoneRoot
from workers.virtual.shell import Shell

_ABI_BY_MACHINE = {"x86_64": "x86_64", "aarch64": "arm64-v8a", "armv7l": "armeabi-v7a", "i686": "x86"}
CONTROL_FILE = "faults.txt"
"""In the phone's ``.phone`` folder: one fault a line, read again whenever a service ends."""


class VirtualPhone:
    """``async with VirtualPhone(profile, root) as phone: … phone.port``."""

    def __init__(
        self,
        profile: PhoneProfile,
        root: Path,
        faults: Iterable[Fault | str] = (),
        *,
        serial: str | None = None,
        port: int = 0,
        say: Callable[[str], None] = print,
    ) -> None:
        """``port`` 0 takes a free one; ``serial`` replaces the profile's, for several phones of a kind.

        ``say`` tells whoever runs the phone what is wrong with the control file.

        Raises:
            UsageError: a fault or the root folder cannot be used.
        """
        self.profile = profile
        self.root = PhoneRoot(root)
        given = [parse_fault(fault) if isinstance(fault, str) else fault for fault in faults]
        self.faults = FaultBox([*profile.faults, *given])
        self.serial = serial or profile.serial
        self.port = port
        self._say = say
        self.boots = 0
        self._shell = Shell(profile, self.root)
        self._listener: Listener | None = None
        self._links: set[Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._control_mtime_ns = 0
        self.down = False

    @property
    def address(self) -> str:
        """What ``adb connect`` takes."""
        return f"127.0.0.1:{self.port}"

    @property
    def links(self) -> int:
        """How many adb servers hold a link to it now."""
        return len(self._links)

    def properties(self) -> dict[str, str]:
        """The profile's, with those that tell the truth about the host that runs the commands."""
        machine = platform.machine()
        abi = _ABI_BY_MACHINE.get(machine, machine)
        return {
            **self.profile.props,
            "ro.serialno": self.serial,
            "ro.boot.serialno": self.serial,
            "ro.product.cpu.abi": abi,
            "ro.product.cpu.abilist": abi,
            "ro.tilefarm.virtual": "1",
            "ro.tilefarm.profile": self.profile.name,
            "sys.boot_completed": "1",
        }

    async def __aenter__(self) -> Self:
        """
        Raises:
            UsageError: the root folder cannot be written, or there is no such port.
            InfraError: the port is taken.
        """
        try:
            self.root.make(self.profile, self.properties())
        except OSError as e:
            raise UsageError(
                f"{self.root.folder}: no place for a virtual phone's files ({e.strerror}). "
                "Choose another folder with --root."
            ) from e
        self._listener = Listener(self.port)
        self.port = self._listener.port
        await self._listener.open(self._accept)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.release()
            self._listener = None
        await self._unplug()
        await self._shell.end_all()
        while self._serving:
            await asyncio.wait(self._serving)
        await self._shell.end_all()  # what a service had just been starting

    async def reboot(self, down_s: float = 0.2) -> None:
        """Every link drops, every command dies, the boot id changes; reachable again after ``down_s``."""
        self.down = True
        if self._listener is not None:
            self._listener.close()
        await self._unplug()
        await self._shell.end_all()
        self.root.new_boot_id()
        self.boots += 1
        await asyncio.sleep(down_s)
        if self._listener is not None:
            await self._listener.open(self._accept)
        self.down = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listener is None:  # accepted a moment before the phone was left
            writer.close()
            return
        self._read_control_file()
        link = Link(
            reader,
            writer,
            Body(
                self.profile,
                self.root,
                self._shell,
                self.faults,
                strike=self._strike,
                service_ended=self._service_ended,
            ),
        )
        task = asyncio.current_task()
        if task is not None:
            self._keep(task)
        self._links.add(link)
        try:
            await link.serve()
        finally:
            self._links.discard(link)

    async def _unplug(self) -> None:
        for link in list(self._links):
            link.drop()

    async def _strike(self, fault: Fault) -> None:
        """A reboot goes on by itself: the service that set it off dies in it."""
        if fault.kind == "reboot":
            self._keep(asyncio.create_task(self.reboot(fault.down_ms / 1000)))
        else:
            await self._unplug()

    async def _service_ended(self) -> None:
        self._read_control_file()
        if self.root.reboot_asked():
            self._keep(asyncio.create_task(self.reboot()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Leaving the phone waits for it."""
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    def _read_control_file(self) -> None:
        """Faults from the control file replace all others whenever it changed.

        One that cannot be used is said and changes nothing: the link that is served goes on.
        """
        file = self.root.state / CONTROL_FILE
        try:
            changed = file.stat().st_mtime_ns
            if changed != self._control_mtime_ns:
                self._control_mtime_ns = changed
                lines = file.read_text("utf-8").splitlines()
                self.faults.replace([parse_fault(line) for line in lines if line.strip()])
        except FileNotFoundError:
            pass
        except (UsageError, OSError, UnicodeError) as e:
            self._say(f"{file}: {e} The faults stay as they were.")

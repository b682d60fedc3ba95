"""The folder that is a virtual phone's file system, and the stub programs in it."""

import os
import re
import shlex
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from orchestrator.domain.errors import UsageError
from workers.virtual.icd import driver_environment
from workers.virtual.profile import PhoneProfile

_SAFE_ROOT = re.compile(r"/[A-Za-z0-9._/+-]*\Z")
_MAPPED = ("/data/local/tmp", "/sdcard", "/proc/sys/kernel/random/boot_id")
_IN_TEXT = re.compile(rf"(?<![\w./+-])({'|'.join(map(re.escape, _MAPPED))})(?![\w.-])")
"""Absolute paths in a command; a path that has the root in front of it already is left alone."""

_STUBS = {
    "getprop": """
if [ $# -eq 0 ]; then exec cat "$PHONE/props.txt"; fi
case "$1" in */*) ;; *) [ -f "$PHONE/props/$1" ] && exec cat "$PHONE/props/$1" ;; esac
echo "${2-}"
""",
    "dumpsys": """
case "${1-}" in
  */*) ;;
  "") echo "Currently running services:"; exec ls "$PHONE/dumpsys" ;;
  *) [ -f "$PHONE/dumpsys/$1" ] && exec cat "$PHONE/dumpsys/$1" ;;
esac
echo "Can't find service: $1"
""",
    "settings": """
file="$PHONE/settings/$2/$3"
case "$1" in
  get) if [ -f "$file" ]; then cat "$file"; else echo null; fi ;;
  put) mkdir -p "$PHONE/settings/$2" && printf '%s\\n' "$4" > "$file" ;;
  delete) rm -f "$file" ;;
  *) echo "usage: settings get|put|delete NAMESPACE KEY [VALUE]" >&2; exit 1 ;;
esac
""",
    "input": """
printf 'input %s\\n' "$*" >> "$PHONE/calls.log"
[ "${2-}" = KEYCODE_WAKEUP ] && [ -f "$PHONE/dumpsys/power" ] || exit 0
sed 's/mWakefulness=.*/mWakefulness=Awake/' "$PHONE/dumpsys/power" > "$PHONE/dumpsys/.power"
mv "$PHONE/dumpsys/.power" "$PHONE/dumpsys/power"
""",
    "reboot": ': > "$PHONE/reboot"\n',
    "id": 'echo "uid=2000(shell) gid=2000(shell) groups=2000(shell) context=u:r:shell:s0"\n',
}
_ACCEPTED = ("svc", "am", "wm", "cmd", "logcat")
"""Taken without effect, each call noted in ``calls.log``."""


class PhoneRoot:
    """Paths of the phone ↔ paths of the host."""

    def __init__(self, folder: Path) -> None:
        """
        Raises:
            UsageError: the path holds characters that could not stand unquoted in a command.
        """
        self.folder = folder.resolve()
        if not _SAFE_ROOT.match(str(self.folder)):
            raise UsageError(
                f"{self.folder}: a virtual phone's folder may only hold A-Z a-z 0-9 . _ + - /. "
                "Choose another with --root."
            )
        self.state = self.folder / ".phone"

    def host_path(self, path: str) -> Path:
        """Where a path of the phone lies on the host; ``..`` does not leave the root."""
        inside = os.path.normpath("/" + path.lstrip("/"))
        if inside.startswith(f"{self.folder}/"):
            return Path(inside)
        return self.folder / inside.lstrip("/")

    def host_command(self, command: str) -> str:
        """A shell command with the phone's paths replaced."""
        return _IN_TEXT.sub(lambda match: f"{self.folder}{match[1]}", command)

    def environment(self, profile: PhoneProfile) -> dict[str, str]:
        """Environment of every command: the host's, without Tilefarm's own settings but the runner's checks,
        and with the one Vulkan driver that the profile borrows."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TILEFARM_") or name == "TILEFARM_VALIDATE"
        }
        return {
            **kept,
            **driver_environment(profile.gpu.vulkan, self.state / "no-such-driver.json"),
            "PATH": f"{self.state / 'bin'}:{os.environ.get('PATH', os.defpath)}",
            "PHONE": str(self.state),
            "TMPDIR": str(self.folder / "data/local/tmp"),
            "TILEFARM_IMPOSE": profile.gpu.impose(),
        }

    def make(self, profile: PhoneProfile, properties: Mapping[str, str]) -> None:
        """Create or refresh everything but the files that were pushed."""
        for path in ("data/local/tmp", "sdcard", "proc/sys/kernel/random"):
            (self.folder / path).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "props", "dumpsys", "settings"):
            shutil.rmtree(self.state / name, ignore_errors=True)
            (self.state / name).mkdir(parents=True)
        for name, text in _STUBS.items():
            self._program(name, text)
        for name in _ACCEPTED:
            self._program(name, f'printf \'%s\\n\' {shlex.quote(name)}" $*" >> "$PHONE/calls.log"\n')
        for name in profile.missing_tools:
            self._program(name, f"echo {shlex.quote(f'sh: {name}: not found')} >&2; exit 127\n")
        for name, text in profile.dumpsys.items():
            (self.state / "dumpsys" / name).write_text(text, "utf-8")
        for name, value in profile.settings.items():
            file = self.state / "settings" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(value + "\n", "utf-8")
        self.write_properties(properties)
        (self.state / "reboot").unlink(missing_ok=True)
        self.new_boot_id()

    def write_properties(self, properties: Mapping[str, str]) -> None:
        for name, value in properties.items():
            (self.state / "props" / name).write_text(value + "\n", "utf-8")
        listing = "".join(f"[{name}]: [{value}]\n" for name, value in sorted(properties.items()))
        (self.state / "props.txt").write_text(listing, "utf-8")

    def new_boot_id(self) -> None:
        file = self.folder / "proc/sys/kernel/random/boot_id"
        file.write_text(f"{uuid.uuid4()}\n", "ascii")

    def reboot_asked(self) -> bool:
        """True once after the stub ``reboot`` ran."""
        try:
            (self.state / "reboot").unlink()
        except FileNotFoundError:
            return False
        return True

    def _program(self, name: str, text: str) -> None:
        file = self.state / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}", "utf-8")
        file.chmod(0o755)

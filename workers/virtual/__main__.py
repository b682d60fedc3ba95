"""``python -m workers.virtual PROFILE``: a virtual phone until a signal ends it."""

import argparse
import sys
from functools import partial
from pathlib import Path

from orchestrator.domain.errors import TilefarmError
from workers.virtual.profile import shipped_profiles
from workers.virtual.serve import serve


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m workers.virtual",
        description="A virtual phone that an adb server can connect to.",
        epilog="Example: python -m workers.virtual old-android --connect --fault drop:on=runner,after=600",
    )
    parser.add_argument("profile", help=f"{', '.join(shipped_profiles())}; or a YAML file")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; default: a free one")
    parser.add_argument("--root", type=Path, help="folder of the phone's files; default: a temporary one")
    parser.add_argument("--serial", help="serial number property, for several phones of one profile")
    parser.add_argument("--fault", action="append", default=[], metavar="KIND[:key=value,…]")
    parser.add_argument("--connect", action="store_true", help="make the machine's adb server list it")
    given = parser.parse_args()
    try:
        serve(
            given.profile,
            port=given.port,
            root=given.root,
            faults=given.fault,
            serial=given.serial,
            connect=given.connect,
            say=partial(print, flush=True),
        )
    except TilefarmError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

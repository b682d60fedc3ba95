"""``python -m workers``: the worker process that `tilefarm run` starts for itself."""

import argparse
import sys
from pathlib import Path

from orchestrator.domain.errors import InfraError, TilefarmError
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import from_json
from workers.discovery import Reachable, find
from workers.serve import serve

EXIT_DEVICE = 4
"""The device or its link is at fault: the agent tries to get it back. After any other error (no driver, no
runner, another worker is there) a rung would mend nothing, and just another worker is tried, later."""


def main() -> int:
    """Serve until told to stop; the last line of the log says why it could not."""
    parser = argparse.ArgumentParser(prog="workers")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--device", help="serial as adb lists it, or a GPU of this machine: local:NAME")
    which.add_argument("--found", type=Path, help="a device as discovery wrote it, which is not probed again")
    given = parser.parse_args()
    settings = Settings()
    try:
        serve(_device(given, settings), settings.broker, settings)
    except TilefarmError as e:
        print(e, file=sys.stderr)
        return EXIT_DEVICE if isinstance(e, InfraError) and e.of_device else e.exit_code
    return 0


def _device(given: argparse.Namespace, settings: Settings) -> Reachable:
    path: Path | None = given.found
    if path is None:
        return find(str(given.device), settings)
    return from_json(Reachable, path.read_bytes(), str(path))


if __name__ == "__main__":
    sys.exit(main())

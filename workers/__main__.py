"""``python -m workers --device SERIAL``: the worker process that `tilefarm run` starts for itself."""

import argparse
import sys

from orchestrator.domain.errors import TilefarmError
from orchestrator.domain.settings import Settings
from workers.discovery import find
from workers.serve import serve


def main() -> int:
    """Serve until told to stop; the last line of the log says why it could not."""
    parser = argparse.ArgumentParser(prog="workers")
    parser.add_argument("--device", required=True, help="serial as adb lists it, or local")
    device = str(parser.parse_args().device)
    settings = Settings()
    try:
        serve(find(device), settings.broker, settings)
    except TilefarmError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

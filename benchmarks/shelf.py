"""Many virtual phones in one process, all on one adb server: a shelf of them.

    python -m benchmarks.shelf ROOT FIRST COUNT CASE_MS

Prints one address a line, then an empty line, and serves until its standard input ends. Phones run the
simulated runner of the chaos test, which takes CASE_MS a case and needs no GPU.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos.phones import profile_of
from workers.virtual.phone import VirtualPhone


async def serve(root: Path, numbers: range, case_ms: int) -> None:
    async with AsyncExitStack() as stack:
        for number in numbers:
            phone = VirtualPhone(profile_of(number, case_ms), root / f"phone{number}")
            await stack.enter_async_context(phone)
            print(phone.address)
        print(flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    root, first, count, case_ms = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    asyncio.run(serve(root, range(first, first + count), case_ms))


if __name__ == "__main__":
    main()

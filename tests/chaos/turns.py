"""``python -m tests.chaos.turns``: how long a second run waits behind a long one, in batches and in seconds.

On phones behind a real adb server, with `tilefarm run` as people start it and batches of about a minute.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.farm import ChaosFarm, chaos_farm
from tests.chaos.matrix import write_matrix
from tests.chaos.phones import Execution, notes
from tests.farm import COMMAND, REPOSITORY, wait_for

CASE_MS = 1000
SECOND_CASES = 10
PHONES = 2
WAIT_S = 600.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Of the second run for one phone, from the moment when its work was ready to be sent."""

    batches: int
    """Of the long run that began meanwhile."""
    seconds: float
    running_s: float
    """For so long the batch that ran then went on."""
    cases: int
    """In that batch."""


def start(farm: ChaosFarm, matrix: Path, user: str, *words: str) -> "subprocess.Popen[bytes]":
    with (farm.folder / f"{user}.log").open("ab") as log:
        return subprocess.Popen(
            [*COMMAND, "run", "--matrix", str(matrix), *words],
            cwd=REPOSITORY,
            env={**farm.environment, "TILEFARM_USER": user},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def runs(farm: ChaosFarm) -> list[str]:
    return sorted(p.parent.name for p in (farm.out / "runs").glob("*/manifest.json"))


def seen(farm: ChaosFarm, phone: int) -> list[Execution]:
    return [e for _, e in sorted(notes(farm.phones[phone]).executions.items())]


def waits(farm: ChaosFarm, long_id: str, second_id: str, ready_ns: int) -> list[Wait]:
    """Of each phone."""
    found: list[Wait] = []
    for phone in range(len(farm.phones)):
        told = seen(farm, phone)
        begun = next(e for e in told if e.run_id == second_id)
        before = [e for e in told if e.run_id == long_id and e.number < begun.number]
        running = [e for e in before if e.number < ready_ns][-1]
        later = [e for e in told if e.number > running.number]
        found.append(
            Wait(
                sum(e.number > ready_ns for e in before),
                (begun.number - ready_ns) / 1e9,
                (later[0].number - ready_ns) / 1e9,
                len(running.cases),
            )
        )
    return found


def measure(folder: Path, long_cases: int, long_words: Mapping[str, str], settle_s: float) -> list[Wait]:
    """The long run for a while, then the second one; the long one is ended once the second has begun."""
    with chaos_farm(folder, phones=PHONES, case_ms=CASE_MS, shelves=1) as farm:
        user, lane = long_words["user"], long_words["lane"]
        words = ["--nightly"] if lane == "nightly" else []
        long = start(farm, write_matrix(farm.folder, long_cases), user, *words)
        wait_for(lambda: len(runs(farm)) == 1, "the long run", WAIT_S)
        (long_id,) = runs(farm)
        time.sleep(settle_s)  # until its batches are as long as they will be
        other = farm.folder / "second"
        other.mkdir()
        second = start(farm, write_matrix(other, SECOND_CASES, first=2001), "ben")
        wait_for(lambda: len(runs(farm)) == 2, "the second run", WAIT_S)
        ready_ns = time.monotonic_ns()
        assert second.wait(WAIT_S) == 0, (farm.folder / "ben.log").read_text("utf-8")
        second_id = runs(farm)[-1]
        subprocess.run(
            [*COMMAND, "cancel", long_id, "--why", "measured"],
            cwd=REPOSITORY,
            env=farm.environment,
            check=True,
        )
        long.wait(WAIT_S)
        return waits(farm, long_id, second_id, ready_ns)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.turns", description=__doc__)
    parser.add_argument(
        "--settle", type=float, default=50.0, help="seconds of the long run before the second"
    )
    given = parser.parse_args()
    asked = (
        ("a run on demand behind a night of 1,000 cases a phone", {"user": "night", "lane": "nightly"}),
        ("10 cases of one person behind 1,000 of another", {"user": "anna", "lane": "ondemand"}),
    )
    for what, words in asked:
        with tempfile.TemporaryDirectory(prefix="tilefarm-turns-") as folder:
            for phone, wait in enumerate(measure(Path(folder), 1000, words, given.settle)):
                print(f"{what}, phone {phone}: {wait.seconds:.1f} s from ready to begun;", flush=True)
                print(
                    f"  a batch of {wait.cases} cases ran and took {wait.running_s:.1f} s more, "
                    f"{wait.batches} other batches came first",
                    flush=True,
                )


if __name__ == "__main__":
    main()

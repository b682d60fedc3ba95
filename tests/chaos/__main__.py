"""``python -m tests.chaos --seed N --cases 2000``: the long version of the chaos test, and its figures."""

import argparse
import tempfile
from pathlib import Path

from tests.chaos.check import check
from tests.chaos.farm import SKEW_S, VISIBILITY_S, chaos_farm
from tests.chaos.matrix import write_matrix
from tests.chaos.play import play
from tests.chaos.story import counted, story


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2000, help="on all phones together")
    parser.add_argument("--phones", type=int, default=4)
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--case-ms", type=int, default=100, help="what a phone takes for a case")
    parser.add_argument(
        "--any-phone", action="store_true", help="one phone of each SoC a case: `run --phones 1`"
    )
    parser.add_argument("--folder", type=Path, help="kept afterwards; default: a temporary one")
    given = parser.parse_args()
    if given.folder is not None:
        given.folder.mkdir(parents=True)
        tell(given, given.folder)
        return
    with tempfile.TemporaryDirectory(prefix="tilefarm-chaos-") as folder:
        tell(given, Path(folder))


def tell(given: argparse.Namespace, folder: Path) -> None:
    """Play it and print what came of it."""
    each = given.cases // given.phones
    words = ["--matrix", str(write_matrix(folder, each))]
    total = each * given.phones
    if given.any_phone:
        words += ["--phones", "1"]
        total //= 2
    events = story(given.seed, cases=total, phones=given.phones, shelves=2, events=given.events)
    for event in events:
        print(event, flush=True)
    with chaos_farm(folder, phones=given.phones, case_ms=given.case_ms) as farm:
        played = play(farm, words, events)
        found = check(farm, played.run_folder)
        again = farm.redeliveries()
    print(
        f"seed {given.seed}: {len(found.outcomes)} cases on {given.phones} phones in {played.seconds:.0f} s"
    )
    kinds = ", ".join(f"{kind} {count}" for kind, count in counted(played.struck).items())
    print(f"events: {len(played.struck)} ({kinds})")
    print(
        f"second shelf: clock {SKEW_S} s ahead, visibility timeout {VISIBILITY_S} s: "
        f"{again} messages delivered again"
    )
    print(f"accepted exactly once: {found.accepted}; digest of all outcomes: {found.digest}")
    print(f"named reasons: {sum(found.named.values())} {dict(found.named)}")
    print(f"executions of the runner: {found.executions}, cases in them: {found.executed}")
    print(f"trials on disk: {found.attempts}; keys twice: 0; double leases: 0")
    print(f"`tilefarm run` ended by itself and was resumed: {played.given_up}")


if __name__ == "__main__":
    main()

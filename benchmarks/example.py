"""The example's month over several seeds: what is found, when, and what is told that did not happen.

python -m benchmarks.example 1 2 3 > docs/measurements/example.txt
"""

import sys
import time

from orchestrator.example.truth import CHANGES
from tests.unit.verdicts.month import WHOLE, Night, judged_month


def main() -> None:
    seeds = [int(word) for word in sys.argv[1:]] or [1]
    print("python -m benchmarks.example", *seeds)
    print("Night in which each change is told, as its first night + 0, + 1, …; alarms without a cause.\n")
    for seed in seeds:
        began = time.process_time()
        nights = judged_month(seed)
        took = time.process_time() - began
        tests = sum(
            n.findings.counts["same"] + n.findings.counts["regressed"] + n.findings.counts["improved"]
            for n in nights.values()
        )
        print(
            f"seed {seed}: {len(nights)} nights, {tests} tests of a case on a SoC, {took:.0f} s of one core"
        )
        for change in sorted(CHANGES, key=lambda c: c.night):
            told = next((n.number for n in nights.values() if _tells(n, change.night, change.cause)), None)
            when = "never" if told is None else f"+{told - change.night}"
            print(f"  {change.name:36} night {change.night}: {when}")
        false = [(n.number, f) for n in nights.values() for f in n.false]
        words = {word: sum(f.confirmed == word for _, f in false) for word in ("yes", "not asked", "unknown")}
        alarms = sorted({number for number, _ in false})
        print(f"  without a cause: {words}, in nights {alarms or 'none'}")
        drifts = sum(n.findings.counts["drifts"] for n in nights.values())
        print(f"  drifting cases told by the weekly scan: {drifts}\n")


def _tells(night: Night, since: int, cause: str) -> bool:
    """A group of speed with this cause, which really is."""
    change = next(c for c in CHANGES if c.night == since)
    if night.number < since:
        return False
    for group in night.findings.groups:
        own = [f for f in night.findings.findings if f.finding_id in group.findings and f.kind == "speed"]
        if not own or group.cause != cause:
            continue
        if change.name in WHOLE:
            where = change.devices or change.socs
            if any(f.case_id == "all variants" and (f.device_id or f.soc) in where for f in own):
                return True
        elif len(night.told(group) & night.showing(change)) >= len(night.showing(change)) / 2:
            return True
    return False


if __name__ == "__main__":
    main()

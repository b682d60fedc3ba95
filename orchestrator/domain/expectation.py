"""What is known and no news: failures, flakes, slowness; per SoC and driver, with reason, owner, expiry."""

from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

from orchestrator.domain.verdict import Verdict

ExpectationKind = Literal["fails", "flakes", "slow"]
FLAKE_REPLAYS = 59
"""That all agree are news of a known flake: they find one of 5 % with 95 % probability."""
FLAKE_NIGHTS = 14


@dataclass(frozen=True, slots=True)
class Expectation:
    """Trials selected by ``when`` on matching SoCs and drivers are expected to end in ``verdict``.

    Of a flake, which ends in ``nondeterministic`` now and then, a pass is no news yet. Of a slowness the
    verdict is ``pass``: it is about the case's speed against its baseline.
    """

    when: str
    """Selection expression, the same language as ``-k``."""
    verdict: Verdict
    soc: str
    """Pattern with ``*`` over the SoC's name."""
    driver: str
    """Pattern with ``*`` over the driver's renderer and version."""
    reason: str
    owner: str
    expires: date
    line: int = 0
    """Line in matrix.yaml."""
    kind: ExpectationKind = "fails"
    replays: int = 0
    """Of a flake: so many executions in one trial that all agree are an unexpected pass …"""
    nights: int = 0
    """… and so many nights in a row without it are one, too."""
    slower: float = 0.0
    """Of a slowness: factor up to which a case slower than its baseline is no news."""

    def covers_device(self, soc: str, driver: str) -> bool:
        return fnmatchcase(soc, self.soc) and fnmatchcase(driver, self.driver)

    def expired(self, today: date) -> bool:
        return today > self.expires

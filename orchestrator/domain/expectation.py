"""Known failures: per SoC and driver, with reason, owner and expiry."""

from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from orchestrator.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Expectation:
    """Trials selected by ``when`` on matching SoCs and drivers are expected to end in ``verdict``."""

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

    def covers_device(self, soc: str, driver: str) -> bool:
        return fnmatchcase(soc, self.soc) and fnmatchcase(driver, self.driver)

    def expired(self, today: date) -> bool:
        return today > self.expires

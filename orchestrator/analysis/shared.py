"""Devices that execute on one processor: separate drivers of one machine, and virtual phones on it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.domain.device import DeviceRecord


@dataclass(frozen=True, slots=True)
class SharedProcessor:
    resource: str
    drivers: tuple[str, ...]
    """SoC names of the machine's own devices on it."""
    virtual: tuple[str, ...]
    """Names of the virtual phones that its drivers stand in for."""
    device_ids: frozenset[str]

    @property
    def sentence(self) -> str:
        """``llvmpipe and lavapipe are separate drivers of this machine's processor (cpu@h); …``."""
        serialised = "trials on it are serialised"
        if len(self.drivers) < 2:
            return f"{and_words([*self.drivers, *self.virtual])} share {self.resource}; {serialised}"
        words = (
            f"{and_words(self.drivers)} are separate drivers of this machine's processor "
            f"({self.resource}); {serialised}"
        )
        if self.virtual:
            words += f"; the virtual {'phone' if len(self.virtual) == 1 else 'phones'} "
            words += f"{and_words(self.virtual)} {'runs' if len(self.virtual) == 1 else 'run'} on it, too"
        return words


def shared_processors(devices: Iterable[DeviceRecord]) -> tuple[SharedProcessor, ...]:
    """Resources with at least two devices, in order seen."""
    groups: dict[str, list[DeviceRecord]] = defaultdict(list)
    for device in devices:
        groups[device.resource].append(device)
    return tuple(
        SharedProcessor(
            resource,
            tuple(d.soc.name for d in found if not d.virtual),
            tuple(d.name for d in found if d.virtual),
            frozenset(d.device_id for d in found),
        )
        for resource, found in groups.items()
        if len(found) > 1
    )


def and_words(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    known = list(words)
    return " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)

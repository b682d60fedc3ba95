"""Every number of the rule, in one place. docs/statistics.md says where each comes from."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """Effects are log ratios: 0.02 is 2 %, the same for slower and faster."""

    min_samples: int = 10
    """Measured in a night; fewer say nothing."""
    min_in_state: int = 5
    """Good samples in the clock state that is summarised."""
    min_mode_share: float = 0.6
    """Of the samples in the mode that stands for the night, where times alone show two."""
    ramp: float = 0.10
    """Between the first and the last third of a trial's times: more is a device that was not in one state."""
    ceiling_mc: int = 40_000
    """Of the battery. Samples of a warmer phone are left out: users hold one that is not yet slowed down."""
    die_ceiling_mc: int = 85_000
    """Of the GPU or the SoC, which work alone makes much warmer than a battery: about here governors begin to
    hold clocks, and not all of them say so."""

    min_shift_series: int = 10
    """Fewer variants of a device-night give no common shift: it would be their own change."""
    window: int = 14
    """Accepted nights in a baseline."""
    min_nights: int = 7

    threshold: float = math.log(1.02)
    """An effect that matters; a kernel may have its own."""
    q: float = 0.05
    """False discovery rate of a night."""
    suspect_p: float = 0.05
    """A changed code that is measured again if the night's budget reaches it."""
    agree_p: float = 0.05
    """One-sided, of the second phone of a SoC: below it the phone agrees with the first."""
    again_p: float = 0.001
    """Of the second measurement of a finding whose code did not change."""
    again_q: float = 0.01
    """Of its first: the second one is of the same night and cannot tell that night from a change."""
    budget: float = 0.02
    """Share of the night's samples that confirmation may take …"""
    least_budget: int = 400
    """… and so many on any night: two questions of a SoC and one or two of a phone. A small farm's share pays
    for none, and what nobody confirms are false alarms in one of ten nights."""

    power: float = 0.8
    """Of the smallest effect that is named as detectable."""

    scan_nights: int = 90
    min_segment: int = 3
    scan_alpha: float = 0.0005
    """Of a series without change in which the scan finds one."""

    def samples_for_confirmation(self, measured: int) -> float:
        """Of a night in which so many were ``measured``."""
        return max(self.budget * measured, self.least_budget)


RULE = Rule()

"""A phone must not sleep while it measures: some drivers never signal a fence with the screen off.

Field case: Mali-G715, https://github.com/ggml-org/llama.cpp/issues/23359.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Vitals
from workers.health import read_vitals
from workers.transports.base import Device

TRIES = 3
WAKE_S = 10.0
SETTLE_S = 1.0
"""The power manager's answer follows the screen."""
STATE_S = 5.0
_WAKE = "input keyevent KEYCODE_WAKEUP; svc power stayon true"
"""KEYCODE_WAKEUP wakes and, unlike the power key, never sends to sleep (Android 5 and later). ``stayon``
keeps the screen on while the phone is plugged in, and stays set: ``svc power stayon false`` takes it back."""


def awake(
    device: Device,
    vitals: Vitals,
    ask: Callable[[], Vitals],
    sleep: Callable[[float], object] = time.sleep,
) -> Vitals:
    """The vitals once the phone says that it is awake; one that does not tell is taken for awake.

    Raises:
        InfraError: it sleeps on.
    """
    for _ in range(TRIES):
        if vitals.wakefulness in ("", "awake"):
            return vitals
        with suppress(InfraError):
            device.run(["sh", "-c", _WAKE], timeout_s=WAKE_S)
        sleep(SETTLE_S)
        vitals = ask()
    if vitals.wakefulness in ("", "awake"):
        return vitals
    raise InfraError(
        f"{device.serial}: {vitals.wakefulness}, and does not wake up ({_WAKE}). Some drivers never finish "
        "with the screen off: press its power key, and look at its battery saver"
    )


def state_in_words(device: Device) -> str:
    """What a phone says of itself after something on it took too long; empty: nothing."""
    vitals = read_vitals(device, 0.0, STATE_S)
    words = [
        f"the phone is {vitals.wakefulness}" if vitals.wakefulness else "",
        f"battery {vitals.battery_c:.1f} °C" if vitals.battery_c is not None else "",
        f"{vitals.battery_percent} %" if vitals.battery_percent is not None else "",
        f"thermal status {vitals.thermal_status}" if vitals.thermal_status else "",
    ]
    return ", ".join(word for word in words if word)

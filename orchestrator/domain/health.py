"""The state of a device as a pure function: ``step(health, event)`` is the health afterwards.

Nothing here reads a clock or asks a phone. Events carry when they happened (seconds of one clock), and
``wanted(health)`` says what ought to be tried next; whoever watches the device tries it and reports back.

::

    offline, a person's ──listed──▶ booting ──answered──▶ online ◀──vitals──▶ low battery, hot, full disk
    booting ──silent 3 times, or still starting after 10 min──▶ recovering
    online and its gates ──silent 3 times, or infrastructure took a batch──▶ recovering
    recovering: reconnect → adb reconnect → reboot → power cycle → quarantined ──time──▶ recovering
    recovering ──a rung worked, or the list says device──▶ booting
    any ──left the list──▶ offline (not: recovering after a rung, which may have been the rung's doing)
    any ──adb waits for a person──▶ unauthorized, no permissions, not in Android
    any ──taken──▶ maintenance ──returned──▶ booting

Maintenance hears nothing but its end; a quarantine nothing but that, time, and a phone that is unplugged or
waits for a person.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Condition(StrEnum):
    ONLINE = "online"
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    NO_PERMISSIONS = "no permissions"
    NOT_ANDROID = "not in Android"
    """In recovery, sideload or bootloader: somebody may be flashing it, and a reboot could be its end."""
    BOOTING = "booting"
    LOW_BATTERY = "low battery"
    HOT = "hot"
    FULL_DISK = "full disk"
    RECOVERING = "recovering"
    QUARANTINED = "quarantined"
    MAINTENANCE = "maintenance"


class Rung(StrEnum):
    """What is tried to get a device back, mildest first."""

    RECONNECT = "reconnect"
    """The link to it is opened again (``adb connect`` of a network serial)."""
    ADB_RECONNECT = "adb reconnect"
    """The server drops that phone's transport and finds it anew; other phones notice nothing."""
    REBOOT = "reboot"
    POWER_CYCLE = "power cycle"
    """Its USB port is switched off and on by the host's own command."""


LADDER = tuple(Rung)


@dataclass(frozen=True, slots=True)
class Gates:
    """When a device may work. Pairs are apart so that nothing flutters between two states."""

    battery_percent: int = 30
    """Below it no batch starts (Skia's farm does the same) …"""
    battery_back_percent: int = 35
    """… until it is charged to this."""
    hot_c: float = 35.0
    """Of the battery, which changes slowly and is in every phone …"""
    cool_c: float = 33.0
    """… and what it must cool to."""
    free_bytes: int = 256 << 20
    silences: int = 3
    """Questions without an answer before a listed phone counts as lost."""
    steady_s: float = 3600.0
    """Online for so long without trouble: the next trouble is a new one, for the mildest rung."""
    boot_s: float = 600.0
    """A phone that answers and is still starting after so long will not finish by itself."""
    quarantine_s: float = 1800.0
    """The first time; doubled each further time without a trusted batch between …"""
    quarantine_at_most_s: float = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Vitals:
    """What a device says about itself; None: it does not tell."""

    at: float
    battery_percent: int | None = None
    charging: bool | None = None
    battery_c: float | None = None
    free_bytes: int | None = None
    thermal_status: str = ""
    """Android's word: none, light, … shutdown."""
    wakefulness: str = ""
    """awake, asleep, dozing, dreaming: some drivers never finish with the screen off."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The adb server says something new of it: its word, or empty for a device that left the list."""

    at: float
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """It answered ``getprop``."""

    at: float
    booted: bool


@dataclass(frozen=True, slots=True)
class Silent:
    """It did not, within the deadline."""

    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Infrastructure took a batch from it."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Tried:
    """A rung was tried; ``ok`` if the command itself worked. Whether it helped, the next answer tells."""

    at: float
    rung: Rung
    ok: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Vouched:
    """Its canary was right."""

    at: float


@dataclass(frozen=True, slots=True)
class Taken:
    """A person holds it."""

    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Returned:
    at: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed."""

    at: float


Event = Vitals | Listed | Answered | Silent | Failed | Tried | Vouched | Taken | Returned | Tick


@dataclass(frozen=True, slots=True)
class Health:
    condition: Condition
    why: str
    """For people: what was seen, with both numbers where a gate is closed."""
    since: float
    until: float | None = None
    """End of a quarantine."""
    rung: int = 0
    """Rungs of the ladder that were tried since it was last trusted, or steady."""
    silences: int = 0
    quarantines: int = 0
    trusted: bool = False
    """A canary was right since the device came up or was recovered: until then no result counts."""
    vitals: Vitals | None = None

    @property
    def usable(self) -> bool:
        return self.condition is Condition.ONLINE


UNSEEN = Health(Condition.OFFLINE, "not seen yet", 0.0)

_GATED = (Condition.ONLINE, Condition.LOW_BATTERY, Condition.HOT, Condition.FULL_DISK)
_ABSENT = (
    Condition.OFFLINE,
    Condition.UNAUTHORIZED,
    Condition.NO_PERMISSIONS,
    Condition.NOT_ANDROID,
)
_PERSONS = {
    "unauthorized": Condition.UNAUTHORIZED,
    "authorizing": Condition.UNAUTHORIZED,
    "no permissions": Condition.NO_PERMISSIONS,
}
_LINK_DOWN = ("offline", "connecting")
"""Words of adb for a phone that does not speak: these the ladder is for. Any other, also one that we do not
know, is a person's."""


def step(health: Health, event: Event, gates: Gates | None = None) -> Health:
    """The health after an event."""
    gates = gates or Gates()
    if isinstance(event, Vitals):
        health = replace(health, vitals=event)
    if isinstance(event, Taken):
        return _now(health, Condition.MAINTENANCE, event.why, event.at)
    if health.condition is Condition.MAINTENANCE:
        if isinstance(event, Returned):
            return _fresh(health, Condition.BOOTING, "given back; has not answered yet", event.at)
        return health
    if health.condition is Condition.QUARANTINED:
        return _quarantined(health, event)
    match event:
        case Vitals():
            return _gated(health, event, gates) if health.condition in _GATED else health
        case Listed():
            return _listed(health, event)
        case Answered():
            return _answered(health, event, gates)
        case Silent():
            return _silent(health, event, gates)
        case Failed():
            if health.condition in _ABSENT:
                return health  # unplugged, say: the reason is known, and no rung would help
            return _lost(health, event.why, event.at, gates)
        case Tried():
            return _tried(health, event, gates)
        case Vouched():
            return replace(health, trusted=True, rung=0, quarantines=0)
        case Tick():
            steady = health.condition is Condition.ONLINE and event.at - health.since >= gates.steady_s
            return replace(health, rung=0) if steady else health
        case Returned():
            return health


def wanted(health: Health) -> Rung | None:
    """What to try next to get the device back; None: nothing, or a person must do something."""
    if health.condition is Condition.RECOVERING and health.rung < len(LADDER):
        return LADDER[health.rung]
    return None


def _now(health: Health, condition: Condition, why: str, at: float) -> Health:
    """``since`` stays while only the words change."""
    since = health.since if condition is health.condition else at
    return replace(health, condition=condition, why=why, since=since, until=None)


def _fresh(health: Health, condition: Condition, why: str, at: float) -> Health:
    """As ``_now``, and no earlier canary speaks for it any more."""
    return replace(_now(health, condition, why, at), trusted=False, silences=0)


def _quarantined(health: Health, event: Event) -> Health:
    """Until its time is over; who plugs it in again meanwhile wants it tried, from the mildest rung on."""
    if isinstance(event, Listed) and event.state != "device" and event.state not in _LINK_DOWN:
        return replace(_listed(health, event), rung=0)
    over = health.until is not None and event.at >= health.until
    if not over or isinstance(event, Vitals):
        return health
    return _now(replace(health, rung=0), Condition.RECOVERING, "quarantine is over", event.at)


def _listed(health: Health, event: Listed) -> Health:
    if event.state == "device":
        if health.condition in (*_ABSENT, Condition.RECOVERING):
            return _fresh(health, Condition.BOOTING, "listed; has not answered yet", event.at)
        return health
    if event.state == "":
        if health.condition is Condition.RECOVERING and health.rung:
            return health  # lost while it was being recovered: harder rungs may still help
        return _fresh(health, Condition.OFFLINE, event.why or "not listed: unplugged or off", event.at)
    why = event.why or f"adb lists it as {event.state}"
    if event.state not in _LINK_DOWN:
        return _fresh(health, _PERSONS.get(event.state, Condition.NOT_ANDROID), why, event.at)
    if health.condition is Condition.RECOVERING:
        return health
    return _fresh(health, Condition.RECOVERING, why, event.at)


def _answered(health: Health, event: Answered, gates: Gates) -> Health:
    if event.booted:
        health = replace(health, silences=0)
        if health.condition in (Condition.BOOTING, *_ABSENT):
            return _now(health, Condition.ONLINE, "", event.at)
        return health
    if health.condition in _GATED and health.silences == 0:
        return replace(health, silences=1)  # a cut-off getprop looks the same: it is asked once more
    why = "Android is still starting"
    if health.condition is Condition.BOOTING and event.at - health.since >= gates.boot_s:
        return _lost(health, f"{why} after {gates.boot_s:g} s", event.at, gates)
    return _fresh(health, Condition.BOOTING, why, event.at)


def _silent(health: Health, event: Silent, gates: Gates) -> Health:
    health = replace(health, silences=health.silences + 1)
    if health.silences < gates.silences or health.condition is Condition.RECOVERING:
        return health
    detail = f": {event.why}" if event.why else ""
    why = f"listed, but did not answer {health.silences} times{detail}"
    return _lost(health, why, event.at, gates)


def _lost(health: Health, why: str, at: float, gates: Gates) -> Health:
    """To the next rung, or into quarantine where no rung is left."""
    if health.rung < len(LADDER):
        return _fresh(health, Condition.RECOVERING, why, at)
    longer = min(gates.quarantine_s * 2**health.quarantines, gates.quarantine_at_most_s)
    tried = ", ".join(LADDER)
    lost = _fresh(health, Condition.QUARANTINED, f"{why}; {tried} did not help", at)
    return replace(lost, until=at + longer, quarantines=health.quarantines + 1)


def _tried(health: Health, event: Tried, gates: Gates) -> Health:
    if health.condition is not Condition.RECOVERING:
        return health
    health = replace(health, rung=LADDER.index(event.rung) + 1)
    if event.ok:
        return _fresh(health, Condition.BOOTING, f"{event.rung} done; has not answered yet", event.at)
    failed = f"{event.rung} failed: {event.why}" if event.why else f"{event.rung} failed"
    return _lost(health, failed, event.at, gates)


def _gated(health: Health, vitals: Vitals, gates: Gates) -> Health:
    shut = _shut(health.condition, vitals, gates)
    condition, why = shut or (Condition.ONLINE, "")
    return _now(health, condition, why, vitals.at)


def _shut(now: Condition, vitals: Vitals, gates: Gates) -> tuple[Condition, str] | None:
    """The gate that keeps it from work, and why; the threshold depends on which side of it we are."""
    limit_c = gates.cool_c if now is Condition.HOT else gates.hot_c
    if vitals.battery_c is not None and vitals.battery_c > limit_c:
        return Condition.HOT, f"{vitals.battery_c:.1f} °C > {limit_c:g} °C"
    percent = gates.battery_back_percent if now is Condition.LOW_BATTERY else gates.battery_percent
    if vitals.battery_percent is not None and vitals.battery_percent < percent:
        how = {True: "charging", False: "not charging", None: "charging unknown"}[vitals.charging]
        return Condition.LOW_BATTERY, f"{vitals.battery_percent} % < {percent} %, {how}"
    if vitals.free_bytes is not None and vitals.free_bytes < gates.free_bytes:
        return Condition.FULL_DISK, f"{vitals.free_bytes >> 20} MiB free < {gates.free_bytes >> 20} MiB"
    return None

"""Who a device is and which SoC it has, concluded from what the device itself says.

Pure functions of ``Device.properties``; nothing is cached, since early in a boot properties are still empty.
The serial that adb lists is never used: it changes with the cable and the network.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.device import Soc
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError
from orchestrator.domain.profile import Profile
from workers.soc_table import (
    AMBIGUOUS_BOARDS,
    KNOWN_MODELS,
    VENDOR_NAMES,
    model_in,
    naming_scheme,
    renderer_family,
    vendor_of_model,
)

Confidence = Literal["certain", "likely", "guess", "unknown"]

_SERIAL_PROPERTIES = ("ro.serialno", "ro.boot.serialno")
_MODEL_PROPERTIES: tuple[tuple[str, Confidence], ...] = (
    ("ro.soc.model", "certain"),
    ("ro.vendor.soc.model", "likely"),
    ("ro.vendor.qti.soc_model", "likely"),
    ("ro.vendor.mediatek.platform", "likely"),
    ("ro.mediatek.platform", "likely"),
    ("ro.hardware.chipname", "likely"),
    ("ro.chipname", "likely"),
    ("ro.board.platform", "likely"),
    ("ro.boot.hardware.platform", "guess"),
    ("ro.hardware", "guess"),
    ("ro.boot.hardware", "guess"),
)
"""Strongest evidence first. ``ro.soc.*`` exist since Android 12."""
VIRTUAL_PROPERTY = "ro.tilefarm.virtual"
_LONGEST_WORD = 50
"""Of an id; what is longer is told apart by its digest."""
_LAVAPIPE_ID, _SWIFTSHADER_ID = "13", "10"
"""VkDriverId."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    source: str
    text: str
    vendor: str
    """Empty when the text does not tell."""
    model: str
    """Empty when it names no single chip."""
    confidence: Confidence


def phone_id(properties: Mapping[str, str]) -> str:
    """``manufacturer-serial`` as ``[a-z0-9-]+``; the same after a reboot, an update or on another cable.

    Serials that differ only in characters which an id cannot hold still get different ids.

    Raises:
        InfraError: the phone tells no serial number (yet).
    """
    serial = next((properties[p].strip() for p in _SERIAL_PROPERTIES if properties.get(p, "").strip()), "")
    if not serial:
        raise InfraError(
            "the phone tells no serial number (ro.serialno, ro.boot.serialno). If it is still booting, wait."
        )
    maker = _slug(properties.get("ro.product.manufacturer", ""))[:_LONGEST_WORD].strip("-") or "phone"
    slug = _slug(serial)[:_LONGEST_WORD].strip("-")
    if slug == serial.lower() and (serial.isupper() or serial.islower() or serial.isdigit()):
        return f"{maker}-{slug}"
    return "-".join(part for part in (maker, slug, sha256_hex(serial.encode())[:6]) if part)


def phone_soc(properties: Mapping[str, str], renderer: str = "") -> Soc:
    """The SoC from ordered evidence; ``renderer`` is what the GPU driver calls itself.

    A board name that stands for several chips, or evidence that conflicts, gives an ``unknown-…`` name,
    which is never that of a known SoC. The renderer alone only names a bucket.
    """
    evidence = list(_collect(properties))
    family = "" if properties.get(VIRTUAL_PROPERTY) == "1" else renderer
    vendors = {e.vendor for e in evidence if e.vendor} | _maker(properties)
    if conflict := _conflict(evidence, vendors, family):
        return conflict
    best = next((e for e in evidence if e.model), None)
    if best is not None:
        return Soc(
            file_name(KNOWN_MODELS.get(best.model, best.model)),
            VENDOR_NAMES.get(best.vendor, best.vendor) or properties.get("ro.soc.manufacturer", ""),
            best.model,
            best.source,
            best.confidence,
        )
    board = next((e for e in evidence if e.text.lower() in AMBIGUOUS_BOARDS), None)
    words = [w for w in (board.text if board else "", renderer_name(family)) if w]
    source = "+".join(
        s for s, there in ((board.source if board else "", board), ("GL renderer", family)) if there
    )
    vendor = next(iter(vendors)) if len(vendors) == 1 else ""
    return Soc(
        file_name("-".join(["unknown", *words])),
        VENDOR_NAMES.get(vendor, vendor),
        "",
        source or "none",
        "guess" if words else "unknown",
    )


def local_soc(profile: Profile) -> Soc:
    """A GPU or software driver of this machine: ``NVIDIA-H200``, ``llvmpipe``, ``lavapipe``, …"""
    source = "GL renderer" if profile.api == "gles" else "Vulkan device name"
    if software := _software_driver(profile):
        return Soc(software, software, software, source, "certain")
    name = renderer_name(profile.renderer)
    if not name:
        return Soc("unknown-gpu", "", "", "none", "unknown")
    vendor = name.split("-", 1)[0] if "-" in name else name
    return Soc(name, vendor, name, source, "certain")


def local_id(hostname: str, gpu: str) -> str:
    """Id of one of this machine's own GPUs, by its name on this machine."""
    return "-".join(("local", _slug(hostname) or "host", _slug(gpu) or "gpu"))


def os_build(properties: Mapping[str, str]) -> str:
    return properties.get("ro.build.fingerprint", "") or properties.get("ro.build.display.id", "")


def is_virtual(properties: Mapping[str, str]) -> bool:
    return properties.get(VIRTUAL_PROPERTY) == "1"


def file_name(text: str) -> str:
    """``[A-Za-z0-9._-]+``, fit for files, queues and keys; at most 60 characters."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text)[:60].strip("-.") or "unknown"


def renderer_name(renderer: str) -> str:
    """What a GPU is called in both APIs: a renderer without its brackets, versions and trademark signs.

    ``llvmpipe (LLVM 15.0.6, 256 bits)`` → ``llvmpipe``; ``NVIDIA H200/PCIe/SSE2`` → ``NVIDIA-H200``;
    ``Mesa Intel(R) UHD Graphics 620 (KBL GT2)`` (GLES) → ``Intel-UHD-Graphics-620``, as Vulkan says."""
    text = re.sub(r"\((?:TM|R)\)", "", renderer).removeprefix("Mesa ")
    if text.startswith("ANGLE"):
        inner = re.match(r"ANGLE \([^,]*, (?:Vulkan [\d.]+ \()?([^(),]+)", text)
        text = f"ANGLE {inner[1]}" if inner else text
    text = re.split(r"[/(,]", text)[0].strip()
    return file_name(text) if text else ""


def _software_driver(profile: Profile) -> str:
    """A Vulkan driver that runs on the processor; lavapipe calls its device llvmpipe, as Mesa's GLES does."""
    if profile.api != "vulkan":
        return ""
    renderer, driver = profile.renderer.casefold(), profile.driver.get("id", "")
    if driver == _LAVAPIPE_ID or "llvmpipe" in renderer:
        return "lavapipe"
    return "SwiftShader" if driver == _SWIFTSHADER_ID or "swiftshader" in renderer else ""


def _collect(properties: Mapping[str, str]) -> list[_Evidence]:
    found: list[_Evidence] = []
    for source, confidence in _MODEL_PROPERTIES:
        text = properties.get(source, "").strip()
        if not text:
            continue
        model = model_in(text)
        if not model and source == "ro.soc.model":
            model = file_name(text)
        found.append(_Evidence(source, text, vendor_of_model(model or text), model, confidence))
    return found


def _maker(properties: Mapping[str, str]) -> set[str]:
    text = properties.get("ro.soc.manufacturer", "").strip()
    vendor = vendor_of_model(text)
    return {vendor} if vendor else set()


def _conflict(evidence: list[_Evidence], vendors: set[str], renderer: str) -> Soc | None:
    """Two vendors, two known chips, or a GPU that this vendor does not build in."""
    by_scheme: dict[str, set[str]] = {}
    for e in evidence:
        if e.model:
            same = by_scheme.setdefault(naming_scheme(e.model, e.source), set())
            same.add(KNOWN_MODELS.get(e.model, e.model))
    several = sorted({name for names in by_scheme.values() if len(names) > 1 for name in names})
    makers = renderer_family(renderer)
    wrong_gpu = bool(makers and vendors and not vendors & makers)
    if len(vendors) < 2 and not several and not wrong_gpu:
        return None
    words = several or sorted({e.model for e in evidence if e.model} or vendors)
    if wrong_gpu:
        words.append(renderer_name(renderer))
    sources = "+".join(e.source for e in evidence if e.model or e.vendor)
    if wrong_gpu:
        sources += "+GL renderer"
    return Soc(file_name("-".join(["unknown", "conflict", *words])), "", "", sources, "unknown")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")

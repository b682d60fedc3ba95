"""SoC and device id from properties (field case G2-11)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import InfraError
from orchestrator.domain.names import device_key, news_key, worker_queues
from orchestrator.domain.profile import Profile
from workers.identity import file_name, is_virtual, local_id, local_soc, os_build, phone_id, phone_soc

SD = {"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM8650"}
PIXEL = {"ro.soc.manufacturer": "Google"}


@pytest.mark.parametrize(
    ("properties", "renderer", "name", "source", "confidence"),
    [
        (SD, "Adreno (TM) 750", "SM8650", "ro.soc.model", "certain"),
        ({**SD, "ro.board.platform": "pineapple"}, "", "SM8650", "ro.soc.model", "certain"),
        ({**PIXEL, "ro.soc.model": "GS201"}, "Mali-G710", "Tensor-G2", "ro.soc.model", "certain"),
        ({**PIXEL, "ro.soc.model": "Tensor G3"}, "", "Tensor-G3", "ro.soc.model", "certain"),
        ({"ro.vendor.mediatek.platform": "MT6989"}, "", "MT6989", "ro.vendor.mediatek.platform", "likely"),
        ({"ro.board.platform": "kalama"}, "", "SM8550", "ro.board.platform", "likely"),
        ({"ro.hardware": "mt6765"}, "", "MT6765", "ro.hardware", "guess"),
        # One chip in three naming schemes of its vendor is no conflict.
        (
            {"ro.soc.model": "s5e9925", "ro.hardware.chipname": "exynos2200", "ro.hardware": "universal9925"},
            "Samsung Xclipse 920",
            "S5E9925",
            "ro.soc.model",
            "certain",
        ),
        # MediaTek's board is the family's.
        ({"ro.soc.model": "MT6891", "ro.board.platform": "mt6893"}, "", "MT6891", "ro.soc.model", "certain"),
    ],
)
def test_g2_11_known_socs(properties: dict[str, str], renderer: str, name: str, source: str, confidence: str):
    soc = phone_soc(properties, renderer)
    assert (soc.name, soc.source, soc.confidence) == (name, source, confidence)


@pytest.mark.parametrize(
    ("properties", "renderer", "name"),
    [
        ({"ro.board.platform": "taro"}, "", "unknown-taro"),
        ({"ro.board.platform": "taro", "ro.hardware": "qcom"}, "Adreno (TM) 730", "unknown-taro-Adreno-730"),
        ({"ro.hardware": "qcom"}, "Adreno (TM) 650", "unknown-Adreno-650"),
        ({"ro.hardware": "panther"}, "", "unknown"),
        ({}, "Mali-G710 MC10", "unknown-Mali-G710-MC10"),
        ({}, "", "unknown"),
        ({"ro.soc.model": "", "ro.board.platform": " "}, "", "unknown"),
    ],
)
def test_g2_11_missing_or_ambiguous_evidence_is_an_unknown_bucket(
    properties: dict[str, str], renderer: str, name: str
):
    soc = phone_soc(properties, renderer)
    assert soc.name == name
    assert soc.confidence in ("guess", "unknown")


@pytest.mark.parametrize(
    ("properties", "renderer"),
    [
        ({**SD, "ro.board.platform": "mt6989"}, ""),
        ({**SD, "ro.hardware": "exynos2400"}, ""),
        ({**SD, "ro.board.platform": "kalama"}, ""),
        ({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "SM8650"}, ""),
        (SD, "Mali-G720-Immortalis MC12"),
    ],
)
def test_g2_11_conflicting_evidence_is_never_merged_with_a_known_soc(
    properties: dict[str, str], renderer: str
):
    soc = phone_soc(properties, renderer)
    assert soc.name.startswith("unknown-conflict-")
    assert soc.confidence == "unknown"
    assert "ro.soc.model" in soc.source


def test_g2_11_one_marketing_model_with_two_chips_is_two_socs():
    names = {"ro.product.model": "Galaxy S24"}
    exynos = phone_soc({**names, "ro.soc.manufacturer": "Samsung", "ro.soc.model": "s5e9945"})
    snapdragon = phone_soc({**names, **SD})
    assert exynos.name != snapdragon.name
    assert (exynos.vendor, snapdragon.vendor) == ("Samsung", "Qualcomm")


def test_g2_11_empty_at_boot_and_filled_later():
    assert phone_soc({"ro.soc.model": ""}).name == "unknown"
    assert phone_soc(SD).name == "SM8650"


def test_an_unlisted_model_keeps_its_own_name():
    soc = phone_soc({"ro.soc.manufacturer": "NewMaker", "ro.soc.model": "NX 9/1"})
    assert (soc.name, soc.vendor) == ("NX-9-1", "NewMaker")


def test_the_renderer_of_a_virtual_phone_belongs_to_its_host():
    assert phone_soc({**SD, "ro.tilefarm.virtual": "1"}, "Mali-G710").name == "SM8650"
    assert is_virtual({"ro.tilefarm.virtual": "1"})
    assert not is_virtual({})


def test_hostile_text_becomes_a_file_name():
    soc = phone_soc({"ro.soc.model": "../../etc/\u202e<script>\x1b[31m"})
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,80}", soc.name)
    assert not soc.name.startswith(".")
    assert file_name("…") == "unknown"


def gles(renderer: str) -> Profile:
    return Profile("gles", "", renderer, "")


def vulkan(renderer: str, driver_id: str = "") -> Profile:
    return Profile("vulkan", "", renderer, "", driver={"id": driver_id})


@pytest.mark.parametrize(
    ("profile", "name"),
    [
        (gles("llvmpipe (LLVM 15.0.6, 256 bits)"), "llvmpipe"),
        (vulkan("llvmpipe (LLVM 15.0.6, 256 bits)"), "lavapipe"),
        (vulkan("renamed by a patch", "13"), "lavapipe"),
        (vulkan("SwiftShader Device (Subzero)"), "SwiftShader"),
        (vulkan("renamed, too", "10"), "SwiftShader"),
        (gles("NVIDIA H200/PCIe/SSE2"), "NVIDIA-H200"),
        (vulkan("NVIDIA H200", "4"), "NVIDIA-H200"),
        (gles("Mesa Intel(R) UHD Graphics 620 (KBL GT2)"), "Intel-UHD-Graphics-620"),
        (vulkan("Intel(R) UHD Graphics 620 (KBL GT2)"), "Intel-UHD-Graphics-620"),
        (
            gles(
                "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)"
            ),
            "ANGLE-SwiftShader-Device",
        ),
        (gles(""), "unknown-gpu"),
    ],
)
def test_local_socs(profile: Profile, name: str):
    assert local_soc(profile).name == name


@pytest.mark.parametrize(
    ("serial", "device_id"),
    [
        ("28161FDH2000XX", "google-28161fdh2000xx"),
        ("0123456789", "google-0123456789"),
        ("abc123", "google-abc123"),
    ],
)
def test_phone_ids(serial: str, device_id: str):
    assert phone_id({"ro.serialno": serial, "ro.product.manufacturer": "Google"}) == device_id


@pytest.mark.parametrize("serial", ["A b:(2)", "…", "x/../y", "MiXed", "\u202e"])
def test_phone_ids_of_odd_serials_are_plain_and_distinct(serial: str):
    made = phone_id({"ro.serialno": serial, "ro.product.manufacturer": "Ma <ker>"})
    assert re.fullmatch(r"[a-z0-9-]+", made)
    assert made != phone_id({"ro.serialno": serial + "!", "ro.product.manufacturer": "Ma <ker>"})


def test_phone_ids_that_differ_in_case_only_differ():
    assert phone_id({"ro.serialno": "aBc"}) != phone_id({"ro.serialno": "AbC"})


def test_the_serial_may_be_under_its_other_name():
    assert phone_id({"ro.serialno": "", "ro.boot.serialno": "X1"}) == "phone-x1"


def test_a_phone_without_serial_number_is_an_infra_error_that_says_what_next():
    with pytest.raises(InfraError, match=r"ro\.serialno.*wait"):
        phone_id({"ro.product.manufacturer": "Google"})


def test_os_build_and_local_id():
    assert os_build({"ro.build.fingerprint": "a/b:14/c"}) == "a/b:14/c"
    assert os_build({"ro.build.display.id": "d"}) == "d"
    assert local_id("Büro PC.lan", "NVIDIA-H200-2") == "local-b-ro-pc-lan-nvidia-h200-2"


@given(
    st.text(max_size=40) | st.text("aB:(/. \n*", max_size=200), st.text(max_size=200), st.text(max_size=60)
)
def test_g2_02_no_serial_or_name_of_a_phone_reaches_a_name_of_ours(serial: str, maker: str, soc: str) -> None:
    """G2-02: queues, keys and files come from an id; whatever the phone says, that is a plain word of bounded
    length."""
    properties = {"ro.serialno": serial, "ro.product.manufacturer": maker, "ro.soc.model": soc}
    if not serial.strip():
        return
    device_id = phone_id(properties)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,119}", device_id)
    names = [
        *worker_queues(device_id, phone_soc(properties).name),
        device_key(device_id),
        news_key(device_id),
    ]
    assert all(re.fullmatch(r"[a-z0-9.:-]{1,200}", name) for name in names)


def test_phones_with_long_serials_are_told_apart() -> None:
    one, two = (phone_id({"ro.serialno": "a" * 5000 + last}) for last in "bc")
    assert one != two
    assert len(one) < 120

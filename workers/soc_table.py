"""What is known about SoC names: which text names one chip, who makes it, which GPUs it can have."""

import re

KNOWN_MODELS = {
    "GS101": "Tensor-G1",
    "GS201": "Tensor-G2",
    "ZUMA": "Tensor-G3",
    "TENSOR-G3": "Tensor-G3",
    "ZUMAPRO": "Tensor-G4",
    "TENSOR-G4": "Tensor-G4",
    "TENSOR-G2": "Tensor-G2",
    "SDM845": "SDM845",
}
"""Model → the name that people use, where that differs."""

BOARD_MODELS = {
    "kalama": "SM8550",
    "kona": "SM8250",
    "msmnile": "SM8150",
    "gs101": "GS101",
    "gs201": "GS201",
    "zuma": "ZUMA",
    "zumapro": "ZUMAPRO",
}
"""Board names that stand for one chip (its speed grades included)."""

AMBIGUOUS_BOARDS = frozenset(
    {
        "taro",  # SM8450, SM8475, SM7450
        "pineapple",  # SM8650, SM8635
        "lahaina",  # SM8350, SM7325
        "lito",  # SM7225, SM7250
        "bengal",  # SM6115, SM4250, SM4350
        "holi",  # SM4350, SM6375
        "trinket",
        "atoll",
        "crow",
        "parrot",
        "sun",
    }
)
"""Board names that cover several chips: evidence of the vendor only."""

VENDOR_NAMES = {
    "qualcomm": "Qualcomm",
    "mediatek": "MediaTek",
    "samsung": "Samsung",
    "google": "Google",
    "unisoc": "Unisoc",
    "hisilicon": "HiSilicon",
}

_MODEL = re.compile(
    r"\A(?:(?P<qualcomm>(?:SM|SDM|MSM|APQ|QCS|QCM)\d{3,4}[A-Z0-9-]*)|(?P<mediatek>MT\d{4}[A-Z0-9]*)"
    r"|(?P<samsung>(?:S5E\d{4}|EXYNOS\d{3,4}|UNIVERSAL\d{4}))|(?P<google>GS\d{3}|ZUMA(?:PRO)?|TENSOR.*)"
    r"|(?P<unisoc>(?:UMS|SC|T)\d{3,4}[A-Z0-9]*)|(?P<hisilicon>KIRIN\d{3,4}[A-Z0-9]*|HI\d{4}))\Z"
)
_VENDOR_WORDS = {
    "qualcomm": ("qti", "qualcomm", "qcom", *sorted(AMBIGUOUS_BOARDS), "kalama", "kona", "msmnile"),
    "mediatek": ("mediatek",),
    "samsung": ("samsung", "exynos", "s.lsi"),
    "google": ("google",),
    "unisoc": ("unisoc", "spreadtrum", "sprd"),
    "hisilicon": ("hisilicon", "kirin"),
}

_GPU_MAKERS = (
    ("adreno", frozenset({"qualcomm"})),
    ("xclipse", frozenset({"samsung"})),
    ("mali", frozenset({"mediatek", "samsung", "google", "unisoc", "hisilicon"})),
    ("immortalis", frozenset({"mediatek", "google", "hisilicon"})),
    ("powervr", frozenset({"mediatek", "google", "unisoc", "samsung"})),
    ("maleoon", frozenset({"hisilicon"})),
)


def model_in(text: str) -> str:
    """The one chip that this text names, in upper case; empty when it names none or several."""
    word = text.strip()
    if word.lower() in AMBIGUOUS_BOARDS:
        return ""
    if board := BOARD_MODELS.get(word.lower()):
        return board
    upper = re.sub(r"[\s_]+", "-", word).upper()
    return upper if _MODEL.match(upper) else ""


def naming_scheme(model: str, source: str) -> str:
    """Names of one scheme can be compared: two different ones mean two chips.

    A vendor may name one chip in several schemes (``S5E9925`` is ``EXYNOS2200``), and MediaTek's boards carry
    the number of the family's first chip."""
    letters = re.match(r"[A-Z0-9]*?[A-Z](?=\d)|[A-Z]+", model)
    scheme = {"SDM": "SM", "ZUMA": "TENSOR", "ZUMAPRO": "TENSOR", "GS": "TENSOR"}.get(
        letters[0] if letters else model, letters[0] if letters else model
    )
    from_board = "soc" not in source and "mediatek" not in source
    return f"{scheme} board" if scheme == "MT" and from_board else scheme


def vendor_of_model(text: str) -> str:
    """Vendor (a key of VENDOR_NAMES) of a model, board or maker's name; empty when unknown."""
    match = _MODEL.match(re.sub(r"[\s_]+", "-", text.strip()).upper())
    if match and match.lastgroup:
        return match.lastgroup
    word = text.strip().lower()
    return next((vendor for vendor, words in _VENDOR_WORDS.items() if word in words), "")


def renderer_family(renderer: str) -> frozenset[str]:
    """Vendors that build this GPU in; empty for one that is not known (software, desktop)."""
    text = renderer.lower()
    return next((makers for name, makers in _GPU_MAKERS if name in text), frozenset[str]())

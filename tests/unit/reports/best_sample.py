"""Best variants made by hand: two SoCs of one vendor, plain or with every text an attack."""

from dataclasses import replace

from orchestrator.domain.best import (
    Best,
    LeftOut,
    Margin,
    Measured,
    PhoneShare,
    Pick,
    SocBest,
    Variant,
    WorkloadBest,
)

NAN = float("nan")
RUNS = ["20261201T010000Z-nightly-aaaa", "20261202T010000Z-nightly-bbbb"]
WORKLOAD = {"seq": 512, "head_dim": 64, "causal": False, "mask": "none"}


def variant(case_id: str, log_ratio: float, nmse: float, *, front: bool = False, **axes: object) -> Variant:
    chosen = {"api": "gles", "precision": "fp32", "tile": "32x16"} | axes
    return Variant(
        case_id=case_id,
        kernel="attention_flash",
        axes={name: value for name, value in chosen.items() if isinstance(value, (bool, int, str))},
        code_hash=f"c0de{case_id}",
        latency_ns=1_234_567.4 * 2.718281828**log_ratio,
        log_ratio=log_ratio,
        nmse=nmse,
        max_abs=4e-7,
        phones=2,
        nights=2,
        clock="gpu",
        front=front,
    )


def workload(*, text: str = "") -> WorkloadBest:
    variants = [
        variant("aaaa", 0.0, 9e-8, front=True, precision="fp16_storage", vector=4),
        variant("bbbb", 0.004, 1.6e-13, front=True, tile="64x16"),
        variant("cccc", 0.9, NAN, api="vulkan", lanes=text or "4"),
    ]
    shares = [PhoneShare("phone-1", 2, 2, 2, 0.0), PhoneShare("phone-10", 2, 0, 1, 0.03)]
    warnings = ["rests on 2 nights, and 7 are needed", f"on phone-10{text} it loses"]
    picks = [
        Pick(
            "any", "bbbb", "aaaa", Margin("aaaa", -0.004, -0.009, 0.001, -0.01, 4), ["aaaa"],
            "its error is smaller", shares, 2, warnings,
        ),
        Pick("gles", "bbbb", "aaaa", Margin("aaaa", -0.004, NAN, NAN, -0.01, 4), [], "", shares, 2, []),
        Pick("vulkan", "cccc", "cccc", None, [], "", shares[:1], 2, []),
    ]  # fmt: skip
    left = LeftOut("dddd", "attention_naive", {"api": "gles"}, text or "mismatch on phone-1")
    parameters = WORKLOAD | ({text: text} if text else {})
    return WorkloadBest("attention", parameters, picks, variants, [left])


def best(*, text: str = "", virtual: bool = False) -> Best:
    """``text`` takes the place of everything that is not ours to name."""
    phones = [
        Measured(d, {"gles": text or "Adreno 750; V@744"}, RUNS, {}, virtual) for d in ("phone-1", "phone-10")
    ]
    one = SocBest(text or "SM8650", text or "Qualcomm", phones, [workload(text=text)], [])
    other = replace(workload(text=text), picks=[workload(text=text).picks[0]])
    socs = [one, SocBest(f"{text}SM6375", text or "Qualcomm", phones, [other], ["its phones are new"])]
    return Best(RUNS[-1], "nightly", RUNS, ["2026-12-01", "2026-12-02"], "0.1.0", socs=socs,
                method={"window": 14.0})  # fmt: skip

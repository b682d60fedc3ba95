"""rms_norm: o = x / sqrt(mean(x²) + eps) · weight over rows of ``hidden`` elements, one work group a row.

Each row is divided by s = max(1, largest |x|) before it is squared: squares of numbers that fp16 or fp32 can
hold may be beyond what it can hold. mean((x/s)²) + eps/s² is the same number over s².
"""

from collections.abc import Mapping

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, DType, Kernel, Pass, Reference, Tolerance

U = 2.0**-24
"""Unit roundoff of fp32."""
HALF_ULP = 2.0**-10
"""Of fp16, relative."""
SMALLEST, HALF_SUBNORMAL = 2.0**-126, 2.0**-24
"""Results below the smallest normal number of fp32 may become zero; fp16 goes in such steps near zero."""


class RmsNorm(Kernel):
    name = "rms_norm"
    op = "rms_norm"
    params = (
        Axis("rows", None),
        Axis("hidden", None),
        Axis("eps", ("1e-5", "1e-6"), default="1e-5"),
    )
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage"), default="fp32"),
        Axis("group", (32, 64, 128, 256), default=64),
    )
    distributions = ("normal", "zeros_row", "faint", "large", "nan_row")
    tolerance_version = "1"

    def invalid(self, case: Case) -> str | None:
        hidden = int(case.workload["hidden"])
        return f"hidden {hidden} is odd; elements travel in pairs" if hidden % 2 else None

    def features(self, case: Case) -> frozenset[str]:
        return frozenset({"pack_half"} if _is_half(case) else ())

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        rows, hidden = _shape(case)
        stored: DType = "f16" if _is_half(case) else "f32"
        return (
            Buffer("x", "in", stored, rows * hidden),
            Buffer("weight", "in", stored, hidden),
            Buffer("o", "out", stored, rows * hidden),
        )

    def passes(self, case: Case) -> tuple[Pass, ...]:
        rows, hidden = _shape(case)
        group = int(case.axes["group"])
        only = Pass(
            template="rms_norm.comp.j2",
            workgroup=(group, 1, 1),
            grid=(rows, 1, 1),
            shared_bytes=4 * group,
            buffers=("x", "weight", "o"),
            constants={"PAIRS": hidden // 2},
        )
        return (only,)

    def data_key(self, case: Case) -> str:
        return f"rms_norm-1 {case.workload} {case.inputs} {case.seed} {_is_half(case)}"

    def inputs(self, case: Case) -> Mapping[str, Array]:
        rows, hidden = _shape(case)
        rng = np.random.default_rng(case.seed)
        x = rng.standard_normal((rows, hidden))
        weight = rng.uniform(0.5, 2.0, hidden)
        match case.inputs:
            case "zeros_row":  # 0 / sqrt(0 + eps); without eps NaN
                x[0] = 0.0
            case "faint":  # mean(x²) is eps: a wrong eps shows
                x *= np.sqrt(_eps(case))
            case "large":  # their squares are infinite in the type that holds them
                x *= 1e4 if _is_half(case) else 1e30
            case "nan_row":  # that row is lost, its neighbours are not
                x[rows // 2, hidden // 2] = np.nan
            case _:
                pass
        stored = np.float16 if _is_half(case) else np.float32
        return {"x": x.astype(stored), "weight": weight.astype(stored)}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        x, weight = (inputs[name].astype(np.float64) for name in ("x", "weight"))
        mean = np.mean(np.square(x), axis=1, keepdims=True)
        return {"o": x / np.sqrt(mean + _eps(case)) * weight}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        """Rounding errors in units of u = 2⁻²⁴, an ULP being up to 2u; accuracies are those of the Vulkan
        specification ("Precision and Operation of SPIR-V Instructions") and of ESSL 3.10, section 4.7.1.

        - x/s: a division, 2.5 ULP = 5u. Its square: 2·5u, and 2u of its own.
        - No term of the sum is negative: its relative error is that of a term and 2u for each addition that a
          term goes through, ceil(pairs/group)·2 in an invocation and log2(group) in the tree; together K.
        - The mean: a division, 5u. Adding eps/s²: 2u (its own 10u weigh less than the terms' 12u).
        - inversesqrt: 2 ULP = 4u, and half of what came in: (12 + 2K + 5 + 2)u / 2.
        - x/s again, 5u, and two products, 4u. Together (22.5 + K)u, relative to each result.
        - fp16_storage: the result is rounded to 16 bits, up or down: a whole ULP, 2⁻¹⁰, or 2⁻²⁴ near zero.
        - A quotient below 2⁻¹²⁶ may become zero, and then grows by the factor of the row, which is at most
          1/sqrt(eps), or sqrt(hidden) where s > 1.
        """
        _, hidden = _shape(case)
        half, group = _is_half(case), int(case.axes["group"])
        additions = -(-(hidden // 2) // group) * 2 + (group - 1).bit_length()
        rtol = (22.5 + additions) * U + (HALF_ULP if half else 0.0)
        growth = max(_eps(case) ** -0.5, hidden**0.5) * float(np.abs(inputs["weight"]).max())
        atol = SMALLEST * growth + (HALF_SUBNORMAL if half else 0.0)
        exact = self.reference(case, inputs)["o"]
        signal: Reference = exact[np.isfinite(exact)]
        nmse = float(np.square(atol + rtol * np.abs(signal)).mean() / np.square(signal).mean())
        return {"o": Tolerance(atol=atol, rtol=rtol, nmse=nmse)}

    def cost(self, case: Case) -> Cost:
        """A row stays in its group's cache: x, read three times, counts once, and weight once a group."""
        rows, hidden = _shape(case)
        element = 2 if _is_half(case) else 4
        return Cost(
            flops=7 * rows * hidden,  # largest; quotient, square, sum; quotient, two products
            bytes_min=(2 * rows + 1) * hidden * element,
            bytes_moved=3 * rows * hidden * element,
        )


def _is_half(case: Case) -> bool:
    return case.axes["precision"] == "fp16_storage"


def _shape(case: Case) -> tuple[int, int]:
    return int(case.workload["rows"]), int(case.workload["hidden"])


def _eps(case: Case) -> float:
    return float(case.workload["eps"])


kernel = RmsNorm()

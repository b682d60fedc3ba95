"""Error budget of attention: how far a correct kernel may be from the float64 reference.

Per output element o_d = Σ_j p_j v_jd of one query row, p_j = exp(s_j − m) / l. Unit roundoff of fp32 is
u = 2⁻²⁴. Rounding errors of sums are taken as random, mean-independent variables, so that n of them grow
like λ√n·u and not like the worst case n·u (N. J. Higham and T. Mary, "A New Approach to Probabilistic
Rounding Error Analysis", SIAM J. Sci. Comput. 41(5), 2019). Such a bound fails for one sum with probability
at most 2·exp(−λ²/2) if every rounding were as large as u. Roundings are spread over ±u, their root mean
square is below u/√3, so that λ = CONFIDENCE = 4 stands at about 7 standard deviations. A driver that
truncates has biased errors and may leave the budget at long accumulations; that is worth a report.

1. Logits. s_j is a sum of head_dim products: |δ_j| ≤ λ·u·√(head_dim + 2)·scale·Σ_d|q_d||k_jd|.
   Softmax is shift invariant, so to first order Δo_d = Σ_j p_j·δ_j·(v_jd − o_d). Equal keys go through equal
   instructions and have equal δ; keys that differ have independent δ. Hence the 2-norm over groups g of
   equal keys: |Δo_d| ≤ sqrt(Σ_g (δ_g·Σ_{j∈g} p_j (v_jd − o_d))²).
2. exp. ESSL 3.10 section 4.7 allows (3 + 2|x|) ULP, ULP = 2u, and x is itself a rounded difference (u|x|).
   That error is a property of the device's exp, not random: it is summed without cancellation, weighted
   with |v_jd − o_d|. Online softmax multiplies by one more exp each time the running maximum grows after
   key j (r_j times, counted on the data; the arguments add up to x): ε_j = (3(1 + r_j) + 2.5|x_j|)·2u.
3. Accumulation of o over the n visible keys of the row: u·growth·Σ_j p_j|v_jd|. Adding equal terms again and
   again rounds the same way for long stretches, so roundings of equal keys count as one variable: growth =
   min(n, λ·√(n·g)), g keys in the largest group; λ√n for random keys, never above the worst case n.
   A kernel that sums tiles of B keys by themselves, and only then adds that sum to the one of earlier tiles,
   rounds a term at most r = B + ⌈kv_seq/B⌉ times: r takes the place of n where it is smaller, as for l in 4.
   An addition of two floats errs by no more than the smaller of them. So light keys, p_j < u, owe at most
   their own share Σ p_j|v_jd|, in whatever order they are added, and n counts the others only; twice where
   sums are rescaled, as every other key may bring a new maximum. The lesser of both bounds holds.
4. Accumulation of l, u·growth, and division (2.5 ULP, then one product), 6u: relative.
5. fp16 output (fp16_storage): packHalf2x16 does not fix the rounding mode (ESSL 3.10 section 4.7), so a
   whole fp16 ULP, 2⁻¹⁰ relative, and 2⁻²⁴ absolute where fp16 is subnormal. Rounding of inputs is in the
   reference already; tiles in shared memory hold those same fp16 values, so packing them again is exact.
6. mediump may be fp16: at least 2⁻¹⁰ relative and magnitudes from 2⁻¹⁴ to 2¹⁴ (ESSL 3.10 section 4.7), so
   u_m = 2⁻¹⁰. Kernels use it for tile values and single products, never for sums, logits, running maximum or
   accumulators. δ_j gains λ·u_m·√MEDIUMP_ROUNDINGS·scale·sqrt(Σ_d q_d²k_jd²), and
   λ·2⁻¹⁴·scale·(‖q‖₂ + ‖k_j‖₂) for values flushed to zero; o gains u_m·Σ_j p_j|v_jd| + 2⁻¹⁴ for v. A device
   that computes mediump in fp32 is far inside this budget: the variant declares what it needs.

7. Products in fp16 (fp16, fp16_all): u_h = 2⁻¹¹, as OpFMul and conversions are correctly rounded (Vulkan
   specification, "Precision and Operation of SPIR-V Instructions"), and whatever lies below 2⁻¹⁴ may be
   flushed to zero (shaderDenormPreserveFloat16 is not asked for). q is scaled in fp32 and rounded once, so
   δ_j gains λ·u_h·√2·scale·‖q∘k_j‖₂, and λ·2⁻¹⁴·(scale·‖q‖₂ + ‖k_j‖₂ + √head_dim) for what is flushed. A
   weight is rounded before it goes into o and into l: λ·u_h·√g·‖p(v_d − o_d)‖₂ over the keys, g as in 3.
   Its product with v is rounded: u_h·min(Σ p|v_d|, λ·√g·‖p·v_d‖₂). At most w_j = min(p_j, 2⁻¹⁴/Σ exp(s_j −
   m)) of a weight, and w_j·max(1, |v_jd|) of a product, is flushed: min(Σ w·max(1, |v_d|), λ·√g·‖w·max(1,
   |v_d|)‖₂); of v itself 2⁻¹⁴. Native 16-bit types and packed ones hold the same values: ``halves`` changes
   no budget.
8. Sums in fp16 (fp16_all): a rounding of a running sum is relative to that partial sum. Nothing is assumed
   about the order but that it does not depend on the data: a random part of some terms adds up to its share
   of the whole give or take half of their 2-norm, so partial sums stay below |s_j| + 2·scale·‖q∘k_j‖₂ (four
   times that deviation) and |o_d| + 2‖p·v_d‖₂. δ_j gains λ·u_h·√(head_dim + 2) times the former, o gains
   u_h·growth times the latter, with growth as in 3 and one more rounding for each rescale. Sums beyond
   65504 overflow: inputs whose sums do, or which an fp16 sum cannot count, are refused for fp16_all by name
   (attention_inputs).
9. Weights in fp16, all products exact and all sums fp32 (matrix units; attention_flash_matrix): a weight is
   rounded, u_h as in 7, and counts the same in o and in l: λ·u_h·√g·‖p(v_d − o_d)‖₂. Weights carry a factor
   of 2⁷ beside the largest one of their row, so that they are normal numbers from 2⁻²¹ of it up. Those below
   (2⁻²⁰ is counted: exp has errors) may be lost: Σ w·|v_d − o_d|, w_j = p_j where p_j·Σ exp(s_j − m) < 2⁻²⁰.

10. An additive mask. t_j = s_j + mask_j is rounded once more: by at most u·|t_j|, and by at most |s_j| + δ_j
   where the mask's number is returned as it is (−10⁹ on a logit of 1). Keys of equal t have equal roundings,
   a row whose visible t are all equal has none that shows: λ·√g·‖p·min(u|t|, |s| + δ)·(v_d − o_d)‖₂ over the
   keys, g as in 3. All else above holds with t_j for s_j, but for δ_j, which is of the products. Causality,
   windows and boolean masks round nothing: n of 3 and 4 counts the keys that a row is left with.

11. Runs of n terms in fp16 (half_run): what goes into o is the fp32 sum of sums of n products, two of which
   share 2n neighbouring keys, even and odd; q·k are two such runs over head_dim. A product and its addition
   are rounded once, and a weight is rounded for o but not for l: 7 counts one rounding of each product, then
   the weight's. δ_j gains λ·u_h·√(head_dim/2 + 2) times the partial sums of 8. Runs round independently,
   unless equal keys fill several: o gains u_h·min(n, λ·√(n·min(g, n)))·(|o_d|·W + 2‖p·v_d‖₂), where the
   2-norm of the weights of the pairs of runs, W, grows by √(g/n) where g > n, up to 1. Runs beyond 65504
   overflow: inputs with values over 65504/n are refused by name.

atol is the largest sum of 1–3 and 6–11 over all finite elements, rtol the sum of 4 and 5, and NMSE is
bounded by the mean square of the whole budget over the mean square of the reference.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.kernel import Array, Tolerance
from orchestrator.ops.attention_mask import LogitMask
from orchestrator.ops.attention_shape import AttentionShape
from orchestrator.ops.tolerances import (
    CONFIDENCE,
    HALF_SMALLEST,
    HALF_SUBNORMAL,
    HALF_ULP,
    U32,
    U_HALF,
    U_MEDIUMP,
    ToleranceCache,
    rounded_up,
)

BUDGET_VERSION = 3
"""Part of the code hash: raise it whenever a formula here changes."""

MEDIUMP_ROUNDINGS = 4
"""q scaled, q stored, k stored, product; products are summed in highp."""
WEIGHT_SMALLEST = 2.0**-20
"""Weights, as shares of the largest, that matrix units keep the digits of."""
PARTIAL_SUMS = 2.0
"""Partial sums over |sum| + this × 2-norm of the terms are not expected."""

F32 = NDArray[np.float32]

_BLOCK_ELEMENTS = 1 << 19
"""Scores at a time: few enough for a processor's cache, enough for its matrix library to be quick."""

_remembered = ToleranceCache()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What a variant computes with, as far as the budget depends on it."""

    half_output: bool
    mediump: bool
    online: bool
    """Online softmax: partial results are rescaled when the running maximum grows."""
    half_products: bool = False
    """q·k and p·v are multiplied in fp16."""
    half_sums: bool = False
    """And summed in fp16."""
    half_weights: bool = False
    """Weights are rounded to fp16; products and sums of them are fp32."""
    half_run: int = 0
    """Weighted values, and for q·k products of all of head_dim / 2, that are summed in fp16 before they join
    the sum in fp32; 0: none."""
    tile_sums: int = 0
    """Keys whose terms are summed by themselves before they join those of earlier keys; 0: one by one."""


@dataclass
class _Sums:
    """Over all finite elements: the largest absolute part, and sums of squares for NMSE."""

    atol: float = 0.0
    rtol: float = 0.0
    budget_sq: float = 0.0
    ref_sq: float = 0.0


def attention_tolerance(
    q: Array, k: Array, v: Array, shape: AttentionShape, arithmetic: Arithmetic, mask: Array | None = None
) -> Tolerance:
    """Bounds for one set of inputs: stored values, k and v without unused rows (shape.compact).

    Computed in fp32, an estimate of an estimate; remembered.
    """
    tensors = (q, k, v) if mask is None else (q, k, v, mask)
    logit_mask = LogitMask(shape, mask)
    return _remembered.get(
        tensors, (shape, arithmetic), lambda: _tolerance(q, k, v, shape, arithmetic, logit_mask)
    )


def _tolerance(
    q: Array, k: Array, v: Array, shape: AttentionShape, arithmetic: Arithmetic, mask: LogitMask
) -> Tolerance:
    sums = _Sums()
    rows = max(1, _BLOCK_ELEMENTS // shape.kv_seq)
    for kv_head in range(shape.kv_heads):
        keys = np.nan_to_num(k[kv_head].astype(np.float32), neginf=0.0, posinf=0.0)
        raw, values = k[kv_head].astype(np.float32), v[kv_head].astype(np.float32)
        head = _KeyHead(raw, keys, values, shape, arithmetic, mask)
        for query_head in range(kv_head * shape.group, (kv_head + 1) * shape.group):
            for start in range(0, shape.seq, rows):
                stop = min(shape.seq, start + rows)
                with np.errstate(invalid="ignore", over="ignore", under="ignore"):
                    head.add(q[query_head, start:stop].astype(np.float32), start, sums)
    nmse = sums.budget_sq / sums.ref_sq if sums.ref_sq else 0.0
    return Tolerance(atol=rounded_up(sums.atol), rtol=rounded_up(sums.rtol), nmse=rounded_up(nmse))


def _random_sum(weights: F32, values: F32, alike: np.float32) -> F32:
    """Sum of weight × value over keys with random signs, never above the sum of all."""
    random = alike * np.sqrt(np.square(weights) @ np.square(values))
    return np.minimum(random, weights @ values).astype(np.float32)


def _differ(numbers: F32, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[rows, 1]: whether those numbers of a row that are there are not all the same."""
    lowest = np.min(np.where(there, numbers, np.inf), axis=1, keepdims=True)
    return np.max(np.where(there, numbers, -np.inf), axis=1, keepdims=True) > lowest


class _KeyHead:
    """Budget of the query rows that read one key/value head."""

    def __init__(
        self,
        raw_keys: F32,
        keys: F32,
        values: F32,
        shape: AttentionShape,
        arithmetic: Arithmetic,
        mask: LogitMask,
    ) -> None:
        self._shape, self._arithmetic, self._mask = shape, arithmetic, mask
        self._raw, self._keys, self._values = raw_keys, keys, values
        self._centre = values.mean(axis=0)
        _, self._group_of = np.unique(raw_keys, axis=0, return_inverse=True)
        self._group_of = self._group_of.reshape(-1)
        sizes = np.bincount(self._group_of)
        self._groups, self._largest_group = len(sizes), int(sizes.max())

    def add(self, queries: F32, start: int, sums: _Sums) -> None:
        """Account for a block of query rows, the first of which is row ``start``."""
        dot: F32 = (queries * np.float32(self._shape.scale)).astype(np.float32) @ self._raw.T
        s = dot.copy()
        self._mask.apply(s, start)
        peak: F32 = np.max(s, axis=1, keepdims=True)
        x: F32 = s - np.where(np.isneginf(peak), np.float32(0), peak)
        p: F32 = np.exp(x)
        total = np.sum(p, axis=1, keepdims=True)
        finite = np.isfinite(total[:, 0]) & np.isfinite(queries).all(axis=1)
        usable = finite & (total[:, 0] > 0)
        if not usable.any():
            return
        s, x, p, dot, queries = s[usable], x[usable], p[usable], dot[usable], queries[usable]
        limits = np.count_nonzero(s > -np.inf, axis=1)
        p /= total[usable]
        x[p == 0] = 0
        centred = self._values - self._centre
        o = p @ centred
        delta = self._logit_errors(queries, dot)
        absolute = np.sqrt(np.maximum(self._spread_squared(p, delta, centred, o), 0))
        if self._mask.added is not None:
            absolute += self._mask_errors(dot, delta, s, p, centred, o)
        absolute += self._exp_errors(s, x, p, centred, o)
        weighted = p @ np.abs(self._values)
        summed, relative = self._sum_errors(p, limits, weighted)
        absolute += summed
        if self._arithmetic.mediump:
            absolute += np.float32(U_MEDIUMP) * weighted + np.float32(HALF_SMALLEST)
        if self._arithmetic.half_products:
            absolute += self._half_errors(p, total[usable], centred, o)
        if self._arithmetic.half_sums:
            absolute += self._half_sum_errors(s, p, limits, o)
        if self._arithmetic.half_run:
            absolute += self._half_run_errors(p, o)
        if self._arithmetic.half_weights:
            absolute += self._half_weight_errors(p, total[usable], centred, o)
        rtol = relative + 6 * U32
        if self._arithmetic.half_output:
            rtol += HALF_ULP
            absolute += np.float32(HALF_SUBNORMAL)
        reference = o + self._centre
        sums.atol = max(sums.atol, float(absolute.max()))
        sums.rtol = max(sums.rtol, rtol)
        sums.budget_sq += float(
            ((absolute + np.float32(rtol) * np.abs(reference)).astype(np.float64) ** 2).sum()
        )
        sums.ref_sq += float((reference.astype(np.float64) ** 2).sum())

    def _sum_errors(self, p: F32, limits: NDArray[np.int_], weighted: F32) -> tuple[F32, float]:
        """Of o for every element, and of l relative to it: the largest of all rows."""
        growth = U32 * self._growth(limits)
        errors = growth.astype(np.float32)[:, None] * weighted
        light = np.where(p < U32, p, np.float32(0))
        if not light.any():
            return errors, float(growth.max())
        heavy = np.count_nonzero(p >= U32, axis=1) * (2 if self._arithmetic.online else 1)
        fewer = U32 * self._growth(np.minimum(limits, heavy))
        others = fewer.astype(np.float32)[:, None] * weighted + light @ np.abs(self._values)
        return np.minimum(errors, others), float(np.minimum(growth, fewer + light.sum(axis=1)).max())

    def _growth(self, additions: NDArray[np.int_]) -> NDArray[np.float64]:
        """Roundings that add up, of so many additions."""
        roundings = np.minimum(additions, self._longest_path())
        return np.minimum(roundings, CONFIDENCE * np.sqrt(roundings * self._largest_group))

    def _longest_path(self) -> int:
        """Additions that a term of o or l can go through."""
        keys, apart = self._shape.kv_seq, self._arithmetic.tile_sums
        return apart + -(-keys // apart) if apart else keys

    def _logit_errors(self, queries: F32, s: F32) -> F32:
        """δ of every (row, key); ``s`` are the logits before the mask."""
        scale = np.float32(self._shape.scale)
        first = np.float32(CONFIDENCE * U32 * math.sqrt(self._shape.head_dim + 2)) * scale
        delta = first * (np.abs(queries) @ np.abs(self._keys).T)
        if self._arithmetic.mediump or self._arithmetic.half_products:
            products = np.sqrt(np.square(queries) @ np.square(self._keys).T)
            delta += self._low_logit_errors(queries, s, products)
        return delta.astype(np.float32)

    def _low_logit_errors(self, queries: F32, s: F32, products: F32) -> F32:
        """What lower precision adds to δ; ``products`` are the 2-norms ‖q∘k_j‖₂."""
        scale, confidence = np.float32(self._shape.scale), np.float32(CONFIDENCE)
        if self._arithmetic.mediump:
            lengths = np.linalg.norm(queries, axis=1)[:, None] + np.linalg.norm(self._keys, axis=1)[None, :]
            rounded = np.float32(CONFIDENCE * U_MEDIUMP * math.sqrt(MEDIUMP_ROUNDINGS)) * scale * products
            return (rounded + np.float32(CONFIDENCE * HALF_SMALLEST) * scale * lengths).astype(np.float32)
        head_dim = self._shape.head_dim
        delta = confidence * np.float32(U_HALF * math.sqrt(2)) * scale * products
        lengths = (
            scale * np.linalg.norm(queries, axis=1)[:, None] + np.linalg.norm(self._keys, axis=1)[None, :]
        )
        delta += confidence * np.float32(HALF_SMALLEST) * (lengths + np.float32(math.sqrt(head_dim)))
        summed = head_dim if self._arithmetic.half_sums else head_dim / 2 if self._arithmetic.half_run else 0
        if summed:
            partial = np.abs(np.where(np.isfinite(s), s, 0)) + np.float32(PARTIAL_SUMS) * scale * products
            delta += confidence * np.float32(U_HALF * math.sqrt(summed + 2)) * partial
        return delta.astype(np.float32)

    def _half_errors(self, p: F32, total: F32, centred: F32, o: F32) -> F32:
        """Weights and their products with v in fp16; ``total`` are the sums of unnormalised weights."""
        alike = np.float32(CONFIDENCE * math.sqrt(self._largest_group))
        errors = self._rounded_weights(p, centred, o)
        errors += np.float32(U_HALF) * _random_sum(p, np.abs(self._values), alike)
        lost = np.minimum(p, np.float32(HALF_SMALLEST) / total)
        errors += _random_sum(lost, np.maximum(np.abs(self._values), 1), alike)
        return (errors + np.float32(HALF_SMALLEST)).astype(np.float32)

    def _rounded_weights(self, p: F32, centred: F32, o: F32) -> F32:
        """What rounding every weight to fp16, in o and in l alike, does to o."""
        return np.float32(U_HALF) * self._random_pull(p, centred, o)

    def _random_pull(self, weights: F32, centred: F32, o: F32) -> F32:
        """λ·√g·‖w·(v_d − o_d)‖₂ over the keys."""
        alike = np.float32(CONFIDENCE * math.sqrt(self._largest_group))
        squares = np.square(weights)
        spread = squares @ np.square(centred) - 2 * o * (squares @ centred)
        spread += np.square(o) * squares.sum(axis=1, keepdims=True)
        return alike * np.sqrt(np.maximum(spread, 0))

    def _mask_errors(self, dot: F32, delta: F32, t: F32, p: F32, centred: F32, o: F32) -> F32:
        """What rounding the sum of a logit (``dot``) and the mask's number does to o; ``t`` are the sums."""
        rounding = np.minimum(np.float32(U32) * np.abs(t), np.abs(dot) + delta)
        differ = _differ(dot, p > 0) | _differ(t, p > 0)
        return self._random_pull(np.where((p > 0) & differ, p * rounding, np.float32(0)), centred, o)

    def _half_weight_errors(self, p: F32, total: F32, centred: F32, o: F32) -> F32:
        """Weights in fp16, products and sums in fp32; ``total`` are the sums of unnormalised weights."""
        lost = np.where(p * total < np.float32(WEIGHT_SMALLEST), p, np.float32(0))
        lost_from_o = lost @ np.abs(centred) + np.abs(o) * lost.sum(axis=1, keepdims=True)
        return (self._rounded_weights(p, centred, o) + lost_from_o).astype(np.float32)

    def _half_sum_errors(self, s: F32, p: F32, limits: NDArray[np.int_], o: F32) -> F32:
        """Accumulation of o in fp16, rescales included."""
        roundings = limits.astype(np.float32)
        if self._arithmetic.online:
            highest = np.maximum.accumulate(s, axis=1)
            roundings += (highest[:, 1:] > highest[:, :-1]).sum(axis=1)
        growth = np.minimum(roundings, CONFIDENCE * np.sqrt(roundings * self._largest_group))
        partial = np.abs(o + self._centre)
        partial += np.float32(PARTIAL_SUMS) * np.sqrt(np.square(p) @ np.square(self._values))
        return (np.float32(U_HALF) * growth[:, None] * partial).astype(np.float32)

    def _half_run_errors(self, p: F32, o: F32) -> F32:
        """Accumulation of runs in fp16."""
        run, alike = self._arithmetic.half_run, self._largest_group
        growth = min(run, CONFIDENCE * math.sqrt(run * min(alike, run)))
        shares: F32 = np.add.reduceat(p, list(range(0, p.shape[1], 2 * run)), axis=1)
        share = np.linalg.norm(shares, axis=1, keepdims=True) * math.sqrt(max(1.0, alike / run))
        partial = np.abs(o + self._centre) * np.minimum(share, 1).astype(np.float32)
        partial += np.float32(PARTIAL_SUMS) * np.sqrt(np.square(p) @ np.square(self._values))
        return (np.float32(U_HALF * growth) * partial).astype(np.float32)

    def _spread_squared(self, p: F32, delta: F32, centred: F32, o: F32) -> F32:
        """Σ over groups of equal keys of (δ·Σ p (v − o))², for every (row, dimension)."""
        if self._groups == self._shape.kv_seq:
            weight = np.square(p * delta)
            moments = weight @ np.square(centred) - 2 * o * (weight @ centred)
            return moments + np.square(o) * weight.sum(axis=1, keepdims=True)
        if self._groups == 1:
            return np.zeros_like(o)
        result = np.zeros_like(o)
        for group in range(self._groups):
            members = np.flatnonzero(self._group_of == group)
            share = p[:, members]
            pull = share @ centred[members] - o * share.sum(axis=1, keepdims=True)
            result += np.square(delta[:, members[:1]] * pull)
        return result

    def _exp_errors(self, s: F32, x: F32, p: F32, centred: F32, o: F32) -> F32:
        """Σ p·ε·|v − o|, bounded by Σ p·ε·|v − c| + |o − c|·Σ p·ε with c the mean of v."""
        ulps = 3 + 2.5 * np.abs(x)
        if self._arithmetic.online:
            highest = np.maximum.accumulate(s, axis=1)
            times = np.zeros(s.shape, np.float32)  # that the maximum has grown up to and with key j
            np.cumsum(highest[:, 1:] > highest[:, :-1], axis=1, dtype=np.float32, out=times[:, 1:])
            ulps += 3 * (times[:, -1:] - times)
        weight = (p * ulps.astype(np.float32)) * np.float32(2 * U32)
        return weight @ np.abs(centred) + np.abs(o) * weight.sum(axis=1, keepdims=True)

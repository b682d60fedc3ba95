"""What error budgets of all ops have in common: rounding of bounds, and not working them out twice."""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from threading import Lock

import numpy as np

from orchestrator.domain.kernel import Array, Tolerance

CONFIDENCE = 4.0
"""λ of the probabilistic bounds; attention_budget says why."""
U32 = 2.0**-24
U_HALF = 2.0**-11
"""Unit roundoffs of fp32 and fp16."""
U_MEDIUMP = 2.0**-10
"""Of mediump: no more is asked of it (ESSL 3.10, section 4.7)."""
HALF_ULP = 2.0**-10
"""Of fp16, relative: what a conversion may err that rounds either way."""
HALF_SUBNORMAL = 2.0**-24
"""The same where fp16 is subnormal, absolute."""
HALF_SMALLEST = 2.0**-14
"""Smallest normal number of fp16, and of mediump."""

_REMEMBERED = 64


class ToleranceCache:
    """Bounds by the content of the inputs, because the many variants of a workload share them.

    Holds the last 64 that were worked out. Threads that ask for the same at once wait for the first of them.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, Future[Tolerance]] = OrderedDict()
        self._lock = Lock()

    def get(self, tensors: Sequence[Array], about: Hashable, make: Callable[[], Tolerance]) -> Tolerance:
        """Those of these tensors, of one type, and of whatever else they depend on."""
        digest = hashlib.blake2b(digest_size=16)
        for tensor in tensors:
            digest.update(np.ascontiguousarray(tensor).data)
        key = (digest.hexdigest(), str(tensors[0].dtype), about)
        mine = Future[Tolerance]()
        with self._lock:
            found = self._found.get(key)
            if found is None:
                self._found[key] = mine
                while len(self._found) > _REMEMBERED:
                    self._found.popitem(last=False)
        if found is not None:
            return found.result()
        try:
            mine.set_result(make())
        except BaseException as e:
            mine.set_exception(e)
            with self._lock:
                self._found.pop(key, None)
            raise
        return mine.result()


def rounded_up(value: float) -> float:
    """Three digits, rounded up: the same on every machine whatever its BLAS, short in reports."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit) * unit:.3g}")

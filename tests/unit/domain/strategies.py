"""Hypothesis strategies for domain values."""

from hypothesis import settings
from hypothesis import strategies as st

from orchestrator.domain.case import AxisValue, Case

quick = settings(max_examples=40, deadline=None)
"""Few examples, and no time limit: two busy cores are no reason to fail."""

names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
axis_values: st.SearchStrategy[AxisValue] = st.one_of(
    st.booleans(), st.integers(-(10**6), 10**9), st.text('01aB_x.é\u202e"\\\n ', max_size=8)
)
points: st.SearchStrategy[dict[str, AxisValue]] = st.dictionaries(names, axis_values, max_size=6)
cases: st.SearchStrategy[Case] = st.builds(
    Case,
    kernel=names,
    op=names,
    workload=points,
    axes=points,
    inputs=names,
    seed=st.integers(0, 10**6),
)
numbers = st.floats(allow_nan=True, allow_infinity=True)

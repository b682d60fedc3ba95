"""Whether a kernel became slower: pure functions over arrays. docs/statistics.md says why each step.

samples → night (one number a series and night) → shift (what the whole phone did) → baseline and moderated
(is tonight unusual for this phone) → pooled and discovery (for this SoC, among all tests of the night) →
confirm (measure again, in turns) → verdicts → groups. Times are natural logarithms of nanoseconds, so that
differences are relative; NaN means that there is no number.
"""

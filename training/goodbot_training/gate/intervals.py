"""The interval of a mean of few; that of a share is the core's (`goodbot.base.proportions`)."""

from __future__ import annotations

from statistics import NormalDist


def student(probability: float, freedom: int) -> float:
    """A quantile of Student's t, within 1 % from 4 degrees of freedom on.

    The normal quantile with four terms of its expansion in 1/freedom (Abramowitz and Stegun, 26.7.5).
    """
    z, v = NormalDist().inv_cdf(probability), freedom
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )

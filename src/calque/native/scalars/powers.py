"""The exponents that have functions of their own, and how these are called."""

from __future__ import annotations

from typing import Final

NAMES: Final[dict[float, str]] = {
    2.0: "pow_2",
    -1.0: "pow_m1",
    -2.0: "pow_m2",
    0.5: "pow_1_2",
    -0.5: "pow_m1_2",
    1.5: "pow_3_2",
    -1.5: "pow_m3_2",
    2.5: "pow_5_2",
    -2.5: "pow_m5_2",
}

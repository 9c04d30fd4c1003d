"""asin and acos of complex numbers against wider arithmetic, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.scalars.vmath.shared import INF, NAN, check_complex, check_parts

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_against_wider_arithmetic(dtype: str) -> None:
    check_complex("asin", dtype, np.arcsin, 2.0)
    check_complex("acos", dtype, np.arccos, 2.0)


def test_next_to_the_branch_points() -> None:
    """Where the other part is denormal."""
    tiny, root = 2.0**-140, 2.0**-70
    check_parts("acos", [(complex(1, tiny), complex(root, -root)), (1 + 0j, complex(0.0, -0.0))])
    check_parts("asin", [(complex(1, tiny), complex(np.pi / 2, root))])


def test_edges() -> None:
    right = np.pi / 2
    check_parts(
        "asin",
        [
            (complex(INF, INF), complex(right / 2, INF)),
            (complex(-INF, 1.0), complex(-right, INF)),
            (complex(1.0, -INF), complex(0.0, -INF)),
            (complex(0.0, NAN), complex(0.0, NAN)),
            (complex(-0.0, -0.0), complex(-0.0, -0.0)),
            (complex(2.0, -0.0), complex(right, -np.arccosh(2))),
            (complex(NAN, 1.0), complex(NAN, NAN)),
        ],
    )
    check_parts(
        "acos",
        [
            (complex(INF, INF), complex(right / 2, -INF)),
            (complex(-INF, 1.0), complex(np.pi, -INF)),
            (complex(1.0, -INF), complex(right, INF)),
            (complex(0.0, NAN), complex(right, NAN)),
            (complex(-2.0, 0.0), complex(np.pi, -np.arccosh(2))),
            (complex(NAN, 1.0), complex(NAN, NAN)),
        ],
    )

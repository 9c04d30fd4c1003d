"""1/sqrt of complex numbers against wider arithmetic, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.scalars.vmath.shared import INF, NAN, check_complex, check_parts

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_against_wider_arithmetic(dtype: str) -> None:
    check_complex("rsqrt", dtype, lambda z: 1 / np.sqrt(z), 1.7)


def test_edges() -> None:
    check_parts(
        "rsqrt",
        [
            (complex(0.0, 0.0), complex(INF, NAN)),
            (complex(INF, 1.0), complex(0.0, -0.0)),
            (complex(1.0, -INF), complex(0.0, 0.0)),
            (complex(-4.0, 0.0), complex(0.0, -0.5)),
            (complex(-4.0, -0.0), complex(0.0, 0.5)),
            (complex(4.0, 0.0), complex(0.5, -0.0)),
            (complex(1.0, NAN), complex(NAN, NAN)),
        ],
    )

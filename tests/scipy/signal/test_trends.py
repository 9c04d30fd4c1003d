"""Trends that are taken out of signals."""

from typing import Any

import numpy as np
import pytest
import scipy.signal

from calque.scipy import signal
from tests.scipy.signal.shared import SIGNAL, close


@pytest.mark.parametrize("bp", [0, [4], [2, 50, 50], [0, 100]])
def test_trends_as_in_scipy(bp: Any) -> None:
    for axis, x in ((-1, SIGNAL), (0, SIGNAL.T)):
        close(signal.detrend(x, axis, bp=bp), scipy.signal.detrend(x.astype(float), axis, bp=bp))
        close(
            signal.detrend(x, axis, "constant"),
            scipy.signal.detrend(x.astype(float), axis, "constant"),
        )
    close(signal.detrend(np.arange(5), bp=[1, 2]), np.zeros(5))

"""The plain case is answered by machine code; a function of Python is asked for all else."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calque
from calque.machine.call.arrays import checked_pair, instance_check
from calque.machine.objects import plain


def _noting(noted: list[Any]) -> Callable[[Any], tuple[Any, Any]]:
    def check(made: Any) -> tuple[Any, Any]:
        noted.append(made)
        children, aux = made
        return tuple(children), aux

    return check


def test_a_pair_with_a_tuple_needs_no_check() -> None:
    noted: list[Any] = []
    flat = checked_pair(lambda x: ((x, 1), "aux"), _noting(noted))
    assert flat(5) == ((5, 1), "aux") and not noted


@pytest.mark.parametrize("made", [([1], "aux"), [(1,), "aux"], iter([(1,), "aux"])])
def test_all_else_is_checked(made: Any) -> None:
    noted: list[Any] = []
    assert checked_pair(lambda x: made, _noting(noted))(0) == ((1,), "aux") and noted == [made]


@pytest.mark.parametrize("pair", [checked_pair, plain.checked_pair])
def test_errors_pass_through(pair: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        pair(lambda x: 1 // x, _noting([]))(0)
    with pytest.raises(ValueError, match="unpack"):
        pair(lambda x: (x, x, x), _noting([]))(0)


def test_the_functions_live_as_long_as_the_pair() -> None:
    def function(x: Any) -> Any:
        return (x,), None

    alive = weakref.ref(function)
    flat = checked_pair(function, _noting([]))
    del function
    gc.collect()
    assert alive() is not None and flat(1) == ((1,), None)
    del flat
    gc.collect()
    assert alive() is None


def test_arrays_are_instances_without_python() -> None:
    frames: list[Any] = []
    x, other, array = calque.numpy.ones(2), np.ones(2), calque.Array
    sys.setprofile(lambda frame, event, arg: event == "call" and frames.append(frame.f_code))
    try:
        mine, theirs = isinstance(x, array), isinstance(other, array)
    finally:
        sys.setprofile(None)
    assert mine and not theirs
    assert [f.co_name for f in frames] == ["_is_instance"]  # for NumPy's array
    assert calque.vmap(lambda v: float(isinstance(v, calque.Array)))(x).tolist() == [1.0, 1.0]
    assert not isinstance(other, type("Own", (calque.Array,), {}))
    assert plain.instance_check(type, lambda cls, x: True) and callable(instance_check)

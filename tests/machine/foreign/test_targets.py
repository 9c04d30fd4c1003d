"""Foreign functions by name."""

import ctypes

import numpy as np
import pytest

from calque.machine.foreign import structs, targets
from tests.machine.foreign.handlers import handler, known, run


def test_stages_run_in_their_order():
    seen = []
    stages = {s: handler(lambda frame: seen.append(frame.stage)) for s in reversed(structs.STAGES)}
    targets.make_known("stages", stages, "cpu", 1, {})
    instance = run(targets.find("stages"))
    instance.run([], [])
    assert seen == [*structs.STAGES, *structs.STAGES[1:]]


def test_a_version_that_is_not_spoken_is_refused():
    target = known("newer", lambda frame: None, version=(1, 0))
    with pytest.raises(ValueError, match=r"'newer' cannot be called.*version 1\.0 .*version 0\.3"):
        run(target)


def test_untyped_functions_take_pointers():
    kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_void_p))

    def add_one(out, ins):
        out[0] = ctypes.cast(ins[0], ctypes.POINTER(ctypes.c_float))[0] + 1

    function = kind(add_one)
    capsule = targets.capsule_of(ctypes.cast(function, ctypes.c_void_p).value)
    targets.make_known("untyped", capsule, "cpu", targets.UNTYPED, {})
    out = np.zeros(1, "float32")
    target = targets.find("untyped")
    targets.run_untyped(target, [np.float32([2])], [out], several=False)
    assert out.tolist() == [3]


def test_a_name_is_given_once():
    first = handler(lambda frame: None)
    targets.make_known("once", first, "cpu", 1, {})
    count = len(targets.declared)
    targets.make_known("once", first, "cpu", 1, {})
    assert len(targets.declared) == count
    with pytest.raises(ValueError, match="'once' on the CPU already"):
        targets.make_known("once", handler(lambda frame: None), "cpu", 1, {})


@pytest.mark.parametrize(
    "function, said",
    [
        (3, "stage 'execute' of 'bad' must be a capsule"),
        ({}, "'bad' has none"),
        ({"execute": 1, "later": 1}, "'later'"),
    ],
)
def test_what_is_no_function_is_refused(function, said):
    with pytest.raises((TypeError, ValueError), match=said):
        targets.make_known("bad", function, "cpu", 1, {})
    assert targets.find("bad") is None

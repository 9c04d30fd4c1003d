"""What foreign functions are called with."""

import numpy as np
import pytest

from calque.machine.foreign import frames, targets
from tests.machine.foreign.handlers import aligned, known, run


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
)
def test_arguments_and_results_of_each_dtype(dtype):
    def copy(frame):
        assert frame.args[0].dtype == dtype and frame.args[0].shape == (2, 3)
        frame.outs[0][...] = frame.args[0]

    x, out = aligned(np.arange(6).reshape(2, 3).astype(dtype)), aligned(np.zeros((2, 3), dtype))
    run(known(f"copy {dtype}", copy), [x], [out])
    assert out.tolist() == x.tolist()


def test_attributes_of_each_kind_come_sorted_by_name():
    seen = []
    given = {
        "text": "héllo",
        "flag": True,
        "whole": 5,
        "narrow": np.int8(-3),
        "real": 2.5,
        "half": np.float16(0.5),
        "row": np.arange(3, dtype="uint16"),
        "alone": np.array(7, "int32"),
        "inside": {"b": 1, "a": {"deep": "x"}},
    }
    run(known("attributes", lambda frame: seen.append(frame.attributes)), attributes=given)
    (found,) = seen
    assert list(found) == sorted(given)
    assert found["text"] == "héllo" and found["whole"].dtype == "int64" and found["whole"] == 5
    assert found["flag"].dtype == bool and found["narrow"].dtype == "int8"
    assert found["real"].dtype == "float64" and found["half"] == 0.5
    assert found["row"].tolist() == [0, 1, 2] and found["alone"].tolist() == [7]
    assert found["inside"] == {"a": {"deep": "x"}, "b": 1}


@pytest.mark.parametrize(
    "value, said", [([1], "list"), (1j, "complex"), (np.ones((2, 2)), "2 dim")]
)
def test_what_is_no_attribute_is_refused(value, said):
    target = known(f"no attribute {said}", lambda frame: None)
    with pytest.raises((TypeError, ValueError), match=f"'odd' .*{said}"):
        targets.Instance(target, {"odd": value})


def test_elements_in_an_order_of_the_axes():
    x = np.arange(24).reshape(2, 3, 4)
    for order in [(0, 1, 2), (2, 0, 1), (1, 2, 0)]:
        found = frames.laid_out(x, order)
        assert found.flags.c_contiguous and found.ctypes.data % 64 == 0
        assert found.tolist() == x.transpose(order).tolist()
    first = frames.laid_out(x, (0, 1, 2))
    assert frames.laid_out(first, (0, 1, 2)).ctypes.data == first.ctypes.data
    assert frames.laid_out(first, (0, 1, 2), own=True).ctypes.data != first.ctypes.data


def test_a_dtype_that_is_not_known():
    with pytest.raises(TypeError, match=r"argument 1.*datetime64"):
        kept = frames.Kept()
        frames.buffers(kept, [(np.ones(1), (1,)), (np.ones(1, "M8[s]"), (1,))], "argument")

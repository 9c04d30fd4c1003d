"""Small functions over sequences."""

import pytest

from calque.compat.private import util


def test_sequences():
    assert util.safe_zip([1, 2], "ab") == [(1, "a"), (2, "b")]
    with pytest.raises((AssertionError, ValueError)):
        util.safe_zip([1, 2], "abc")
    assert util.unzip2([(1, "a"), (2, "b")]) == ((1, 2), ("a", "b")) and util.unzip2([]) == ((), ())
    assert util.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]
    assert util.partition_list([True, False, True], "abc") == (["b"], ["a", "c"])
    assert util.prod([2, 3, 4]) == 24 and util.prod([]) == 1


def test_wraps_takes_templates():
    def inner(x, y=2):
        """Adds."""

    @util.wraps(inner)
    def plain(*args):
        pass

    @util.wraps(
        inner, namestr="jvp({fun})", docstr="Of {fun} in {mode} mode. {doc}", mode="forward"
    )
    def named(*args):
        pass

    assert (plain.__name__, plain.__doc__, plain.__wrapped__) == ("inner", "Adds.", inner)
    assert named.__name__ == "jvp(inner)" and named.__doc__ == "Of inner in forward mode. Adds."
    assert list(named.__annotations__) == [] and named.__module__ == inner.__module__

    class Callable:
        def __call__(self, x):
            return x

    of_object = util.wraps(Callable(), namestr="f_{fun}")(lambda x: x)
    assert of_object.__name__.startswith("f_") and "Callable" in of_object.__name__

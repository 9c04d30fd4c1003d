"""Arguments of transformations: flat functions, static arguments, axes of leaves."""

import pytest

import calque
from calque import api_util
from calque.extend import linear_util as lu


def test_flat_functions():
    leaves, tree = calque.tree_util.tree_flatten((({"a": 1, "b": 2},), {"c": 3}))
    wrapped = lu.wrap_init(lambda d, c: {"sum": d["a"] + d["b"] + c, "c": c})
    flat, out_tree = api_util.flatten_fun(wrapped, tree)
    assert flat.call_wrapped(*leaves) == [3, 6]
    assert out_tree() == calque.tree_util.tree_structure({"sum": 0, "c": 0})
    leaves, tree = calque.tree_util.tree_flatten(([1, 2],))
    flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(sum), tree)
    assert flat.call_wrapped(*leaves) == [3] and out_tree().num_leaves == 1


def test_arguments():
    f = lu.wrap_init(lambda a, b, c: (a, b, c))
    g, dynamic = api_util.argnums_partial(f, (0, 2), (1, 2, 3))
    assert dynamic == (1, 3) and g.call_wrapped(10, 30) == (10, 2, 30)
    g, dynamic = api_util.argnums_partial(f, -1, (1, 2, 3))
    assert dynamic == (3,) and g.call_wrapped(30) == (1, 2, 30)
    with pytest.raises(ValueError, match=r"Non-hashable static arguments.*argument 0"):
        api_util.argnums_partial(f, 1, ([], 2, 3))
    g, _ = api_util.argnums_partial(f, 1, ([], 2, 3), require_static_args_hashable=False)
    assert g.call_wrapped(5) == ([], 5, 3)
    assert api_util.rebase_donate_argnums((2, 4), (0, 3)) == (1, 2)
    with pytest.raises(ValueError, match="cannot intersect"):
        api_util.rebase_donate_argnums((0,), (0,))
    tree = calque.tree_util.tree_structure(((1, [2, 3]), {"k": 4}))
    assert api_util.donation_vector((1,), tree) == (False, True, True, False)


def test_axes_of_leaves():
    tree = calque.tree_util.tree_structure(([1, 2], 3))
    assert api_util.flatten_axes("in_axes", tree, (0, None)) == [0, 0, None]
    with pytest.raises(ValueError, match="in_axes specification must be a tree prefix"):
        api_util.flatten_axes("in_axes", tree, (0, 1, 2))

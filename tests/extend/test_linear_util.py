"""Functions with transformations around them."""

import pytest

import calque
import calque.numpy as jnp
from calque import api_util
from calque.extend import linear_util as lu


@lu.transformation2
def plus(f, n, x):
    return f(x) + n


@lu.transformation_with_aux2
def noted(f, store, x):
    store.store(("seen", x))
    return f(x)


@lu.transformation
def doubled_argument(x):
    y = yield (2 * x,), {}
    yield y + 1


@lu.transformation_with_aux
def counted(*args):
    y = yield args, {}
    yield y, len(args)


def test_order():
    f = lu.wrap_init(lambda x: 10 * x)
    assert plus(plus(f, 1), 2).call_wrapped(3) == 33
    assert doubled_argument(plus(f, 5)).call_wrapped(3) == 66


def test_parameters():
    f = lu.wrap_init(lambda x, *, n: x * n, {"n": 4})
    assert f.call_wrapped(3) == 12 and plus(f, 1)(3) == 13


def test_values_left_behind():
    g, aux = noted(lu.wrap_init(lambda x: x))
    with pytest.raises(lu.StoreException, match="empty"):
        aux()
    assert g.call_wrapped(5) == 5 and aux() == ("seen", 5)
    assert g.call_wrapped(6) == 6 and aux() == ("seen", 6)
    h, n = counted(lu.wrap_init(lambda *xs: sum(xs)))
    assert h.call_wrapped(1, 2, 3) == 6 and n() == 3


def test_identity():
    def f(x):
        return x

    assert plus(lu.wrap_init(f), 1) == plus(lu.wrap_init(f), 1)
    assert plus(lu.wrap_init(f), 1) != plus(lu.wrap_init(f), 2)
    assert hash(plus(lu.wrap_init(f), 1)) == hash(plus(lu.wrap_init(f), 2))
    assert "plus(1,)" in repr(plus(lu.wrap_init(f), 1)) and lu.wrap_init(f).__name__ == "f"


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


def test_debug_info():
    info = api_util.debug_info("jit", lambda x, y: x, (1, {"k": 2}), {}, static_argnums=(0,))
    assert info.traced_for == "jit" and info.arg_names == ("y['k']",)
    assert api_util.shaped_abstractify(jnp.ones((2, 3))).shape == (2, 3)

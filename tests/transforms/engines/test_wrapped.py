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


def test_debug_info():
    info = api_util.debug_info("jit", lambda x, y: x, (1, {"k": 2}), {}, static_argnums=(0,))
    assert info.traced_for == "jit" and info.arg_names == ("y['k']",)
    assert api_util.shaped_abstractify(jnp.ones((2, 3))).shape == (2, 3)


def test_a_function_of_wrapped_functions_keeps_what_it_gave():
    calls = []

    @lu.cache
    def value(fun, x):
        calls.append(x)
        return fun.call_wrapped(x)

    def f(x):
        return x + 1

    first, seen = noted(plus(lu.wrap_init(f), 2))
    again, seen_again = noted(plus(lu.wrap_init(f), 2))
    assert value(first, 3) == value(again, 3) == 6 and calls == [3]
    assert seen() == seen_again() == ("seen", 3)
    assert value(plus(lu.wrap_init(f), 3), 3) == 7 and value(first, 4) == 7 and calls == [3, 3, 4]
    with calque.enable_x64():
        value(first, 3)
    assert calls == [3, 3, 4, 3]
    value.evict_function(f)
    value(first, 3)
    value.cache_clear()
    value(first, 3)
    assert len(calls) == 6


def test_reasons_of_a_miss_are_asked_for():
    reasons = []
    value = lu.cache(lambda fun: fun.call_wrapped(), explain=lambda *found: reasons.append(found))
    f = lu.wrap_init(lambda: 1)
    with calque.explain_cache_misses(True):
        value(f), value(f)
    assert [(fun is f, is_new) for fun, is_new, *_ in reasons] == [(True, True)]

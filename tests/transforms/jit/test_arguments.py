"""The arguments of a call, under which key their program is found, and what may be one."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.transforms.jit.arguments import CallArguments, check_result, leaf_aval


class Function:
    """As much of a jitted function as arguments ask for."""

    name = "f"

    def __init__(self, statics=()):
        self.fun, self.static = (lambda x, y=0, *, k=None: None), statics

    def split(self, args, kwargs):
        dynamic = [a for i, a in enumerate(args) if i not in self.static]
        return dynamic, kwargs, tuple(args[i] for i in self.static)


def key(*args, statics=(), **kwargs):
    return CallArguments(Function(statics), args, kwargs).key


X = jnp.ones((2, 3))


@pytest.mark.parametrize(
    "first, second",
    [
        ((X,), (X + 1,)),
        ((X,), (np.ones((2, 3), np.float32),)),
        ((1.0,), (2.0,)),
        (({"a": X, "b": 1},), ({"b": 2, "a": X},)),
    ],
)
def test_values_do_not_matter(first, second):
    assert key(*first) == key(*second) and hash(key(*first)) == hash(key(*second))


@pytest.mark.parametrize(
    "first, second",
    [
        ((X,), (X[:1],)),
        ((X,), (X.astype(int),)),
        ((1.0,), (jnp.float32(1.0),)),  # weak types decide dtypes of results
        ((1,), (True,)),
        (((X, X),), ([X, X],)),
        ((X, X), (X,)),
    ],
)
def test_types_and_structures_matter(first, second):
    assert key(*first) != key(*second)


def test_what_else_is_in_the_key():
    assert key(X, 1, statics=(1,)) != key(X, 2, statics=(1,))
    assert key(X, k=X) != key(X, X)
    plain = key(X)
    with config.override("enable_x64", True):
        assert key(X) != plain
    with calque.set_mesh(calque.make_mesh((1,), ("x",))):
        assert key(X) != plain
    keys = []
    calque.vmap(lambda x: keys.append(key(X)) or x, axis_name="i")(X)
    assert keys != [plain] and key(X) == plain


def test_families_are_of_any_size():
    a = CallArguments(Function(), (X, {"k": 1}), {})
    b = CallArguments(Function(), (jnp.ones((5, 7)), {"k": 1}), {})
    assert a.key != b.key and a.family_key == b.family_key
    assert (a.sizes, b.sizes) == ((2, 3), (5, 7))
    ranked = CallArguments(Function(), (jnp.ones(6), {"k": 1}), {})
    assert ranked.family_key != a.family_key


def test_what_is_no_argument():
    with pytest.raises(TypeError, match=r"type <class 'str'> .* at path y\['a'\].*static_argnums"):
        leaf_aval("no", Function(), [X, {"a": "no"}], {})
    with pytest.raises(TypeError, match=r"at path k"):
        key(X, k=object())


def test_a_number_that_is_too_large_is_named():
    large = 1 << 31
    with pytest.raises(OverflowError, match=r"argument path is y\[1\]\. Python int 2147483648 too"):
        calque.jit(lambda n, x, y: x, static_argnums=0)(large, 1.0, [1, large])
    with pytest.raises(OverflowError, match=r"<lambda> at .*, whose argument path is x\."):
        calque.jit(lambda x: x).lower(-large - 1)
    assert calque.jit(lambda x: x)(large - 1) == large - 1


def test_what_is_no_result():
    def f(): ...

    for x in (1, 2.0, X, np.ones(2), np.float32(1)):
        check_result(x, abs, "f", x)
    message = r"function f at .* returned a value of type <class 'str'> at output component \['k'\]"
    with pytest.raises(TypeError, match=message):
        check_result("no", f, "f", {"k": "no"})


def test_objects_that_stand_for_arrays_are_no_arguments():
    class Holder:
        def __jax_array__(self):
            return jnp.arange(3)

    with pytest.raises(ValueError, match=r"Triggering __jax_array__\(\) .*Holder.*asarray\(x\)"):
        calque.jit(lambda x: x)(Holder())
    assert calque.jit(lambda x: x)(jnp.asarray(Holder())).tolist() == [0, 1, 2]

"""Types above arrays: immutable pairs and changing stores of the tests' own."""

from dataclasses import dataclass

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.trace import HIGH_TYPES
from calque.experimental import cur_qdd, hijax


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


class Special(Pair):
    pass


@dataclass(frozen=True)
class PairType(hijax.HiType):
    of: tuple

    def lower_val(self, pair):
        return [pair.a, pair.b]

    def raise_val(self, a, b):
        return Pair(a, b)


class Store:
    """A changing dictionary of arrays."""

    __slots__ = ("content",)

    def cur_qdd(self):
        return Names(tuple(self.content))

    def read(self):
        names = cur_qdd(self).names
        return dict(zip(names, read_p.bind(self)))

    def write(self, **content):
        write_p.bind(self, *content.values(), names=tuple(content))


@dataclass(frozen=True)
class Names:
    names: tuple


@dataclass(frozen=True)
class StoreType(hijax.MutableHiType):
    def read_loval(self, state, store):
        return list(store.content.values())

    def new_from_loval(self, state, *values):
        store = Store()
        store.content = dict(zip(state.names, values))
        return store

    def update_from_loval(self, state, store, *values):
        store.content = dict(zip(state.names, values))


class _New(hijax.HiPrimitive):
    def to_lojax(self, *values, names):
        return StoreType().new_from_loval(Names(names), *values)


class _Read(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, store):
        return list(store.content.values())


class _Write(hijax.HiPrimitive):
    multiple_results = True

    def to_lojax(self, store, *values, names):
        store.content = dict(zip(names, values))
        return []


new_p, read_p, write_p = _New("new"), _Read("read"), _Write("write")


def new(**content):
    return new_p.bind(*map(jnp.asarray, content.values()), names=tuple(content))


@pytest.fixture(autouse=True)
def registered():
    hijax.register_hitype(Pair, lambda p: PairType((calque.typeof(p.a), calque.typeof(p.b))))
    hijax.register_hitype(Store, lambda s: StoreType())
    yield
    del HIGH_TYPES[Pair], HIGH_TYPES[Store]


def test_the_type_of_a_value():
    assert calque.typeof(Special(1.0, 2)).of[1].dtype == np.int32
    assert cur_qdd(new(a=1.0)) == Names(("a",))
    with pytest.raises(TypeError, match="cur_qdd takes a value"):
        cur_qdd(jnp.ones(2))


@pytest.mark.parametrize("use", [jnp.sin, calque.make_jaxpr(lambda p: p), calque.vmap(jnp.sin)])
def test_a_value_is_no_operand(use):
    with pytest.raises((NotImplementedError, TypeError), match="Pair"):
        use(Pair(1.0, 2.0))


def test_other_classes_are_no_operands_as_ever():
    class Other:
        pass

    with pytest.raises(TypeError, match="is not a valid"):
        calque.typeof(Other())


@pytest.mark.parametrize("wrong", [(3, len), (Pair(1, 2), len), (Pair, "type")])
def test_what_cannot_be_registered(wrong):
    with pytest.raises(TypeError, match="takes a class and a function"):
        hijax.register_hitype(*wrong)


def test_jit_takes_and_returns_values():
    @calque.jit
    def swapped(p, k):
        return {"p": Pair(p.b * k, p.a), "sum": p.a + p.b}

    for k in (2.0, 3.0):
        out = swapped(Special(jnp.ones(2), jnp.arange(3.0)[1:]), k)
        assert isinstance(out["p"], Pair)
        np.testing.assert_array_equal(out["p"].a, k * np.array([1.0, 2.0]))
        np.testing.assert_array_equal(out["sum"], [2.0, 3.0])


def test_jit_changes_a_value_and_what_it_consists_of():
    @calque.jit
    def add(store, x):
        content = store.read()
        store.write(**content, total=sum(content.values()) + x)
        return store, x

    store = new(a=1.0, b=2.0)
    back, _ = add(store, 4.0)
    assert back is store and store.read()["total"] == 7.0
    other = new(a=5.0, b=6.0)
    add(other, 1.0)
    assert other.read()["total"] == 12.0 and store.read()["a"] == 1.0


def test_the_same_changing_value_twice():
    store = new(a=1.0)
    with pytest.raises(ValueError, match="the same Store twice"):
        calque.jit(lambda a, b: a.read()["a"])(store, store)


def test_a_traced_function_closes_over_a_changing_value():
    store = new(a=1.0)

    @calque.jit
    def double():
        store.write(a=store.read()["a"] * 2)
        return store.read()["a"] + 1

    assert [float(double()) for _ in range(3)] == [3.0, 5.0, 9.0]
    store.write(a=jnp.float32(10.0))
    assert double() == 21.0 and store.read()["a"] == 20.0

    def step(carry, x):
        store.write(a=store.read()["a"] + x)
        return carry, store.read()["a"]

    _, seen = lax.scan(step, None, jnp.arange(4.0))
    np.testing.assert_array_equal(seen, [20.0, 21.0, 23.0, 26.0])
    assert store.read()["a"] == 26.0
    lax.cond(True, lambda: store.write(a=jnp.float32(1.0)), lambda: None)
    assert store.read()["a"] == 1.0


def test_a_captured_value_keeps_what_it_consists_of():
    store = new(a=1.0)
    with pytest.raises(ValueError, match="a Store that a traced function closes over keeps"):
        calque.jit(lambda: store.write(b=jnp.ones(3)))()


def test_inside_of_derivatives_and_lanes():
    def f(x):
        store = new(a=x)
        store.write(a=store.read()["a"] ** 2)
        return store.read()["a"] * 3

    assert calque.grad(f)(2.0) == 12.0
    np.testing.assert_array_equal(calque.vmap(f)(jnp.arange(3.0)), [0.0, 3.0, 12.0])
    assert calque.grad(calque.jit(f))(2.0) == 12.0


def test_differentiated_values_do_not_leave():
    store = new(a=1.0)

    def leaves(x):
        store.write(a=x * 2)
        return x

    with pytest.raises(ValueError, match="differentiated or batched value is written into a Store"):
        calque.grad(leaves)(2.0)
    assert store.read()["a"] == 1.0

    def stays(x):
        store.write(a=lax.stop_gradient(x * 2))
        return x * store.read()["a"]

    assert calque.grad(stays)(3.0) == 6.0 and store.read()["a"] == 6.0


def test_eval_shape_leaves_values_as_they_are():
    store = new(a=1.0)

    def f(s, p):
        s.write(a=jnp.ones((2, 3)))
        return Pair(s.read()["a"], p.b)

    out = calque.eval_shape(f, store, Pair(1.0, jnp.arange(4)))
    assert isinstance(out, Pair) and out.a.shape == (2, 3) and out.b.dtype == np.int32
    assert store.read()["a"] == 1.0


class _Cube(hijax.HiPrimitive):
    asked = 0

    def abstract_eval(self, aval):
        return aval, set()

    def to_lojax(self, x):
        return x**3

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return self.bind(x), 100 * t


def test_a_rule_of_its_own_for_operations_on_arrays():
    cube = _Cube("cube").bind
    assert cube(2.0) == 8.0 and calque.grad(cube)(2.0) == 100.0
    assert calque.grad(calque.jit(cube))(2.0) == 100.0


def test_what_is_not_defined_says_so():
    with pytest.raises(NotImplementedError, match="the operation pack defines no to_lojax"):
        hijax.HiPrimitive("pack").bind(1.0)

    with pytest.raises(AttributeError, match=r"sets self\.in_avals before it calls super"):
        hijax.VJPHiPrimitive()


class _Power(hijax.VJPHiPrimitive):
    """A power whose rules are each a multiple of their own, so that one sees which was asked."""

    def __init__(self, aval, *, power):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {"power": power}
        super().__init__()

    def expand(self, x):
        return x**self.power

    def vjp_fwd(self, nzs, x):
        return self(x), x

    def vjp_bwd(self, x, ct, total):
        total.accum(10 * ct * self.power * raised(x, self.power - 1))
        total.accum(None)

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return self(x), 100 * t * self.power * raised(x, self.power - 1)

    def batch(self, axis, args, dims):
        assert axis.size == args[0].shape[dims[0]]
        return raised(*args, self.power) + 1000, dims[0]


def raised(x, power):
    return _Power(calque.typeof(x), power=power)(x)


@pytest.mark.parametrize("through", [lambda f: f, calque.jit])
def test_operations_with_rules_of_their_own(through):
    cube = through(lambda x: raised(x, 3))
    assert cube(2.0) == 8.0 and calque.grad(cube)(2.0) == 120.0
    assert calque.jvp(cube, (2.0,), (1.0,)) == (8.0, 1200.0)
    np.testing.assert_array_equal(calque.vmap(cube)(jnp.arange(3.0)), [1000, 1001, 1008])
    np.testing.assert_array_equal(
        calque.vmap(cube, in_axes=1, out_axes=1)(jnp.ones((2, 3))), np.full((2, 3), 1001)
    )
    same = hijax.VJPHiPrimitive.__eq__(_Power(None, power=2), _Power(None, power=2))
    assert same and hash(_Power(None, power=2)) == hash(_Power(None, power=2))
    assert _Power(None, power=2) != _Power(None, power=3) and "power" in repr(_Power(None, power=2))


class _Product(hijax.VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
        super().__init__()

    def expand(self, x, y):
        return x * y

    def vjp_fwd(self, nzs, x, y):
        self.asked.append(nzs)
        return self(x, y), (x, y)

    def vjp_bwd_retval(self, kept, ct):
        x, y = kept
        return 2 * ct * y, 2 * ct * x


def test_operations_know_which_operands_are_differentiated():
    _Product.asked = []
    product = _Product(calque.typeof(jnp.float32(1)))
    x, y = jnp.float32(2), jnp.float32(3)
    assert calque.grad(product)(x, y) == 6 and calque.grad(product, 1)(x, y) == 4
    assert _Product.asked == [(True, False), (False, True)]
    assert calque.jvp(product, (x, y), (x, y))[1] == 24  # the backward rule, turned round
    with pytest.raises(TypeError, match="input type mismatch"):
        product(jnp.ones(2), y)
    with pytest.raises(TypeError, match=r"the operation _Product.* takes"):
        product(x)

    class Both(_Product):
        def vjp_bwd(self, kept, ct, *sums):
            """The other form of the rule."""

    with pytest.raises(AttributeError, match="both vjp_bwd and vjp_bwd_retval"):
        Both(calque.typeof(1.0))


class _Linearized(hijax.VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x):
        return x**3

    def lin(self, nzs, x):
        assert nzs == (True,)
        return self(x), x

    def linearized(self, x, t):
        return 30 * x**2 * t


def test_operations_with_a_linear_rule_and_operations_on_references():
    def cube(x):
        return _Linearized(calque.typeof(x))(x)

    assert calque.linearize(cube, 2.0)[1](1.0) == 120 and calque.grad(calque.jit(cube))(2.0) == 120

    class Square(hijax.VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), None, {}
            super().__init__()

        def expand(self, ref):
            ref[...] = ref[...] ** 2

    ref = calque.new_ref(jnp.float32(2))
    Square(calque.typeof(ref))(ref)
    calque.jit(lambda r: Square(calque.typeof(r))(r))(ref)
    assert ref[...] == 16

    class Packed(_Linearized):
        def __init__(self):
            self.in_avals, self.out_aval, self.params = (hijax.HiType(),), hijax.HiType(), {}
            hijax.VJPHiPrimitive.__init__(self)

    with pytest.raises(NotImplementedError, match="Packed: operations of the class VJPHi"):
        Packed()(1.0)


def test_kinds_of_effects_in_control_flow():
    class Prints(calque.extend.core.Effect):
        pass

    class PrintsTwice(Prints):
        pass

    allowed = type(hijax.control_flow_allowed_effects)()
    assert not allowed.contains(Prints)
    allowed.add_type(Prints)
    assert allowed.contains(PrintsTwice) and not allowed.contains(calque.extend.core.Effect)

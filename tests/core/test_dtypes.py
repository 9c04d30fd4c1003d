"""Canonical dtypes and the promotion lattice, against JAX where it is installed."""

import inspect
import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core import dtypes
from calque.core.dtypes import TypePromotionError, as_dtype, canonicalize, promote, short_name


def test_64_bit_types_are_narrowed_unless_enabled():
    assert (
        canonicalize(np.float64) == np.float32
        and canonicalize(int) == np.int32
        and canonicalize("complex128") == np.complex64
    )
    with calque.config.override("calque_enable_x64", True):
        assert canonicalize(np.float64) == np.float64 and canonicalize(int) == np.int64
    assert canonicalize(float) == np.float32


def test_names():
    assert [short_name(as_dtype(d)) for d in ("bool", "int8", "uint32", "bfloat16", "float16",
    "complex64", "float8_e4m3fn")] == [
        "bool", "i8", "u32", "bf16", "f16", "c64", "f8_e4m3fn",
    ]  # fmt: skip


@pytest.mark.parametrize("bad", ["U5", object, "datetime64[s]", "nonsense", 3.5])
def test_what_is_no_dtype_is_refused(bad):
    with pytest.raises(TypeError):
        as_dtype(bad)


def test_byte_order_does_not_matter():
    assert as_dtype(">f4") == np.float32 and as_dtype(">f4").isnative


def test_promotion_follows_weak_types():
    f32, f16, i8, i32 = map(np.dtype, ("float32", "float16", "int8", "int32"))
    weak_float, weak_int = (np.dtype("float64"), True), (np.dtype("int64"), True)
    assert promote(((f16, False), weak_float)) == (f16, False)
    assert promote(((i8, False), weak_int)) == (i8, False)
    assert promote(((i8, False), weak_float)) == (f32, True)
    assert promote(((i32, False), (f16, False))) == (f16, False)
    with pytest.raises(TypePromotionError, match="no available implicit dtype promotion path"):
        promote(((np.dtype(ml_dtypes.float8_e4m3fn), False), (f32, False)))


def test_strict_promotion():
    strict = calque.config.override("calque_numpy_dtype_promotion", "strict")
    with strict, pytest.raises(TypePromotionError, match="strict"):
        promote(((np.dtype("int8"), False), (np.dtype("float32"), False)))


@pytest.mark.peer
@pytest.mark.parametrize("x64", [False, True])
def test_the_lattice_is_that_of_jax(x64):
    jax = pytest.importorskip("jax")
    kinds = [(d, False) for d in dtypes.ALL if d.itemsize > 0] + [
        (np.dtype(t), True) for t in ("int64", "float64", "complex128")
    ]
    kinds = [k for k in kinds if "2" not in k[0].name[-2:] or k[0].itemsize > 1]
    kinds = [k for k in kinds if not k[0].name.startswith("float6")]  # XLA has no such arrays
    python = {"int64": 1, "float64": 1.0, "complex128": 1j}
    jax.config.update("jax_enable_x64", x64)
    try:
        with calque.config.override("calque_enable_x64", x64):
            for a, b in itertools.combinations_with_replacement(kinds, 2):
                if not x64 and any(
                    not w and d.itemsize == 8 * (1 + (d.kind == "c")) for d, w in (a, b)
                ):
                    continue
                operands = [python[d.name] if w else jax.numpy.zeros((), d) for d, w in (a, b)]
                try:
                    want = jax.numpy.result_type(*operands)
                except (ValueError, TypeError):
                    want = None
                try:
                    got = promote((a, b))[0] if not (a[1] and b[1]) else None
                except TypePromotionError:
                    got = "refused"
                if got is not None:
                    assert got == (want if want is not None else "refused"), (a, b, want)
    finally:
        jax.config.update("jax_enable_x64", False)


WIDE = {
    "zeros": lambda d: jnp.zeros(3, dtype=d),
    "full": lambda d: jnp.full(3, 1, dtype=d),
    "ones_like": lambda d: jnp.ones_like(np.ones(3, np.float32), dtype=d),
    "arange": lambda d: jnp.arange(3, dtype=d),
    "traced arange": lambda d: calque.jit(lambda n: jnp.arange(n, dtype=d).sum())(3),
    "linspace": lambda d: jnp.linspace(0, 1, 3, dtype=d),
    "eye": lambda d: jnp.eye(3, dtype=d),
    "array": lambda d: jnp.array([1, 2], dtype=d),
    "asarray of NumPy's": lambda d: jnp.asarray(np.ones(3), dtype=d),
    "asarray": lambda d: jnp.asarray(jnp.ones(3), dtype=d),
    "method": lambda d: jnp.ones(3).astype(d),
    "function": lambda d: jnp.astype(jnp.ones(3), d),
    "under jit": lambda d: calque.jit(lambda x: x.astype(d))(jnp.ones(3)),
    "sum": lambda d: jnp.ones(3).sum(dtype=d),
    "cumsum": lambda d: jnp.cumsum(jnp.ones(3), dtype=d),
    "concatenate": lambda d: jnp.concatenate([jnp.ones(3), jnp.ones(2)], dtype=d),
    "product": lambda d: jnp.dot(jnp.ones(3), jnp.ones(3), preferred_element_type=d),
    "lax.convert_element_type": lambda d: lax.convert_element_type(jnp.ones(3), d),
    "lax.full": lambda d: lax.full((3,), 1, dtype=d),
    "lax.iota": lambda d: lax.iota(d, 3),
    "random": lambda d: calque.random.normal(calque.random.key(0), (3,), dtype=d),
    "initializer": lambda d: calque.nn.initializers.zeros(calque.random.key(0), (3,), d),
    "one_hot": lambda d: calque.nn.one_hot(jnp.arange(3), 3, dtype=d),
}


def heard(make, dtype):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")  # once for each line
        out = make(dtype)
    return out, told


@pytest.mark.parametrize("make", WIDE.values(), ids=WIDE)
def test_who_names_64_bits_and_gets_32_is_told_at_his_line(make):
    for wide in (np.float64, jnp.float64, "float64", np.dtype("float64"), "f8"):
        out, [told] = heard(make, wide)
        assert out.dtype == np.float32
        assert told.category is UserWarning
        assert str(told.message).startswith("Explicitly requested dtype float64 is not available")
        assert "calque_enable_x64" in str(told.message)
        assert told.filename == inspect.getsourcefile(make)
        assert told.lineno == make.__code__.co_firstlineno


@pytest.mark.parametrize("make", WIDE.values(), ids=WIDE)
def test_who_names_no_size_or_has_64_bits_is_told_nothing(make):
    for narrow in (float, np.float32, "float32", jnp.float32):
        out, told = heard(make, narrow)
        assert out.dtype == np.float32 and not told
    with calque.enable_x64(True):
        out, told = heard(make, np.float64)
        assert out.dtype == np.float64 and not told


def test_each_dtype_of_64_bits_is_told_of():
    for wide, half in (("int64", "int32"), ("uint64", "uint32"), ("complex128", "complex64")):
        out, [told] = heard(lambda d: jnp.zeros(3, dtype=d), wide)
        assert out.dtype == half
        assert f"{wide} is not available" in str(told.message) and half in str(told.message)


# functions whose calls machine code serves from the second or third on
SERVED = {
    "astype": lambda x, d: x.astype(d),
    "sum": lambda x, d: jnp.sum(x, dtype=d),
    "method sum": lambda x, d: x.sum(dtype=d),
    "var": lambda x, d: jnp.var(x, dtype=d),
    "zeros_like": lambda x, d: jnp.zeros_like(x, dtype=d),
    "concatenate": lambda x, d: jnp.concatenate([x, x], dtype=d),
    "matmul": lambda x, d: jnp.matmul(x, x, preferred_element_type=d),
    "indices": lambda x, d: jnp.indices(x.shape, dtype=d),
    "reduce": lambda x, d: jnp.add.reduce(x, dtype=d),
}


@pytest.mark.parametrize("make", SERVED.values(), ids=SERVED)
def test_each_call_tells_however_often_it_is_made(make):
    def told_of(call, x):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call(x, np.float64)
        return [(w.filename, w.lineno) for w in told]

    here = [(__file__, make.__code__.co_firstlineno)]
    for n in (3, 3, 3, 3, 4, 5, 5):  # one program for any size is learnt at the second size
        assert told_of(make, jnp.ones(n)) == here
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="is not available"):
        warnings.simplefilter("error")
        make(jnp.ones(3), np.float64)


def test_numbers_of_numpy_are_narrowed_in_silence():
    for value in (np.ones(3), np.float64(1), np.arange(3), np.ones(3, np.complex128)):
        for make in (jnp.array, jnp.asarray, jnp.zeros_like, calque.device_put):
            _, told = heard(make, value)
            assert not told
        assert not heard(lambda v: jnp.ones(3) + v, value)[1]
    assert not heard(lambda d: jnp.dtype(d), "float64")[1]
    assert not heard(lambda d: calque.dtypes.canonicalize_dtype(d), "float64")[1]


def test_an_x64_dtype_is_told_of_once_for_each_line_and_is_an_error_where_warnings_are():
    def make(dtype):
        return [jnp.zeros(3, dtype=dtype) for _ in range(3)], jnp.ones(3, dtype=dtype)

    assert len(heard(make, "float64")[1]) == 1
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="is not available"):
        warnings.simplefilter("error")
        make("float64")


@pytest.mark.parametrize("make", WIDE.values(), ids=WIDE)
def test_who_names_64_bits_gets_an_error_if_it_is_wanted(make):
    with calque.config.override("calque_explicit_x64_dtypes", "error"):
        for wide in (np.float64, "float64", np.dtype("float64")):
            with pytest.raises(
                ValueError, match="is not available while 64-bit types are off: ask"
            ):
                make(wide)
        assert make(float).dtype == np.float32  # it names no size
        with calque.enable_x64(True):
            assert make("float64").dtype == np.float64
    with pytest.raises(NotImplementedError, match="calque_enable_x64"):
        calque.config.update("jax_explicit_x64_dtypes", "allow")

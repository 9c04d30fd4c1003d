"""Arguments at the edge of what functions take, and beyond: the values are NumPy's, the exceptions
JAX's."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

F = np.array([[0.5, -1.5, 2.0], [3.0, 0.0, -0.5]], np.float32)
V = np.array([3, 1, 0, -2], np.int32)
B = np.array([[True, False, False], [True, True, False]])
EMPTY = np.zeros((0,), np.float32)

SAME = {
    "digitize falling": lambda m, a: m.digitize(a(V), a(np.array([2.0, 1.0, 0.0]))),
    "digitize falling right": lambda m, a: m.digitize(a(V), a(np.array([2, 1, 0])), right=True),
    "sort_complex": lambda m, a: m.sort_complex(a(F)),
    "insert at the end": lambda m, a: m.insert(a(V), 4, 9),
    "pad mean of bools": lambda m, a: m.pad(a(B), 1, "mean"),
    "pad median of bools": lambda m, a: m.pad(a(B), 1, "median"),
    "take bools": lambda m, a: m.take(a(V), True),
    "cov of nothing": lambda m, a: m.cov(a(EMPTY)),
    "max of no complex numbers": lambda m, a: m.max(a(np.zeros((2, 0), np.complex64)), axis=0),
    "size along an axis": lambda m, a: m.size(a(F), -1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAME)
def test_as_numpy(name):
    want = np.asarray(SAME[name](np, np.asarray))
    for _ in range(3):  # from the second call on by machine code
        got = np.asarray(SAME[name](jnp, jnp.asarray))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_inserting_beyond_the_end_inserts_there():
    assert jnp.insert(jnp.arange(3), 99, 7).tolist() == [0, 1, 2, 7]


def test_means_of_integer_dtypes_divide_as_integers():
    assert (
        jnp.mean(jnp.array([1, 2, 4, 127], "int8"), dtype="int8") == -122 // 4 + 1
    )  # the sum wraps around
    assert jnp.mean(jnp.array([1.5, -2, -4]), dtype="int32") == -1
    with pytest.raises(TypeError, match="bool"):
        jnp.var(jnp.ones(3), dtype=bool)


REFUSED = {
    "split": (ValueError, lambda: jnp.split(jnp.ones(4), 0)),
    "array_split": (ValueError, lambda: jnp.array_split(jnp.ones(4), -2)),
    "repeat": (TypeError, lambda: jnp.repeat(jnp.ones(4), -1)),
    "round": (TypeError, lambda: jnp.round(jnp.ones(4), 1.5)),
    "reshape": (TypeError, lambda: jnp.reshape(jnp.ones(4), (-1, -1))),
    "transpose": (TypeError, lambda: jnp.transpose(jnp.ones((2, 2)), (0, 0))),
    "moveaxis": (TypeError, lambda: jnp.moveaxis(jnp.ones((2, 2)), (0, 0), (0, 1))),
    "flip": (TypeError, lambda: jnp.flip(jnp.ones((2, 2)), (0, 0))),
    "take": (ValueError, lambda: jnp.take(jnp.ones(4), 1.0)),
    "size": (ValueError, lambda: jnp.size(jnp.ones(4), 3)),
    "axis of no integer": (TypeError, lambda: jnp.cumsum(jnp.ones(4), 0.5)),
    "axis too large": (ValueError, lambda: jnp.sum(jnp.ones(4), 5)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    error, call = REFUSED[name]
    for _ in range(3):
        with pytest.raises(error):
            call()


def test_results_keep_their_weakness_when_calls_become_machine_code():
    assert [jnp.append(jnp.zeros(0), 1.5).weak_type for _ in range(3)] == [False] * 3


# ---------------------------------------------------------------- axes with names


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "var", "std"])
@pytest.mark.parametrize("axis", ["i", ("i", 0), (0, "i")])
def test_axes_may_be_mapped_ones(name, axis):
    f = getattr(jnp, name)
    got = calque.vmap(lambda row: f(row, axis=axis), axis_name="i")(F)
    whole = getattr(np, name)(F, axis=0 if axis == "i" else None)
    np.testing.assert_allclose(got, np.broadcast_to(whole, got.shape), rtol=1e-6)
    masked = calque.vmap(lambda row: jnp.mean(row, axis=axis, where=row != 0), axis_name="i")(F)
    np.testing.assert_allclose(
        masked[0], np.mean(F, axis=0 if axis == "i" else None, where=F != 0), rtol=1e-6
    )


def test_mapped_axes_that_cannot_be_folded():
    with pytest.raises(NameError, match="unbound axis name"):
        jnp.sum(jnp.ones(3), axis="i")
    for f in (jnp.prod, jnp.all, jnp.any):
        with pytest.raises(NotImplementedError, match="mapped"):
            calque.vmap(lambda x, f=f: f(x, axis="i"), axis_name="i")(F)


# ---------------------------------------------------------------- Python numbers in place of arrays

W = jnp.asarray(1.5)
WEAK = {
    "max": (lambda: jnp.max(2), "int32", False),
    "sum of a weak array": (lambda: jnp.sum(W), "float32", False),
    "cumsum": (lambda: jnp.cumsum(1.5), "float32", False),
    "nanmin": (lambda: jnp.nanmin(1 + 2j), "complex64", False),
    "floor": (lambda: jnp.floor(2), "int32", True),
    "round": (lambda: jnp.round(2), "int32", True),
    "conj": (lambda: jnp.conj(np.float32(1)), "float32", False),
    "real": (lambda: jnp.real(1.5), "float32", True),
    "all": (lambda: jnp.all(True), "bool", False),
    "logical_and": (lambda: jnp.logical_and(2, 2), "bool", True),
    "full_like": (lambda: jnp.full_like(W, 2), "float32", True),
    "ones_like": (lambda: jnp.ones_like(2), "int32", True),
    "isin": (lambda: jnp.isin(2, 2), "bool", False),
    "array_equal": (lambda: jnp.array_equal(W, W), "bool", False),
    "add of a NumPy scalar": (lambda: jnp.add(np.int8(3), 1.5), "float32", True),
    "heaviside": (lambda: jnp.heaviside(1.5, np.uint8(1)), "float32", True),
    "gradient": (lambda: jnp.gradient(jnp.arange(3, dtype="int8"), W), "float32", True),
    "gradient of halves": (
        lambda: jnp.gradient(jnp.arange(3), jnp.arange(3.0).astype("float16")),
        "float16",
        False,
    ),
    "spacing": (lambda: jnp.spacing(1.5), "float32", False),
    "var with an integer dtype": (lambda: jnp.var(jnp.ones(3), dtype="int8"), "float32", True),
    "sum of bools": (lambda: jnp.sum(jnp.ones(3), dtype=bool), "bool", False),
    "unique of no size": (lambda: jnp.unique(jnp.ones(3), size=0), "float32", False),
}


@pytest.mark.parametrize("name", WEAK)
def test_types_of_results(name):
    call, dtype, weak = WEAK[name]
    for _ in range(3):
        out = call()
        assert isinstance(out, calque.Array) and (str(out.dtype), out.weak_type) == (dtype, weak)


BAD = {
    "None": (ValueError, "None", lambda: jnp.array(None)),
    "a complex number as int": (TypeError, r"2j.*int8", lambda: jnp.array(1 + 2j, "int8")),
    "ranks that differ": (
        ValueError,
        r"\(2, 3\), \(4,\)",
        lambda: jnp.add(jnp.ones((2, 3)), jnp.ones(4)),
    ),
    "sizes that differ": (TypeError, r"\(3,\), \(4,\)", lambda: jnp.add(jnp.ones(3), jnp.ones(4))),
    "where of floats": (ValueError, "where.*float32", lambda: jnp.sum(F, where=F)),
    "where of another shape": (
        ValueError,
        r"\(5,\).*\(2, 3\)",
        lambda: jnp.sum(F, where=jnp.ones(5, bool)),
    ),
    "initial": (ValueError, r"initial.*\(3,\)", lambda: jnp.max(F, initial=jnp.ones(3))),
    "arange": (ValueError, "1j", lambda: jnp.arange(1j)),
    "clip": (ValueError, "Complex", lambda: jnp.clip(jnp.ones(2) * 1j)),
    "meshgrid": (ValueError, r"1D.*\(\)", lambda: jnp.meshgrid(1.0, jnp.ones(2))),
    "eye": (ValueError, "1.5", lambda: jnp.eye(2, k=1.5)),
    "tril": (TypeError, "1.5", lambda: jnp.tril(F, 1.5)),
    "fft": (ValueError, "-1", lambda: jnp.fft.fft(jnp.ones(3), -1)),
    "nonzero": (ValueError, "fill_value", lambda: jnp.nonzero(jnp.ones(3), fill_value=jnp.ones(3))),
    "roll": (ValueError, r"shift.*\(2, 3\)", lambda: jnp.roll(F, jnp.ones((2, 3), int))),
    "insert": (ValueError, "float32", lambda: jnp.insert(F, 1.5, 2)),
    "stack": (TypeError, "stack", lambda: jnp.stack(1.0)),
    "isposinf": (ValueError, "complex", lambda: jnp.isposinf(1j)),
    "copysign": (TypeError, "complex", lambda: jnp.copysign(1j, 1.0)),
    "svd": (TypeError, r"\(3,\)", lambda: jnp.linalg.svd(jnp.ones(3))),
    "inv": (ValueError, r"\(3,\)", lambda: jnp.linalg.inv(jnp.ones(3))),
    "qr of halves": (NotImplementedError, "float16", lambda: jnp.linalg.qr(F.astype("float16"))),
    "eigh of halves": (
        NotImplementedError,
        "bfloat16",
        lambda: jnp.linalg.eigh(jnp.eye(2, dtype="bfloat16")),
    ),
    "tensordot": (TypeError, "axes.*bad", lambda: jnp.tensordot(F, F, "bad")),
    "histogram": (ValueError, "range.*7", lambda: jnp.histogram(F, range=7)),
    "trim_zeros": (TypeError, "trim.*2", lambda: jnp.trim_zeros(jnp.ones(3), 2)),
    "where of a list": (TypeError, "where.*list", lambda: jnp.where([1.0])),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals_say_what_was_wrong(name):
    error, words, call = BAD[name]
    with pytest.raises(error, match=words):
        call()

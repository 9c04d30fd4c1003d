"""Errors of public functions show the user's lines, outside of transformations too."""

import traceback
import types

import pytest

import calque
import calque.numpy as jnp
from calque.core import guards, tracebacks

x = jnp.arange(6.0)
LEAKED: list = []
calque.jit(lambda v: (LEAKED.append(v), v)[1])(1.0)

EAGER = {
    "an operator": lambda: x + jnp.ones(4),
    "an operator, reflected": lambda: [1] + x,
    "a matrix product": lambda: x @ jnp.ones(4),
    "a function": lambda: jnp.dot(x, jnp.ones(4)),
    "a function of lax": lambda: calque.lax.add(x, jnp.ones(4)),
    "an index": lambda: x[0, 0],
    "an assignment": lambda: x.__setitem__(0, 1),
    "an update": lambda: x.at[0].set("text"),
    "a method": lambda: x.reshape(7),
    "the truth": lambda: bool(x),
    "a number": lambda: float(x),
    "random numbers": lambda: calque.random.normal((3,)),
    "a tree": lambda: calque.tree_util.tree_map(lambda a, b: a, [1], [1, 2]),
    "a matrix": lambda: jnp.linalg.inv(x),
    "a transform": lambda: jnp.fft.fft(x, axis=4),
    "a picture": lambda: calque.image.resize(x, (2, 2), "linear"),
    "a network": lambda: calque.nn.one_hot(jnp.arange(3), 3, axis=7),
    "SciPy": lambda: calque.scipy.linalg.cholesky(x),
    "a mesh": lambda: calque.make_mesh((77,), ("x",)),
    "a partition": lambda: calque.sharding.NamedSharding(1, 2),
    "a leaked tracer": lambda: LEAKED[0] + 1,
    "a leaked tracer's method": lambda: jnp.sin(LEAKED[0]),
}


def raised(name: str):
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)) as e:
        EAGER[name]()
    return e


@pytest.mark.parametrize("name", EAGER)
def test_eager_calls_show_the_line_of_the_user(name: str) -> None:
    e = raised(name)
    last = traceback.extract_tb(e.value.__traceback__)[-1]
    assert last.filename == __file__ and last.name == "<lambda>"


@pytest.mark.parametrize("name", EAGER)
def test_the_whole_by_configuration(name: str) -> None:
    with calque.config.override("calque_traceback_filtering", "off"):
        e = raised(name)
    frames = traceback.extract_tb(e.value.__traceback__)
    notes = getattr(e.value, "__notes__", [])  # there may be advice
    assert frames[-1].filename != __file__ and not any("left out" in note for note in notes)


@pytest.mark.parametrize("name", ["an operator", "an index", "random numbers"])
def test_frames_that_notebooks_and_pytest_hide(name: str) -> None:
    with calque.config.override("calque_traceback_filtering", "tracebackhide"):
        e = raised(name)
    shown = [
        f for f, _ in traceback.walk_tb(e.value.__traceback__)
        if not f.f_locals.get("__tracebackhide__")
    ]  # fmt: skip
    assert shown[-1].f_code.co_filename == __file__
    assert e.traceback[-1].frame is not shown[-1]  # nothing was taken out


MODULES = (
    calque, jnp, calque.lax, calque.lax.linalg, calque.random, calque.nn, calque.nn.initializers,
    calque.image, calque.tree, calque.tree_util, jnp.linalg, jnp.fft, calque.ops, calque.export,
    calque.ffi, calque.dlpack, calque.debug, calque.scipy.linalg, calque.scipy.special,
    calque.scipy.signal,
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_public_function_is_guarded(module) -> None:
    functions = {n: getattr(module, n) for n in getattr(module, "__all__", dir(module))}
    free = [
        n
        for n, f in functions.items()
        if isinstance(f, types.FunctionType)
        and f.__module__.startswith("calque.")
        and not n.startswith("_")
        and not f.__code__.co_flags & 0x20  # generators fail when they are advanced
        and not tracebacks.is_boundary(f.__code__)
    ]
    assert not free


def test_what_is_taken_from_a_facade_is_listed_and_found() -> None:
    bits, split = calque.random.bits.__wrapped__, calque.random.split.__wrapped__
    namespace = {
        "__name__": "calque.facade", "__all__": ["bits", "size"], "bits": bits,
        "size": 3, "private": split,
    }  # fmt: skip
    guards.guard_public(namespace)
    assert "bits" not in namespace and namespace["size"] == 3 and "private" in namespace
    assert "bits" in namespace["__dir__"]()
    assert namespace["__getattr__"]("bits") is bits is namespace["bits"]
    with pytest.raises(AttributeError, match=r"calque.facade.*nothing"):
        namespace["__getattr__"]("nothing")


def test_functions_of_others_stay_as_they_are() -> None:
    code = test_every_public_function_is_guarded.__code__
    assert guards.guard(test_every_public_function_is_guarded).__code__ is code


def test_questions_for_attributes_cost_no_filtering(monkeypatch) -> None:
    hidden: list = []
    monkeypatch.setattr(tracebacks, "hide", hidden.append)
    assert not hasattr(x, "nothing")
    assert list(zip(x[:2], "ab", strict=True)) and not hidden

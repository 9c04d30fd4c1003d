"""Free sizes from the shapes of arguments."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export
from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.xla.exporting.scopes import Scope, shape_of
from calque.xla.exporting.solving import OfShapes, argument_names, plain, plan_of, solved
from tests.xla.mlir import needs_jaxlib

F32 = np.dtype("float32")


def planned(*texts: str, constraints: tuple[str, ...] = ()) -> Any:
    scope = Scope(constraints)
    avals = [ShapedArray(shape_of(t, scope), F32) for t in texts]
    return plan_of(avals, pytrees.structure((tuple(range(len(avals))), {})))


def found(plan: Any, *shapes: Any) -> dict[str, Any]:
    return solved(plan, OfShapes(shapes))


def test_names_of_arguments() -> None:
    tree = pytrees.structure(((0, {"w": 1}), {"k": [2]}))
    assert argument_names(tree) == ("args[0]", "args[1]['w']", "kwargs['k'][0]")


def test_sizes_are_found_one_after_the_other() -> None:
    plan = planned("a + 2*b, a", "a + b + c")
    assert found(plan, (8, 2), (9,)) == {"a": 2, "b": 3, "c": 4}
    assert planned("3, 4") is None
    assert found(planned("b + 3*a, b"), (11, 5)) == {"b": 5, "a": 2}


@pytest.mark.parametrize(
    ("text", "shape", "words"),
    [
        ("a + 2*b, a", (2, 2), "Expected value >= 1 for dimension variable 'b'"),
        ("a + 2*b, a", (3, 2), "Division had remainder 1 when computing the value of 'b'"),
        (
            "a, a + 1",
            (3, 5),
            r"\(= 5\) and the specification 'a \+ 1' \(= 4\)",
        ),
        ("a, a", (3, 4), "Found inconsistency"),
    ],
)
def test_shapes_that_do_not_fit(text: str, shape: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        found(planned(text), shape)


def test_what_cannot_be_solved() -> None:
    for text in ("a*a", "a*b, a + b", "floordiv(a, 2)"):
        with pytest.raises(ValueError, match="Cannot solve for values of dimension variables"):
            planned(text)
    with pytest.raises(ValueError, match="Encountered dimension variable 'b'"):
        planned("a", constraints=("a >= b",))


def test_constraints_are_checked() -> None:
    plan = planned("a, b", constraints=("a >= 3", "b <= a"))
    assert found(plan, (3, 2)) == {"a": 3, "b": 2}
    for shape in ((2, 1), (4, 5)):
        with pytest.raises(ValueError, match="The constraints are a >= 3, b <= a"):
            found(plan, shape)


def test_sizes_of_another_program() -> None:
    outer = Scope()
    c, d = shape_of("c, d", outer)
    assert found(planned("a, a + 8"), (c + 2, c + 10)) == {"a": c + 2}
    assert plain((shape_of("2*a", Scope())[0], 7), {"a": c}) == (2 * c, 7)
    for text, shape in (("a, a", (c, d)), ("5*a", (c,)), ("a, a + b", (4, c))):
        with pytest.raises(ValueError, match="do not match"):
            found(planned(text), shape)


def constrained_by(shape: str, *constraints: str) -> Any:
    sizes = jax.export.symbolic_shape(shape, constraints=constraints)
    return jax.ShapeDtypeStruct(sizes, np.float32)


CONSTRAINED: dict[str, tuple[Any, Any, int]] = {
    "slice": (lambda a: a[2:] * a.shape[0], constrained_by("n", "n >= 3"), 1),
    "quotient": (
        lambda a: jnp.ones(a.shape[0] // (a.shape[0] - 2)),
        constrained_by("n", "n >= 3"),
        2,
    ),
    "remainder": (
        lambda a: jnp.ones(a.shape[0] % (a.shape[0] - 2)),
        constrained_by("n", "n >= 3"),
        2,
    ),
    "steps": (lambda a: a[2::2], constrained_by("n", "n >= 4"), 2),
    "argument": (lambda a: a + a.shape[0], constrained_by("n - 2"), 0),
}


@needs_jaxlib
@pytest.mark.parametrize("name", CONSTRAINED)
def test_programs_are_read_whose_sizes_were_constrained(name: str) -> None:
    """The constraints are not part of the bytes."""
    f, spec, _ = CONSTRAINED[name]
    exported = export.export(jax.jit(f))(spec)
    found = export.deserialize(exported.serialize())
    assert list(map(str, found.out_avals)) == list(map(str, exported.out_avals))
    x = np.arange(8, dtype=np.float32)
    expected = f(x)
    np.testing.assert_array_equal(found.call(x), expected)
    np.testing.assert_array_equal(jax.jit(found.call)(x), expected)


@needs_jaxlib
@pytest.mark.parametrize("name", [n for n, (_, _, fewest) in CONSTRAINED.items() if fewest])
def test_too_small_sizes_are_an_error_of_the_caller(name: str) -> None:
    f, spec, too_few = CONSTRAINED[name]
    found = export.deserialize(export.export(jax.jit(f))(spec).serialize())
    with pytest.raises(ValueError, match=r"[Ss]hape"):
        found.call(np.ones(too_few, np.float32))


THERE = """
import sys, numpy as np, jax
from jax import export
folder, x = sys.argv[1], np.arange(8, dtype=np.float32)
found = export.deserialize(bytearray(open(folder + "/ours", "rb").read()))
np.save(folder + "/value", found.call(x))
size = export.symbolic_shape("n", constraints=["n >= 3"])
f = jax.jit(lambda a: a[2:] * a.shape[0], donate_argnums=0)
blob = export.export(f)(jax.ShapeDtypeStruct(size, np.float32)).serialize()
open(folder + "/theirs", "wb").write(blob)
"""


@needs_jaxlib
@pytest.mark.peer
def test_constrained_sizes_go_to_jax_and_come_from_it(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("flatbuffers")
    f, spec, _ = CONSTRAINED["slice"]
    ours = export.export(jax.jit(f, donate_argnums=0))
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        (tmp_path / "ours").write_bytes(ours(spec).serialize())
    command = [sys.executable, "-c", THERE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(np.load(tmp_path / "value.npy"), x[2:] * 8)
    theirs = export.deserialize((tmp_path / "theirs").read_bytes())
    np.testing.assert_array_equal(theirs.call(x), x[2:] * 8)

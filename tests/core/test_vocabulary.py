"""`do`: every primitive under its name, with the defaults that it declares, as its stub says."""

import pathlib
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import calque
from calque.core import vocabulary
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, NotApplicable, Primitive, do
from calque.core.trace import trace_to_jaxpr

TOOL = pathlib.Path(calque.__file__).parents[2] / "tools" / "write_vocabulary.py"
ROW = ShapedArray((6,), np.dtype("float32"))


def test_the_stub_is_what_the_primitives_say() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_primitive_is_there() -> None:
    missing = [name for name in REGISTRY if not hasattr(do, vocabulary.attribute(name))]
    assert REGISTRY and not missing


def test_names_that_python_keeps() -> None:
    assert vocabulary.attribute("and") == "and_"
    assert vocabulary.attribute("scatter-add") == "scatter_add"
    assert do["scatter-add"] == do.scatter_add
    assert do["or"] == do.or_


def test_a_misspelt_name() -> None:
    with pytest.raises(AttributeError, match="mull"):
        do.mull(1, 2)  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match="mull"):
        do["mull"]


def test_defaults_are_parameters_of_the_equation() -> None:
    short = trace_to_jaxpr(lambda x: [do.reshape(x, new_sizes=(2, 3))], [ROW])
    whole = trace_to_jaxpr(
        lambda x: [do.reshape(x, sharding=None, dimensions=None, new_sizes=(2, 3))], [ROW]
    )
    assert str(short) == str(whole)
    assert list(short.eqns[0].params.items()) == list(whole.eqns[0].params.items())
    turned = trace_to_jaxpr(lambda x: [do.reshape(x, new_sizes=(6,), dimensions=(0,))], [ROW])
    assert turned.eqns[0].params["dimensions"] == (0,)


@pytest.fixture
def scaled_by() -> Iterator[Primitive]:
    no = NotApplicable("only traced here")
    yield Primitive(
        "scaled-by",
        meaning=lambda x, *, factor, exact: x * factor,
        shape=lambda x, *, factor, exact: x,
        jvp=no,
        transpose=no,
        batch=no,
        defaults={"exact": True},
    )
    del REGISTRY["scaled-by"]
    delattr(do, "scaled_by")


def test_a_primitive_of_a_user_is_there_at_once(scaled_by: Primitive) -> None:
    (equation,) = trace_to_jaxpr(lambda x: [do["scaled-by"](x, factor=2)], [ROW]).eqns
    assert equation.primitive is scaled_by
    assert equation.params == {"factor": 2, "exact": True}

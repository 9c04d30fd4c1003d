"""What the tests of passes share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.arrays import to_array, to_numpy
from calque.core.jaxprs import ClosedJaxpr, Jaxpr
from calque.native.passes import pipeline
from tests.native.programs import normal, traced

X = normal(5)


def named(jaxpr: Jaxpr | ClosedJaxpr) -> list[str]:
    """The primitives of a program, in order."""
    return [e.primitive.name for e in jaxpr.eqns]


def names(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The primitives that all passes leave of a function."""
    return named(pipeline.run(traced(fun, *args)))


def outputs(closed: ClosedJaxpr, *args: Any) -> list[np.ndarray]:
    """What a program gives, by the meanings of its primitives."""
    return [to_numpy(y) for y in reference.run(closed, *map(to_array, args))]

"""How distributions are made of tables: a family of functions from a standardised density, with
location and scale."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.trace import typeof
from calque.numpy.promotion import check_arraylike, convert, promote_inexact_strong, promote_shapes
from calque.scipy.stats.descriptions import of_function

_F = TypeVar("_F", bound=Callable[..., Array])


def signature_of(
    parameters: type[Callable[..., Any]], first: str | None = None
) -> inspect.Signature:
    """The signature of the functions that a class of `scipy.stats.signatures` describes, with
    another name for the first argument if one is given."""
    own = inspect.signature(vars(parameters)["__call__"])
    _, x, *rest = own.parameters.values()
    return own.replace(parameters=[x if first is None else x.replace(name=first), *rest])


def operands(name: str, *args: Any) -> list[Array]:
    """Floats of one dtype and shape."""
    check_arraylike(name, *args)
    return list(
        jnp.broadcast_arrays(
            *[to_array(x) for x in promote_shapes(name, *promote_inexact_strong(*args))]
        )
    )


def strong(f: Callable[..., Any]) -> Callable[..., Any]:
    """As `f`; what it returns has no weak type, whatever it was given."""

    def function(*args: Any) -> Any:
        out = f(*args)
        return convert(out, typeof(out).dtype)

    return function


def function_of(
    owner: str, name: str, signature: inspect.Signature, body: Callable[..., Any], what: str
) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return body(*operands(f"{owner}.{name}", *bound.args))

    function.__name__ = name
    function.__qualname__ = f"{owner}.{name}"
    function.__module__ = "calque.scipy.stats"
    function.__doc__ = of_function(owner, name, what, signature)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


class Distribution(ModuleType):
    """The functions of one distribution as attributes: `calque.scipy.stats` makes it the module of
    that name."""

    def __init__(self, name: str, **functions: Callable[..., Any]):
        super().__init__(
            f"calque.scipy.stats.{name}", f"The {name} distribution: {', '.join(functions)}."
        )
        vars(self).update(functions)


class Continuous(Distribution, Generic[_F]):
    """A distribution on the real line; `dir` says which of the functions beside the density it
    has."""

    logpdf: _F
    pdf: _F
    cdf: _F
    logcdf: _F
    sf: _F
    logsf: _F
    ppf: Callable[..., Array]
    isf: Callable[..., Array]


class Discrete(Distribution, Generic[_F]):
    """A distribution on whole numbers; `dir` says which of the functions beside the probabilities
    it has."""

    logpmf: _F
    pmf: _F
    cdf: _F
    ppf: Callable[..., Array]
    entropy: Callable[..., Array]


def continuous(
    name: str,
    what: str,
    parameters: type[_F],
    logpdf: Callable[..., Any],
    support: Callable[..., Any] | None = None,
    **others: Any,
) -> Continuous[_F]:
    """A distribution on the real line from functions of y = (x - loc) / scale and of its shape
    parameters; `parameters` describes the functions that come of it.

    `logpdf` is the density at scale 1; outside of `support(y, *shapes)` it is -inf. `others` has
    further functions by name: cdf, sf, logcdf, logsf get y; ppf and isf get a probability and
    return y. pdf, and logarithms of what is given, follow. `probability` is the name of the first
    argument of ppf and isf. What is not `valid(*shapes)`, and a scale that is not above 0, give
    NaN."""
    signature = signature_of(parameters)
    of_probability = signature_of(parameters, others.get("probability", "q"))
    valid = others.get("valid", _any)

    def checked(body: Callable[..., Any]) -> Callable[..., Any]:
        return _checked(body, lambda *rest: valid(*rest[:-2]) & (rest[-1] > 0))

    def density(x: Any, *rest: Any) -> Any:
        *shape, loc, scale = rest
        y = (x - loc) / scale
        if support is None:
            return logpdf(y, *shape) - jnp.log(scale)
        inside = support(y, *shape)
        safe = jnp.where(inside, y, 0.5)
        out = jnp.where(inside, logpdf(safe, *shape) - jnp.log(scale), -np.inf)
        return jnp.where(jnp.isnan(y), np.nan, out)

    bodies = {"logpdf": density, "pdf": lambda *args: jnp.exp(density(*args))}
    for key in ("cdf", "sf", "logcdf", "logsf"):
        if key in others:
            bodies[key] = _standardised(others[key])
    for key in ("cdf", "sf"):
        if key in bodies and f"log{key}" not in bodies and others.get("logs", True):
            bodies[f"log{key}"] = _logarithm(bodies[key])
    out = {
        key: function_of(name, key, signature, checked(body), what) for key, body in bodies.items()
    }
    for key in ("ppf", "isf"):
        if key in others:
            out[key] = function_of(name, key, of_probability, checked(_rescaled(others[key])), what)
    return Continuous(name, **out)


def _any(*shapes: Any) -> Any:
    return True


def _checked(body: Callable[..., Any], valid: Callable[..., Any]) -> Callable[..., Any]:
    """As `body`; NaN where the parameters are those of no distribution."""

    def function(x: Any, *rest: Any) -> Any:
        out = body(x, *rest)
        allowed = valid(*rest)
        return out if allowed is True else jnp.where(allowed, out, np.nan)

    return function


def _standardised(f: Callable[..., Any]) -> Callable[..., Any]:
    def body(x: Any, *rest: Any) -> Any:
        *shape, loc, scale = rest
        return f((x - loc) / scale, *shape)

    return body


def _rescaled(f: Callable[..., Any]) -> Callable[..., Any]:
    def body(q: Any, *rest: Any) -> Any:
        *shape, loc, scale = rest
        return f(q, *shape) * scale + loc

    return body


def _logarithm(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jnp.log(f(*args))


def discrete(
    name: str,
    what: str,
    parameters: type[_F],
    logpmf: Callable[..., Any],
    support: Callable[..., Any],
    **others: Any,
) -> Discrete[_F]:
    """A distribution on whole numbers from functions of k = x - loc and of its shape parameters;
    -inf off the support, NaN for what is not `valid(*shapes)`."""
    signature = signature_of(parameters)
    valid = others.get("valid", _any)

    def checked(body: Callable[..., Any]) -> Callable[..., Any]:
        return _checked(body, lambda *rest: valid(*rest[:-1]))

    def mass(k: Any, *rest: Any) -> Any:
        *shape, loc = rest
        k = k - loc
        inside = support(k, *shape)
        out = jnp.where(inside, logpmf(jnp.where(inside, k, 0.0), *shape), -np.inf)
        return jnp.where(jnp.isnan(k), np.nan, out)

    bodies = {"logpmf": mass, "pmf": lambda *args: jnp.exp(mass(*args))}
    if "cdf" in others:
        cdf = others["cdf"]
        bodies["cdf"] = lambda k, *rest: cdf(k - rest[-1], *rest[:-1])
    out = {
        key: function_of(name, key, signature, checked(body), what) for key, body in bodies.items()
    }
    if "ppf" in others:
        of_probability = signature_of(parameters, "q")
        ppf = others["ppf"]

        def body(q: Any, *rest: Any) -> Any:
            return ppf(q, *rest[:-1]) + rest[-1]

        out["ppf"] = function_of(name, "ppf", of_probability, checked(body), what)
    return Discrete(name, **out)

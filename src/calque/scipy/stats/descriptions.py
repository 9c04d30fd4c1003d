"""What the help of the functions of distributions says."""

from __future__ import annotations

import inspect
from typing import Final

from calque.numpy.descriptions.parts import described

__all__ = ["of_function"]

# function: what it does, what it returns
_FUNCTIONS: Final = {
    "logpdf": ("The logarithm of the density of {}.", "Logarithms, -inf where there is no density"),
    "pdf": ("The density of {}.", "Densities, 0 off the support"),
    "logpmf": ("The logarithm of the probabilities of {}.", "Logarithms, -inf off the support"),
    "pmf": ("The probabilities of {}.", "Probabilities, 0 off the support"),
    "cdf": ("The probability that {} gives at most a value.", "Probabilities"),
    "logcdf": ("The logarithm of `cdf`, for {}.", "Logarithms"),
    "sf": ("The probability that {} gives more than a value.", "Probabilities"),
    "logsf": ("The logarithm of `sf`, for {}.", "Logarithms"),
    "ppf": ("The quantiles of {}: the inverse of `cdf`.", "Values; nan for what is no probability"),
    "isf": ("The inverse of `sf`, for {}.", "Values; nan for what is no probability"),
    "entropy": ("The entropy of {}.", "Entropies in units of e"),
}
_SHAPES: Final = {
    "bernoulli": {"p": "the probability of 1."},
    "beta": {"a": "the exponent at 0, above 0.", "b": "the exponent at 1, above 0."},
    "betabinom": {
        "n": "the number of trials.",
        "a": "the first parameter of the beta distribution of their probability, above 0.",
        "b": "its second parameter, above 0.",
    },
    "binom": {"n": "the number of trials.", "p": "the probability of success."},
    "chi2": {"df": "the degrees of freedom, above 0."},
    "gamma": {"a": "the shape, above 0: the mean in units of `scale`."},
    "gennorm": {"beta": "the exponent, above 0: 1 is Laplace's distribution, 2 a normal one."},
    "geom": {"p": "the probability of success."},
    "nbinom": {"n": "how many successes end the trials.", "p": "the probability of success."},
    "pareto": {"b": "the exponent of the tail, above 0."},
    "poisson": {"mu": "the mean."},
    "t": {"df": "the degrees of freedom, above 0."},
    "truncnorm": {
        "a": "the lower limit, as a distance from `loc` in units of `scale`.",
        "b": "the upper limit, in the same way.",
    },
    "vonmises": {"kappa": "the concentration, 0 for a uniform distribution."},
    "wrapcauchy": {"c": "the concentration, between 0 and 1."},
}
# distribution: arguments of an example, its functions with what they give
_EXAMPLES: Final = {
    "norm": (
        "0.5",
        {
            "logpdf": -1.044,
            "pdf": 0.352,
            "cdf": 0.691,
            "sf": 0.309,
            "logcdf": -0.369,
            "logsf": -1.176,
            "ppf": 1.282,
            "isf": -1.282,
        },
    ),
    "cauchy": (
        "0.5",
        {
            "logpdf": -1.368,
            "pdf": 0.255,
            "cdf": 0.648,
            "sf": 0.352,
            "logcdf": -0.435,
            "logsf": -1.043,
            "ppf": 3.078,
            "isf": -3.078,
        },
    ),
    "expon": (
        "0.5",
        {
            "logpdf": -0.5,
            "pdf": 0.607,
            "cdf": 0.393,
            "sf": 0.607,
            "logcdf": -0.933,
            "logsf": -0.5,
            "ppf": 2.303,
        },
    ),
    "laplace": ("0.5", {"logpdf": -1.193, "pdf": 0.303, "cdf": 0.697}),
    "logistic": (
        "0.5",
        {"logpdf": -1.448, "pdf": 0.235, "cdf": 0.622, "sf": 0.378, "ppf": 2.197, "isf": -2.197},
    ),
    "uniform": ("0.5", {"logpdf": 0.0, "pdf": 1.0, "cdf": 0.5, "ppf": 0.9}),
    "gumbel_r": (
        "0.5",
        {
            "logpdf": -1.107,
            "pdf": 0.331,
            "cdf": 0.545,
            "sf": 0.455,
            "logcdf": -0.607,
            "logsf": -0.788,
            "ppf": 2.25,
        },
    ),
    "gumbel_l": (
        "0.5",
        {
            "logpdf": -1.149,
            "pdf": 0.317,
            "cdf": 0.808,
            "sf": 0.192,
            "logcdf": -0.214,
            "logsf": -1.649,
            "ppf": 0.834,
        },
    ),
    "gamma": (
        "0.5, 2.0",
        {
            "logpdf": -1.193,
            "pdf": 0.303,
            "cdf": 0.09,
            "sf": 0.91,
            "logcdf": -2.406,
            "logsf": -0.095,
        },
    ),
    "chi2": (
        "0.5, 2.0",
        {
            "logpdf": -0.943,
            "pdf": 0.389,
            "cdf": 0.221,
            "sf": 0.779,
            "logcdf": -1.509,
            "logsf": -0.25,
        },
    ),
    "beta": (
        "0.4, 2.0, 3.0",
        {
            "logpdf": 0.547,
            "pdf": 1.728,
            "cdf": 0.525,
            "sf": 0.475,
            "logcdf": -0.645,
            "logsf": -0.744,
        },
    ),
    "pareto": (
        "1.5, 2.0",
        {
            "logpdf": -0.523,
            "pdf": 0.593,
            "cdf": 0.556,
            "sf": 0.444,
            "logcdf": -0.588,
            "logsf": -0.811,
            "ppf": 3.162,
        },
    ),
    "t": ("0.5, 3.0", {"logpdf": -1.161, "pdf": 0.313}),
    "gennorm": ("0.5, 2.0", {"logpdf": -0.822, "pdf": 0.439, "cdf": 0.76}),
    "vonmises": ("0.5, 2.0", {"logpdf": -0.907, "pdf": 0.404}),
    "wrapcauchy": ("0.5, 0.3", {"logpdf": -1.359, "pdf": 0.257}),
    "truncnorm": (
        "0.5, -1.0, 1.0",
        {
            "logpdf": -0.662,
            "pdf": 0.516,
            "cdf": 0.78,
            "sf": 0.22,
            "logcdf": -0.248,
            "logsf": -1.516,
        },
    ),
    "bernoulli": ("1, 0.3", {"logpmf": -1.204, "pmf": 0.3, "cdf": 1.0, "ppf": 1.0}),
    "geom": ("2, 0.3", {"logpmf": -1.561, "pmf": 0.21}),
    "poisson": ("2, 1.5", {"logpmf": -1.382, "pmf": 0.251, "cdf": 0.809, "entropy": 1.539}),
    "binom": ("2, 5, 0.3", {"logpmf": -1.175, "pmf": 0.309}),
    "nbinom": ("2, 3, 0.3", {"logpmf": -2.534, "pmf": 0.079}),
    "betabinom": ("2, 5, 1.0, 2.0", {"logpmf": -1.658, "pmf": 0.19}),
}
_SHIFT: Final = "what is added to the variable."
_SCALE: Final = "what the variable is multiplied with first, above 0."


def of_function(owner: str, name: str, what: str, signature: inspect.Signature) -> str:
    """The help of a function of a distribution, `what` in words."""
    does, returns = _FUNCTIONS[name]
    first, *_ = signature.parameters
    inverse, whole = name in ("ppf", "isf"), first == "k"
    told = {
        first: "probabilities." if inverse else "whole numbers." if whole else "values.",
        **_SHAPES.get(owner, {}),
        "loc": _SHIFT,
        "scale": _SCALE,
    }
    arguments = "\n".join(f"{p}: {told[p]}" for p in signature.parameters)
    shape = "They have the shape that the arguments broadcast to"
    allowed = ", nan\nwhere a parameter is not allowed."
    return described(
        does.format(what), arguments, f"{returns}. {shape}{allowed}", _example(owner, name, inverse)
    )


def _example(owner: str, name: str, inverse: bool) -> str:
    arguments, values = _EXAMPLES[owner]
    if inverse:
        arguments = ", ".join(["0.9", *arguments.split(", ")[1:]])
    if name == "entropy":
        arguments = arguments.rpartition(", ")[2]
    return f">>> round(float(stats.{owner}.{name}({arguments})), 3)\n{values[name]}"

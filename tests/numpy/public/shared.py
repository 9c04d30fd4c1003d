"""Functions that are written out are those that their factories made."""

import inspect
from types import ModuleType

import calque.numpy as jnp


def check_written(module: ModuleType) -> None:
    """What is written has the parameters of what was made, and the namespace offers it."""
    for name in module.__all__:
        f = getattr(module, name)
        offered = getattr(jnp, name)
        assert getattr(offered, "__wrapped__", offered) is f
        check_parameters(f)


def check_parameters(f) -> None:
    written = list(inspect.signature(f).parameters.values())
    code = f.__code__
    made = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert len(written) == len(made), f.__name__
    by_place = made[: code.co_argcount]
    defaults = dict(zip(by_place[::-1], (f.__defaults__ or ())[::-1])) | (f.__kwdefaults__ or {})
    for i, (parameter, name) in enumerate(zip(written, made)):
        place_only = i < code.co_posonlyargcount
        assert (parameter.kind is parameter.POSITIONAL_ONLY) == place_only, f.__name__
        assert (parameter.kind is parameter.KEYWORD_ONLY) == (i >= code.co_argcount), f.__name__
        assert place_only or parameter.name == name, f.__name__
        assert parameter.default == defaults.get(name, parameter.empty), f.__name__

"""What the C type of jitted functions and of the library's own offers beyond a call: its stages,
its cache, how it is pickled. Few programs ask, so what answers is imported then."""

import copyreg
import sys
from typing import Any, Final

from calque.core import lazy
from calque.machine.call import functions as callpath
from calque.machine.call.functions import Jitted
from calque.transforms.engines.trees import name_of

__all__ = ["PICKLED", "Jitted"]

PICKLED: Final = "_calque_pickled"  # of a library function: what gives it again

_FUNCTION: Final = lazy.LazyModule("calque.transforms.jit.function")
_STAGES: Final = {
    **{name: name for name in ("trace", "lower", "eval_shape")},
    "_cache_size": "cache_size",
    "__repr__": "jitted_repr",
}


def clear_cache(jitted: Any) -> None:
    """Forget the programs of one function."""
    _FUNCTION.identity.forget(_FUNCTION.function_of(jitted).cache)
    callpath.clear_entries(jitted)


def _reduced(jitted: Any) -> Any:
    """How a jitted function is pickled: by its name where that leads to it, else by the function
    that it runs, or that the library offers as it."""
    place: Any = sys.modules.get(jitted.__module__)
    for name in jitted.__qualname__.split("."):
        place = getattr(place, name, None)
    if place is jitted:
        return jitted.__qualname__
    if not hasattr(jitted, "_function"):
        return getattr(jitted, PICKLED, jitted.__qualname__)
    function = _FUNCTION.function_of(jitted)
    return _restored, (function.fun, tuple(function.options))


def _restored(fun: Any, options: tuple[Any, ...]) -> Any:
    return _FUNCTION.wrapped(fun, _FUNCTION.JitOptions(*options))


def _state(jitted: Any) -> dict[str, Any]:
    """The attributes of a jitted function, and the name under which libraries look for that of the
    function."""
    of_jit = hasattr(jitted, "_function")
    fun = _FUNCTION.function_of(jitted).fun if of_jit else jitted
    return {**vars(jitted), "function_name": name_of(fun)}


for _name, _stage in _STAGES.items():
    setattr(Jitted, _name, lazy.function("calque.transforms.jit.stages", _stage))
Jitted.clear_cache = clear_cache
Jitted.__signature__ = property(lazy.function("calque.transforms.jit.stages", "signature"))
Jitted.__getstate__ = _state
copyreg.pickle(Jitted, _reduced)
# as of plain functions, a copy is the function itself
Jitted.__copy__ = lambda self: self
Jitted.__deepcopy__ = lambda self, memo: self

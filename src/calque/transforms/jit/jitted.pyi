"""What `jit` returns, for type checkers: the type itself is made by machine code
(`machine/call/functions.py`), its methods stand in `stages.py`."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from calque.core.generics import Asked
from calque.transforms.jit.stages import Lowered, Traced

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

class Jitted(Generic[P, R_co]):
    """A compiled function, with the parameters and the result of the one that it was made of."""

    __name__: str
    __qualname__: str
    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function as it was given."""
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    # As a method. Its own parameters would be `Jitted[Q, R_co]` of a self that is
    # `Jitted[Concatenate[Any, Q], R_co]`; mypy finds a Q without positional parameters there
    # when the function was decorated by `partial(jit, ...)`.
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Jitted[..., R_co]: ...
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Traces for these arguments, which may be ShapeDtypeStructs."""
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Traces for these arguments, which may be ShapeDtypeStructs, and makes ready to
        compile."""
    def eval_shape(self, *args: Any, **kwargs: Any) -> Asked:  # type: ignore[type-var]
        """The shapes and dtypes of the result for these arguments."""
    def clear_cache(self) -> None:
        """Forgets the programs of this function."""

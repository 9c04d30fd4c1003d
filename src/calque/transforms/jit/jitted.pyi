"""What `jit` returns, for type checkers: the type itself is made by machine code
(`machine/call/functions.py`), its methods stand in `stages.py`."""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from calque.core.generics import Asked
from calque.transforms.jit.stages import Lowered, Traced

P = ParamSpec("P")
Q = ParamSpec("Q")
R_co = TypeVar("R_co", covariant=True)

class Jitted(Generic[P, R_co]):
    """A compiled function, with the parameters and the result of the one that it was made of."""

    __name__: str
    __qualname__: str
    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function as it was given."""
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def __get__(self, instance: object, owner: Any = None) -> JittedMethod[P, R_co]: ...
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Traces for these arguments, which may be ShapeDtypeStructs."""
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Traces for these arguments, which may be ShapeDtypeStructs, and makes ready to
        compile."""
    def eval_shape(self, *args: Any, **kwargs: Any) -> Asked:  # type: ignore[type-var]
        """The shapes and dtypes of the result for these arguments."""
    def clear_cache(self) -> None:
        """Forgets the programs of this function."""

class JittedMethod(Jitted[P, R_co]):
    """A compiled function as it is found in a class or an instance: with its first parameter bound,
    or with all of them. Checkers ask `Jitted.__get__` for static methods, too, and for what is
    found in the class."""

    @overload
    def __call__(
        self: JittedMethod[Concatenate[Any, Q], R_co], *args: Q.args, **kwargs: Q.kwargs
    ) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

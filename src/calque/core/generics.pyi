"""The type variables of functions that take functions, for type checkers alone: annotations are not
evaluated, and no module of this name exists when a program runs."""

from typing import Any, ParamSpec, Protocol, TypeVar, TypeVarTuple, overload

from typing_extensions import TypeVar as TypeVarWithDefault

P = ParamSpec("P")  # the parameters of a function, or all but the first one
R = TypeVar("R")  # its result
Aux = TypeVar("Aux")  # what it returns besides
Carry = TypeVar("Carry")  # what a loop hands from round to round
X = TypeVar("X")
Y = TypeVar("Y")
Ts = TypeVarTuple("Ts")  # the operands of branches

# The argument to differentiate in. Bound to Any, so that checkers take the parameter of a lambda
# for anything, rather than for an object without attributes.
Arg = TypeVar("Arg", bound=Any)

# A result that only the caller knows: what its context asks for, else Any.
Asked = TypeVarWithDefault("Asked", default=Any)

R_co = TypeVar("R_co", covariant=True)

class _Unwritten:
    """A type that no program names: a function that takes it says nothing of its parameter."""

class OfAnything(Protocol[P, R_co]):
    """A function whose first parameter has no annotation."""

    @overload
    def __call__(self, x: _Unwritten, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, x: float, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

class OfNumbers(Protocol[P, R_co]):
    """A function whose first parameter may be a number; its derivative is an array."""

    @overload
    def __call__(self, x: int, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, x: float, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

class Derivative(Protocol[P, R_co]):
    """What is made of a function of anything. (A Callable of a lambda's parameters would be an
    untyped function, which mypy refuses to call in its strict settings.)"""

    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

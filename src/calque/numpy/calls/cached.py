"""Library functions whose eager calls run as machine code.

`cached(f)` is called like `f`. When the same kinds of arguments come a second time, `f` is traced
once and an entry is added to its call path (`native.eager_program`): from then on such a call
enters no Python frame. What has no step for each of its primitives is compiled as a whole when it
has been called often, in exact mode, which has the bits of eager calls. Everything else goes to
`f`.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from calque.core import lazy, pytrees
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dtypes import ToldAtEachCall, halved, is_inexact, learning
from calque.core.guards import guard
from calque.core.jaxprs import Eqn, Literal, Var, all_equations, subjaxprs
from calque.core.pause import no_collection
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.core.tracebacks import boundary
from calque.machine.caches import Tables
from calque.machine.room import with_room
from calque.numpy.calls.any_size import AnySize, LibraryCall
from calque.numpy.calls.marks import is_python_only, is_seldom_taught
from calque.transforms.engines.trees import name_of
from calque.transforms.jit.epochs import serving
from calque.transforms.jit.methods import PICKLED, Jitted
from calque.transforms.jit.teaching import (
    SCALARS,
    Description,
    Inexpressible,
    Lesson,
    result_of,
    teach,
)

eager_program = lazy.LazyModule("calque.native.eager.program")
backend = lazy.LazyModule("calque.native.backend")
equations = lazy.LazyModule("calque.native.eager.apart")
inline = lazy.LazyModule("calque.native.passes.inline")

SEEN_LIMIT = 10_000
TAUGHT, REFUSED, TELLS = -1, -2, -3  # what came of the attempt to teach a call
BEYOND = -4  # there is no step for each primitive; less by one for each call since
# what multiplies and adds inside of its own kernel
PRODUCTS: Final = frozenset(
    ("dot_general", "conv_general_dilated", "ragged_dot_general", "random_gamma",
     "random_gamma_grad", "tridiagonal_solve")
)  # fmt: skip
# what gives floats that it was given
MOVES: Final = frozenset(
    ("select_n", "gather", "dynamic_slice", "dynamic_update_slice", "broadcast_in_dim", "reshape",
     "slice", "squeeze", "transpose", "concatenate", "scatter", "rev", "sort", "copy", "max", "min",
     "neg", "abs", "convert_element_type")
)  # fmt: skip
OFTEN = 100  # calls after which a whole program is worth its compilation
TURNS = 20  # calls like `zeros(3)` after which machine code learns them
_STATIC = (int, bool, str, type(None))


class CachedArguments:
    """The arguments of one call: a key, the arrays among them, and how the call path recognises
    them. `numbers` are the types of those that differ from call to call, others are part of the
    key."""

    def __init__(
        self, args: Sequence[Any], kwargs: dict[str, Any], numbers: Sequence[type] = (float,)
    ):
        self.args, self.kwargs, self.numbers = args, kwargs, numbers
        self.avals: list[ShapedArray] = []
        self.key: list[Any] = []
        self.descriptions = [self.described(a) for a in args]
        for k, v in kwargs.items():
            self.key.append(k)
            self.descriptions.append(self.described(v))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple([n for a in self.avals for n in a.shape])

    def described(self, a: Any) -> Description:
        t = type(a)
        if t is ArrayImpl and a._extra is not None:
            raise Inexpressible  # placed on devices: the results follow, in Python
        if t is ArrayImpl or t in self.numbers:
            aval = typeof(a)
            self.avals.append(aval)
            self.key.append(aval)
            i = len(self.avals) - 1
            return ("array", aval, i) if t is ArrayImpl else (SCALARS[t], aval.dtype, i)
        if t is tuple or t is list:
            self.key.append((t, len(a)))
            return (t.__name__, [self.described(v) for v in a])
        self.key.append((t, a))
        if a is None:
            return ("none",)
        if t in _STATIC:
            return ("eq", a)
        if isinstance(a, (type, np.dtype)) or a is Ellipsis:
            return ("is", a)
        raise Inexpressible


_SEEN: Final[Tables[Any, int]] = Tables("calls of library functions", SEEN_LIMIT, programs=True)
_RARE: Final[Tables[Any, int]] = Tables(
    "calls of functions that are seldom taught", SEEN_LIMIT, programs=True
)
_put: Final = dict.__setitem__


class Teacher:
    """Serves the calls of a function that machine code does not know, and teaches it: with the
    second call of a sort, or `at_once`.

    `exact` gives the lesson for arguments of just this sort."""

    def __init__(
        self,
        f: Callable[..., Any],
        exact: Exact | None = None,
        at_once: bool = False,
        numbers: Sequence[type] = (float,),
    ) -> None:
        self.f, self.exact, self.at_once = f, exact or steps, at_once
        self.numbers = numbers
        self.function: Any = None  # whom to teach
        self.seen = _SEEN.new()  # arguments met before -> how often, or what came of it
        self.any_size = AnySize()
        self.seldom = is_seldom_taught(f)
        self.calls = _RARE.new()  # of functions that are seldom taught

    def miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        epoch = serving()
        if not epoch or (self.seldom and self.is_rare(epoch, args, kwargs)):
            return self.f(*args, **kwargs)
        try:
            arguments = CachedArguments(args, kwargs, self.numbers)
            key = (epoch, *arguments.key)
            known = self.seen.find(key)
        except (Inexpressible, TypeError):
            # not for machine code, or arguments that cannot be a key
            return self.f(*args, **kwargs)
        if known == TELLS:
            return self.told(args, kwargs)
        if known != REFUSED and self.learns(arguments, key, known):
            return self.function(*args, **kwargs)
        return self.f(*args, **kwargs)

    def told(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call that names a dtype of 64 bits where there are none: that is said
        here, and machine code serves the call with the dtype that there is."""
        narrow = [halved(a) for a in args]
        named = {k: halved(v) for k, v in kwargs.items()}
        if all(map(operator.is_, [*narrow, *named.values()], [*args, *kwargs.values()])):
            return self.f(*args, **kwargs)  # where it stands is not seen from here
        return self.function(*narrow, **named)

    def is_rare(self, epoch: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a function that is seldom taught has been called seldom with such arguments."""
        try:
            key = (epoch, args, *kwargs.items())
            n = self.calls.get(key, 0) + 1
            if len(self.calls) < self.calls.bound:
                _put(self.calls, key, n)  # without a frame of Python, in each call of a new size
            else:
                self.calls[key] = n
        except TypeError:
            return False
        return n <= TURNS

    def learns(self, arguments: CachedArguments, key: Any, known: int | None) -> bool:
        """Whether there is an entry for such arguments now."""
        if known is not None and known <= BEYOND:
            return self.learns_whole(arguments, key, known)
        if known is None and arguments.sizes:
            self.seen[key] = 1
            if self.any_size.is_hot(key, arguments.sizes):
                known = 1
            elif self.any_size.teach(self.sized(arguments, key)):
                return True
        met = max(
            known or 0, 0
        )  # an entry that went, or that does not take this very value, counts as nothing
        if met or (known is None and self.at_once):
            self.seen[key] = came = self.teach(arguments, key[0])
            return came == TAUGHT
        self.seen[key] = met + 1
        return False

    def learns_whole(self, arguments: CachedArguments, key: Any, known: int) -> bool:
        """Whether there is an entry now, of a whole program: these calls came often."""
        if BEYOND - known < OFTEN:
            self.seen[key] = known - 1
            return False
        came = self.teach(arguments, key[0], whole)
        if came != TAUGHT:
            came = self.teach(arguments, key[0], apart)
        if came != TAUGHT:
            came = self.teach(arguments, key[0], functools.partial(steps, meanings=True))
        self.seen[key] = came if came != BEYOND else REFUSED
        return came == TAUGHT

    def sized(self, arguments: CachedArguments, key: Any) -> LibraryCall:
        """A call that a program with free sizes might serve."""
        flat = functools.partial(flat_function, self.f, arguments)
        return LibraryCall(self.any_size.families, self.function, flat, arguments, key)

    def teach(self, arguments: CachedArguments, number: int, exact: Exact | None = None) -> int:
        """Add an entry for such arguments in the epoch of this number, or say why machine code
        cannot serve such calls."""
        changes = config.changes_elsewhere()
        try:
            with no_collection():
                lesson = with_room(exact or self.exact, self.f, arguments)
        except ToldAtEachCall:
            return TELLS
        except Exception as e:  # what is wrong shows again, with values, in the call itself
            return BEYOND if isinstance(e, eager_program.BeyondSteps) else REFUSED
        if changes == config.changes_elsewhere():
            teach(self.function, lesson, number)
        return TAUGHT


Exact = Callable[[Callable[..., Any], CachedArguments], Lesson]


def cached(f: Callable[..., Any], numbers: Sequence[type] = (float,)) -> Any:
    """`f` with a call path of its own for eager calls, which takes numbers of these types as
    arrays."""
    teacher = Teacher(f, numbers=numbers)
    teacher.function = function = Jitted(boundary(teacher.miss))
    functools.update_wrapper(function, f, updated=())
    function.__wrapped__ = f
    return function


def steps(f: Callable[..., Any], arguments: CachedArguments, meanings: bool = False) -> Lesson:
    """A program that does one step for each primitive; with `meanings` some of them are NumPy's."""
    flat, tree = flat_function(f, arguments)
    closed = trace_to_jaxpr(flat, arguments.avals)
    if not all(map(runs_apart, closed.jaxpr.eqns)):
        raise eager_program.BeyondSteps
    program = eager_program.assemble(closed, meanings)
    return Lesson(arguments.descriptions, program, result_of(tree[0]), tuple(arguments.kwargs))


def whole(f: Callable[..., Any], arguments: CachedArguments) -> Lesson:
    """A compiled program, with the bits of the steps: of what these give other bits than exact
    mode there is none."""
    flat, tree = flat_function(f, arguments)
    closed = trace_to_jaxpr(flat, arguments.avals)
    if closed.jaxpr.effects or not (config.exact or all(map(is_exact, closed.jaxpr.eqns))):
        raise Inexpressible
    program = backend.compile(closed, Options(name_of(f), exact=True)).program
    if program is None:  # it is called from Python
        raise Inexpressible
    return Lesson(arguments.descriptions, program, result_of(tree[0]), tuple(arguments.kwargs))


def apart(f: Callable[..., Any], arguments: CachedArguments) -> Lesson:
    """A compiled program that runs one equation after the other, with the bits of the steps."""
    flat, tree = flat_function(f, arguments)
    closed = trace_to_jaxpr(flat, arguments.avals)
    if closed.jaxpr.effects:
        raise Inexpressible
    program = equations.EquationsApart(closed, Options(name_of(f), exact=config.exact)).program
    return Lesson(arguments.descriptions, program, result_of(tree[0]), tuple(arguments.kwargs))


def runs_apart(e: Eqn) -> bool:
    """Has an equation the bits that its steps would have? A jitted function is one program where it
    runs by itself, and would be many steps."""
    name = e.primitive.name
    inside = run_one_by_one(e)
    if inside is not None:
        return all(map(runs_apart, inside))
    inlined = name in inline.CALLS or e.primitive.program is not None
    inlined |= name == "cond" and isinstance(e.invars[0], Literal)
    return not inlined or is_exact(e)


def is_exact(e: Eqn) -> bool:
    """Does an equation that runs by itself give the bits of exact mode? What multiplies and adds
    does not, and loops and branches only where they move floats."""
    name = e.primitive.name
    if name in PRODUCTS:
        return False
    steps = run_one_by_one(e)
    if steps is not None:
        return all(map(is_exact, steps))
    inside = (x for program in subjaxprs(e.params) for x in all_equations(program))
    return all(x.primitive.name in MOVES or not any(map(is_rounded, x.outvars)) for x in inside)


def run_one_by_one(e: Eqn) -> list[Eqn] | None:
    """The equations of a call that run one by one where it runs by itself; None for other
    equations."""
    name = e.primitive.name
    if name not in inline.IN_STEPS:
        return None
    if name == "custom_linear_solve":
        return list(e.params["jaxprs"].solve.jaxpr.eqns)
    return [x for program in subjaxprs(e.params) for x in program.eqns]


def is_rounded(v: Var) -> bool:
    return is_inexact(v.aval.dtype)


def flat_function(
    f: Callable[..., Any], arguments: CachedArguments
) -> tuple[Callable[..., list[Any]], list[pytrees.PyTreeDef]]:
    """`f` as a function of the arrays among these arguments, and a cell that receives the structure
    of its result."""
    tree: list[pytrees.PyTreeDef] = []

    def flat(*arrays: Any) -> list[Any]:
        values = iter(arrays)
        kinds = (ArrayImpl, *arguments.numbers)
        full = [substituted(a, values, kinds) for a in arguments.args]
        named = {k: substituted(v, values, kinds) for k, v in arguments.kwargs.items()}
        with learning():
            out, structure = pytrees.flatten(f(*full, **named))
        if not all(
            isinstance(v, Tracer) for v in out
        ):  # a Python value, or an array made while tracing
            raise Inexpressible
        tree[:] = [structure]
        return out

    return flat, tree


def substituted(a: Any, arrays: Any, kinds: Sequence[type]) -> Any:
    """An argument with its arrays and numbers of these kinds replaced by the next traced values."""
    t = type(a)
    if t in kinds:
        return next(arrays)
    if t is tuple or t is list:
        return t(substituted(v, arrays, kinds) for v in a)
    return a


# ---------------------------------------------------------------- which functions

# modules whose functions have call paths
OFFERED: Final = "_calque_offered"
OWN: Final = ("calque.numpy", "calque.random", "calque.nn", "calque.scipy")

# what a ufunc offers besides its calls
_OF_UFUNCS: Final = (
    "reduce",
    "accumulate",
    "outer",
    "at",
    "reduceat",
)


def _read_from_ufunc(name: str) -> property:
    """An attribute of universal functions that a call path shows, and that cannot be set."""

    def get(function: Any) -> Any:
        ufunc = getattr(function, "__wrapped__", None)
        if not hasattr(type(ufunc), "reduceat"):
            kind = type(function).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
        return getattr(ufunc, name)

    return property(get)


for _name in ("nin", "nout", "nargs", "identity", "_func"):
    setattr(Jitted, _name, _read_from_ufunc(_name))


def with_call_path(name: str, f: Any) -> Any:
    """What the namespace offers under a name: its own functions get call paths, unless they are
    marked as Python's."""
    if name.startswith("_") or is_python_only(f) or isinstance(f, type) or not callable(f):
        return guard(f)
    if not getattr(f, "__module__", "").startswith(OWN) and not hasattr(f, "outer"):
        return guard(f)
    if (known := getattr(f, OFFERED, None)) is not None:
        return known
    made = cached(f)
    for attribute in _OF_UFUNCS:
        if hasattr(f, attribute):
            setattr(made, attribute, getattr(f, attribute))
    if isinstance(f, FunctionType):
        setattr(f, OFFERED, made)  # one for all names, and for pickles of it
        setattr(made, PICKLED, (with_call_path, (name, f)))
    else:
        setattr(made, PICKLED, (universal_function, (name,)))
    return made


def universal_function(name: str) -> Any:
    """The one that the namespace offers under a name."""
    return getattr(sys.modules["calque.numpy"], name)

"""Eager execution: one primitive at a time, with kernels that serve every shape.

A primitive on given avals is reduced to a normal form: elementwise ones to one dimension,
reductions and running sums to (outer, axis, inner). The kernel of a normal form is compiled once,
with its sizes open; a new shape only makes a new driver program of one call, in microseconds.
Layout and indexing primitives, and what has no native lowering, run their NumPy meaning, which
knows every shape. Programs (loops, calls) are compiled like those of `jit`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core import reference
from calque.core.arrays import ArrayImpl, repeated, share, to_array
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dims import Dim
from calque.core.dtypes import float0, is_extended
from calque.core.jaxprs import ClosedJaxpr, subjaxprs
from calque.core.primitives import Primitive
from calque.core.source import here
from calque.core.symbols import Symbols
from calque.core.trace import trace_to_jaxpr, typeof
from calque.machine.caches import Table
from calque.machine.call.functions import run_program
from calque.machine.driver.builder import ProgramBuilder, Varying
from calque.machine.driver.program import Program
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.machine.objects import strided
from calque.machine.spans import recorded, span
from calque.native import stored
from calque.native.backend import compile as compile_program
from calque.native.eager import layout as eager_layout
from calque.native.eager.across import evaluate_across
from calque.native.eager.families import program_of_any_size
from calque.native.executable import Planned
from calque.native.library import linalg
from calque.native.library.names import SORTS
from calque.native.library.routines import ROUTINES
from calque.native.lower.numbers import word_of
from calque.native.lower.sizes import Sizes
from calque.native.passes.algebra import fixed_exponent
from calque.native.plan.program import Assembler
from calque.native.plan.steps import Call, Routine
from calque.native.scalars import elements
from calque.native.scalars.expr import Buffer, Expr
from calque.native.symbolic import python_text
from calque.transforms.devices.several_processes import spans
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.devices.sharding_propagation import place_one

HINTS: Final = (1009, 1013, 1019)  # the sizes of a kernel for all sizes, while it is made
TURNS: Final = "turns"  # stands for the number of turns of a parallel loop
Runner = Callable[[Sequence[Any]], Any]

REDUCTIONS: Final = frozenset(
    f"reduce_{op}" for op in ("sum", "prod", "max", "min", "and", "or", "xor")
)
POSITIONS: Final = frozenset(("argmax", "argmin"))
RUNNING: Final = frozenset(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"))
COMPILED: Final = (
    REDUCTIONS | RUNNING | {"dot_general", "conv_general_dilated", "reduce_window_sum"}
)  # without a normal form: compiled for their shapes
SAME_BYTES: Final = frozenset(("reshape", "squeeze"))
CACHE_LIMIT: Final = 20_000
SMALL: Final = 1 << 16
MOST_AXES: Final = 30  # of what NumPy's meanings, which add some for a while, take everywhere
SMALL_PRODUCT: Final = 64**3
MANY_BITS: Final = 1 << 14  # random words: NumPy needs longer for them than a kernel takes to make
MANY_TURNED: Final = 1 << 20  # elements of a transposition, likewise


class Operand(NamedTuple):
    """An operand of a normal form: its axes are numbers of the form's sizes."""

    axes: tuple[int, ...]
    dtype: Any
    weak_type: bool

    def aval(self, sizes: Sequence[Any]) -> ShapedArray:
        return ShapedArray(tuple([sizes[i] for i in self.axes]), self.dtype, self.weak_type)


class NormalForm(NamedTuple):
    """A primitive reduced to few dimensions: `operands` and `params` (of free sizes) make the
    kernel, `dims` are the sizes of this call."""

    key: Any
    operands: tuple[Operand, ...]
    params: Callable[[Sequence[Any]], dict[str, Any]]
    dims: tuple[int, ...]


# ---------------------------------------------------------------- kernels for every shape


class Template:
    """A kernel with open sizes and what goes into each word of its arguments. `trace` makes its
    program, of free sizes."""

    def __init__(self, trace: Callable[[Sequence[Dim]], ClosedJaxpr]) -> None:
        symbols = Symbols(HINTS)
        closed = trace(symbols.sizes())
        symbols.lenient = True
        planned = Planned(closed, Options(exact=config.exact), Sizes(known=False))
        (call,) = planned.steps
        if not isinstance(call, Call) or closed.consts:
            raise ValueError("not one kernel")
        sizes = planned.planner.sizes
        self.out_avals, self.kernel = closed.out_avals, planned.code[call.schedule]
        places = {buf: ("in", i) for i, buf in enumerate(planned.inputs)}
        places |= {buf: ("out", i) for i, (buf, _) in enumerate(planned.outputs)}
        buffers = call.buffers(self.kernel.buffers)
        if not places.keys() >= set(buffers):
            raise ValueError("a kernel with memory of its own")
        self.places = [places[buf] for buf in buffers]
        names = [sizes.dim(d).attr[0] for d in symbols.sizes()]
        if not set(self.kernel.sizes) <= set(names):
            raise ValueError("a size that is not known from those of the operands")
        self.sizes = [names.index(name) for name in self.kernel.sizes]
        params = call.parameters(self.kernel.params)
        self.bits = [word_of(planned.planner.params[e.attr[0]].tobytes()) for e in params]
        extent = call.schedule.extent
        self.turns = None if extent is None else size_function(names, extent)
        self.asks = self.kernel.polls
        self.guards = tuple(symbols.guards.values())
        self.holds = symbols.program(list(symbols.guards))
        self.pattern, self.varying = self.driver(len(planned.inputs))

    def driver(self, n_in: int) -> tuple[Pattern, list[Any]]:
        """The program of the call alone, and what stands at each of its varying words."""
        b, k = ProgramBuilder(n_in, [(a, 0) for a in self.out_avals]), self.kernel
        slots = [b.input(i) if kind == "in" else b.output(i) for kind, i in self.places]
        sizes = [Varying(HINTS[i], i) for i in self.sizes]
        turns = 1 if self.turns is None else Varying(2, TURNS)
        words: list[Any] = [*slots, *sizes, *self.bits]
        b.call(k.address, words, 0, turns, name=k.symbol, asks=self.asks, owner=k.code)
        varying = b.varying()
        return Pattern(b.build(), [i for i, _ in varying]), [key for _, key in varying]

    def serves(self, dims: Sequence[Any]) -> bool:
        """Whether these sizes give the answers that the kernel was made with."""
        return not self.guards or self.holds(*dims, *HINTS[len(dims) :]) == self.guards

    def step(self, ins: Sequence[Buffer], outs: Sequence[Buffer], dims: Sequence[Any]) -> Routine:
        """The call as a step of a larger program."""
        buffers = [(ins if kind == "in" else outs)[i] for kind, i in self.places]
        words = [*buffers, *[dims[i] for i in self.sizes], *self.bits]
        turns, k = 1 if self.turns is None else self.turns(*dims), self.kernel
        return Routine(
            k.symbol, k.address, words, ins, outs, 0, turns, grain=0, asks=self.asks, owner=k.code
        )

    def program(self, outs: Sequence[ShapedArray], dims: Sequence[int]) -> SizedProgram:
        """The driver for these sizes."""
        if self.turns is None:
            words = [dims[i] for i in self.varying]
        else:
            turns = self.turns(*dims)
            words = [turns if i == TURNS else dims[i] for i in self.varying]
        long = math.prod(dims) > 100_000
        return self.pattern.program([(a, nbytes(a)) for a in outs], words, long)


def size_function(names: Sequence[str], e: Expr) -> Callable[..., Any]:
    """A size expression as a function of the sizes that have these names; the last ones may be
    left out."""
    arguments = ", ".join(f"{name}=0" for name in names)
    made: Callable[..., Any] = eval(f"lambda {arguments}: {python_text(e)}")
    return made


# False: the program is not one kernel
_templates: Final[Table[Any, Template | bool]] = Table(
    "kernels of any size of single operations", 4096, programs=True
)


def template(key: Any, trace: Callable[[Sequence[Dim]], ClosedJaxpr]) -> Template | None:
    """The kernel for a key, made when first asked for; None when the program is not one kernel."""
    full = (key, config.exact)
    found = _templates.find(full)
    if found is None:
        changes = config.changes_elsewhere()
        try:
            found = Template(trace)
        except (ValueError, NotImplementedError):
            found = False
        if changes == config.changes_elsewhere():
            _templates[full] = found
    return found if isinstance(found, Template) else None


# ---------------------------------------------------------------- normal forms


def elementwise(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> NormalForm | None:
    shape = next((a.shape for a in avals if a.shape), ())
    if any(a.shape not in ((), shape) for a in avals):
        return None
    operands = tuple([Operand((0,) if a.shape else (), a.dtype, a.weak_type) for a in avals])
    return NormalForm((p, operands, frozen), operands, lambda _: params, (math.prod(shape),))


def along_axes(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> NormalForm | None:
    """(outer, folded, inner) for axes that stand together; axes of size 1 fall away."""
    if len(avals) != 1:
        return None
    a = avals[0]
    axes = sorted(params["axes"] if "axes" in params else (params["axis"],))
    if (
        not axes
        or axes != list(range(axes[0], axes[-1] + 1))
        or (len(axes) > 1 and "index_dtype" in params)
    ):
        return None
    whole = [
        math.prod(a.shape[: axes[0]]),
        math.prod(a.shape[axes[0] : axes[-1] + 1]),
        math.prod(a.shape[axes[-1] + 1 :]),
    ]
    kept = tuple([i for i in range(3) if whole[i] != 1 or i == 1])
    operand, k = Operand(kept, a.dtype, a.weak_type), kept.index(1)
    changed = {**params, "axes": (k,)} if "axes" in params else {**params, "axis": k}
    key = (p, operand, tuple(changed.items()))
    return NormalForm(key, (operand,), lambda _: changed, tuple(whole))


def product(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> NormalForm | None:
    """Products of vectors and matrices that are too small for blocks."""
    x, y = avals
    (ca, cb), batch = params["dimension_numbers"]
    if (
        any(batch)
        or len(ca) != 1
        or x.ndim > 2
        or y.ndim > 2
        or x.size * y.size > SMALL_PRODUCT * max(x.shape[ca[0]], 1)
    ):
        return None
    left = tuple([1 if i == ca[0] else 0 for i in range(x.ndim)])
    right = tuple([1 if i == cb[0] else 2 for i in range(y.ndim)])
    operands = (Operand(left, x.dtype, x.weak_type), Operand(right, y.dtype, y.weak_type))
    m = math.prod(x.shape[: ca[0]] + x.shape[ca[0] + 1 :])
    n = math.prod(y.shape[: cb[0]] + y.shape[cb[0] + 1 :])
    return NormalForm((p, operands, frozen), operands, lambda _: params, (m, x.shape[ca[0]], n))


def counting(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> NormalForm:
    """iota: (outer, counted, inner)."""
    shape, d = params["shape"], params["dimension"]
    whole = [math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :])]
    kept = tuple([i for i in range(3) if whole[i] != 1 or i == 1])
    rest = {**params, "dimension": kept.index(1)}

    def at(sizes: Sequence[Any]) -> dict[str, Any]:
        return {**rest, "shape": tuple([sizes[i] for i in kept])}

    return NormalForm((p, tuple({**rest, "shape": kept}.items())), (), at, tuple(whole))


NORMAL: Final[dict[str, Callable[..., NormalForm | None]]] = {
    **{name: along_axes for name in (*REDUCTIONS, *POSITIONS, *RUNNING)},
    "dot_general": product,
    "iota": counting,
}


def normal_form(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> NormalForm | None:
    if any(is_extended(a.dtype) for a in avals):
        return None
    rule = NORMAL.get(p.name)
    if rule is None and elements.supports(p.name):
        rule = elementwise
    return rule(p, avals, params, frozen) if rule is not None else None


# ---------------------------------------------------------------- running one primitive

_runs: Final[Table[Any, Runner]] = Table("single operations", CACHE_LIMIT, programs=True)


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run a primitive on concrete values."""
    if primitive.name == "pow" and len(args) == 2 and type(args[1]) is not ArrayImpl:
        exponent = fixed_exponent(args[1])
        if exponent is not None and typeof(args[0]).dtype.kind != "c":
            args, params = args[:1], {"exponent": exponent}  # as `jit` would: see `passes.algebra`
    arrays = [a if type(a) is ArrayImpl else to_array(a) for a in args]
    for a in arrays:
        if a._extra is not None:  # placed on devices: the results follow
            if spans(a._extra):
                return evaluate_across(primitive, arrays, params)
            bare = [share(x, x.aval.without_place()) for x in arrays]
            return place_one(primitive, arrays, params, evaluate(primitive, bare, params))
    try:
        key = (primitive, tuple([a.aval for a in arrays]), tuple(params.items()), config.exact)
        run = _runs.get(key)
    except TypeError:  # a parameter that cannot be hashed
        return prepare(primitive, [a.aval for a in arrays], params, None)(arrays)
    if run is not None:
        _runs.counts.hits += 1  # here, as a call of `find` would be felt
    else:
        _runs.counts.misses += 1
        changes = config.changes_elsewhere()
        run = prepare(primitive, key[1], params, key[2])
        if not holds_programs(params) and changes == config.changes_elsewhere():
            _runs[key] = run
    return run(arrays)


def holds_programs(params: dict[str, Any]) -> bool:
    """Programs in parameters are made anew by each call of a loop function: they are known by their
    content, see `of_program`."""
    return any(True for _ in subjaxprs(params))


def prepare(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> Runner:
    """How to run the primitive on such operands. Shape errors come from here."""
    out: Any = avals[0] if "exponent" in params else p.shape(*avals, **params)
    outs: list[Any] = [*out] if p.multiple_results else [out]
    if params.get("dimensions") is not None and p.name == "reshape":  # read in another order
        return of_program(p, avals, params)
    if p.name in SAME_BYTES:
        return lambda arrays: share(arrays[0], out)
    if (
        p.name == "broadcast_in_dim"
        and avals[0].size == 1
        and out.dtype != float0
        and not is_extended(out.dtype)
    ):
        return lambda arrays: repeated(arrays[0], out)
    if (holds_programs(params) or p.program is not None) and not p.effect:
        run = of_program(p, avals, params)
        says = p.name == "shard_map" or (p.name == "jit" and has_constraints(params["jaxpr"]))
        return (lambda arrays: place_one(p, arrays, params, run(arrays))) if says else run
    form = normal_form(p, avals, params, frozen)
    if form is not None:
        made = template_of(p, form)
        if made is not None:
            return results(made.program(outs, form.dims), p.multiple_results)
    if (
        p.name in eager_layout.VIEWS
        and not any(is_extended(a.dtype) for a in avals)
        and small(outs)
    ):
        if out.size == 0:
            return lambda arrays: repeated(arrays[0], out)
        return results(eager_layout.view_program(p.name, params, avals[0], out), False)
    turned = p.name == "transpose" and is_long_turn(out, params["permutation"])
    if frozen is not None and (p.name in COMPILED or p.name in SORTS or turned):
        sized = program_of_any_size(p.name, (p, frozen), one_equation(p, params), avals)
        if sized is not None:
            return results(sized, p.multiple_results)
    if p.name in COMPILED or turned or (p.name == "random_bits" and out.size >= MANY_BITS):
        return of_program(p, avals, params)
    if p.name in ROUTINES:
        program = routine_program(p.name, params, avals, outs)
        if program is not None:
            return results(program, p.multiple_results)
    if max([a.ndim for a in (*avals, *outs)], default=0) > MOST_AXES:
        return of_program(p, avals, params)
    return lambda arrays: by_meaning(p, arrays, params)


def is_long_turn(out: ShapedArray, permutation: Sequence[int]) -> bool:
    """Whether a transposition moves the last axis of many elements: NumPy reads them one by one
    from places far apart (a minute for 500 MB), where a kernel turns tiles."""
    moved = out.ndim > 1 and permutation[-1] != out.ndim - 1
    return moved and out.size >= MANY_TURNED and not is_extended(out.dtype)


def by_meaning(p: Primitive, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """The NumPy meaning, which a trace shows with the line that asks for it."""
    if not recorded():
        return reference.evaluate(p, arrays, params)
    place = here()
    details = {} if place is None else {"line": f"{place.file}:{place.line}"}
    with span("NumPy", p.name, details):
        return reference.evaluate(p, arrays, params)


def template_of(p: Primitive, form: NormalForm) -> Template | None:
    """The kernel of a normal form, if it serves these sizes."""

    def trace(sizes: Sequence[Dim]) -> ClosedJaxpr:
        avals = [operand.aval(sizes) for operand in form.operands]
        return trace_to_jaxpr(one_equation(p, form.params(sizes)), avals)

    made = template(form.key, trace)
    return made if made is not None and made.serves(form.dims) else None


def small(avals: Sequence[ShapedArray]) -> bool:
    """Few enough elements that a plain copy loop is as good as any."""
    return all(a.size <= SMALL and a.ndim <= strided.MAX_RANK for a in avals)


def routine_program(
    name: str, params: dict[str, Any], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Program | None:
    """The call of a routine as a program of its own."""
    b = ProgramBuilder(len(avals), [(a, nbytes(a)) for a in outs])
    buffers = {Buffer(f"in{i}", (), "u8"): b.input(i) for i in range(len(avals))}
    ins = list(buffers)
    buffers |= {Buffer(f"out{i}", (), "u8"): b.output(i) for i in range(len(outs))}
    step = ROUTINES[name](name, params, avals, ins, list(buffers)[len(ins) :])
    if step is None:
        return None
    assembler = Assembler(Sizes(), {}, {}, {})
    assembler.builder, assembler.slots = b, buffers
    assembler.routine(step)
    return b.build(release_gil=avals[0].size > SMALL or linalg.is_long(name, avals))


def one_equation(p: Primitive, params: dict[str, Any]) -> Callable[..., list[Any]]:
    def fun(*xs: Any) -> list[Any]:
        if "exponent" in params:
            return [p.bind(*xs, typeof(xs[0]).dtype.type(params["exponent"]))]
        out = p.bind(*xs, **params)
        return out if p.multiple_results else [out]

    return fun


def results(program: Program | SizedProgram, several: bool) -> Runner:
    if several:
        return lambda arrays: run_program(program, arrays)
    return lambda arrays: run_program(program, arrays)[0]


def of_program(p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Runner:
    """Loops, branches, calls, products: compiled as `jit` would."""
    holder = next((v for v in params.values() if isinstance(v, ClosedJaxpr)), None)
    if holder is not None and p.name == "jit":
        others = [(k, v) for k, v in params.items() if not isinstance(v, ClosedJaxpr)]
        key = (p.name, tuple(avals), config.exact, tuple(others))
        executable = holder.cache.get(key)
        if executable is None:
            executable = holder.cache[key] = _compiled(p, avals, params)
        return results(executable.program, p.multiple_results)
    # made for this call alone: the next one makes a program like it
    content = stored.content_of(p, avals, params) if holds_programs(params) else None
    if content is None:
        return results(_compiled(p, avals, params).program, p.multiple_results)
    known = (*content, config.trace_key())
    run = _loops.find(known)
    if run is None:
        changes = config.changes_elsewhere()
        run = results(_compiled(p, avals, params).program, p.multiple_results)
        if changes == config.changes_elsewhere():
            _loops[known] = run
    return run


_loops: Final[Table[Any, Runner]] = Table("eager loops and branches", 256, programs=True)


def _compiled(p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
    closed = trace_to_jaxpr(one_equation(p, params), avals)
    return compile_program(closed, Options(p.name, config.exact))

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
from calque.core.dtypes import float0, is_extended
from calque.core.jaxprs import ClosedJaxpr, subjaxprs
from calque.core.primitives import Primitive
from calque.core.trace import trace_to_jaxpr, typeof
from calque.machine.caches import Table
from calque.machine.call.functions import run_program
from calque.machine.driver.builder import ProgramBuilder, Slot, Varying
from calque.machine.driver.program import Program
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.machine.objects import strided
from calque.native.backend import Planned
from calque.native.backend import compile as compile_program
from calque.native.eager import layout as eager_layout
from calque.native.eager.families import program_of_any_size
from calque.native.library import linalg, sorting
from calque.native.library.routines import EAGER
from calque.native.lower.reductions import CHUNK
from calque.native.lower.sizes import Sizes
from calque.native.passes.algebra import fixed_exponent
from calque.native.plan.program import raw_bits
from calque.native.plan.steps import Call
from calque.native.scalars import elements
from calque.transforms.devices.sharding_propagation import place_one

HINTS: Final = (
    1009,
    1013,
    1019,
    1021,
)  # sizes that stand for "any size" while a kernel is made; distinct, and no multiples
COUNT: Final = 1_000_003  # stands for the extent of a parallel loop
Run = Callable[[Sequence[Any]], Any]

REDUCTIONS: Final = frozenset(
    f"reduce_{op}" for op in ("sum", "prod", "max", "min", "and", "or", "xor")
)
POSITIONS: Final = frozenset(("argmax", "argmin"))
RUNNING: Final = frozenset(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"))
COMPILED: Final = (
    REDUCTIONS | RUNNING | {"dot_general", "conv_general_dilated"}
)  # without a normal form: compiled for their shapes
SAME_BYTES: Final = frozenset(("reshape", "squeeze"))
CACHE_LIMIT: Final = 20_000
SMALL: Final = 1 << 16
SMALL_PRODUCT: Final = 64**3


class Form(NamedTuple):
    """A primitive reduced to few dimensions: `hints` and `params` make the kernel, `dims` are the
    sizes of this call."""

    key: Any
    hints: tuple[ShapedArray, ...]
    params: dict[str, Any]
    dims: tuple[int, ...]


# ---------------------------------------------------------------- kernels for every shape


def sizes_of(dims: Sequence[int]) -> dict[int, int]:
    """What stands for the sizes in a kernel's arguments, and for the last index along each."""
    return {h - k: d - k for h, d in zip(HINTS, dims) for k in (0, 1)}


class Template:
    """A kernel with open sizes and what goes into each word of its arguments."""

    def __init__(self, closed: ClosedJaxpr):
        planned = Planned(closed, Options(exact=config.exact), Sizes(known=False))
        (call,) = planned.steps
        if not isinstance(call, Call) or call.kernel is None or closed.consts:
            raise ValueError("not one kernel")
        self.out_avals, self.extent = closed.out_avals, call.plan.extent
        kernel = self.kernel = call.kernel
        places = {buf: ("in", i) for i, buf in enumerate(planned.inputs)}
        places |= {buf: ("out", i) for i, (buf, _) in enumerate(planned.outputs)}
        self.places = [places[buf] for buf in kernel.buffers]
        self.words = [int(name[1:]) for name in kernel.sizes]
        self.words += [raw_bits(planned.planner.params[e.attr[0]]) for e in kernel.params]
        self.n_sizes = len(kernel.sizes)
        if not set(self.words[: self.n_sizes]) <= sizes_of(HINTS).keys():
            raise ValueError("a size that is not known from those of the operands")
        b = ProgramBuilder(len(planned.inputs), [(a, nbytes(a)) for a in closed.out_avals])
        ins, outs = (
            [b.input(i) for i in range(len(planned.inputs))],
            [b.output(i) for i in range(len(planned.outputs))],
        )
        sizes, rest = self.words[: self.n_sizes], self.words[self.n_sizes :]
        self.emit_with(
            b, ins, outs, [*[Varying(w, w) for w in sizes], *rest], Varying(COUNT, COUNT)
        )
        varying = [key for _, key in b.varying()]
        self.pattern, self.varying = Pattern(b.build(), [i for i, _ in b.varying()]), varying
        self.simple = [
            (i, k) for v in varying for i, h in enumerate(HINTS) for k in (0, 1) if v == h - k
        ]

    def emit_with(
        self,
        b: ProgramBuilder,
        ins: Sequence[Slot],
        outs: Sequence[Slot],
        words: Sequence[int],
        count: int,
    ) -> None:
        args: list[Any] = [(ins if kind == "in" else outs)[i] for kind, i in self.places]
        args += words
        if self.extent is None:
            b.call(self.kernel.address, args, name=self.kernel.symbol, asks=self.kernel.polls)
        else:
            b.call(
                self.kernel.address, args, 0, count, name=self.kernel.symbol, asks=self.kernel.polls
            )

    def emit(
        self, b: ProgramBuilder, ins: Sequence[Slot], outs: Sequence[Slot], dims: Sequence[int]
    ) -> None:
        """The call as a step of a larger program."""
        values = sizes_of(dims)
        words = [values[w] for w in self.words[: self.n_sizes]] + self.words[self.n_sizes :]
        self.emit_with(b, ins, outs, words, self.count(values))

    def count(self, values: dict[int, int]) -> int:
        """The turns of the outermost loop."""
        if self.extent is None:
            return 1
        sizes = Sizes()
        sizes.values = {f"s{h}": d for h, d in values.items()}
        return sizes.value(self.extent)

    def program(self, outs: Sequence[ShapedArray], dims: Sequence[int]) -> SizedProgram:
        """The driver for these sizes."""
        if self.extent is None:
            new = [dims[i] - k for i, k in self.simple]
        else:
            values = sizes_of(dims)
            values[COUNT] = self.count(values)
            new = [values[v] for v in self.varying]
        return self.pattern.program([(a, nbytes(a)) for a in outs], new, math.prod(dims) > 100_000)


# False: the program is not one kernel
_templates: Final[Table[Any, Template | bool]] = Table(
    "kernels of any size of single operations", 4096, programs=True
)


def template(key: Any, make: Callable[[], ClosedJaxpr]) -> Template | None:
    """The kernel for a key, made when first asked for; None when the program is not one kernel."""
    full = (key, config.exact)
    found = _templates.find(full)
    if found is None:
        try:
            found = Template(make())
        except (ValueError, NotImplementedError):
            found = False
        _templates[full] = found
    return found if isinstance(found, Template) else None


# ---------------------------------------------------------------- normal forms


def elementwise(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> Form | None:
    shape = next((a.shape for a in avals if a.shape), ())
    if any(a.shape not in ((), shape) for a in avals):
        return None
    hints = tuple(ShapedArray(HINTS[:1] if a.shape else (), a.dtype, a.weak_type) for a in avals)
    return Form((p, hints, frozen), hints, params, (math.prod(shape),))


def along_axes(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> Form | None:
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
    if p.name in REDUCTIONS and whole[1] > CHUNK:  # cut into chunks: more than one kernel
        return None
    kept = [i for i in range(3) if whole[i] != 1 or i == 1]
    hint = ShapedArray(tuple(HINTS[i] for i in kept), a.dtype, a.weak_type)
    k = kept.index(1)
    changed = {**params, "axes": (k,)} if "axes" in params else {**params, "axis": k}
    return Form((p, hint, tuple(changed.items())), (hint,), changed, tuple(whole))


def product(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> Form | None:
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
    left = [HINTS[1] if i == ca[0] else HINTS[0] for i in range(x.ndim)]
    right = [HINTS[1] if i == cb[0] else HINTS[2] for i in range(y.ndim)]
    hints = (ShapedArray(left, x.dtype, x.weak_type), ShapedArray(right, y.dtype, y.weak_type))
    m = math.prod(x.shape[: ca[0]] + x.shape[ca[0] + 1 :])
    n = math.prod(y.shape[: cb[0]] + y.shape[cb[0] + 1 :])
    return Form((p, hints, frozen), hints, params, (m, x.shape[ca[0]], n))


def counting(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> Form:
    """iota: (outer, counted, inner)."""
    shape, d = params["shape"], params["dimension"]
    whole = [math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :])]
    kept = [i for i in range(3) if whole[i] != 1 or i == 1]
    changed = {**params, "shape": tuple(HINTS[i] for i in kept), "dimension": kept.index(1)}
    return Form((p, tuple(changed.items())), (), changed, tuple(whole))


NORMAL: dict[str, Callable[..., Form | None]] = {
    **{name: along_axes for name in (*REDUCTIONS, *POSITIONS, *RUNNING)},
    "dot_general": product,
    "iota": counting,
}


def normal_form(
    p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any
) -> Form | None:
    if any(is_extended(a.dtype) for a in avals):
        return None
    rule = NORMAL.get(p.name)
    if rule is None and elements.supports(p.name):
        rule = elementwise
    return rule(p, avals, params, frozen) if rule is not None else None


# ---------------------------------------------------------------- running one primitive

_runs: Final[Table[Any, Run]] = Table("single operations", CACHE_LIMIT, programs=True)


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run a primitive on concrete values."""
    if primitive.name == "pow" and type(args[1]) is not ArrayImpl:
        exponent = fixed_exponent(args[1])
        if exponent is not None and typeof(args[0]).dtype.kind != "c":
            args, params = args[:1], {"exponent": exponent}  # as `jit` would: see `passes.algebra`
    arrays = [a if type(a) is ArrayImpl else to_array(a) for a in args]
    try:
        key = (primitive, tuple([a.aval for a in arrays]), tuple(params.items()), config.exact)
        run = _runs.find(key)
    except TypeError:  # a parameter that cannot be hashed
        return prepare(primitive, [a.aval for a in arrays], params, None)(arrays)
    if run is None:
        run = prepare(primitive, key[1], params, key[2])
        if not holds_programs(params):
            _runs[key] = run
    for a in arrays:
        if a._extra is not None:  # placed on devices: the results follow
            return place_one(primitive, arrays, params, run(arrays))
    return run(arrays)


def holds_programs(params: dict[str, Any]) -> bool:
    """Programs in parameters are made anew by each call of a loop function: caching by them would
    only fill memory."""
    return any(True for _ in subjaxprs(params))


def prepare(p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], frozen: Any) -> Run:
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
    if holds_programs(params) and not p.effect:
        return of_program(p, avals, params)
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
    if frozen is not None and (p.name in COMPILED or p.name in sorting.NAMES):
        sized = program_of_any_size(p.name, (p, frozen), one_equation(p, params), avals)
        if sized is not None:
            return results(sized, p.multiple_results)
    if p.name in COMPILED:
        return of_program(p, avals, params)
    if p.name in EAGER:
        program = routine_program(p.name, params, avals, outs)
        if program is not None:
            return results(program, p.multiple_results)
    return lambda arrays: reference.evaluate(p, arrays, params)


def template_of(p: Primitive, form: Form) -> Template | None:
    """The kernel of a normal form."""
    return template(form.key, lambda: trace_to_jaxpr(one_equation(p, form.params), form.hints))


def small(avals: Sequence[ShapedArray]) -> bool:
    """Few enough elements that a plain copy loop is as good as any."""
    return all(a.size <= SMALL and a.ndim <= strided.MAX_RANK for a in avals)


def routine_program(
    name: str, params: dict[str, Any], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Program | None:
    b = ProgramBuilder(len(avals), [(a, nbytes(a)) for a in outs])
    ins = [b.input(i) for i in range(len(avals))]
    if not EAGER[name](b, name, params, ins, avals, [b.output(i) for i in range(len(outs))]):
        return None
    return b.build(release_gil=avals[0].size > SMALL or linalg.is_long(name, avals))


def one_equation(p: Primitive, params: dict[str, Any]) -> Callable[..., list[Any]]:
    def fun(*xs: Any) -> list[Any]:
        if "exponent" in params:
            return [p.bind(*xs, typeof(xs[0]).dtype.type(params["exponent"]))]
        out = p.bind(*xs, **params)
        return out if p.multiple_results else [out]

    return fun


def results(program: Program | SizedProgram, several: bool) -> Run:
    if several:
        return lambda arrays: run_program(program, arrays)
    return lambda arrays: run_program(program, arrays)[0]


def of_program(p: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Run:
    """Loops, branches, calls, products: compiled as `jit` would."""
    holder = next((v for v in params.values() if isinstance(v, ClosedJaxpr)), None)
    key = (
        p.name,
        tuple(avals),
        config.exact,
        tuple((k, v) for k, v in params.items() if not isinstance(v, ClosedJaxpr)),
    )
    cache = holder.cache if holder is not None and p.name == "jit" else {}
    executable = cache.get(key)
    if executable is None:
        executable = compile_program(
            trace_to_jaxpr(one_equation(p, params), avals), Options(p.name, config.exact)
        )
        cache[key] = executable
    return results(executable.program, p.multiple_results)

"""Looking at the stages of a jitted function: trace, lower, compile, and their texts.

f.trace(x)              the program: .jaxpr, .out_info
f.lower(x)              ready to compile: .as_text("stablehlo" | "hlo" | "jaxpr"), .cost_analysis()
f.lower(x).compile()    a callable with .as_text("jaxpr" | "loops" | "llvm" | "asm"),
.cost_analysis(), .memory_analysis()
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from calque.core import backends, pytrees
from calque.core.arrays import ArrayImpl, to_array
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.devices import Device
from calque.core.guards import guard
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices import aot_devices
from calque.transforms.devices.layouts import row_major
from calque.transforms.devices.open_results import as_chosen
from calque.transforms.devices.program_devices import is_abstract, of_read
from calque.transforms.devices.sharding import NamedSharding, Sharding, default_sharding
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.sharding_propagation import shardings_of_results, where_placed
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.engines import signatures
from calque.transforms.functions.composites import platform_here, platform_of_engine
from calque.transforms.functions.shapes import struct
from calque.transforms.jit.arguments import CallArguments
from calque.transforms.jit.compiler_options import check_options, flat_options
from calque.transforms.jit.function import function_of
from calque.transforms.jit.platforms import check_donation, checked_platforms
from calque.transforms.jit.traced import TracedFunction as Program
from calque.transforms.primitives.flow import structure_differences, type_text


@dataclass(frozen=True)
class ArgInfo:
    """What is known of an argument of a traced function.

    Args:
        donated: Whether its memory is given away.

    >>> info = jax.jit(jnp.sin).lower(1.0).args_info[0][0]
    >>> info.shape, info.dtype, info.donated
    ((), dtype('float32'), False)"""

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        return self._aval.dtype


class Constants(NamedTuple):
    """Captured arrays that a program takes as further arguments: none, they are part of it."""

    const_args: tuple[Any, ...] = ()


class Shown(NamedTuple):
    """What showing a program in another form needs besides the program: what its arguments are
    called, whether those that it does not read are shown, and the platforms that were asked for."""

    names: Sequence[str] = ()
    keep_unused: bool = False
    platforms: tuple[str, ...] = ()


class Stage:
    """What all stages know: the name, the program, the structures of arguments and results."""

    _no_kwargs = False  # arguments may be given by name

    def __init__(self, program: Program, shown: Shown, placements: Sequence[Sharding | None]):
        self._program, self._shown = program, shown
        self._placements = placements  # where the flat arguments were said to be

    @property
    def in_tree(self) -> pytrees.PyTreeDef:
        """Of what a compiled function is called with: the arguments that are not static."""
        args, kwargs = self._program.in_tree.children()
        statics = self._program.statics
        rest = [d for i, d in enumerate(args.children()) if i not in statics]
        return pytrees.treedef_tuple([pytrees.treedef_tuple(rest), kwargs])

    @property
    def out_tree(self) -> pytrees.PyTreeDef:
        return self._program.out_tree

    @property
    def in_avals(self) -> Any:
        return pytrees.unflatten(self.in_tree, self._program.closed.in_avals)

    @property
    def args_info(self) -> Any:
        """The arguments: their types, and whether they are donated."""
        donated = set(self._program.donated)
        infos = [ArgInfo(a, i in donated) for i, a in enumerate(self._program.closed.in_avals)]
        return pytrees.unflatten(self.in_tree, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which flat arguments are given away."""
        return self._program.donated

    @property
    def out_avals(self) -> Any:
        return pytrees.unflatten(self.out_tree, self._program.closed.out_avals)

    @property
    def _params(self) -> "Constants":
        return Constants()

    _lowering = _params

    @property
    def out_info(self) -> Any:
        """The results as shapes and dtypes."""
        return pytrees.unflatten(self.out_tree, list(map(struct, self._program.closed.out_avals)))

    @property
    def fun_name(self) -> str:
        return self._program.name


@guard
class Traced(Stage):
    """A function traced for given arguments: its program is `jaxpr`.

    The next stage is `lower()`.

    Args:
        program: The program.
        shown: What its arguments are called.
        placements: Where the arguments are.

    >>> jax.jit(jnp.sin).trace(1.0).jaxpr.eqns[0].primitive
    sin"""

    _again: Callable[[], "Traced"] | None = None  # traces once more, for other platforms

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._program.closed

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> "Lowered":
        """Gives the next stage.

        Args:
            lowering_platforms: The platforms that the program is for, such as ("cuda", "tpu"); None
                is the one that programs run on here. The function is traced again for others.

        Returns:
            A Lowered.

        >>> traced = jax.jit(lambda x: lax.platform_dependent(x, cpu=abs, tpu=jnp.sin)).trace(1.0)
        >>> "sine" in traced.lower(lowering_platforms=("tpu",)).as_text()
        True"""
        aot_devices.check_sizes(self._placements)
        if lowering_platforms is None:
            aot_devices.check_known(self._placements)
        if not lowering_platforms:
            return Lowered(self._program, self._shown, self._placements)
        wanted = checked_platforms(lowering_platforms, "lowering_platforms")
        program = self._for_platforms(wanted)
        check_donation(program.donated, wanted)
        return Lowered(program, self._shown._replace(platforms=wanted), self._placements)

    def _for_platforms(self, wanted: tuple[str, ...]) -> Program:
        """The program for these platforms, which choices between functions may depend on."""
        if self._again is None or wanted == (platform_here(),):
            return self._program
        with config.override("calque_exporting_for", wanted):
            return self._again()._program


@guard
class Lowered(Stage):
    """A traced function, ready to be compiled by `compile()`.

    Args:
        program: The program.
        shown: What its arguments are called.
        placements: Where the arguments are.

    >>> jax.jit(jnp.sin).lower(1.0).compile()(0.0)
    Array(0., dtype=float32, weak_type=True)"""

    def compile(
        self,
        compiler_options: Any = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> "Compiled":
        """Compiles the program.

        Args:
            compiler_options: Options by name, for XLA, besides those of `jit`; calque's own
                compiler has none, there they change nothing.
            device_assignment: The devices that it runs on. They must be given where the arguments
                are said to be on abstract meshes, and are those of the arguments otherwise.

        Returns:
            A Compiled: a callable for arguments of these types.

        >>> jax.jit(jnp.sin).lower(1.0).compile(device_assignment=jax.devices()[:1])(0.0)
        Array(0., dtype=float32, weak_type=True)"""
        if len(self._shown.platforms) > 1:
            raise ValueError(
                f"Lowered.compile: {self.fun_name} was lowered for {self._shown.platforms}, and the"
                " platform is an argument of its module. Name one in lowering_platforms, or use"
                " jax.export, whose programs learn the platform when they are called"
            )
        check_options(compiler_options)
        placements = aot_devices.assigned(self._placements, device_assignment)
        program = self._program.told(flat_options(compiler_options))
        return Compiled(program, self._shown, placements)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Gives the program as text.

        Args:
            dialect: "stablehlo", which None means, "hlo", which needs jaxlib, or "jaxpr".
            debug_info: Whether to say where each operation was made.

        Returns:
            A string.

        >>> "stablehlo.sine" in jax.jit(jnp.sin).lower(1.0).as_text()
        True"""
        if dialect == "jaxpr":
            return str(self._program.closed)
        form = _known_dialect("as_text", dialect)
        return backends.stablehlo_text.call(
            self._program, form, *self._told(), debug_info, self._placements
        )

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Gives the program as an object.

        Args:
            dialect: "stablehlo", which None means, or "hlo", for objects of jaxlib; or "jaxpr".

        Returns:
            The object."""
        if dialect == "jaxpr":
            return self._program.closed
        form = _known_dialect("compiler_ir", dialect)
        return backends.stablehlo_module.call(self._program, form, *self._told())

    def _told(self) -> Shown:
        """What showing it needs: the platform is that of the arguments where none was asked for, or
        that of this process."""
        devices = [s.device_order for s in self._placements if s is not None and not is_abstract(s)]
        here = platform_of_engine(devices[0][0].engine) if devices else platform_here()
        return self._shown._replace(platforms=self._shown.platforms or (here,))

    def cost_analysis(self) -> dict[str, float]:
        """Estimates the work.

        Returns:
            A dict with "flops", "bytes accessed" and, where there are any, "transcendentals"."""
        closed = self._program.closed
        found = {"flops": float(backends.flops(closed.eqns))}
        if count := backends.transcendentals(closed.eqns):
            found["transcendentals"] = float(count)
        return {**found, "bytes accessed": float(backends.traffic(closed))}


@guard
class Compiled(Stage):
    """A compiled function. It is called with arguments of the types that it was compiled for.

    Args:
        program: The program.
        shown: What its arguments are called.
        placements: Where the arguments are.

    >>> f = jax.jit(lambda x: x + 1).lower(1.0).compile()
    >>> f(2.0)
    Array(3., dtype=float32, weak_type=True)"""

    def __init__(self, program: Program, shown: Shown, placements: Sequence[Sharding | None]):
        super().__init__(program, shown, placements)
        self._executable = program.compiled(program.own_place(placements))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytrees.flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called"
                f" with: {self.fun_name} takes {self.in_tree}, got {tree}"
                + "".join(
                    f"; at {d.path or 'the arguments'} {d.left} was compiled, {d.right} is given:"
                    f" {d.why}"
                    for d in structure_differences(self.in_tree, tree)
                )
            )
        traced = next((x for x in leaves if isinstance(x, Tracer)), None)
        if traced is not None:
            raise TypeError(
                "Cannot apply JAX transformations to a function lowered and compiled for a"
                f" particular signature. Detected argument of Tracer type {type(traced)} in a call"
                f" of {self.fun_name}. Call the jitted function itself."
            )
        pairs = list(zip(map(typeof, leaves), self._program.closed.in_avals))
        wrong = [i for i, (a, b) in enumerate(pairs) if (a.shape, a.dtype) != (b.shape, b.dtype)]
        if wrong:
            names = self._shown.names or [f"number {i}" for i in range(len(leaves))]
            listed = "\n".join(
                f"Argument {names[i]!r} compiled with {type_text(pairs[i][1])} and called with"
                f" {type_text(pairs[i][0])}"
                for i in wrong
            )
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled."
                f" The mismatches are:\n{listed}\nThe function is {self.fun_name}."
            )
        self._check_places(leaves)
        given = [self._where_compiled(x, s) for x, s in zip(leaves, self._placements, strict=True)]
        return pytrees.unflatten(self.out_tree, self._program.run(given).out)

    def _check_places(self, leaves: Sequence[Any]) -> None:
        """ValueError where an argument was placed otherwise than it was compiled for."""
        placed_at = [where_placed(x) for x in leaves]
        if not any(placed_at):
            return
        avals = self._program.closed.in_avals
        told = zip(self._where_arguments(), self._placements, avals, strict=True)
        # of what was compiled for a deleted array of explicit axes its type alone is known
        wanted = [None if s is None and a.place is not None else there for there, s, a in told]
        known = zip(placed_at, wanted, avals, strict=True)
        names = self._shown.names or range(len(leaves))
        wrong = [
            f"Argument {name} with shape {a.str_short(short_dtypes=False)}:\n  Passed sharding:"
            f" {own}\n  Required sharding: {there}"
            for name, (own, there, a) in zip(names, known)
            if own is not None and there is not None and not _is_there(own, there, a.ndim)
        ]
        if wrong:
            listed = "\n".join(wrong)
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of"
                f" arguments passed to it. Here are the {len(wrong)} mismatches:\n{listed}\nBring"
                f" them there with device_put, or call the jitted function {self.fun_name} itself."
            )

    def _where_arguments(self) -> list[Sharding]:
        """Where the flat arguments are."""
        chosen = getattr(self._executable, "chosen_ins", None) or self._placements
        own = [s if c is None else c for c, s in zip(chosen, self._placements, strict=True)]
        return _all_somewhere([*own, *self._results()])[: len(own)]

    @staticmethod
    def _where_compiled(x: Any, where: Sharding | None) -> Any:
        """An argument that was placed nowhere is where the program was compiled for."""
        if where is None or where_placed(x) is not None:
            return x
        return placed(to_array(x), where)

    @property
    def input_shardings(self) -> tuple[Any, dict[str, Any]]:
        """Where the arguments are, as (positional, by name)."""
        args, kwargs = pytrees.unflatten(self.in_tree, self._where_arguments())
        return args, kwargs

    @property
    def output_shardings(self) -> Any:
        """Where the results are."""
        where = _all_somewhere([*self._placements, *self._results()])
        return pytrees.unflatten(self.out_tree, where[len(self._placements) :])

    def _results(self) -> list[Sharding | None]:
        closed, ins = self._program.closed, tuple(self._placements)
        found = shardings_of_results(closed, ins, self._program.name)
        return as_chosen(closed, of_read(closed, ins), found, self._executable)

    @property
    def out_info(self) -> Any:
        """The results as shapes and dtypes, and where they are."""
        infos, tree = pytrees.flatten(super().out_info)
        where = pytrees.leaves(self.output_shardings)
        return pytrees.unflatten(
            tree, [i.update(sharding=s) for i, s in zip(infos, where, strict=True)]
        )

    @property
    def input_formats(self) -> tuple[Any, dict[str, Any]]:
        """How the arguments lie in memory and where, as (positional, by name)."""
        return _formats(self.in_avals, self.input_shardings)

    @property
    def output_formats(self) -> Any:
        """How the results lie in memory and where."""
        return _formats(self.out_avals, self.output_shardings)

    def as_text(self, stage: str | None = None) -> str:
        """Gives the compiled program as text.

        Args:
            stage: "jaxpr" (as traced), "passes" (simplified), "loops" (the kernels), "llvm", "asm",
                or one of "graph", "homes", "stages", "nests", "steps" and "driver" between them.
                None means passes and loops.

        Returns:
            A string."""
        return self._executable.as_text(stage)

    def cost_analysis(self) -> dict[str, float]:
        """Estimates the work.

        Returns:
            A dict with "flops" and "bytes accessed"."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Tells the bytes of arguments, results and temporaries.

        Returns:
            An object with these as attributes."""
        return self._executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """Gives what runs the program.

        Returns:
            The executable of the backend; of a program of XLA that of jaxlib."""
        return getattr(self._executable, "runtime", self._executable)

    def serializable(self) -> ClosedJaxpr:
        """Gives the program without calls of Python rules, which have done their work.

        Returns:
            A ClosedJaxpr."""
        simplified: ClosedJaxpr = getattr(self._executable, "simplified", self._program.closed)
        return simplified


def _all_somewhere(known: Sequence[Sharding | None]) -> list[Sharding]:
    """Where values are that a program takes and gives: what was placed nowhere is on the devices of
    the others, on each of them."""
    mesh = next((s for s in known if isinstance(s, NamedSharding)), None)
    one = next((s for s in known if s is not None), None) or default_sharding()
    rest = one if mesh is None else NamedSharding(mesh.mesh, PartitionSpec())
    return [rest if s is None else s for s in known]


def _is_there(own: Sharding, there: Sharding, ndim: int) -> bool:
    """Whether arrays of this rank with a sharding are where the other one says, device by
    device."""
    return own.device_order == there.device_order and own.is_equivalent_to(there, ndim)


def devices_of(compiled: Compiled) -> list[Any]:
    """The devices that a compiled function runs on."""
    place = compiled._program.own_place(tuple(compiled._placements))
    return list(default_sharding().device_order if place is None else place.devices)


def _formats(avals: Any, shardings: Any) -> Any:
    return pytrees.tree_map(lambda a, s: row_major(a.ndim, s), avals, shardings)


def loaded(
    closed: ClosedJaxpr,
    in_tree: pytrees.PyTreeDef,
    out_tree: pytrees.PyTreeDef,
    name: str,
    donated: tuple[int, ...],
) -> Compiled:
    """A program that was written by another process, compiled for this one."""
    args, kwargs = pytrees.unflatten(in_tree, range(in_tree.num_leaves))
    program = Program(closed, [], pytrees.structure((list(args), kwargs)), out_tree, name)
    program.donated = donated
    return Compiled(program, Shown(), [None] * len(closed.in_avals))


def _known_dialect(method: str, dialect: str | None) -> str:
    if dialect not in (None, "stablehlo", "hlo"):
        raise ValueError(
            f"Lowered.{method}: the dialects are 'stablehlo', 'hlo' and 'jaxpr', got {dialect!r}"
        )
    return dialect or "stablehlo"


# ---------------------------------------------------------------- methods of jitted functions


def placements(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Sequence[Any]
) -> list[Sharding | None]:
    """Where the flat arguments are: as `in_shardings` say, or else as they themselves do."""
    own = [
        where_placed(x) if isinstance(x, ArrayImpl) else getattr(x, "sharding", None)
        for x in leaves
    ]
    options = function.options.shardings
    if options is None or options.ins is None:
        return own
    asked = options.of_arguments(*function.placeable(*function.split(args, kwargs)[:2]))
    return [o if a is None else a for a, o in zip(asked, own, strict=True)]


def _described(x: Any) -> Any:
    """A type among the arguments, as something of that type."""
    return struct(x) if isinstance(x, ShapedArray) else x


def trace(self: Any, *args: Any, **kwargs: Any) -> Traced:
    """Trace for these arguments, which may be ShapeDtypeStructs."""
    function = function_of(self)
    args, kwargs = pytrees.tree_map(_described, (args, kwargs))
    arguments = CallArguments(function, args, kwargs)
    program = function.trace_given(arguments)
    shown = Shown(function.argument_names(arguments), function.options.keep_unused)
    where = placements(function, args, kwargs, arguments.leaves)
    traced = Traced(program, shown, where)
    traced._again = functools.partial(trace, self, *args, **kwargs)
    return traced


def lower(self: Any, *args: Any, **kwargs: Any) -> Lowered:
    """Trace for these arguments, which may be ShapeDtypeStructs, and make ready to compile."""
    return trace(self, *args, **kwargs).lower()


def eval_shape(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the result for these arguments."""
    traced = trace(self, *args, **kwargs)
    asked = function_of(self).options.shardings
    if asked is None or asked.outs is None:
        return traced.out_info
    infos, tree = pytrees.flatten(traced.out_info)
    where = asked.of_results(traced.out_info)
    return pytrees.unflatten(
        tree,
        [i.update(sharding=s) if isinstance(s, Sharding) else i for i, s in zip(infos, where)],
    )


def cache_size(self: Any) -> int:
    """How many programs the function has."""
    return len(function_of(self).cache.programs)


def jitted_repr(self: Any) -> str:
    try:
        return f"<PjitFunction of {self.__wrapped__!r}>"
    except Exception:  # a repr of the user that fails, or no function
        return "<PjitFunction>"


def signature(self: Any) -> inspect.Signature:
    return signatures.signature(self.__wrapped__)

"""Functions that say how their work is split among devices.

XLA asks the rules when it compiles a program over several of its devices. What such a function
gives does not depend on how it is split: on one device, and on calque's own virtual devices, the
function itself runs."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from calque.core import pytrees
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE
from calque.core.errors import UnexpectedTracerError
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import Sharding
from calque.transforms.devices.sharding_propagation import device_checks
from calque.transforms.engines.trees import FlatFunction, arrays, name_of
from calque.transforms.primitives.custom_partitioning import custom_partitioning_p
from calque.transforms.primitives.sharding_rules import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    parsed_rule,
)


class custom_partitioning:
    """A function that says how its work is split among devices.

    The rules of `def_partition` are asked when XLA compiles a program over several of its devices.
    Everywhere else the function itself runs: by itself, on one device, on calque's own virtual
    devices (a warning says so), and inside `shard_map`.

    Args:
        fun: The function of arrays. Keyword arguments are resolved to positions.
        static_argnums: Positions of arguments that are no arrays, which rules are given first.

    Differs from JAX:
        Derivatives and vmap, which JAX refuses, are those of the function itself: the rules are not
        asked about them, nor in a `shard_map` that leaves axes to the compiler. Errors of rules
        come as they were raised. Without `def_partition` the function runs as it is.
        `jax_use_shardy_partitioner` off is heeded for programs of functions with
        `infer_sharding_from_operands` alone, which XLA's older partitioner compiles.

    >>> from calque.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def double(x):
    ...     return 2 * x
    >>> _ = double.def_partition(
    ...     lambda mesh, args, result: (mesh, double, result.sharding, (args[0].sharding,)),
    ...     sharding_rule="i -> i",
    ... )
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)"""

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_partitioning: the function must be callable, got {fun!r}")
        self.fun, self.static_argnums = fun, tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.decode_shardings = True
        self.sharding_rule: Any = None
        functools.update_wrapper(self, fun)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Says how the work is split. Each function is given the static arguments first.

        Args:
            partition: A function of a mesh, the arguments and the results, as ShapeDtypeStructs
                with the shardings that the compiler has found. It gives a mesh, a function of one
                device's parts, in which collectives speak of the axes of the mesh, and the
                shardings of the results and of the arguments that this function is for.
            infer_sharding_from_operands: A function that gives the sharding of the results. XLA's
                partitioner before Shardy asks it (`jax_use_shardy_partitioner` is off).
            propagate_user_sharding: A function of the sharding that is wanted, asked by it, too.
            decode_shardings: Whether these are given NamedShardings.
            sharding_rule: How dimensions belong together: a text such as "i k, k j -> i j", an
                SdyShardingRule, or a function of the mesh and of the types of operands and results
                that makes one of them. Without one the results are whole on every device.
            reduction_factors: Factors of a text that are summed over: where one is split, the
                function of the parts adds up among devices.
            need_replication_factors: Factors of a text that are not split.
            permutation_factors: Factors of a text whose parts move among devices.
            factor_sizes: The sizes of factors of a text that only stand in brackets.

        Returns:
            `partition`."""
        rules = (partition, infer_sharding_from_operands, propagate_user_sharding)
        for rule in rules[partition is None :]:
            if rule is not None and not callable(rule):
                raise TypeError(f"def_partition: a rule must be callable, got {rule!r}")
        said = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
            **factor_sizes,
        }
        self.sharding_rule = _checked_rule(sharding_rule, {k: v for k, v in said.items() if v})
        self.partition, self.decode_shardings = partition, decode_shardings
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(self.fun).bind(*args, **kwargs)
        given.apply_defaults()
        if given.kwargs:
            raise TypeError(
                f"custom_partitioning of {name_of(self.fun)}: keyword arguments could not be"
                f" resolved to positions: {', '.join(given.kwargs)} can be given by name alone"
            )
        fixed = self._static(given.args)
        if self.partition is None:
            return self.fun(*given.args)
        rules = self._rules()
        dynamic = tuple([x for i, x in enumerate(given.args) if i not in fixed])
        leaves, in_tree = pytrees.flatten(dynamic)
        values = arrays(leaves, "custom_partitioning", self.fun, dynamic, {})
        closed, out_tree = self._traced(values, in_tree, fixed)
        outs = custom_partitioning_p.bind(
            *values,
            call=closed,
            partition=self.partition,
            decode_shardings=self.decode_shardings,
            in_tree=in_tree,
            out_tree=out_tree,
            static_args=tuple(fixed.values()),
            **rules,
        )
        return pytrees.unflatten(out_tree, outs)

    def _traced(
        self, values: Sequence[Any], in_tree: pytrees.PyTreeDef, fixed: dict[int, Any]
    ) -> tuple[ClosedJaxpr, pytrees.PyTreeDef]:
        """The function as a program, and the structure of its results."""

        def call(*leaves: Any) -> Any:
            args = list(pytrees.unflatten(in_tree, leaves))
            for i in sorted(fixed):
                args.insert(i, fixed[i])
            return self.fun(*args)

        flat = FlatFunction(call, pytrees.flatten((tuple(values), {}))[1], "custom_partitioning")
        closed = trace_to_jaxpr(flat, [typeof(x) for x in values], name_of(self.fun))
        if any(isinstance(c, Tracer) for c in closed.consts):
            raise UnexpectedTracerError(
                f"custom_partitioning: {name_of(self.fun)} captures a traced value, of which its"
                " rules would not know how it is split: pass it as an argument"
            )
        return closed, flat.out_tree

    def _static(self, args: Sequence[Any]) -> dict[int, Any]:
        """The arguments that are no arrays, by position."""
        found = {}
        for i in self.static_argnums:
            if not -len(args) <= i < len(args):
                raise ValueError(
                    f"custom_partitioning of {name_of(self.fun)}: static_argnums has {i}, and the"
                    f" function has {len(args)} arguments"
                )
            found[i % len(args)] = args[i]
            if any(isinstance(x, Tracer) for x in pytrees.leaves(args[i])):
                raise UnexpectedTracerError(
                    f"custom_partitioning: argument {i} of {name_of(self.fun)} is static, but a"
                    " traced value was given"
                )
        return found

    def _rules(self) -> dict[str, Any]:
        """The rules of propagation that count: Shardy asks for the `sharding_rule`, XLA before it
        for the others."""
        callbacks = {
            "propagate_user_sharding": self.propagate_user_sharding,
            "infer_sharding_from_operands": self.infer_sharding_from_operands,
        }
        if not config.use_shardy_partitioner and self.infer_sharding_from_operands is not None:
            return {**callbacks, "sharding_rule": None}
        if self.sharding_rule is None and any(callbacks.values()):
            said = [name for name, rule in callbacks.items() if rule is not None]
            raise NotImplementedError(
                f"custom_partitioning of {name_of(self.fun)}: Shardy is used, but sharding"
                f" propagation callbacks ({', '.join(said)}) instead of sharding_rule are provided."
                " Need to provide sharding_rule to migrate to Shardy: def_partition(...,"
                " sharding_rule='i j -> i j')"
            )
        return {**dict.fromkeys(callbacks), "sharding_rule": self.sharding_rule}


def _warn_on_own_devices(params: dict[str, Any], here: Sharding) -> None:
    """Say that the rules are not asked, of a program over several devices of calque's own."""
    if here.num_devices == 1 or not isinstance(getattr(here, "mesh", None), Mesh):
        return
    if here.device_order[0].engine == DEFAULT_DEVICE.engine:
        warnings.warn(
            f"custom_partitioning: the rules beside {name_of(params['partition'])} are kept and not"
            " asked. On calque's own devices the function itself runs: what partition would compute"
            " is not computed. XLA's devices ask: CALQUE_PLATFORMS=xla_cpu",
            UserWarning,
            stacklevel=2,
        )


device_checks["custom_partitioning"] = _warn_on_own_devices


def _checked_rule(rule: Any, said: dict[str, Any]) -> Any:
    """A rule as it is kept."""
    if isinstance(rule, str):
        return parsed_rule(rule, said)
    if said:
        raise ValueError(
            f"def_partition: {', '.join(said)} belong to a sharding_rule that is a text"
        )
    if rule is not None and not callable(rule) and not isinstance(rule, SdyShardingRule):
        raise TypeError(
            "def_partition: sharding_rule must be a text, an SdyShardingRule or a function, got"
            f" {rule!r}"
        )
    return rule


__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

"""How primitives are compiled. `register_lowering(p, lower_fun(f))` works with every engine:
compiled code runs `f`. Rules that build MLIR are XLA's, for which jaxlib has to be there: `hlo` and
`ir` are its parts. The rest of JAX's module belongs to a compiler that calque does not have: it is
refused when called."""

from collections.abc import Callable
from typing import Any, Final

from calque.core.lazy import LazyModule
from calque.core.primitives import Primitive
from calque.machine.state import process
from calque.transforms.devices.mesh import Mesh
from calque.transforms.primitives.lowerings import (
    ArrayRule,
    LoweringParameters,
    LoweringRuleContext,
    ModuleContext,
    lowerings,
)

_FUNCTIONS = (
    "aval_to_ir_type", "aval_to_ir_types", "core_call_lowering", "dense_int_array",
    "dense_int_elements", "dtype_to_ir_type",
    "emit_python_callback", "flatten_ir_types", "flatten_ir_values", "i32_attr", "i64_attr",
    "ir_constant", "ir_constants",
    "jaxpr_subcomp", "lower_jaxpr_to_fun", "lower_jaxpr_to_module", "make_ir_context",
    "merge_mlir_modules", "module_to_bytecode",
    "module_to_string", "shape_tensor", "token_type", "unflatten_ir_values_like_types",
)  # fmt: skip
_CLASSES = (
    "ConstantHandler", "LoweringResult", "SPMDAxisContext",
    "ShapePolyLoweringState", "ShardingContext", "Token", "TokenSet", "Value",
)  # fmt: skip

DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3

constant_handlers: Final[dict[type, Callable[..., Any]]] = process.container(
    "constants of users", {}
)
ir_type_handlers: Final[dict[type, Callable[..., Any]]] = process.container("types of users", {})
ir_tree_registry: Final[dict[type, Any]] = process.container("trees of users", {})


class _Effects:
    """The effects that lowering knows, by type."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Let programs with effects of this type be compiled."""
        self._types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Whether this effect is of a known type."""
        return isinstance(effect, tuple(self._types))


lowerable_effects = _Effects()


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> ArrayRule:
    """A function of arrays as a lowering rule: compiled code runs it in the place of the primitive.

    >>> from calque.interpreters import mlir
    >>> twice_p = calque.extend.core.Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    >>> calque.jit(twice_p.bind)(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)"""
    return ArrayRule(fun, multiple_results)


def register_lowering(
    prim: Any,
    rule: Callable[..., Any] | None,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """How a primitive is compiled. A rule made by `lower_fun` is used by all engines. One that
    builds MLIR is XLA's: elsewhere compiled code calls the primitive's `impl`, or runs that one
    operation on XLA's CPU. None takes the rule back. `inline` and `cacheable` are accepted: a rule
    that builds MLIR is a function of its own, and asked each time."""
    if not isinstance(prim, Primitive):
        raise TypeError(f"register_lowering: a primitive is needed, got {prim!r}")
    if rule is None:
        _take_back(prim, platform)
        return
    if not callable(rule):
        raise TypeError(f"register_lowering: the rule of '{prim}' must be callable, got {rule!r}")
    if isinstance(rule, ArrayRule) and platform in (None, "cpu"):
        if platform == "cpu" or prim.program is None or (prim, "cpu") not in lowerings:
            prim.program = rule.program(prim.multiple_results)
    lowerings[prim, platform] = rule


def _take_back(prim: Any, platform: str | None) -> None:
    gone = lowerings.pop((prim, platform), None)
    if not isinstance(gone, ArrayRule) or platform not in (None, "cpu"):
        return
    others = (lowerings.get((prim, p)) for p in ("cpu", None))
    left = next((rule for rule in others if isinstance(rule, ArrayRule)), None)
    prim.program = None if left is None else left.program(prim.multiple_results)


def register_constant_handler(type_: type, handler_fun: Callable[..., Any]) -> None:
    """Kept for an engine that has MLIR."""
    constant_handlers[type_] = handler_fun


def _refusing(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"interpreters.mlir.{name} builds MLIR, which calque's compiler does not have; write"
            " the rule as a function of arrays: register_lowering(p, lower_fun(f)), or with the"
            " operations of interpreters.mlir.hlo"
        )

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = "Builds MLIR: refused when called."
    return refused


def _no_instances(name: str) -> type:
    return type(
        name,
        (),
        {"__doc__": "A part of MLIR modules: has no instances here.", "__init__": _refusing(name)},
    )


_jaxlib = LazyModule("calque.xla.jaxlib")
_foreign = LazyModule("calque.xla.foreign_functions")
_PARTS: Final = {"hlo": "stablehlo", "chlo": "chlo", "func_dialect": "func", "ir": "ir"}


def __getattr__(name: str) -> Any:
    if name in ("custom_call", "ir_attribute"):
        return getattr(_foreign, name)
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _jaxlib.mlir_part(_PARTS[name])


globals().update(
    {name: _refusing(name) for name in _FUNCTIONS},
    **{name: _no_instances(name) for name in _CLASSES},
)

__all__ = [
    "DEVICE_TO_DEVICE_TYPE", "RECV_FROM_HOST_TYPE", "SEND_TO_HOST_TYPE", "LoweringParameters",
    "LoweringRuleContext", "Mesh", "ModuleContext",
    "ir_tree_registry", "ir_type_handlers", "lower_fun",
    "lowerable_effects", "register_constant_handler", "register_lowering",
]  # fmt: skip

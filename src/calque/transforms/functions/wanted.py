"""Which cotangents are wanted of a backward pass, and where they go: the arguments and results of
`VJP.with_refs`.

>>> f_vjp = calque.vjp(lambda x, y: x * y, 2.0, 3.0)[1]
>>> total = calque.new_ref(jnp.float32(10.0))
>>> f_vjp.with_refs(total, calque.ad.DontWant())(1.0)
(GradRef(), DidntWant())
>>> total[...]
Array(13., dtype=float32)"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from calque.core import pytrees
from calque.core.primitives import Zero
from calque.transforms.engines.zeros import instantiate
from calque.transforms.primitives.ref_views import add
from calque.transforms.primitives.refs import Ref


@dataclass(frozen=True, slots=True)
class GradValue:
    """Asks for a cotangent as a value. So does anything else that is neither a Ref nor DontWant."""


@dataclass(frozen=True, slots=True)
class DontWant:
    """Asks for no cotangent."""


@dataclass(frozen=True, slots=True)
class GradRef:
    """Stands in the result for a cotangent that was added to a Ref."""


@dataclass(frozen=True, slots=True)
class DidntWant:
    """Stands in the result for a cotangent that was not wanted."""


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """Stands in `VJP.args_res` for an argument that the derivative does not read."""


# containers of nothing, so that they may leave jit
pytrees.register(GradRef, lambda x: ((), None), lambda data, children: GradRef())
pytrees.register(NotNeeded, lambda x: ((), None), lambda data, children: NotNeeded())
pytrees.register(DidntWant, lambda x: ((), None), lambda data, children: DidntWant())

ad = SimpleNamespace(
    DontWant=DontWant,
    DidntWant=DidntWant,
    GradRef=GradRef,
    GradValue=GradValue,
    NotNeeded=NotNeeded,
)


def delivered(wanted: Any, ct: Any) -> Any:
    """What a cotangent, which may be Zero, becomes in the result."""
    if isinstance(wanted, DontWant):
        return DidntWant()
    if not isinstance(wanted, Ref):
        return ct
    if type(ct) is not Zero:
        add(wanted, None, instantiate(ct))
    return GradRef()

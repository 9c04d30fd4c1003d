"""The primitive `composite`: a call with a name that other compilers may know."""

from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr
from calque.transforms.engines.slices import dead_code_rules, dependence_rules
from calque.transforms.primitives.call import CallPrimitive, closed_call_p


class _Composite(CallPrimitive):
    """What a transformation makes of a named operation is not that operation: it becomes an
    ordinary call."""

    __slots__ = ()

    def call(self, jaxpr: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        return closed_call_p.call(jaxpr, args, {})


composite_p = _Composite("composite")
dead_code_rules["composite"] = lambda e, used: e
dependence_rules["composite"] = dependence_rules["closed_call"]

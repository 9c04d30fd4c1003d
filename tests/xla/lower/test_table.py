"""Every primitive of the library has a form on XLA, and the text of each is what MLIR prints."""

import importlib
import pkgutil
import warnings
from collections.abc import Iterator

import pytest

import calque
from calque.core.config import config
from calque.core.primitives import REGISTRY
from calque.core.trace import trace_to_jaxpr, typeof
from calque.extend.own import Primitive as OwnPrimitive
from calque.xla.lower.module import Request, lower_module
from calque.xla.lower.rules import EQUATION_RULES, RULES
from calque.xla.lower.table import REFUSED
from tests.native import cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce
from tests.native.cases import TABLE, Case, program
from tests.xla.mlir import assert_canonical, needs_jaxlib

MODULES = (cases_dense, cases_elementwise, cases_layout, cases_programs, cases_reduce)


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def test_every_primitive_has_a_rule_or_is_on_a_list() -> None:
    for module in pkgutil.walk_packages(calque.__path__, "calque."):
        if "__main__" not in module.name and ".served" not in module.name:
            importlib.import_module(module.name)
    ours = {n for n, p in REGISTRY.items() if type(p) is not OwnPrimitive}
    ruled = (RULES.keys() | EQUATION_RULES.keys()) - REFUSED.keys()
    written = {n for n in ours if REGISTRY[n].program is not None}  # as functions of others
    assert ours - ruled - written - REFUSED.keys() == set()
    assert ours >= REFUSED.keys()


def six_bits(c: Case) -> bool:
    """Whether the case is about floats of six bits, which MLIR packs and calque does not."""
    dtypes = [c.params["new_dtype"], *(typeof(a).dtype for a in c.args)]
    return any(d.name.startswith("float6_") for d in dtypes)


@needs_jaxlib
@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_text_is_what_mlir_prints(name: str) -> None:
    cases = [c for c in TABLE[name]() if not (name == "bitcast_convert_type" and six_bits(c))]
    for c in cases[:: max(1, len(cases) // 8)]:
        fun, args = program([c])
        closed = trace_to_jaxpr(fun, [typeof(a) for a in args])
        assert_canonical(lower_module(closed, Request(name)).text())


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_why(name: str) -> None:
    assert len(REFUSED[name]) > 20

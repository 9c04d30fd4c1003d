"""Every primitive as it is written for platforms that are not here: MLIR reads each module and
checks its operations, and what it calls is there."""

import re
from collections.abc import Iterator

import pytest

from calque.core.config import config
from calque.core.trace import trace_to_jaxpr, typeof
from calque.xla.lower.module import Request, lower_module
from tests.native.cases import TABLE, program, programs
from tests.xla.lower.test_accelerator_linalg import REGISTERED
from tests.xla.mlir import needs_jaxlib, printed
from tests.xla.test_primitives import MODULES, plain

pytestmark = needs_jaxlib
CASES = 3  # of each primitive, spread over all
assert MODULES  # the table is filled
# routines of the maker and calls of Python; on TPUs what XLA itself knows by name
CALLED = {
    "cuda": {*REGISTERED, "xla_ffi_python_gpu_callback"},
    "tpu": {"Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr"},
}
# XLA has no call of Python on TPUs: what is computed on the host is refused there
ON_HOST_OF_TPU = "programs on tpu cannot call Python"


@pytest.fixture(autouse=True)
def wide_types() -> Iterator[None]:
    with config.override("calque_enable_x64", True):
        yield


@pytest.mark.parametrize("platform", CALLED)
@pytest.mark.parametrize("name", sorted(TABLE))
def test_modules_are_read(name: str, platform: str) -> None:
    cases = [c for c in TABLE[name]() if plain(c)]
    if not cases:
        pytest.skip("no case of common types")
    for part in programs(cases[:: max(1, len(cases) // CASES)][:CASES]):
        f, args = program(part)
        closed = trace_to_jaxpr(f, [typeof(a) for a in args])
        try:
            text = lower_module(closed, Request(platform=platform)).text()
        except NotImplementedError as e:
            assert platform == "tpu" and ON_HOST_OF_TPU in str(e), e
            continue
        printed(text)
        called = set(re.findall(r"custom_call @([\w.]+)\(", text))
        assert called <= CALLED[platform]

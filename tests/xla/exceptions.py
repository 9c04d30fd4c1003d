"""Tests that say what only calque's own engine does, by reason: left out where another engine is
chosen (CALQUE_PLATFORMS=xla_cpu)."""

from typing import Final

_MACHINE_CODE: Final = "counts what machine code serves: XLA's programs are called from Python"
_BITS: Final = "compares floats with eager results bit by bit: XLA's functions are its own"

EXCEPTIONS: Final = {
    "tests/transforms/functions/test_checks.py::test_programs_without_keys_are_served_by_machine_code": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_checks.py::test_eager_indices_are_checked_beside_programs": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_debug_nans.py::test_programs_look_at_themselves": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_key_reuse.py::test_keys_that_a_jitted_function_captures": _BITS,  # noqa: E501
}

"""Tests that say what only calque's own engine does, by reason: left out where another engine is
chosen (CALQUE_PLATFORMS=xla_cpu)."""

from typing import Final

_MACHINE_CODE: Final = "counts what machine code serves: XLA's programs are called from Python"
_FOUND: Final = "sizes that a program finds while it runs: XLA has fixed sizes only"
_STEPS: Final = "looks at the steps and kernels of calque's own programs"
_NAMES: Final = "names calque's own devices"
_DENORMAL: Final = "denormal numbers: XLA takes them for zero"
_BITS: Final = "compares floats with eager results bit by bit: XLA's functions are its own"

EXCEPTIONS: Final = {
    "tests/transforms/functions/test_checks.py::test_programs_without_keys_are_served_by_machine_code": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_checks.py::test_eager_indices_are_checked_beside_programs": _MACHINE_CODE,  # noqa: E501
    "tests/transforms/functions/test_nan_checks.py::test_programs_look_at_themselves": _MACHINE_CODE,  # noqa: E501
    "tests/numpy/calls/test_any_size.py::test_sizes_that_depend_on_values": _FOUND,
    "tests/numpy/calls/test_any_size.py::test_products_and_large_sums_have_one_program_for_all_sizes": _BITS,  # noqa: E501
    "tests/numpy/calls/test_operators.py::test_powers_give_the_bits_of_compiled_ones_in_any_order": _BITS,  # noqa: E501
    "tests/numpy/calls/test_operators.py::test_integer_arrays": _BITS,
    "tests/numpy/indexing/test_found_sizes.py": _FOUND,
    "tests/numpy/test_kernels.py": _STEPS,
    "tests/numpy/test_numpy_edges.py::test_as_numpy[spacing of float32]": _DENORMAL,
    "tests/numpy/test_numpy_edges.py::test_cuts_may_be_traced": _FOUND,
    "tests/numpy/test_segments.py::test_as_many_as_the_largest_number_says": _FOUND,
    "tests/transforms/devices/test_four_devices.py": _NAMES,
    "tests/transforms/devices/test_sharding.py::test_single_device_shardings": _NAMES,
    "tests/transforms/functions/test_key_reuse.py::test_keys_that_a_jitted_function_captures": _BITS,  # noqa: E501
}

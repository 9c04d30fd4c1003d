"""Routines and functions of LAPACK by name."""

import pytest

from calque.machine.driver.program import External
from calque.machine.routines.linalg import lapack
from calque.machine.routines.sort import rows
from calque.native import routines


def test_a_routine_is_found_again_by_its_name() -> None:
    made = routines.routine("sort", "calque_sort")
    assert type(made) is External and made == rows.calque_sort.address
    assert made.name == "sort calque_sort" and routines.by_name(made.name) == made


def test_a_function_of_lapack_is_found_again_by_its_name() -> None:
    made = routines.library_function("dgetrf")
    assert type(made) is External and made == lapack.function("dgetrf") > 0
    assert routines.by_name(made.name) == made


@pytest.mark.parametrize("name", ["lapack dgetrx", "kernels calque_sort", "k_0123"])
def test_what_is_not_there_has_no_address(name: str) -> None:
    assert routines.by_name(name) is None


def test_a_missing_function_is_zero() -> None:
    assert routines.library_function("xgetrf") == 0

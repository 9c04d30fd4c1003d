"""What checks find: errors as values of programs, their messages, and handing them on."""

import pytest

import calque
from calque import numpy as jnp
from calque.core import pytrees
from calque.experimental import checkify
from calque.experimental.failures import (
    Error,
    JaxRuntimeError,
    Outcome,
    Site,
    all_checks,
    check_error,
    float_checks,
    index_checks,
    init_error,
    user_checks,
)


def error_of(*flags):
    site = Site("{} is wrong", pytrees.structure(((0,), {})), "!")
    return Error([Outcome(site, jnp.asarray(f), (jnp.asarray(i),)) for i, f in enumerate(flags)])


def test_the_first_failure_is_told():
    assert init_error.get() is None and error_of(False, False).get() is None
    assert error_of(False, True, True).get() == "1 is wrong!"
    assert str(error_of(True)) == "Error(0 is wrong!)"


def test_errors_are_trees_that_leave_programs():
    error = calque.jit(lambda e: e)(error_of(False, True))
    assert isinstance(error, Error) and error.get() == "1 is wrong!"


def test_errors_are_raised_or_handed_on():
    init_error.throw()
    with pytest.raises(JaxRuntimeError, match="0 is wrong!"):
        error_of(True).throw()
    handed, _ = checkify.checkify(lambda: check_error(error_of(True)))()
    assert handed.get() == "0 is wrong!"
    with pytest.raises(ValueError, match="takes an Error as argument"):
        check_error("no error")


def test_kinds_of_checks():
    assert user_checks | float_checks | index_checks == all_checks and len(all_checks) == 4

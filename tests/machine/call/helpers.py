"""Programs, arrays and functions for the tests of the call path."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from calque.machine.call import functions as callpath
from calque.machine.call.functions import Jitted, add_entry, set_epoch
from calque.machine.code import llvm
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.objects.array_type import as_numpy, wrap_numpy

KERNELS = """
define void @callpath_add4(ptr %args, i64 %b, i64 %e) {
  %x = load ptr, ptr %args
  %yp = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %yp
  %op = getelementptr ptr, ptr %args, i64 2
  %o = load ptr, ptr %op
  %a = load <4 x float>, ptr %x, align 4
  %c = load <4 x float>, ptr %y, align 4
  %d = fadd <4 x float> %a, %c
  store <4 x float> %d, ptr %o, align 4
  ret void
}
define void @callpath_copy16(ptr %args, i64 %b, i64 %e) {
  %x = load ptr, ptr %args
  %op = getelementptr ptr, ptr %args, i64 1
  %o = load ptr, ptr %op
  %a = load i128, ptr %x, align 1
  store i128 %a, ptr %o, align 1
  ret void
}
"""
F32 = np.dtype(np.float32)
Pair = namedtuple("Pair", "first second")


class Aval:
    """Stands for a core aval; compared by identity."""


F4 = Aval()


@functools.cache
def kernel(name: str) -> int:
    return llvm.link_module(KERNELS, ["callpath_add4", "callpath_copy16"])[name]


@functools.cache
def add_program() -> Any:
    """Two inputs of four floats, their sum."""
    builder = ProgramBuilder(2, [(F4, 16)])
    builder.call(kernel("callpath_add4"), [builder.input(0), builder.input(1), builder.output(0)])
    return builder.build()


@functools.cache
def copy_program(count: int) -> Any:
    """Each output is a copy of an input's 16 bytes."""
    builder = ProgramBuilder(count, [(F4, 16)] * count)
    for i in range(count):
        builder.call(kernel("callpath_copy16"), [builder.input(i), builder.output(i)])
    return builder.build()


@functools.cache
def failing_program(error: type[BaseException]) -> Any:
    builder = ProgramBuilder(1, [(F4, 16), (F4, 16)])
    builder.fail(error, "on purpose")
    return builder.build()


def array(*values: float) -> Any:
    return wrap_numpy(F4, np.array(values or (1, 2, 3, 4), np.float32))


def values(x: Any) -> list[float]:
    return as_numpy(x, F32, (4,)).tolist()


def missing(args: Any, kwargs: Any) -> Any:
    return "miss", args, kwargs


def jitted(*entries: Any) -> Any:
    function = Jitted(missing)
    for entry in entries:
        add_entry(function, entry)
    return function


ARRAYS = [("array", F4, 0), ("array", F4, 1)]


@pytest.fixture(autouse=True)
def fixed_epoch() -> Iterator[None]:
    """Entries of the tests are made for epoch 7. A test module takes part by naming this."""
    before = callpath.epoch()
    set_epoch(7)
    yield
    set_epoch(before)

"""A module of Python that loads a library with ctypes and NumPy alone."""

from __future__ import annotations

from calque.native.libraries.interface import Interface, Value

_TEXT = '''"""The library {library} as a function of NumPy's arrays: written by calque, which it
does not need."""

import ctypes
import os
import threading

import numpy as np

SIZES = {sizes!r}
ARGUMENTS = (  # name, dtype, shape
{arguments})
RESULTS = (  # name, dtype, number of dimensions
{results})
_library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r}))
_task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_share = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_int64,
)
_library.{name}_message.restype = ctypes.c_char_p
_library.{name}_threads.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def _check(status):
    if status:
        raise RuntimeError(_library.{name}_message(ctypes.c_int32(status)).decode())


def _argument(value, name, dtype, shape, sizes):
    array = np.asarray(value)
    if array.dtype != dtype:
        if array.dtype.kind not in "biuf" or not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(f"{{name}} is of dtype {{array.dtype}}, not {{dtype}}")
        array = array.astype(dtype)
    if array.ndim != len(shape):
        raise ValueError(f"{{name}} has the shape {{array.shape}}, not {{shape}}")
    for found, wanted in zip(array.shape, shape):
        known = sizes.setdefault(wanted, found) if isinstance(wanted, str) else wanted
        if found != known:
            raise ValueError(f"{{name}}: shape {{array.shape}}, not {{shape}} with {{sizes}}")
    return np.require(array, requirements=("C", "A"))


def _call(values):
    sizes = {{}}
    arrays = [_argument(value, *known, sizes) for value, known in zip(values, ARGUMENTS)]
    numbers = [ctypes.c_int64(sizes[name]) for name in SIZES]
    results = []
    for k, (_, dtype, ndim) in enumerate(RESULTS):
        shape = (ctypes.c_int64 * max(ndim, 1))()
        _check(_library.{name}_shape(*numbers, ctypes.c_int32(k), shape))
        results.append(np.empty(tuple(shape[:ndim]), dtype))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *results)]
    _check(_library.{name}(*numbers, *pointers))
    return results


def {name}({parameters}):
    """{summary}"""
    return {returned}


@_share
def _divided(count, task, args, begin, end, grain):
    run, pieces = _task(task), min(count, (end - begin) // grain)
    whole = (end - begin) // grain
    edges = [begin + whole * k // pieces * grain for k in range(pieces)] + [end]
    parts = [(args, first, last) for first, last in zip(edges, edges[1:])]
    workers = [threading.Thread(target=run, args=part) for part in parts[1:]]
    for worker in workers:
        worker.start()
    run(*parts[0])
    for worker in workers:
        worker.join()


def set_threads(count):
    """From now on so many threads share the work on long loops."""
    if count < 2:
        _library.{name}_threads(None, None, 1)
    else:  # the library hands the number on, as what its host wants to be told
        _library.{name}_threads(ctypes.cast(_divided, ctypes.c_void_p), count, count)
'''


def loader_text(interface: Interface, library: str) -> str:
    names = [v.name for v in interface.arguments]
    called = f"_call(({''.join([f'{n}, ' for n in names])}))"
    one = len(interface.results) == 1
    return _TEXT.format(
        library=library,
        name=interface.name,
        sizes=interface.sizes,
        arguments="".join(map(_argument, interface.arguments)),
        results="".join(
            [f"    ({v.name!r}, {v.numpy!r}, {len(v.shape)}),\n" for v in interface.results]
        ),
        parameters=", ".join(names),
        summary=f"The results ({', '.join(v.name for v in interface.results)}) for these arrays.",
        returned=f"{called}[0]" if one else f"tuple({called})",
    )


def _argument(v: Value) -> str:
    return f"    ({v.name!r}, {v.numpy!r}, {v.shape!r}),\n"

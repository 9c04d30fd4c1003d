"""`export_library`: a function as a shared library, a header for C, and a module of Python that
loads it without calque."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core import pytrees, trace_state
from calque.core.backends import Options
from calque.core.config import config
from calque.core.dims import Dim
from calque.core.jaxprs import ClosedJaxpr, without_places
from calque.core.key_paths import keystr
from calque.core.pause import no_collection
from calque.core.tracebacks import boundary
from calque.machine.code import image, llvm, target
from calque.machine.code.shared_object import Contents, shared_object
from calque.machine.code.target import Target
from calque.native.emit import kernels
from calque.native.libraries import entry
from calque.native.libraries.header import header_text
from calque.native.libraries.interface import (
    NOT_FOR_SIZES,
    Interface,
    identifiers,
    is_name,
    values,
)
from calque.native.libraries.loader import loader_text
from calque.native.libraries.program import LibraryProgram
from calque.native.libraries.runtime import MATH, SYSTEM, as_image, runtime
from calque.native.libraries.sizes import FreeSizes, hints_beside, hints_for
from calque.transforms.devices.sharding_constraint import has_constraints
from calque.transforms.engines.specialiser import MOST_PROGRAMS
from calque.transforms.functions.shapes import NamedSizes, ShapeDtypeStruct
from calque.transforms.jit.arguments import CallArguments
from calque.transforms.jit.decorator import jit
from calque.transforms.jit.function import JittedFunction, function_of

_SUFFIX: Final = ".so"
MOST_TRIED: Final = 100  # traces of one function for sizes of all kinds


class ExportedLibrary(NamedTuple):
    """The files that `export_library` has written.

    Args:
        library: The shared library.
        header: Its header for C and C++.
        loader: A module of Python that loads it with ctypes and NumPy."""

    library: str
    header: str
    loader: str


class _Request(NamedTuple):
    """A function, the arguments that it is exported for, and the names of their free sizes."""

    function: JittedFunction
    args: tuple[Any, ...]
    names: tuple[str, ...]


class _Traced(NamedTuple):
    """A function traced for a library."""

    closed: ClosedJaxpr
    sizes: FreeSizes
    arguments: Sequence[str]
    results: Sequence[str]


class _Planned(NamedTuple):
    """One program of a library."""

    traced: _Traced
    program: LibraryProgram


@boundary
def export_library(
    fun: Callable[..., Any],
    args: Sequence[Any],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    cpu: str = "native",
) -> ExportedLibrary:
    """Writes a function as a shared library that C can call, without Python inside.

    Beside the library stand a header for C and a module of Python that loads it with ctypes and
    NumPy.

    Args:
        fun: The function, jitted or not. Arrays that it captures become part of the library.
        args: Its arguments: arrays, or ShapeDtypeStructs in place of them. A name in place of a
            size, as in ShapeDtypeStruct(("n", 3), "float32"), leaves it free: the library takes it
            as an argument. So does a size of `export.symbolic_shape` that is one name.
        path: Where, without a suffix: "build/model" makes build/libmodel.so, build/model.h and
            build/model.py.
        name: The name of the function in the library; None takes the last part of the path.
        cpu: The processor to make code for: "native" for this one, a level such as "x86-64-v3" for
            all that have AVX2, or a name that LLVM knows.

    Returns:
        An ExportedLibrary: the paths of the three files.

    Raises:
        NotImplementedError: The function calls Python or SciPy (callbacks, large factorisations),
            finds the size of a result while it runs, or this system is not Linux on x86-64.
        ValueError: The function needs a free size as a number, or the name or processor is not one.

    Differs from JAX:
        It is calque's own.

    >>> import tempfile, os
    >>> x = jax.ShapeDtypeStruct(("n",), "float32")
    >>> folder = tempfile.mkdtemp()
    >>> made = jax.export_library(lambda x: jnp.tanh(x).sum(), (x,), os.path.join(folder, "total"))
    >>> [os.path.basename(file) for file in made]
    ['libtotal.so', 'total.h', 'total.py']"""
    folder, stem = os.path.split(os.fspath(path))
    name = _name(stem if name is None else name, stem)
    if not image.on_this_system():
        raise NotImplementedError(
            "export_library writes libraries for Linux on x86-64, on such a machine"
        )
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"export_library: args must be a tuple of the arguments, (x,) for a single one, not"
            f" {args!r}"
        )
    wanted = None if cpu == "native" else target.named(cpu)
    with no_collection():
        programs = _programs(_request(fun, args), name, wanted)
        with target.making_for(wanted):
            interface, made = _made(programs, name, f"lib{stem}{_SUFFIX}")
    files = [f"lib{stem}{_SUFFIX}", f"{stem}.h", f"{stem}.py"]
    out = ExportedLibrary(*[os.path.join(folder, file) for file in files])
    _write(out.header, header_text(interface, files[0]).encode())
    _write(out.loader, loader_text(interface, files[0]).encode())
    _write(out.library, made)
    return out


def _name(name: str, stem: str) -> str:
    if stem.endswith((_SUFFIX, ".h", ".py")) or not stem:
        raise ValueError(
            "export_library: path is where the files go, without a suffix, such as 'build/model'"
        )
    if not is_name(name):
        raise ValueError(
            f"export_library: {name!r} is no name of a function in C and Python; give another one"
            " as name="
        )
    if _is_of_c(name):
        raise ValueError(
            f"export_library: C has a {name!r} of its own, which programs that use this"
            " library would lose; give another name as name="
        )
    return name


def _is_of_c(name: str) -> bool:
    """Whether C's library, or that of its mathematics, has something of this name."""
    libraries = map(ctypes.CDLL, ("libc.so.6", "libm.so.6"))
    return name == "main" or any(hasattr(library, name) for library in libraries)


# ---------------------------------------------------------------- tracing


def _request(fun: Callable[..., Any], args: Sequence[Any]) -> _Request:
    jitted = fun if hasattr(fun, "_function") else jit(fun)
    given = pytrees.tree_map(_with_names, tuple(args))
    named = [x for x in pytrees.leaves(given) if isinstance(x, NamedSizes)]
    names = dict.fromkeys([d for x in named for d in x.shape if isinstance(d, str)])
    for name in names:
        if not is_name(name):
            raise ValueError(
                f"export_library: C has no variable that is called {name}, a free size"
            )
    return _Request(function_of(jitted), given, tuple(names))


def _with_names(x: Any) -> Any:
    """A ShapeDtypeStruct with sizes of `export.symbolic_shape` as one with their names."""
    free = [d for d in x.shape if type(d) is Dim] if isinstance(x, ShapeDtypeStruct) else []
    for d in free:
        if not str(d).isidentifier():
            raise ValueError(
                f"export_library: the size {d} is computed of others, which C cannot give: give it"
                " a name of its own"
            )
    if not free:
        return x
    shape = [str(d) if type(d) is Dim else d for d in x.shape]
    return ShapeDtypeStruct(shape, x.dtype, weak_type=x.weak_type)


def _traced(request: _Request, hints: Sequence[int]) -> _Traced:
    """The function for these arguments, with symbols for the sizes that have names."""
    function, sizes = request.function, FreeSizes(request.names, hints)
    named = {}

    def with_numbers(x: Any) -> Any:
        if not isinstance(x, NamedSizes):
            return x
        shape = [sizes.numbers.get(d, d) for d in x.shape]
        made = ShapeDtypeStruct(shape, x.dtype, weak_type=x.weak_type)
        named[id(made)] = (x.shape, made)
        return made

    arguments = CallArguments(function, pytrees.tree_map(with_numbers, request.args), {})
    avals = [
        sizes.aval(aval, named[id(x)][0]) if id(x) in named else aval
        for x, aval in zip(arguments.leaves, arguments.avals)
    ]
    with trace_state.with_symbols(sizes.symbols):
        traced = function.trace_new(arguments, avals)
    if traced.hoisted:
        raise ValueError(f"export_library: {function.name} reads values of a function being traced")
    if has_constraints(traced.closed):
        raise NotImplementedError(
            f"export_library: {function.name} says where values are on several devices; a library"
            " runs on one processor"
        )
    names = identifiers([*function.argument_names(arguments)], sizes.names)
    results = identifiers(_result_names(traced.out_tree), [*sizes.names, *names])
    return _Traced(without_places(traced.closed), sizes, names, results)


def _check_free(function: JittedFunction, sizes: FreeSizes) -> None:
    """Refuse a size that the function needs as a number."""
    pinned = sizes.needed_as_number()
    if pinned is not None:
        raise ValueError(
            f"export_library: {function.name} needs the size {pinned[0]} as a number (it was traced"
            f" with {pinned[1]}): give numbers in place of the names in it"
        )


def _result_names(tree: pytrees.PyTreeDef) -> list[str]:
    """`out`, `out0` and so on, or with the keys of containers."""
    paths, _ = pytrees.flatten_with_path(pytrees.unflatten(tree, range(tree.num_leaves)))
    keys = [keystr(path, simple=True, separator="_") for path, _ in paths]
    return [f"out{key}" if key[:1].isdigit() or not key else f"out_{key}" for key in keys]


# ---------------------------------------------------------------- making


def _programs(request: _Request, name: str, wanted: Target | None) -> list[_Planned]:
    """The programs of a library: that for usual sizes, and others where a trace, or the order of a
    sum, is another one for other sizes."""
    rows = deque(hints_for(len(request.names)) if request.names else [()])
    out: list[_Planned] = []
    failed: Exception | None = None
    for _ in range(MOST_TRIED):
        if not rows or len(out) == MOST_PROGRAMS:
            break
        hints = rows.popleft()
        if any(p.traced.sizes.serves(hints) for p in out):
            continue
        try:
            made = _planned(request, hints, name, wanted, len(out))
        except Exception as error:  # not for such sizes: the status of a call with them says so
            if not out and isinstance(error, NotImplementedError):
                raise
            failed = failed or error
            continue
        if not out:
            _check_free(request.function, made.traced.sizes)
        elif _types(made) != _types(out[0]):
            continue
        out.append(made)
        rows.extend(hints_beside(made.traced.sizes))
    if not out and failed is not None:
        raise failed
    return out


def _planned(
    request: _Request, hints: Sequence[int], name: str, wanted: Target | None, number: int
) -> _Planned:
    traced = _traced(request, hints)
    symbols = traced.sizes.symbols
    symbols.lenient = True
    with target.making_for(wanted):
        program = LibraryProgram(traced.closed, Options(name, config.exact), symbols, number)
    symbols.open = False
    return _Planned(traced, program)


def _types(p: _Planned) -> list[tuple[int, Any]]:
    return [(a.ndim, a.dtype) for a in p.traced.closed.out_avals]


def _made(programs: Sequence[_Planned], name: str, soname: str) -> tuple[Interface, bytes]:
    """What the library looks like from outside, and its bytes."""
    traced = programs[0].traced
    sizes, closed = traced.sizes, traced.closed
    interface = Interface(
        name,
        sizes.names,
        values(traced.arguments, closed.in_avals, sizes),
        values(traced.results, closed.out_avals, sizes),
    )
    guards = " and ".join([guard for *_, guard in sizes.guards()])
    if guards:
        interface.messages[NOT_FOR_SIZES] += f", whose first one is for {guards}"
    needed = runtime([n for p in programs for n in p.program.routine_names()])
    pairs = [(p.program, p.traced.sizes) for p in programs]
    text = entry.module_text(interface, pairs, target.describe())
    target.read_assembly()
    images = [as_image(llvm.object_code(text)), *needed.images]
    called = [k for p in programs for k in p.program.kernels]
    if called:
        images.append(as_image(kernels.module_code(called)))
    tables = {t.name: t for p in programs for t in p.program.tables()}
    exports = [name + suffix for suffix in entry.SUFFIXES]
    contents = Contents(images, [*tables.values(), *needed.tables], exports, needed.values)
    return interface, shared_object(contents, soname, SYSTEM, MATH)


def _write(path: str, content: bytes) -> None:
    """A whole file in place of what was there, which a process may have loaded."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, (0o777 if path.endswith(_SUFFIX) else 0o666) & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

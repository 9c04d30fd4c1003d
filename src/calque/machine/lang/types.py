"""The nouns of the machine language: types, signatures, struct layouts, globals, functions and
intrinsics.

`emit` turns functions into LLVM IR, `unit` holds `Unit` and the user's view of all this.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from calque.machine.code import image
from calque.machine.records import record
from calque.machine.syntax import syntax_tree

if TYPE_CHECKING:
    from calque.machine.lang.unit import Unit


class LangError(Exception):
    """A function says something the machine language does not have."""


@record
class Type:
    """A machine type; calling one inside a function is a cast."""

    name: str
    ir: str
    size: int
    ctype: Any

    def __call__(self, value: Any) -> Any:
        raise LangError(
            f"{self.name}(...) is a cast: it means something inside machine functions only"
        )

    @property
    def is_int(self) -> bool:
        return self.ir[0] == "i"

    @property
    def is_float(self) -> bool:
        return self.ir in ("float", "double")

    def __repr__(self) -> str:
        return self.name


I1 = Type("i1", "i1", 1, ctypes.c_bool)
I8 = Type("i8", "i8", 1, ctypes.c_int8)
I16 = Type("i16", "i16", 2, ctypes.c_int16)
I32 = Type("i32", "i32", 4, ctypes.c_int32)
I64 = Type("i64", "i64", 8, ctypes.c_int64)
F32 = Type("f32", "float", 4, ctypes.c_float)
F64 = Type("f64", "double", 8, ctypes.c_double)
PTR = Type("ptr", "ptr", 8, ctypes.c_void_p)
TYPES: Final = {t.name: t for t in (I1, I8, I16, I32, I64, F32, F64, PTR)}


def as_type(value: object) -> Type | None:
    """The machine type an annotation stands for; None means no value."""
    if value is None or value == "None":
        return None
    if isinstance(value, Type):
        return value
    raise LangError(f"{value!r} is no machine type; there are {', '.join(TYPES)} and None")


@record
class Signature:
    """What a function takes and gives; `signature(ret, *args)`. Called in a function: `sig(pointer,
    *args)`."""

    ret: Type | None
    args: tuple[Type, ...]
    vararg: bool = False

    def __call__(self, pointer: Any, *args: Any) -> Any:
        if not isinstance(pointer, int):
            raise LangError("a signature is called with an address")
        return self.ctypes_type()(pointer)(*args)

    def ctypes_type(self) -> Any:
        """The ctypes function type that keeps the GIL and reports Python exceptions."""
        ret = None if self.ret is None else self.ret.ctype
        return ctypes.PYFUNCTYPE(ret, *(arg.ctype for arg in self.args))

    def describe(self) -> str:
        return repr(self)

    @property
    def ir_ret(self) -> str:
        return "void" if self.ret is None else self.ret.ir


def signature(ret: Any, *args: Any, vararg: bool = False) -> Signature:
    """The type of a function pointer."""
    types = tuple(as_type(arg) for arg in args)
    if None in types:
        raise LangError("an argument cannot be None")
    return Signature(as_type(ret), types, vararg)  # type: ignore[arg-type]


@record
class Extern:
    """A C function of the process, or at a given address."""

    name: str
    signature: Signature
    address: int | None = None

    def __call__(self, *args: Any) -> Any:
        return self.signature(self.resolve(), *args)

    def describe(self) -> str:
        return f"Extern {self.name} {self.signature}"

    def resolve(self) -> int:
        """The address, looked up in the interpreter first, then in the whole process."""
        if self.address is not None:
            return self.address
        found = image.process_address(self.name)
        if found is None:
            raise LangError(f"no C function named {self.name} in this process")
        return found


class Global:
    """Memory inside the compiled module. In a function its name is its address (`Var`) or its value
    (`Cell`)."""

    def __init__(self, unit: Unit, name: str, type_: Type, count: int = 1) -> None:
        self.unit = unit
        self.name = name
        self.type = type_
        self.count = count

    @property
    def address(self) -> int:
        return self.unit.address(self.name)

    def __int__(self) -> int:
        return self.address

    def __index__(self) -> int:
        return self.address

    def describe(self) -> str:
        """What of it enters the code (and so the cache key)."""
        return f"{type(self).__name__} {self.unit.name}.{self.name} {self.type} {self.count}"

    def read(self, index: int = 0) -> Any:
        """The current content, from Python."""
        return self._array()[index]

    def write(self, value: Any, index: int = 0) -> None:
        """Change the content, from Python."""
        self._array()[index] = value

    def _array(self) -> Any:
        return (self.type.ctype * self.count).from_address(self.address)


class Var(Global):
    """A zeroed global array; its name is its address."""


class Cell(Global):
    """A global word set once from Python when the unit is linked; its name is its value.

    This is how addresses of Python objects get into code without standing in the code."""

    def __init__(self, unit: Unit, name: str, type_: Type, value: int | Callable[[], int]) -> None:
        super().__init__(unit, name, type_)
        self.value = value

    def initialise(self, address: int) -> None:
        """Set the word of a unit that nobody else knows yet."""
        value = self.value() if callable(self.value) else self.value
        self.type.ctype.from_address(address).value = value


class Layout:
    """Named fields at byte offsets: `L(p).field` reads, `L(p).field = x` writes, `L.at(p).field` is
    the address."""

    def __init__(self, name: str, fields: dict[str, tuple[int, Type]], size: int) -> None:
        self.name = name
        self.fields = fields
        self.size = size

    def __call__(self, pointer: Any) -> Any:
        return LayoutView(self, pointer)

    def offset(self, field: str) -> int:
        return self.fields[field][0]

    def at(self, pointer: Any) -> Any:
        raise LangError("Layout.at(pointer).field means something inside machine functions only")

    def describe(self) -> str:
        return f"Layout {self.name} {self.size} {self.fields}"


class LayoutView:
    """A struct in memory seen from Python through a `Layout`."""

    __slots__ = ("_base", "_layout")

    def __init__(self, layout_: Layout, base: int) -> None:
        object.__setattr__(self, "_layout", layout_)
        object.__setattr__(self, "_base", base)

    def _cell(self, name: str) -> Any:
        offset, type_ = self._layout.fields[name]
        return type_.ctype.from_address(self._base + offset)

    def __getattr__(self, name: str) -> Any:
        return self._cell(name).value

    def __setattr__(self, name: str, value: Any) -> None:
        self._cell(name).value = value


def layout(name: str, *, at: dict[str, int] | None = None, **fields: Any) -> Layout:
    """A struct with C's alignment; `at` places some fields at known byte offsets."""
    placed: dict[str, tuple[int, Type]] = {}
    offset = 0
    for field, annotation in fields.items():
        type_ = as_type(annotation)
        if type_ is None:
            raise LangError(f"field {field} has no type")
        offset = (offset + type_.size - 1) // type_.size * type_.size
        if at and field in at:
            offset = at[field]
        placed[field] = (offset, type_)
        offset += type_.size
    return Layout(name, placed, (offset + 7) // 8 * 8)


@record
class Intrinsic:
    """A word of the language that looks like a function."""

    name: str

    def __call__(self, *args: Any) -> Any:
        raise LangError(f"{self.name} means something inside machine functions only")


class Function:
    """A function of the machine language. Called from Python it runs through ctypes (for tests and
    set-up). Outside names in it may have other `meanings` than in its module."""

    def __init__(
        self,
        unit: Unit,
        python: Callable[..., Any],
        exported: bool,
        name: str = "",
        meanings: Mapping[str, Any] | None = None,
    ) -> None:
        self.unit = unit
        self.python = python
        self.name = name or python.__name__
        self.exported = exported
        self.is_called = False  # never put in the place of its calls
        self.writer: Callable[[], str] | None = None  # of its body, in LLVM's words
        self.meanings: Mapping[str, Any] = {} if meanings is None else meanings
        self.__name__ = self.name
        self.__doc__ = python.__doc__
        # Those with other meanings are copies of what was right: it is read when asked for, since a
        # process that finds their code never does.
        self._read = self._read_signature() if meanings is None else None
        self._callable: Any = None

    @property
    def params(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return self._own_signature()[0]

    @property
    def signature(self) -> Signature:
        """What it takes and gives."""
        return self._own_signature()[1]

    def _own_signature(self) -> tuple[tuple[str, ...], Signature]:
        if self._read is None:
            self._read = self._read_signature()
        return self._read

    @property
    def address(self) -> int:
        return self.unit.address(self.name)

    def __call__(self, *args: Any) -> Any:
        if self._callable is None:
            self._callable = self.signature.ctypes_type()(self.address)
        return self._callable(*args)

    def __repr__(self) -> str:
        return f"<machine function {self.unit.name}.{self.name}>"

    def tree(self) -> tuple[ast.FunctionDef, str, int]:
        """Its syntax tree, file and the line its source starts at."""
        start, module = _source_tree(self.python)
        definition = module.body[0]
        if not isinstance(definition, ast.FunctionDef):
            raise LangError(f"{self.name} is not a plain function")
        return definition, self.python.__code__.co_filename, start

    def lookup(self, name: str) -> Any:
        """What a free name means: its own meanings first, then closure, then globals; KeyError when
        unknown."""
        if name in self.meanings:
            return self.meanings[name]
        code = self.python.__code__
        if name in code.co_freevars and self.python.__closure__:
            return self.python.__closure__[code.co_freevars.index(name)].cell_contents
        return self.python.__globals__[name]

    def describe(self) -> str:
        kind = "called" if self.is_called else "function" if self.exported else "helper"
        own = [f"{k}={v}" for k, v in self.meanings.items() if not isinstance(v, Function)]
        return " ".join(
            [kind, f"{self.unit.name}.{self.name}", f"{self.params} {self.signature}", *own]
        )

    def _read_signature(self) -> tuple[tuple[str, ...], Signature]:
        """Parameter names and types from the annotations, which may be strings."""
        python = self.python
        code = python.__code__
        names = code.co_varnames[: code.co_argcount]
        annotations = dict(python.__annotations__)
        where = f"{code.co_filename}:{code.co_firstlineno}: {self.name}"
        if (
            code.co_kwonlyargcount
            or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            or python.__defaults__
        ):
            raise LangError(f"{where}: only plain positional parameters without defaults")
        types = []
        for name in (*names, "return"):
            if name not in annotations:
                raise LangError(f"{where}: {name} needs a type annotation")
            try:
                types.append(as_type(self._meant(annotations[name])))
            except LangError as error:
                raise LangError(f"{where}: {name}: {error}") from None
        return names, Signature(types[-1], tuple(t for t in types[:-1] if t is not None))

    def _meant(self, note: Any) -> Any:
        """The type that an annotation names, or the annotation."""
        if not isinstance(note, str):
            return note
        if note in TYPES:
            return TYPES[note]
        found = self.meanings.get(note, self.python.__globals__.get(note))
        return found if isinstance(found, Type) else note


def _source_tree(python: Callable[..., Any]) -> tuple[int, ast.Module]:
    """The line where the source of a function starts, and its tree.

    Its bytecode knows its last line, which is found much faster than by `inspect`, which reads
    tokens up to it; where a bracket is closed after that line, or the code has no positions, it
    must."""
    code = python.__code__
    last = max((end for _, end, _, _ in code.co_positions() if end is not None), default=0)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 : last]
    if lines:
        try:
            return code.co_firstlineno, syntax_tree(textwrap.dedent("".join(lines)))
        except SyntaxError:
            pass
    lines, start = inspect.getsourcelines(python)
    return start, syntax_tree(textwrap.dedent("".join(lines)))

"""The reference of the interface: a page for each public module, written from the docstrings.

`python tools/reference.py DIRECTORY` writes the pages as Markdown; the site takes them from
`pages()` through `tools/site_pages.py`, so that they are never out of date.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import pathlib
import sys
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

from docstrings import escaped, inline, rendered, sections, summary
from printed_signatures import printed, type_name

# the modules under the headings that the list of modules has
GROUPS = {
    "Transformations and arrays": [
        "calque", "calque.typing", "calque.tree", "calque.tree_util", "calque.ref",
        "calque.dtypes", "calque.errors", "calque.ad_checkpoint", "calque.custom_derivatives",
        "calque.custom_batching", "calque.flatten_util",
    ],
    "Functions of arrays": [
        "calque.numpy", "calque.numpy.linalg", "calque.numpy.fft", "calque.lax",
        "calque.lax.linalg", "calque.random", "calque.nn", "calque.nn.initializers",
        "calque.image",
    ],
    "SciPy's functions": [
        "calque.scipy.cluster.vq", "calque.scipy.fft", "calque.scipy.integrate",
        "calque.scipy.interpolate", "calque.scipy.linalg", "calque.scipy.ndimage",
        "calque.scipy.optimize", "calque.scipy.signal", "calque.scipy.sparse.linalg",
        "calque.scipy.spatial.transform", "calque.scipy.special", "calque.scipy.stats",
    ],
    "Looking inside": [
        "calque.debug", "calque.profiler", "calque.monitoring", "calque.test_util",
        "calque.stages",
    ],
    "Devices, files, other libraries": [
        "calque.sharding", "calque.memory", "calque.distributed", "calque.export",
        "calque.dlpack", "calque.ffi",
    ],
    "Experimental": [
        "calque.experimental", "calque.experimental.buffer_callback",
        "calque.experimental.checkify", "calque.experimental.compute_on",
        "calque.experimental.control_deps", "calque.experimental.hijax",
        "calque.experimental.jet", "calque.experimental.layout",
        "calque.experimental.mesh_utils", "calque.experimental.multihost_utils",
        "calque.experimental.ode", "calque.experimental.pallas.ops.tpu.splash_attention",
        "calque.experimental.pjit", "calque.experimental.rnn",
        "calque.experimental.scheduling_groups", "calque.experimental.serialize_executable",
        "calque.experimental.shard_alike", "calque.experimental.sparse",
        "calque.experimental.sparse.linalg", "calque.experimental.topologies",
        "calque.experimental.xla_metadata",
    ],
    "For authors of libraries": [
        "calque.extend.core", "calque.extend.linear_util", "calque.interpreters.ad",
        "calque.interpreters.batching", "calque.interpreters.mlir",
        "calque.interpreters.partial_eval", "calque.interpreters.pxla", "calque.interpreters.xla",
        "calque.api_util", "calque.example_libraries.optimizers", "calque.example_libraries.stax",
    ],
}  # fmt: skip
MODULES = [name for names in GROUPS.values() for name in names]
DIFFERENCES = "differences.md"  # the page of what functions say about it
# what programs call a module
SHORT = {"jnp": "calque.numpy", "jax": "calque", "lax": "calque.lax", "calque": "calque"}


class Entry(NamedTuple):
    """A public name of a module."""

    name: str
    value: Any
    full: str
    home: str  # the full name under which it is explained


# ---------------------------------------------------------------- what is public


def names(module: str) -> Iterator[tuple[str, Any]]:
    """What a module offers: all that it lists, else all that it made."""
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None)
    for name in sorted(listed or vars(found), key=lambda n: (n.lower(), n)):
        value = getattr(found, name)
        if listed or (not name.startswith("_") and _made_by(module, value)):
            if type(value) is not types.ModuleType:
                yield name, value


def _made_by(module: str, value: Any) -> bool:
    return str(getattr(value, "__module__", "")).startswith(module)


def is_explained(value: Any) -> bool:
    """Whether something has an entry: functions and classes of calque's, and namespaces."""
    ours = str(getattr(value, "__module__", "")).startswith("calque")
    return (callable(value) and ours and not is_primitive(value)) or is_namespace(value)


def is_namespace(value: Any) -> bool:
    """Whether this holds functions, as distributions of `scipy.stats` do."""
    return isinstance(value, (types.ModuleType, types.SimpleNamespace))


def is_primitive(value: Any) -> bool:
    is_one = hasattr(value, "bind") and hasattr(value, "multiple_results")
    return is_one and not isinstance(value, type)


def entries() -> dict[str, list[Entry]]:
    """The names of each module. One that several modules offer is explained in the first."""
    homes: dict[int, str] = {}
    out: dict[str, list[Entry]] = {}
    for module in MODULES:
        rows = []
        for name, value in names(module):
            full = f"{module}.{name}"
            home = homes.setdefault(id(value), full) if is_explained(value) else full
            rows.append(Entry(name, value, full, home))
        out[module] = rows
    return out


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, without what Python itself gives."""
    for name, value in sorted(vars(cls).items()):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            yield name, value


def is_lent(f: Any) -> bool:
    """Whether a method is a public function of a module, which explains itself there."""
    return f.__qualname__ == f.__name__ and not f.__name__.startswith("_")


# ---------------------------------------------------------------- links


def page(module: str) -> str:
    return f"{module}.md"


class Links:
    """Where names lead."""

    def __init__(self, found: dict[str, list[Entry]]) -> None:
        self.targets: dict[str, tuple[str, str]] = {}  # full name -> module and anchor
        self.modules = set(found)
        for module, rows in found.items():
            for entry in rows:
                home = entry.home.rpartition(".")[0]
                if is_explained(entry.value) or home == module:
                    anchor = entry.home if is_explained(entry.value) else "other-names"
                    self.targets[entry.full] = home, anchor
                for name, _ in inner(entry) if entry.home == entry.full else ():
                    self.targets[f"{entry.full}.{name}"] = module, f"{entry.full}.{name}"

    def on(self, module: str, owner: str, own: set[str], elsewhere: bool = False) -> Any:
        """What finds the target of a name in a docstring of `owner`, but for its own names, on the
        page of the module or elsewhere."""

        def resolve(name: str) -> str | None:
            head, _, rest = name.partition(".")
            if name in own or head in own:
                return None
            spelled = [f"{owner}.{name}", f"{module}.{name}", f"calque.{name}"]
            if head in SHORT:
                spelled.insert(0, SHORT[head] + (f".{rest}" if rest else ""))
            short = module.rpartition(".")[2]
            if head == short and rest:
                spelled.append(f"{module}.{rest}")
            for full in spelled:
                if full in self.targets and full != owner:
                    at, anchor = self.targets[full]
                    near = at == module and not elsewhere
                    return f"#{anchor}" if near else f"{page(at)}#{anchor}"
                if full in self.modules and full != module and "." in full:
                    return page(full)
            return None

        return resolve


def inner(entry: Entry) -> Iterator[tuple[str, Any]]:
    """What has an anchor of its own within an entry."""
    value = entry.value
    if is_namespace(value):
        yield from ((n, f) for n, f in sorted(vars(value).items()) if inspect.isfunction(f))
    elif isinstance(value, type) and not issubclass(value, BaseException):
        yield from ((n, f) for n, f in members(value) if has_entry(f))


def has_entry(member: Any) -> bool:
    """Whether a member of a class has an entry rather than a row: methods of the class itself, and
    properties with examples."""
    if isinstance(member, property):
        return ">>>" in (member.__doc__ or "")
    return not is_lent(member)


def own_names(value: Any) -> set[str]:
    """The parameters, which are no links."""
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return set()


# ---------------------------------------------------------------- pages


def pages() -> dict[str, str]:
    """The text of each page by its name."""
    found = entries()
    links = Links(found)
    out = {page(module): module_page(module, found[module], links) for module in MODULES}
    return {"index.md": index(), **out, DIFFERENCES: differences(found, links)}


def index() -> str:
    out = [
        "# API reference",
        "Every public name, with its arguments, what it returns and an example that runs as a test."
        " The search finds them by their names. Modules have the names of JAX's; what differs from"
        " NumPy, SciPy or JAX stands with the function.",
    ]
    for group, modules in GROUPS.items():
        table = "| module | what it is |\n|---|---|"
        for module in modules:
            doc = importlib.import_module(module).__doc__ or ""
            said = inline(without_own_name(summary(doc), module), lambda _: None)
            shown = module.removeprefix("calque.")
            table += f"\n| [`{shown}`]({page(module)}) | {said} |"
        out += [f"## {group}", f'<div class="names" markdown>\n\n{table}\n\n</div>']
    return "\n\n".join(out) + "\n"


def differences(found: dict[str, list[Entry]], links: Links) -> str:
    """What functions and classes say about how they differ, in one place."""
    out = [
        "# Differences by function",
        "What differs from JAX, NumPy or SciPy, as the functions say it themselves. Functions that"
        " are not listed do what their models do; arguments that must keep their default say so"
        " in their own entries.",
    ]
    for peer in ("JAX", "NumPy", "SciPy"):
        out += [f"## From {peer}"]
        for module in MODULES:
            rows = []
            for e in found[module]:
                if e.home == e.full and is_explained(e.value):
                    resolve = links.on(module, e.full, own_names(e.value), elsewhere=True)
                    for heading, lines in sections(doc_of(e.value)):
                        if heading == f"Differs from {peer}":
                            said = inline(" ".join(" ".join(lines).split()), resolve)
                            rows.append(f"[`{e.full}`]({page(module)}#{e.full})\n:   {said}")
            out += rows
    return "\n\n".join(out) + "\n"


def without_own_name(text: str, module: str) -> str:
    text = text.removeprefix(f"{module}: ")
    return text[:1].upper() + text[1:] if module != "calque" else text


def module_page(module: str, rows: list[Entry], links: Links) -> str:
    doc = without_own_name(importlib.import_module(module).__doc__ or "", module)
    explained = [e for e in rows if is_explained(e.value)]
    out = [f"# {module}", rendered(doc, links.on(module, module, set()))]
    if explained:
        table = (
            '<div class="names" markdown data-search-exclude>\n\n| name | what it does |\n|---|---|'
        )
        for e in explained:
            table += f"\n| {link(e, module)} | {described(e, module, links)} |"
        out.append(table + "\n\n</div>")
    out += [entry_text(e, module, links) for e in explained if e.home == e.full]
    out += [others(module, [e for e in rows if not is_explained(e.value)])]
    return "\n\n".join(part for part in out if part) + "\n"


def link(e: Entry, module: str) -> str:
    home = e.home.rpartition(".")[0]
    return f"[`{e.name}`]({'' if home == module else page(home)}#{e.home})"


def described(e: Entry, module: str, links: Links) -> str:
    if e.home != e.full:
        return f"the same as [`{e.home}`]({page(e.home.rpartition('.')[0])}#{e.home})"
    said = summary(doc_of(e.value))
    return inline(said, links.on(module, e.full, own_names(e.value)))


def doc_of(value: Any) -> str:
    """The docstring of something itself, not of its type."""
    doc = getattr(value, "__doc__", None) or ""
    return "" if doc == type(value).__doc__ and not isinstance(value, type) else str(doc)


def entry_text(e: Entry, module: str, links: Links) -> str:
    """The entry of a function, class or namespace, with what is in it."""
    out = [f"## {escaped(e.name)} {{ #{e.full} }}"]
    if not is_namespace(e.value):
        out.append(signature(e.name, e.value))
    out.append(rendered(doc_of(e.value), links.on(module, e.full, own_names(e.value))))
    if isinstance(e.value, type):
        out += [attributes(e, module, links), choices(e.value)]
    for name, f in inner(e):
        full = f"{e.full}.{name}"
        out.append(f"### {escaped(f'{e.name}.{name}')} {{ #{full} }}")
        out.append("" if isinstance(f, property) else signature(name, f))
        out.append(rendered(doc_of(f), links.on(module, e.full, own_names(f))))
    return "\n\n".join(part for part in out if part)


def signature(name: str, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, (BaseException, enum.Enum)):
        return ""
    text = printed(name, value)
    return f"```python\n{text}\n```" if text else ""


def attributes(e: Entry, module: str, links: Links) -> str:
    """The properties of a class, and its methods that are functions of a module."""
    rows = []
    for name, value in members(e.value):
        resolve = links.on(module, e.full, set())
        if has_entry(value):
            continue
        if isinstance(value, property):
            rows.append(f"| `{name}` | {inline(summary(value.__doc__ or ''), resolve)} |")
        else:
            target = resolve(f"jnp.{value.__name__}")
            shown = f"[`jnp.{value.__name__}`]({target})" if target else f"`{value.__name__}`"
            rows.append(f"| `{name}()` | {shown} of the array |")
    return "\n".join(["| attribute | what it is |", "|---|---|", *rows]) if rows else ""


def choices(cls: type) -> str:
    """The members of an enumeration."""
    if not issubclass(cls, enum.Enum):
        return ""
    return "Members: " + ", ".join(f"`{m.name}`" for m in cls) + "."


def others(module: str, rows: list[Entry]) -> str:
    """Values, names of other packages, and primitives."""
    primitives = [f"`{e.name}`" for e in rows if is_primitive(e.value)]
    out = []
    table = [f"| `{e.name}` | {value_of(e.value)} |" for e in rows if not is_primitive(e.value)]
    if table:
        out.append("\n".join(["| name | value |", "|---|---|", *table]))
    if primitives:
        out.append(f"Primitives, for rules and programs: {', '.join(primitives)}.")
    return "\n\n".join(["## Other names { #other-names }", *out]) if out else ""


def value_of(value: Any) -> str:
    """What a name stands for, in a cell of a table."""
    if isinstance(value, (int, float, type(None))):
        return f"`{value!r}`"
    if isinstance(value, (set, frozenset)):
        return "the set of " + (", ".join(sorted(f"`{v.__name__}`" for v in value)) or "nothing")
    if isinstance(value, functools.partial):
        return f"`{value.func.__name__}` with some arguments given"
    if isinstance(value, tuple):
        return "a tuple of " + ", ".join(sorted({f"`{type(v).__name__}`" for v in value}))
    if isinstance(value, typing.TypeVar):
        return "a type variable"
    if typing.get_origin(value) is not None:
        return f"`{type_name(value)}`"
    maker = str(getattr(value, "__module__", "") or "").partition(".")[0]
    if maker not in ("", "calque"):
        return f"that of `{maker}`"
    said = summary(doc_of(value) or (type(value).__doc__ if maker == "calque" else ""))
    return inline(said, lambda _: None) or f"of type `{type(value).__name__}`"


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()

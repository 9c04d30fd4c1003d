"""Docstrings as Markdown: what the pages of the reference are made of.

A docstring is sentences, then sections (`Args:`, `Returns:`, `Differs from NumPy:`, ...) with
indented bodies, then examples. Backticks hold names; everything else is plain text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

# What a name in backticks is a link to; None where it is none.
Resolve = Callable[[str], str | None]

SECTIONS = {
    "Args": "Arguments",
    "Returns": "Returns",
    "Yields": "Yields",
    "Raises": "Raises",
    "Differs from NumPy": "Differs from NumPy",
    "Differs from SciPy": "Differs from SciPy",
    "Differs from JAX": "Differs from JAX",
}
NOTES = {name for name in SECTIONS if name.startswith("Differs")}
LISTS = {"Args", "Raises"}

_HEADING = re.compile(r"^([A-Z]\w*(?: \w+)*):$")
_NAMED = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*):(?: +|$)(.*)$")
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_SPECIAL = re.compile(r"([\\*_\[\]{}#|~^])")
_CALLED = re.compile(r"^([A-Za-z_][\w.]*)(\(.*\))?$", re.DOTALL)


class Section(NamedTuple):
    """A part of a docstring with its heading; the first has none."""

    heading: str
    lines: list[str]


def sections(doc: str) -> list[Section]:
    """The parts of a docstring in their order. A body ends where the indentation does."""
    found = [Section("", [])]
    for line in inspect.cleandoc(doc).splitlines():
        match = _HEADING.match(line)
        if match and match[1] in SECTIONS:
            found.append(Section(match[1], []))
        elif found[-1].heading and line and not line.startswith(" "):
            found.append(Section("", [line]))
        else:
            found[-1].lines.append(line)
    return found


def summary(doc: str | None) -> str:
    """The first sentence, on one line."""
    first = inspect.cleandoc(doc or "").split("\n\n", 1)[0]
    text = " ".join(first.split())
    sentence = re.match(r"((?:`[^`]*`|[^`])*?\.)(?: (?=[A-Z`(])|$)", text)
    return sentence[1] if sentence else text


# ---------------------------------------------------------------- text


def escaped(text: str) -> str:
    """Plain text such that Markdown reads it as plain text."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str, resolve: Resolve) -> str:
    """What stands in backticks: code, and a link where it is a name or a call of one."""
    called = _CALLED.match(text)
    target = resolve(called[1]) if called else None
    fence = "``" if "`" in text else "`"
    shown = f"{fence}{text}{fence}"
    return f"[{shown}]({target})" if target else shown


def inline(text: str, resolve: Resolve) -> str:
    """A paragraph as Markdown."""
    out, at = "", 0
    for match in _CODE.finditer(text):
        out += escaped(text[at : match.start()]) + code(" ".join(match[2].split()), resolve)
        at = match.end()
    out += escaped(text[at:])
    # a number or sign that begins a line would begin a list
    return re.sub(r"^(\d+)([.)]) ", r"\1\\\2 ", re.sub(r"^([-+]) ", r"\\\1 ", out))


# ---------------------------------------------------------------- blocks


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Lines between empty ones. An example, with what it prints, is a paragraph."""
    block: list[str] = []
    for line in [*lines, ""]:
        starts_example = line.startswith(">>>") and block and not block[0].startswith(">>>")
        if (not line.strip() or starts_example) and block:
            yield block
            block = []
        if line.strip():
            block.append(line)


def blocks(lines: list[str], resolve: Resolve) -> str:
    """Paragraphs and examples; examples that follow each other are one."""
    out: list[str] = []
    for block in paragraphs(lines):
        example = block[0].startswith(">>>")
        if example and out and out[-1].startswith("```"):
            out[-1] = out[-1].removesuffix("\n```") + "\n\n" + "\n".join(block) + "\n```"
        elif example:
            out.append("```pycon\n" + "\n".join(block) + "\n```")
        elif all(line.startswith("    ") for line in block):
            out.append("```text\n" + "\n".join(line[4:] for line in block) + "\n```")
        else:
            out.append(inline(" ".join(line.strip() for line in block), resolve))
    return "\n\n".join(out)


def named(lines: list[str], resolve: Resolve) -> str:
    """A definition list out of lines `name: text`, with what is indented below them."""
    out: list[tuple[str, list[str]]] = []
    for line in lines:
        match = _NAMED.match(line)
        if match:
            out.append((match[1], [match[2]]))
        elif out:
            out[-1][1].append(line.strip())
        elif line.strip():
            raise ValueError(f"no name before {line!r}")
    rows = []
    for names, text in out:
        term = ", ".join(f"`{name}`" for name in names.split(", "))
        rows.append(f"{term}\n:   {inline(' '.join(' '.join(text).split()), resolve)}")
    return "\n\n".join(rows)


def indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def rendered(doc: str, resolve: Resolve) -> str:
    """A docstring as Markdown. Its sections come before its examples, as they stand."""
    out = []
    for heading, lines in sections(doc):
        body = inspect.cleandoc("\n".join(lines)).splitlines() if heading else lines
        if heading in NOTES:
            out.append(f'!!! note "{heading}"\n\n{indented(blocks(body, resolve))}')
        elif heading:
            text = named(body, resolve) if heading in LISTS else blocks(body, resolve)
            out.append(f"**{SECTIONS[heading]}**\n\n{text}")
        else:
            out.append(blocks(body, resolve))
    return "\n\n".join(part for part in out if part.strip())

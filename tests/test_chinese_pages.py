"""Each page in Chinese says what its English page says: the same headings, code, tables, names and
links; its examples run, and its words are those of the list of terms."""

import ast
import doctest
import os
import pathlib
import re

import pytest

from tests.test_documentation import OPTIONS, anchors
from tests.test_help import names_in_examples

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
CHINESE = DOCS / "zh"
TERMS = CHINESE / "contributing.md"  # the one page without an English one
PAGES = sorted(p.relative_to(CHINESE).as_posix() for p in CHINESE.rglob("*.md") if p != TERMS)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s*(?<!\S)#.*$", re.MULTILINE)


def read(page: pathlib.Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(text: str) -> str:
    return FENCE.sub("", text)


def without_docstrings(source: str) -> str:
    """A program as what Python makes of it: comments and docstrings are for readers alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.dump(tree)


def program(kind: str, text: str) -> list[object]:
    """What runs of a block of code, in a form that two pages can be compared by."""
    if ">>>" in text:
        examples = doctest.DocTestParser().get_examples(text)
        return [(without_docstrings(e.source), e.want, e.options) for e in examples]
    if kind == "python":
        return [without_docstrings(text)]
    if kind == "sh":
        return [line.rstrip() for line in COMMENT.sub("", text).splitlines()]
    return [text]


def programs(text: str) -> list[tuple[str, list[object]]]:
    return [(kind, program(kind, block)) for kind, block in FENCE.findall(text)]


def levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def rows(text: str) -> list[int]:
    """How many columns each row of each table has."""
    return [line.count(" |") for line in prose(text).splitlines() if line.startswith("|")]


def names(text: str) -> set[str]:
    return {" ".join(name.split()) for name in re.findall(r"`([^`]+)`", prose(text))}


def links(page: pathlib.Path) -> list[tuple[str, str]]:
    """Where a page's links lead: the path, and the name of the heading."""
    return re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", prose(read(page)))


def test_every_page_is_there_in_both_languages() -> None:
    english = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    assert set(PAGES) <= english


@pytest.mark.parametrize("page", PAGES)
def test_it_has_the_same_headings_and_tables(page: str) -> None:
    english, chinese = read(DOCS / page), read(CHINESE / page)
    assert levels(chinese) == levels(english)
    assert rows(chinese) == rows(english)


@pytest.mark.parametrize("page", PAGES)
def test_it_has_the_same_code(page: str) -> None:
    english, chinese = programs(read(DOCS / page)), programs(read(CHINESE / page))
    for number, (theirs, ours) in enumerate(zip(english, chinese), 1):
        assert ours == theirs, f"block {number} of {page} differs from the English page's"
    assert len(chinese) == len(english)


@pytest.mark.parametrize("page", PAGES)
def test_it_names_the_same_things(page: str) -> None:
    english, chinese = names(read(DOCS / page)), names(read(CHINESE / page))
    assert sorted(english - chinese) == [] and sorted(chinese - english) == []


@pytest.mark.parametrize("page", PAGES)
def test_its_links_are_those_of_the_english_page(page: str) -> None:
    english, chinese = links(DOCS / page), links(CHINESE / page)
    assert sorted(path for path, _ in chinese) == sorted(path for path, _ in english)
    assert len([a for _, a in chinese if a]) == len([a for _, a in english if a])
    for path, anchor in chinese:
        if not path.startswith("http"):
            target = CHINESE / page if not path else (CHINESE / page).parent / path
            same = DOCS / os.path.relpath(target, CHINESE)
            assert target.exists() or same.exists(), path
            if anchor and target.exists():
                assert anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_its_examples_run(page: str) -> None:
    failures, count = doctest.testfile(
        str(CHINESE / page),
        module_relative=False,
        optionflags=OPTIONS,
        globs=names_in_examples("calque.") if page.startswith("guide/") else None,
        encoding="utf-8",
    )
    assert bool(count) == (">>>" in read(CHINESE / page)) and not failures


def variants() -> list[tuple[str, str]]:
    """Each word that the list of terms sets aside, with the one to use."""
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", read(TERMS), re.MULTILINE)
    return [
        (other, use)
        for _, use, others in table[1:]
        for other in others.strip().split("、")
        if other
    ]


@pytest.mark.parametrize("page", PAGES)
def test_one_word_stands_for_one_thing(page: str) -> None:
    text = prose(read(CHINESE / page))
    assert [(other, use) for other, use in variants() if other in text] == []


def test_the_list_of_terms_sets_words_aside() -> None:
    assert ("跟踪", "追踪") in variants()

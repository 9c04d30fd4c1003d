"""Each page in Chinese says what its English page says: the same headings, code, tables, names,
numbers and links; its examples run, and its words are those of the list of terms."""

import ast
import doctest
import pathlib
import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.test_documentation import OPTIONS, anchors

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CHINESE = DOCS / "zh"
TERMS = CHINESE / "contributing.md"  # the one page without an English one
PAGES = {
    "README.md": ROOT / "README.zh.md",
    **{p.relative_to(ROOT).as_posix(): CHINESE / p.relative_to(DOCS) for p in DOCS.glob("*.md")},
    **{
        p.relative_to(ROOT).as_posix(): CHINESE / p.relative_to(DOCS)
        for p in (DOCS / "guide").glob("*.md")
    },
}
ENGLISH = {
    **{chinese.resolve(): (ROOT / english).resolve() for english, chinese in PAGES.items()},
    **{CHINESE / "assets" / p.name: p for p in (DOCS / "assets").glob("*.svg")},  # of benchmarks
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
COMMENT = re.compile(r"\s*(?<!\S)#.*$", re.MULTILINE)
C_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)

RUN_EXAMPLES = f"""
import doctest, sys, warnings
from tests.test_help import names_in_examples
warnings.simplefilter("error")
page, guide = sys.argv[1:]
failures, count = doctest.testfile(
    page,
    module_relative=False,
    optionflags={OPTIONS},
    globs=names_in_examples("calque.") if guide else None,
    encoding="utf-8",
)
sys.exit(bool(failures or not count))
"""

every_page = pytest.mark.parametrize("page", sorted(PAGES))


def read(page: pathlib.Path) -> str:
    return page.read_text(encoding="utf-8")


def texts(page: str) -> tuple[str, str]:
    return read(ROOT / page), read(PAGES[page])


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
    if kind == "c":
        return [line.rstrip() for line in C_COMMENT.sub("", text).splitlines()]
    return [text]


def programs(text: str) -> list[tuple[str, list[object]]]:
    return [(kind, program(kind, block)) for kind, block in FENCE.findall(text)]


def levels(text: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def names(text: str) -> set[str]:
    return {" ".join(name.split()) for name in re.findall(r"`([^`]+)`", prose(text))}


def numbers(text: str) -> Counter[str]:
    return Counter(NUMBER.findall(LINK.sub("", prose(text))))


def rows(text: str) -> list[object]:
    """What both languages share of each row of each table."""
    lines = [line for line in prose(text).splitlines() if line.startswith("|")]
    return [(line.count(" |"), sorted(names(line)), numbers(line)) for line in lines]


def links(page: pathlib.Path) -> list[pathlib.Path]:
    """Where a page's links lead."""
    found = [path for path, _ in LINK.findall(prose(read(page)))]
    return [(page.parent / path).resolve() if path else page.resolve() for path in found]


@every_page
def test_it_has_the_same_headings(page: str) -> None:
    english, chinese = texts(page)
    assert levels(chinese) == levels(english)


@every_page
def test_it_has_the_same_code(page: str) -> None:
    english, chinese = map(programs, texts(page))
    for number, (theirs, ours) in enumerate(zip(english, chinese), 1):
        assert ours == theirs, f"block {number} of {page} differs from the English page's"
    assert len(chinese) == len(english)


@every_page
def test_it_has_the_same_tables(page: str) -> None:
    english, chinese = map(rows, texts(page))
    for number, (theirs, ours) in enumerate(zip(english, chinese), 1):
        assert ours == theirs, f"row {number} of the tables of {page}"
    assert len(chinese) == len(english)


@every_page
def test_it_names_the_same_things(page: str) -> None:
    english, chinese = map(names, texts(page))
    assert sorted(english - chinese) == [] and sorted(chinese - english) == []


@every_page
def test_it_has_the_same_numbers(page: str) -> None:
    english, chinese = map(numbers, texts(page))
    assert dict(english - chinese) == {} and dict(chinese - english) == {}


@every_page
def test_its_links_lead_where_the_english_ones_do(page: str) -> None:
    english, chinese = links(ROOT / page), links(PAGES[page])
    assert Counter(ENGLISH.get(target, target) for target in chinese) == Counter(
        ENGLISH.get(target, target) for target in english
    )
    for target in chinese:
        in_english = DOCS in target.parents and CHINESE not in target.parents
        assert target.exists() and not in_english, target


@every_page
def test_its_links_find_their_headings(page: str) -> None:
    english, chinese = ([a for _, a in LINK.findall(prose(text)) if a] for text in texts(page))
    assert len(chinese) == len(english)
    for path, anchor in LINK.findall(prose(read(PAGES[page]))):
        if anchor:
            target = PAGES[page].parent / path if path else PAGES[page]
            assert anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize(
    "page", [page for page in sorted(PAGES) if PAGES[page].exists() and ">>>" in read(PAGES[page])]
)
def test_its_examples_run(page: str) -> None:
    """In a process of its own: what examples register, such as primitives, stays in a process, and
    the English page's are of the same names."""
    globs = "guide" if "guide/" in page else ""
    command = [sys.executable, "-c", RUN_EXAMPLES, str(PAGES[page]), globs]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_page_is_left_over() -> None:
    assert {p.resolve() for p in CHINESE.rglob("*.md")} - ENGLISH.keys() == {TERMS.resolve()}


def variants() -> list[tuple[str, str]]:
    """Each word that the list of terms sets aside, with the one to use."""
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", read(TERMS), re.MULTILINE)
    return [
        (other, use)
        for _, use, others in table[1:]
        for other in others.strip().split("、")
        if other
    ]


@every_page
def test_one_word_stands_for_one_thing(page: str) -> None:
    text = prose(read(PAGES[page]))
    assert [(other, use) for other, use in variants() if other in text] == []


def test_the_list_of_terms_sets_words_aside() -> None:
    assert ("跟踪", "追踪") in variants()


def test_comments_are_free_and_code_is_not() -> None:
    for kind, code, comment in (
        ("sh", "make docs", "  # {}"),
        ("c", "f(x);", " /* {} */"),
        ("python", "f(x)", "  # {}"),
        ("pycon", ">>> f(x)", "  # {}"),
    ):
        one, other = (program(kind, code + comment.format(text) + "\n") for text in ("a", "甲"))
        assert one == other != program(kind, code.replace("d", "D").replace("x", "y") + "\n")

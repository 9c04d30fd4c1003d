"""The examples of the documentation run: README, the pages of docs/ and every docstring of the
public modules."""

import doctest
import importlib
import pathlib
import pkgutil
import re

import pytest

import calque
from tests.test_help import names_in_examples

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
GUIDES = sorted(p.name for p in GUIDE.glob("*.md"))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(
    m.name for m in pkgutil.walk_packages(calque.__path__, "calque.") if ".machine" not in m.name
)


def test_readme():
    failures, count = doctest.testfile(
        str(ROOT / "README.md"), module_relative=False, optionflags=OPTIONS
    )
    assert count and not failures


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_pages(page):
    failures, count = doctest.testfile(
        str(ROOT / "docs" / page), module_relative=False, optionflags=OPTIONS
    )
    examples = ">>>" in (ROOT / "docs" / page).read_text()
    assert bool(count) == examples and not failures


@pytest.mark.parametrize("page", GUIDES)
def test_guides(page):
    failures, count = doctest.testfile(
        str(GUIDE / page),
        module_relative=False,
        optionflags=OPTIONS,
        globs=names_in_examples("calque."),
    )
    assert count and not failures


@pytest.mark.parametrize("page", GUIDES)
def test_links_of_guides_lead_somewhere(page):
    text = (GUIDE / page).read_text()
    for link, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", text):
        target = (GUIDE / link).resolve() if link else GUIDE / page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), f"{link}#{anchor}"


def test_the_site_has_every_page():
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(p for p in pages if not p.startswith("zh/"))


def anchors(page: pathlib.Path) -> set[str]:
    """The names of a page's headings in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def test_the_tests_that_pitfalls_name_exist():
    for place in re.findall(r"`(tests/\S+?)`", (ROOT / "docs" / "pitfalls.md").read_text()):
        path, _, name = place.partition("::")
        assert (ROOT / path).exists() and f"def {name}" in (ROOT / path).read_text(), place


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    finder = doctest.DocTestFinder(exclude_empty=True)
    try:
        module = importlib.import_module(name)
        found = finder.find(module, name, globs=names_in_examples(f"{name}."))
    except ModuleNotFoundError as error:  # of a package that a compatible name is made for
        assert not (error.name or "calque").startswith("calque"), error
        pytest.skip(f"{error.name} is not installed")
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in found:
        runner.run(test)
    assert not runner.failures

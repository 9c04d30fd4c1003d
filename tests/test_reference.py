"""The API reference that the site has: every public name, and links that lead somewhere."""

import functools
import importlib
import pathlib
import re
import sys

import pytest

from tests.test_help import MODULES as HELPED
from tests.test_help import public

TOOLS = pathlib.Path(__file__).resolve().parent.parent / "tools"
if not (TOOLS / "reference.py").exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
sys.path.insert(0, str(TOOLS))
glossary_links = importlib.import_module("glossary_links")
docstrings = importlib.import_module("docstrings")
printed_signatures = importlib.import_module("printed_signatures")
reference = importlib.import_module("reference")
sys.path.remove(str(TOOLS))

LINK = re.compile(r"(?<!\\)\]\(([^)#]*)(?:#([^)]*))?\)")
ANCHOR = re.compile(r"\{ #(\S+) \}$", re.MULTILINE)


@functools.cache
def pages():
    return reference.pages()


@functools.cache
def anchors(page):
    return set(ANCHOR.findall(pages()[page]))


def no_link(name):
    return None


def test_every_module_with_help_has_a_page():
    assert set(HELPED) <= set(reference.MODULES)
    assert len(reference.MODULES) == len(set(reference.MODULES))
    assert set(pages()) == {"index.md", "differences.md", *map(reference.page, reference.MODULES)}


def test_every_public_name_is_in_the_table_of_its_module():
    missing = []
    for module in HELPED:
        text = pages()[reference.page(module)]
        for full, _ in public(module):
            head = full.removeprefix(f"{module}.").split(".")[0]
            if f"| [`{head}`](" not in text and f"| `{head}` |" not in text:
                missing.append(full)
    assert not missing


def test_links_lead_somewhere():
    links = 0
    for name, text in pages().items():
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
        prose = re.sub(r"(\[?)(`+)[^`]+\2", r"\1", prose)  # what is linked stays a link
        for page, anchor in LINK.findall(prose):
            links += 1
            assert (page or name) in pages(), (name, page)
            assert not anchor or anchor in anchors(page or name), (name, page, anchor)
    assert links > 2000


def test_anchors_are_unique():
    for name, text in pages().items():
        found = ANCHOR.findall(text)
        assert len(found) == len(set(found)), name


def test_a_name_of_several_modules_is_explained_once():
    assert "the same as [`calque.Array`](calque.md#calque.Array)" in pages()["calque.numpy.md"]
    assert "#calque.numpy.ndarray" not in pages()["calque.numpy.md"]


def test_no_page_shows_an_address_of_memory():
    assert not [name for name, text in pages().items() if re.search(r"at 0x[0-9a-f]{6}", text)]


DOC = """
Adds *two* numbers_ with `f` and `other`. More.

Args:
    x, y: numbers, or
        lists of `other(3)`.
    **rest: refused.
Returns:
    The sum.

    Or a list <here>.
Differs from NumPy:
    It does.

>>> f(1, 2)
3

>>> f(2, 3)
5
"""

RENDERED = r"""
Adds \*two\* numbers\_ with `f` and [`other`](page.md#other). More.

**Arguments**

`x`, `y`
:   numbers, or lists of [`other(3)`](page.md#other).

`**rest`
:   refused.

**Returns**

The sum.

Or a list &lt;here&gt;.

!!! note "Differs from NumPy"

    It does.

```pycon
>>> f(1, 2)
3

>>> f(2, 3)
5
```
"""


def test_a_docstring_as_markdown():
    links = {"other": "page.md#other"}
    assert docstrings.rendered(DOC, links.get) == RENDERED.strip()


def test_the_summary_is_the_first_sentence():
    assert docstrings.summary(DOC) == "Adds *two* numbers_ with `f` and `other`."
    assert docstrings.summary("As `a. B` says, 1.5 of them: `x`. No.") == (
        "As `a. B` says, 1.5 of them: `x`."
    )


def test_an_argument_without_a_name_is_an_error():
    with pytest.raises(ValueError, match="no name before"):
        docstrings.rendered("F.\n\nArgs:\n    what is it\n", no_link)


def test_signatures_name_types_as_users_do():
    import calque
    import calque.numpy as jnp

    assert printed_signatures.printed("softmax", calque.nn.softmax) == (
        "softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array"
    )
    assert printed_signatures.printed("add", jnp.add).startswith("add(\n    x1: ArrayLike,\n")

    def f(a, /, b, *, c: int = 3, **d: str) -> None: ...

    assert printed_signatures.printed("f", f) == "f(a, /, b, *, c: int = 3, **d: str) -> None"
    assert printed_signatures.printed("g", lambda *a, b=abs: a) == "g(*a, b=abs)"


# ---------------------------------------------------------------- links to the glossary

DOCS = TOOLS.parent / "docs"
GLOSSARIES = {"en": DOCS / "glossary.md", "zh": DOCS / "zh" / "glossary.md"}


def test_words_that_are_linked_are_in_the_glossary():
    for language, page in GLOSSARIES.items():
        words = glossary_links.terms(page.read_text(encoding="utf-8"))
        assert set(glossary_links.FORMS[language]) <= set(words)


def test_the_glossary_has_an_address_for_each_word():
    text = glossary_links.with_anchors("- **Tangent, cotangent**: what\n- **Tape**, **b**: it")
    assert text == (
        "- **Tangent, cotangent**{ #tangent-cotangent }: what\n- **Tape**{ #tape }, **b**: it"
    )


def test_the_first_mention_is_linked_outside_of_code_and_links():
    text = (
        "# A jaxpr\n`jaxpr` [jaxpr](x.md) is a Jaxpr, jaxprs\n```\ntracer\n```\n    tape\ntracers"
    )
    assert glossary_links.with_links(text, "guide/a.md") == (
        "# A jaxpr\n`jaxpr` [jaxpr](x.md) is a [Jaxpr](../glossary.md#jaxpr), jaxprs\n"
        "```\ntracer\n```\n    tape\n[tracers](../glossary.md#tracer)"
    )


def test_chinese_words_are_linked_without_spaces_around_them():
    text = "第一个追踪器的余切向量，`守卫` make_jaxpr，切向量与追踪器"
    assert glossary_links.with_links(text, "index.md", "zh") == (
        "第一个[追踪器](glossary.md#追踪器)的[余切向量](glossary.md#切向量-余切向量)，"
        "`守卫` make_jaxpr，切向量与追踪器"
    )

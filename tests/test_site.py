"""The site in two languages: what mkdocs.yml and mkdocs.zh.yml list, and what the tools in
tools/site_*.py do while it is built."""

import importlib.util
import itertools
import json
import pathlib
import re
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tool(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


languages, words, tables = tool("site_languages"), tool("site_words"), tool("site_tables")


def listed(config: str) -> list[str]:
    return re.findall(r": (\S+\.md)$", (ROOT / config).read_text(encoding="utf-8"), re.MULTILINE)


def test_both_languages_list_the_same_pages_in_the_same_order() -> None:
    *pages, terms = listed("mkdocs.zh.yml")
    assert pages == listed("mkdocs.yml") and terms == "contributing.md"


def links(source: str | None, address: str, language: str) -> list[str]:
    page = '<link rel="alternate" href="#en" hreflang="en"><a href="#en"><a href="#zh">'
    return re.findall('"(.*?)"', languages.with_links(page, source, address, language))


def test_the_switch_leads_to_the_same_page() -> None:
    assert links("guide/jit.md", "guide/jit.html", "en") == ["jit.html", "../zh/guide/jit.html"]
    assert links("guide/jit.md", "guide/jit.html", "zh") == ["../../guide/jit.html", "jit.html"]
    assert links("index.md", "index.html", "en") == ["index.html", "zh/index.html"]
    assert links(None, "reference/x.html", "zh") == ["../../reference/x.html", "x.html"]


def test_a_page_of_one_language_switches_to_the_first_page() -> None:
    assert links("contributing.md", "contributing.html", "zh") == [
        "../index.html",
        "contributing.html",
    ]


WORDS = re.findall("..", "内核调用例程排序数组密钥梯度形状守卫缓存网格广播融合掩码索引归约原语追踪")
TEXTS = ["".join(pair) for pair in itertools.product(WORDS, repeat=2)]


def test_words_are_what_stands_together_often() -> None:
    known = words.words_of(TEXTS)
    assert {word for word in known if len(word) > 1} == set(WORDS)
    assert words.parted("内核例程调用", known) == ["内核", "例程", "调用"]


def test_every_character_is_in_a_word() -> None:
    known = words.words_of([*TEXTS, "的在"])
    for run in ("的内核在例程的", "在", "的在的"):
        assert "".join(words.parted(run, known)) == run
    assert words.parted("内核的例程", known) == ["内核的", "例程"]


def test_the_index_is_parted_and_says_the_same(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "search" / "search_index.json"
    path.parent.mkdir()
    entries = [{"title": "jit：内核", "text": text, "location": "a.html"} for text in TEXTS]
    path.write_text(json.dumps({"docs": entries}), encoding="utf-8")
    words.on_post_build(config={"site_dir": str(tmp_path)})
    parted = json.loads(path.read_text(encoding="utf-8"))["docs"]
    assert [
        {field: text.replace(words.PART, "") for field, text in entry.items()} for entry in parted
    ] == entries
    assert parted[1]["text"].split(words.PART) == ["", "内核", "调用", ""]


def test_names_in_tables_break_between_their_words() -> None:
    cell = "<td><code>a_b.c::d_test.py 1.5 __x__</code> e_f</td>"
    broken = "<td><code>a_<wbr>b.<wbr>c::<wbr>d_<wbr>test.<wbr>py 1.5 __x__</code> e_f</td>"
    assert tables.with_breaks(f"<code>a_b</code>{cell}") == f"<code>a_b</code>{broken}"
    assert tables.with_breaks(broken) == broken
    assert tables.with_breaks("<td>98.1 %</td>5 %") == "<td>98.1&nbsp;%</td>5 %"

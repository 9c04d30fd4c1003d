"""What the site has besides the files of docs/: the reference of the interface, links to the
glossary, and plots that follow the palette. MkDocs calls these hooks (mkdocs.yml)."""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import glossary_links
import reference
from mkdocs.structure.files import File

STYLE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "assets" / "site.css"
# how the navigation calls the reference and its groups; docstrings are in English
TITLES = {
    "en": {"API reference": "API reference"},
    "zh": {
        "API reference": "API 参考（英文）",
        "All modules": "所有模块",
        "Differences by function": "各函数的差异",
        "Transformations and arrays": "变换与数组",
        "Functions of arrays": "数组的函数",
        "SciPy's functions": "SciPy 的函数",
        "Looking inside": "观察内部",
        "Devices, files, other libraries": "设备、文件与其他库",
        "Experimental": "实验性接口",
        "For authors of libraries": "写给库的作者",
    },
}
_IMAGE = re.compile(r"^!\[[^\]]*\]\(([^)]+\.svg)\)$", re.MULTILINE)


@functools.cache
def pages() -> dict[str, str]:
    return {f"reference/{name}": text for name, text in reference.pages().items()}


def on_config(config: Any) -> Any:
    """Lists the pages of the reference after those that the configuration lists."""
    titles = TITLES[config.theme["language"]]

    def titled(title: str, what: Any) -> dict[str, Any]:
        return {titles.get(title, title): what}

    listed = [titled("All modules", "reference/index.md")]
    for group, modules in reference.GROUPS.items():
        listed.append(titled(group, [{m: f"reference/{reference.page(m)}"} for m in modules]))
    listed.append(titled("Differences by function", f"reference/{reference.DIFFERENCES}"))
    config.nav.append(titled("API reference", listed))
    return config


def on_files(files: Any, *, config: Any) -> Any:
    for uri, text in pages().items():
        files.append(File.generated(config, uri, content=text))
    if files.get_file_from_path("assets/site.css") is None:  # of a language in its own folder
        files.append(File.generated(config, "assets/site.css", content=STYLE.read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Puts plots into the page itself, where the palette of the site reaches them, and links its
    words to the glossary."""
    source = page.file.src_uri
    folder = pathlib.Path(config.docs_dir, source).parent

    def inlined(match: re.Match[str]) -> str:
        return f'<div class="figure">\n{(folder / match[1]).read_text(encoding="utf-8")}</div>'

    text = markdown
    if not source.startswith("reference/"):
        if source == glossary_links.PAGE:
            text = glossary_links.with_anchors(text)
        else:
            text = glossary_links.with_links(text, source, config.theme["language"])
    return _IMAGE.sub(inlined, text)

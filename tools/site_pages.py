"""What the site has besides the files of docs/: the reference of the interface, and plots that
follow the palette. MkDocs calls these hooks (mkdocs.yml)."""

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import reference
from mkdocs.structure.files import File

_IMAGE = re.compile(r"^!\[[^\]]*\]\(([^)]+\.svg)\)$", re.MULTILINE)


@functools.cache
def pages() -> dict[str, str]:
    return {f"reference/{name}": text for name, text in reference.pages().items()}


def on_config(config: Any) -> Any:
    """Lists the pages of the reference after those that mkdocs.yml lists."""
    listed: list[Any] = [{"All modules": "reference/index.md"}]
    for group, modules in reference.GROUPS.items():
        listed.append({group: [{m: f"reference/{reference.page(m)}"} for m in modules]})
    config.nav.append({"API reference": listed})
    return config


def on_files(files: Any, *, config: Any) -> Any:
    for uri, text in pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Puts plots into the page itself, where the palette of the site reaches them."""
    folder = pathlib.Path(config.docs_dir, page.file.src_uri).parent

    def inlined(match: re.Match[str]) -> str:
        return (folder / match[1]).read_text()

    return _IMAGE.sub(inlined, markdown)

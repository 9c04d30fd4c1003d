"""What the site does for its two languages while mkdocs builds it (`hooks` in mkdocs.yml): the
switch of a page leads to the same page in the other language."""

import pathlib
import posixpath
import re
from typing import Any

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
IN_HEAD = re.compile(r'<link rel="alternate" href="#\w+"[^>]*>')
FOLDERS = {"en": "", "zh": "zh"}  # where the pages of a language lie, in docs and in the site


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Puts addresses in the place of `#LANGUAGE`, which is how mkdocs.yml has them: links of
    mkdocs itself cannot leave the site that is being built."""
    source = None if page.file.generated_by else page.file.src_uri
    return with_links(output, source, page.url, config["theme"]["language"])


def on_post_template(output: str, *, template_name: str, config: Any) -> str:
    """The same for the page that stands for missing ones: it leads to the first pages."""
    return with_links(output, "index.md", "index.html", config["theme"]["language"])


def with_links(html: str, source: str | None, address: str, language: str) -> str:
    """A page with its addresses in the switch, and none in its head: there the theme would look for
    a sitemap beside each. A page without a source is made for both languages."""
    html = IN_HEAD.sub("", html)
    here = posixpath.dirname(posixpath.join(FOLDERS[language], address))
    for other, folder in FOLDERS.items():
        there = address if not source or (DOCS / folder / source).exists() else "index.html"
        link = posixpath.relpath(posixpath.join(folder, there), here or ".")
        html = html.replace(f'href="#{other}"', f'href="{link}"')
    return html

"""Where names in tables of the site may be broken into lines. MkDocs calls it (mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

_CELL: re.Pattern[str] = re.compile(r"<td\b.*?</td>", re.DOTALL)
_CODE: re.Pattern[str] = re.compile(r"(<code>)([^<]*)(</code>)")
_PLACE: re.Pattern[str] = re.compile(r"(?<=[^\W_])(_+(?=[^\W_])|(?:[./]|::)(?=[^\W\d]))")
_PERCENT: re.Pattern[str] = re.compile(r"(?<=\d) %")


def with_breaks(html: str) -> str:
    """Lets code in tables break behind underscores, dots, slashes and colons inside of names,
    not between any two letters; a number and its percent stay together."""

    def code(match: re.Match[str]) -> str:
        return match[1] + _PLACE.sub(r"\1<wbr>", match[2]) + match[3]

    return _CELL.sub(lambda cell: _PERCENT.sub("&nbsp;%", _CODE.sub(code, cell[0])), html)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    return with_breaks(html)

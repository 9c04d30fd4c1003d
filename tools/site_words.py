"""What makes the site's search find Chinese words (`hooks` in mkdocs.zh.yml). Search finds what a
word begins with, and Chinese has no spaces: the words of the pages are told apart here, by how
often their characters stand together, and parted in the index by spaces of no width."""

import json
import math
import pathlib
import re
from collections import Counter
from typing import Any

RUN = re.compile(r"[\u4e00-\u9fff]+")
LONGEST = 4
OFTEN = 3  # so many times a word stands in the pages, at least
TOGETHER = 12.0  # so many times as often as if its parts met by chance
PART = "\u200b"


def on_post_build(*, config: Any) -> None:
    path = pathlib.Path(config["site_dir"]) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    words = words_of([entry[field] for entry in index["docs"] for field in ("title", "text")])
    for entry in index["docs"]:
        for field in ("title", "text"):
            entry[field] = RUN.sub(
                lambda run: PART.join(["", *parted(run[0], words), ""]), entry[field]
            )
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def words_of(texts: list[str]) -> dict[str, float]:
    """The words of some texts, with the logarithm of how likely each is."""
    runs = [run for text in texts for run in RUN.findall(text)]
    counts = Counter(
        run[i : i + n]
        for run in runs
        for n in range(1, LONGEST + 1)
        for i in range(len(run) - n + 1)
    )
    total = sum(map(len, runs))

    def is_word(piece: str) -> bool:
        splits = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        return counts[piece] >= OFTEN and all(
            counts[piece] * total > TOGETHER * counts[a] * counts[b] for a, b in splits
        )

    return {p: math.log(c / total) for p, c in counts.items() if len(p) == 1 or is_word(p)}


def parted(run: str, words: dict[str, float]) -> list[str]:
    """The most likely words of a run of characters; one that stands alone goes with the word before
    it, since search takes what a query begins with for a word where it is one."""
    best: list[tuple[float, int]] = [(0.0, 0)]  # of the first characters: how likely, the last word
    for end in range(1, len(run) + 1):
        starts = range(max(0, end - LONGEST), end)
        known = [(s, words[run[s:end]]) for s in starts if run[s:end] in words]
        best.append(max((best[s][0] + w, s) for s, w in known))
    found: list[str] = []
    end = len(run)
    while end:
        start = best[end][1]
        found.append(run[start:end])
        end = start
    joined: list[str] = []
    for word in reversed(found):
        if len(word) == 1 and joined:
            joined[-1] += word
        else:
            joined.append(word)
    return joined

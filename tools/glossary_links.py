"""Links from the words of a page to the glossary, where a reader first meets them."""

from __future__ import annotations

import posixpath
import re

PAGE = "glossary.md"
# words of the glossary that mean nothing else in sentences, in the forms that pages use
FORMS = {
    "en": {
        "Aval": ("aval", "avals"),
        "Weak type": ("weak type", "weak types", "weakly typed"),
        "Jaxpr": ("jaxpr", "jaxprs"),
        "Tracer": ("tracer", "tracers"),
        "Captured value": ("captured value", "captured values"),
        "Free size": ("free size", "free sizes"),
        "Guard": ("guard", "guards"),
        "Pinned size": ("pinned size", "pinned sizes"),
        "Found size": ("found size", "found sizes"),
        "Tangent, cotangent": ("tangent", "tangents", "cotangent", "cotangents"),
        "Tape": ("tape", "tapes"),
        "Custom rule": ("custom rule", "custom rules"),
        "Lane": ("lane", "lanes"),
        "Shard": ("shard", "shards"),
        "Kernel": ("kernel", "kernels"),
        "Call path": ("call path",),
        "Retrace": ("retrace", "retraces", "retraced"),
        "Generic program": ("generic program", "generic programs"),
        "Donation": ("donation", "donated"),
        "Meaning": ("host call", "host calls"),
    },
    "zh": {
        "抽象值": ("抽象值",),
        "弱类型": ("弱类型",),
        "Jaxpr": ("jaxpr",),
        "追踪器": ("追踪器",),
        "捕获值": ("捕获值",),
        "自由尺寸": ("自由尺寸",),
        "守卫": ("守卫",),
        "锁定的尺寸": ("锁定",),
        "运行时尺寸": ("运行时尺寸",),
        "切向量、余切向量": ("切向量", "余切向量"),
        "记录带": ("记录带",),
        "自定义规则": ("自定义规则",),
        "批元素": ("批元素",),
        "内核": ("内核",),
        "调用路径": ("调用路径",),
        "重新追踪": ("重新追踪",),
        "通用程序": ("通用程序",),
        "捐赠": ("捐赠",),
        "含义": ("主机调用",),
    },
}
TERMS = {
    language: {form: term for term, forms in words.items() for form in forms}
    for language, words in FORMS.items()
}

_TERM = {  # a boundary is one of Latin letters: Chinese words have none
    language: re.compile(
        rf"(?<![a-z0-9_])({'|'.join(sorted(words, key=len, reverse=True))})(?![a-z0-9_])",
        re.IGNORECASE,
    )
    for language, words in TERMS.items()
}
_ENTRY = re.compile(r"^- \*\*([^*]+)\*\*", re.MULTILINE)
# code in blocks and in lines, headings, tables, links, HTML: no place for a link
_KEPT = re.compile(
    r"^( *)```.*?^\1```|^ {4}.*?$|^#.*?$|^\|.*?$|`[^`]+`|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|^!!!.*?$",
    re.DOTALL | re.MULTILINE,
)


def anchor(term: str) -> str:
    return re.sub(r"\W+", "-", term.lower()).strip("-")


def with_anchors(glossary: str) -> str:
    """The glossary with an address for each of its words."""
    return _ENTRY.sub(lambda m: f"- **{m[1]}**{{ #{anchor(m[1])} }}", glossary)


def terms(glossary: str) -> list[str]:
    return _ENTRY.findall(glossary)


def with_links(text: str, page: str, language: str = "en") -> str:
    """A page with the first mention of each word linked to the glossary."""
    to = posixpath.relpath(PAGE, posixpath.dirname(page) or ".")
    left = set(FORMS[language])

    def linked(match: re.Match[str]) -> str:
        term = TERMS[language][match[0].lower()]
        if term not in left:
            return match[0]
        left.remove(term)
        return f"[{match[0]}]({to}#{anchor(term)})"

    out, at = "", 0
    for kept in _KEPT.finditer(text):
        out += _TERM[language].sub(linked, text[at : kept.start()]) + kept[0]
        at = kept.end()
    return out + _TERM[language].sub(linked, text[at:])

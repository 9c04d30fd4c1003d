"""The figures of docs/benchmarks.md and the table of README.md, out of what a run of `report.py`
wrote.

What stands between the marks `<!-- figures -->` and `<!-- end of figures -->` of a page is written
anew, in the language of the page; plots lie beside it.
"""

from __future__ import annotations

import pathlib
import statistics
from typing import Any

import plots

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {"en": ROOT / "docs" / "benchmarks.md", "zh": ROOT / "docs" / "zh" / "benchmarks.md"}
READMES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh.md"}
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
LIBRARIES = {
    "calque": "calque", "jax": "JAX", "numpy": "NumPy", "torch": "PyTorch",
    "compiled": "torch.compile", "numba": "Numba",
}  # fmt: skip
SHOWN_IN_README = ("jax", "numpy", "torch", "numba")
LARGE = 1000  # rows of a matrix
# what a page says, in the languages of the site; programs keep their names, groups that of README
WORDS = {
    "en": {
        "machine": "Measured on {processor}, {cores} cores, {system}, Python {python}: {versions}.",
        "ratios": "How many times as fast, by group",
        "note": "time of the other / time of calque, geometric means; above 1 calque is ahead",
        "program": "program", "size": "size", "cost": "Cost against size",
        "elements": "elements", "products": "rows and columns", "layers": "layers",
        "equations": "equations", "2 x + y": "2 x + y", "sum of exp": "sum of exp(x)",
        "matmul": "product of two square matrices", "first": "first call",
        "again": "first call in a second process",
        "step": "later calls", "memory": "memory", "warm": "calque, warm",
        "of layers": "A training step of a transformer",
        "of equations": "A program without repetition",
        "none": "—",
        "group small calls": "small calls, jitted and eager",
        "group elementwise": "elementwise functions of a million numbers",
        "group reductions": "reductions, softmax, layer norm, running sums",
        "group indexing and sorting": "gather, scatter, sort, top-k",
        "group products": "products of matrices", "large": "products from {size:,} rows on",
        "group loops": "loops: simulations, recurrences",
        "group training steps": "training steps: layers, attention, convolution",
        "from to": "{0} to {1}", "first calls": "first calls of programs, small to large",
    },
    "zh": {
        "machine": "测量环境：{processor}，{cores} 核，{system}，Python {python}；{versions}。",
        "ratios": "按组别：快多少倍",
        "note": "对方用时 / calque 用时，几何平均；大于 1 表示 calque 领先",
        "program": "程序", "size": "规模", "cost": "代价与规模",
        "elements": "元素个数", "products": "行数与列数", "layers": "层数",
        "equations": "方程数", "2 x + y": "2 x + y", "sum of exp": "exp(x) 之和",
        "matmul": "两个方阵的乘积", "first": "第一次调用", "again": "第二个进程的第一次调用",
        "step": "之后的调用", "memory": "内存", "warm": "calque（缓存已有）",
        "of layers": "Transformer 的一个训练步",
        "of equations": "没有重复的程序",
        "none": "—",
        "group small calls": "小调用，即时编译和立即执行",
        "group elementwise": "一百万个数的逐元素函数",
        "group reductions": "归约、softmax、层归一化、累计和",
        "group indexing and sorting": "gather、scatter、排序、top-k",
        "group products": "矩阵乘积", "large": "{size:,} 行以上的矩阵乘积",
        "group loops": "循环：模拟、递推",
        "group training steps": "训练步：多层网络、注意力、卷积",
        "from to": "{0} 到 {1}", "first calls": "程序的首次调用，从小到大",
    },
}  # fmt: skip


def write(results: dict[str, Any]) -> list[pathlib.Path]:
    """Writes the figures of every page there is, and its plots."""
    written = []
    for language, page in PAGES.items():
        if page.exists():
            pictures, text = figures(results, WORDS[language])
            folder = page.parent / "assets"
            folder.mkdir(exist_ok=True)
            for name, picture in pictures.items():
                (folder / name).write_text(picture, encoding="utf-8")
                written.append(folder / name)
            page.write_text(filled(page.read_text(encoding="utf-8"), text), encoding="utf-8")
            written.append(page)
    for language, page in READMES.items():
        if page.exists():
            text = summary(results, WORDS[language])
            page.write_text(filled(page.read_text(encoding="utf-8"), text), encoding="utf-8")
            written.append(page)
    return written


def summary(results: dict[str, Any], words: dict[str, str]) -> str:
    """How many times as fast calque is, in a few lines: means of groups, and ranges over sizes."""
    groups = group_ratios(results["suite"])
    means = [
        [
            words.get(f"group {group}", group),
            *(plots.ratio(r[p]) if p in r else "" for p in SHOWN_IN_README),
        ]
        for group, r in groups.items()
    ]
    scale = results["scale"]
    large = [row["times"] for row in scale.get("products", []) if row["size"] >= LARGE]
    first = [row["first"] for kind in ("layers", "equations") for row in scale.get(kind, [])]
    spans = [
        [name, *(span(some, p, words) for p in SHOWN_IN_README)]
        for name, some in (
            (words["large"].format(size=LARGE), large),
            (words["first calls"], first),
        )
    ]
    return table(["", *(LIBRARIES[p] for p in SHOWN_IN_README)], [*means, *spans])


def span(some: list[dict[str, float]], peer: str, words: dict[str, str]) -> str:
    """The least and the greatest of the ratios there are."""
    found = sorted(times[peer] / times["calque"] for times in some if peer in times)
    return words["from to"].format(plots.ratio(found[0]), plots.ratio(found[-1])) if found else ""


def filled(page: str, text: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page lacks {BEGIN!r} or {END!r}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def figures(results: dict[str, Any], words: dict[str, str]) -> tuple[dict[str, str], str]:
    """The plots by the names of their files, and the Markdown around them."""
    pictures: dict[str, str] = {}
    out = [words["machine"].format(**results["machine"])]
    ratios = group_ratios(results["suite"])
    pictures["benchmarks-groups.svg"] = plots.bars(
        words["ratios"], ratios, words["note"], LIBRARIES
    )
    out += [f"### {words['ratios']}", image(words["ratios"], "benchmarks-groups.svg")]
    out += [suite_table(results["suite"], words), f"### {words['cost']}"]
    for kind, rows in results["scale"].items():
        for program in sorted({row.get("program", "") for row in rows}):
            some = [row for row in rows if row.get("program", "") == program]
            title = words[program] if program else words[f"of {kind}"]
            name = f"benchmarks-{kind}{'-' + program.replace(' ', '-') if program else ''}.svg"
            name = name.replace("+", "plus")
            pictures[name] = scale_plot(title, some, words[kind], words)
            table = scale_table(some, words) if program else compiled_table(some, words)
            out += [f"#### {title}", image(title, name), table]
    return pictures, "\n\n".join(out)


def image(title: str, name: str) -> str:
    return f"![{title}](assets/{name})"


def group_ratios(suite: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means of the times of each peer over calque's, by group."""
    out: dict[str, dict[str, float]] = {}
    for group in dict.fromkeys(row["group"] for row in suite):
        some = [row["times"] for row in suite if row["group"] == group]
        for peer in list(LIBRARIES)[1:]:
            found = [times[peer] / times["calque"] for times in some if peer in times]
            if found:
                out.setdefault(group, {})[peer] = statistics.geometric_mean(found)
    return out


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size or unit == "ns":
            return f"{float(f'{seconds / size:.3g}'):g} {unit}"
    raise AssertionError(seconds)


def table(head: list[str], rows: list[list[str]]) -> str:
    marks = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, marks, *rows])


def suite_table(suite: list[dict[str, Any]], words: dict[str, str]) -> str:
    """Each program: calque's time, and what the others take as multiples of it."""
    peers = [p for p in list(LIBRARIES)[1:] if any(p in row["times"] for row in suite)]
    rows = []
    for group in dict.fromkeys(row["group"] for row in suite):
        rows.append([f"**{group}**", *[""] * (1 + len(peers))])
        for row in (r for r in suite if r["group"] == group):
            times = row["times"]
            shown = [plots.ratio(times[p] / times["calque"]) if p in times else "" for p in peers]
            rows.append([row["name"], duration(times["calque"]), *shown])
    return table([words["program"], "calque", *(LIBRARIES[p] for p in peers)], rows)


def scale_plot(title: str, rows: list[dict[str, Any]], across: str, words: dict[str, str]) -> str:
    key = "times" if "times" in rows[0] else "first"
    series: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        for library, seconds in row[key].items():
            series.setdefault(library, []).append((row["size"], seconds))
        for library, seconds in row.get("again", {}).items():
            series.setdefault(f"{library} warm", []).append((row["size"], seconds))
    return plots.lines(title, series, across, {**LIBRARIES, "calque warm": words["warm"]})


def scale_table(rows: list[dict[str, Any]], words: dict[str, str]) -> str:
    """Times against sizes."""
    libraries = [x for x in LIBRARIES if any(x in row["times"] for row in rows)]
    cells = [
        [
            f"{row['size']:,}",
            *(duration(row["times"][x]) if x in row["times"] else "" for x in libraries),
        ]
        for row in rows
    ]
    return table([words["size"], *(LIBRARIES[x] for x in libraries)], cells)


def compiled_table(rows: list[dict[str, Any]], words: dict[str, str]) -> str:
    """First calls, later ones and memory against sizes."""
    libraries = [x for x in LIBRARIES if any(x in row["first"] for row in rows)]
    head = [words["size"]]
    columns = [("first", x) for x in libraries] + [("again", "calque")]
    columns += [("step", x) for x in libraries] + [("memory", x) for x in libraries]
    head += [f"{words[what]}, {LIBRARIES[x]}" for what, x in columns]
    cells = []
    for row in rows:
        line = [f"{row['size']:,}"]
        for what, library in columns:
            value = row[what].get(library)
            shown = words["none"] if value is None else duration(value)
            if what == "memory" and value is not None:
                shown = f"{value / 2**20:.0f} MiB"
            line.append(shown)
        cells.append(line)
    return table(head, cells)

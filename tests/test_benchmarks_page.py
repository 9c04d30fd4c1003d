"""The page of benchmarks: figures and plots out of the results of a run."""

import importlib
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
if not (BENCHMARKS / "page.py").exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))
page = importlib.import_module("page")
plots = importlib.import_module("plots")
sys.path.remove(str(BENCHMARKS))


def row(size, **times):
    return {"program": "matmul", "size": size, "times": times}


def compiled(size, first, again):
    both = {"calque": first, "jax": 4 * first}
    return {"size": size, "first": both, "step": both, "memory": {"calque": 2**27, "jax": 2**28},
            "again": {"calque": again}}  # fmt: skip


RESULTS = {
    "format": 1,
    "setting": "full",
    "machine": {"processor": "P", "cores": 2, "system": "Linux", "python": "3.11", "versions": "v"},
    "suite": [
        {"group": "loops", "name": "a", "times": {"calque": 1e-6, "jax": 4e-6, "numba": 5e-7}},
        {"group": "loops", "name": "b", "times": {"calque": 2e-3, "jax": 2e-3}},
    ],
    "scale": {
        "products": [row(64, calque=1e-5, jax=2e-5), row(4096, calque=2.0)],
        "layers": [compiled(2, 0.5, 0.01), compiled(48, 5.0, 0.1)],
    },
}


def test_ratios_are_geometric_means():
    assert page.group_ratios(RESULTS["suite"]) == {
        "loops": {"jax": pytest.approx(2.0), "numba": pytest.approx(0.5)}
    }


@pytest.mark.parametrize("language", page.WORDS)
def test_figures(language):
    pictures, text = page.figures(RESULTS, page.WORDS[language])
    assert sorted(pictures) == [
        "benchmarks-groups.svg", "benchmarks-layers.svg", "benchmarks-products-matmul.svg",
    ]  # fmt: skip
    for name, picture in pictures.items():
        assert f"](assets/{name})" in text
        ElementTree.fromstring(picture)
        assert "\n\n" not in picture  # Markdown would end the picture there
    assert "| a | 1 µs | 4 | 0.5 |" in text
    assert "| b | 2 ms | 1 |  |" in text
    assert "| 4,096 | 2 s |  |" in text
    assert "| 48 | 5 s | 20 s | 100 ms | 5 s | 20 s | 128 MiB | 256 MiB |" in text


@pytest.mark.parametrize("language", page.WORDS)
def test_the_table_of_the_readme(language):
    words = page.WORDS[language]
    rows = page.summary(RESULTS, words).splitlines()
    assert rows[0] == "|  | JAX | NumPy | PyTorch | Numba |"
    assert rows[2] == f"| {words['group loops']} | 2 |  |  | 0.5 |"
    assert rows[-1].endswith(f" | {words['from to'].format(4, 4)} |  |  |  |")


@pytest.mark.parametrize("language", page.WORDS)
def test_the_readme_has_the_figures_of_the_page(language):
    results = json.loads((BENCHMARKS / "report.json").read_text())
    text = page.READMES[language].read_text(encoding="utf-8")
    between = text.partition(page.BEGIN)[2].partition(page.END)[0].strip()
    assert between == page.summary(results, page.WORDS[language])


def test_languages_have_the_same_words():
    english, *others = page.WORDS.values()
    assert all(other.keys() == english.keys() for other in others)


def test_only_what_is_between_the_marks_changes():
    before = f"a\n{page.BEGIN}\nold\n{page.END}\nb"
    assert page.filled(before, "new") == f"a\n{page.BEGIN}\n\nnew\n\n{page.END}\nb"
    assert page.filled(page.filled(before, "x"), "new") == page.filled(before, "new")
    with pytest.raises(ValueError, match="lacks"):
        page.filled("no marks", "new")


def test_pages_have_the_marks():
    for path in (*page.PAGES.values(), *page.READMES.values()):
        text = path.read_text(encoding="utf-8")
        assert text.count(page.BEGIN) == text.count(page.END) == 1, path


def test_bars_begin_at_one():
    picture = plots.bars("t", {"g": {"jax": 10.0, "numpy": 0.5}}, "n", page.LIBRARIES)
    tags = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect")
    faster, slower = ([float(tag.get(k)) for k in ("x", "width")] for tag in tags)
    assert slower[0] + slower[1] == pytest.approx(faster[0], abs=0.2)
    assert faster[1] > slower[1]


def test_lines_rise_with_time():
    series = {"calque": [(10.0, 1e-3), (1000.0, 1.0)], "jax": [(10.0, 1e-2)]}
    picture = ElementTree.fromstring(plots.lines("t", series, "n", page.LIBRARIES))
    way = next(picture.iter("{http://www.w3.org/2000/svg}polyline")).get("points")
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in way.split())
    assert x2 > x1 and y2 < y1


@pytest.mark.parametrize("seconds, words", [(1.5, "1.5 s"), (0.0123, "12.3 ms"), (2e-9, "2 ns")])
def test_durations(seconds, words):
    assert page.duration(seconds) == words


def test_a_program_of_the_report_is_measured():
    command = [sys.executable, str(BENCHMARKS / "scale.py"), "calque", "layers", "1"]
    got = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert got.keys() == {"first", "step", "memory"} and all(value > 0 for value in got.values())

"""Reports where a notebook shows them, in a headless browser: lines stay lines, whatever the styles
around, and nothing is wider than the window."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest

import calque as jax
import calque.numpy as jnp

BROWSER = (
    shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
)
NOTEBOOKS = all(importlib.util.find_spec(m) for m in ("nbconvert", "ipykernel", "nbformat"))
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser")
# What notebooks do to what they show.
AROUND = """
pre, span, div { display: inline; white-space: normal; float: none; }
.output pre { font-size: 30px; background: red; overflow: visible } table { width: 9000px }
"""
MEASURE = """
<script>
const tops = new Set([...document.querySelectorAll(".calque-report .line")].map(x => x.getBoundingClientRect().top));
const widest = Math.max(...[...document.querySelectorAll(".calque-report pre, .calque-report .wide")]
  .map(x => x.getBoundingClientRect().right));
const columns = new Set([...document.querySelectorAll(".calque-report .columns > div")].map(x => x.getBoundingClientRect().left));
document.documentElement.dataset.measured = JSON.stringify({lines: tops.size, widest, columns: columns.size, window: innerWidth});
</script>
"""


def layer(x, w):
    return jnp.tanh(x @ w)


def model(x, w):
    y = layer(x, w)
    return jnp.sin(y).sum(0)


ARGUMENTS = jnp.ones((30, 20)), jnp.ones((20, 10))


def measured(path, folder, width):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--window-size={width},900", f"--user-data-dir={folder}/profile", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    found = re.search(r'data-measured="([^"]*)"', dom)[1]
    return json.loads(found.replace("&quot;", '"'))


@pytest.mark.parametrize("made", [jax.explain, jax.show], ids=["explain", "show"])
@pytest.mark.parametrize(("width", "columns"), [(520, 1), (1500, 2)], ids=["narrow", "wide"])
def test_lines_stay_lines(made, width, columns, tmp_path):
    report = made(model, *ARGUMENTS)
    path = tmp_path / "page.html"
    path.write_text(
        f"<!doctype html><html><head><style>{AROUND}</style></head><body><section class='output'>"
        f"{report._repr_html_()}</section>{MEASURE}</body></html>"
    )
    found = measured(path, tmp_path, width)
    assert found["columns"] == columns and found["widest"] <= found["window"]
    assert found["lines"] >= 5  # of the two functions at least


@pytest.mark.skipif(not NOTEBOOKS, reason="nbconvert and ipykernel are not installed")
def test_a_notebook(tmp_path):
    nbformat = importlib.import_module("nbformat")
    book = nbformat.v4.new_notebook()
    for source in (
        "import calque, calque.numpy as jnp",
        "def layer(x):\n    print(end='')\n    return jnp.sin(x)\n\ndef f(x):\n    y = layer(x)\n"
        "    z = y * 2\n    return z",
        "calque.explain(f, jnp.ones(3))",
        "jnp.arange(6.0).reshape(2, 3)",
        "calque.make_jaxpr(f)(1.0)",
        "calque.show(f, jnp.ones(3))",
    ):
        book.cells.append(nbformat.v4.new_code_cell(source))
    path = tmp_path / "book.ipynb"
    nbformat.write(book, path)
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--execute", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    page = tmp_path / "book.html"
    text = page.read_text()
    for words in ("layer, Cell In[2]:1", "# z</span>", "print() in layer (Cell In[2]:2)"):
        assert words in text
    assert "0 … 5, mean 2.5" in text and "<svg" in text
    page.write_text(text.replace("</body>", f"{MEASURE}</body>"))
    assert measured(page, tmp_path, 1400)["lines"] > 10

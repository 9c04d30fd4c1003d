"""The report as a page."""

import html.parser
import re
import shutil
import subprocess

import pytest

import calque as jax
import calque.numpy as jnp
from calque.explaining import page

SCALE = 7.25


def scaled(x):
    return jnp.sin(x) * SCALE


class Marks(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.lines, self.open = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.lines += [v for k, v in attrs if k == "data-line"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_links_source_and_program(tmp_path):
    path = tmp_path / "report.html"
    r = jax.explain(scaled, jnp.ones(3))
    r.save(str(path))
    text = path.read_text()
    marks = Marks()
    marks.feed(text)
    assert not marks.open and "http" not in re.sub(r"<pre>.*?</pre>", "", text, flags=re.S)
    line = scaled.__code__.co_firstlineno + 1
    assert (
        marks.lines.count(f"0:{line}") == 6
    )  # source, two equations, head and body of the loops, machine code
    assert r._repr_html_() in text and "&lt;" in text


BROWSER = (
    shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
)


@pytest.mark.skipif(BROWSER is None, reason="no browser")
def test_the_page_in_a_browser(tmp_path):
    path = tmp_path / "report.html"
    jax.explain(scaled, jnp.ones(3)).save(str(path))
    hover = (
        "<script>document.querySelector('[data-line]').dispatchEvent(new"
        " Event('mouseover', {bubbles: true}))</script></body>"
    )
    path.write_text(path.read_text().replace("</body>", hover))
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        f"--user-data-dir={tmp_path}/profile",
        path.as_uri(),
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    assert 'class="line lit"' in dom


def test_rows_say_which_lines_they_belong_to():
    assert page.line(set(), "a < b") == '<span class="line">a &lt; b</span>'
    assert page.line({"0:3", "0:12"}, "x") == '<span class="line" data-line="0:12 0:3">x</span>'
    assert page.line({"0:1"}, "").endswith("> </span>")  # an empty line has a height
    assert page.marked([(set(), "a"), ({"0:1"}, "b")]).count("<span") == 2


def test_names_cannot_break_the_page():
    def odd(x):
        return x

    odd.__name__ = "<script>alert(1)</script>"
    text = page.html(jax.explain(odd, 1.0))
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text
    marks = Marks()
    marks.feed(text)
    assert not marks.open


def test_functions_without_source():
    made = eval("lambda x: x + 1")
    r = jax.explain(made, 1.0)
    assert page.sources(r) == "<pre>the source is not at hand</pre>" and "<h1>" in page.fragment(r)


def layer(x, w):
    print(end="")
    return jnp.tanh(x @ w)


def model(x, w):
    y = layer(x, w)
    total = y.sum()
    return total


REPORT = jax.explain(model, jnp.ones((3, 4)), jnp.ones((4, 5)))


def test_a_notebook_gets_the_style_with_the_report():
    shown = REPORT._repr_html_()
    style = re.search(r"<style>(.*?)</style>", shown, re.S)[1]
    selectors = [s.strip() for block in re.findall(r"([^{}]+)\{", style) for s in block.split(",")]
    scoped = [s for s in selectors if not s.startswith("@media")]
    assert scoped and all(s.startswith(".calque-report") for s in scoped)  # nothing else is touched
    assert 'class="calque-report"' in shown and "<script>" in shown
    assert ".line { display: block" in style


def test_sources_of_all_functions_with_their_places():
    shown = REPORT._repr_html_()
    for f in (model, layer):
        assert f"{f.__name__}, test_page.py:{f.__code__.co_firstlineno}" in shown
    line = layer.__code__.co_firstlineno + 2
    assert shown.count(f'data-line="0:{line}"') >= 3  # source, program, loops


def test_rows_of_the_program_are_named():
    shown = REPORT._repr_html_()
    assert re.search(r"c:f32\[3,5\] = dot_general", shown) and "# total</span>" in shown


def test_side_effects_of_helpers():
    (effect,) = REPORT.effects
    line = layer.__code__.co_firstlineno + 1
    assert effect.what == "print()" and effect.helper == "layer"
    assert str(effect) == f"print() in layer (test_page.py:{line})" and str(effect) in str(REPORT)

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
        marks.lines.count(str(line)) == 6
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
        " Event('mouseenter'))</script></body>"
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
    assert page.line({12, 3}, "x") == '<span class="line" data-line="3 12">x</span>'
    assert page.line({1}, "").endswith("> </span>")  # an empty line has a height
    assert page.marked([(set(), "a"), ({1}, "b")]).count("<span") == 2


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
    assert page.source(r) == "<pre>the source is not at hand</pre>" and "<h1>" in page.fragment(r)


def test_equations_have_a_line_each():
    r = jax.explain(lambda x: jnp.sort(x) * 2, jnp.ones(3))
    assert page.equations(r) == ["f32[3] = sort(f32[3])", "f32[3] = mul(f32[3], f32[])"]

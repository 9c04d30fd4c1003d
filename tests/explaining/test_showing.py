"""`calque.show`."""

import pathlib
import re
import shutil
import subprocess
import webbrowser
import xml.etree.ElementTree as xml

import pytest

import calque as jax
import calque.numpy as jnp


def layer(x, w):
    return jnp.tanh(x @ w)


def model(x, w):
    y = layer(x, w)
    return jnp.sort(y.sum(0))


X, W = jnp.ones((300, 40)), jnp.ones((40, 30))


def test_the_page_has_graph_timeline_loops_and_lines(tmp_path):
    path = tmp_path / "page.html"
    drawn = jax.show(model, X, W)
    drawn.save(str(path))
    text = path.read_text()
    assert text.startswith("<!doctype html>") and "http" not in text.replace("http-equiv", "")
    for part in re.findall(r"<svg.*?</svg>", text, re.S):
        xml.fromstring(part)
    line = layer.__code__.co_firstlineno + 1
    where = re.findall(rf'<(\w+)[^>]*data-line="[^"]*0:{line}\b', text)
    assert {"span", "g", "summary"} <= set(where)  # source, graph and timeline, loops
    for words in (
        "matmul tanh",
        "One call over time",
        "result 0",
        "for ",
        "the thread of the call",
    ):
        assert words in text
    assert text.count('class="bar"') >= 2 and repr(drawn).startswith("<drawing of model")


def test_steps_are_tied_together():
    text = jax.show(model, X, W)._repr_html_()
    keys = re.findall(r'class="(box|bar|kernel)"[^>]*data-step="(\w[\w ]*-\d+)"', text)
    boxes = {k for kind, k in keys if kind == "box"}
    assert boxes and {k for kind, k in keys if kind == "bar"} <= boxes
    assert {k for kind, k in keys if kind == "kernel"} <= boxes
    assert "<style>" in text and "<!doctype" not in text


def test_sizes_that_vary_and_programs_from_disk():
    f = jax.jit(lambda x: jnp.sort(jnp.sin(x)))
    for n in (20, 21, 22):
        f(jnp.ones(n))
    assert "sin" in jax.show(f, jnp.ones(23)).html()


def test_donated_arguments_are_copied():
    x = jnp.ones(100)
    jax.show(jax.jit(lambda x: x + 1, donate_argnums=0), x)
    assert not x.is_deleted()


def test_a_function_that_does_nothing():
    text = jax.show(lambda x: x, 1.0).html()
    assert "result 0" in text


def test_it_opens_in_a_browser(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    path = jax.show(model, X, W).open()
    assert opened == [f"file://{path}"] and pathlib.Path(path).read_text().startswith("<!doctype")
    pathlib.Path(path).unlink()


def test_what_is_no_function():
    with pytest.raises(TypeError, match="a function is needed"):
        jax.show(3)


BROWSER = (
    shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
)


@pytest.mark.skipif(BROWSER is None, reason="no browser")
def test_pointing_and_choosing_in_a_browser(tmp_path):
    path = tmp_path / "page.html"
    jax.show(model, X, W).save(str(path))
    act = (
        "<script>const box = document.querySelector('g.box[data-line][data-step]');"
        "box.dispatchEvent(new Event('mouseover', {bubbles: true}));"
        "box.dispatchEvent(new Event('click', {bubbles: true}))</script></body>"
    )
    path.write_text(path.read_text().replace("</body>", act))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path}/profile", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
    assert re.search(r'<span class="line lit"', dom) and re.search(r'class="box[^"]* chosen', dom)
    assert re.search(r'<details class="kernel chosen"[^>]*open', dom)

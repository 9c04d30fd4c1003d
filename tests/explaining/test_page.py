"""The page, whole and in a notebook."""

import re

import calque as jax
import calque.numpy as jnp


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

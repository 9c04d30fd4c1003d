"""How notebooks show arrays and programs."""

import html.parser
import re
import subprocess
import sys
import types

import calque as jax
import calque.numpy as jnp
from calque.core import notebooks


class Tags(html.parser.HTMLParser):
    """Checks that tags are closed in order, and keeps the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_arrays_show_their_type_range_and_numbers():
    text = Tags(jnp.arange(12.0).reshape(3, 4)._repr_html_()).text
    for words in ("f32[3,4]", "48 bytes", "0 … 11, mean 5.5", "[ 4.,  5.,  6.,  7.]"):
        assert words in text


def test_numbers_that_are_none_stand_out():
    shown = jnp.array([1.0, jnp.nan, jnp.inf, -3.0])._repr_html_()
    text = Tags(shown).text
    assert "-3 … 1, mean -1" in text and "1 nan" in text and "1 inf" in text
    assert re.search(r"color:#d0453b\">1 nan", shown)
    assert "…" not in Tags(jnp.array([jnp.nan, jnp.nan])._repr_html_()).text


def test_arrays_of_all_kinds():
    for x in (jnp.ones(()), jnp.ones((0, 3)), jnp.ones(3, bool), jnp.ones(3, complex)):
        assert x.aval.str_short() in Tags(x._repr_html_()).text
    assert "bf16[2]" in Tags(jnp.ones(2, "bfloat16")._repr_html_()).text
    assert "key<fry>[]" in Tags(jax.random.key(0)._repr_html_()).text
    x = jnp.ones(3)
    x.delete()
    assert "deleted" in Tags(x._repr_html_()).text


def test_programs_are_coloured():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) < 2)(1.0)
    shown = closed._repr_html_()
    assert Tags(shown).text == str(closed) and shown == closed.jaxpr._repr_html_()
    assert (
        notebooks.coloured("sin", "name") in shown and notebooks.coloured("lambda", "word") in shown
    )
    assert notebooks.coloured("f32[]", "type") in shown


def test_tables():
    shown = notebooks.table_html(["a < b"], ["x"], [["1 & 2"]])
    assert Tags(shown).text == "a < bx1 & 2"


def test_nothing_is_imported_before_a_notebook_asks():
    code = (
        "import sys, calque, calque.numpy as jnp\n"
        "x = jnp.ones(3); str(calque.make_jaxpr(jnp.sin)(x))\n"
        "assert 'calque.core.notebooks' not in sys.modules\nx._repr_html_()\n"
        "assert 'calque.core.notebooks' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_files_and_cells(monkeypatch):
    assert notebooks.file_name("/a/b/c.py") == "c.py"

    class Compile:
        def format_code_name(self, name):
            return ("Cell", "In[3]") if "ipykernel" in name else None

    shell = types.SimpleNamespace(compile=Compile())
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert (
        notebooks.file_name("/tmp/ipykernel_1/2.py") == "Cell In[3]"
        and notebooks.file_name("/a/b/c.py") == "c.py"
    )

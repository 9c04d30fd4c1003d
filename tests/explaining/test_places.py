"""Names of places."""

import sys
import types

from calque.explaining.places import file_name


def test_files_and_cells(monkeypatch):
    assert file_name("/a/b/c.py") == "c.py"

    class Compile:
        def format_code_name(self, name):
            return ("Cell", "In[3]") if "ipykernel" in name else None

    shell = types.SimpleNamespace(compile=Compile())
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert file_name("/tmp/ipykernel_1/2.py") == "Cell In[3]" and file_name("/a/b/c.py") == "c.py"

"""The plugin for pytest: conftests and tests get calque for jax."""

from types import SimpleNamespace

import pytest

from calque.compat import pytest_plugin
from tests.compat.shared import run


def test_the_pytest_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax\nassert jax.__name__ == 'calque'")
    (tmp_path / "test_one.py").write_text("def test_one():\n    import jax\n    jax.numpy.ones(2)")
    options = ("-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path), str(tmp_path))
    plugin = ("-m", "pytest", "-p", "calque.compat.pytest_plugin")
    assert "1 passed" in run(*plugin, "--calque-as-jax", *options)
    assert "1 passed" in run(*plugin, *options, CALQUE_AS_JAX="1")


@pytest.mark.parametrize(
    "option, variable, want", [(True, None, 1), (False, "1", 1), (False, "0", 0)]
)
def test_when_the_switch_is_thrown(monkeypatch, option, variable, want):
    thrown = []
    monkeypatch.setattr(pytest_plugin, "as_jax", lambda: thrown.append(1))
    monkeypatch.delenv(pytest_plugin.VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(pytest_plugin.VARIABLE, variable)
    known = SimpleNamespace(known_args_namespace=SimpleNamespace(calque_as_jax=option))
    pytest_plugin.pytest_load_initial_conftests(known, None, [])
    assert len(thrown) == want

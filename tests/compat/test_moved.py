"""Names of `jax.extend.core` that are answered at their old place too."""

import importlib
import warnings

import pytest

from calque.compat import moved
from tests.compat.shared import served


def test_every_name_is_there():
    core = importlib.import_module("calque.extend.core")
    missing = [n for n in moved.NAMES if not hasattr(core, n)]
    assert missing == ["Effects"] or not missing


def test_they_are_offered_with_a_warning_where_jax_is_served():
    code = """
import warnings, jax
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert jax.core.DropVar is jax.extend.core.DropVar
print(len(said), said[0].category.__name__, jax.core.Atom is not None)
try:
    jax.core.never
except AttributeError as error:
    print("never" in str(error))
"""
    assert served("import jax.extend.core" + code).splitlines() == [
        "1 DeprecationWarning True",
        "True",
    ]


def test_calque_itself_offers_no_old_places():
    with warnings.catch_warnings(), pytest.raises(AttributeError):
        warnings.simplefilter("error")
        _ = importlib.import_module("calque.core").DropVar

"""The small modules: dtypes, flatten_util, test_util, debug, errors, dlpack, typing and others."""

import importlib

import pytest

MODULES = [
    "ad_checkpoint",
    "custom_derivatives",
    "debug",
    "dlpack",
    "dtypes",
    "errors",
    "flatten_util",
    "stages",
    "test_util",
    "tree",
    "tree_util",
    "typing",
]


@pytest.mark.parametrize("name", MODULES)
def test_modules_have_what_they_list(name: str) -> None:
    module = importlib.import_module(f"calque.{name}")
    missing = (
        [n for n in module.__all__ if not hasattr(module, n)] if hasattr(module, "__all__") else []
    )
    assert not missing

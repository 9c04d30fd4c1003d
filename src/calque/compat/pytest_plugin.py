"""pytest plugin: `pytest --calque-as-jax` (or `-p calque.compat.pytest_plugin` with the variable
`CALQUE_AS_JAX=1`) runs tests with `import jax` served by calque."""

import os
from typing import Any

from calque.compat.switch import VARIABLE, as_jax


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--calque-as-jax", action="store_true", help="serve `import jax` by calque in this run"
    )


def pytest_load_initial_conftests(early_config: Any, parser: Any, args: Any) -> None:
    """Before any conftest is imported, which may import jax."""
    if early_config.known_args_namespace.calque_as_jax or os.environ.get(VARIABLE) == "1":
        as_jax()

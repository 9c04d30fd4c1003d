"""Parameters that libraries choose by position or by name."""

import inspect

import pytest

from calque.compat.private.api_util import infer_argnums_and_argnames


def f(a, /, b, c=0, *rest, d=1): ...


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((None, None), ((), ())),
        ((1, None), ((1,), ("b",))),
        (((0, 2), None), ((0, 2), ("c",))),  # a has no name to callers
        ((None, "c"), ((2,), ("c",))),
        ((None, ["b", "d"]), ((1,), ("b", "d"))),  # d has no position
        ((0, "d"), ((0,), ("d",))),
    ],
)
def test_each_follows_from_the_other(given, found) -> None:
    assert infer_argnums_and_argnames(inspect.signature(f), *given) == found

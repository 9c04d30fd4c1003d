"""The help of the functions of distributions."""

import calque.scipy.stats as stats
from calque.scipy.stats import descriptions
from calque.scipy.stats.tables import Distribution


def test_every_example_is_that_of_a_function() -> None:
    for owner, (_, values) in descriptions._EXAMPLES.items():
        distribution = getattr(stats, owner)
        assert isinstance(distribution, Distribution)
        assert set(values) == {k for k, f in vars(distribution).items() if callable(f)}


def test_shapes_are_parameters() -> None:
    for owner, shapes in descriptions._SHAPES.items():
        for name in shapes:
            density = getattr(stats, owner)
            doc = (density.pdf if hasattr(density, "pdf") else density.pmf).__doc__
            assert f"    {name}: {shapes[name]}" in doc

"""What `importlib.metadata` answers about packages that are served."""

from importlib.metadata import DistributionFinder

import pytest

from calque.compat import versions
from calque.compat.distributions import ServedDistribution, distributions
from calque.compat.switch import ModuleFinder


def found(name=None):
    return list(distributions(DistributionFinder.Context(name=name)))


@pytest.mark.parametrize("name", ["jax", "JAX"])
def test_a_package_by_name(name):
    (d,) = found(name)
    assert d.metadata["Name"] == "jax" and d.version == versions.JAX
    assert d.read_text("RECORD") is None and d.files is None and d.requires is None


def test_both_and_no_others():
    assert [d.metadata["Name"] for d in found()] == ["jax", "jaxlib"]
    assert [d.version for d in found("jaxlib")] == [versions.JAXLIB]
    assert found("numpy") == found("jax-extra") == []
    place = ServedDistribution("jax").locate_file("jax/__init__.py")
    assert place.exists()


def test_the_finder_asks_here():
    assert [d.metadata["Name"] for d in ModuleFinder().find_distributions()] == ["jax", "jaxlib"]
    context = DistributionFinder.Context(name="jaxlib")
    assert [d.version for d in ModuleFinder().find_distributions(context)] == [versions.JAXLIB]

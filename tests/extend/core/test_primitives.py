"""All primitives under JAX's names."""

import pytest

import calque
from calque.core.primitives import REGISTRY
from calque.extend import core


def test_primitives_by_name() -> None:
    listed = dir(core.primitives)
    assert {"sin_p", "add_p", "scan_p", "while_p", "cond_p", "jit_p", "dot_general_p"} <= set(
        listed
    )
    assert core.primitives.sin_p is calque.lax.sin_p and calque.extend.core is core
    with pytest.raises(AttributeError, match="nothing_p"):
        core.primitives.nothing_p


def test_every_primitive_has_its_name() -> None:
    for name, p in REGISTRY.items():
        found = getattr(core.primitives, f"{name}_p")
        assert found is p or found is getattr(calque.lax, f"{name}_p"), name
    for name in dir(core.primitives):
        assert name.endswith("_p") and getattr(core.primitives, name) is not None


def test_some_have_two_names() -> None:
    assert core.primitives.remat_p is REGISTRY["remat2"]
    assert core.primitives.add_jaxvals_p is core.primitives.add_any_p


def test_those_of_libraries_are_found_from_their_definition_on() -> None:
    assert not hasattr(core.primitives, "made_just_now_p")
    p = core.Primitive("made_just_now")
    assert core.primitives.made_just_now_p is p and "made_just_now_p" in dir(core.primitives)
    with pytest.raises(AttributeError, match="has no attribute 'sin'"):
        _ = core.primitives.sin

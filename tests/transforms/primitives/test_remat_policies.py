"""Policies of checkpoint: which results are kept."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.remat import (
    checkpoint,
    saved_residuals,
)
from calque.transforms.jit.decorator import jit
from calque.transforms.primitives.remat_policies import checkpoint_policies
from tests.transforms.functions.shared import layer
from tests.transforms.programs import check, close, primitives_of, reference_backend, verified  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([0.4, -0.3, 0.8])


A = np.arange(9.0).reshape(3, 3) / 9


P = checkpoint_policies


def kept(f, *args):
    return [text for _, text in saved_residuals(f, *args)]


def test_what_is_kept():
    g = checkpoint(jit(lambda x: jnp.sin(jnp.sin(x) @ A)))
    assert kept(g, X) == ["from the argument x"]
    assert len(kept(lambda x: jnp.sin(jnp.sin(x) @ A), X)) > 1
    assert any(
        "dot_general" in t
        for t in kept(checkpoint(lambda x: jnp.sin(jnp.sin(x) @ A), policy=P.dots_saveable), X)
    )
    names = kept(checkpoint(lambda x: layer(x, A), policy=P.save_only_these_names("a")), X)
    assert (
        len(names) == 2
        and names[0] == "from the argument x"
        and names[1].startswith("named 'a' from")
    )


def test_answers_of_policies():
    from calque.ad_checkpoint import Offloadable, Recompute, Saveable

    def f(x):
        return jnp.sin(jnp.sin(x))

    answers = {
        "save": Saveable,
        "again": Recompute,
        "elsewhere": Offloadable("device", "pinned_host"),
    }
    kept = {}
    for name, answer in answers.items():
        g = checkpoint(
            f, policy=lambda prim, *_, a=answer, **__: a if prim.name in ("sin", "cos") else False
        )
        kept[name] = len(saved_residuals(g, np.float32(0.3)))
        close(grad(g)(0.3), grad(f)(0.3))
    assert kept["save"] == kept["elsewhere"] > kept["again"]

"""Options that speak of parameters, by position or by name."""

import functools
import gc
import inspect

import pytest

import calque as jax
from calque.transforms.engines import signatures
from calque.transforms.engines.signatures import ArgumentNames, as_tuple, hashable_static, resolve


def f(a, b, *, c=1):
    return a


def test_one_or_several():
    assert as_tuple(None, int, "nums") == () and as_tuple(2, int, "nums") == (2,)
    assert as_tuple(["a", "b"], str, "names") == ("a", "b")
    with pytest.raises(TypeError, match="nums"):
        as_tuple("a", int, "nums")


def test_positions_and_names_follow_from_each_other():
    assert resolve(f, 1, None, "static") == ((1,), ("b",))
    assert resolve(f, None, "a", "static") == ((0,), ("a",))
    assert resolve(f, None, "c", "static") == ((), ("c",))
    assert resolve(f, None, None, "static") == ((), ())


@pytest.mark.parametrize("nums, names", [(5, None), (None, "z"), (1.5, None), (None, 3)])
def test_what_is_no_parameter(nums, names):
    with pytest.raises((ValueError, TypeError), match=r"static|arg"):
        resolve(f, nums, names, "static")


def test_names_of_leaves():
    names = ArgumentNames(f, ({"w": [1, 2]}, 3), {"c": 4})
    assert list(names) == ["a['w'][0]", "a['w'][1]", "b", "c"] and len(names) == 4
    assert names[1] == "a['w'][1]" and names[-1] == "c"
    assert list(ArgumentNames(f, (None, 3), {}, skip=[0])) == ["b"]


def test_static_values_are_keys():
    assert (
        hashable_static(1, 0, "f") != hashable_static(1.0, 0, "f") != hashable_static(True, 0, "f")
    )
    assert hashable_static((1, "a"), 0, "f") == hashable_static((1, "a"), 0, "f")
    with pytest.raises((TypeError, ValueError), match="hash"):
        hashable_static([1], 0, "f")


def test_signatures():
    assert list(signatures.signature_of(f).parameters) == ["a", "b", "c"]
    assert list(signatures.signature_of(functools.partial(f, 1)).parameters) == ["b", "c"]
    assert signatures.signature_of(object()) is None


def test_annotations_may_name_what_is_not_there(tmp_path):
    late = pytest.importorskip("annotationlib", reason="annotations are worked out at once")

    def annotations_of(f):
        return late.get_annotations(f, format=late.Format.FORWARDREF)

    text, path, space = "def f(x: Later, y: int) -> Later: return x * y\n", tmp_path / "f.py", {}
    path.write_text(text)
    exec(compile(text, str(path), "exec", 0, True), space)
    f = space["f"]
    assert list(signatures.signature(f).parameters) == ["x", "y"]
    assert resolve(f, None, "y", "static") == ((1,), ("y",))
    with pytest.raises(NameError):
        inspect.signature(f)
    plain = lambda x: x  # noqa: E731
    signatures.take_annotations(plain, f)
    for made in (plain, jax.grad(f), jax.vmap(f), jax.jit(f), jax.convert(f)):
        found = annotations_of(made)
        assert found["y"] is int and str(found["x"]).startswith("ForwardRef('Later'")
    space["Later"] = float
    assert annotations_of(plain) == {"x": float, "y": int, "return": float}
    assert jax.jit(f, static_argnames="y")(2.0, 3) == 6 and jax.grad(f)(2.0, 3.0) == 3
    assert str(inspect.signature(jax.jit(f))) == str(inspect.signature(f))


def test_annotations_are_taken_as_they_are():
    def source(x: "Later") -> int:  # noqa: F821
        return 1

    def made(x):
        return 2

    signatures.take_annotations(made, source)
    assert made.__annotations__ == {"x": "Later", "return": int}
    signatures.take_annotations(made, functools.partial(source))
    assert made.__annotations__ == {"x": "Later", "return": int}


def test_a_function_is_not_kept_alive():
    def local():
        return 3

    found = signatures.reference(local)
    assert found() is local
    del local
    gc.collect()
    assert found() is None
    assert "f" in signatures.describe_function(f, "f")

"""The fuzzer itself: it draws every public function, prints programs that run, makes failing ones
smaller; and some of its programs, of fixed seeds and of a new one."""

import argparse
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calque
from calque.core import reference, trace
from calque.core.config import config
from calque.core.primitives import REGISTRY
from tests.compositions.checks import on_reference
from tests.compositions.peers import Mismatch, numpy_of
from tests.fuzz import catalogue, forms, laws
from tests.fuzz.__main__ import COUNTS, Blocks, Run, blocks, counted, peer_module
from tests.fuzz.checks import (
    OF_RULES,
    WHOLE,
    Checker,
    crops,
    decided,
    has_subnormals,
    magnifies,
    meaning,
    near,
    tolerance,
)
from tests.fuzz.draw import Draw
from tests.fuzz.generate import (
    MOST_BYTES,
    NEIGHBOURS,
    PARTS,
    Generator,
    Refusal,
    bytes_of,
    configured,
    draw,
    features,
    given,
)
from tests.fuzz.ledger import Ledger
from tests.fuzz.programs import (
    Applied,
    Call,
    Made,
    Program,
    Ref,
    call,
    function,
    named,
    shrink,
    source,
    without_unused,
)
from tests.fuzz.recipes.table import RECIPES
from tests.fuzz.tiers import COMPILED, MACHINE, RULES, SHARES, Evaluated, eagerly, place, tier
from tests.fuzz.values import FILLS, KINDS, TINY, Input, numpy_dtype, value


def test_what_is_left_out_exists_or_is_of_another_version() -> None:
    known = {name for path in catalogue.MODULES for name, _ in catalogue._members(path)}
    gone = [n for n in catalogue.LEFT_OUT if n not in known and named_or_none(n) is None]
    assert len(gone) <= 12, gone  # names of newer and older versions of the interface


def named_or_none(name: str) -> Any:
    try:
        return named(calque, name)
    except (AttributeError, ImportError):
        return None


@pytest.mark.parametrize("module", catalogue.MODULES)
def test_every_function_is_called(module: str) -> None:
    """No public function is forgotten: its arguments can be drawn so that it takes them."""
    missing = []
    for name, signature in catalogue.signatures().items():
        inner = name.removeprefix(module + ".")
        if inner == name or any(
            m != module and len(m) > len(module) and name.startswith(m + ".")
            for m in catalogue.MODULES
        ):
            continue
        if not any(_is_taken(name, signature, seed) for seed in range(30)):
            missing.append(name)
    assert not missing


@pytest.mark.parametrize("form", catalogue.FORMS)
def test_every_form_is_taken(form: str) -> None:
    assert sum(_is_taken(form, None, seed) for seed in range(6)) >= 3


def _is_taken(name: str, signature: Any, seed: int) -> bool:
    d = Draw(np.random.default_rng([seed, 5]), False, False)
    with configured(False):
        try:
            args, keywords = draw(d, name, signature)
            call(calque, Call(name, tuple(args), tuple(keywords.items())), given(d, name))
        except Exception:
            return False
    return True


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_made_of_their_descriptions(kind: str, fill: str) -> None:
    for dtype in dict.fromkeys(KINDS[kind]):
        x = Input(dtype, (3, 3), fill, 4)
        a, b = value(x), value(x)
        assert str(a.dtype) == dtype and a.shape == (3, 3)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("fill", ["plain", "edges", "whole"])
def test_inputs_of_few_bits(name: str, fill: str) -> None:
    x = value(Input(name, (5, 7), fill, 4))
    assert str(x.dtype) == name and len(np.unique(x.astype(float))) > 1
    if name == "uint4":
        assert x.astype(int).min() >= 0


def test_few_bits_are_compared_as_numbers_of_their_kind() -> None:
    a, b = (np.array([k], numpy_dtype("int4")) for k in (3, 4))
    assert tolerance(a, "") == laws.rough(a) == 0.0 < laws.rough(a.astype("float16"))
    assert near(a, a, tolerance(a, "")) and not near(a, b, tolerance(a, ""))
    eighth = np.array([1.0], numpy_dtype("float8_e5m2"))
    assert tolerance(eighth, "") > 0.1 and tolerance(a.astype(float), "", narrow=True) > 1e-6


def test_tiny_dtypes_are_drawn_where_any_may_stand() -> None:
    d = Draw(np.random.default_rng(2), False, False)
    drawn = Counter(d.dtype(kind) for kind in ("any", "real", "single", "bool") for _ in range(300))
    assert set(TINY) <= set(drawn) and 5 < sum(drawn[name] for name in TINY) < 60


def test_what_a_reference_held_and_holds() -> None:
    x = calque.numpy.arange(6.0).reshape(2, 3)
    before, after = forms.referred(calque.new_ref, x, (1, calque.numpy.int32(2)), 7)
    assert before == 5 and after.tolist() == [[0, 1, 2], [3, 4, 7]]
    total, rows = forms.swept(calque.new_ref, calque.lax.fori_loop, lambda y: 2 * y, x)
    assert rows.tolist() == [[0, 1, 2], [6, 8.5, 11]] and total == 28.5


def small_program() -> Program:
    return Program(
        3,
        False,
        (Input("float32", (5,), "plain", 1), Input("float32", (7,), "plain", 2)),
        (
            Call("numpy.sin", (Ref(None, 0),), ()),
            Call("numpy.cumsum", (Ref(None, 1),), (("axis", 0),)),
            Call("numpy.concatenate", ([Ref(0, 0), Ref(1, 0)],), ()),
            Call("numpy.full_like", (Ref(2, 0), Made("numpy.float32", (2,))), ()),
        ),
    )


def test_a_program_runs_and_prints_as_it_runs() -> None:
    p = small_program()
    outs = function(calque, p)(*map(value, p.inputs))
    assert [o.shape for o in outs] == [(5,), (7,), (12,), (12,)]
    scope: dict[str, Any] = {
        "jax": calque,
        "value": value,
        "Input": Input,
        "leaves": calque.tree_util.tree_leaves,
    }
    exec(source(p) + "\n    return f(x0, x1)\ngot = test_program_3()\n", scope)
    for a, b in zip(scope["got"], outs, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_failing_program_becomes_small() -> None:
    def fails(p: Program) -> bool:
        return any(c.function == "numpy.cumsum" for c in p.calls)

    p = shrink(small_program(), fails)
    assert [c.function for c in p.calls] == ["numpy.cumsum"]
    assert not p.calls[0].keywords
    assert [x.shape for x in p.inputs] == [(2,)]


def test_inputs_that_nothing_reads_leave() -> None:
    p = small_program()._replace(calls=small_program().calls[1:2])
    less = without_unused(p)
    assert less.inputs == p.inputs[1:] and less.calls[0].args == (Ref(None, 0),)


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that gives something else when it is traced is reported."""
    from calque.numpy import sin

    monkeypatch.setattr(
        calque.numpy, "sin", lambda x: sin(x) + (1 if isinstance(x, calque.core.Tracer) else 0)
    )
    wrong = Checker(every_check=True).problem(small_program())
    assert wrong is not None and wrong.startswith(("exact", "jit"))


def program_of_forms() -> Program:
    return Program(
        4,
        False,
        (Input("float32", (3, 5), "plain", 1), Input("int32", (2,), "wild_indices", 2)),
        (
            Call("forms.item", (Ref(None, 0), (Ellipsis, slice(None, None, -2))), ()),
            Call("forms.updated", (Ref(0, 0), (Ref(None, 1),), "add", 2), (("mode", "drop"),)),
            Call("forms.scanned", (Made("lax.scan"), Applied("numpy.sin"), Ref(1, 0), True), ()),
            Call("forms.derived", (Made("grad"), Applied("numpy.tanh"), Ref(2, 0)), ()),
        ),
    )


def test_forms_run_and_print_as_they_run() -> None:
    p = program_of_forms()
    outs = function(calque, p)(*map(value, p.inputs))
    assert [o.shape for o in outs] == [(3, 3), (3, 3), (3,), (3, 3), (3,)]
    scope: dict[str, Any] = {
        "jax": calque,
        "value": value,
        "Input": Input,
        "forms": forms,
        "leaves": calque.tree_util.tree_leaves,
    }
    exec(source(p) + "\n    return f(*map(jax.numpy.asarray, (x0, x1)))\n", scope)
    for a, b in zip(scope["test_program_4"](), outs, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


LAWS = (
    "vmap",
    "permuted",
    "padded",
    "unrolled",
    "map",
    "loop",
    "branch",
    "converted",
    "remat",
    "jvp",
)


@pytest.mark.parametrize("law", LAWS)
def test_laws_hold(law: str) -> None:
    p = program_of_forms()
    f, xs = function(calque, p), [value(x) for x in p.inputs]
    getattr(laws, law)(f, p, xs, f(*xs), np.random.default_rng(3))


@pytest.mark.parametrize("law", ["permuted", "padded", "unrolled"])
def test_laws_find_what_breaks_them(law: str) -> None:
    """A function that gives something else where its elements are not known."""
    p = small_program()._replace(inputs=small_program().inputs[:1])

    def broken(x: Any) -> list[Any]:
        try:
            known = bool(x[0] < 100)
        except TypeError:
            known = False
        return [calque.numpy.sin(x) * (1.0 if known else 2.0)]

    xs = [value(x) for x in p.inputs]
    want = [numpy_of(w) for w in broken(*xs)]
    with pytest.raises(Mismatch):
        getattr(laws, law)(broken, p, xs, want, np.random.default_rng(3))


def test_a_thousand_programs_share_functions_and_dtypes() -> None:
    """Neighbours draw from a part of the catalogue; the parts together are all of it."""
    generator = Generator()
    parts = [generator._part(2 * PARTS + k) for k in range(PARTS)]
    assert all(len(names) < len(generator.names) / 4 for names, _ in parts)
    assert all({"float32", "int32", "bool"} < dtypes for _, dtypes in parts)
    assert sorted(n for names, _ in parts for n in names) == sorted(generator.names)
    assert frozenset().union(*(dtypes for _, dtypes in parts)) == set(KINDS["any"])
    assert generator._part(2 * PARTS) == parts[0] != generator._part(3 * PARTS)
    one = Generator(names=("numpy.sin",))
    assert one._part(0) == (("numpy.sin",), frozenset(KINDS["any"]))


def test_features_of_a_program() -> None:
    p = program_of_forms()
    wide = p._replace(x64=True, inputs=(Input("int8", (1, 0), "edges", 1),))
    assert features(p) == {"4 calls", "float32", "int32", "rank 1", "rank 2", "wild_indices"}
    assert features(wide) == {"4 calls", "x64", "int8", "edges", "rank 2", "size 0", "size 1"}


def test_programs() -> None:
    generator, checker = Generator(), Checker(every_check=True)
    failures = []
    for seed in range(30):
        p = generator.program(seed)
        wrong = checker.problem(p)
        if wrong is not None:
            failures.append(f"seed {seed}: {wrong}\n{source(p)}")
    assert not failures, "\n".join(failures)
    assert checker.done["exact"] > 20 and checker.done["meaning"] > 30


@pytest.mark.peer
def test_programs_beside_jax() -> None:
    peer = peer_module() or pytest.skip("JAX is not installed")
    generator, checker = Generator(peer), Checker(peer)
    problems = [checker.problem(generator.program(seed)) for seed in range(5000, 5015)]
    assert not [p for p in problems if p]
    assert checker.done["jax"] > 10
    assert not config.read("calque_enable_x64")


class Asked:
    """A peer that notes what it is asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.config = calque.config

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        raise NotImplementedError(name)


def test_a_peer_is_asked_about_one_call_or_each() -> None:
    few, each = Checker(Asked(), every_call=False), Checker(Asked())
    for seed in range(8):
        p = small_program()._replace(seed=seed)
        assert few.problem(p) is None and each.problem(p) is None
    asked = {c.skipped["jax: JAX refuses: NotImplementedError"]: c for c in (few, each)}
    assert asked == {8: few, 32: each}


def test_one_thing_is_asked_of_a_program_each_as_often() -> None:
    asked: Counter[str] = Counter()
    for seed in range(220):
        rng = np.random.default_rng([seed, 99])
        (name,) = Checker()._asked(small_program(), [np.zeros(3)], rng)
        asked[name] += 1
    assert set(asked) == set(WHOLE) and asked["exact"] > 30
    large = [np.zeros(60_000)]
    rng = np.random.default_rng(1)
    few = {Checker()._asked(small_program(), large, rng)[0] for _ in range(20)}
    assert few == {"exact", "jit", "threads"}
    every = Checker(every_check=True)
    assert every._asked(small_program(), large, rng) == ["exact", "jit", "threads"]
    assert every._asked(small_program(), [np.zeros(3)], rng)[:2] == ["exact", "jit"]


def seed_of(name: str) -> int:
    return next(seed for seed in range(100) if tier(seed) == name)


def test_each_tier_has_its_share() -> None:
    drawn = Counter(tier(seed) for seed in range(2000))
    assert all(abs(drawn[name] - 2000 * share) < 120 for name, share in SHARES.items())
    assert tier(7) == tier(7)


@pytest.mark.parametrize("name", SHARES)
def test_programs_of_each_tier_are_asked_what_is_theirs(name: str) -> None:
    checker = Checker()
    for x in (small_program(), program_of_forms()):
        assert checker.problem(x._replace(seed=seed_of(name))) is None
    asked = {k.removeprefix(f"{name} ") for k in checker.asked}
    assert asked and all(k.startswith(name) for k in checker.asked)
    assert ("meaning" in asked) == (name == MACHINE)
    assert name != RULES or asked <= set(OF_RULES)


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and reverse mode share a wrong rule; differences do not."""

    @calque.custom_jvp
    def sin(x: Any) -> Any:
        return calque.lax.sin(x)

    sin.defjvp(lambda xs, ts: (sin(*xs), ts[0] * calque.lax.sin(xs[0])))
    p = small_program()._replace(inputs=small_program().inputs[:1], calls=small_program().calls[:1])
    xs = [value(x) for x in p.inputs]
    rng = np.random.default_rng(3)
    with on_reference():
        f = function(calque, p)
        laws.differences(f, p, xs, f(*xs), rng)
        monkeypatch.setattr(calque.numpy, "sin", sin)
        laws.jvp(f, p, xs, f(*xs), rng)
        with pytest.raises(Mismatch, match="quotient"):
            laws.differences(f, p, xs, f(*xs), rng)


def test_a_kink_has_no_derivative_to_compare() -> None:
    """Differences across it, of whatever step, agree on half of what is to its right."""
    p = small_program()._replace(inputs=small_program().inputs[:1], calls=small_program().calls[:1])
    zero = [np.zeros(3, np.float32)]
    rng = np.random.default_rng(3)

    def f(x: Any) -> list[Any]:
        return [calque.nn.relu(x)]

    with on_reference(), pytest.raises(laws.Skip, match="derivative to be seen"):
        laws.differences(f, p, zero, f(*zero), rng)


@pytest.mark.parametrize(
    "name, more",
    [("lax.stop_gradient", ()), ("lax.reduce_precision", (4, 3)), ("random.gamma", ())],
)
def test_what_holds_its_derivative_back_is_no_slope(name: str, more: tuple[int, ...]) -> None:
    x = Input("float32", (2,), "plain", 2857)
    drawn = (Made("random.key", (3,), ()),) if name.startswith("random.") else ()
    p = Program(8003247, False, (x,), (Call(name, (*drawn, Ref(None, 0), *more), ()),))
    f, xs = function(calque, p), [value(x)]
    with on_reference(), pytest.raises(laws.Skip, match="no slope"):
        laws.differences(f, p, xs, f(*xs), np.random.default_rng(0))


def test_what_is_rounded_on_the_way_pairs_no_tangents() -> None:
    x = Input("float64", (2,), "plain", 1187)
    p = Program(10024977, True, (x,), (Call("lax.reduce_precision", (Ref(None, 0), 4, 15), ()),))
    with calque.enable_x64():
        f, xs = function(calque, p), [value(x)]
        with pytest.raises(laws.Skip, match="each on its own"):
            laws.jvp(f, p, xs, f(*xs), np.random.default_rng(0))


def test_equal_operands_of_clamp_have_no_slope() -> None:
    x = Input("float32", (2,), "plain", 1)
    low, same = Ref(None, 0), Ref(None, 1)
    inputs = (x._replace(fill="unit"), x)
    p = Program(0, False, inputs, (Call("lax.clamp", (low, same, same), ()),))
    assert laws.tied(p.calls[0]) and not laws.tied(Call("numpy.add", (same, same), ()))
    assert not laws.tied(Call("lax.clamp", (0.0, same, 1.0), ()))
    f, xs = function(calque, p), [value(x) for x in inputs]
    with on_reference(), pytest.raises(laws.Skip, match="no slope"):
        laws.differences(f, p, xs, f(*xs), np.random.default_rng(0))


def test_a_branch_that_ends_at_a_kink_has_no_slope() -> None:
    """`x` where it is positive is turned round, else its absolute value: smooth, but at 0 the
    derivative is that of the absolute value."""
    x, cond = Input("float32", (), "edges", 5073), Made("lax.cond", (), ())
    calls = [Applied("numpy.negative", ()), Applied("numpy.abs", ())]
    call = Call("forms.branched", (cond, *calls, Ref(None, 0)), ())
    p = Program(10142668, False, (x,), (call,))
    f, xs = function(calque, p), [value(x)]
    assert xs[0] == 0
    with on_reference(), pytest.raises(laws.Skip, match="no slope"):
        laws.differences(f, p, xs, f(*xs), np.random.default_rng(0))


def test_what_the_meanings_alone_refuse_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(x: Any) -> Any:
        raise TypeError("no meaning")

    seed = next(s for s in range(100) if tier(s) == RULES)
    assert Generator(None, ("numpy.sin",)).program(seed).calls
    monkeypatch.setattr(REGISTRY["sin"], "meaning", broken)
    with pytest.raises(Refusal, match="no meaning"):
        Generator(None, ("numpy.sin",)).program(seed)


def test_a_number_beyond_the_end_has_no_gradient() -> None:
    x = Input("float32", (2, 2, 1), "plain", 4597)
    for last, beyond in ((1, True), (0, False), (-1, False), (-2, True)):
        item = Call("forms.item", (Ref(None, 0), (slice(-6, 3, 3), slice(9, -6, -1), last)), ())
        p = Program(10197486, False, (x,), (item,))
        assert laws._reads_beyond(p, [value(x)]) == beyond
        alone = p._replace(
            inputs=(x._replace(shape=(1,)),), calls=(item._replace(args=(Ref(None, 0), last)),)
        )
        assert laws._reads_beyond(alone, [value(alone.inputs[0])]) == beyond


def test_a_mesh_of_a_found_size_may_be_of_integers() -> None:
    x = Input("float32", (2,), "plain", 9091)
    p = Program(10149322, False, (x,), (Call("numpy.ix_", (Ref(None, 0), Ref(None, 0)), ()),))
    f, xs = function(calque, p), [value(x)]
    with pytest.raises(laws.Skip, match="of integers"):
        laws.found(f, p, xs, f(*xs), np.random.default_rng(0))


def test_places_beyond_the_end_have_no_cotangent() -> None:
    inputs = (Input("float32", (1, 3), "plain", 286), Input("int32", (2, 1), "indices", 225))
    numbers = Made(
        "lax.GatherDimensionNumbers",
        (),
        (("offset_dims", (1,)), ("collapsed_slice_dims", (0,)), ("start_index_map", (0,))),
    )
    gather = Call("lax.gather", (Ref(None, 0), Ref(None, 1), numbers, (1, 3)), ())
    p = Program(10004897, False, inputs, (gather,))
    f, xs = function(calque, p), [value(x) for x in inputs]
    with pytest.raises(laws.Skip, match="beyond the end"):
        laws.jvp(f, p, xs, f(*xs), np.random.default_rng(0))


def test_complex_numbers_of_single_precision_have_its_room() -> None:
    """Eight bytes hold two floats, whose roundings forward and reverse mode do not share."""
    inputs = tuple(Input("complex64", (1,), "plain", seed) for seed in (9335, 9852))
    p = Program(0, False, inputs, (Call("numpy.inner", (Ref(None, 0), Ref(None, 1)), ()),))
    f, xs = function(calque, p), [value(x) for x in inputs]
    laws.jvp(f, p, xs, f(*xs), np.random.default_rng(0))


def test_nothing_is_served_natively_on_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code that learned a call, and a program that is compiled, do not answer there."""
    asked: list[str] = []
    evaluate, run = reference.evaluate, reference.run

    def counted_evaluate(primitive: Any, *rest: Any) -> Any:
        asked.append(primitive.name)
        return evaluate(primitive, *rest)

    def counted_run(closed: Any, *xs: Any) -> Any:
        asked.append("program")
        return run(closed, *xs)

    monkeypatch.setattr(reference, "evaluate", counted_evaluate)
    monkeypatch.setattr(reference, "run", counted_run)
    x, sinc = calque.numpy.ones(3), calque.numpy.sinc
    program = calque.jit(lambda y: sinc(y) + y)
    for _ in range(3):
        sinc(x), x + x, program(x)
    assert not asked
    for _ in range(3):
        with on_reference():
            asked.clear()
            sinc(x), x + x, program(x)
            assert asked.count("program") == 1 and "add" in asked and "sin" in asked
        asked.clear()
        sinc(x), x + x, program(x)
        assert not asked


def test_a_program_runs_eagerly_where_it_is_told_to() -> None:
    native = trace.evaluator.installed
    f = Evaluated(lambda *_: [trace.evaluator.installed], on_reference)
    assert f(np.ones(3)) == [reference.evaluate] == eagerly(f, f.f)
    assert eagerly(f.f, f.f) == [native] == [trace.evaluator.installed]


def test_results_without_one_answer_are_not_compared_beyond_their_machine() -> None:
    p = small_program()
    with place(COMPILED, 3)():
        f = function(calque, p)
        results = [[x] for x in f(*map(value, p.inputs))]
    assert decided(p, [*map(value, p.inputs)], results)
    bases = p._replace(calls=(Call("numpy.linalg.svd", (Ref(None, 0),), ()),))
    assert not decided(bases, [*map(value, p.inputs)], results)


def program_of_a_sign() -> Program:
    """What is 0 where each product is rounded, and a rounding where one is not."""
    return Program(
        1002487,
        False,
        (Input("float32", (1, 2), "plain", 5597), Input("bool", (1, 2), "plain", 7370)),
        (
            Call("numpy.cross", (Ref(None, 0), Ref(None, 0)), ()),
            Call("numpy.atan2", (Ref(0, 0), Ref(None, 1)), ()),
        ),
    )


def test_a_rounding_that_a_later_call_enlarges_is_no_mismatch() -> None:
    p = program_of_a_sign()
    f, xs = function(calque, p), [value(x) for x in p.inputs]
    want = f(*xs)
    made = [calque.numpy.asarray(x) for x in xs]
    tiny = calque.numpy.full_like(want[0], 3e-8)  # as a product that is not rounded leaves it
    turned = calque.numpy.atan2(tiny, made[1])
    assert laws.matches([tiny, turned], want) is not None
    with pytest.raises(laws.Skip, match="earlier call"):
        laws.close(f, lambda *_: [tiny, turned], p, xs, want, "jit")
    with pytest.raises(Mismatch):  # of the second call alone
        laws.close(f, lambda *_: [want[0], turned], p, xs, want, "jit")


def test_a_ledger_keeps_what_was_run(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "seeds"))
    assert [*ledger.left(range(5, 9))] == [range(5, 9)]
    ledger.add(range(20, 30), [])
    ledger.add(range(5, 5), [])
    ledger.add(range(8), [{"seed": 3, "problem": "jit: wrong", "test": ""}])
    with (tmp_path / "seeds").open("a") as file:
        file.write('{"seeds": [8, ')  # the machine stopped
    assert [*ledger.left(range(2, 40))] == [range(8, 20), range(30, 40)]
    assert not [*ledger.left(range(21, 29))]
    assert ledger.summary().endswith("18 programs, 1 finds: 3")
    nothing = Ledger(None)
    nothing.add(range(3), [])
    assert [*nothing.left(range(3))] == [range(3)]


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    options = argparse.Namespace(
        no_peer=True, functions=("numpy.sin",), every_call=False, every_check=False
    )
    run, ledger = Run(options), Ledger(str(tmp_path / "seeds"))
    run.finds.append({"seed": 2, "problem": "", "test": ""})
    assert counted(run, range(1, 4), float("inf"), ledger) == 0
    assert ledger.entries() == [(range(1, 4), [{"seed": 2, "problem": "", "test": ""}])]
    assert [*ledger.left(range(6))] == [range(1), range(4, 6)]


def test_what_takes_all_memory_is_known_before_it_is_called() -> None:
    row = np.zeros(70_001, "float32")
    many = Call("numpy.meshgrid", (Ref(None, 0), Ref(None, 0)), ())
    few = Call("numpy.sin", (Ref(None, 0),), ())
    by_value = Call("numpy.nonzero", (Ref(None, 0),), ())
    assert bytes_of(many, lambda ref: row) == 2 * 4 * 70_001**2 > MOST_BYTES
    assert bytes_of(few, lambda ref: row) == 4 * 70_001
    assert bytes_of(by_value, lambda ref: row) <= MOST_BYTES


def test_batches_of_matrices_are_short() -> None:
    for seed in range(40):
        d = Draw(np.random.default_rng(seed), False, True, frozenset(KINDS["any"]))
        RECIPES["numpy.linalg.cholesky"](d)
        assert all(np.prod(x.shape) < 1_000_000 for x in d.inputs)


def test_blocks_of_seeds() -> None:
    assert [*blocks(998, 2003)] == [range(998, 1000), range(1000, 2000), range(2000, 2003)]
    assert not [*blocks(5, 5)]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_process_that_dies_costs_one_program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, jobs: int
) -> None:
    """The seed is named, and the seeds behind it are run."""
    started: list[int] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        seed = int(command[command.index("--seed") + 1])
        started.append(seed)
        told = COUNTS + '{"calls": {"numpy.sin": 2}, "features": {"x64": 1}, "asked": {}}\n'
        code, text = (-9, "@3\n@4\n") if seed == 3 else (0, told)
        return subprocess.CompletedProcess(command, code, None, text)

    monkeypatch.setattr(subprocess, "run", run)
    options = argparse.Namespace(
        seed=3, programs=NEIGHBOURS, minutes=1.0, no_peer=True, every_call=False, functions=(),
        jobs=jobs, every_check=False, chains=False, ledger=str(tmp_path / "ledger"),
    )  # fmt: skip
    assert Blocks(options).run() == 1
    assert sorted(started) == [3, 5, NEIGHBOURS]
    printed = capfd.readouterr().out
    assert "# seed 4: the process ended with -9" in printed
    assert "functions in 4 calls" in printed and "'x64': 2" in printed
    assert "1 programs, 1 finds: 4" in printed


def cosines(turns: int) -> Call:
    step = Applied("numpy.cosh", ())
    return Call("forms.looped", (Made("lax.while_loop", (), ()), step, Ref(None, 0), turns), ())


def test_a_loop_may_magnify_roundings() -> None:
    """A last place of the input shows after four hyperbolic cosines, and not after one."""
    x = calque.numpy.asarray(np.linspace(0.5, 1.3, 50, dtype=np.float32))
    for turns, shows in ((1, False), (4, True)):
        with on_reference():
            want = call(calque, cosines(turns), lambda _: x)
        assert magnifies(cosines(turns), lambda _: x, want) is shows


def test_a_running_product_may_overflow_on_its_way() -> None:
    p = Call("numpy.cumprod", (Ref(None, 0),), ())
    x = calque.numpy.asarray(np.float32([1e30, 1e30, 1e-30, 2]))
    huge, wrong = np.float32([1e30, np.inf, np.inf, np.inf]), np.float32([1e30, 1, 1, 1])
    with np.errstate(all="ignore"):
        with pytest.raises(laws.Skip, match="overflows"):
            meaning(p, lambda _: x, [calque.numpy.asarray(huge)])
        with pytest.raises(Mismatch):
            meaning(p, lambda _: x, [calque.numpy.asarray(wrong)])


def test_paddings_that_crop_are_known() -> None:
    x, w = Ref(None, 0), Ref(None, 1)
    negative = [(-1, 2)], ((0, 0), (1, -2))
    assert all(crops(Call("lax.conv_general_dilated", (x, w, (2,), p), ())) for p in negative)
    assert crops(Call("lax.conv_general_dilated", (x, w), (("padding", [(-1, 0)]),)))
    for p in ([(0, 2)], "SAME"):
        assert not crops(Call("lax.conv_general_dilated", (x, w, (2,), p), ()))


def test_subnormal_numbers_are_known() -> None:
    assert has_subnormals(np.array([1, 1e-40], np.float32))
    assert has_subnormals(np.array([1 + 1e-40j], np.complex64))
    for name in ("float8_e5m2", "float8_e4m3fn", "bfloat16", "float16"):
        tiny = calque.numpy.finfo(name).tiny
        assert has_subnormals(np.asarray([tiny]) / 2) and not has_subnormals(np.asarray([tiny, 0]))
    for x in (np.zeros(3, np.float32), np.array([np.nan, np.inf, 1e-37], np.float32), np.arange(3)):
        assert not has_subnormals(x)


def test_wide_inputs_may_meet_floats_that_are_made_of_integers() -> None:
    x, y = Input("int32", (3, 4), "plain", 0), Input("float32", (3, 6), "plain", 1)
    calls = (
        Call("numpy.fft.irfftn", (Ref(None, 0),), ()),
        Call("lax.lt", (Ref(0, 0), Ref(None, 1)), ()),
    )
    p = Program(0, False, (x, y), calls)
    with pytest.raises(laws.Skip, match="made of integers"):
        laws.differences(
            Evaluated(function(calque, p), place(RULES, 0)),
            p,
            [value(x), value(y)],
            None,
            np.random.default_rng(0),
        )

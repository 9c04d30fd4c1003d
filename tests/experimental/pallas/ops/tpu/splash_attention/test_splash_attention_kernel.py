"""Attention under masks, beside a softmax written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental import pallas
from calque.experimental.pallas.ops.tpu import splash_attention as splash
from calque.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
from calque.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
from calque.sharding import Mesh, NamedSharding, PartitionSpec

HEADS, SHARED, QUERIES, KEYS, FEATURES = 4, 2, 6, 8, 5


def values(dtype: str = "float32", shared: int = SHARED) -> tuple[Any, ...]:
    r = np.random.default_rng(1)
    shapes = (HEADS, QUERIES, FEATURES), (shared, KEYS, FEATURES), (shared, KEYS, FEATURES)
    return tuple(r.standard_normal(s).astype(dtype) for s in shapes)


def wanted(
    mask: Any, q: Any, k: Any, v: Any, cap: float | None = None, sinks: Any = None
) -> tuple[Any, Any]:
    """The mixed values and the logarithms of the sums of weights, head by head in float64."""
    mixed, sums = [], []
    for head in range(len(q)):
        at = head * len(k) // len(q)
        scores = q[head].astype(float) @ k[at].astype(float).T
        scores = scores if cap is None else cap * np.tanh(scores / cap)
        weights = np.where(mask[head], np.exp(scores), 0)
        total = weights.sum(-1) + (0 if sinks is None else np.exp(sinks[head]))
        mixed.append(weights / total[:, None] @ v[at])
        sums.append(np.log(total))
    return np.stack(mixed), np.stack(sums)


def every_mask() -> masks.MultiHeadMask:
    shape = QUERIES, KEYS
    causal = masks.CausalMask(shape)
    near = masks.LocalMask(shape, (2, None), offset=1)
    chunks = masks.ChunkedCausalMask(shape, 4)
    return masks.MultiHeadMask([causal, near, chunks | near, causal & masks.FullMask(shape)])


def make(mask: Any, **options: Any) -> Any:
    return splash.make_splash_mha_single_device(mask, **options)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make(masks.FullMask((2, 2))), "head, query and key"),
        (lambda: make(np.ones((2, 3, 3))), "bools"),
        (lambda: splash.BlockSizes(1, 1, block_q_dq=1, use_fused_bwd_kernel=True), "block_q_dq"),
        (lambda: kernel.make_attention_reference(every_mask(), False, "other"), "backward_impl"),
        (
            lambda: splash.make_splash_mha(every_mask(), head_shards=3, q_seq_shards=1),
            "head_shards",
        ),
    ],
)
def test_what_is_no_mask_of_heads_is_refused(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


@pytest.mark.parametrize("cap", [None, 2.0])
def test_heads_share_keys_and_look_where_the_mask_says(cap: float | None) -> None:
    mask, sinks = every_mask(), np.linspace(-1, 1, HEADS).astype(np.float32)
    q, k, v = values()
    attend = make(mask, attn_logits_soft_cap=cap, save_residuals=True)
    for given in (None, sinks):
        mixed, (sums,) = calque.jit(attend)(q, k, v, None, given)
        for found, expected in zip((mixed, sums), wanted(mask[:, :, :], q, k, v, cap, given)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_one_head_of_keys_and_segments() -> None:
    q, k, v = values(shared=1)
    segments = splash.SegmentIds(jnp.arange(QUERIES) // 3, jnp.arange(KEYS) // 3)
    allowed = np.asarray(segments.q)[:, None] == np.asarray(segments.kv)[None]
    mask = masks.make_causal_mask((QUERIES, KEYS), 2)[None].repeat(HEADS, 0)
    expected, _ = wanted(mask & allowed, q, k, v)
    attend = splash.make_splash_mqa_single_device(mask)
    np.testing.assert_allclose(attend(q, k[0], v[0], segments), expected, rtol=1e-5, atol=1e-5)
    reference = splash.make_masked_mqa_reference(mask)
    np.testing.assert_allclose(reference(q, k[0], v[0], segments), expected, rtol=1e-5, atol=1e-5)
    alone = kernel.attention_reference(mask[0], q[0], k[0], v[0], segments)
    np.testing.assert_allclose(alone, expected[0], rtol=1e-5, atol=1e-5)


def test_lanes_slopes_and_the_dtype_of_the_queries() -> None:
    mask = every_mask()
    attend = make(mask, residual_checkpoint_name="seen")
    q, k, v = (calque.numpy.asarray(x) for x in values())
    assert calque.vmap(attend)(q[None].astype("bfloat16"), k[None], v[None]).dtype == jnp.bfloat16
    slope = calque.jit(calque.grad(lambda q: attend(q, k, v).sum()))(q)
    step = 1e-2 * np.random.default_rng(2).standard_normal(q.shape).astype(np.float32)
    ahead, behind = (wanted(mask[:, :, :], np.asarray(q) + s, k, v)[0].sum() for s in (step, -step))
    np.testing.assert_allclose((slope * step).sum(), (ahead - behind) / 2, rtol=1e-2, atol=1e-4)
    policy = calque.checkpoint_policies.save_only_these_names("seen")
    again = calque.grad(calque.checkpoint(lambda q: attend(q, k, v).sum(), policy=policy))(q)
    np.testing.assert_allclose(again, slope, rtol=1e-5, atol=1e-6)


def test_kernels_are_trees_that_shard_map_takes() -> None:
    mesh = Mesh(np.array(calque.devices("cpu")[:1]).reshape(1, 1), ("heads", "places"))
    mask = every_mask()
    attend = splash.make_splash_mha(mask, head_shards=HEADS, q_seq_shards=1)
    assert [x.shape for x in calque.tree.leaves(attend)] == [(HEADS, QUERIES, KEYS)]
    spec = attend.manual_sharding_spec(NamedSharding(mesh, PartitionSpec("heads", "places")))
    assert spec.mask == PartitionSpec("heads", "places", None)
    q, k, v = values(shared=HEADS)
    over = PartitionSpec("heads", "places"), PartitionSpec("heads"), PartitionSpec("heads")
    run = calque.shard_map(
        lambda a, q, k, v: a(q, k, v), mesh=mesh, in_specs=(spec, *over), out_specs=over[0]
    )
    np.testing.assert_allclose(run(attend, q, k, v), attend(q, k, v), rtol=1e-6, atol=1e-6)
    same = make(masks.MultiHeadMask([masks.CausalMask((QUERIES, KEYS))] * HEADS))
    assert calque.tree.leaves(same)[0].shape == (1, QUERIES, KEYS)


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 6, 5), (3, 8, 5), (3, 8, 5)),
        ((4, 6, 5), (2, 8, 4), (2, 8, 5)),
        ((4, 6, 5), (2, 7, 5), (2, 7, 5)),
        ((1, 4, 6, 5), (2, 8, 5), (2, 8, 5)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(shapes: Any) -> None:
    with pytest.raises(ValueError, match=r"shape"):
        make(every_mask())(*(jnp.ones(s) for s in shapes))


def test_tiles_are_kept_and_the_language_of_kernels_is_refused() -> None:
    sizes = splash.BlockSizes(64, 32, block_q_dkv=8, block_kv_dkv=8)
    assert sizes.block_kv_compute == 32 and not sizes.has_backward_blocks
    assert splash.BlockSizes.get_default().has_backward_blocks
    q, k, v = values()
    tiled = make(every_mask(), block_sizes=sizes)(q, k, v)
    assert np.array_equal(tiled, make(every_mask())(q, k, v))
    with pytest.raises(AttributeError, match="pallas_call"):
        pallas.pallas_call

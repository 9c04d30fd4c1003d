"""Attention of many heads under a mask. What JAX writes as a kernel for TPUs is here a program of
products and a softmax, with derivatives of every order, on any device and for any size."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from calque import numpy as jnp
from calque.sharding import NamedSharding, PartitionSpec
from calque.transforms.functions.remat import checkpoint_name
from calque.tree_util import register_pytree_node_class

from .splash_attention_mask import Mask, MultiHeadMask

__all__ = [
    "DEFAULT_MASK_VALUE", "BlockSizes", "QKVLayout", "SegmentIds", "SplashAttentionKernel",
    "attention_reference", "make_attention_reference", "make_masked_mha_reference",
    "make_masked_mqa_reference", "make_splash_mha", "make_splash_mha_single_device",
    "make_splash_mqa", "make_splash_mqa_single_device",
]  # fmt: skip

DEFAULT_MASK_VALUE: Final = -0.7 * float(np.finfo(np.float32).max)


class SegmentIds(NamedTuple):
    """The segment of each query and of each key: queries look at keys of their own segment.

    Args:
        q: The segments of the queries.
        kv: The segments of the keys.

    Example:
        >>> splash_attention.SegmentIds(q=jnp.array([0, 0, 1]), kv=jnp.array([0, 0, 1])).kv
        Array([0, 0, 1], dtype=int32)
    """

    q: Any
    kv: Any


class QKVLayout(enum.IntEnum):
    """Which axis of an array lies innermost in a TPU's memory; it changes no result.

    Example:
        >>> splash_attention.QKVLayout.SEQ_MINOR.name
        'SEQ_MINOR'
    """

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSizes:
    """The sizes of a TPU's tiles: kept and compared, without an effect on results or programs.

    Args:
        block_q: Queries of a tile.
        block_kv: Keys of a tile.
        block_kv_compute: Keys that are computed at a time; `block_kv` if None.
        block_q_dkv: Queries of a tile, for the slopes of keys and values.
        block_kv_dkv: Keys of a tile, for the slopes of keys and values.
        block_kv_dkv_compute: Keys that are computed at a time there; `block_kv_dkv` if None.
        block_q_dq: Queries of a tile, for the slopes of the queries.
        block_kv_dq: Keys of a tile, for the slopes of the queries.
        use_fused_bwd_kernel: Whether one kernel makes all slopes.
        q_layout: Which axis of the queries lies innermost.
        k_layout: Which axis of the keys lies innermost.
        v_layout: Which axis of the values lies innermost.

    Example:
        >>> splash_attention.BlockSizes(block_q=64, block_kv=32).block_kv_compute
        32
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    def __post_init__(self) -> None:
        for name, other in (
            ("block_kv_compute", "block_kv"),
            ("block_kv_dkv_compute", "block_kv_dkv"),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(self, other))
        if self.use_fused_bwd_kernel and (self.block_q_dq or self.block_kv_dq):
            raise ValueError("block_q_dq and block_kv_dq: a fused backward kernel takes neither")

    @property
    def has_backward_blocks(self) -> bool:
        """Whether there are sizes for the backward kernels, too."""
        names = ["block_q_dkv", "block_kv_dkv", "block_kv_dkv_compute"]
        names += [] if self.use_fused_bwd_kernel else ["block_q_dq", "block_kv_dq"]
        return all(getattr(self, name) is not None for name in names)

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Gives sizes that do for most programs.

        Returns:
            Tiles of 128.
        """
        names = [f.name for f in dataclasses.fields(cls) if f.name.startswith("block")]
        return cls(**dict.fromkeys(names, 128))  # type: ignore[arg-type]


class Options(NamedTuple):
    """How scores become weights."""

    mask_value: float = DEFAULT_MASK_VALUE
    attn_logits_soft_cap: float | None = None
    save_residuals: bool = False


def _scores(mask: Any, q: Any, k: Any, segment_ids: SegmentIds | None, options: Options) -> Any:
    """The scores of queries [kv head, group, place, feature], with what is not seen made small."""
    scores = jnp.einsum("kgqd,ktd->kgqt", q.astype(jnp.float32), k.astype(jnp.float32))
    cap = options.attn_logits_soft_cap
    if cap is not None:
        scores = jnp.tanh(scores / cap) * cap
    if segment_ids is not None:
        mask = mask & (segment_ids.q[:, None] == segment_ids.kv[None, :])
    return jnp.where(mask, scores, options.mask_value)


def _attended(
    mask: Any, q: Any, k: Any, v: Any, segment_ids: SegmentIds | None, sinks: Any, options: Options
) -> tuple[Any, Any]:
    """The mixed values of each query in float32 and the logarithms of the sums of its weights: of
    q [heads, queries, features], k and v [heads that share keys, keys, features] and a mask [1 or
    heads, queries, keys]."""
    heads, shared = q.shape[0], k.shape[0]
    groups = shared, heads // shared
    q = q.reshape(*groups, *q.shape[1:])
    mask = jnp.broadcast_to(mask, (heads, *mask.shape[1:])).reshape(*groups, *mask.shape[1:])
    scores = _scores(mask, q, k, segment_ids, options)
    most = scores.max(-1)
    if sinks is not None:
        sinks = jnp.asarray(sinks, scores.dtype).reshape(*groups, 1)
        most = jnp.maximum(most, sinks)
    weights = jnp.exp(scores - most[..., None])
    total = weights.sum(-1)
    if sinks is not None:
        total = total + jnp.exp(sinks - most)
    mixed = jnp.einsum("kgqt,ktd->kgqd", weights / total[..., None], v.astype(jnp.float32))
    sums = most + jnp.log(total)
    return mixed.reshape(heads, *mixed.shape[2:]), sums.reshape(heads, *sums.shape[2:])


def _checked(mask: Any, q: Any, k: Any, v: Any, sinks: Any, one_head: bool) -> tuple[Any, Any]:
    """Keys and values with an axis of heads, once all shapes fit."""
    wanted = 2 if one_head else 3
    if q.ndim != 3 or k.ndim != wanted or v.ndim != wanted:
        raise ValueError(
            f"q has the axes head, place and feature, k and v have {wanted}; got shapes"
            f" {q.shape}, {k.shape} and {v.shape}; calque.vmap adds an axis of a batch"
        )
    k, v = (x[None] if one_head else x for x in (k, v))
    if k.shape[:2] != v.shape[:2] or k.shape[2] != q.shape[2] or q.shape[0] % k.shape[0]:
        raise ValueError(
            "k and v must have as many heads and places, k the features of q, and the heads of q"
            f" must be a multiple of theirs; got shapes {q.shape}, {k.shape} and {v.shape}"
        )
    if mask.shape[0] not in (1, q.shape[0]) or mask.shape[1:] != (q.shape[1], k.shape[1]):
        raise ValueError(
            f"the mask is of shape {mask.shape}, and q and k ask for"
            f" {(q.shape[0], q.shape[1], k.shape[1])}"
        )
    if sinks is not None and sinks.shape != (q.shape[0],):
        raise ValueError(
            f"sinks: one number for each head of q, {q.shape[0]}, got shape {sinks.shape}"
        )
    return k, v


def attention_reference(
    mask: Any,
    q: Any,
    k: Any,
    v: Any,
    segment_ids: SegmentIds | None,
    sinks: Any = None,
    *,
    mask_value: float = DEFAULT_MASK_VALUE,
    save_residuals: bool = False,
    custom_type: str = "flash",
    attn_logits_soft_cap: float | None = None,
) -> Any:
    """Attends with one head, in float32.

    Args:
        mask: Which keys each query looks at: `[queries, keys]`.
        q: The queries, `[queries, features]`; they are not scaled.
        k: The keys, `[keys, features]`.
        v: The values, `[keys, features]`.
        segment_ids: The segments of queries and keys, or None.
        sinks: The score of a place that is always seen and has no value, or None.
        mask_value: The score of places that are not seen.
        save_residuals: Whether to return the logarithms of the sums of weights as well.
        custom_type: Which backward rule JAX's kernel takes; all are the same derivative.
        attn_logits_soft_cap: What scores are smoothly kept below, or None.

    Returns:
        The mixed values, and with `save_residuals` a tuple of the logarithms behind them.

    Example:
        >>> attention_reference = splash_attention.splash_attention_kernel.attention_reference
        >>> x = jnp.ones((3, 4))
        >>> attention_reference(splash_attention.make_causal_mask((3, 3)), x, x, x, None).shape
        (3, 4)
    """
    options = Options(mask_value, attn_logits_soft_cap, save_residuals)
    sinks = None if sinks is None else jnp.reshape(sinks, (1,))
    mixed, sums = _attended(
        jnp.asarray(mask)[None], q[None], k[None], v[None], segment_ids, sinks, options
    )
    return (mixed[0], (sums[0],)) if save_residuals else mixed[0]


def make_attention_reference(
    mask: Any, is_mqa: bool, backward_impl: str = "vanilla", **params: Any
) -> Callable[..., Any]:
    """Makes a function that attends with many heads, in float32.

    Args:
        mask: A mask of heads, or an array `[heads, queries, keys]`.
        is_mqa: Whether all heads share one head of keys and values.
        backward_impl: Which backward rule JAX takes; all are the same derivative.
        params: Options of `attention_reference` that stay.

    Returns:
        A function of `q, k, v, segment_ids, sinks` and of the other options.

    Example:
        >>> mask = splash_attention.make_causal_mask((3, 3))[None]
        >>> x = jnp.ones((1, 3, 4))
        >>> splash_attention.make_masked_mha_reference(mask)(x, x, x).shape
        (1, 3, 4)
    """
    if backward_impl not in ("vanilla", "custom", "custom_vanilla"):
        raise ValueError(f"backward_impl: vanilla, custom or custom_vanilla, got {backward_impl!r}")
    kept = _stored(mask)

    def attend(
        q: Any,
        k: Any,
        v: Any,
        segment_ids: SegmentIds | None = None,
        sinks: Any = None,
        **named: Any,
    ) -> Any:
        options = Options(**{**params, **named})
        k, v = _checked(kept, q, k, v, sinks, is_mqa)
        mixed, sums = _attended(kept, q, k, v, segment_ids, sinks, options)
        return (mixed, (sums,)) if options.save_residuals else mixed

    return attend


make_masked_mha_reference = partial(make_attention_reference, is_mqa=False)
make_masked_mqa_reference = partial(make_attention_reference, is_mqa=True)


def _stored(mask: Any, whole: bool = False) -> Any:
    """A mask as an array, of one head where all have the same and `whole` is not asked for."""
    if len(mask.shape) != 3:
        raise ValueError(f"mask: its axes are head, query and key, got shape {mask.shape}")
    if (
        isinstance(mask, MultiHeadMask)
        and not whole
        and all(m == mask.masks[0] for m in mask.masks[1:])
    ):
        mask = mask[:1, :, :]
    elif isinstance(mask, Mask):
        mask = mask[:, :, :]
    if mask.dtype != np.bool_:
        raise ValueError(f"mask: an array of bools, got {mask.dtype}")
    return jnp.asarray(mask)


@register_pytree_node_class
class SplashAttentionKernel:
    """Attention under a mask, as `make_splash_mha` and `make_splash_mqa` give it."""

    def __init__(
        self,
        mask: Any,
        *,
        is_mqa: bool,
        options: Options,
        block_sizes: BlockSizes,
        residual_checkpoint_name: str | None,
    ) -> None:
        self.mask = mask
        self.kwargs: dict[str, Any] = {
            "is_mqa": is_mqa,
            "options": options,
            "block_sizes": block_sizes,
            "residual_checkpoint_name": residual_checkpoint_name,
        }

    def __call__(
        self, q: Any, k: Any, v: Any, segment_ids: SegmentIds | None = None, sinks: Any = None
    ) -> Any:
        """Attends.

        Args:
            q: The queries, `[heads, queries, features]`; they are not scaled.
            k: The keys, `[heads, keys, features]`, without the axis of heads if all share one.
                Fewer heads than those of `q` are shared by as many neighbours each.
            v: The values, like `k`.
            segment_ids: The segments of queries and keys, or None.
            sinks: For each head the score of a place that is always seen and has no value, or None.

        Returns:
            The mixed values in the dtype of `q`, and with `save_residuals` a tuple of the
            logarithms of the sums of weights behind them.
        """
        options: Options = self.kwargs["options"]
        k, v = _checked(self.mask, q, k, v, sinks, self.kwargs["is_mqa"])
        mixed, sums = _attended(self.mask, q, k, v, segment_ids, sinks, options)
        mixed = mixed.astype(q.dtype)
        name = self.kwargs["residual_checkpoint_name"]
        if name is not None:
            mixed, sums = checkpoint_name(mixed, name), checkpoint_name(sums, name)
        return (mixed, (sums,)) if options.save_residuals else mixed

    def manual_sharding_spec(self, sharding: NamedSharding) -> SplashAttentionKernel:
        """Gives what `shard_map` takes as the specification of this kernel.

        Args:
            sharding: How heads and queries lie over devices.

        Returns:
            A kernel whose mask is a `PartitionSpec`.
        """
        if len(sharding.spec) != 2:
            raise ValueError(f"sharding: it names heads and queries, got {sharding.spec}")
        heads, queries = sharding.spec
        spec = PartitionSpec(None if self.mask.shape[0] == 1 else heads, queries, None)
        return SplashAttentionKernel(spec, **self.kwargs)

    def tree_flatten(self) -> tuple[tuple[Any], tuple[tuple[str, Any], ...]]:
        return (self.mask,), tuple(self.kwargs.items())

    @classmethod
    def tree_unflatten(
        cls, kept: tuple[tuple[str, Any], ...], values: Any
    ) -> SplashAttentionKernel:
        (mask,) = values
        return cls(mask, **dict(kept))


def make_splash_mha(
    mask: Any,
    *,
    block_sizes: BlockSizes | None = None,
    is_mqa: bool = False,
    save_residuals: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int,
    q_seq_shards: int,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    """Makes attention in which each head has keys and values, or some heads share them.

    Args:
        mask: A mask of heads, or an array of bools `[heads, queries, keys]`.
        block_sizes: Tiles of a TPU; they have no effect here.
        is_mqa: Whether all heads share one head of keys and values.
        save_residuals: Whether to return the logarithms of the sums of weights as well.
        mask_value: The score of places that are not seen.
        attn_logits_soft_cap: What scores are smoothly kept below, or None.
        downcast_smem_data: How a TPU keeps what it knows of the mask; it has no effect here.
        head_shards: Over how many devices the heads lie.
        q_seq_shards: Over how many devices the queries lie.
        residual_checkpoint_name: The name by which a policy of `checkpoint` keeps the results.
        interpret: Whether JAX interprets its kernel; it has no effect here.

    Returns:
        A function of `q, k, v, segment_ids, sinks`.

    Example:
        >>> import calque.numpy as jnp
        >>> from calque.experimental.pallas.ops.tpu import splash_attention
        >>> mask = splash_attention.MultiHeadMask([splash_attention.CausalMask((3, 3))] * 2)
        >>> attend = splash_attention.make_splash_mha(mask, head_shards=1, q_seq_shards=1)
        >>> x = jnp.ones((2, 3, 4))
        >>> attend(x, x, x).shape
        (2, 3, 4)
    """
    for name, count, size in zip(
        ("head_shards", "q_seq_shards"), (head_shards, q_seq_shards), mask.shape
    ):
        if count < 1 or size % count:
            raise ValueError(f"{name}: a divisor of {size}, got {count}")
    return SplashAttentionKernel(
        _stored(mask, whole=head_shards > 1),
        is_mqa=is_mqa,
        options=Options(mask_value, attn_logits_soft_cap, save_residuals),
        block_sizes=block_sizes or BlockSizes.get_default(),
        residual_checkpoint_name=residual_checkpoint_name,
    )


make_splash_mqa = partial(make_splash_mha, is_mqa=True)
make_splash_mha_single_device = partial(make_splash_mha, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = partial(make_splash_mqa, head_shards=1, q_seq_shards=1)

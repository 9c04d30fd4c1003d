"""The analysis of random keys, by the names that JAX gives its parts."""

from calque.transforms.functions.key_reuse import (
    assert_consumed,
    assert_consumed_p,
    assert_unconsumed,
    check_key_reuse,
    check_key_reuse_jaxpr,
    consume,
    consume_p,
    function_type_signature,
    jaxpr_type_signature,
)
from calque.transforms.functions.key_signatures import (
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    key_reuse_signatures,
)

__all__ = [
    "Forward", "KeyReuseSignature", "Sink", "Source", "assert_consumed", "assert_consumed_p",
    "assert_unconsumed", "check_key_reuse", "check_key_reuse_jaxpr", "consume", "consume_p",
    "function_type_signature", "jaxpr_type_signature", "key_reuse_signatures",
]  # fmt: skip

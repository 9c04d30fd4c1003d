exec(open("/tmp/sym/edit1.py").read().split("sub('ops/sizes.py'")[0])
sub(
    "numpy/contractions.py",
    (
        "from calque.ops.dimension_numbers import canonical_precision\n",
        "from calque.ops.dimension_numbers import canonical_precision\nfrom calque.ops.sizes import places\n",
    ),
)
sub(
    "numpy/padding.py",
    (
        "from calque.numpy.shaping import concatenate, flip, moveaxis, section\n",
        "from calque.numpy.shaping import concatenate, flip, moveaxis, section, where\nfrom calque.ops.sizes import places\n",
    ),
    ("where(at < n, at, period - at - 1 + offset)", "chosen(at < n, at, period - at - 1 + offset)"),
    (
        "def _taken(x: Any, k: int, places: np.ndarray) -> Any:\n    return x[(slice(None),) * k + (places.astype(np.int32),)]\n",
        '''def _taken(x: Any, k: int, at: Any) -> Any:
    return x[(slice(None),) * k + (at.astype(np.int32),)]


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """`where` for places, which NumPy knows unless a size is free."""
    return np.where(condition, a, b) if isinstance(condition, np.ndarray) else where(condition, a, b)
''',
    ),
)
sub(
    "numpy/indexing.py",
    ("from calque.ops.sizes import as_number\n", "from calque.ops.sizes import as_number, places\n"),
)
sub(
    "numpy/histograms.py",
    ("import operator\n", ""),
    (
        "from calque.core.dtypes import canonicalize, is_integer\n",
        "from calque.core.dims import as_size\nfrom calque.core.dtypes import canonicalize, is_integer\n",
    ),
)
sub(
    "numpy/fft.py",
    ("import operator\n", ""),
    (
        "from calque.core.dtypes import canonicalize, complex_of",
        "from calque.core.dims import as_size\nfrom calque.core.dtypes import canonicalize, complex_of",
    ),
    ("moveaxis, roll, section\n", "moveaxis, roll, section, where\n"),
    (
        "from calque.ops import fft as lax_fft\n",
        "from calque.ops import fft as lax_fft\nfrom calque.ops.sizes import as_number, places\n",
    ),
)
sub(
    "ops/slicing.py",
    (
        "from calque.ops.layout import Shape, broadcast_in_dim, canonical_axis, canonical_shape, linear_jvp, unary_transpose\n",
        "from calque.ops.layout import Shape, broadcast_in_dim, canonical_axis, canonical_shape, linear_jvp, unary_transpose\nfrom calque.ops.sizes import as_number\n",
    ),
)
sub(
    "numpy/polynomials.py",
    (
        "import array_of, arrays, broadcast_to, convert, promote_dtypes, promote_inexact\n",
        "import (\n    array_of,\n    arrays,\n    broadcast_shapes,\n    broadcast_to,\n    convert,\n    promote_dtypes,\n    promote_inexact,\n)\n",
    ),
)
sub(
    "numpy/sorting.py",
    (
        "from calque.numpy.ufuncs import UFUNCS\n",
        "from calque.numpy.ufuncs import UFUNCS\nfrom calque.ops.sizes import as_number, places\nfrom calque.transforms.loops import fori_loop\n",
    ),
    (
        """    high = broadcast_to(np.asarray(n, i32), shape)
    for _ in range(max(n, 0).bit_length()):
        mid = do.shift_right_logical(do.add(low, high), np.ones((), i32))
        at = indexing.getitem(a, do.min(mid, np.asarray(max(n - 1, 0), i32)))
        right = _before(at, v) if side == "left" else getattr(do, "not")(_before(v, at))
        right = getattr(do, "and")(right, do.lt(low, high))
        low, high = do.select_n(right, low, do.add(mid, np.ones((), i32))), do.select_n(right, mid, high)
    return low
""",
        """    high = broadcast_to(as_number(n, i32), shape)
    last = as_number(n - 1 if n > 0 else 0, i32)

    def halved(_: Any, bounds: Any) -> Any:
        low, high = bounds
        mid = do.shift_right_logical(do.add(low, high), np.ones((), i32))
        at = indexing.getitem(a, do.min(mid, last))
        right = _before(at, v) if side == "left" else getattr(do, "not")(_before(v, at))
        right = getattr(do, "and")(right, do.lt(low, high))
        return do.select_n(right, low, do.add(mid, np.ones((), i32))), do.select_n(right, mid, high)

    if type(n) is Dim:
        bits = np.asarray(np.iinfo(i32).bits, i32)
        return fori_loop(0, do.sub(bits, do.clz(as_number(n, i32))), halved, (low, high))[0]
    for k in range(n.bit_length()):
        low, high = halved(k, (low, high))
    return low
""",
    ),
    (
        "from calque.core.dtypes import canonicalize, is_complex,",
        "from calque.core.dims import Dim\nfrom calque.core.dtypes import canonicalize, is_complex,",
    ),
)
sub(
    "numpy/diagonals.py",
    ("from calque.core.dims import Dim\n", ""),
    (
        "from calque.numpy.sorting import nonzero\n",
        "from calque.numpy.sorting import nonzero\nfrom calque.ops.sizes import places\n",
    ),
)
sub(
    "nn/attention.py",
    (
        "from calque.numpy.ufuncs import UFUNCS\n",
        "from calque.numpy.ufuncs import UFUNCS\nfrom calque.ops.sizes import places\n",
    ),
)

import re


def sub(path, *pairs):
    p = "/work/main/src/calque/" + path
    s = open(p).read()
    for a, b in pairs:
        assert s.count(a) == 1, (path, a, s.count(a))
        s = s.replace(a, b)
    open(p, "w").write(s)


sub(
    "ops/sizes.py",
    (
        """def as_number(""",
        '''def places(n: Any, dtype: Any = np.int32) -> Any:
    """0, 1, ... n - 1: known while tracing, unless the size is free."""
    if type(n) is dims.Dim:
        return do.iota(dtype=np.dtype(dtype), shape=(n,), dimension=0, sharding=None)
    return np.arange(n, dtype=dtype)


def as_number(''',
    ),
)
sub("numpy/contractions.py", ("k = np.arange(size, dtype=np.int32)\n", "k = places(size)\n"))
sub(
    "numpy/padding.py",
    (
        "x = _taken(x, k, np.arange(-before, x.shape[k] + after) % x.shape[k])",
        "x = _taken(x, k, (places(before + x.shape[k] + after) - before) % x.shape[k])",
    ),
    (
        "places = np.arange(-before, n + after) % period\n                x = _taken(x, k, np.where(places < n, places, period - places - 1 + offset))",
        "at = (places(before + n + after) - before) % period\n                x = _taken(x, k, where(at < n, at, period - at - 1 + offset))",
    ),
)
sub(
    "numpy/indexing.py",
    (
        "i = np.arange(length, dtype=np.int32) * np.int32(step) + np.int32(start)",
        "i = as_number(start, np.int32) + places(length) * np.int32(step)",
    ),
)
sub("numpy/histograms.py", ("        length = operator.index(length)\n", "        length = as_size(length)\n"))
sub(
    "numpy/fft.py",
    (
        "        operator.index(n) if n is not None and n != -1 else x.shape[k]",
        "        as_size(n) if n is not None and n != -1 else x.shape[k]",
    ),
    ("    n = operator.index(n)\n    if n == 0:", "    n = as_size(n)\n    if n == 0:"),
    (
        "places = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]).astype(dtype)\n",
        "at = places(n)\n    at = where(at < (n + 1) // 2, at, at - n)\n",
    ),
    ('return _spaced("fftfreq", places, n, d, dtype)', 'return _spaced("fftfreq", at.astype(dtype), n, d, dtype)'),
    ("np.arange(n // 2 + 1).astype(dtype)", "places(n // 2 + 1).astype(dtype)"),
    ("convert(d, dtype) * np.asarray(n, dtype)", "convert(d, dtype) * as_number(n, dtype)"),
)
sub(
    "ops/slicing.py",
    ("do.add(strong, np.asarray(size, aval.dtype))", "do.add(strong, as_number(size, aval.dtype))"),
    (
        "return np.asarray(value + size if value < 0 and allow_negative else value, dtype)",
        "return as_number(value + size if value < 0 and allow_negative else value, dtype)",
    ),
)
sub(
    "numpy/averages.py",
    ("np.asarray(n, x.real.dtype)\n        norm: Any", "as_number(n, x.real.dtype)\n        norm: Any"),
)
sub(
    "numpy/polynomials.py",
    (
        "    shape = np.broadcast_shapes(p.shape[1:], x.shape)\n    y = asarray",
        '    shape = broadcast_shapes("polyval", p.shape[1:], x.shape)\n    y = asarray',
    ),
)
sub(
    "numpy/sorting.py",
    (
        "line = np.arange(full[i], dtype=np.int32) if own[i] != 1 else np.zeros(full[i], np.int32)\n            parts.append(np.broadcast_to(line.reshape((-1,) + (1,) * (n - i - 1)), full))",
        "line = reshape(places(full[i] if own[i] != 1 else 1), (-1,) + (1,) * (n - i - 1))\n            parts.append(broadcast_to(line, full))",
    ),
)
sub(
    "numpy/diagonals.py",
    ("    line = np.arange(n, dtype=np.int32)\n    return a.at", "    line = places(n)\n    return a.at"),
    ("v[np.arange(n, dtype=np.int32) % v.shape[0]]", "v[places(n) % v.shape[0]]"),
    (
        """    if type(n) is Dim:
        return do.iota(dtype=np.dtype("int32"), shape=(n, 1) if axis == 0 else (1, n), dimension=axis, sharding=None)
    return np.arange(n, dtype=np.int32).reshape((-1, 1) if axis == 0 else (1, -1))""",
        """    return places(n).reshape((-1, 1) if axis == 0 else (1, -1))""",
    ),
)
sub(
    "nn/attention.py",
    ("np.arange(t)[None, :, None, None]", "places(t)[None, :, None, None]"),
    ("np.arange(t)[:, None], np.arange(s)[None, :]", "places(t)[:, None], places(s)[None, :]"),
)

"""calque.numpy: NumPy's functions on calque's arrays, in JAX's names. The examples of its help
begin with `import calque.numpy as jnp`."""

import sys as _sys
from typing import TYPE_CHECKING

import numpy as _np
from numpy import (
    character,
    complexfloating,
    e,
    euler_gamma,
    flexible,
    floating,
    generic,
    inexact,
    inf,
    integer,
    nan,
    newaxis,
    number,
    object_,
    pi,
    signedinteger,
    unsignedinteger,
)
from numpy.exceptions import ComplexWarning

from calque.core import guards as _guards
from calque.core import lazy as _lazy
from calque.core.arrays import Array as ndarray
from calque.core.dtypes import finfo, iinfo
from calque.numpy.calls import cached as _cached
from calque.numpy.indexing import subscripts as _subscripts
from calque.numpy.methods import attaching as _attaching
from calque.numpy.scalars import *  # noqa: F403
from calque.numpy.scalars import ABSENT as _ABSENT
from calque.numpy.scalars import SCALAR_TYPES as _SCALAR_TYPES

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.numpy import fft, linalg
    from calque.numpy.arranging import (
        argpartition,
        block,
        lexsort,
        partition,
        rollaxis,
        rot90,
        sort_complex,
        unstack,
    )
    from calque.numpy.averages import average, corrcoef, count_nonzero, cov, percentile
    from calque.numpy.buffers import (
        array_repr,
        array_str,
        frombuffer,
        fromfile,
        fromiter,
        fromstring,
        get_printoptions,
        load,
        printoptions,
        save,
        savez,
        set_printoptions,
    )
    from calque.numpy.calculus import (
        convolve,
        correlate,
        cumulative_prod,
        cumulative_sum,
        diff,
        ediff1d,
        gradient,
        interp,
        trapezoid,
        unwrap,
    )
    from calque.numpy.choosing import (
        argwhere,
        choose,
        compress,
        extract,
        flatnonzero,
        piecewise,
        ravel_multi_index,
        select,
        unravel_index,
    )
    from calque.numpy.contractions import (
        diagonal,
        dot,
        inner,
        kron,
        matmul,
        matvec,
        outer,
        tensordot,
        trace,
        vdot,
        vecdot,
        vecmat,
    )
    from calque.numpy.conversions import (
        array,
        asarray,
        copy,
    )
    from calque.numpy.creation import (
        empty,
        empty_like,
        full,
        full_like,
        ones,
        ones_like,
        zeros,
        zeros_like,
    )
    from calque.numpy.diagonals import (
        diag,
        diag_indices,
        diag_indices_from,
        diagflat,
        fill_diagonal,
        mask_indices,
        tri,
        tril,
        tril_indices,
        tril_indices_from,
        triu,
        triu_indices,
        triu_indices_from,
    )
    from calque.numpy.editing import (
        append,
        delete,
        insert,
        place,
        put,
        put_along_axis,
        resize,
        trim_zeros,
    )
    from calque.numpy.elementwise import angle, divmod, frexp, gcd, lcm, ldexp, modf, nan_to_num
    from calque.numpy.grids import (
        broadcast_shapes,
        c_,
        fromfunction,
        geomspace,
        index_exp,
        indices,
        ix_,
        logspace,
        meshgrid,
        mgrid,
        ogrid,
        r_,
        s_,
    )
    from calque.numpy.histograms import (
        bincount,
        digitize,
        histogram,
        histogram2d,
        histogram_bin_edges,
        histogramdd,
    )
    from calque.numpy.indexing.notation import einsum, einsum_path
    from calque.numpy.joining import (
        array_split,
        column_stack,
        concat,
        concatenate,
        dsplit,
        dstack,
        hsplit,
        hstack,
        split,
        stack,
        vsplit,
        vstack,
    )
    from calque.numpy.linalg.products import cross_product as cross
    from calque.numpy.matrices import eye, identity
    from calque.numpy.moving import (
        flip,
        fliplr,
        flipud,
        repeat,
        roll,
        tile,
    )
    from calque.numpy.namespace import __array_api_version__, __array_namespace_info__
    from calque.numpy.nans import nanmean, nanstd, nanvar
    from calque.numpy.packing import packbits, unpackbits
    from calque.numpy.padding import pad
    from calque.numpy.polynomials import (
        poly,
        polyadd,
        polyder,
        polydiv,
        polyfit,
        polyint,
        polymul,
        polysub,
        polyval,
        roots,
        vander,
    )
    from calque.numpy.predicates import allclose, array_equal, array_equiv, isclose
    from calque.numpy.public.arithmetic import (
        abs,
        absolute,
        ceil,
        copysign,
        divide,
        fabs,
        floor,
        floor_divide,
        fmax,
        fmin,
        fmod,
        heaviside,
        hypot,
        mod,
        nextafter,
        positive,
        reciprocal,
        remainder,
        rint,
        sign,
        spacing,
        square,
        true_divide,
        trunc,
    )
    from calque.numpy.public.comparisons import (
        bitwise_count,
        bitwise_invert,
        bitwise_left_shift,
        bitwise_not,
        bitwise_right_shift,
        equal,
        greater,
        greater_equal,
        invert,
        iscomplex,
        isfinite,
        isinf,
        isnan,
        isneginf,
        isposinf,
        isreal,
        left_shift,
        less,
        less_equal,
        logical_not,
        not_equal,
        right_shift,
        signbit,
    )
    from calque.numpy.public.complex_parts import conj, conjugate, imag, real
    from calque.numpy.public.folds import (
        all,
        amax,
        amin,
        any,
        argmax,
        argmin,
        cumprod,
        cumsum,
        max,
        min,
        prod,
        sum,
    )
    from calque.numpy.public.nan_folds import (
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmin,
        nanprod,
        nansum,
    )
    from calque.numpy.public.objects import (
        add,
        bitwise_and,
        bitwise_or,
        bitwise_xor,
        logaddexp,
        logaddexp2,
        logical_and,
        logical_or,
        logical_xor,
        maximum,
        minimum,
        multiply,
        negative,
        subtract,
    )
    from calque.numpy.public.powers import (
        acos,
        acosh,
        arccos,
        arccosh,
        arcsin,
        arcsinh,
        arctan,
        arctan2,
        arctanh,
        asin,
        asinh,
        atan,
        atan2,
        atanh,
        cbrt,
        cos,
        cosh,
        deg2rad,
        degrees,
        exp,
        exp2,
        expm1,
        float_power,
        i0,
        log,
        log1p,
        log2,
        log10,
        rad2deg,
        radians,
        sin,
        sinc,
        sinh,
        sqrt,
        tan,
        tanh,
    )
    from calque.numpy.public.quantiles import (
        median,
        nanmedian,
        nanpercentile,
        nanquantile,
        quantile,
    )
    from calque.numpy.queries import (
        astype,
        can_cast,
        iscomplexobj,
        isdtype,
        isrealobj,
        isscalar,
        issubdtype,
        iterable,
        ndim,
        promote_types,
        result_type,
        shape,
        size,
    )
    from calque.numpy.ranges import arange, linspace
    from calque.numpy.reductions import mean, ptp, std, var
    from calque.numpy.sets import (
        intersect1d,
        isin,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from calque.numpy.shaping import (
        atleast_1d,
        atleast_2d,
        atleast_3d,
        broadcast_arrays,
        broadcast_to,
        clip,
        expand_dims,
        matrix_transpose,
        moveaxis,
        permute_dims,
        ravel,
        reshape,
        squeeze,
        swapaxes,
        transpose,
        where,
    )
    from calque.numpy.sharing import from_dlpack
    from calque.numpy.sorting import (
        argsort,
        nonzero,
        round,
        searchsorted,
        sort,
        take,
        take_along_axis,
    )
    from calque.numpy.sorting import round as around
    from calque.numpy.ufunc_objects import frompyfunc, ufunc
    from calque.numpy.ufuncs import pow, power
    from calque.numpy.vectorizing import apply_along_axis, apply_over_axes, vectorize
    from calque.numpy.windows import bartlett, blackman, hamming, hanning, kaiser

if not TYPE_CHECKING:  # checkers know every name
    __getattr__, __dir__ = _lazy.facade(
        __name__,
        __file__,
        _cached.with_call_path,
        {
            name: f"module {__name__!r} has no attribute {name!r}: {why}"
            for name, why in (
                ("random", "calque.random draws from keys: random.normal(random.key(0), (3,))"),
                ("float", "it is Python's float, or jnp.float32"),
                ("int", "it is Python's int, or jnp.int32"),
                ("object", "there are no arrays of objects; a pytree holds arrays of any kinds"),
                ("cat", "it is concatenate here"),
                ("tensor", "it is array here"),
            )
        },
    )
    _guards.guard(__getattr__)

dtype = _np.dtype
bool = _SCALAR_TYPES["bool"]

_attaching.set_namespace(_sys.modules[__name__])
_guards.guard(finfo)
_guards.guard(iinfo)
_subscripts.install()

# fmt: off
__all__ = [
    "ComplexWarning", "abs", "absolute", "acos", "acosh", "add", "all", "allclose", "amax",
    "amin", "angle", "any", "append", "apply_along_axis", "apply_over_axes", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin",
    "argpartition", "argsort", "argwhere", "around", "array", "array_equal", "array_equiv",
    "array_repr", "array_split", "array_str", "asarray", "asin", "asinh", "astype", "atan",
    "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett",
    "bfloat16", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman", "block", "bool", "bool_", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "c_", "can_cast", "cbrt", "cdouble", "ceil", "character", "choose", "clip",
    "column_stack", "complex64", "complex128", "complex_", "complexfloating", "compress",
    "concat", "concatenate", "conj", "conjugate", "convolve", "copy", "copysign", "corrcoef",
    "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "delete", "diag", "diag_indices",
    "diag_indices_from", "diagflat", "diagonal", "diff", "digitize", "divide", "divmod", "dot",
    "double", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty",
    "empty_like", "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract",
    "eye", "fabs", "fft", "fill_diagonal", "finfo", "flatnonzero", "flexible", "flip", "fliplr",
    "flipud", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float16", "float32", "float64", "float_", "float_power", "floating",
    "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "from_dlpack", "frombuffer",
    "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring", "full", "full_like",
    "gcd", "generic", "geomspace", "get_printoptions", "gradient", "greater", "greater_equal",
    "hamming", "hanning", "heaviside", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag", "index_exp",
    "indices", "inexact", "inf", "inner", "insert", "int1", "int2", "int4", "int8", "int16",
    "int32", "int64", "int_", "integer", "interp", "intersect1d", "invert", "isclose",
    "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable", "ix_", "kaiser",
    "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "linalg", "linspace",
    "load", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logspace", "mask_indices", "matmul",
    "matrix_transpose", "matvec", "max", "maximum", "mean", "median", "meshgrid", "mgrid",
    "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndarray", "ndim",
    "negative", "newaxis", "nextafter", "nonzero", "not_equal", "number", "object_", "ogrid",
    "ones", "ones_like", "outer", "packbits", "pad", "partition", "percentile", "permute_dims",
    "pi", "piecewise", "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint",
    "polymul", "polysub", "polyval", "positive", "pow", "power", "printoptions", "prod",
    "promote_types", "ptp", "put", "put_along_axis", "quantile", "r_", "rad2deg", "radians",
    "ravel", "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape",
    "resize", "result_type", "right_shift", "rint", "roll", "rollaxis", "roots", "rot90",
    "round", "s_", "save", "savez", "searchsorted", "select", "set_printoptions", "setdiff1d",
    "setxor1d", "shape", "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh",
    "size", "sort", "sort_complex", "spacing", "split", "sqrt", "square", "squeeze", "stack",
    "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot",
    "tile", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices",
    "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from",
    "true_divide", "trunc", "ufunc", "uint", "uint1", "uint2", "uint4", "uint8", "uint16",
    "uint32", "uint64", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unpackbits", "unravel_index", "unsignedinteger", "unstack", "unwrap",
    "vander", "var", "vdot", "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where",
    "zeros", "zeros_like",
]
# fmt: on
__all__ = [n for n in __all__ if n not in _ABSENT]

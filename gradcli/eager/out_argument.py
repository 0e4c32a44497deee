"""The argument `out=`: a result is written into an existing tensor, by PyTorch's rules for shapes and dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager.modes import no_grad
from gradcli.eager.state import place, recording, warn
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

# functions whose `out` has the dtype of the result
EXACT = frozenset(
    (
        *("abs", "absolute", "addmm", "addmv", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin"),
        *(
            "baddbmm",
            "bitwise_not",
            "bmm",
            "bucketize",
            "ceil",
        ),
        *("cross", "cummax", "cummin", "diag", "dot", "eigvalsh", "fix", "float_power", "floor", "frac", "gather"),
        *("heaviside", "histc", "index_add", "index_copy", "index_select", "inner", "inv", "inverse"),
        *("isin", "isneginf", "isposinf", "kthvalue", "lerp", "log_softmax", "logcumsumexp", "masked_select"),
        *("matmul", "matrix_norm", "median", "mm", "mode", "msort", "multi_dot", "multinomial", "mv", "nan_to_num"),
        *("neg", "negative", "nonzero", "norm", "polar", "quantile", "round", "scatter", "scatter_add"),
        *("scatter_reduce", "searchsorted", "sgn", "sign", "signbit", "slogdet", "softmax", "solve", "sort"),
        *("svdvals", "take", "take_along_dim", "tensordot", "topk", "tril", "triu", "trunc", "vdot", "vector_norm"),
        *("where",),
    )
)
# functions that compute in the dtype of `out`
COMPUTED = frozenset((*("cumprod", "cumsum", "prod", "sum"),))
# functions whose result is cast to the dtype of `out`, where that loses neither a fraction nor an imaginary part
CAST = frozenset(
    (
        *(
            "acos",
            "cholesky",
            "pinv",
            "acosh",
            "add",
            "addcdiv",
            "addcmul",
            "angle",
            "arccos",
            "arccosh",
            "arcsin",
            "arcsinh",
            "arctan",
        ),
        *("arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bernoulli", "bitwise_and", "bitwise_or"),
        *("bitwise_xor", "cat", "clamp", "clamp_max", "clamp_min", "clip", "column_stack", "concat", "concatenate"),
        *("copysign", "cos", "cosh", "deg2rad", "diff", "digamma", "div", "divide", "dstack", "eq", "erf", "erfc"),
        *("erfinv", "exp", "exp2", "expm1", "floor_divide", "fmax", "fmin", "fmod", "ge", "ger", "greater"),
        *("greater_equal", "gt", "hstack", "hypot", "kron", "ldexp", "le", "less", "less_equal", "lgamma", "log"),
        *("log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logit"),
        *("logsumexp", "lt", "matrix_power", "max", "maximum", "mean", "min", "minimum", "mul", "multiply"),
        *(
            "nanmean",
            "nansum",
            "ne",
            "not_equal",
            "outer",
            "pow",
            "rad2deg",
            "reciprocal",
            "remainder",
            "row_stack",
            "rsqrt",
        ),
        *("sigmoid", "sin", "sinc", "sinh", "sqrt", "square", "stack", "std", "sub", "subtract", "tan", "tanh"),
        *("threshold", "true_divide", "var", "vstack", "xlogy"),
    )
)
_JOINING = ("cat", "column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "stack", "vstack")
TAKES = EXACT | COMPUTED | CAST
_LOUD = ("arange",)  # of the functions that make tensors, those that warn where `out` has other sizes


def written(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """The result of a function, written into `out`, which is returned.

    TypeError for a function that takes none, RuntimeError where a gradient would be lost or the dtypes do not fit,
    UserWarning where a tensor that has entries gets another shape.
    """
    if name not in TAKES:
        raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
    if out is None:
        return function(*args, **kwargs)
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if not all(isinstance(x, Tensor) for x in outs):
        raise TypeError(f"{name}(): argument 'out' must be Tensor or tuple of Tensors, not {type(out).__name__}")
    if recording() and any(x.requires_grad for x in (*_tensors((*args, *kwargs.values())), *outs)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad"
        )
    if name in COMPUTED:
        kwargs = {"dtype": outs[0].dtype, **kwargs}
    with no_grad():
        found = function(*args, **kwargs)
        results = found if isinstance(found, tuple) else (found,)
        if len(results) != len(outs):
            raise TypeError(f"{name}() has {len(results)} results, so 'out' is a tuple of as many tensors")
        for result, target in zip(results, outs, strict=True):
            _need_dtype(name, result, target)
        for result, target in zip(results, outs, strict=True):
            _put(result, target, True)
    return type(found)(*outs) if hasattr(found, "_fields") else outs if isinstance(found, tuple) else outs[0]


def made(name: str, function: Callable[..., Tensor], args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """A new tensor, made in the dtype of the option `out` and written into it. RuntimeError for another dtype."""
    out = options.pop("out")
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if recording() and out.requires_grad:
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation")
    if options.get("dtype") not in (None, out.dtype):
        raise RuntimeError(f"dtype {options['dtype']} does not match dtype of out parameter ({out.dtype})")
    with no_grad():
        _put(function(*args, **{**options, "dtype": out.dtype}), out, name in _LOUD)
    return out


def _tensors(xs: Any) -> list[Tensor]:
    found = []
    for x in xs:
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, (tuple, list)):
            found += _tensors(x)
    return found


def _need_dtype(name: str, result: Tensor, target: Tensor) -> None:
    """RuntimeError where a result may not be written into a tensor because of its dtype."""
    one, other = result.dtype, target.dtype
    if one is other:
        return
    if name not in CAST:
        raise RuntimeError(f"Expected out tensor to have dtype {one}, but got {other} instead")
    truth = name.startswith(("bitwise_", "logical_", "bernoulli")) or one.kind == 0  # cast to anything
    if not truth and (one.kind > max(other.kind, 1) or other.kind == 0):
        wrong = TypeError if name in _JOINING else RuntimeError
        raise wrong(f"result type {one} can't be cast to the desired output type {other}")


def _put(result: Tensor, target: Tensor, loud: bool) -> None:
    from gradcli.eager.changes import copy_

    if target._raw.shape != result._raw.shape:
        if target._raw.size and loud:
            warn(
                f"an output with entries was resized, because its shape {list(target.shape)} is not that of the "
                f"result, {list(result.shape)}: pass one that has no entries or the right shape",
                UserWarning,
            )
        target._raw = result._raw.astype(target._raw.dtype)
        target._counter.bump(place())
    else:
        copy_(target, result)

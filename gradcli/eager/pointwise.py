"""Functions that work entry by entry: tensors and numbers go in, a tensor comes out; every rule is a declaration's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import operators, tracing, truths
from gradcli.eager.dispatch import apply, record
from gradcli.eager.state import once
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.signatures import Operand

_ONE = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "erf erfc erfinv lgamma digamma sigmoid relu neg abs sign floor ceil trunc round sinc"
)
_TWO = {"atan2": "", "hypot": "", "xlogy": "", "logaddexp": "", "maximum": "", "minimum": ""}
_COMPARED = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
ALIASES = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "absolute": "abs",
    "negative": "neg",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "special_expit": "sigmoid",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "not_equal": "ne",
    "clip": "clamp",
    "fix": "trunc",
}


def as_tensor_or_number(x: Any) -> Any:
    """An operand: a tensor as it is, an array's scalar as a number; TypeError for anything else."""
    if isinstance(x, (Tensor, int, float, complex)):
        return x
    if isinstance(x, np.generic):
        return x.item()
    raise TypeError(f"operands are tensors and numbers, not {type(x).__name__}")


def _unary(name: str) -> Callable[[Tensor], Tensor]:
    def function(input: Tensor) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}() needs a tensor, not {type(input).__name__}")
        if name == "abs" and input.dtype.kind == 3:
            from gradcli.eager.complexes import abs_

            return abs_(input)
        return apply(catalogue()[name], (input,), {})

    primitive = catalogue()[name]
    short = operators.unary(name, primitive, primitive.node_name({}), function)
    short.__doc__ = f"{primitive.summary}"
    return short  # type: ignore[no-any-return]


def _binary(name: str, ours: str) -> Callable[[Any, Any], Tensor]:
    def function(input: Any, other: Any) -> Tensor:
        return apply(catalogue()[ours], (as_tensor_or_number(input), as_tensor_or_number(other)), {})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{catalogue()[ours].summary}"
    kinds = ("Tensor", "Tensor") if name in _OF_TENSORS else ("Operand", "Operand")
    function.__annotations__ = {"input": kinds[0], "other": kinds[1]}
    return function


_OF_TENSORS = ("atan2", "hypot", "logaddexp", "maximum", "minimum")
SEVERAL = ("add", "sub", "mul", "div")  # generated operators of two operands


def _add(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    one, two = as_tensor_or_number(input), as_tensor_or_number(other)
    if alpha != 1:
        return record(_add_scaled, (one, two), {"alpha": alpha}, "AddBackward0", pointwise=True, whole=True)
    return apply(catalogue()["add"], (one, two), {})


def _add_scaled(x: Any, y: Any, *, alpha: float) -> Any:
    return x + y * alpha


def _sub(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    one, two = as_tensor_or_number(input), as_tensor_or_number(other)
    if alpha != 1:
        return record(_add_scaled, (one, two), {"alpha": -alpha}, "SubBackward0", pointwise=True, whole=True)
    return apply(catalogue()["sub"], (one, two), {})


def rsub(input: Tensor, other: Operand) -> Tensor:
    """other - input, for a number: one node with one edge."""
    return record(_rsub, (input, as_tensor_or_number(other)), {}, "RsubBackward1", pointwise=True, whole=True, edges=1)


def _rsub(x: Any, y: Any) -> Any:
    return y - x


def _mul(input: Any, other: Any) -> Tensor:
    return apply(catalogue()["mul"], (as_tensor_or_number(input), as_tensor_or_number(other)), {})


def _div(input: Any, other: Any) -> Tensor:
    one, two = as_tensor_or_number(input), as_tensor_or_number(other)
    if isinstance(one, Tensor):
        return apply(catalogue()["div"], (one, two), {})
    return _mul(reciprocal(two), one)


def _short(name: str, long_way: Callable[..., Tensor], summary: str, scaled: bool = False) -> Any:
    primitive = catalogue()[name]
    found = operators.binary(name, primitive, primitive.node_name({}), long_way, scaled)
    found.__doc__ = summary
    return found


add = _short("add", _add, "input + alpha * other.", True)
sub = _short("sub", _sub, "input - alpha * other.", True)
mul = _short("mul", _mul, "input * other.")
div = _short("div", _div, "input / other; a number over a tensor is the number times the reciprocal.")


def reciprocal(input: Tensor) -> Tensor:
    """1 / input."""
    return record(_reciprocal, (input,), {}, "ReciprocalBackward0", pointwise=True)


def _reciprocal(x: Any) -> Any:
    return 1 / x


_POWERS: dict[Any, Any] = {}


def pow(input: Any, exponent: Operand) -> Tensor:
    """input ** exponent; whole exponents are exact products where they are small."""
    if exponent.__class__ is int or exponent.__class__ is float:
        found = _POWERS.get(exponent)
        if found is not None and (exponent.__class__ is int or (isinstance(input, Tensor) and input.dtype.kind >= 2)):
            return found(input)  # type: ignore[no-any-return]
    return _pow(input, exponent)


def _pow(input: Any, exponent: Any) -> Tensor:
    base, other = as_tensor_or_number(input), as_tensor_or_number(exponent)
    if isinstance(base, Tensor):
        if not isinstance(other, Tensor):
            if not isinstance(other, complex) and float(other).is_integer() and base.dtype.kind >= 2:
                return apply(catalogue()["power"], (base,), {"n": int(other)})
            if isinstance(other, int) and base.dtype.kind < 2:
                if other < 0:
                    raise RuntimeError("integers to negative integer powers are not allowed")
                return Tensor(base._array**other)
            return record(catalogue()["pow"], (base, other), {}, "PowBackward0", edges=1)
        if base.dtype.kind < 2 and other.dtype.kind < 2:
            if (other._array < 0).any():
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return Tensor(np.asarray(base._array**other._array))
        return record(catalogue()["pow"], (base, other), {}, "PowBackward1")
    if type(base) is int and other.dtype.kind < 2:
        n = other._array.astype(np.int64)
        below = 0 if abs(base) != 1 else np.where(n % 2, base, 1)  # what is left of 1/base**n
        return Tensor(np.asarray(np.where(n < 0, below, base ** np.maximum(n, 0))))
    return record(_exponential, (other, base), {}, "PowBackward2", pointwise=True, edges=1)


def _powered(n: int) -> Any:
    def long_way(input: Any) -> Tensor:
        return _pow(input, n)

    return operators.unary(f"pow{n}".replace("-", "_"), catalogue()["power"], "PowBackward0", long_way, {"n": n})


_POWERS.update({n: _powered(n) for n in (2, 3, 4, -1)})


def _exponential(x: Any, base: Any) -> Any:
    return catalogue()["pow"](base, x)


def square(input: Tensor) -> Tensor:
    """input ** 2."""
    return pow(input, 2)


def remainder(input: Tensor, other: Operand) -> Tensor:
    """What is left of a division rounded down; it has the sign of the divisor."""
    name = "RemainderBackward1" if isinstance(other, Tensor) else "RemainderBackward0"
    edges = None if isinstance(other, Tensor) else 1
    return record(catalogue()["mod"], (input, as_tensor_or_number(other)), {}, name, edges=edges)


def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """The entries of `input` where the condition holds, else those of `other`; without them, where it holds."""
    if (input is None) is not (other is None):
        raise TypeError("where() takes a condition alone, or a condition and two operands")
    if input is None or other is None:
        return condition.nonzero(as_tuple=True)
    if condition._raw.dtype == np.uint8:
        once("where", "where() received a condition of dtype torch.uint8: use .bool()")
        condition = condition.bool()
    need_mask(condition, "where")
    xs = (condition, as_tensor_or_number(input), as_tensor_or_number(other))
    return record(_where, xs, {}, "WhereBackward0", pointwise=True, whole=True, apart=(0,), edges=(1, 2))


def _where(condition: Any, x: Any, y: Any) -> Any:
    return catalogue()["where"](condition, x, y)


def need_mask(mask: Tensor, name: str) -> None:
    """RuntimeError for a mask whose entries are no truth values."""
    if mask._raw.dtype != np.bool_:
        raise RuntimeError(f"{name}() only supports boolean masks, but got a mask of dtype {mask.dtype}: use .bool()")


def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """A number where the mask holds, else the entries of `input`; RuntimeError for a mask of another dtype."""
    need_mask(mask, "masked_fill")
    return record(
        _masked_fill,
        (input, mask, as_tensor_or_number(value)),
        {},
        "MaskedFillBackward0",
        pointwise=True,
        whole=True,
        apart=(1,),
        edges=1,
    )


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return catalogue()["where"](mask, value, x)


def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Entries held between two bounds, either of which may be missing."""
    if min is None and max is None:
        raise RuntimeError("clamp() needs at least one of min and max")
    low = -np.inf if min is None else as_tensor_or_number(min)
    high = np.inf if max is None else as_tensor_or_number(max)
    numbers = not isinstance(low, Tensor) and not isinstance(high, Tensor)
    whole = not input.dtype.is_floating_point
    if whole and numbers:
        return Tensor(np.clip(input._array, min, max))
    if whole and all(not isinstance(x, Tensor) or x.dtype.kind < 2 for x in (low, high)):
        below, above = (x._array if isinstance(x, Tensor) else None if np.isinf(x) else x for x in (low, high))
        return Tensor(np.clip(input._array, below, above))
    name = "ClampBackward1" if numbers else "ClampBackward0"
    return bounded(input, low, high, name, edges=1 if numbers else None, whole=False)


def bounded(x: Tensor, low: Operand, high: Operand, name: str, edges: Any, whole: bool) -> Tensor:
    """Entries held between two bounds; in a recording, an infinite one is left out, as proofs know no infinities."""
    if tracing.current is not None:
        for one, other, infinite, held in ((high, low, np.inf, _at_least), (low, high, -np.inf, _at_most)):
            if not isinstance(one, Tensor) and one == infinite and (isinstance(other, Tensor) or np.isfinite(other)):
                return record(held, (x, other), {}, name, pointwise=True, edges=edges, whole=whole)
    return record(_clamped, (x, low, high), {}, name, pointwise=True, edges=edges, whole=whole)


def _clamped(x: Any, low: Any, high: Any) -> Any:
    return catalogue()["clamp"](x, low, high)


def _at_least(x: Any, low: Any) -> Any:
    return catalogue()["where"](catalogue()["less"](x, low), low, x)


def _at_most(x: Any, high: Any) -> Any:
    return catalogue()["where"](catalogue()["greater"](x, high), high, x)


TABLE: dict[str, Any] = {name: _unary(name) for name in _ONE.split()}
TABLE.update({name: _binary(name, name) for name in _TWO})
TABLE.update({name: _binary(name, ours) for name, ours in _COMPARED.items()})
TABLE.update(truths.TABLE)
TABLE.update(
    {
        function.__name__: function
        for function in (
            add,
            sub,
            mul,
            div,
            rsub,
            reciprocal,
            pow,
            square,
            remainder,
            where,
            masked_fill,
            clamp,
        )
    }
)
TABLE.update({alias: TABLE[name] for alias, name in ALIASES.items() if name in TABLE})

"""Operations that work entry by entry: arithmetic, functions of one number, comparisons, bounds.

An operation that is declared is a name in `ROWS`; one that is a formula of declared operations, a function below
`@formula`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.eager._core import dtypes, tracer
from gradcli.eager._core.events import noted
from gradcli.eager._core.modes import recording
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import fastpath
from gradcli.eager._engine.arguments import Operand, need_kind
from gradcli.eager._engine.record import GradientNode, apply, cast, declared, kind_of, noded, operation, record
from gradcli.eager._engine.rule_node import source_of
from gradcli.eager._ops.complex_tensors import abs_
from gradcli.eager._ops.table import FUNCTION, as_tensor_or_number, described, formula, op, rows
from gradcli.primitives import catalogue


def _rows(names: str, other: str = "", least: int = 0, **columns: Any) -> dict[str, Any]:
    """Declared operations of a tensor, and of another operand where `other` says what that is.

    The names are separated by spaces; `lt:less=less` is the declared `less`, and has that as alias. `least`: the kind
    of numbers that one operand must have at least, as in `need_kind`.
    """
    table = {}
    for entry in names.split():
        name, _, alias = entry.partition("=")
        name, _, ours = name.partition(":")
        primitive = catalogue()[ours or name]
        node = "" if primitive.kind == "nondifferentiable" else primitive.node_name({})
        table[name] = op(alias, node=node, **columns)(row(name, primitive, other, least=least))
    return table


def row(
    name: str, primitive: Any, other: str = "", long_way: Any = None, least: int = 0, of_complex: Any = None
) -> Any:
    """The function of a declared operation; where it has a derivative, a short way is made of the declaration."""

    def of_one(input: Tensor) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}() needs a tensor, not {type(input).__name__}")
        need_kind(name, (input,), least)
        if of_complex is not None and input.dtype.kind == 3:
            return of_complex(input)  # type: ignore[no-any-return]
        return apply(primitive, (input,), {})

    def of_two(input: Any, other: Any) -> Tensor:
        xs = (as_tensor_or_number(input), as_tensor_or_number(other))
        need_kind(name, xs, least)
        return apply(primitive, xs, {})

    kinds = dict.fromkeys(("input", "other"), other) if other else {}
    function = long_way or (of_two if other else of_one)
    if primitive.kind != "nondifferentiable":
        short = fastpath.binary if other else fastpath.unary
        function = short(name, primitive, primitive.node_name({}), function)
    return described(function, name, primitive.summary, **kinds)


def _tested(name: str, summary: str, **columns: Any) -> Any:
    """A test of tensors, which is NumPy's of this name."""

    def function(input: Tensor) -> Tensor:
        return noted(name, (input,), Tensor(np.asarray(getattr(np, name)(input._array))))

    def of_two(input: Tensor, other: Tensor) -> Tensor:
        return noted(name, (input, other), Tensor(getattr(np, name)(input._array, other._array)))

    two = name.startswith("logical_") and name != "logical_not"
    return op(**columns)(described(of_two if two else function, name, summary))


ROWS: dict[str, Any] = {
    **_rows(
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin=arcsin acos=arccos atan=arctan sinh cosh "
        "asinh=arcsinh acosh=arccosh atanh=arctanh erf erfc erfinv lgamma digamma sinc neg=negative tanh sigmoid sign",
        inplace=True,
    ),
    **_rows("floor ceil trunc=fix round relu", inplace=True, least=1),
    "abs": op("absolute", node="AbsBackward0", inplace=True)(row("abs", catalogue()["abs"], least=1, of_complex=abs_)),
    **_rows("atan2=arctan2", "Tensor", inplace=True),
    **_rows("hypot", "Tensor", inplace=True, least=2),
    **_rows("xlogy", "Operand", inplace=True),
    **_rows("logaddexp", "Tensor", least=2),
    **_rows("maximum minimum", "Tensor"),
    **_rows(
        "lt:less=less le:less_equal=less_equal gt:greater=greater ge:greater_equal=greater_equal eq:equal "
        "ne:not_equal=not_equal",
        "Operand",
    ),
    **{name: _tested(name, f"Where entries are {name[2:]}.") for name in ("isnan", "isinf", "isfinite", "isreal")},
    "isposinf": _tested("isposinf", "Where entries are inf."),
    "isneginf": _tested("isneginf", "Where entries are -inf."),
    "signbit": _tested("signbit", "Where entries are below zero, -0 included."),
    "logical_not": _tested("logical_not", "Where entries are zero."),
    "logical_and": _tested("logical_and", "Where both are not zero."),
    "logical_or": _tested("logical_or", "Where one is not zero."),
    "logical_xor": _tested("logical_xor", "Where exactly one is not zero."),
    **rows(
        formula,
        {
            "reciprocal": ("1 / input.", lambda input: 1 / input),
            "deg2rad": ("Degrees as radians.", lambda input: input * (math.pi / 180)),
            "rad2deg": ("Radians as degrees.", lambda input: input * (180 / math.pi)),
        },
        inplace=True,
    ),
    **rows(
        formula,
        {
            "remainder": (
                "What is left of a division rounded down; it has the sign of the divisor.",
                lambda input, other: declared("mod", input, other),
            ),
            "fmod": (
                "What is left of a division rounded towards zero; it has the sign of `input`.",
                lambda input, other: input - declared("trunc", input / other) * other,
            ),
        },
        inplace=True,
        whole=True,
        variant="other",
        least=1,
    ),
    **rows(op, {"square": ("input ** 2.", lambda input: pow(input, 2))}, inplace=True),
}


@formula(inplace=True, least=2)
def frac(input: Tensor) -> Any:
    """The part after the point."""
    return input - declared("trunc", input)


@op()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where two tensors agree within a tolerance."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}: isclose compares tensors of one dtype")
    close = np.asarray(np.isclose(input._array, other._array, rtol, atol, equal_nan))
    return noted("isclose", (input, other), Tensor(close))


@op()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two tensors agree within a tolerance everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@op()
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and entries."""
    return bool(np.array_equal(input._array, other._array))


def _scaled_sum(name: str, sign: int) -> Any:
    """`add` and `sub`, whose `alpha` is a factor of the second operand."""

    primitive = catalogue()[name]
    node = primitive.node_name({})

    def long_way(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
        xs = (as_tensor_or_number(input), as_tensor_or_number(other))
        if alpha != 1:
            return record(_add_scaled, xs, {"alpha": sign * alpha}, node, pointwise=True, keep_integer=True)
        return apply(primitive, xs, {})

    as_row, summary = (
        op("subtract" if sign < 0 else "", node=node, inplace=True),
        f"input {'-' if sign < 0 else '+'} alpha * other.",
    )
    function = fastpath.binary(name, primitive, node, long_way, True)
    return as_row(described(function, name, summary, input="Operand", other="Operand"))


def _add_scaled(x: Any, y: Any, *, alpha: float) -> Any:
    return x + y * alpha


def _div(input: Any, other: Any) -> Tensor:
    left, right = as_tensor_or_number(input), as_tensor_or_number(other)
    if isinstance(left, Tensor):
        return apply(catalogue()["div"], (left, right), {})
    return mul(ROWS["reciprocal"](right), left)  # type: ignore[no-any-return]


add, sub = _scaled_sum("add", 1), _scaled_sum("sub", -1)
mul = op("multiply", node="MulBackward0", inplace=True)(row("mul", catalogue()["mul"], "Operand"))
true_divide = op(name="true_divide", node="DivBackward0", inplace=True)(row("div", catalogue()["div"], "Operand", _div))


@formula(only=FUNCTION, whole=True, variant="input")
def rsub(input: Tensor, other: Operand) -> Any:
    """other - input, for a number: one node with one edge."""
    return other - input


@op("divide", node="DivBackward0 DivBackward2", inplace=True)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; rounded down ('floor') or towards zero ('trunc') where that is requested."""
    if rounding_mode is None:
        return true_divide(input, other)  # type: ignore[no-any-return]
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        )
    if rounding_mode == "floor" and input.dtype.kind < 2:
        return _floor_divide(input, other)
    xs = (input, as_tensor_or_number(other))
    quotient = record(_rounded, xs, {"name": rounding_mode}, div.row.nodes[1], pointwise=True)
    whole = input.dtype.kind < 2 and not isinstance(other, float)
    return cast(quotient, input.dtype) if whole else quotient


def _rounded(x: Any, y: Any, *, name: str) -> Any:
    return catalogue()[name](x / y)


_POWER = (operation("power"), "PowBackward0", None, False)


@op(node="PowBackward0 PowBackward1 PowBackward2", inplace=True)
def pow(input: Any, exponent: Operand) -> Tensor:
    """input ** exponent; whole exponents are exact products where they are small."""
    known = fastpath.again((*_POWER, exponent), input) if exponent.__class__ is int else None
    if known is not None:
        return known
    base, other = as_tensor_or_number(input), as_tensor_or_number(exponent)
    if isinstance(base, Tensor):
        base = cast(base, dtypes.int64) if base.dtype is dtypes.bool else base
        if not isinstance(other, Tensor):
            if not isinstance(other, complex) and float(other).is_integer() and base.dtype.kind >= 2:
                return apply(catalogue()["power"], (base,), {"n": int(other)})
        whole = isinstance(other, int) or (isinstance(other, Tensor) and other.dtype.kind < 2)
        if base.dtype.kind < 2 and whole:
            times = other._array if isinstance(other, Tensor) else other
            if np.any(times < 0):
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return Tensor(np.asarray(base._array**times))
        if not isinstance(other, Tensor):
            return record(catalogue()["pow"], (base, other), {}, pow.node, edges=1)
        return record(catalogue()["pow"], (base, other), {}, pow.row.nodes[1])
    if type(base) is int and other.dtype.kind < 2:
        n = other._array.astype(np.int64)
        below = 0 if abs(base) != 1 else np.where(n % 2, base, 1)  # what is left of 1/base**n
        return Tensor(np.asarray(np.where(n < 0, below, base ** np.maximum(n, 0))))
    return record(catalogue()["pow"], (base, other), {}, pow.row.nodes[2], edges=(1,))


@op(node="WhereBackward0", only=FUNCTION)
def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """The entries of `input` where the condition holds, else those of `other`; without them, where it holds."""
    if (input is None) is not (other is None):
        raise TypeError("where() takes a condition alone, or a condition and two operands")
    if input is None or other is None:
        return condition.nonzero(as_tuple=True)
    need_mask(condition, "where")
    xs = (condition, as_tensor_or_number(input), as_tensor_or_number(other))
    return record(catalogue()["where"], xs, {}, where.node)


def need_mask(mask: Tensor, name: str) -> None:
    """RuntimeError for a mask whose entries are no truth values."""
    if mask._raw.dtype != np.bool_:
        raise RuntimeError(f"{name}() only supports boolean masks, but got a mask of dtype {mask.dtype}: use .bool()")


@op(node="MaskedFillBackward0", inplace=True, saves="mask value self")
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """A number where the mask holds, else the entries of `input`; RuntimeError for a mask of another dtype."""
    need_mask(mask, "masked_fill")
    if input.dtype.kind < 2 and isinstance(value, (int, float)):
        value = input._raw.dtype.type(value).item()
    xs = (mask, as_tensor_or_number(value), input)
    return record(catalogue()["where"], xs, {}, masked_fill.node, edges=(2,))


@op("clip", node="ClampBackward0 ClampBackward1", inplace=True)
def clamp(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Entries held between two bounds, either of which may be missing."""
    if min is None and max is None:
        raise RuntimeError("clamp() needs at least one of min and max")
    low = -np.inf if min is None else as_tensor_or_number(min)
    high = np.inf if max is None else as_tensor_or_number(max)
    limits = [x for x in (min, max) if x is not None]
    numbers = not any(isinstance(x, Tensor) for x in limits)
    kind = kind_of((input, *limits), (), True)
    if kind.kind in "iu":
        bounds = [x._array if isinstance(x, Tensor) else x for x in (min, max)]
        return Tensor(np.clip(input._array, *bounds).astype(kind))
    return bounded(input, low, high, clamp.row.nodes[numbers], edges=1 if numbers else None, keep_integer=False)


def bounded(x: Tensor, low: Operand, high: Operand, name: str, edges: Any, keep_integer: bool) -> Tensor:
    """Entries held between two bounds; in a recording, an infinite one is left out, which proofs do not allow."""
    how: dict[str, Any] = {"pointwise": True, "edges": edges, "keep_integer": keep_integer}
    if tracer.own.current is not None:
        for free, bound, infinite, beyond in ((high, low, np.inf, "less"), (low, high, -np.inf, "greater")):
            if not isinstance(free, Tensor) and free == infinite and (isinstance(bound, Tensor) or np.isfinite(bound)):
                return record(_held, (x, bound), {"beyond": beyond}, name, **how)
    return record(operation("clamp"), (x, low, high), {}, name, **how)


def _held(x: Any, bound: Any, *, beyond: str) -> Any:
    return catalogue()["where"](catalogue()[beyond](x, bound), bound, x)


@formula(inplace=True)
def logit(input: Tensor, eps: float | None = None) -> Any:
    """log(x / (1 - x)), with x held between eps and 1 - eps."""
    x = input if eps is None else declared("clamp", input, eps, 1 - eps)
    return declared("log", x / (1 - x))


@op(node="ClampMinBackward0 ClampMinBackward1", inplace=True, saves="self min max")
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Entries held above a bound."""
    if input.dtype.kind < 2:
        return clamp(input, min)
    tensor = isinstance(min, Tensor)
    edges = (0, 1) if tensor else 1
    return bounded(input, min, math.inf, clamp_min.row.nodes[tensor], edges=edges, keep_integer=True)


@op(node="NanToNumBackward0", inplace=True)
def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers."""
    raw = input._raw
    if input.dtype.kind < 2:
        return input
    value = np.nan_to_num(raw, nan=nan, posinf=posinf, neginf=neginf)
    xs = (Tensor(np.isfinite(raw)), input, Tensor(value))
    return record(catalogue()["where"], xs, {}, nan_to_num.node, edges=(1,))


def without_rule(result: Tensor, xs: tuple[Any, ...], name: str) -> Tensor:
    """The result of an operation that has no derivative: backward through it is a RuntimeError."""
    if not recording() or not any(isinstance(x, Tensor) and x.requires_grad for x in xs):
        return noted(name, xs, result)

    def gradient(ct: Tensor, *xs: Tensor) -> Any:
        raise RuntimeError(f"derivative for {name} is not implemented: it is a step function, or random")

    if result.dtype.kind >= 2:
        sources = [source_of(x) for x in xs if isinstance(x, Tensor)]
        noded((result,), GradientNode, "NotImplemented", sources, gradient=gradient)
    return noted("NotImplemented", xs, result)


@op(inplace=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, and `values` at zero; it has no derivative."""
    return without_rule(Tensor(np.heaviside(input._array, values._array)), (input, values), "heaviside")


@op(inplace=True)
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """input / other, rounded down; it has no derivative."""
    return without_rule(_floor_divide(input, other), (input, other), "floor_divide")


def _floor_divide(input: Any, other: Any) -> Tensor:
    left, right = (x if isinstance(x, Tensor) else Tensor(np.asarray(x)) for x in (input, other))
    if left.dtype.kind < 2 and right.dtype.kind < 2:
        if not np.all(right._raw):
            raise RuntimeError("ZeroDivisionError: integer division by zero")
        return Tensor(np.floor_divide(np.asarray(left._raw), np.asarray(right._raw)))
    xs = tuple([x.detach() if isinstance(x, Tensor) else x for x in (input, other)])
    return Tensor(np.floor(apply(catalogue()["div"], xs, {})._raw))


def _need_bits(name: str, *xs: Any) -> None:
    """NotImplementedError for tensors of floating-point numbers."""
    for x in xs:
        if isinstance(x, Tensor) and x.dtype.kind >= 2:
            raise NotImplementedError(
                f"{name} is not implemented for {x.dtype}: it needs whole numbers or truth values"
            )


def _bitwise(name: str) -> Any:
    ufunc = getattr(np, f"bitwise_{name}")

    def function(input: Tensor, other: Operand) -> Tensor:
        xs = (input, other)
        if tracer.traced(xs) and all(isinstance(x, Tensor) and x.dtype is dtypes.bool for x in xs):
            both, only = (record(catalogue()[kind], xs, {}, kind) for kind in ("or", "and"))
            if name == "xor":
                return record(catalogue()["and"], (both, bitwise_not(only)), {}, "xor")
            return both if name == "or" else only
        _need_bits(f"bitwise_{name}", *xs)
        right = other._array if isinstance(other, Tensor) else other
        return noted(f"bitwise_{name}", xs, Tensor(np.asarray(ufunc(input._array, right))))

    return op(inplace=True)(described(function, f"bitwise_{name}", f"Bitwise {name} of whole numbers or truth values."))


bitwise_and, bitwise_or, bitwise_xor = _bitwise("and"), _bitwise("or"), _bitwise("xor")


@op(inplace=True)
def bitwise_not(input: Tensor) -> Tensor:
    """The opposite of each bit, or of truth values."""
    if tracer.traced((input,)) and input.dtype is dtypes.bool:
        return record(catalogue()["not"], (input,), {}, "bitwise_not")
    _need_bits("bitwise_not", input)
    return noted("bitwise_not", (input,), Tensor(np.asarray(np.invert(input._array))))


@formula(inplace=True, whole=True)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Any:
    """input + value * tensor1 * tensor2, entry by entry."""
    return input + (tensor1 * tensor2 if value == 1 else tensor1 * tensor2 * value)


@formula(inplace=True)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Any:
    """input + value * tensor1 / tensor2, entry by entry."""
    return input + (tensor1 / tensor2 if value == 1 else tensor1 / tensor2 * value)


@formula(inplace=True, variant="weight", least=2)
def lerp(input: Tensor, end: Tensor, weight: Operand) -> Any:
    """input + weight * (end - input): between the two."""
    return input + weight * (end - input)

"""Operations that work entry by entry: arithmetic, functions of one number, comparisons, bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core import dtypes, tracer
from gradcli.eager._core.events import noted
from gradcli.eager._core.modes import once, recording
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine import fastpath
from gradcli.eager._engine.record import GradientNode, apply, cast, noded, record
from gradcli.eager._engine.rule_node import source_of
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager._engine.arguments import Operand


def _truth(name: str) -> Callable[[Tensor], Tensor]:
    def function(input: Tensor) -> Tensor:
        return noted(name, (input,), Tensor(np.asarray(getattr(np, name)(input._array))))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Where entries are {name[2:]}."
    return function


def logical_not(input: Tensor) -> Tensor:
    """Where entries are zero."""
    return noted("logical_not", (input,), Tensor(np.logical_not(input._array)))


def _logical(name: str, summary: str) -> Callable[[Tensor, Tensor], Tensor]:
    def function(input: Tensor, other: Tensor) -> Tensor:
        return noted(name, (input, other), Tensor(getattr(np, name)(input._array, other._array)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


logical_and = _logical("logical_and", "Where both are not zero.")
logical_or = _logical("logical_or", "Where one is not zero.")
logical_xor = _logical("logical_xor", "Where exactly one is not zero.")


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where two tensors agree within a tolerance."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}: isclose compares tensors of one dtype")
    close = np.asarray(np.isclose(input._array, other._array, rtol, atol, equal_nan))
    return noted("isclose", (input, other), Tensor(close))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two tensors agree within a tolerance everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and entries."""
    return bool(np.array_equal(input._array, other._array))


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
            from gradcli.eager._ops.complex_numbers import abs_

            return abs_(input)
        return apply(catalogue()[name], (input,), {})

    primitive = catalogue()[name]
    short = fastpath.unary(name, primitive, primitive.node_name({}), function)
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


_PREDICATES = "isnan isinf isfinite isposinf isneginf isreal signbit"
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
    found = fastpath.binary(name, primitive, primitive.node_name({}), long_way, scaled)
    found.__doc__ = summary
    return found


add = _short("add", _add, "input + alpha * other.", True)
sub = _short("sub", _sub, "input - alpha * other.", True)
mul = _short("mul", _mul, "input * other.")
true_divide = _short("div", _div, "input / other; a number over a tensor is the number times the reciprocal.")


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

    return fastpath.unary(f"pow{n}".replace("-", "_"), catalogue()["power"], "PowBackward0", long_way, {"n": n})


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
    if tracer.current is not None:
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


def fmod(input: Tensor, other: Operand) -> Tensor:
    """What is left of a division rounded towards zero; it has the sign of `input`."""
    several = isinstance(other, Tensor)
    divisor = other._array if isinstance(other, Tensor) else np.asarray(other)
    if input.dtype.kind < 2 and divisor.dtype.kind in "iub":
        if not divisor.all():
            raise RuntimeError("ZeroDivisionError: integer division by zero")
        kind = np.result_type(input._raw.dtype, divisor.dtype) if several else input._raw.dtype
        return Tensor(np.asarray(np.fmod(input._array, divisor)).astype(kind))
    xs = (input, as_tensor_or_number(other))
    return record(_fmod, xs, {}, f"FmodBackward{int(several)}", pointwise=True, whole=True, edges=2 if several else 1)


def _fmod(x: Any, y: Any) -> Any:
    return x - catalogue()["trunc"](x / y) * y


def frac(input: Tensor) -> Tensor:
    """The part after the point."""
    return record(_frac, (input,), {}, "FracBackward0", pointwise=True)


def _frac(x: Any) -> Any:
    return x - catalogue()["trunc"](x)


def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x held between eps and 1 - eps."""
    return record(_logit, (input,), {"eps": eps}, "LogitBackward0", pointwise=True)


def _logit(x: Any, *, eps: float | None) -> Any:
    if eps is not None:
        x = catalogue()["clamp"](x, eps, 1 - eps)
    return catalogue()["log"](x / (1 - x))


def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Entries held above a bound."""
    if input.dtype.kind < 2 and (isinstance(min, int) or (isinstance(min, Tensor) and min.dtype.kind < 2)):
        return clamp(input, min=min)
    if isinstance(min, Tensor):
        return bounded(input, min, math.inf, "ClampMinBackward1", edges=(0, 1), whole=True)
    return bounded(input, min, math.inf, "ClampMinBackward0", edges=1, whole=True)


def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Entries held below a bound."""
    if input.dtype.kind < 2 and (isinstance(max, int) or (isinstance(max, Tensor) and max.dtype.kind < 2)):
        return clamp(input, max=max)
    if isinstance(max, Tensor):
        return bounded(input, -math.inf, max, "ClampMaxBackward1", edges=(0, 2), whole=True)
    return bounded(input, -math.inf, max, "ClampMaxBackward0", edges=1, whole=True)


def nan_to_num(input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers."""
    raw = input._raw
    if input.dtype.kind < 2:
        return input
    value = np.nan_to_num(raw, nan=nan, posinf=posinf, neginf=neginf)
    xs = (input, Tensor(np.isfinite(raw)), Tensor(value))
    return record(_kept_where, xs, {}, "NanToNumBackward0", pointwise=True, apart=(1, 2), edges=1)


def _kept_where(x: Any, sound: Any, value: Any) -> Any:
    return catalogue()["where"](sound, x, value)


def _without_rule(name: str, function: Any, others: str = "Any") -> Any:
    def called(input: Tensor, *others: Any, **options: Any) -> Tensor:
        found: Tensor = function(input, *others, **options)
        if recording() and any(isinstance(x, Tensor) and x.requires_grad for x in (input, *others)):
            return refused(found, (input, *others), name)
        return noted(name, (input, *others), found)

    called.__name__ = called.__qualname__ = name
    called.__annotations__ = {"input": "Tensor" if others == "Tensor" else "Operand", "others": others}
    called.__doc__ = f"{name}, which has no derivative: backward through it is a RuntimeError."
    return called


def refused(x: Tensor, others: tuple[Any, ...], name: str) -> Tensor:
    """The tensor with a node whose backward says that there is no derivative."""

    def gradient(ct: Tensor, *xs: Tensor) -> Any:
        raise RuntimeError(f"derivative for {name} is not implemented: it is a step function, or random")

    if x.dtype.kind >= 2:
        sources = [source_of(one) for one in others if isinstance(one, Tensor)]
        noded((x,), GradientNode, "NotImplemented", sources, gradient=gradient)
    return x


def _heaviside(input: Tensor, values: Tensor) -> Tensor:
    return Tensor(np.heaviside(input._raw, values._raw).astype(input._raw.dtype))


def _floor_divide(input: Any, other: Any) -> Tensor:
    one, two = (x if isinstance(x, Tensor) else Tensor(np.asarray(x)) for x in (input, other))
    whole = one.dtype.kind < 2 and two.dtype.kind < 2
    if whole and not np.all(two._raw):
        raise RuntimeError("ZeroDivisionError: integer division by zero")
    found = record(
        catalogue()["div"],
        tuple(x.detach() if isinstance(x, Tensor) else x for x in (input, other)),
        {},
        "DivBackward0",
    )
    raw = np.floor(found._raw)
    if whole:
        left, right = np.asarray(one._raw), np.asarray(two._raw)
        return Tensor(np.floor_divide(left, right))
    return Tensor(raw)


def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; rounded down ('floor') or towards zero ('trunc') where that is asked for."""
    if rounding_mode is None:
        return true_divide(input, other)  # type: ignore[no-any-return]
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
        )
    if rounding_mode == "floor" and input.dtype.kind < 2:
        return _floor_divide(input, other)
    xs = (input, as_tensor_or_number(other))
    found = record(
        _rounded, xs, {"name": {"floor": "floor", "trunc": "trunc"}[rounding_mode]}, "DivBackward2", pointwise=True
    )
    whole = input.dtype.kind < 2 and not isinstance(other, float)
    return cast(found, input.dtype) if whole else found


def _rounded(x: Any, y: Any, *, name: str) -> Any:
    return catalogue()[name](x / y)


def _scaled(name: str, node: str, factor: float) -> Any:
    def function(input: Tensor) -> Tensor:
        return record(_multiplied, (input,), {"factor": factor}, node, pointwise=True)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}: entries times {factor:.6g}."
    return function


def _multiplied(x: Any, *, factor: float) -> Any:
    return x * factor


def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """input * 2 ** other."""
    power = Tensor(np.asarray(np.exp2(other._raw), input._raw.dtype if input.dtype.kind == 2 else np.float32))
    return record(_turned, (input, power), {}, "LdexpBackward0", pointwise=True, edges=2)


def copysign(input: Tensor, other: Operand) -> Tensor:
    """The size of `input` with the sign of `other`."""
    signs = np.copysign(1.0, np.asarray(other._raw if isinstance(other, Tensor) else other, np.float64))
    turn = Tensor((np.where(np.signbit(input._raw), -1.0, 1.0) * signs).astype(input._raw.dtype)[()])
    edges = 2 if isinstance(other, Tensor) else 1
    return record(_turned, (input, turn), {}, f"CopysignBackward{2 - edges}", pointwise=True, edges=edges)


def _turned(x: Any, turn: Any) -> Any:
    return x * turn


def _fm(name: str) -> Any:
    function = getattr(np, name)
    ours = catalogue()["maximum" if name == "fmax" else "minimum"]

    def of_numbers(input: Tensor, other: Tensor) -> Tensor:
        if np.isnan(input._raw).any() or np.isnan(other._raw).any():
            return Tensor(function(input._raw, other._raw))
        return record(ours, (input, other), {}, f"{name.capitalize()}Backward0")

    of_numbers.__name__ = of_numbers.__qualname__ = name
    of_numbers.__doc__ = f"{name}: the larger or smaller entry, where a number counts more than NaN."
    return of_numbers


def float_power(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent in double precision."""
    xs = [cast(x, dtypes.float64) if isinstance(x, Tensor) else x for x in (input, exponent)]
    return pow(*xs)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """A number where entries are not above a threshold."""
    high = Tensor(np.asarray(input._raw > threshold))
    return record(_where_high, (input, high, value), {}, "ThresholdBackward0", pointwise=True, apart=(1,), edges=1)


def _where_high(x: Any, high: Any, value: Any) -> Any:
    return catalogue()["where"](high, x, value)


def _need_bits(name: str, *xs: Any) -> None:
    """NotImplementedError for tensors of numbers with a point."""
    for x in xs:
        if isinstance(x, Tensor) and x.dtype.kind >= 2:
            raise NotImplementedError(
                f"{name} is not implemented for {x.dtype}: it needs whole numbers or truth values"
            )


def _bitwise(name: str) -> Any:
    ufunc = getattr(np, f"bitwise_{name}")

    def function(input: Tensor, other: Operand) -> Tensor:
        if tracer.current is not None and all(isinstance(x, Tensor) and x.dtype is dtypes.bool for x in (input, other)):
            if tracer.traced((input, other)):
                both, only = (record(catalogue()[one], (input, other), {}, one) for one in ("or", "and"))
                if name == "xor":
                    return record(catalogue()["and"], (both, inverted(only)), {}, "xor")
                return both if name == "or" else only
        _need_bits(f"bitwise_{name}", input, other)
        right = other._array if isinstance(other, Tensor) else other
        return noted(f"bitwise_{name}", (input, other), Tensor(np.asarray(ufunc(input._array, right))))

    function.__name__ = function.__qualname__ = f"bitwise_{name}"
    function.__doc__ = f"bitwise {name} of whole numbers or truth values."
    return function


def inverted(self: Tensor) -> Tensor:
    """`~x`."""
    if tracer.current is not None and tracer.traced((self,)) and self.dtype is dtypes.bool:
        return record(catalogue()["not"], (self,), {}, "invert")
    return noted("invert", (self,), Tensor(np.invert(self._array)))


def bitwise_not(input: Tensor) -> Tensor:
    """The opposite of each bit, or of truth values."""
    _need_bits("bitwise_not", input)
    return noted("bitwise_not", (input,), Tensor(np.asarray(np.invert(input._array))))


TABLE: dict[str, Any] = {name: _unary(name) for name in _ONE.split()}
TABLE.update({name: _binary(name, name) for name in _TWO})
TABLE.update({name: _binary(name, ours) for name, ours in _COMPARED.items()})
TABLE.update({name: _truth(name) for name in _PREDICATES.split()})
TABLE.update(
    {
        function.__name__: function
        for function in (
            *(add, sub, mul, div, rsub, reciprocal, pow, square, remainder, where, masked_fill, clamp),
            *(fmod, frac, logit, clamp_min, clamp_max, nan_to_num, ldexp, copysign, float_power, threshold),
            *(logical_not, logical_and, logical_or, logical_xor, bitwise_not, isclose, allclose, equal),
        )
    }
)
TABLE.update(
    heaviside=_without_rule("heaviside", _heaviside, "Tensor"),
    floor_divide=_without_rule("floor_divide", _floor_divide, "Operand"),
    deg2rad=_scaled("deg2rad", "Deg2RadBackward0", math.pi / 180),
    rad2deg=_scaled("rad2deg", "Rad2DegBackward0", 180 / math.pi),
    fmax=_fm("fmax"),
    fmin=_fm("fmin"),
)
TABLE.update({f"bitwise_{name}": _bitwise(name) for name in ("and", "or", "xor")})
TABLE.update({alias: TABLE[name] for alias, name in ALIASES.items() if name in TABLE})
TABLE["true_divide"] = true_divide

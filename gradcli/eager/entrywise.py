"""More functions that work entry by entry: remainders, roundings, bounds, special values; tensors in, a tensor out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import dtypes
from gradcli.eager.dispatch import cast, record
from gradcli.eager.nodes import Node, class_named
from gradcli.eager.pointwise import TABLE as POINTWISE
from gradcli.eager.pointwise import as_tensor_or_number, bounded
from gradcli.eager.recorder import noted
from gradcli.eager.rules import source_of
from gradcli.eager.state import place
from gradcli.eager.tensor import Tensor
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from gradcli.eager.signatures import Operand


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
        return POINTWISE["clamp"](input, min=min)  # type: ignore[no-any-return]
    if isinstance(min, Tensor):
        return bounded(input, min, math.inf, "ClampMinBackward1", edges=(0, 1), whole=True)
    return bounded(input, min, math.inf, "ClampMinBackward0", edges=1, whole=True)


def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Entries held below a bound."""
    if input.dtype.kind < 2 and (isinstance(max, int) or (isinstance(max, Tensor) and max.dtype.kind < 2)):
        return POINTWISE["clamp"](input, max=max)  # type: ignore[no-any-return]
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
        from gradcli.eager.state import recording

        if recording() and any(isinstance(x, Tensor) and x.requires_grad for x in (input, *others)):
            found = function(input, *others, **options)
            return refused(found, (input, *others), name)
        return noted(name, (input, *others), function(input, *others, **options))

    called.__name__ = called.__qualname__ = name
    called.__annotations__ = {"input": "Tensor" if others == "Tensor" else "Operand", "others": others}
    called.__doc__ = f"{name}, which has no derivative: backward through it is a RuntimeError."
    return called


def refused(x: Tensor, others: tuple[Any, ...], name: str) -> Tensor:
    """The tensor with a node whose backward says that there is no derivative."""
    if x.dtype.kind < 2:
        return x

    sources = tuple([source_of(one) for one in others if isinstance(one, Tensor)])
    node = class_named(RefusingNode, "NotImplemented")(sources, (), place())
    node.what = name
    x._requires, x._edge = True, (node, 0)
    return x


class RefusingNode(Node):
    """The node of an operation without a derivative."""

    __slots__ = ("what",)
    what: str

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """RuntimeError, always."""
        raise RuntimeError(f"derivative for {self.what} is not implemented: it is a step function, or random")


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
        return POINTWISE["div"](input, other)  # type: ignore[no-any-return]
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
    return POINTWISE["pow"](*xs)  # type: ignore[no-any-return]


def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Where exactly one is not zero."""
    return noted("logical_xor", (input, other), Tensor(np.logical_xor(input._raw, other._raw)))


def _test(name: str, function: Any) -> Any:
    def called(input: Tensor) -> Tensor:
        return noted(name, (input,), Tensor(function(input._raw)))

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"Where entries are {name[2:]}."
    return called


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """A number where entries are not above a threshold."""
    high = Tensor(np.asarray(input._raw > threshold))
    return record(_where_high, (input, high, value), {}, "ThresholdBackward0", pointwise=True, apart=(1,), edges=1)


def _where_high(x: Any, high: Any, value: Any) -> Any:
    return catalogue()["where"](high, x, value)


TABLE: dict[str, Any] = {
    function.__name__: function
    for function in (
        *(fmod, frac, logit, clamp_min, clamp_max, nan_to_num, div, ldexp, copysign, float_power, logical_xor),
        *(threshold,),
    )
}
TABLE.update(
    heaviside=_without_rule("heaviside", _heaviside, "Tensor"),
    floor_divide=_without_rule("floor_divide", _floor_divide, "Operand"),
    deg2rad=_scaled("deg2rad", "Deg2RadBackward0", math.pi / 180),
    rad2deg=_scaled("rad2deg", "Rad2DegBackward0", 180 / math.pi),
    fmax=_fm("fmax"),
    fmin=_fm("fmin"),
    isposinf=_test("isposinf", np.isposinf),
    isneginf=_test("isneginf", np.isneginf),
    signbit=_test("signbit", np.signbit),
    isreal=_test("isreal", np.isreal),
    divide=div,
    true_divide=POINTWISE["div"],
)

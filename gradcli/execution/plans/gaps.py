"""A function of NumPy, its operands and how far these may move go in; how far the result may move comes out.

Slopes where they are simple, both ends where a function is monotone; infinity where nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Gap = Any  # an array, or None where no entry may differ

ULPS = 4  # that a function other than + - * / and the square root may be wrong by, at most
POWER = 1e9  # the largest power of two that moves through a product
ROUNDINGS = 40  # units of the last place that exponentials of two parts and their product cost at most
TURN = 2.0  # the most that a sine can move
SAME = {np.negative, np.absolute, np.maximum, np.minimum, np.sign, np.heaviside}  # no rounding of their own
ONCE = {np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.square}  # correctly rounded
MONOTONE = {
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.tanh, np.sinh, np.tan,
    np.arctan, np.arcsin, np.arccos, np.arcsinh, np.arccosh, np.arctanh, np.floor, np.ceil, np.trunc, np.rint, np.sign,
}  # fmt: skip
SPECIAL_MONOTONE = ("erf", "erfc", "erfinv", "erfcinv", "logit")
GAMMAS = ("gamma", "gammaln", "psi")  # and polygamma, which is no ufunc
LOWEST_AT, LOWEST = 1.4616321449683622, {"gamma": 0.8856031944108887, "gammaln": -0.12148629053584961}
SPECIAL_ULPS = 32  # that these may be wrong by
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
LOGIC = {np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert}


def times(size: Any, gap: Any) -> Any:
    """A product in which 0 stays 0, beside an infinity too."""
    return np.where((gap == 0) | (size == 0), 0.0, np.multiply(size, gap))


def rounded(ufunc: Any, gap: Any, value: Any, unit: float) -> Any:
    """A gap with what both results may be wrong by themselves, where they may differ at all."""
    if ufunc in SAME:
        return gap
    own = (1 if ufunc in ONCE else 2 * ULPS) * 2 * unit * np.abs(value) + 2 * np.finfo(value.dtype).smallest_subnormal
    return np.where(gap > 0, gap + np.nan_to_num(own, nan=np.inf, posinf=np.inf), 0.0)


def of_function(ufunc: Any, value: Any, xs: Sequence[Any], gaps: Sequence[Gap]) -> Any:
    """How far the result may move, without new roundings."""
    moves = [np.zeros(x.shape) if gap is None else gap for x, gap in zip(xs, gaps, strict=True)]
    rule = RULES.get(ufunc)
    if rule is None and (ufunc in MONOTONE or ufunc.__name__ in SPECIAL_MONOTONE):
        found = _ends(ufunc, value, xs[0], moves[0])
    elif rule is None:
        found = np.where(_any(moves), np.inf, 0.0)
    else:
        found = rule(xs, moves)
    for x, move in zip(xs, moves, strict=True):  # what is no number, or may be none, may become anything
        found = np.where(~np.isfinite(x) & (move > 0), np.inf, found)
    return np.broadcast_to(np.nan_to_num(found, nan=np.inf, posinf=np.inf), value.shape)


def at_the_edge(value: Any, xs: Sequence[Any]) -> Gap:
    """How far a product may be off because a power of two moves out of it beyond the range of normal numbers."""
    info, (x, y) = np.finfo(value.dtype), [np.abs(one) for one in xs]
    low, high = POWER * float(info.tiny), float(info.max) / POWER
    large = ((x > high) & (x < np.inf)) | ((y > high) & (y < np.inf)) | (np.isinf(value) & (x < np.inf) & (y < np.inf))
    slips = POWER * (((x > 0) & (x < low)) * np.minimum(y, high) + ((y > 0) & (y < low)) * np.minimum(x, high))
    under = (np.abs(value) < info.tiny) & (x > 0) & (y > 0)
    if not (large.any() or slips.any() or under.any()):
        return None
    return np.where(large, np.inf, float(info.smallest_subnormal) * (slips + under))


def _any(moves: Sequence[Any]) -> Any:
    found: Any = False
    for move in moves:
        found = found | (move > 0)
    return found


def _ends(ufunc: Any, value: Any, x: Any, move: Any) -> Any:
    """The farther one of both ends; not known where the ends do not lie on both sides."""
    low, high = ufunc(x - move), ufunc(x + move)
    found = np.maximum(np.abs(high - value), np.abs(low - value))
    between = ((low <= value) & (value <= high)) | ((high <= value) & (value <= low))
    close = found <= 2 * ULPS * np.finfo(value.dtype).eps * np.abs(value)  # no function is in its last digits
    branch = move < np.pi / 2 if ufunc is np.tan else True  # within which a pole shows by the order of the ends
    return np.where(move == 0, 0.0, np.where((between | close) & branch, found, np.inf))


def _sum(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return moves[0] + moves[1]


def _product(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return _through(np.abs(xs[0]) + moves[0], moves[1]) + _through(np.abs(xs[1]), moves[0])


def _through(factor: Any, move: Any) -> Any:
    """A move times a factor; what is not known stays so beside a 0 too, because 0 * inf is NaN."""
    return np.where(np.isinf(move), np.inf, times(factor, move))


def _square(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return times(2 * np.abs(xs[0]) + moves[0], moves[0])


def _quotient(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    least = np.abs(xs[1]) - moves[1]
    moved = moves[0] + _through(np.abs(xs[0] / xs[1]), moves[1])
    return np.where(moved == 0, 0.0, np.where(least > 0, moved / np.where(least > 0, least, 1), np.inf))


def _power(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    """The ends of the base, at both ends of the exponent; of a base that may change its sign only whole powers."""
    (x, y), (dx, dy) = xs, moves
    value, size = np.power(x, y), np.abs(x)
    positive = x - dx > 0
    found: Any = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)))
    for base in (x - dx, x + dx):
        for exponent in (y - dy, y + dy):
            found = np.maximum(found, np.abs(np.power(np.where(positive, base, 1.0), exponent) - value))
    whole = (dy == 0) & (y == np.rint(y)) & (y >= 1)
    slope = times(y * np.power(size + dx, np.where(whole, y - 1, 0.0)), dx)
    return np.where((dx == 0) & (dy == 0), 0.0, np.where(positive, found, np.where(whole, slope, np.inf)))


def _compared(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    moved = moves[0] + moves[1]
    return np.where((moved > 0) & ~(np.abs(np.subtract(*xs, dtype=np.float64)) > moved), 1.0, 0.0)


def _logic(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return np.where(_any(moves), 1.0, 0.0)


def _angle(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    (y, x), moved = xs, np.hypot(*moves)
    least = np.hypot(x, y) - moved
    far = (least > 0) & ~((x - moves[1] < 0) & (np.abs(y) <= moves[0]) & (moves[0] > 0))
    return np.where(moved == 0, 0.0, np.where(far, moved / np.where(least > 0, least, 1), np.inf))


def _cosh(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    return times(np.sinh(np.abs(xs[0]) + moves[0]), moves[0])


def _remainder(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    """Where no multiple of the divisor is near, as far as the dividend moves; elsewhere by the divisor itself."""
    (x, y), (dx, dy) = xs, moves
    turns = [np.floor_divide(end, y) for end in (x - dx, x, x + dx)]
    inside = (turns[0] == turns[1]) & (turns[1] == turns[2])
    rounding = 4 * np.finfo(np.result_type(x)).eps * np.abs(y)
    found = np.where(inside, dx, np.abs(y)) + rounding
    return np.where((dx == 0) & (dy == 0), 0.0, np.where(dy == 0, found, np.inf))


def _step(xs: Sequence[Any], moves: Sequence[Any]) -> Any:
    """Of a step function, the value at the step."""
    (x, y), (dx, dy) = xs, moves
    crossed = np.where((dx > 0) & (np.abs(x) <= dx), 1 + np.abs(y) + dy, 0.0)
    return np.maximum(crossed, np.where(x == 0, dy, 0.0))


def of_gamma(name: str, function: Callable[[Any], Any], value: Any, x: Any, move: Any, unit: float) -> Any:
    """The gamma function and its relatives right of 0, where they are monotone, or fall and then rise.

    Both results may be wrong by SPECIAL_ULPS, or by as many digits of 1 near a root.
    """
    ends = [function(np.where(x > move, x + sign * move, 1.0)) for sign in (-1, 1)]
    found = np.maximum(*[np.abs(end - value) for end in ends])
    if name in LOWEST:
        found = np.maximum(found, np.abs(value - LOWEST[name]))
        outside = (x - move > LOWEST_AT) | (x + move < LOWEST_AT)
        found = np.where(outside, np.maximum(*[np.abs(end - value) for end in ends]), found)
    own = 4 * SPECIAL_ULPS * unit * (np.abs(value) + found + 1)
    return np.where(move == 0, 0.0, np.where(x > move, np.nan_to_num(found + own, nan=np.inf), np.inf))


def of_shifted(value: Any, x: Any, unit: float) -> Any:
    """The exponential of a difference x, against a product of two of them whose arguments add up to x.

    Arguments are rounded once on either way, functions and products as often as ROUNDINGS allows for. Beside the
    smallest normal number a factor may have lost digits. What is not finite comes by the same way.
    """
    with np.errstate(invalid="ignore"):
        found = (2 * np.abs(x) + ROUNDINGS) * unit * value + float(np.finfo(value.dtype).tiny)
    return np.where(np.isneginf(x), float(np.finfo(value.dtype).tiny), np.where(np.isfinite(value), found, 0.0))


def of_sinc(n: int, move: Any, unit: float) -> Any:
    """The n-th derivative of sin(pi x)/(pi x), a mean of cos(pi t x) for t from 0 to 1."""
    scale = np.pi**n
    found = np.minimum(scale * np.pi / (n + 2) * move, 2 * scale / (n + 1))
    return np.where(move > 0, found + 4 * SPECIAL_ULPS * (n + 1) * unit * scale, 0.0)


RULES: dict[Any, Callable[[Sequence[Any], Sequence[Any]], Any]] = {
    np.add: _sum, np.subtract: _sum, np.multiply: _product, np.square: _square, np.divide: _quotient,
    np.power: _power, np.arctan2: _angle, np.cosh: _cosh, np.hypot: lambda _, moves: np.hypot(*moves),
    np.remainder: _remainder, np.heaviside: _step,
    np.negative: lambda _, moves: moves[0], np.absolute: lambda _, moves: moves[0],
    np.maximum: lambda _, moves: np.maximum(*moves), np.minimum: lambda _, moves: np.maximum(*moves),
    np.logaddexp: lambda _, moves: np.maximum(*moves), np.sin: lambda _, moves: np.minimum(moves[0], TURN),
    np.cos: lambda _, moves: np.minimum(moves[0], TURN), np.isfinite: lambda _, moves: 1.0 * ~np.isfinite(moves[0]),
    **dict.fromkeys(COMPARISONS, _compared), **dict.fromkeys(LOGIC, _logic),
}  # fmt: skip

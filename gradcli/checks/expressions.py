"""A SymPy expression and balls for its symbols go in, a ball of its value comes out; a table of functions of our own.

The table is written separately from the declarations of the primitives: it evaluates what SymPy's differentiation
returned. What the table lacks is `Unsupported`, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flint import acb, arb, fmpq, fmpz

from gradcli.checks.balls import sign
from gradcli.checks.entries import Undecided, UndefinedAt, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    Lookup = Callable[[Any], Any]


def value(expression: Any, lookup: Lookup, memo: dict[Any, Any]) -> Any:
    """The ball of an expression; `lookup` gives the ball of a symbol, `memo` keeps subexpressions.

    Raises Undecided where more bits may help, UndefinedAt where there is no real value, Unsupported for a function
    that the table lacks.
    """
    stack = [expression]
    while stack:
        top = stack[-1]
        if top in memo:
            stack.pop()
            continue
        if not top.args:
            memo[top] = _atom(top, lookup)
            stack.pop()
            continue
        missing = [arg for arg in top.args if arg not in memo]
        if missing:
            stack.extend(missing)
            continue
        memo[top] = _step(top, [memo[arg] for arg in top.args])
        stack.pop()
    return memo[expression]


def _atom(expression: Any, lookup: Lookup) -> Any:
    if expression.is_Symbol:
        return lookup(expression)
    if expression.is_Rational:
        return arb(fmpq(int(expression.p), int(expression.q)))
    name = type(expression).__name__
    if name not in _CONSTANTS:
        raise Unsupported(f"SymPy's {name}")
    return _CONSTANTS[name]()


def _step(expression: Any, args: list[Any]) -> Any:
    name = expression.func.__name__
    if name == "Add":
        total = args[0]
        for arg in args[1:]:
            total = total + arg
        return total
    if name == "Mul":
        product = args[0]
        for arg in args[1:]:
            product = product * arg
        return product
    if name == "Pow":
        made = _power(expression.args[1], *args)
    elif name in _FUNCTIONS:
        made = _FUNCTIONS[name](*args)
    else:
        raise Unsupported(f"SymPy's {name}")
    if made.is_finite():
        return made
    if made.is_nan() and all(arg.is_exact() for arg in args):
        raise UndefinedAt(f"{name} has no value here")
    raise Undecided(f"{name} needs more digits")


def _power(exponent: Any, x: Any, y: Any) -> Any:
    if exponent.is_Integer:
        n = int(exponent)
        if n < 0:
            if x.is_zero():
                raise UndefinedAt("division by zero")
            return 1 / _whole_power(x, -n)
        return _whole_power(x, n)
    side = sign(x)
    if side == 0:
        if sign(y) <= 0:
            raise UndefinedAt("a power of zero")
        return arb(0)
    if side < 0:
        raise UndefinedAt("a broken power of a negative number")
    if exponent.is_Rational:
        p, q = int(exponent.p), int(exponent.q)
        if q <= 12 and abs(p) <= 64:
            root = x.sqrt() if q == 2 else x.root(q)
            return root**p if p >= 0 else 1 / root**-p
    return (y * x.log()).exp()


def _whole_power(x: Any, n: int) -> Any:
    return x**n if n <= 4096 or x.is_exact() else (x.log() * n).exp()


def _atan2(y: Any, x: Any) -> Any:
    if sign(x) == 0 and sign(y) == 0:
        raise UndefinedAt("the angle of (0, 0)")
    return arb.atan2(y, x)


def _polygamma(order: Any, x: Any) -> Any:
    if sign(order) == 0:
        return x.digamma()
    found = acb(x).polygamma(int(order.unique_fmpz()))
    return found.real


def _lgamma(x: Any) -> Any:
    if sign(x) > 0:
        return x.lgamma()
    return (arb.pi() / abs(x.sin_pi())).log() - (1 - x).lgamma()


def _whole(x: Any) -> Any:
    found = x.floor()
    sign(found - found.mid())
    return found


def _log(x: Any) -> Any:
    if sign(x) <= 0:
        raise UndefinedAt("the logarithm of a number that is not positive")
    return x.log()


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "Pi": arb.pi,
    "Exp1": arb.const_e,
    "EulerGamma": arb.const_euler,
    "Catalan": arb.const_catalan,
    "GoldenRatio": lambda: (1 + arb(5).sqrt()) / 2,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": lambda x: x.exp(),
    "log": _log,
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tan": lambda x: x.tan(),
    "cot": lambda x: x.cot(),
    "sec": lambda x: x.sec(),
    "csc": lambda x: x.csc(),
    "asin": lambda x: x.asin(),
    "acos": lambda x: x.acos(),
    "atan": lambda x: x.atan(),
    "atan2": _atan2,
    "sinh": lambda x: x.sinh(),
    "cosh": lambda x: x.cosh(),
    "tanh": lambda x: x.tanh(),
    "coth": lambda x: x.coth(),
    "sech": lambda x: x.sech(),
    "csch": lambda x: x.csch(),
    "asinh": lambda x: x.asinh(),
    "acosh": lambda x: x.acosh(),
    "atanh": lambda x: x.atanh(),
    "Abs": lambda x: x if sign(x) > 0 else -x,
    "sign": lambda x: arb(fmpz(sign(x))),
    "erf": lambda x: x.erf(),
    "erfc": lambda x: x.erfc(),
    "erfinv": lambda x: x.erfinv(),
    "erfcinv": lambda x: x.erfcinv(),
    "besselj": lambda n, x: x.bessel_j(n),
    "besseli": lambda n, x: x.bessel_i(n),
    "lowergamma": lambda a, x: x.gamma_lower(a),
    "uppergamma": lambda a, x: x.gamma_upper(a),
    "betainc_regularized": lambda a, b, start, x: x.beta_lower(a, b, 1),
    "gamma": lambda x: x.gamma(),
    "loggamma": _lgamma,
    "digamma": lambda x: x.digamma(),
    "polygamma": _polygamma,
    "beta": lambda x, y: x.gamma() * y.gamma() * (x + y).rgamma(),
    "zeta": lambda s, a=None: s.zeta() if a is None else s.zeta(a),
    "sinc": lambda x: x.sinc(),
    "floor": _whole,
    "ceiling": lambda x: -_whole(-x),
}

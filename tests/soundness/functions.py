"""Python functions with hand-written gradients, some of which are right at the given point only, or in fewer digits.

What a gradient returns is compared, entry by entry, with differences of the formula; what is right at the point alone
is wrong.
"""

from __future__ import annotations

import contextlib
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from mpmath import mp

import gradcli
from gradcli.checks import check_script
from tests.soundness.formulas import pick
from tests.soundness.points import PASSES, Judged, fault, literal
from tests.soundness.truth import DIGITS, Formula, exact, near, truth

if TYPE_CHECKING:
    from collections.abc import Callable

Function = "Callable[[Any], Any]"

# a formula, the function with NumPy, as a black box, and its gradient
SUBJECTS: tuple[tuple[str, Any, Any, Any], ...] = (
    ("sum(x**2)", lambda x: np.sum(x**2), lambda x: sum(float(v) ** 2 for v in x), lambda x: 2 * x),
    ("sum(x**3)", lambda x: np.sum(x**3), lambda x: sum(float(v) ** 3 for v in x), lambda x: 3 * x**2),
    ("sum(x)**2", lambda x: np.sum(x) ** 2, lambda x: float(sum(map(float, x))) ** 2, lambda x: 2 * np.sum(x) * np.ones(len(x))),
    ("sum(exp(x))", lambda x: np.sum(np.exp(x)), lambda x: sum(np.exp(float(v)) for v in x), lambda x: np.exp(x)),
    ("sum(sin(x)*x)", lambda x: np.sum(np.sin(x) * x), lambda x: sum(np.sin(float(v)) * float(v) for v in x), lambda x: np.sin(x) + x * np.cos(x)),
    ("x[0]**2*x[1] + x[1]", lambda x: x[0] ** 2 * x[1] + x[1], lambda x: float(x[0]) ** 2 * float(x[1]) + float(x[1]), None),
    ("norm(x)", lambda x: np.sqrt(np.sum(x * x)), lambda x: float(sum(float(v) ** 2 for v in x)) ** 0.5, lambda x: x / np.sqrt(np.sum(x * x))),
    ("sum(abs(x))", lambda x: np.sum(np.abs(x)), lambda x: sum(abs(float(v)) for v in x), lambda x: np.sign(x)),
    ("max(x)", lambda x: np.max(x), lambda x: max(map(float, x)), lambda x: (x == np.max(x)) * 1.0),
    ("sum(relu(x)**2)", lambda x: np.sum(np.maximum(x, 0) ** 2), lambda x: sum(max(float(v), 0.0) ** 2 for v in x), lambda x: 2 * np.maximum(x, 0)),
    ("1e8*x[0]**2 + 1e-4*x[1]**2", lambda x: 1e8 * x[0] ** 2 + 1e-4 * x[1] ** 2, lambda x: 1e8 * float(x[0]) ** 2 + 1e-4 * float(x[1]) ** 2, None),
    ("prod(x)", lambda x: np.prod(x), lambda x: float(np.prod([float(v) for v in x])), None),
    ("logsumexp(x)", lambda x: np.log(np.sum(np.exp(x))), lambda x: float(np.log(sum(np.exp(float(v)) for v in x))), lambda x: np.exp(x) / np.sum(np.exp(x))),
)  # fmt: skip


def _gradient_of(text: str) -> Any:
    def of_product(x: Any) -> Any:
        g = np.zeros(len(x))
        for i in range(len(x)):
            g[i] = np.prod(x[:i]) * np.prod(x[i + 1 :])
        return g

    def scaled(x: Any) -> Any:
        g = 0.0 * x
        g[0] = 2e8 * x[0]
        g[1] = 2e-4 * x[1]
        return g

    def of_two(x: Any) -> Any:
        g = 0.0 * x
        g[0] = 2 * x[0] * x[1]
        g[1] = x[0] ** 2 + 1
        return g

    return {"prod(x)": of_product, "1e8*x[0]**2 + 1e-4*x[1]**2": scaled}.get(text, of_two)


def _in_a_view(g: Any, x: Any) -> Any:
    result = g(x) + 0.0
    tail = result[1:]
    tail *= 1 + (x[0] - 1)
    return result


def _in_a_reshaped_view(g: Any, x: Any) -> Any:
    result = g(x) + 0.0
    rows = result.reshape(-1, 1)
    rows *= x[0]
    return result


def _rows(g: Any, x: Any) -> Any:
    table = np.outer(g(x), np.ones(2))
    for row in table:
        row *= x[0]
    return table.sum(1) / 2


def _out(g: Any, x: Any) -> Any:
    result = g(x) + 0.0
    np.multiply(result[:1], x[0], out=result[:1])
    return result


def _swallowed(g: Any, x: Any) -> Any:
    try:
        return g(x) * float(x[0])
    except Exception:
        return g(x)


def _branch_swallowed(g: Any, x: Any) -> Any:
    try:
        return 0 * g(x) if x[0] > 5 else g(x) * x[0]
    except Exception:
        return g(x)


def _loop(g: Any, x: Any, dtype: Any) -> Any:
    known = g(x)
    result = np.zeros_like(x, dtype=dtype)
    for i in range(len(x)):
        result[i] = known[i]
    return result


def _half(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return x.astype(np.float16)


def _suppressed(g: Any, x: Any) -> Any:
    scale = 1.0
    with contextlib.suppress(BaseException):
        scale = float(x[0])
    return g(x) * scale


def _remembering(g: Any) -> Callable[[Any], Any]:
    known: dict[str, Any] = {}
    return lambda x: g(known.setdefault("x", x))


def _counting(g: Any) -> Callable[[Any], Any]:
    calls = [0]

    def counted(x: Any) -> Any:
        calls[0] += 1
        return g(x) * (1 if calls[0] < 3 else 1.5)

    return counted


def _with_input_changed(g: Any, x: Any) -> Any:
    result = g(x) + 0.0
    x *= 2
    return result


# what becomes of a right gradient g; many are right where x[0] is 1 or where all entries are whole
TRAITS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda g: g,
    "plain too": lambda g: lambda x: 1.0 * g(x),
    "int": lambda g: lambda x: np.array(g(x), dtype=int),
    "asarray int": lambda g: lambda x: np.asarray(g(x)).astype(int),
    "int64 loop": lambda g: lambda x: _loop(g, x, np.int64),
    "float32 loop": lambda g: lambda x: _loop(g, x, np.float32),
    "float16": lambda g: lambda x: _half(g(x)),
    "float32": lambda g: lambda x: g(x).astype(np.float32),
    "through float32": lambda g: lambda x: np.asarray(g(x), np.float32).astype(np.float64),
    "input int": lambda g: lambda x: g(np.asarray(x, int) * 1.0),
    "around": lambda g: lambda x: np.around(g(x), 2),
    "trunc": lambda g: lambda x: np.trunc(g(x)),
    "view": lambda g: lambda x: _in_a_view(g, x),
    "reshaped": lambda g: lambda x: _in_a_reshaped_view(g, x),
    "rows": lambda g: lambda x: _rows(g, x),
    "out": lambda g: lambda x: _out(g, x),
    "swallowed": lambda g: lambda x: _swallowed(g, x),
    "branch swallowed": lambda g: lambda x: _branch_swallowed(g, x),
    "suppressed": lambda g: lambda x: _suppressed(g, x),
    "isinstance": lambda g: lambda x: g(x) * x[0] if isinstance(x, np.ndarray) else g(x),
    "type": lambda g: lambda x: 5 * g(x) if type(x) is np.ndarray and x[0] != 1 else g(x),
    "remembers": _remembering,
    "counts": _counting,
    "wide": lambda g: lambda x: g(x) * x[0],
    "where": lambda g: lambda x: np.where(np.asarray(x) > 0.25, g(x), 0.0),
    "last entry": lambda g: lambda x: np.concatenate([g(x)[:-1], 0 * g(x)[-1:]]),
    "first entry": lambda g: lambda x: np.concatenate([1.001 * g(x)[:1], g(x)[1:]]),
    "smallest entry": lambda g: lambda x: g(x) * (1 + 2.0 * (np.abs(g(x)) == np.min(np.abs(g(x))))),
    "sign": lambda g: lambda x: -g(x),
    "slip": lambda g: lambda x: g(x) * (1 + 1e-5),
    "dust": lambda g: lambda x: g(x) + 1e-17,
    "reversed": lambda g: lambda x: g(x)[::-1] * 1.0,
    "input changed": lambda g: lambda x: _with_input_changed(g, x),
    "fortran": lambda g: lambda x: np.asfortranarray(g(x)),
    "copy": lambda g: lambda x: np.copy(g(np.array(x) * 1.0)),
}  # fmt: skip
POINTS = (
    (1.0, 2.0, 3.0),
    (1.0, 0.5, -1.5),
    (1.0, 1.0),
    (0.6234567, 2.1234567, -1.3765433),
    (1e6, 1e-6, 1.0),
    (1.0, 0.0, 2.0),
    (1.0, 1e-10),
    (2.5, 0.125),
)


def worst(gradient: Any, known: Any, seen: float = 1e-16) -> float:
    """The largest relative error of an entry; what is smaller than what is `seen` beside the largest does not count."""
    flat = np.asarray(gradient, dtype=float).reshape(-1)
    if flat.size != len(known):
        return np.inf
    errors = []
    for value, true in zip(flat, known, strict=True):
        scale = abs(float(true))
        rest = max(abs(value - float(true)) - seen * max(abs(float(entry)) for entry in known), 0.0)
        errors.append(rest / scale if scale else (np.inf if rest > 1e-14 else 0.0))
    return float(np.max(errors)) if np.isfinite(flat).all() else np.inf


@cache
def gradient_at(text: str, point: tuple[float, ...], turns: int = 1) -> Any:
    """The gradient by x, which the few functions and points of this file share."""
    return truth(Formula(text), {"x": np.array(point)}, ("x",), turns=turns).gradient


def of_a_function(random: Any) -> list[Judged]:
    """A function, recorded or as a black box, with a gradient that has some trait."""
    text, whole, boxed, gradient = pick(random, SUBJECTS)
    name = pick(random, list(TRAITS))
    x = np.array(pick(random, POINTS))
    gradient = gradient or _gradient_of(text)
    f, route = (boxed, "black box") if random.random() < 0.3 else (whole, "function")
    df = TRAITS[name](gradient)
    with np.errstate(all="ignore"):
        if not np.isfinite(np.append(gradient(x), whole(x))).all():
            return []
    size = np.where(x == 0, 1.0, np.minimum(1.0, np.abs(x)))  # of steps
    away = np.linspace(0.11, 0.37, len(x))
    alone = [(1.0, np.where(np.arange(len(x)) == k, -0.004, 0.003)) for k in range(len(x))]  # one entry goes down
    steps = ((1.01, 0.003), (0.97, -0.004), (1.0, away), (1.0, -away), (1.7, 0.3), *alone)
    others = [x, x, *(x * factor + size * step for factor, step in steps)]
    with mp.workdps(DIGITS), np.errstate(all="ignore"):
        known = [gradient_at(text, tuple(point)) for point in others]
        if known[0] is None:
            errors, smooth = [np.inf], False
        else:
            smooth = True
            seen = 1e-9 if route == "black box" else 1e-16
            errors = [worst(df(x.copy()), known[0])]
            errors += [
                0.0 if true is None else worst(df(y.copy()), true, seen) for y, true in zip(others, known, strict=True)
            ]
    df = TRAITS[name](gradient)  # without what it remembers
    right: bool | None = max(errors) <= 1e-7
    with np.errstate(all="ignore"):
        strict = [worst(df(y.copy()), true, 0.0) for y, true in zip(others, known, strict=True) if true is not None]
    if right and max(strict) > 1e-7:
        right = None  # a wrong entry that is dust beside the largest
    if not right and smooth and max(errors[:3]) <= 1e-7 and (errors[3] <= 1e-7 or errors[4] <= 1e-7):
        right = None  # on one side of a branch through the point
    coarse = 1e-12 < max(errors) <= 2e-2  # in fewer digits, or off by as little
    whole = "int" in name and max(errors) < 1e-5
    if (
        coarse
        and right is False
        and name not in ("float16", "float32", "float32 loop", "through float32")
        and not whole
    ):
        coarse = False
    if name in ("dust", "input changed"):
        right = None if right or name == "dust" else right  # dust beside a 0, and a changed input, may be refused
    what = f"{route} {text} with {name} at {x.tolist()}"
    try:
        check = gradcli.check(f, df, at=x.copy()).checks[0]
    except gradcli.GradcliError as problem:
        return [Judged(route, f"{what}: {problem}", right, "ERROR", "an error")]
    if coarse:
        found = "fewer digits pass for all" if check.verdict in ("PROVED", "CERTIFIED") else ""
        right = None
    else:
        found = fault(right, smooth, check.verdict, check.message)
        if check.verdict == "IMPRECISE" and "near the point" in check.message and errors[0] <= 1e-7:
            found = ""  # whole numbers: right here, and said to be off nearby, relative to the largest entry
        if ("warning: differs" in check.message and errors[0] <= 1e-7) or "computed in float16" in check.message:
            found = ""  # right in the region of the point, and said to be wrong beside it; or few digits, which is said
    if check.verdict in PASSES and "not checked" in check.message:
        found = "what was not checked passes"
    return [Judged(route, f"{what}: {check.verdict} {check.message}", right, check.verdict, found)]


OUTPUTS = (
    "x[0]**2*x[1]",
    "5*x[0] + sin(x[1])",
    "exp(x[0] - x[1])",
    "abs(x[0] - x[1])*x[1]",
    "1e-6*x[0]*x[1]",
    "1e6*x[1]",
    "x[0]",
    "maximum(x[0], x[1])",
)


def of_a_jacobian(random: Any) -> list[Judged]:
    """A Jacobian in a script, or of a NumPy function: right, transposed, or with one wrong entry."""
    m = int(random.integers(1, 4))
    texts = [str(pick(random, OUTPUTS)) for _ in range(m)]
    x = np.array(pick(random, ((2.0, 3.0), (1.0, 1.0), (0.5, -1.25), (1e-6, 2.0))))
    with mp.workdps(DIGITS):
        rows = [gradient_at(text, tuple(x), turns=2) for text in texts]
        smooth = all(row is not None for row in rows)
        known = np.array([exact(np.zeros(2)) if row is None else row for row in rows], dtype=object)
        slip = pick(random, ("none", "none", "sign", "zero", "slip", "swap", "transposed", "double"))
        place = (int(random.integers(m)), int(random.integers(2)))
        claimed = known.copy()
        claimed[place] = {
            "sign": -known[place],
            "zero": mp.mpf(0),
            "slip": known[place] * mp.mpf("1.000001"),
            "double": 2 * known[place],
        }.get(slip, known[place])
        if slip == "swap":
            claimed = claimed[::-1]
        if slip == "transposed" and m == 2:
            claimed = claimed.T
        right = smooth and all(near(a, b, mp.mpf(10) ** -20) for a, b in zip(claimed.flat, known.flat, strict=True))
        numbers = f"[{', '.join(literal(row, (2,)) for row in claimed)}]"
    if random.random() < 0.5:
        script = f"x = {x.tolist()}\nf = [{', '.join(texts)}]\nassert jacobian(f, x) == {numbers}\nsum(f)"
        checks = check_script(script).checks
        check = next(check for check in checks if check.kind == "claim")
        return [
            Judged(
                "Jacobian",
                f"{script!r}: {check.verdict} {check.message}",
                right,
                check.verdict,
                fault(right, smooth, check.verdict, check.message),
            )
        ]
    space = {"sin": np.sin, "exp": np.exp, "maximum": np.maximum, "abs": np.abs}
    code = [compile(text, "<output>", "eval") for text in texts]
    floats = np.array(claimed, dtype=float)

    def f(x: Any) -> Any:
        return np.stack([eval(part, {**space, "x": x}) for part in code])

    changed = floats != np.array(known, dtype=float)
    if right or not changed.any():
        return []  # a Jacobian of numbers is right at the point alone
    check = gradcli.check(f, jac=lambda x: floats, at=x.copy()).checks[0]
    what = f"Jacobian of {texts} at {x.tolist()}, {slip} of {place}"
    return [
        Judged(
            "Jacobian",
            f"{what}: {check.verdict} {check.message}",
            False,
            check.verdict,
            fault(False, smooth, check.verdict, check.message),
        )
    ]


def of_a_torch_function(random: Any) -> list[Judged]:
    """A `torch.autograd.Function` whose backward may change what it was given, or send fewer digits; none without it."""
    if find_spec("torch") is None:
        return []
    import torch

    name = pick(
        random,
        ("right", "right", "factor", "half", "doubles x", "doubles ct", "in a view", "point only", "nan", "saved"),
    )

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x * x).sum()

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            (x,) = ctx.saved_tensors
            g = ct * 3 * x * x
            if name == "factor":
                return g * 1.5
            if name == "half":
                return g.half().to(x.dtype)
            if name == "doubles x":
                return g + 0 * x.mul_(2.0)
            if name == "doubles ct":
                return 3 * x * x * ct.mul_(2.0)
            if name == "in a view":
                tail = g[1:]
                tail *= x[0]
                return g
            if name == "point only":
                return g * x[0]
            if name == "nan":
                return g * torch.where(x > 0, 1.0, torch.nan)
            return 3 * x.detach().clone() ** 2 * ct if name == "saved" else g

    x = np.array(pick(random, ((1.0, 2.0, 3.0), (1.0, -0.5), (0.6234567, 2.1234567), (2.0, 1.0))))
    with mp.workdps(DIGITS):
        known = [3 * entry * entry for entry in exact(x)]
    right: bool | None = name in ("right", "saved")
    if name in ("doubles x", "half"):
        right = None
    if name == "nan" and (x > 0).all():
        right = None
    check = gradcli.check(Cube, at=x).checks[0]
    found = fault(right, True, check.verdict, check.message)
    if (
        name == "half"
        and check.verdict in ("PROVED", "CERTIFIED")
        and any(float(entry) != np.float16(float(entry)) for entry in known)
    ):
        found = "fewer digits pass for all"
    return [
        Judged(
            "torch", f"Cube with {name} at {x.tolist()}: {check.verdict} {check.message}", right, check.verdict, found
        )
    ]

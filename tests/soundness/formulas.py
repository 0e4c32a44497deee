"""Formulas with ties, edges and jumps, and claims about their derivatives: texts only, drawn from a random generator.

What a claim is, right or wrong, is not decided here but by `truth`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.random import Generator

# smooth functions of a positive u, each with its derivative
SMOOTH = (
    ("sin({u})", "cos({u})*{du}"), ("exp(0.5*{u})", "0.5*exp(0.5*{u})*{du}"), ("log({u} + 0.5)", "{du}/({u} + 0.5)"),
    ("sqrt({u})", "{du}/(2*sqrt({u}))"), ("tanh({u})", "(1 - tanh({u})**2)*{du}"), ("atan({u})", "{du}/(1 + ({u})**2)"),
    ("({u})**2", "2*({u})*{du}"), ("({u})**3", "3*({u})**2*{du}"), ("log1p({u})", "{du}/(1 + {u})"),
    ("expm1(0.3*{u})", "0.3*exp(0.3*{u})*{du}"), ("sinh(0.4*{u})", "0.4*cosh(0.4*{u})*{du}"),
    ("1/({u} + 1)", "-{du}/({u} + 1)**2"), ("sigmoid({u})", "sigmoid({u})*(1 - sigmoid({u}))*{du}"),
    ("softplus({u})", "sigmoid({u})*{du}"), ("cos({u})", "-sin({u})*{du}"), ("asinh({u})", "{du}/sqrt(1 + ({u})**2)"),
    ("erf({u})", "2*exp(-({u})**2)*{du}/sqrt(pi)"), ("({u} + 1)*exp(-{u})", "-({u})*exp(-{u})*{du}"),
)  # fmt: skip
# what a tie at t = 0 makes of t, where t = u - k, u' = du; claims that hold on one side, on both, or by a convention
TIES = (
    ("abs({t})", ("sign({t})*{du}", "{du}", "-({du})", "0*x")),
    ("relu({t})", ("where({t} > 0, {du}, 0)", "where({t} >= 0, {du}, 0)", "{du}/2", "0*x")),
    ("relu(-({t}))", ("where({t} < 0, -({du}), 0)", "0*x")),
    ("maximum({u}, {k})", ("where({u} > {k}, {du}, 0)", "where({u} >= {k}, {du}, 0)", "0.5*({du})")),
    ("minimum({u}, {k})", ("where({u} < {k}, {du}, 0)", "0.5*({du})", "{du}")),
    ("leaky_relu({t})", ("where({t} > 0, {du}, 0.01*({du}))", "0.01*({du})")),
    ("elu({t})", ("where({t} > 0, 1, exp({t}))*({du})", "{du}", "0*x")),
    ("clamp({u}, {k}, {k} + 9)", ("where({u} > {k}, {du}, 0)", "where({u} >= {k}, {du}, 0)", "0*x")),
    ("sign({t})", ("0*x",)), ("floor({t})", ("0*x",)), ("x*sign({t})", ("sign({t})", "x - x")),
    ("where({u} > {k}, x**2, x)", ("where({u} > {k}, 2*x, 1)", "where({u} >= {k}, 2*x, 1)")),
    ("where({u} == {k}, 1, {u})", ("{du}",)), ("where({u} == {k}, {k}, {u})", ("{du}", "0*x", "where({u} == {k}, 0, {du})")),
    ("where({u} < {k}, x**2, x**2 + 1e-30)", ("2*x", "2*x + 1e-30")),
    ("x**2 + 1e-18*abs({t})", ("2*x", "2*x + 1e-18*sign({t})*({du})")),
    ("sqrt({t})", ("{du}/(2*sqrt({t}))",)), ("sqrt(abs({t}))", ("sign({t})*({du})/(2*sqrt(abs({t})))", "0*x")),
    ("cbrt({t})", ("{du}/(3*cbrt({t})**2)", "0*x")),
    ("abs({t})**2", ("2*({t})*({du})", "0*x")), ("({t})*abs({t})", ("2*abs({t})*({du})", "0*x", "2*({t})*({du})")),
    ("abs({t})**3", ("3*({t})*abs({t})*({du})", "3*({t})**2*({du})")), ("abs({t})**1.5", ("1.5*sign({t})*sqrt(abs({t}))*({du})", "0*x")),
    ("relu({t})**2", ("2*relu({t})*({du})", "2*({t})*({du})", "0*x")), ("abs({t}) - abs(-({t}))", ("0*x", "{du}")),
    ("relu({t}) - relu(-({t}))", ("{du}", "0*x", "sign({t})*({du})")), ("hypot({t}, 0)", ("sign({t})*({du})", "0*x")),
    ("sqrt(({t})**2)", ("sign({t})*({du})", "{du}", "0*x")), ("acos(cos({t}))", ("sign({t})*({du})", "{du}", "0*x")),
    ("exp(-abs({t}))", ("-sign({t})*exp(-abs({t}))*({du})", "0*x")), ("abs({t})*sin({t})", ("2*abs({t})*({du})", "0*x")),
    ("where({t} == 0, 1, sin({t})/({t}))", ("0*x", "{du}")), ("where({t} == 0, 0, ({t})**2*sin(1/({t})))", ("0*x",)),
    ("maximum({t}, -({t}))**2", ("2*({t})*({du})", "0*x")), ("log1p(abs({t}))", ("sign({t})/(1 + abs({t}))*({du})",)),
    ("abs({t} + 1e-25)", ("sign({t} + 1e-25)*({du})", "{du}", "-({du})", "0*x")),
    ("relu({t} - 1e-40)", ("0*x", "{du}", "where({t} > 0, {du}, 0)")),
    ("where({u} > {k} + 1e-30, x**3, x)", ("1 + 0*x", "3*x**2")),
)  # fmt: skip
# t is 0 for every x, or where y = x, in a way that no double shows
IDENTITIES = (
    "sin({x})**2 + cos({x})**2 - 1", "log(exp({x})) - {x}", "exp({x})*exp(y) - exp({x} + y)", "sqrt({x}**2) - {x}",
    "tanh({x})*cosh({x}) - sinh({x})", "({x} + y)**2 - {x}**2 - 2*{x}*y - y**2", "log({x}*y) - log({x}) - log(y)",
)  # fmt: skip
OF_IDENTITIES = (
    "abs({t})",
    "x**2 + abs({t})",
    "maximum({t}, 0)*x",
    "relu({t}) + y*x",
    "exp(abs({t}))*x",
    "({t})*x + x*y",
)
TWO = (
    "abs({u} - {v})", "relu({u} - {v})*x", "maximum({u}, {v})", "minimum({u}, {v})*y", "sqrt({u} - {v})", "sqrt(({u} - {v})**2)",
    "where({u} > {v}, x*y, x + y)", "sign({u} - {v})*x", "abs({u} - {v})**2 + x", "({u} - {v})*abs({u} - {v})", "hypot({u} - {v}, x - y)",
    "hypot({u} - {v}, x - y)**2", "minimum(abs({u} - {v}), abs(x - y))", "atan2({u} - {v}, x - y)", "where({u} == {v}, x*y, x*y)",
    "maximum({u}, {v}) + minimum({u}, {v})", "where(x > 9, abs({u} - {v}), x*y)", "abs({u} - {v})*(x - y)", "relu({u})*relu(-({v}))",
)  # fmt: skip
VECTORS = (
    "max({g})", "min({g})", "sum(sort({g})*w)", "median({g})", "sum(abs({g} - {h}))", "sum(relu({g} - {h})*w)", "norm(z - r)",
    "norm(z - r)**2", "norm({g} - {h})**2 + z[0]", "norm(z - r)*z[0]", "max(softmax(z))", "max(abs(z - r))", "prod(z)",
    "sum(maximum({g}, {h}))", "logsumexp(z)", "sum(softmax(z)*w)", "var({g})", "sum({g})**2", "sum(cumsum({g})*w)", "max(z)*min(z)",
    "sum(sort(z))", "max(z) + min(z)", "sum(z)/norm(z)", "sum(abs(z)**2)", "abs(sum(z) - sum(r))", "sum(where(z > r, z**2, z)*w)",
    "sum(1e8*z[0]**2 + 1e-8*z[1]**2)", "norm(z)**2", "sum(z*abs(z))", "relu(norm(z) - norm(r))", "sqrt(sum((z - r)**2))", "prod(z - r)",
)  # fmt: skip
SMALL = (
    "x*1e-400",
    "exp(-x**2)*1e-300",
    "exp(-exp(x))",
    "x**2*1e-200*1e-200",
    "exp(-x)*x",
    "1e-320*sin(x)",
    "x*1e-20 + x**2*1e-20",
)


class Stated(NamedTuple):
    """A formula at a point, with claims by `leaf`; a claim that begins with # names a number made of the truth."""

    text: str
    at: dict[str, Any]
    leaf: str
    claims: tuple[str, ...]
    family: str


NUMERIC = ("#right", "#left", "#mean", "#zero", "#sign", "#double", "#slip", "#entry")


def pick(random: Generator, choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def chain(random: Generator, depth: int | None = None) -> tuple[str, str]:
    """A smooth function of {x} and its derivative: each is positive where {x} is, or stands innermost."""
    u, du = "{x}", "1"
    for level in range(int(random.integers(0, 4)) if depth is None else depth):
        f, df = pick(random, SMOOTH)
        u, du = (f.replace("{u}", u), df.replace("{u}", u).replace("{du}", f"({du})"))
        if level < 2 and f.startswith(("cos", "log", "sin")):
            u = f"(1.5 + {u})"
    return u, du


def at_a_tie(random: Generator) -> Stated:
    u, du = chain(random)
    c = float(pick(random, (0.5, 1.0, 1.25, 2.0, 0.75, 3.0, 0.3, 0.1, 1.7)))
    away = pick(random, (0.0, 0.0, 0.0, 0.0, 0.25, -0.0625))
    form, claims = pick(random, TIES)
    u, k, du = u.replace("{x}", "x"), u.replace("{x}", repr(c)), du.replace("{x}", "x")
    t = f"({u} - {k})"

    def filled(text: str) -> str:
        return text.replace("{t}", t).replace("{u}", f"({u})").replace("{k}", f"({k})").replace("{du}", f"({du})")

    text, own = filled(form), [filled(claim) for claim in claims]
    if random.random() < 0.3:
        text, own = f"{text} + sin(2*x)", [f"{claim} + 2*cos(2*x)" for claim in own]
    elif random.random() < 0.15:
        text, own = f"3*({text})", [f"3*({claim})" for claim in own]
    return Stated(text, {"x": c + away}, "x", (*own, *NUMERIC[:7]), "tie")


def of_an_identity(random: Generator) -> Stated:
    x = pick(random, ("x", "x", "x**2", "(x + y)"))
    t = pick(random, IDENTITIES).replace("{x}", x)
    at = {"x": float(pick(random, (0.5, 0.3, 1.7, 2.0))), "y": float(pick(random, (0.5, 0.7, 1.25)))}
    text = pick(random, OF_IDENTITIES).replace("{t}", t)
    at = {name: value for name, value in at.items() if re.search(rf"\b{name}\b", text)}
    return Stated(text, at, pick(random, tuple(at)), NUMERIC[:7], "identity")


def of_two(random: Generator) -> Stated:
    u, du = chain(random)
    form = pick(random, TWO)
    text = form.replace("{u}", u.replace("{x}", "x")).replace("{v}", u.replace("{x}", "y"))
    x = float(pick(random, (0.5, 1.0, 0.3, 1.7, 2.0)))
    away = pick(random, (0.0, 0.0, 0.0, 0.25, 1e-17))
    return Stated(text, {"x": x, "y": x + away}, pick(random, ("x", "y")), NUMERIC[:7], "two")


def of_a_vector(random: Generator) -> Stated:
    g = chain(random, int(random.integers(0, 3)))[0]
    n = int(random.integers(1, 4)) + 1
    values = pick(
        random,
        (
            (0.5, 0.5, 1.25, 2.0),
            (0.25, 1.5, 0.75),
            (0.3, 0.3, 0.7),
            (0.0, 0.0, 1.0),
            (1e6, 1e-6, 1.0),
            (-0.5, 0.5, 0.25),
        ),
    )
    z = np.array([float(pick(random, values)) for _ in range(n)])
    r = z.copy() if random.random() < 0.6 else np.array([float(pick(random, values)) for _ in range(n)])
    text = pick(random, VECTORS)
    inside = "z" if (z <= 0).any() and "g" in text and g != "{x}" else g.replace("{x}", "z")
    text = text.replace("{g}", inside).replace("{h}", re.sub(r"\bz\b", "r", inside))
    at: dict[str, Any] = {"z": z}
    at |= {name: value for name, value in (("r", r), ("w", np.arange(1.0, n + 1))) if re.search(rf"\b{name}\b", text)}
    return Stated(text, at, "z", NUMERIC, "vector")


def of_something_small(random: Generator) -> Stated:
    return Stated(
        pick(random, SMALL),
        {"x": float(pick(random, (1.0, 10.0, 30.0, 0.5)))},
        "x",
        ("#right", "#zero", "#sign", "#double"),
        "small",
    )


def smooth(random: Generator) -> Stated:
    u, du = chain(random, int(random.integers(1, 4)))
    v, dv = chain(random, int(random.integers(0, 3)))
    u, du, v, dv = (part.replace("{x}", "x") for part in (u, du, v, dv))
    x = float(pick(random, (0.5, 1.0, 0.3, 1.7, 2.5)))
    text, claim = pick(random, ((f"({u})*({v})", f"({du})*({v}) + ({u})*({dv})"), (f"({u}) - {v}", f"({du}) - ({dv})"), (f"({u})/(2 + ({v})**2)", f"({du})/(2 + ({v})**2) - ({u})*2*({v})*({dv})/(2 + ({v})**2)**2")))  # fmt: skip
    slips = (
        f"({claim})*(1 + 1e-9)",
        f"{claim} + 1e-12",
        f"-({claim})",
        f"({du})*({dv})",
        f"{claim} + 3*(x - {x!r})",
        f"({claim})*x/{x!r}",
        f"2*({claim})",
    )
    return Stated(text, {"x": x}, "x", (claim, claim, *slips, *NUMERIC[:7]), "smooth")


POINTS = (
    at_a_tie,
    at_a_tie,
    at_a_tie,
    of_an_identity,
    of_two,
    of_two,
    of_a_vector,
    of_a_vector,
    of_something_small,
    smooth,
)


def moved(at: Mapping[str, Any], leaf: str, factor: float) -> dict[str, Any]:
    """The point with one leaf moved by a factor of about 1."""
    return {**at, leaf: at[leaf] * factor + (factor - 1) / 8}

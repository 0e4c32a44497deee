"""Ties that only exact arithmetic decides: verdicts and one-sided slopes, and what stays open is said to be so."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import fmpq

from gradcli.checks import check_script
from gradcli.checks.evaluate import ball_numbers
from gradcli.checks.evaluate.interpretation import MOST_BITS, Undecided, Undefined
from gradcli.checks.expansions.exact_reals import ExactReal, ExpressionPool, fraction
from gradcli.graph.primitive import Primitive
from gradcli.primitives import catalogue
from gradcli.primitives.powers import pow_
from tests.support.rows import all_rows

Slopes = tuple[float, float] | None

# --- signs of numbers ---------------------------------------------------------------------------------------------


def number(pool: ExpressionPool, value: Any) -> ExactReal:
    exact = Fraction(value)
    return fraction(pool, fmpq(exact.numerator, exact.denominator))


THIRD = Fraction(1, 3)
ZEROS: dict[str, Callable[[Callable[[Any], ExactReal]], Any]] = {
    "a square of a root": lambda n: n(2).sqrt() ** 2 - 2,
    "a product of roots": lambda n: n(2).sqrt() * n(3).sqrt() - n(6).sqrt(),
    "a nested root": lambda n: (3 + 2 * n(2).sqrt()).sqrt() - 1 - n(2).sqrt(),
    "a cube root": lambda n: (7 + 5 * n(2).sqrt()).raised(THIRD) - 1 - n(2).sqrt(),
    "roots of Ramanujan": lambda n: (
        (n(2).raised(THIRD) - 1).raised(THIRD)
        - n("1/9").raised(THIRD)
        + n("2/9").raised(THIRD)
        - n("4/9").raised(THIRD)
    ),
    "a sine and a cosine": lambda n: n(2).sin() ** 2 + n(2).cos() ** 2 - 1,
    "the logarithm of an exponential": lambda n: n("0.3").exp().log() - Fraction("0.3"),
    "a product of exponentials": lambda n: n(0.3).exp() * n(0.1).exp() - (n(0.3) + n(0.1)).exp(),
    "a power": lambda n: n(2).raised(Fraction(1, 7)) ** 7 - 2,
    "angles": lambda n: 4 * n("1/5").atan() - n("1/239").atan() - n(0).pi() / 4,
    "a sine of pi": lambda n: (n(0).pi() / 6).sin() - Fraction(1, 2),
    "a gamma function": lambda n: n(5).lgamma() - n(24).log(),
    "an error function": lambda n: (n(2).sqrt() ** 2).erf() - n(2).erf(),
    "one function of equal numbers": lambda n: (n(4).sqrt() / 3).digamma() - n("2/3").digamma(),
}
OTHERS: dict[str, Callable[[Callable[[Any], ExactReal]], Any]] = {
    "near the root of 2": lambda n: (
        n(2).sqrt() - Fraction(f"1.4142135623730950488016887242096980785696718753769{'4' * 3}")
    ),
    "sums of roots": lambda n: n(10).sqrt() + n(11).sqrt() - n(5).sqrt() - n(18).sqrt(),
    "the constant of Ramanujan": lambda n: (n(0).pi() * n(163).sqrt()).exp() - 262537412640768744,
    "far below a double": lambda n: (-n(2000).exp()).exp(),
}


@pytest.mark.parametrize("name", ZEROS)
def test_an_expression_that_is_zero_is_proved_to_be(name: str) -> None:
    pool = ExpressionPool()
    zero = ZEROS[name](lambda value: number(pool, value))
    assert zero.sign() == 0
    assert (zero + Fraction(1, 10**300)).sign() == 1, "near zero is not zero"


@pytest.mark.parametrize("name", OTHERS)
def test_an_expression_that_is_not_zero_has_a_sign(name: str) -> None:
    pool = ExpressionPool()
    assert OTHERS[name](lambda value: number(pool, value)).sign() in (-1, 1)


def test_a_zero_without_a_proof_is_left_open() -> None:
    pool = ExpressionPool()
    x, pi = number(pool, "0.3"), number(pool, 0).pi()
    reflected = x.gamma() * (1 - x).gamma() - pi / (pi * x).sin()
    with pytest.raises(Undecided, match=f"{MOST_BITS:,} bits do not tell"):
        reflected.sign()
    with pytest.raises(Undefined, match="log is undefined at 0"):
        (number(pool, 2).sqrt() ** 2 - 2).log()


def test_random_radicals_have_the_signs_of_their_digits() -> None:
    generator = random.Random(0)
    for _ in range(200):
        pool = ExpressionPool()
        whole = [generator.randint(1, 30) for _ in range(4)]
        exact = [number(pool, n).sqrt() for n in whole]
        shares = [generator.randint(-3, 3) for _ in whole]
        total = sum(x * share for x, share in zip(exact, shares, strict=True)) + number(pool, 0)
        square = total * total - sum(n * share**2 for n, share in zip(whole, shares, strict=True))
        pairs = [(i, j) for i in range(4) for j in range(i)]
        crossed = sum(2 * shares[i] * shares[j] * number(pool, whole[i] * whole[j]).sqrt() for i, j in pairs)
        assert (square - crossed).sign() == 0
        with mpmath.workdps(80):
            true = mpmath.fsum(share * mpmath.sqrt(n) for n, share in zip(whole, shares, strict=True))
        assert total.sign() == (0 if abs(true) < 1e-70 else int(mpmath.sign(true)))


# --- verdicts at ties -----------------------------------------------------------------------------------------------

E = 2.718281828459045
TIES: list[tuple[str, dict[str, Any], str, Slopes]] = [
    ("abs(sin(x) - sin(1))", {"x": 1.0}, "KINK", (-0.5403023, 0.5403023)),
    ("abs(exp(x) - exp(y))", {"x": 0.5, "y": 0.5}, "KINK", (-1.6487213, 1.6487213)),
    ("maximum(sqrt(x), sqrt(2))", {"x": 2.0}, "KINK", (0, 0.3535534)),
    ("minimum(cosh(x), cosh(1))", {"x": 1.0}, "KINK", (1.1752012, 0)),
    ("clamp(exp(x), 0, exp(0.5))", {"x": 0.5}, "KINK", (1.6487213, 0)),
    ("abs(log(exp(x)) - y)", {"x": 0.3, "y": 0.3}, "KINK", (-1, 1)),
    ("abs(asin(x) - pi/6)", {"x": 0.5}, "KINK", (-1.1547005, 1.1547005)),
    ("abs(lgamma(x) - log(24))", {"x": 5.0}, "KINK", (-1.5061177, 1.5061177)),
    ("max(softmax(z))", {"z": [1.0, 1.0, 0.0]}, "KINK", (-0.1783532, 0.2439656)),
    ("max(exp(z))", {"z": [0.5] * 3 + [0.1] * 150}, "KINK", (0, 1.6487213)),
    ("median([exp(x), exp(1), 5])", {"x": 1.0}, "KINK", (0, E)),
    ("sum(sort(exp(z))*[1, 2])", {"z": [1.0, 1.0]}, "KINK", (E, 2 * E)),
    ("argmax([exp(x), exp(1), 1])*x", {"x": 1.0}, "DISCONTINUOUS", None),
    ("where(sin(x) == sin(1), 5, x)", {"x": 1.0}, "DISCONTINUOUS", None),
    ("where(exp(x) > exp(1), x**2, x)", {"x": 1.0}, "KINK", (1, 2)),
    ("where(exp(x) > exp(1), x**2, 2*x - 1)", {"x": 1.0}, "CERTIFIED", None),
    ("sign(sqrt(x) - sqrt(2))", {"x": 2.0}, "DISCONTINUOUS", None),
    ("floor(exp(log(x)))", {"x": 3.0}, "DISCONTINUOUS", None),
    ("mod(log(x), log(2))", {"x": 4.0}, "DISCONTINUOUS", None),
    ("relu(norm(a - p) - norm(a - n))", {"a": [0.0, 0.0], "p": [1.0, 2.0], "n": [2.0, 1.0]}, "KINK", (0, 0.4472136)),
    ("norm([exp(x) - exp(1), sqrt(x) - 1])", {"x": 1.0}, "KINK", (-2.7638845, 2.7638845)),
    ("acos(u@v/(norm(u)*norm(v)))", {"u": [1.0, 2.0, 3.0], "v": [1.0, 2.0, 3.0]}, "KINK", (-0.2575394, 0.2575394)),
    ("acos(exp(x)/exp(0.5))", {"x": 0.5}, "BOUNDARY", None),
    ("sqrt(exp(x) - exp(y))", {"x": 0.5, "y": 0.5}, "BOUNDARY", None),
    ("cbrt(exp(x) - exp(1))", {"x": 1.0}, "BOUNDARY", None),
    ("acos(sin(a)**2 + cos(a)**2)", {"a": 0.85}, "UNDEFINED", None),
    ("log(exp(x) - exp(1))", {"x": 1.0}, "UNDEFINED", None),
    ("x/(exp(x) - exp(0.5))", {"x": 0.5}, "UNDEFINED", None),
    ("y*tan(pi/2)", {"y": 1.0}, "UNDEFINED", None),
    ("abs(abs(sin(x) - sin(1)) - (sin(x) - sin(1)))", {"x": 1.0}, "KINK", (-1.0806046, 0)),
    ("relu(sin(x) - sin(1) - cos(1)*(x - 1))", {"x": 1.0}, "CERTIFIED", None),
    ("relu(sin(1) + cos(1)*(x - 1) - sin(x))**0.5", {"x": 1.0}, "KINK", (-0.6486412, 0.6486412)),
    ("x + abs(x)*1e-60", {"x": 0.0}, "KINK", (1, 1)),
    ("x + abs(sin(x) - sin(1))*1e-40", {"x": 1.0}, "KINK", (1, 1)),
    ("y = x\nfor i in range(5):\n    y = sin(y)\nabs(y - sin(sin(sin(sin(sin(0.5))))))", {"x": 0.5}, "KINK",
     (-0.5719029, 0.5719029)),
    ("y = 0\nfor i in range(400):\n    y = y + relu(exp(x) - exp(1))\ny", {"x": 1.0}, "KINK", (0, 400 * E)),
    ("abs(sin(x)**2 + cos(x)**2 - 1)", {"x": 0.3}, "PROVED", None),
    ("abs(sqrt(x)*sqrt(3) - sqrt(3*x)) + x**2", {"x": 2.5}, "PROVED", None),
    ("abs(x - 0.1 - 0.2)", {"x": 0.3}, "PROVED", None),
    ("acos(cos(x))", {"x": 0.0}, "KINK", (-1, 1)),
]  # fmt: skip


@all_rows(("text", "at", "verdict", "slopes"), TIES, ids=[text[:60] for text, *_ in TIES])
def test_a_tie_is_decided(text: str, at: dict[str, Any], verdict: str, slopes: Slopes) -> None:
    check = check_script(text, at=at, wrt=[next(iter(at))]).checks[0]
    assert check.verdict == verdict, check.message
    if slopes is not None:
        evidence: Any = check.evidence
        assert (evidence["left"][0], evidence["right"][0]) == pytest.approx(slopes, abs=1e-6)


OPEN = [
    ("abs(gamma(x)*gamma(1 - x) - pi/sin(pi*x))", {"x": 0.3}, "`gamma(x)*gamma(1 - x) - pi/sin(pi*x)` may be 0 here"),
    (
        "maximum(gamma(x)*gamma(1 - x)*sin(pi*x), pi)",
        {"x": 0.3},
        "`gamma(x)*gamma(1 - x)*sin(pi*x) - pi` may be 0 here",
    ),
    # functions whose series stop at 1,024 bits
    ("relu(zeta(x) - pi**2/6)", {"x": 2.0}, "`zeta(x, 1) - pi**2/6` may be 0 here"),
    ("abs(ellipk(x) - ellipk(0.5))", {"x": 0.5}, "`ellipk(x) - ellipk(0.5)` may be 0 here"),
]


@pytest.mark.parametrize(("text", "at", "words"), OPEN)
def test_what_stays_open_is_named(text: str, at: dict[str, float], words: str) -> None:
    """Nothing is proved or measured where a sign is open: an identity in index notation holds off the tie only."""
    check = check_script(text, at=at).checks[0]
    assert check.verdict == "INCONCLUSIVE"
    assert check.message == f"{words}: 8,192 bits do not tell"


def test_the_slopes_of_an_array_name_the_entry() -> None:
    (check,) = check_script("sum(maximum(x, [0, 1]))", at={"x": [4.0, 1.0]}).checks
    assert check.message == "maximum(x, [0, 1]) has a kink (x = [0, 1]): slopes 0 from below, 1 from above along x[1]"


SAME_DIGITS = [  # kinks whose slopes are equal in six digits, or in all doubles, and along which entry
    ("x + abs(x)*1e-300", 0.0, "slopes 2e-300 apart"),
    ("x + abs(x)*1e-7", 0.0, "slopes 2e-07 apart"),
    ("x[0] + abs(x[1])*1e-400", [1.0, 0.0], "slopes less than 1e-308 apart along x[1]"),
    ("median(sqrt(erf(x)))", [1e6, 1e6, 1.0, 1e-6], "slopes less than 1e-308 apart along x[0]"),
    ("where(norm(x) == 0, 0, x[0]*x[1]/norm(x))", [0.0, 0.0], "the partial derivatives exist, but not those"),
]


@pytest.mark.parametrize(("text", "at", "words"), SAME_DIGITS)
def test_two_equal_slopes_are_not_shown_as_a_kink(text: str, at: Any, words: str) -> None:
    check = check_script(text, at={"x": at}).checks[0]
    assert check.verdict == "KINK" and words in check.message and "from below" not in check.message, check.message


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        (
            "abs(x) + relu(x - y)",
            {"x": 0, "y": 0},
            "abs(x) has a kink (x = 0); also relu(x - y) (x - y = 0): slopes -1 ",
        ),
        (
            "relu(x) + abs(x) + elu(x, 2) + abs(y)",
            {"x": 0, "y": 0},
            "relu(x) has a kink (x = 0); also abs(x) (x = 0), elu(x, 2) (x = 0): slopes",
        ),
        ("floor(x) + abs(x)", {"x": 0}, "floor(x) (x a whole number)"),
        ("xlogy(x, x)", {"x": 0}, "xlogy(x, x) has no finite derivative (x = 0): "),
    ],
)
def test_every_kink_at_the_point_is_named_once(text: str, at: Any, words: str) -> None:
    check = check_script(text, at=at, wrt=["x"]).checks[0]
    assert words in check.message and check.message.count("x = 0") == words.count("x = 0")


def test_a_vertical_slope_is_shown_on_both_sides() -> None:
    check = check_script("cbrt(x)", at={"x": 0.0}).checks[0]
    assert check.verdict == "BOUNDARY" and "slopes inf from below, inf from above" in check.message


# --- edges of domains -------------------------------------------------------------------------------------------------

EDGES: list[tuple[str, float, str]] = [
    ("poisson_logpmf(0, x)", 0.0, "BOUNDARY"),
    ("poisson_logpmf(0, x)", -0.5, "UNDEFINED"),
    ("xlogy(0, x)", 0.0, "BOUNDARY"),
    ("xlog1py(0, x)", -2.0, "UNDEFINED"),
    ("sum(xlogy([0, 1], [x, 2]))", 0.0, "BOUNDARY"),
    ("sum(xlogy([0, 1], [x, 2]))", 0.5, "PROVED"),
    ("ellipe(x**2)", 1.0, "BOUNDARY"),
    ("entr(x)", 0.0, "BOUNDARY"),
    ("x**3", -2.0, "PROVED"),
]


@pytest.mark.parametrize(("text", "x", "verdict"), EDGES)
def test_the_edge_of_a_domain_is_decided(text: str, x: float, verdict: str) -> None:
    check = check_script(text, at={"x": x}).checks[0]
    assert check.verdict == verdict, check.message


BOUNDED = {
    (primitive, operand, edge + side * away): away
    for primitive in sorted(catalogue().values(), key=lambda primitive: primitive.name)
    if primitive.pointwise and not primitive.internal and primitive is not pow_
    for operand, domain in enumerate(primitive.domain)
    for edge, side in ((domain.low, -1), (domain.high, 1))
    if np.isfinite(edge)
    for away in (0.0, 0.5)
}


@all_rows(("primitive", "operand", "x"), BOUNDED, ids=lambda part: getattr(part, "name", str(part)))
def test_outside_its_domain_no_gradient_passes(primitive: Primitive, operand: int, x: float) -> None:
    others = [str(round((sample.low + sample.high) / 2, 2)) for sample in primitive.sample]
    others[operand] = "x"
    check = check_script(f"{primitive.name}({', '.join(others)})", at={"x": x}).checks[0]
    wanted = ("UNDEFINED",) if BOUNDED[primitive, operand, x] else ("UNDEFINED", "BOUNDARY", "INCONCLUSIVE")
    assert check.verdict in wanted, check.message


def test_equal_sides_through_a_tie_are_compared() -> None:
    """A claim that is an equality, where a side decides a branch by a number that is 0."""
    right = check_script("assert where(exp(x) > exp(1), 7, x**2) == 1\nx", at={"x": 1.0}).checks[-1]
    wrong = check_script("assert where(exp(x) >= exp(1), 7, x**2) == 1\nx", at={"x": 1.0}).checks[-1]
    assert (right.verdict, wrong.verdict) == ("CERTIFIED", "DISAGREES")


# --- random ties ----------------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": mpmath.exp, "sin": mpmath.sin, "cos": mpmath.cos, "sqrt": mpmath.sqrt, "log": mpmath.log,
    "tanh": mpmath.tanh, "atan": mpmath.atan, "sinh": mpmath.sinh, "erf": mpmath.erf, "asinh": mpmath.asinh,
    "log1p": lambda x: mpmath.log(1 + x), "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
}  # fmt: skip
SHAPES: dict[str, Callable[[Any, Any, Any], Any]] = {  # of f(x), f(y), and x itself, where x and y may be equal
    "abs({f} - {g})": lambda f, g, x: abs(f - g),
    "relu({f} - {g})*x": lambda f, g, x: max(f - g, mpmath.mpf(0)) * x,
    "maximum({f}, {g}) + x": lambda f, g, x: max(f, g) + x,
    "abs({f} - {g})*({f} - {g})": lambda f, g, x: abs(f - g) * (f - g),
    "where({f} >= {g}, x**2, x)": lambda f, g, x: x**2 if f >= g else x,
    "max([{f}, {g}, {f} - 1])": lambda f, g, x: max(f, g),
    "abs(2*({f} - {g}) + relu({f} - {g}))": lambda f, g, x: abs(2 * (f - g) + max(f - g, mpmath.mpf(0))),
    "sum(sort([{f}, {g}])*[1, 3])": lambda f, g, x: min(f, g) + 3 * max(f, g),
}


def slopes_of(value: Callable[[Any], Any], center: Any, step: Any) -> tuple[Any, Any, Any]:
    """The slopes from the right and from the left, and the larger one by a step that is a million times longer."""
    sides = [(value(center + way * step) - value(center)) / (way * step) for way in (1, -1)]
    longer = [(value(center + way * 1e6 * step) - value(center)) / (way * 1e6 * step) for way in (1, -1)]
    return sides[0], sides[1], max(longer, key=abs)


def random_ties(count: int, seed: int) -> None:
    """Verdicts at random ties, and beside them, against differences of the value at 400 digits."""
    generator = random.Random(seed)
    for _ in range(count):
        names = generator.choices(list(FUNCTIONS), k=generator.randint(1, 3))
        shape, x = generator.choice(list(SHAPES)), generator.choice([0.3, 0.5, 1.0, 1.7, 2.5])
        y = x if generator.random() < 0.8 else x + generator.choice([1e-3, 2.0**-50])
        f, g = "x", "y"
        for name in names:
            f, g = f"{name}({f})", f"{name}({g})"
        with mpmath.workdps(400):
            step = mpmath.mpf(10) ** -120

            def inner(value: Any, names: list[str] = names) -> Any:
                for name in names:
                    value = FUNCTIONS[name](value)
                return value

            def value(place: Any, shape: str = shape, inner: Any = inner, y: float = y) -> Any:
                return SHAPES[shape](inner(place), inner(mpmath.mpf(y)), place)

            center = mpmath.mpf(x)
            ends = inner(center), inner(mpmath.mpf(y))
            if not all(isinstance(end, mpmath.mpf) and abs(end) < mpmath.mpf(10) ** 200 for end in ends):
                continue
            below, above = (inner(center + way * step) for way in (-1, 1))
            bounded = not (isinstance(below, mpmath.mpf) and isinstance(above, mpmath.mpf))
            right, left, farther = (0, 0, 0) if bounded else slopes_of(value, center, step)
            vertical = abs(farther) < abs(max(left, right, key=abs)) / 2
            apart = abs(left - right) > 1e-90 * (1 + abs(left))
            hidden = x != y and ends[0] == ends[1]
        text = shape.format(f=f, g=g)
        check = check_script(text, at={"x": x, "y": y}, wrt=["x"]).checks[0]
        evidence: Any = check.evidence
        if hidden:  # by more digits than anything here computes with
            assert check.verdict == "INCONCLUSIVE", (text, x, y, check.message)
        elif bounded or vertical:
            assert check.verdict in ("DISCONTINUOUS", "BOUNDARY"), (text, x, y, check.message)
        elif apart:
            assert check.verdict == "KINK", (text, x, y, check.message)
            slopes = float(left), float(right)
            assert (evidence["left"][0], evidence["right"][0]) == pytest.approx(slopes, rel=1e-9, abs=1e-12)
        else:
            assert check.verdict in ("PROVED", "CERTIFIED", "IMPRECISE"), (text, x, y, check.message)


def test_slopes_that_no_float_holds_are_no_undefined_ones() -> None:
    check = check_script("maximum(exp(sinh(exp(x))), exp(sinh(exp(y)))) + x", at={"x": 2.5, "y": 2.5}).checks[0]
    assert check.verdict == "KINK" and "slopes 1 from below, too large for floats from above" in check.message


def test_random_ties() -> None:
    random_ties(60, 0)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_random_ties(seed: int) -> None:
    random_ties(300, seed)


def test_balls_say_how_many_bits_do_not_tell() -> None:
    assert max(ball_numbers.doubling()) == MOST_BITS

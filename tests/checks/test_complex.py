"""Verdicts at complex points: the convention, what is enclosed, branch cuts, and that nothing wrong is certified.

The reference is mpmath's: differences of the real part along 1 and along i with 60 digits, from formulas of Python's own.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from gradcli.base.diagnostics import GradcliError
from gradcli.calculator import evaluate
from gradcli.checks import check_script
from gradcli.rendering.document import Style
from gradcli.rendering.documents.verdicts import reports
from gradcli.rendering.plain import render
from tests.execution.test_convention import IDS, PROGRAMS
from tests.support.rederive import rederive
from tests.support.rows import all_rows

Z = {"z": 0.7 - 1.3j}
V = {"v": [1 + 2j, -0.5 + 1j, 2 - 1j]}

REFERENCES = [
    ("z**2*exp(z)", lambda z: z**2 * mpmath.exp(z)), ("log(z)/z", lambda z: mpmath.log(z) / z),
    ("sqrt(z + 1)", lambda z: mpmath.sqrt(z + 1)), ("z**(1 + z)", lambda z: z ** (1 + z)),
    ("asin(z)", mpmath.asin), ("acos(z)", mpmath.acos), ("atan(z)", mpmath.atan), ("asinh(z)", mpmath.asinh),
    ("acosh(z)", mpmath.acosh), ("atanh(z)", mpmath.atanh), ("tan(z)", mpmath.tan), ("tanh(z)", mpmath.tanh),
    ("sinh(z)*cosh(z)", lambda z: mpmath.sinh(z) * mpmath.cosh(z)),
    ("abs(z)*z", lambda z: abs(z) * z), ("abs(sin(z))", lambda z: abs(mpmath.sin(z))),
    ("abs(z**2 - 1)**3", lambda z: abs(z**2 - 1) ** 3), ("expm1(z)", mpmath.expm1), ("log1p(z)", lambda z: mpmath.log(1 + z)),
    ("sign(z)*z", lambda z: z / abs(z) * z), ("rsqrt(z)", lambda z: 1 / mpmath.sqrt(z)),
]  # fmt: skip
POINTS = [0.7 - 1.3j, -2.5 + 0.25j, 0.125 + 3j]


def verdict(text: str, at: dict[str, object], claim: str | None = None) -> tuple[str, str]:
    claims = None if claim is None else {next(iter(at)): claim}
    found = check_script(text, at=at, dtype="complex128", claims=claims).checks[-1]
    return found.verdict, found.message


@all_rows(("text", "at"), PROGRAMS, ids=IDS)
def test_the_engine_is_certified(text: str, at: dict[str, object]) -> None:
    if text in ("sum(expm(m))", "sinc(z)"):
        assert verdict(text, at)[0] in ("CERTIFIED", "AGREES")
        return
    (found,) = check_script(text, at=at, dtype="complex128").checks
    assert found.verdict == "CERTIFIED", found.message
    assert found.passed
    assert found.evidence["agree_bits"] >= 56


@all_rows(("text", "f"), REFERENCES, ids=[text for text, _ in REFERENCES])
@all_rows("z", POINTS)
def test_enclosures_hold_the_derivative(text: str, f: object, z: complex) -> None:
    flint = pytest.importorskip("flint")
    from gradcli.checks.derivatives.jets import DependencyCone, DirectionalJets
    from gradcli.checks.evaluate import ball_numbers
    from gradcli.checks.evaluate.balls import ComplexField
    from gradcli.language.parser import parse
    from gradcli.lowering import LoweringMode, lower

    program = lower(parse(text), at={"z": z}, mode=LoweringMode(plane=True)).program
    with ball_numbers.precision(200):
        paths = DependencyCone(program.outputs, program.leaves["z"].node)
        plane = DirectionalJets(ComplexField(), paths, {"z": ([z], ())})
        found = [plane.partial(i) for i in (0, 1)]
    with mpmath.workdps(70):
        h = mpmath.mpf(10) ** -25
        start = mpmath.mpc(z)
        for ball, way in zip(found, (mpmath.mpc(1), mpmath.mpc(0, 1)), strict=True):
            ends = [mpmath.re(f(start + k * h * way)) for k in (-2, -1, 1, 2)]
            slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
            expected = flint.arb(mpmath.nstr(slope, 60), 1e-40 * (1 + abs(float(slope))))
            assert ball.overlaps(expected), (text, z, ball, slope)
            assert ball.rel_accuracy_bits() > 100 or ball.contains(0)


DERIVATIVES = [
    ("z**2", "2*z"), ("z**3 - 2*z", "3*z**2 - 2"), ("exp(2*z)", "2*exp(2*z)"), ("log(z)", "1/z"), ("1/z", "-1/z**2"),
    ("sqrt(z)", "1/(2*sqrt(z))"), ("sin(z)*exp(z)", "exp(z)*(sin(z) + cos(z))"), ("tanh(z)", "1 - tanh(z)**2"),
    ("asin(z)", "1/sqrt(1 - z**2)"), ("z**z", "z**z*(log(z) + 1)"), ("atan(z)", "1/(1 + z**2)"),
    ("z/(1 + z)", "1/(1 + z)**2"), ("abs(z)", "abs(z)/z"), ("log(abs(z))", "1/z"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "claim"), DERIVATIVES)
def test_claims_state_the_derivative(text: str, claim: str) -> None:
    assert verdict(text, Z, claim)[0] == "CERTIFIED"
    for wrong in (
        f"({claim})*(1 + 1e-12)",
        f"-({claim})",
        f"2*({claim})",
        f"({claim}) + 1e-9*z",
        "0*z",
        f"({claim})**2",
    ):
        found = check_script(text, at=Z, dtype="complex128", claims={"z": wrong}).checks[-1]
        assert found.verdict == "DISAGREES", (wrong, found.message)
        example = found.evidence["counterexample"]
        assert example["exact"] != example["claimed"] and example["at"]


NOT_SMOOTH = [
    ("abs(z)", 0j, "KINK"), ("sqrt(z)", -1 + 0j, "KINK"), ("log(z)*z", -1 + 0j, "KINK"), ("sqrt(z)", 0j, "BOUNDARY"),
    ("1/z", 0j, "UNDEFINED"), ("log(z)", 0j, "UNDEFINED"), ("log(z)", -1 + 0j, "CERTIFIED"), ("z**0.5", -2 + 0j, "KINK"),
    ("log(z)**2", -1 + 0j, "KINK"), ("log(z)**3", -1 + 0j, "CERTIFIED"), ("sqrt(z)*log(z)", -1 + 0j, "KINK"),
    ("maximum(abs(z), 1)", 1 + 0j, "KINK"), ("z**3", 0j, "CERTIFIED"), ("abs(z)**2", 0j, "CERTIFIED"),
    ("where(abs(z) > 1, z, 2*z)", 1 + 0j, "DISCONTINUOUS"), ("asin(z)", 0.5 + 0j, "CERTIFIED"), ("acosh(z)", 2 + 0j, "CERTIFIED"),
    ("z*log(z)**2", -1 + 0j, "KINK"), ("sqrt(z)**2", -1 + 0j, "CERTIFIED"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "z", "expected"), NOT_SMOOTH)
def test_cuts_and_zeros(text: str, z: complex, expected: str) -> None:
    found = verdict(text, {"z": z})
    assert found[0] == expected, found


@pytest.mark.parametrize("name", ["log", "sqrt", "asin", "acos", "acosh", "atanh", "log1p"])
@pytest.mark.parametrize("x", [-2.5, -0.5, 0.5, 2.5])
def test_values_on_cuts_are_those_of_c(name: str, x: float) -> None:
    """On a cut floats and enclosures mean the same: the limit from above."""
    for text in (f"{name}(z)*w", f"w/({name}(z) + 3)"):
        found = check_script(text, at={"z": x + 0j, "w": 1.5 - 0.5j}, wrt=["w"], dtype="complex128").checks[0]
        assert found.verdict == "CERTIFIED", (text, found.message)


NOT_HOLOMORPHIC = [
    ("abs(z)*z", "abs(z) + real(z)*conj(z)/abs(z)", "2*abs(z)"), ("conj(z)*z", "2*conj(z)", "conj(z)"),
    ("z*abs(z)**2", "abs(z)**2 + 2*real(z)*conj(z)", "3*abs(z)**2"), ("norm([z, 2*z])", "sqrt(5)*conj(z)/abs(z)", "0"),
    ("real(z)*z", "2*real(z)", "2*z"), ("imag(log(z))", "grad(angle(z), z)", "1/z"),
    ("abs(fft([z, 1, 0]))[1]", "grad(norm(fft([z, 1, 0])[1:2]), z)", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "right", "wrong"), NOT_HOLOMORPHIC)
def test_what_is_not_holomorphic(text: str, right: str, wrong: str) -> None:
    """A claim is dL/dx - i*dL/dy of the real part L; the complex derivative of a factor alone is refuted."""
    assert verdict(text, Z)[0] == "CERTIFIED"
    assert verdict(text, Z, right)[0] == "CERTIFIED"
    assert verdict(text, Z, wrong)[0] == "DISAGREES"


CONJUGATES = [
    ("abs(z)**2", "2*z"),
    ("real(z**2)", "2*conj(z)"),
    ("real(exp(z))", "exp(conj(z))"),
    ("abs(z)**2", "2+4j"),
]


@pytest.mark.parametrize(("text", "claim"), CONJUGATES)
def test_a_conjugate_is_named(text: str, claim: str) -> None:
    """A claim states f'(z), or dL/dx - i*dL/dy; what `grad` shows is its conjugate."""
    report = check_script(text, at={"z": 1 + 2j}, claims={"z": claim}, dtype="complex128")
    wrong = report.checks[-1]
    assert wrong.verdict == "DISAGREES" and "by imag(z)" in wrong.message, wrong.message
    causes: Any = wrong.evidence["diagnosis"]
    assert [cause["name"] for cause in causes] == ["conjugate"]
    shown = render(reports([report], Style(), "failing"))
    assert "dL/dx - i*dL/dy" in shown and "convention" in shown
    turned = f"conj({claim})"
    right = check_script(text, at={"z": 1 + 2j}, claims={"z": turned}, dtype="complex128").checks[-1]
    assert right.passed, right.message


@pytest.mark.parametrize(("text", "claim"), [("abs(z)**2", "3*z"), ("z**2", "2*z + 1j"), ("real(z**2)", "2*z*1j")])
def test_no_other_mistake_is_called_a_conjugate(text: str, claim: str) -> None:
    wrong = check_script(text, at={"z": 1 + 2j}, claims={"z": claim}, dtype="complex128").checks[-1]
    assert wrong.verdict == "DISAGREES" and "conjugate" not in str(wrong.evidence.get("diagnosis")), wrong.message


def test_the_table_of_witnesses_has_parts() -> None:
    """The worst of dL/dx and dL/dy, enclosed and by differences; SymPy is used at real points only."""
    for slip, agrees in ("0", True), ("1e-3*z", False):
        claims = {"z": f"2*z*exp(z) + z**2*exp(z) + {slip}"}
        checks = check_script("z**2*exp(z)", at=Z, dtype="complex128", claims=claims, witnesses="all").checks
        table = checks[-1].evidence["witnesses"]
        rows = {row["witness"]: row for row in table["rows"]}
        assert table["entry"] in ("real(z)", "imag(z)")
        assert [rows[name]["agrees"] for name in ("reverse mode", "exact enclosure", "finite difference")] == [
            agrees
        ] * 3
        assert "real points" in rows["SymPy"]["reason"]


def test_what_a_gradient_does_not_depend_on() -> None:
    found = check_script("z**2", at={"z": 1j, "u": 2.0}, wrt=["z", "u"], dtype="complex128").checks
    assert [one.verdict for one in found] == ["CERTIFIED", "PROVED"]


def test_numbers_equalities_and_rules() -> None:
    assert verdict("z**2", {"z": 2 + 0j}, "4.00")[0] == "CERTIFIED"
    assert verdict("z**3", {"z": 1.1 + 0j}, "3.63")[0] == "AGREES"
    assert verdict("z**3", {"z": 1.1 + 0j}, "3.73")[0] == "DISAGREES"
    script = "y = z**2 + 1\nassert y == (z + 1)**2 - 2*z\nassert y == z*z + 1.5\ny"
    found = check_script(script, at=Z, dtype="complex128").checks
    assert [one.verdict for one in found] == ["CERTIFIED", "CERTIFIED", "DISAGREES"]
    rule = "def f(x): return x**3\ndef f.vjp(x, ct): return ct*{}*x**2\nf(z)"
    for factor, expected in ((3, "CERTIFIED"), (2, "DISAGREES")):
        found = check_script(rule.format(factor), at=Z, dtype="complex128").checks
        assert found[-1].kind == "vjp" and found[-1].verdict == expected, found[-1]


@pytest.mark.parametrize(
    ("text", "z"),
    [("1+2i", 1 + 2j), ("1+2j", 1 + 2j), ("-2.5j", -2.5j), ("i", 1j), ("3 - 2*i", 3 - 2j), ("[1+2i, 3]", [1 + 2j, 3])],
)
def test_points_as_they_are_typed(text: str, z: object) -> None:
    """On the command line i and j are the imaginary unit, also right behind a number."""
    typed, given = (check_script("sum(z**3)", at=at, dtype="complex128").checks for at in ([f"z={text}"], {"z": z}))
    assert [(one.verdict, one.evidence) for one in typed] == [(one.verdict, one.evidence) for one in given]
    untold = check_script("sum(z**3)", at=[f"z={text}"]).checks
    assert [(one.verdict, one.evidence) for one in untold] == [(one.verdict, one.evidence) for one in given]


def test_other_names_and_formulas_stay_as_they_were() -> None:
    with pytest.raises(GradcliError, match="`k` has no value here"):
        check_script("z**2", at=["z=1+2*k"], dtype="complex128")


# scripts with complex literals: what they compute, and derivatives that are right and wrong
IMPEDANCE = "abs(1/(1 + 1j*w*R*C))"
LITERALS = [
    (IMPEDANCE, "w", "-w*(R*C)**2/(1 + (w*R*C)**2)**1.5", "PROVED"),
    (IMPEDANCE, "w", "-w*(R*C)**2/(1 + (w*R*C)**2)**0.5", "DISAGREES"),
    ("real(exp(1j*w)) + R + C", "w", "-sin(w)", "PROVED"),
    ("imag(exp(1j*w)) + R + C", "w", "-cos(w)", "DISAGREES"),
    ("angle(R + 2.5j*w) + C", "w", "2.5*R/(R**2 + (2.5*w)**2)", "PROVED"),
    ("abs(sqrt(R + 1j*w))**4 + C", "w", "2*w", "PROVED"),
    ("real(conj(R + 1j*w)*(C - 2j*w)**2)", "C", "2*R*C - 4*w**2", "PROVED"),
    ("imag((R + 1j*w)**-2) + C", "w", "0", "DISAGREES"),
    ("abs(sum(array([w, R])*(1 + 1j))) + C", "w", "sqrt(2)*sign(w + R)", "PROVED"),
    ("abs(tanh(R + 1j*w))**2 + C", "C", "1", "PROVED"),
]


@pytest.mark.parametrize(("script", "leaf", "slope", "verdict"), LITERALS)
def test_complex_literals(script: str, leaf: str, slope: str, verdict: str) -> None:
    """In a program on real numbers they are pairs; in one on complex numbers the same value comes out."""
    at = {"w": 0.75, "R": 2.0, "C": 0.5}
    report = check_script(f"y = {script}\nassert grad(y, {leaf}) == {slope}\ny", at=at)
    assert [one.verdict for one in report.checks if one.kind == "claim"] == [verdict]
    plain = complex(eval(script.replace("^", "**"), dict(vars(np), abs=np.abs), at))
    assert evaluate(script, at=at).value == pytest.approx(plain.real, rel=1e-12)
    assert evaluate(script, at=at, dtype="complex128").value == pytest.approx(plain.real, rel=1e-12)


def test_points_are_drawn_and_reports_repeat() -> None:
    once, again = (check_script("exp(a*z)", dtype="complex128") for _ in range(2))
    assert [one.verdict for one in once.checks] == ["CERTIFIED", "CERTIFIED"]
    assert [one.evidence for one in once.checks] == [one.evidence for one in again.checks]
    drawn = complex(once.checks[0].evidence["at"]["z"])
    assert drawn.imag != 0


def test_many_random_formulas_of_complex_numbers() -> None:
    """Compositions of random functions at random points: never refuted, and a slip of 1e-12 never passes."""
    generator = np.random.default_rng(5)
    names = ("exp", "sin", "cos", "sqrt", "log", "tanh", "asinh", "atan", "square", "abs")
    for turn in range(60):
        inner, outer = (str(name) for name in generator.choice(names, 2))
        z = complex(*np.round(generator.uniform(-1.5, 1.5, 2), 3))
        text = (
            f"{outer}({inner}(z)*0.3 + z)*(z + 2)" if inner != "abs" and outer != "abs" else f"log({inner}(z) + 0.25)"
        )
        text = text if "abs" not in text else "abs(exp(z)*z + 1)"
        found = check_script(text, at={"z": z}, dtype="complex128").checks[0]
        assert found.verdict in ("CERTIFIED", "IMPRECISE"), (turn, text, z, found.message)
        wrong = f"y = {text}\nassert grad(y, z) == grad({text}, z)*(1 + 1e-12)\ny"
        assert check_script(wrong, at={"z": z}, dtype="complex128").checks[-1].verdict == "DISAGREES", (text, z)


@all_rows(("text", "at"), [*PROGRAMS, *((text, {"z": z}) for text, z, _ in NOT_SMOOTH), ("abs(z)*z", Z)])
def test_evidence_leads_to_the_verdict(text: str, at: dict[str, object]) -> None:
    """The second reading of the ladder, from digits, units and slopes alone."""
    for check in check_script(text, at=at, dtype="complex128").checks:
        assert rederive(check) == check.verdict, check.evidence

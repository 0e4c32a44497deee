"""Normal forms: what they carry, what they hold constant, what they refuse, and that they never say more than is true."""

from __future__ import annotations

from random import Random
from time import process_time
from typing import Any

import pytest
from flint import fmpq

from gradcli.checks.algebra.differential_field import FieldGenerator, Form, Full, Key, Spent, Tower
from gradcli.checks.algebra.proof import Namespace, TowerDerivation, text
from gradcli.checks.algebra.real_forms import sign_of
from gradcli.checks.evaluate.interpretation import Undecided, Undefined
from tests.support.proofs import proofs
from tests.support.rows import all_rows

VALUES = {"x": fmpq(13, 10), "y": fmpq(2, 5), "z": fmpq(21, 10)}


def symbols(size: int = 48) -> tuple[Namespace, list[Form]]:
    tower = Tower(size)
    found = [tower.gen(tower.index(FieldGenerator("symbol", name=name, value=value))) for name, value in VALUES.items()]
    return Namespace(tower, sign_of), found


# --- forms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_common_factors_from_the_parts_are_all_of_them(seed: int) -> None:
    """Sums, products and powers of fractions against the greatest common divisor of what they are written as."""
    sp, (x, y, z) = symbols(16)
    tower, random = x.tower, Random(seed)
    atoms = [x, y, z, x - y, x + 2 * y, 2 * x - 2, *([sp.exp(x), sp.sqrt(y), tower.i] if seed % 2 else [])]

    def fraction() -> Form:
        top, bottom = (random.choice(atoms) * random.choice(atoms) * random.randint(1, 6) for _ in "ab")
        return (top + random.randint(0, 1)) / bottom

    for _ in range(60):
        one, other = fraction(), fraction()
        product = tower.fraction(one.num * other.num, one.den * other.den)
        assert (one * other).same(product), (text(one), text(other))
        total = tower.fraction(one.num * other.den + other.num * one.den, one.den * other.den)
        assert (one + other).same(total), (text(one), text(other))
        if not tower.relations:  # fractions with roots in them may be written in several ways
            assert (one + (other - one)).same(other) and (one * (other / one)).same(other), (text(one), text(other))
        assert (one**3).same(tower.fraction(one.num**3, one.den**3)), text(one)


def test_finer_exponentials_and_roots_replace_coarser_ones() -> None:
    sp, (x, y, _) = symbols()
    whole, half, third = sp.exp(x), sp.exp(x / 2), sp.exp(x / 3)
    assert (whole - half**2).is_zero and (whole - third**3).is_zero and (half**3 - whole * half).is_zero
    root, cube = sp.sqrt(y), sp.Pow(y, fmpq(1, 3))
    assert (root**6 - cube**9).is_zero and (root * cube - sp.Pow(y, fmpq(5, 6))).is_zero
    nested = sp.log(1 + sp.exp(y))
    assert (nested - sp.log(1 + sp.exp(y / 4) ** 4)).is_zero


def test_forms_inside_generators_follow_a_finer_one() -> None:
    sp, (x, _, _) = symbols()
    before = sp.sin(sp.sqrt(x)) + sp.log(1 + sp.sqrt(x))
    fine = sp.Pow(x, fmpq(1, 4))
    assert (before - sp.sin(fine**2) - sp.log(1 + fine**2)).is_zero


@pytest.mark.parametrize("degree", [2, 3, 5, 24, 25, 100])
def test_roots_of_any_degree(degree: int) -> None:
    sp, (x, y, _) = symbols()
    root = sp.Pow(x * y, fmpq(1, degree))
    assert (root**degree - x * y).is_zero
    slope = TowerDerivation(x).of(root)
    assert (slope - root / (x * degree)).is_zero
    assert not (slope - root / (x * (degree + 1))).is_zero


@all_rows("n", range(-24, 25))
def test_turns_are_radicals(n: int) -> None:
    sp, _ = symbols()
    angle = sp.pi * fmpq(n, 12)
    sine, cosine = sp.sin(angle), sp.cos(angle)
    assert (sine**2 + cosine**2 - 1).is_zero
    assert (sp.sin(2 * angle) - 2 * sine * cosine).is_zero
    assert sine.is_zero == (n % 12 == 0)


def test_division_by_what_vanishes_is_no_number() -> None:
    sp, (x, _, _) = symbols()
    with pytest.raises(Undefined):
        1 / (sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1)


def test_signs_need_digits_that_decide() -> None:
    sp, (x, y, _) = symbols()
    assert sign_of(sp.sin(x) - sp.sin(x + fmpq(1, 10**40))) == -1
    assert sign_of(sp.exp(x) - sp.exp(x)) == 0
    with pytest.raises(Undecided):
        sp.sqrt(y - 1)
    with pytest.raises(Undecided):
        sp.log(x - fmpq(13, 10))


def many_generators(size: int) -> None:
    sp, (x, y, _) = symbols(size)
    for k in range(10):
        sp.exp(sp.log(x + k) * sp.sin(y + k))


def long_product() -> Form:
    _, (x, y, z) = symbols()
    found = x
    for k in range(60):
        found = found * (x**3 + (k + 1) * y**2 + z * (k + 2) + 1)
    return found


def test_budgets_are_kept() -> None:
    many_generators(48)
    with pytest.raises(Full):
        many_generators(8)
    _, (x, y, z) = symbols()
    started = process_time()
    with pytest.raises(Undecided):
        (x + y + z + 1) ** 700 - x
    with pytest.raises(Undecided):
        long_product()
    assert process_time() - started < 3
    spent = Tower(16, most=0)
    with pytest.raises(Spent):
        spent.gen(spent.index(FieldGenerator("symbol", name="x", value=fmpq(1)))) + 1


def test_polynomials_have_equal_keys_where_they_are_equal() -> None:
    ring = Tower(16).ring
    generator = Random(5)
    made = [ring.constant(k) for k in (0, 1, -1, 7)] + [*ring.gens()]
    for _ in range(60):
        terms = {
            tuple(generator.choice([0, 0, 0, 1, 2]) for _ in range(16)): generator.choice([1, -1, 2, 10**30])
            for _ in range(generator.randrange(6))
        }
        made += [ring.from_dict(terms), 2 * ring.from_dict(terms)]
    for one in made:
        for other in made:
            assert (Key(one) == Key(other)) == (one == other)
        assert hash(Key(one)) == hash(Key(3 * one - 2 * one))


def test_a_long_power_is_not_written_out() -> None:
    sp, (x, y, z) = symbols()
    power = (x + y + z + 1) ** 200
    assert len(power.num) == 1
    assert (TowerDerivation(x).of(power) - 200 * (x + y + z + 1) ** 199).is_zero


TEXTS = [
    (lambda sp, x, y: sp.sin(x) * sp.cos(y), "1/2*sin(x + y) + 1/2*sin(x - y)"),
    (lambda sp, x, y: sp.sqrt(x) + 1 / y, "(y*sqrt(x) + 1)/y"),
    (lambda sp, x, y: sp.exp(x * y) - sp.log(x + y), "exp(x*y) - log(x + y)"),
    (lambda sp, x, y: sp.erf(x / 2) * sp.pi, "erf(1/2*x)*pi"),
    (lambda sp, x, y: sp.atan(x) + sp.Pow(y, fmpq(1, 3)), "atan(x) + (y)**(1/3)"),
]


@pytest.mark.parametrize(("make", "shown"), TEXTS, ids=[shown for _, shown in TEXTS])
def test_forms_are_shown_as_people_write(make: Any, shown: str) -> None:
    sp, (x, y, _) = symbols()
    assert text(make(sp, x, y)) == shown


# --- claims ------------------------------------------------------------------------------------------------

MATRICES = {
    2: {"A": [[1.5, 2], [-0.5, 4.25]], "B": [[0.5, -1.25], [2, 1]], "x": [0.5, -2], "b": [1.25, 3]},
    3: {
        "A": [[1.5, 2, 0.25], [-0.5, 4.25, 1], [3, 0.75, -2]],
        "B": [[0.5, -1.25, 1], [2, 1, 0.5], [-1, 0.25, 3]],
        "x": [0.5, -2, 1.75],
        "b": [1.25, 3, -0.5],
    },
}
MATRIX_CLAIMS = [
    "grad(trace(A @ B), A) == B.T",
    "grad(det(A), A) == det(A)*inv(A).T",
    "grad(det(A @ B), A) == det(A @ B)*inv(A).T",
    "grad(x @ A @ x, x) == (A + A.T) @ x",
    "grad(x @ A @ b, A) == outer(x, b)",
    "grad(trace(inv(A)), A) == -(inv(A) @ inv(A)).T",
    "grad(x @ inv(A) @ b, A) == -outer(inv(A).T @ x, inv(A) @ b)",
    "grad(sum(solve(A, b)), b) == solve(A.T, ones(len(b)))",
    "grad(sum((A @ x - b)**2), x) == 2*A.T @ (A @ x - b)",
    "grad(trace(A.T @ B @ A), A) == (B + B.T) @ A",
    "grad(trace(A @ A @ A), A) == 3*(A @ A).T",
    "grad(log(det(A @ A.T)), A) == 2*inv(A).T",
    "grad(norm(x), x) == x/norm(x)",
    "grad(sum(softmax(x)*b), x) == softmax(x)*(b - sum(softmax(x)*b))",
    "grad(logsumexp(x), x) == softmax(x)",
    "det(A @ B) == det(A)*det(B)",
    "inv(A @ B) == inv(B) @ inv(A)",
    "inv(A) @ A == eye(len(x))",
    "A @ solve(A, b) == b",
    "trace(A @ B) == trace(B @ A)",
    "(A @ B).T == B.T @ A.T",
    "inv(A.T) == inv(A).T",
]


@all_rows("n", [2, 3])
@all_rows("claim", MATRIX_CLAIMS)
def test_matrix_claims(claim: str, n: int) -> None:
    script = f"assert {claim}\ntrace(A @ B) + x @ b"
    (proof,) = proofs(script, MATRICES[n])
    assert proof.proved, proof.answer["reason"]
    left, right = claim.split(" == ")
    for wrong in (f"({right})*(1 + 1e-9)", f"-({right})", f"({right}) + 1e-12"):
        assert not proofs(script.replace(claim, f"{left} == {wrong}"), MATRICES[n])[0].proved


def test_data_are_exact_constants_or_symbols() -> None:
    script = "const k = {}\nassert grad(x**k, x) == {}\nx**k"
    assert proofs(script.format("3", "3*x**2"), {"x": 1.5})[0].proved
    assert not proofs(script.format("3.0000001", "3*x**2"), {"x": 1.5})[0].proved
    assert proofs(script.format("1.4", "k*x**(k - 1)"), {"x": 1.5})[0].proved


def test_rounded_constants_prove_nothing_by_their_value() -> None:
    script = "assert {} == {}\nx"
    assert not proofs(script.format("exp(1)*x", "2.718281828459045*x"), {"x": 1.5})[0].proved
    assert not proofs(script.format("3.141592653589793*x", "pi*x"), {"x": 1.5})[0].proved
    assert not proofs(script.format("2.718281828459045*x", "2.718281828459046*x"), {"x": 1.5})[0].proved
    (proof,) = proofs(script.format("2.718281828459045*x", "x*2.718281828459045"), {"x": 1.5})
    assert proof.proved  # whatever the constant is
    assert proof.assumed("sign") == []


HELD = [
    ("y = detach(x)*x\nassert grad(y, x) == x\ny", True),
    ("y = detach(x)*x\nassert grad(y, x) == 2*x\ny", False),
    ("y = exp(detach(2*log(x)))*x\nassert grad(y, x) == x**2\ny", True),
    ("y = ste(round(x), x)**2\nassert grad(y, x) == 2*round(x)\ny", True),
    ("y = ste(round(x), x)**2\nassert grad(y, x) == 2*x\ny", False),
    ("y = sin(x)\nz = y**2 + x\nassert grad(z, y) == 2*sin(x)\nz", True),
    ("y = sin(x)\nz = y**2 + x\nassert grad(z, y) == 2*sin(x) + 1\nz", False),
    ("y = sqrt(x)\nz = log(y)*x\nassert grad(z, y) == sqrt(x)\nz", True),
]


@pytest.mark.parametrize(("script", "true"), HELD)
def test_what_is_held_is_a_constant_of_its_value(script: str, true: bool) -> None:
    assert proofs(script, {"x": 1.3})[0].proved is true


TIES = [
    ("grad(abs(x), x) == 0", {"x": 0.0}),
    ("grad(maximum(x, y), x) == 1/2", {"x": 1.0, "y": 1.0}),
    ("grad(relu(x)*x, x) == 0", {"x": 0.0}),
    ("maximum(x, y) == x", {"x": 1.0, "y": 1.0}),
    ("grad(floor(x), x) == 0", {"x": 2.0}),
    ("grad(sinc(x), x) == 0", {"x": 0.0}),
    ("grad(sqrt(x**2), x) == 1", {"x": 0.0}),
]


@pytest.mark.parametrize(("claim", "at"), TIES)
def test_nothing_is_proved_on_a_tie(claim: str, at: dict[str, float]) -> None:
    assert not proofs(f"assert {claim}\n{' + '.join(at)}", at)[0].proved


def test_a_branch_that_is_not_taken_does_no_harm() -> None:
    (proof,) = proofs("y = where(x > 0, x**2, sqrt(x))\nassert grad(y, x) == 2*x\ny", {"x": 1.5})
    assert proof.proved and proof.assumed("sign") == ["x > 0"]
    (proof,) = proofs("y = where(x > 0, log(x), -log(-x))\nassert grad(y, x) == -1/x\ny", {"x": -1.5})
    assert proof.proved and proof.assumed("sign") == ["x < 0"]


def test_a_derivation_step_by_step() -> None:
    steps = [
        "assert 1 - tanh(x)**2 == (cosh(x)**2 - sinh(x)**2)/cosh(x)**2",
        "assert (cosh(x)**2 - sinh(x)**2)/cosh(x)**2 == 1/cosh(x)**2",
        "assert 1/cosh(x)**2 == 2/(cosh(2*x) - 1)",  # wrong: it is + 1
        "assert 1/cosh(x)**2 == 4/(exp(x) + exp(-x))**2",
    ]
    assert [one.proved for one in proofs("\n".join([*steps, "x"]), {"x": 1.3})] == [True, True, False, True]


LARGE = [
    ("sum(sin(x*y)**2 + cos(x*y)**2)", 12),
    ("prod(x + y) + prod(x - y)", 12),
    ("logsumexp(x*y)*norm(x)/norm(y)", 12),
    ("det(outer(x, y) + eye(6))", 6),
    ("sum(sqrt(1 + x**2)*sqrt(1 + y**2))**8", 12),
]


@pytest.mark.parametrize(("function", "n"), LARGE)
def test_an_attempt_ends_in_time(function: str, n: int) -> None:
    at = {"x": [k / 8 + 0.5 for k in range(n)], "y": [1.75 - k / 16 for k in range(n)]}
    started = process_time()
    proofs(f"v = {function}\nassert grad(v, x) == x\nv", at)
    assert process_time() - started < 5

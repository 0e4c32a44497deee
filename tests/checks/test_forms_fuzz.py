"""Random expressions are rewritten by laws at random places: what is equal vanishes, what is disturbed does not.

And on random programs: the form of a value has the value, the derivation of it the slope, as balls of the program and
of the engine's gradient say, which know nothing of forms.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli.checks.algebra import proof
from gradcli.checks.algebra.differential_field import Tower
from gradcli.checks.algebra.proof import TowerDerivation
from gradcli.checks.algebra.real_forms import ball
from gradcli.checks.evaluate import ball_numbers, balls
from gradcli.checks.evaluate.evaluation import FieldEvaluation
from gradcli.checks.evaluate.interpretation import Failure, Undecided, Unsupported
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.transforms import derivatives
from tests.support.proofs import proofs
from tests.support.random_programs import Built, built, make

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.node import Node

    Tree = tuple[Any, ...] | str

POINT = {"x": 1.375, "y": 0.625}

# --- random expressions, positive on positive arguments, and laws that keep their value ----------------------------

ATOMS = ("x", "y", "2", "3", "(1/2)", "x", "y")
UNARY = ("sqrt", "exp", "log1", "square", "atan", "cosh", "sin2", "inverse")
SPELL = {
    "+": "({} + {})", "-": "({} - {})", "*": "({}*{})", "/": "({}/{})", "**": "({})**({})", "sqrt": "sqrt({})",
    "exp": "exp({}/4)", "log1": "log(1 + {})", "square": "({})**2", "atan": "atan({})", "cosh": "cosh({}/4)",
    "sin2": "(2 + sin({}))", "inverse": "(1/(1 + {}))", "sin": "sin({})", "cos": "cos({})", "log": "log({})",
    "e": "exp({})", "sinh": "sinh({})", "neg": "(-{})", "tan": "tan({})", "id": "{}",
}  # fmt: skip


def grown(random: np.random.Generator, depth: int) -> Tree:
    if depth == 0 or random.random() < 0.1:
        return str(random.choice(ATOMS))
    if random.random() < 0.5:
        return (str(random.choice(UNARY)), grown(random, depth - 1))
    operator = str(random.choice(("+", "*", "/", "+", "*")))
    return (operator, grown(random, depth - 1), grown(random, depth - 1))


def spelt(tree: Tree) -> str:
    return tree if isinstance(tree, str) else SPELL[tree[0]].format(*map(spelt, tree[1:]))


def law(random: np.random.Generator, tree: Tree) -> Tree:
    """The same value in another spelling, by a law that fits the head of the tree; all parts are positive."""
    other: Tree = str(random.choice(("x", "y", "3")))
    head, args = (tree, ()) if isinstance(tree, str) else (tree[0], tree[1:])
    quarter = ("/", args[0], "4") if args else "1"
    fits: dict[str, list[Callable[[], Tree]]] = {
        "+": [
            lambda: ("+", args[1], args[0]),
            lambda: ("*", args[0], ("+", "1", ("/", args[1], args[0]))),
            lambda: ("/", ("-", ("square", args[0]), ("square", args[1])), ("-", args[0], args[1])),
            lambda: ("+", ("square", ("-", ("sqrt", args[0]), ("sqrt", args[1]))),
                     ("*", "2", ("sqrt", ("*", args[0], args[1])))),
        ],
        "*": [
            lambda: ("e", ("+", ("log", args[0]), ("log", args[1]))),
            lambda: ("/", ("-", ("square", ("+", args[0], args[1])), ("square", ("-", args[0], args[1]))), "4"),
            lambda: ("square", ("*", ("sqrt", args[0]), ("sqrt", args[1]))),
            lambda: ("/", args[0], ("/", "1", args[1])),
        ],
        "/": [
            lambda: ("*", args[0], ("**", args[1], "-1")),
            lambda: ("e", ("-", ("log", args[0]), ("log", args[1]))),
            lambda: ("/", ("*", other, args[0]), ("*", args[1], other)),
            lambda: ("sqrt", ("/", ("square", args[0]), ("square", args[1]))),
        ],
        "sqrt": [
            lambda: ("**", args[0], "1/2"),
            lambda: ("/", args[0], ("sqrt", args[0])),
            lambda: ("/", ("sqrt", ("*", args[0], other)), ("sqrt", other)),
            lambda: ("e", ("/", ("log", args[0]), "2")),
        ],
        "exp": [
            lambda: ("+", ("cosh", args[0]), ("sinh", quarter)),
            lambda: ("/", "1", ("e", ("neg", quarter))),
            lambda: ("/", ("e", ("+", quarter, other)), ("e", other)),
            lambda: ("square", ("e", ("/", args[0], "8"))),
        ],
        "log1": [
            lambda: ("+", ("log", ("*", other, ("+", "1", args[0]))), ("neg", ("log", other))),
            lambda: ("*", "2", ("log", ("sqrt", ("+", "1", args[0])))),
            lambda: ("neg", ("log", ("/", "1", ("+", "1", args[0])))),
        ],
        "square": [
            lambda: ("*", args[0], args[0]),
            lambda: ("+", ("*", ("-", args[0], other), ("+", args[0], other)), ("square", other)),
            lambda: ("e", ("*", "2", ("log", args[0]))),
        ],
        "atan": [
            lambda: ("-", ("/", "pi", "2"), ("atan", ("/", "1", args[0]))),
            lambda: ("*", "2", ("atan", ("/", args[0], ("+", "1", ("sqrt", ("+", "1", ("square", args[0]))))))),
        ],
        "cosh": [
            lambda: ("/", ("+", ("e", quarter), ("e", ("neg", quarter))), "2"),
            lambda: ("sqrt", ("+", "1", ("square", ("sinh", quarter)))),
            lambda: ("-", ("*", "2", ("square", ("cosh", ("/", args[0], "2")))), "1"),
        ],
        "sin2": [
            lambda: ("+", "2", ("*", "2", ("*", ("sin", ("/", args[0], "2")), ("cos", ("/", args[0], "2"))))),
            lambda: ("+", "2", ("cos", ("-", ("/", "pi", "2"), args[0]))),
            lambda: ("+", "2", ("-", ("*", "3", ("sin", ("/", args[0], "3"))),
                                ("*", "4", ("*", ("sin", ("/", args[0], "3")), ("square", ("sin", ("/", args[0], "3"))))))),
        ],
        "inverse": [
            lambda: ("-", "1", ("/", args[0], ("+", "1", args[0]))),
            lambda: ("square", ("/", "1", ("sqrt", ("+", "1", args[0])))),
        ],
    }  # fmt: skip
    laws = fits.get(
        head if args else "", [lambda: ("/", ("*", tree, other), other), lambda: ("square", ("sqrt", tree))]
    )
    return laws[int(random.integers(len(laws)))]()


def rewritten(random: np.random.Generator, tree: Tree, chance: float) -> Tree:
    """A tree with laws applied at random places."""
    if not isinstance(tree, str):
        tree = (tree[0], *(rewritten(random, arg, chance) for arg in tree[1:]))
    return law(random, tree) if random.random() < chance else tree


@pytest.mark.parametrize("start", range(0, 200, 40))
def test_rewritten_expressions_are_equal(start: int) -> None:
    proved, found = 0, []
    for seed in range(start, start + 40):
        random = np.random.default_rng([3, seed])
        tree = grown(random, int(random.integers(1, 4)))
        one, other = spelt(tree), spelt(rewritten(random, tree, 0.5))
        script = f"assert {one} == {other}\nx + y"
        (proof,) = proofs(script, POINT)
        proved += proof.proved
        if not proof.proved:
            found.append((seed, one, other, proof.answer["reason"]))
        for wrong in (f"({other})*(1 + 1e-9)", f"({other}) - 1e-15", f"-({other})"):
            assert not proofs(f"assert {one} == {wrong}\nx + y", POINT)[0].proved, (one, wrong)
    assert proved >= 0.9 * 40, found


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_derivatives_of_rewritten_expressions_are_equal(start: int) -> None:
    proved = 0
    for seed in range(start, start + 20):
        random = np.random.default_rng([4, seed])
        tree = grown(random, int(random.integers(1, 3)))
        one, other = spelt(tree), spelt(rewritten(random, tree, 0.5))
        script = f"u = {one}\nv = {other}\nassert grad(u, x) == grad(v, x){{}}\nu + x"
        (proof,) = proofs(script.format(""), POINT)
        proved += proof.proved
        assert not proofs(script.format(" + 1e-20"), POINT)[0].proved
    assert proved >= 0.9 * 20


# --- random programs ------------------------------------------------------------------------------------------


def middle(found: Any) -> Any:
    return found.real if hasattr(found, "imag") else found


def forms_of(program: Built, point: Any, names: list[str]) -> tuple[proof.ClaimForms, Any] | None:
    """The value of a program as a form, unless it is over the budget."""
    claim = proof.ClaimForms(Tower(48), point, proof.ClaimOptions())
    try:
        claim.leaves(reachable([program.output]), names, None, ())
        return claim, proof.form_of(claim.tower, FieldEvaluation(claim.plain, claim.point)[program.output].flat[0])
    except (Failure, Unsupported):
        return None


def scaled(node: Node, output: Node, factor: Fraction) -> Node:
    with building(output.builder, reachable([output, node])):
        return node * factor


def random_program(seed: int) -> None:
    made = make(seed, size=1 + seed % 6, arrays=seed % 3 == 0)
    program = built(made)
    names = list(made.values)
    point = {name: (value.reshape(-1).tolist(), value.shape) for name, value in made.values.items()}
    slopes = derivatives.grad(program.output, [program.leaves[name] for name in names])
    with ball_numbers.precision(256):
        value, *exact = (one.flat for one in balls.read(balls.BallField(), [program.output, *slopes], point))
        found = forms_of(program, point, names)
        if found is None:
            return
        claim, form = found
        assert isinstance(value[0], Failure) or middle(ball(form, {})).overlaps(value[0]), seed
        for name, told in zip(names, exact, strict=True):
            for symbol, right in zip(claim.point[name].flat, told, strict=True):
                if symbol in program.leaves or not hasattr(symbol, "num") or isinstance(right, Failure):
                    continue
                try:
                    slope = TowerDerivation(symbol).of(form)
                except (Undecided, Unsupported):
                    return
                assert middle(ball(slope, {})).overlaps(right), (seed, name)
    for name, slope, told in zip(names, slopes, exact, strict=True):
        leaf = program.leaves[name]
        moving = any(not isinstance(x, Failure) and abs(x.mid()) > 1e-30 for x in told)
        for factor in (Fraction(10**9 + 1, 10**9), Fraction(-1)):
            wrong = scaled(slope, program.output, factor)
            answer = proof.prove_derivative(program.output, leaf, wrong, names, point, range(leaf.type.size))
            assert not (answer["proved"] and moving), (seed, name, factor)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_programs(start: int) -> None:
    for seed in range(start, start + 12):
        random_program(seed)


@pytest.mark.deep
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_many_random_programs(start: int) -> None:
    for seed in range(start, start + 100):
        random_program(seed)

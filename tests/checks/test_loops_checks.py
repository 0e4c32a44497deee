"""The oracles of `check` read loops iteration by iteration: against loops that are written out, and against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from gradcli import checks
from gradcli.checks import scripts
from gradcli.checks.algebra import proof
from gradcli.checks.derivatives.claim_comparison import compared
from gradcli.checks.derivatives.derivative_query import DerivativeQuery, PointEvaluation
from gradcli.checks.evaluate import ball_numbers, balls, evaluation
from gradcli.checks.evaluate.interpretation import Failure, Unsupported
from gradcli.execution.sparsity.patterns import pattern
from gradcli.graph.loop import close
from gradcli.graph.node import Builder, Node
from gradcli.graph.types import FLOAT, Type
from gradcli.lowering.iteration import loops
from gradcli.primitives import catalogue
from gradcli.transforms.unroll import unrolled
from tests.support import loop_bodies
from tests.support.loop_bodies import Space

ROW = Type("float", (3,))
POINT = {
    "a": ([0.75], ()),
    "x": ([0.3], ()),
    "v": ([0.5, -1.25, 2.0], (3,)),
    "m": ([0.1 * k for k in range(9)], (3, 3)),
}


def leaves():
    builder = Builder(catalogue())
    return builder, builder.leaf("a"), builder.leaf("x"), builder.leaf("v", (3,)), builder.leaf("m", (3, 3))


def held(builder, a, x, v, m):
    y = builder.fresh_leaf(FLOAT)
    return close(builder, 5, [(y, x)], [y * builder.call("detach", y * a) + a]).last(0)


def held_within(count):
    s = Space()
    x, a = s.leaf("x", 0.3), s.leaf("a", 0.7)
    t, inner = s.iteration(count), s.iteration(3)
    y = t.carry(x)
    z = inner.carry(y)
    return s.made(t.loop(inner.loop(z * s.detach(y * z) + a).last(0) / 2).last(0))


BODIES = [*loop_bodies.SMOOTH, loop_bodies.branch_not_taken, held_within]


def point_of(made):
    return {name: (np.asarray(x, float).reshape(-1).tolist(), np.shape(x)) for name, x in made.values.items()}


def enclosed(output: Node, target: Node, bits: int = 128, point=POINT):
    """The value and the partial derivatives as balls."""
    here = PointEvaluation(DerivativeQuery(output, target, tuple(point)), point)
    with ball_numbers.precision(bits):
        return [here.lines(bits).value, *here.exact(bits).values()]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_loop_has_the_values_slopes_and_pattern_of_its_iterations_written_out(body):
    made = body(5)
    written = unrolled(made.output.builder, [made.output])[made.output]
    assert all("body" not in node.params for node in written.args)
    for target in made.leaves:
        pairs = [enclosed(output, target, point=point_of(made)) for output in (made.output, written)]
        for x, y in zip(*pairs, strict=True):
            assert x.overlaps(y) and (x.rel_accuracy_bits() > 100 or x.is_zero() or abs(x) < 1e-30)
    one, other = (pattern([node], made.leaves, most=1000) for node in (made.output, written))
    assert set(other.columns.tolist()) <= set(one.columns.tolist())


def logistic(count: int, rate: str = "0.0005", chaotic: bool = False) -> tuple[Node, Node]:
    builder = Builder(catalogue())
    a, x, y = builder.leaf("a"), builder.leaf("x"), builder.fresh_leaf(FLOAT)
    after = a * y * (1 - y) if chaotic else y + builder.constant(Fraction(rate)) * a * y * (1 - y / 3)
    return close(builder, count, [(y, x)], [after]).last(0), a


def test_a_loop_encloses_the_exact_value_and_slope_of_a_thousand_iterations():
    output, a = logistic(1000)
    value, slope = enclosed(output, a)
    with ball_numbers.precision(400):
        x, d = balls.arb(0.3), balls.arb(0)
        step = balls.arb(5) / 10000
        for _ in range(1000):
            x, d = x + step * 0.75 * x * (1 - x / 3), d + step * (x * (1 - x / 3) + 0.75 * d * (1 - 2 * x / 3))
        assert value.contains(x) and slope.contains(d)
        assert not value.contains(x + balls.arb(2) ** -90)
    assert min(value.rel_accuracy_bits(), slope.rel_accuracy_bits()) > 100


def test_a_chaotic_loop_says_how_many_bits_it_needs():
    output, a = logistic(1000, chaotic=True)
    point = {"a": ([3.9], ()), "x": ([0.3], ())}
    rounds = []
    for bits in ball_numbers.doubling(work=10_000):
        rounds.append(bits)
        value, slope = enclosed(output, a, bits, point)
        if not isinstance(slope, Failure) and slope.rel_accuracy_bits() >= ball_numbers.GOOD_BITS:
            break
    assert len(rounds) == 2 and value.rel_accuracy_bits() > 56
    lost = enclosed(output, a, 128, point)[0]
    assert isinstance(lost, Failure) and lost.kind == "undecided" and "digits are lost in iteration 64" in lost.reason


def test_a_carry_that_cancels_is_not_lost():
    builder = Builder(catalogue())
    a, y, gap = builder.leaf("a"), builder.fresh_leaf(FLOAT), builder.fresh_leaf(FLOAT)
    third = a / 3
    loop = close(builder, 100, [(y, a), (gap, a)], [y + third, (y - third) - (y - a / 6 - a / 6)])
    assert enclosed(loop.last(0) + loop.last(1), a)[1].rel_accuracy_bits() > 100


def test_what_is_undefined_or_tied_names_its_iteration():
    builder = Builder(catalogue())
    a, y, z = builder.leaf("a"), builder.fresh_leaf(FLOAT), builder.fresh_leaf(FLOAT)
    root = close(builder, 9, [(y, a)], [builder.call("sqrt", y - 1) ** 2]).last(0)
    below = enclosed(root, a, point={"a": ([2.5], ())})[0]
    assert (
        below.kind == "undefined" and below.reason.endswith(", in iteration 3") and below.inner.primitive.name == "sqrt"
    )
    tied = close(builder, 9, [(y, a)], [builder.call("abs", y - 1)]).last(0)
    value, slope = enclosed(tied, a, point={"a": ([3.0], ())})
    assert value.is_zero() and slope.kind == "tie" and slope.reason.endswith(", in iteration 3")
    inner = close(builder, 4, [(z, y)], [builder.call("sqrt", z - 1) ** 2]).last(0)
    outer = close(builder, 4, [(y, a)], [inner]).last(0)
    within = enclosed(outer, a, point={"a": ([6.5], ())})[0]
    assert within.reason.endswith(", in iteration 3 of the loop inside iteration 2")


def test_the_readers_of_a_loop_share_one_walk(monkeypatch):
    walks = []
    walk = evaluation.Iterations.evaluated
    monkeypatch.setattr(
        evaluation.Iterations, "evaluated", lambda self, reading: (walks.append(self), walk(self, reading))[1]
    )
    builder, a, x, v, m = leaves()
    y, z = builder.fresh_leaf(FLOAT), builder.fresh_leaf(FLOAT)
    loop = close(builder, 5, [(y, x), (z, a)], [y * z, z + a], outputs=[y + z])
    with ball_numbers.precision(128):
        balls.read(balls.BallField(), [loop.last(0), loop.last(1), loop.iterations(y + z)], POINT)
    assert len(walks) == 1


def test_work_and_memory_are_limited():
    output, a = logistic(10**7)
    assert evaluation.work_of([output]) > 4 * 10**7
    with pytest.raises(Unsupported, match="in iterations of loops"), ball_numbers.precision(64):
        balls.read(balls.BallField(), [output], POINT)


def test_the_pattern_of_long_loops_is_a_fixpoint_and_keeps_zeros():
    builder = Builder(catalogue())
    v, b = builder.leaf("v", (40,)), builder.leaf("b", (40,))
    y = builder.fresh_leaf(v.type)
    loop = close(builder, 10**5, [(y, v)], [builder.call("sin", y * b)])
    found = pattern([loop.last(0)], [v])
    assert np.array_equal(found.columns, np.arange(40))


@pytest.mark.deep
@pytest.mark.parametrize("count", [10**4, 10**5])
def test_long_loops_are_enclosed(count):
    output, a = logistic(count)
    for bits in ball_numbers.doubling(work=evaluation.work_of([output])):
        found = enclosed(output, a, bits)
        if all(not isinstance(x, Failure) and x.rel_accuracy_bits() >= ball_numbers.GOOD_BITS for x in found):
            return
    raise AssertionError(f"{found} with {bits} bits")


def judged(output: Node, target: Node, claim: Node, point=POINT) -> str:
    """How the entries of a claim stand to the derivative, as `check` compares them."""
    asked = DerivativeQuery(output, target, ("a", "x"))
    here = PointEvaluation(asked, point)
    claimed = partial(here.claimed, claim)
    return compared(here.exact, claimed, asked.entries, None, asked.work(claim))["relations"]


@pytest.mark.parametrize(
    ("late", "fewer", "relation"), [(False, 0, "="), (True, 0, "!"), (False, 1, "!")], ids=["right", "late", "short"]
)
def test_a_derivative_by_a_loop_is_judged_and_slips_in_it_are_refuted(late, fewer, relation):
    """A right tangent loop, one that takes the next state for the present one, and one with an iteration too few."""
    count = 300
    builder = Builder(catalogue())
    a, x, y, t = builder.leaf("a"), builder.leaf("x"), builder.fresh_leaf(FLOAT), builder.fresh_leaf(FLOAT)
    after = y + a * y * (1 - y / 3) / 100
    output = close(builder, count, [(y, x)], [after]).last(0)
    state = after if late else y
    slope = t + (state * (1 - state / 3) + a * t * (1 - 2 * state / 3)) / 100
    zero = builder.constant(0)
    claim = close(builder, count - fewer, [(y, x), (t, zero)], [after, slope]).last(1)
    assert judged(output, a, claim) == relation


@pytest.mark.parametrize("wrong", [0, 1])
def test_an_adjoint_loop_is_judged_and_a_wrong_residual_is_refuted(wrong):
    count = 40
    builder = Builder(catalogue())
    a, x, y = builder.leaf("a"), builder.leaf("x"), builder.fresh_leaf(FLOAT)
    sine = builder.call("sin", y)
    forward = close(builder, count, [(y, x)], [a * sine + y / 2], outputs=[y])
    states = forward.iterations(y)
    if wrong:  # the states of the next iteration, the last one twice
        rest = builder.call("slice", states, start=(1,), step=(1,), size=(count - 1,))
        end = builder.call("slice", states, start=(count - 1,), step=(1,), size=(1,))
        states = builder.bind(builder.vocabulary["concat"], (rest, end), {"axis": -1})
    c, total, row = (builder.fresh_leaf(FLOAT) for _ in range(3))
    back = close(
        builder,
        count,
        [(c, builder.constant(1)), (total, builder.constant(0))],
        [c * (a * builder.call("cos", row) + Fraction(1, 2)), total + c * builder.call("sin", row)],
        rows=[(row, states)],
        reverse=True,
    )
    assert judged(forward.last(0), x, back.last(0)) == judged(forward.last(0), a, back.last(1)) == "=!"[wrong]


@pytest.mark.parametrize("wrong", [0, 1])
def test_normal_forms_read_short_loops(wrong):
    builder = Builder(catalogue())
    a, x, y, t = builder.leaf("a"), builder.leaf("x"), builder.fresh_leaf(FLOAT), builder.fresh_leaf(FLOAT)
    output = close(builder, 4, [(y, x)], [a * y + 1]).last(0)
    claim = close(builder, 4 - wrong, [(y, x), (t, builder.constant(0))], [a * y + 1, y + a * t]).last(1)
    answer = proof.prove_derivative(output, a, claim, ("a", "x"), POINT, [0])
    assert answer["proved"] is not bool(wrong)


def test_forms_refuse_a_value_that_is_held_in_a_loop():
    builder, *given = leaves()
    output = held(builder, *given)
    answer = proof.prove_derivative(output, given[0], output, ("a", "x"), POINT, [0])
    assert not answer["proved"] and "detached value in a loop" in answer["reason"]


def test_long_loops_are_not_proved_iteration_by_iteration():
    output, a = logistic(100)
    answer = proof.prove_derivative(output, a, output, ("a", "x"), POINT, [0])
    assert answer["reason"] == "a loop of 100 iterations, more than 64"


@pytest.fixture
def by_nodes():
    """Checks of scripts whose loops of 32 iterations and more are nodes."""
    return lambda text: scripts.check_script(text).checks


def test_a_script_with_a_loop_is_certified_and_its_verdicts_name_iterations(by_nodes):
    found = by_nodes("a = 1.3\nx = 0.3\ny = x\nfor i in range(1000):\n    y = y + 0.0005*a*y*(1 - y/3)\ny")
    assert [one.verdict for one in found] == ["PROVED", "PROVED"]
    (found,) = by_nodes("a = 40.25\nx = a\nfor i in range(50):\n    x = sqrt(x - 1)**2\nx")
    assert found.verdict == "UNDEFINED" and "in iteration 41" in found.message
    assert found.evidence["node"] == "sqrt(x - 1)" and found.diagnostics[0].span.line == 4
    nested = "a = 40.25\nx = a\nfor i in range(40):\n    for j in range(36):\n        x = sqrt(x - 1)**2 + j*i*0\nx"
    (found,) = by_nodes(nested)
    assert "in iteration 5 of the loop inside iteration 2" in found.message
    assert found.diagnostics[0].span.line == 5 and found.diagnostics[0].span.column == 13
    (found,) = by_nodes("a = 40\nx = a\nfor i in range(50):\n    x = abs(x - 1)\nx")
    assert found.verdict == "KINK" and "in iteration 40" in found.message


@pytest.mark.parametrize(
    "factor",
    [
        "where(0.1*i > 0.2, x, x*x)",
        "where(0.1*i + 0.1 <= 0.4 or i > 990, x, x*x)",
        "where(0.1*i > 99.9, a, x)",
        "where(3/(i + 7) == 0.3, x, x*x)",
        "where(0.01*i*i >= 0.09, x, a)",
        "where(i**2*0.01 >= 0.09, x, a)",
        "where((i + 1)**-1 == 0.25, x, a)",
        "floor(0.1*i)*x",
        "max(0.1*i, 0.3)*x",
    ],
)
def test_what_depends_on_the_number_of_the_iteration_alone_is_decided_exactly(by_nodes, factor):
    """The ball of 0.1 has a radius: no precision decides an exact tie."""
    found = by_nodes(f"x = 0.7\na = 0.3\ny = x*a\nfor i in range(1000):\n    y = sin(y) + 0.001*{factor}\ny")
    assert {one.verdict for one in found} == {"CERTIFIED"}


@pytest.mark.parametrize(
    ("factor", "literals", "decided"),
    [
        (Fraction("0.1"), balls.EXACT, True),
        (Fraction("0.1234567890123456"), balls.EXACT, True),
        (Fraction("0.1234567890123456"), balls.Literals(wide=True), False),
        (Fraction("0.123"), balls.Literals(printed=True), False),
        ("pi", balls.EXACT, False),
    ],
)
def test_a_tie_of_rounded_literals_or_of_pi_stays_open(factor, literals, decided):
    builder, a, x, v, m = leaves()
    y, i = builder.fresh_leaf(FLOAT), builder.fresh_leaf(FLOAT)
    number = builder.constant(factor)
    chosen = builder.call("where", builder.call("greater", number * i, number * (6 - i)), a, x)
    root = close(builder, 9, [(y, x)], [y + chosen], index=i).last(0)
    with ball_numbers.precision(128):
        (found,) = balls.read(balls.BallField(literals), [root], POINT)[0].flat
    assert isinstance(found, Failure) != decided


def test_a_rule_that_somebody_wrote_is_blamed_not_the_loop_that_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "NODE_FROM", {math.inf: 0})
    report = checks.check_script(
        "x = 0.3\ndef f(a): return a**2 + sin(a)\ndef f.vjp(a, ct): return ct*(2*a - cos(a))\n"
        "y = x\nfor i in range(40): y = 0.5*f(y) + 0.1*x\ny"
    )
    told = {check.kind: check.message for check in report.checks}
    assert "the rule of f is wrong" in told["gradient"]
    assert not any("rule of last" in text for text in told.values())

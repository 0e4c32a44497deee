"""Every rule of every primitive is damaged in turn, and at least two independent oracles must notice.

Of a damaged derivative rule: SymPy's derivative of the value in symbols, a difference of float values with its own error
bound, and the difference of the value to 80 digits (in balls where mpmath has no row). Forward against reverse does
not count. Of a damaged value: 80 digits, NumPy's function of the same name, symbols, balls, the examples.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.primitives import catalogue
from tests.support import numpy_reading, reference, reference_arrays
from tests.support.damage import Mutant, rule_mutants, value_mutants
from tests.support.oracles import Silent
from tests.support.trials import UP_TO_SIGN, aligned, balls_read, differ, symbols_read, trials

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.graph.primitive import Primitive

NAMES = tuple(catalogue())
SCORE: Counter[str] = Counter()  # printed at the end by conftest.py

# Functions that are the same with their first two operands exchanged: checked to 80 digits below.
SYMMETRIC = (
    "equal", "not_equal", "and", "or", "hypot", "maximum", "minimum", "clamp", "logaddexp", "beta", "betaln", "dot", "inner",
    "vecdot", "mse_loss", "l1_loss", "huber_loss", "cosine_similarity", "hyp2f1",
)  # fmt: skip
_SHIFT = "a shift of all entries cancels, whatever it is"
# (operation, rule, damage): why the damaged rule is as good as the right one.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    **{(name, "impl" if catalogue()[name].impl else "definition", "swapped"): "it is symmetric" for name in SYMMETRIC},
    **{(name, rule, "sign"): "-v is as good as v" for name in UP_TO_SIGN for rule in ("impl", "definition")},
    ("eigvecs", "definition", "axis"): "of a 2 by 2 matrix these are [[-s, c], [c, s]], a symmetric matrix",
    ("softmax", "definition", "term 1 dropped"): _SHIFT,
    ("log_softmax", "definition", "term 1 dropped"): _SHIFT,
    ("logsumexp", "definition", "term 1 dropped"): _SHIFT,
    ("logsumexp", "definition", "term 3 dropped"): "the shift is held: it has no derivative",
    ("betaln", "definition", "swapped"): "it is symmetric",
    ("convolve", "definition", "swapped"): "it is symmetric",
    **{
        (name, "definition", "swapped"): "the density of x about loc is that of loc about x"
        for name in ("norm_logpdf", "norm_pdf", "multivariate_normal_logpdf")
    },
    ("full", "definition", "axis"): "all entries are equal",
    ("present", "impl", "axis"): "all entries are equal, where none is NaN",
    ("zeros", "definition", "sign"): "-0 equals 0",
    ("zeros", "definition", "factor 2"): "2*0 is 0",
    ("zeros", "definition", "1e-6"): "the same",
    **{("zeros_like", "definition", damage): "-0 equals 0, and 2*0 is 0" for damage in ("sign", "factor 2", "1e-6")},
}
# Operations that are not judged, and why.
UNJUDGED = {
    "rand": "random numbers have no other source: tests below compare them with NumPy's generator",
    "randn": "random numbers have no other source: tests below compare them with NumPy's generator",
    "peak": "it cancels from every result, so no oracle sees it; the test of overflow below does",
    "magnitude": "it cancels from every result, so no oracle sees it; the test of overflow below does",
    "larger_than_2x2": "it is NaN, and stands for the absence of a closed form",
    "named": "only a script that differentiates with respect to an intermediate makes it",
}


# --- verdicts ------------------------------------------------------------------------------------------------------


def judged(mutant: Mutant, deep: bool = False) -> set[str] | None:
    """The oracles that notice a mutant; None where the damage applies to no case of the operation."""
    primitive, rule = mutant.primitive, mutant.rule
    if rule == "definition" and primitive.impl is None:
        return judged_by_value(mutant, deep, lowered_anew=True)
    if rule == "impl":
        return judged_by_value(mutant, deep, lowered_anew=False)
    if rule == "definition" and primitive.kind != "composite":
        return judged_by_reading(mutant, deep)
    noticed: set[str] = set()
    for it in trials(primitive.name, deep):
        if not it.differentiable:
            continue
        try:
            with mutant.installed():
                found = it.gradient()
        except (GradcliError, ValueError, TypeError, IndexError, AssertionError):
            return {"refused by the builder", "refused by the type rule"}
        noticed |= it.notices(found)
    if rule == "definition" and not primitive.symbolic and not primitive.entries:
        noticed -= {"symbols"}  # that reading follows the definition too
    return noticed if mutant.applied else None


def judged_by_value(mutant: Mutant, deep: bool, lowered_anew: bool) -> set[str] | None:
    """Oracles that contradict the value; those that follow the damaged definition themselves do not count."""
    noticed: set[str] = set()
    for it in trials(mutant.primitive.name, deep):
        try:
            with mutant.installed():
                outputs = it.case.nodes()[0] if lowered_anew else it.outputs
                found = Tape(outputs).run(it.points, backend="numpy")
            if [output.type for output in outputs] != [output.type for output in it.outputs]:
                return {"digits", "numpy"}  # another shape than both have
        except (GradcliError, ValueError, TypeError, IndexError):
            return {"refused by the builder", "refused by the type rule"}
        noticed |= it.value_notices(found)
    if lowered_anew:
        noticed -= {"symbols", "balls"}
    noticed |= judged_by_examples(mutant)
    return noticed if mutant.applied else None


def judged_by_examples(mutant: Mutant) -> set[str]:
    """Whether the examples of the declaration notice; those without an operand are read by NumPy and in digits too."""
    noticed: set[str] = set()
    for text, expected in mutant.primitive.examples:
        try:
            with mutant.installed():
                value = calculator.evaluate(text, backend="numpy").value
        except (GradcliError, ValueError, TypeError, IndexError):
            value = np.nan
        if differ(value, expected):
            noticed.add("examples")
        for oracle, table, number in (
            ("numpy", numpy_reading.FLOATS, np.float64),
            ("digits", reference_arrays.CALLS, reference.number),
        ):
            try:
                with np.errstate(all="ignore"):
                    right = numpy_reading.read(text, {}, table, number)
            except KeyError:
                continue
            if differ(value, np.asarray(right, dtype=object).astype(float)):
                noticed.add(oracle)
    return noticed


def judged_by_reading(mutant: Mutant, deep: bool) -> set[str] | None:
    """A definition that only exact readings follow: symbols and balls against float values and digits."""
    noticed: set[str] = set()
    for it in trials(mutant.primitive.name, deep):
        for number in range(it.count):
            floats = [
                np.broadcast_to(v, (it.count, *o.shape))[number] for v, o in zip(it.values, it.outputs, strict=True)
            ]
            for oracle, reading in (("symbols", symbols_read), ("balls", balls_read)):
                try:
                    with mutant.installed():
                        found = reading(it, it.point(number))
                except Silent as reason:
                    if "2x2" not in str(reason):
                        noticed.add(f"{oracle} refuses")
                    continue
                except (GradcliError, ArithmeticError, ValueError, TypeError, IndexError):
                    noticed.add(f"{oracle} refuses")
                    continue
                if mutant.primitive.name in UP_TO_SIGN:
                    found, floats = [aligned(x) for x in found], [aligned(x) for x in floats]
                if any(differ(a, b) for a, b in zip(found, floats, strict=True)):
                    noticed.add(oracle)
    return noticed if mutant.applied else None


def all_mutants(primitive: Primitive) -> Iterator[Mutant]:
    yield from value_mutants(primitive)
    yield from rule_mutants(primitive)


DEPTHS = [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.deep)]


@pytest.mark.parametrize("deep", DEPTHS)
@pytest.mark.parametrize("name", NAMES)
def test_right_rules_pass(name: str, deep: bool) -> None:
    """No oracle contradicts an operation that is not damaged: else a mutant would be noticed for nothing."""
    for it in trials(name, deep):
        assert not it.value_notices(it.values), it.case
        if it.differentiable:
            contradicting = it.notices(it.gradient())
            assert not contradicting, (it.case, contradicting)


@pytest.mark.parametrize("deep", DEPTHS)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNJUDGED])
def test_mutants_are_noticed(name: str, deep: bool) -> None:
    """Two independent oracles notice every damage to every rule of an operation."""
    survivors = []
    for mutant in all_mutants(catalogue()[name]):
        noticed = judged(mutant, deep)
        if noticed is None:
            SCORE["not applicable"] += 1
            continue
        if mutant.key in EQUIVALENT:
            assert not noticed, f"{mutant} is noticed by {noticed}: it is not equivalent"
            SCORE["equivalent"] += 1
            continue
        SCORE["mutants"] += 1
        SCORE["noticed"] += len(noticed) >= 2
        for oracle in noticed:
            SCORE[f"by {oracle}"] += 1
        if len(noticed) < 2:
            survivors.append((mutant, sorted(noticed)))
    assert not survivors, survivors


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric(name: str) -> None:
    """What is called symmetric is symmetric, to 80 digits."""
    it = trials(name)[0]
    leaves = list(it.points)
    point = it.point(0)
    if len(leaves) < 2:
        assert name in ("and", "or")
        return
    turned = {**point, leaves[0]: point[leaves[1]], leaves[1]: point[leaves[0]]}
    for one, other in zip(it.exact(point), it.exact(turned), strict=True):
        assert not differ(np.asarray(one, dtype=object).astype(float), np.asarray(other, dtype=object).astype(float))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("peak", "logsumexp([1000, 1000])", 1000.6931471805599),
        ("peak", "softmax([1000, 1000])", [0.5, 0.5]),
        ("magnitude", "norm([3e200, 4e200])", 5e200),
    ],
)
def test_what_keeps_numbers_in_range(name: str, text: str, expected: Any) -> None:
    """Without the shift or the scale the value overflows."""
    assert not differ(calculator.evaluate(text).value, expected)
    primitive = catalogue()[name]
    nothing = Mutant(primitive, "impl", "none", lambda damaged: lambda xp, x, **p: primitive_neutral(xp, x, name, **p))
    users = [catalogue()[user] for user in ("logsumexp", "softmax", "norm")]
    right = [user.impl for user in users]
    try:
        for user in users:  # their own routines shift too: only the definitions are asked
            user.impl = None
        with nothing.installed():
            assert not np.isfinite(calculator.evaluate(text).value).all()
    finally:
        for user, impl in zip(users, right, strict=True):
            user.impl = impl


def primitive_neutral(xp: Any, x: Any, name: str, *, ranks: Any, axis: Any) -> Any:
    shape = xp.sum(x, axis=axis)
    return shape * 0 + (name == "magnitude")


@pytest.mark.parametrize(("name", "method"), [("rand", "random"), ("randn", "standard_normal")])
def test_random_arrays(name: str, method: str) -> None:
    """Seeded arrays are those of NumPy's PCG64; without a seed each call has numbers of its own, the same every time."""
    right = getattr(np.random.Generator(np.random.PCG64(7)), method)((2, 3))
    assert np.array_equal(calculator.evaluate(f"{name}(2, 3, seed=7)").value, right)
    two = calculator.evaluate(f"[{name}(3), {name}(3)]").value
    assert not np.array_equal(two[0], two[1])
    assert np.array_equal(two, calculator.evaluate(f"[{name}(3), {name}(3)]").value)

"""The laws that every operation obeys, each a function of one case; `LAWS` is the table of them.

A law compares two readings of one declaration that share no code: floats with 80 digits, a gradient program with
differences of the value, a batch with a loop. A law that does not apply says why by `pytest.skip`; the reasons that no
declaration can tell stand in `EXEMPT`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.checks.evaluate import ball_numbers
from gradcli.diagnostics import GradcliError
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import Unavailable
from gradcli.graph.node import reachable
from gradcli.transforms import derivatives
from tests.support import laws_derivatives, laws_points, numpy_reading, reference
from tests.support.cases import GRID, InnerCase, cases
from tests.support.graph_invariants import verify, verify_pushforwards
from tests.support.oracles import Silent, Symbolic, ball_values, middle
from tests.support.reference import Missing, mp
from tests.support.study import POINTS, Study, close, need, study, ulps

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.graph.primitive import Primitive
    from tests.support.cases import Case

# (law, operation): why the law says nothing about it. "*" stands for every operation or every law.
EXEMPT: dict[tuple[str, str], str] = {}
_HELD = "its derivative is 0 by its meaning, not as a limit of differences"
for _name in ("detach", "peak", "magnitude"):
    for _law in ("derivatives_to_80_digits", "gradient_by_sympy", "higher_by_sympy", "jvp_by_differences"):
        EXEMPT[_law, _name] = _HELD
for _name in ("peak", "magnitude"):
    for _law in ("value_by_sympy", "value_by_balls"):
        EXEMPT[_law, _name] = "it cancels from every result, so exact readings take another number on purpose"
EXEMPT["value_to_80_digits", "ste"] = "its value is one operand's, its derivative the other's: the table has the other"
EXEMPT["jvp_by_differences", "ste"] = "its value does not depend on the operand that carries the derivative"
_REAL = "its value is real or depends on conj(z): no complex derivative; tests/execution/test_convention.py has its gradient"
for _name in ("abs", "abs_slope", "sign", "norm", "std", "hypot", "l1_loss", "huber_loss", "cosine_similarity",
              "slogdet", "logabsdet", "slogdet_sign", "cholesky", "qr", "qr_q", "eigvalsh", "eigvecs", "svdvals",
              "svd_u", "svd_v", "eigh", "svd", "pinv", "multivariate_normal_logpdf"):  # fmt: skip
    EXEMPT["complex_is_analytic", _name] = _REAL
for _name in ("detach", "peak", "magnitude", "ste"):
    EXEMPT["complex_is_analytic", _name] = _HELD
for _name in ("eigvecs", "svd_u", "svd_v"):
    for _law in ("value_by_sympy", "value_by_balls", "gradient_by_sympy", "higher_by_sympy"):
        EXEMPT[_law, _name] = "a vector of norm 1 is known up to its sign, and the exact forms choose another sign"

# (law, operation): what is wrong at present. Each row is a strict expected failure: it complains when it is mended.
KNOWN: dict[tuple[str, str], str] = {}


# --- values ---------------------------------------------------------------------------------------------------

ROUNDING = 1e-13  # of a value, relative to its largest entry
LOOSER = {"expm": 1e-12}  # SciPy's closed form for two rows cancels a few digits


def rounding(case: Case) -> float:
    """The relative error that a value may have."""
    return LOOSER.get(case.name, ROUNDING)


def value_to_80_digits(case: Case) -> None:
    """`impl` in float64 = mpmath."""
    it = study(case)
    try:
        for number in range(POINTS):
            for value, exact in zip(it.values, it.exact(it.point(number)), strict=True):
                assert np.shape(value[number]) == np.shape(exact)
                close(value[number], np.asarray(exact, dtype=object).astype(float), rounding(case), "value")
    except Missing as row:
        pytest.skip(f"no row in tests/support/reference.py: {row}")


def value_by_numpy(case: Case) -> None:
    """The function of NumPy or SciPy with this name, called with the same text, gives the same array."""
    need(not isinstance(case, InnerCase), "no script can call it")
    it = study(case)
    for number in range(POINTS):
        try:
            with np.errstate(all="ignore"):
                found = numpy_reading.read(case.text, it.point(number))
        except KeyError as name:
            pytest.skip(f"NumPy and SciPy have no {name}")
        found = found if isinstance(found, tuple) else (found,)
        for value, other in zip(it.values, found, strict=True):
            assert np.shape(value[number]) == np.shape(other)
            close(value[number], other, rounding(case), "value")


def value_by_sympy(case: Case) -> None:
    """`symbolic`, evaluated at the point = `impl`."""
    it = study(case)
    for number in range(POINTS):
        try:
            found = Symbolic(it.outputs, it.leaves, it.point(number)).values()
        except Silent as reason:
            pytest.skip(f"no reading in symbols: {reason}")
        for value, right in zip(it.values, found, strict=True):
            close(value[number], right, rounding(case), "value in symbols")


def value_by_balls(case: Case) -> None:
    """`ball` encloses the value to 80 digits, tightly, and `impl` is near."""
    it = study(case)
    for number in range(POINTS):
        point = it.point(number)
        try:
            found = ball_values(it.outputs, point)
        except Silent as reason:
            need("2x2" in str(reason), str(reason))
            pytest.skip("no closed form for balls")
        for k, (value, entries) in enumerate(zip(it.values, found, strict=True)):
            close(value[number], middle(entries), rounding(case), "value in balls")
            for entry, plain in zip(entries.flat, _exact_entries(it, point, k), strict=False):
                if hasattr(entry, "rel_accuracy_bits"):
                    assert entry.rel_accuracy_bits() >= 56 or ball_numbers.is_tiny(entry)
                    assert _inside(entry, plain), f"{entry} does not hold {plain}"


def _exact_entries(it: Study, point: Any, k: int) -> list[Any]:
    if ("value_to_80_digits", it.case.name) in EXEMPT:
        return []
    try:
        return list(np.ravel(np.asarray(it.exact(point)[k], dtype=object)))
    except Missing:
        return []


def _inside(ball: Any, exact: Any) -> bool:
    with ball_numbers.precision(256):
        text = mp.nstr(reference.number(exact), 50)
        near = type(ball)(text) * (1 + type(ball)(0, "1e-30")) + type(ball)(0, "1e-30")  # some rows are differences
        return bool(ball.overlaps(near))


# --- types, batches, backends -----------------------------------------------------------------------------------


def types(case: Case) -> None:
    """The type rule tells the shape and the kind of what is computed, of gradients too."""
    it = study(case)
    single = it.point(0)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    values = Tape(nodes).run_all({**single, **getattr(it, "tangents", {})}, backend="numpy")
    for node, value in values.items():
        assert np.shape(value) == node.shape, node
    for node in nodes:
        assert node.type.kind in ("float", "bool", "int")
    if it.differentiable:
        assert [g.shape for g in it.programs["gradient"]] == [leaf.shape for leaf in it.leaves.values()]


def batch(case: Case) -> None:
    """Leading axes equal a loop, for every choice of operands that have them, in value and gradient."""
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    tape = Tape(nodes)
    tangents = getattr(it, "tangents", {})
    for chosen in itertools.product((False, True), repeat=len(it.leaves)):
        if not any(chosen):
            continue
        mixed = dict(zip(it.leaves, chosen, strict=True))
        given = {n: v if mixed[n] else v[0] for n, v in it.points.items()}
        found = tape.run({**given, **tangents}, backend="numpy")
        for number in range(POINTS):
            single = {n: v[number] if mixed[n] else v for n, v in given.items()}
            rows = tape.run({**single, **tangents}, backend="numpy")
            for node, value, row in zip(nodes, found, rows, strict=True):
                one = np.broadcast_to(value, (POINTS, *node.shape))[number]
                close(one, row, 1e-13, f"row {number} of a batch in {[n for n in mixed if mixed[n]]}, {node!r}")
    if it.leaves:  # two batch axes, the second of them broadcast
        deep = {n: v[:, None] for n, v in it.points.items()}
        first = next(iter(deep))
        deep[first] = np.repeat(deep[first], 2, axis=1)
        for node, value, plain in zip(
            nodes, tape.run({**deep, **tangents}), tape.run({**it.points, **tangents}), strict=True
        ):
            plain = np.broadcast_to(plain, (POINTS, *node.shape))
            value = np.broadcast_to(value, (POINTS, 2, *node.shape))
            close(value[:, 1], plain, 1e-13, f"two batch axes, {node!r}")


MATH_ULPS = 4


def math_equals_numpy(case: Case) -> None:
    """Python's `math` and NumPy agree within 4 ulp, in value and gradient, where both compute."""
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    single = Tape(it.outputs).scalar and all(leaf.shape == () for leaf in it.leaves.values())
    need(single, "only programs of single numbers run on math")
    if it.differentiable:
        nodes = [*it.outputs, *derivatives.grad(it.outputs[0], list(it.leaves.values()))]
    bound = MATH_ULPS if len(reachable(it.outputs)) <= 1 + len(it.leaves) else 4 * MATH_ULPS
    for number in range(POINTS):
        given = {n: float(v) for n, v in it.point(number).items()}
        try:
            found = Tape(it.outputs).run(given, backend="math")
        except Unavailable as reason:
            pytest.skip(f"math has not all of it: {reason}")
        plain = Tape(it.outputs).run(given, backend="numpy")
        assert np.all(ulps(found, plain) <= bound), f"{found} by math, {plain} by NumPy at {given}"
        close(Tape(nodes).run(given), Tape(nodes).run(given, backend="numpy"), 1e-13, "gradient by math")


def _other_backend(case: Case, backend: str, tolerance: float) -> None:
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    given = {**it.points, **getattr(it, "tangents", {})}
    try:
        found = Tape(nodes).run(given, backend=backend)
    except GradcliError as problem:
        first = problem.diagnostics[0]
        need(first.code not in ("GC713", "GC714"), first.message)
        raise
    for node, value, plain in zip(nodes, found, Tape(nodes).run(given, backend="numpy"), strict=True):
        close(value, plain, tolerance, f"{node!r} by {backend}")


def jax_equals_numpy(case: Case) -> None:
    """The same by jax.numpy, to 1e-12; on one case, because JAX compiles each operation for each shape."""
    need(not isinstance(case, InnerCase), "the functions that are made of it run on JAX")
    small = min(cases(case.name), key=lambda one: sum(leaf.shape != () for leaf in one.leaves.values()))
    need(case is small, "done on the smallest case")
    _other_backend(case, "jax", 1e-12)


def cupy_equals_numpy(case: Case) -> None:
    """The same by CuPy, to 1e-12."""
    _other_backend(case, "cupy", 1e-12)


def float32(case: Case) -> None:
    """In single precision the value and the gradient are float32, and near those in double precision."""
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if it.differentiable else [])]
    given = {**it.points, **getattr(it, "tangents", {})}
    single = Tape(nodes).run(given, backend="numpy", dtype="float32")
    for node, value, plain in zip(nodes, single, Tape(nodes).run(given, backend="numpy"), strict=True):
        if node.type.kind == "float" and node.shape:
            assert value.dtype == np.float32, f"{node!r} came out as {value.dtype}"
        close(value, plain, 2e-4, f"{node!r} in float32")


# Complex numbers have no order: what compares its operands refuses them.
ORDERED = (
    "maximum", "minimum", "max", "min", "amax", "amin", "median", "sort", "argsort", "argmax", "argmin", "clamp", "relu",
    "leaky_relu", "elu", "selu", "hardtanh", "hardsigmoid", "heaviside", "floor", "ceil", "trunc", "round", "mod",
    "less", "less_equal", "greater", "greater_equal", "step", "tie_step", "is_max", "is_min", "huber_loss",
)  # fmt: skip
# Functions that NumPy and SciPy have for real numbers only.
REAL_ONLY = (
    "cbrt", "hypot", "direction_cosine", "atan2", "logaddexp", "erfinv", "erfcinv", "logit", "lgamma", "digamma", "polygamma",
    "beta", "betaln", "norm_ppf", "j0", "j1", "jn", "i0", "i1", "iv", "gammainc", "gammaincc", "betainc",
)  # fmt: skip


def complex_is_analytic(case: Case) -> None:
    """In complex numbers the gradient program is the complex derivative, whatever the direction of the difference.

    What orders its operands, and what has no complex version, is an error with a span.
    """
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    if case.name in ORDERED or case.name in REAL_ONLY:
        need(not isinstance(case, InnerCase), "no script can call it")
        at = {name: (value + 0.25j).tolist() for name, value in case.one().items()}
        with pytest.raises(GradcliError) as problem:
            calculator.grad(f"sum({case.text})", at=at, dtype="complex128")
        assert problem.value.diagnostics[0].span is not None
        return
    random = np.random.default_rng(3)
    given: dict[str, Any] = {
        n: v + 1j * np.round(random.uniform(-0.3, 0.3, v.shape) / GRID) * GRID for n, v in it.points.items()
    }
    slope = it.programs["u"][0]
    way = {name: direction * (1 + 0.5j) for name, direction in it.directions[0].items()}
    tangents = {**it.tangents, **dict(zip(it.tangents, way.values(), strict=False))}
    step = 2.0**-10
    tape = Tape(it.loss)
    try:
        found = Tape(slope).run({**given, **tangents}, backend="numpy", dtype="complex128")[0]
        near = [
            np.asarray(tape.run({n: z + k * step * way[n] for n, z in given.items()}, dtype="complex128")[0])
            for k in (-2, -1, 1, 2)
        ]
    except GradcliError as problem:
        first = problem.diagnostics[0]
        need(first.code not in ("GC334", "GC401", "GC714"), first.message)  # it asks for order, and says so
        raise
    expected = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step)
    away = np.abs(np.asarray(found) - expected) / np.maximum(1, np.abs(expected))
    assert np.all(away <= 1e-7), f"{found} instead of {expected}"


# --- structure ----------------------------------------------------------------------------------------------------


def well_formed(case: Case) -> None:
    """`verify` accepts the program, its gradient programs of three orders, and every pushforward."""
    it = study(case)
    verify(it.outputs)
    if it.differentiable:
        for nodes in it.programs.values():
            verify(nodes)
        if it.loss.type.size and max(node.type.size for node in reachable(it.outputs)) <= 64:
            verify_pushforwards(it.programs["gradient"])


# laws of one case: of what scripts call, and of what only graphs contain
CASE_LAWS: dict[str, Callable[[Case], None]] = {
    "value_to_80_digits": value_to_80_digits,
    "value_by_numpy": value_by_numpy,
    "value_by_sympy": value_by_sympy,
    "value_by_balls": value_by_balls,
    "derivatives_to_80_digits": laws_derivatives.derivatives_to_80_digits,
    "gradient_by_sympy": laws_derivatives.gradient_by_sympy,
    "higher_by_sympy": laws_derivatives.higher_by_sympy,
    "jvp_by_differences": laws_derivatives.jvp_by_differences,
    "adjoint": laws_derivatives.adjoint,
    "operands_are_opaque": laws_derivatives.operands_are_opaque,
    "types": types,
    "batch": batch,
    "math_equals_numpy": math_equals_numpy,
    "jax_equals_numpy": jax_equals_numpy,
    "cupy_equals_numpy": cupy_equals_numpy,
    "float32": float32,
    "complex_is_analytic": complex_is_analytic,
    "well_formed": well_formed,
    "finite_inside": laws_points.finite_inside,
}

# laws of a declaration as a whole
PRIMITIVE_LAWS: dict[str, Callable[[Primitive], None]] = {
    "outside_is_diagnosed": laws_points.outside_is_diagnosed,
    "kinks": laws_points.kinks,
    "examples": laws_points.examples,
    "refuses_what_numpy_refuses": laws_points.refuses_what_numpy_refuses,
    "documented": laws_points.documented,
}

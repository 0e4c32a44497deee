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

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.evaluate import ball_numbers
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import Unavailable
from gradcli.graph.building import building
from gradcli.graph.node import reachable
from gradcli.language.parser import parse
from gradcli.lowering import LoweringMode, lower
from gradcli.primitives import catalogue
from gradcli.transforms import derivatives
from tests.support import laws_derivatives, laws_points, numpy_reading, reference
from tests.support.cases import GRID, InnerCase, cases, public
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
for _name in ("detach", "ste"):
    EXEMPT["complex_gradient", _name] = _HELD
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
            for value, exact in zip(it.values, it.exact_at(number), strict=True):
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
    """`symbolic`, evaluated at a point = `impl`; the trials of test_sabotage.py compare them at more."""
    it = study(case)
    try:
        found = Symbolic(it.outputs, it.leaves, it.point(0)).values()
    except Silent as reason:
        pytest.skip(f"no reading in symbols: {reason}")
    for value, right in zip(it.values, found, strict=True):
        close(value[0], right, rounding(case), "value in symbols")


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
            for entry, plain in zip(entries.flat, _exact_entries(it, number, k), strict=False):
                if hasattr(entry, "rel_accuracy_bits"):
                    assert entry.rel_accuracy_bits() >= 56 or ball_numbers.is_tiny(entry)
                    assert _inside(entry, plain), f"{entry} does not hold {plain}"


def _exact_entries(it: Study, number: int, k: int) -> list[Any]:
    if ("value_to_80_digits", it.case.name) in EXEMPT:
        return []
    try:
        return list(np.ravel(np.asarray(it.exact_at(number)[k], dtype=object)))
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


def _other_backend(case: Case, backend: str, tolerance: float, gradient: bool = True) -> None:
    it = study(case)
    nodes = [*it.outputs, *(it.programs["gradient"] if gradient and it.differentiable else [])]
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
    """The same by jax.numpy, to 1e-12; on one case, because JAX compiles each operation for each shape.

    Gradients are made of the same operations: those of every third function show that of the ones inside graphs too.
    """
    need(not isinstance(case, InnerCase), "the functions that are made of it run on JAX")
    small = min(cases(case.name), key=lambda one: sum(leaf.shape != () for leaf in one.leaves.values()))
    need(case is small, "done on the smallest case")
    _other_backend(case, "jax", 1e-12, gradient=public().index(case.name) % 3 == 0)


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


# What complex numbers are refused by, operations or calls: they have no order, and NumPy and SciPy have some functions
# for real numbers only; factors of matrices have derivatives of real ones.
REFUSED = {
    "maximum", "minimum", "max", "min", "amax", "amin", "median", "sort", "argsort", "argmax", "argmin", "clamp", "relu",
    "leaky_relu", "elu", "selu", "hardtanh", "hardsigmoid", "heaviside", "floor", "ceil", "trunc", "round", "mod",
    "xlogy", "binary_cross_entropy", "kl_div", "quantile", "cummax", "cummin", "interp",
    "cbrt", "hypot", "atan2", "logaddexp", "erfinv", "erfcinv", "logit", "gamma", "factorial", "lgamma", "digamma",
    "polygamma", "trigamma", "loggamma", "multigammaln", "beta", "betaln", "norm_ppf", "gammainc", "gammaincc", "betainc",
    "j0", "j1", "jn", "y0", "y1", "yn", "i0", "i1", "iv", "i0e", "i1e", "ive", "k0", "k1", "kv", "zeta", "lambertw",
    "hyp0f1", "hyp1f1", "hyp2f1", "exprel", "boxcox", "boxcox1p", "inv_boxcox", "erfcx", "erfi", "dawsn", "log_ndtr",
    "expi", "exp1", "ellipk", "ellipe", "fresnel", "fresnels", "fresnelc", "xlog1py", "entr", "rel_entr",
    "cholesky", "qr", "eigvalsh", "eigh", "svdvals", "svd", "pinv", "lstsq", "nanmax", "nanmin", "norm(x0, 2)", 'norm(x0, "nuc")', "t_logpdf",
    "gamma_logpdf", "beta_logpdf", "chi2_logpdf", "poisson_logpmf", "dirichlet_logpdf", "multivariate_normal_logpdf",
}  # fmt: skip


def complex_gradient(case: Case) -> None:
    """In complex numbers the gradient is dL/dx - i*dL/dy by differences, and forward mode gives how it moves.

    L is the real part of a sum of the outputs with complex weights, so a real-valued operation receives a cotangent
    with an imaginary part. What orders its operands, and what has no complex version, is an error with a span.
    """
    need(not isinstance(case, InnerCase), "no script can call it")
    it = study(case)
    need(it.differentiable, "no float output depends on a leaf")
    at = {name: np.zeros(leaf.shape) for name, leaf in case.leaves.items()}
    program = lower(parse(case.text), at=at, mode=LoweringMode(plane=True)).program
    random = np.random.default_rng(3)
    outputs = [output for output in program.outputs if output.type.kind == "float"]
    leaves = {name: leaf.node for name, leaf in program.leaves.items() if not leaf.const}
    need(leaves, "no leaf is differentiated")
    turned = {name: random.uniform(0.125, 0.375, value.shape) for name, value in it.points.items() if name in leaves}
    given = {n: v + 1j * np.round(turned[n] / GRID) * GRID if n in leaves else v for n, v in it.points.items()}
    way = {name: it.grid(leaf.shape) + 1j * it.grid(leaf.shape) for name, leaf in leaves.items()}
    with building(outputs[0].builder, reachable([*outputs, *leaves.values()])) as builder:
        total = None
        for number, output in enumerate(outputs):
            weight = builder.array(f"weights{number}", it.grid(output.shape) + 0.5j, output.type)
            term = builder.call("mul", output, weight)
            term = builder.call("sum", term, axis=tuple(range(-len(output.shape), 0))) if output.shape else term
            total = term if total is None else builder.call("add", total, term)
        gradient = derivatives.grad(total, list(leaves.values()))
        directions = {name: builder.array(f"way{name}", value, leaves[name].type) for name, value in way.items()}
        moved = derivatives.jvp(gradient, list(leaves.values()), list(directions.values()))
    refused = REFUSED & {case.name, case.text} or "x0 >" in case.text
    declared_elsewhere = getattr(catalogue().get(case.name), "package", None) is not None
    step = 2.0**-10
    tape = Tape([total, *gradient, *moved])
    try:
        center, *near = [
            [
                np.broadcast_to(value, (it.count, *node.shape))
                for value, node in zip(tape.run(point, backend="numpy", dtype="complex128"), tape.outputs, strict=True)
            ]
            for k in (0, -2, -1, 1, 2)
            for point in [{n: z + k * step * way[n] if n in way else z for n, z in given.items()}]
        ]
    except GradcliError as problem:
        assert problem.diagnostics[0].code in ("GC401", "GC714") and problem.diagnostics[0].span is not None
        assert refused or declared_elsewhere, f"{case.text} is refused: {problem}"
        return
    assert not refused, f"{case.text} is not refused"
    count = len(gradient)
    slopes = [(a - 8 * b + 8 * c - d) / (12 * step) for a, b, c, d in zip(*near, strict=True)]
    first = sum(
        np.real(value * way[name]).reshape(it.count, -1).sum(-1)
        for name, value in zip(leaves, center[1 : 1 + count], strict=True)
    )
    pairs = [(first, slopes[0].real), *zip(center[1 + count :], slopes[1 : 1 + count], strict=True)]
    for value, expected in pairs:
        away = np.abs(value - expected) / np.maximum(1, np.abs(expected))
        assert np.all(away <= 1e-6), f"{case.text}: {value} instead of {expected}"


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
    "complex_gradient": complex_gradient,
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

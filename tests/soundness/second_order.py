"""Scripts with second derivatives at a point, claimed as numbers; the truth is the second term of differences on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mpmath import mp

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from tests.soundness.formulas import pick
from tests.soundness.points import RELATIVE, Judged, fault, literal
from tests.soundness.truth import DIGITS, STEP, TINY, Formula, exact, near, truth

if TYPE_CHECKING:
    from collections.abc import Mapping

# of a vector y beside r, or of numbers x and y at a tie; many are smooth of second order where their parts are not
FORMULAS = (
    "norm(y - r)**2", "norm(y - r)**3", "norm(y - r)*y[0]", "hypot(y[0] - r[0], y[1] - r[1])**2", "abs(y[0] - r[0])**2*y[1]",
    "(y[0] - r[0])*abs(y[0] - r[0])", "abs(y[0] - r[0])**3 + y[1]**2", "max(y)**2", "sum(abs(y - r)**2)*y[0]", "sum(relu(y - r)**2)",
    "sum(y**2)/2", "y[0]**2*y[1]", "prod(y)", "logsumexp(y)", "sum(exp(y))*y[0]", "sqrt(sum((y - r)**2))**2", "var(y)", "sum(y)**3",
    "relu(y[0] - r[0])*relu(r[0] - y[0])", "maximum(y[0], r[0])*y[1]", "abs(y[0] - r[0])*(y[0] - r[0])**2", "norm(y)", "norm(y - r)**4",
    "sum(maximum(y, r)**2 + minimum(y, r)**2)", "sum(sort(y)**2)", "(max(y) + min(y))**2", "norm(y - r)**2*exp(y[1])", "norm(y - r) + y[0]**2",
    "where(y[0] > r[0], y[0]**2, y[0]**2 + (y[0] - r[0])**3)", "where(y[0] > r[0], y[0]**2, y[0]**2 + (y[0] - r[0])**2)",
    "abs(sin(y[0]) - sin(r[0]))**2 + y[1]", "abs(norm(y - r))**2", "hypot(norm(y - r), y[0] - r[0])**2", "sum(abs(y - r))*sum(y - r)",
)  # fmt: skip


def second(f: Formula, values: Mapping[str, Any], way: Any) -> Any:
    """The second derivative along a direction; None where both sides have different ones, or the slopes differ."""

    def moved(t: Any) -> Any:
        return f({**values, "y": values["y"] + t * way})

    center = moved(mp.mpf(0))
    sides = []
    for h in (STEP, -STEP):
        a, b, c = (moved(k * h) - center for k in (1, 2, 3))
        slope, bend = (3 * a - 1.5 * b + c / 3) / h, (-5 * a + 4 * b - c) / h**2
        sides.append((slope, bend))
    (right, up), (left, low) = sides
    small = TINY**0.2
    if not (near(right, left) or abs(right - left) < small) or not (
        near(up, low, mp.mpf(10) ** -30) or abs(up - low) < small
    ):
        return None
    return mp.mpf(0) if abs(up) < small else up


def hessian(f: Formula, at: Mapping[str, Any], pure: bool) -> Any:
    """The second derivatives by y, `pure` ones on the diagonal alone; None where there are none."""
    if truth(f, at, ("y",)).gradient is None:
        return None
    values = {name: exact(value) for name, value in at.items()}
    n = len(values["y"])
    units = [exact(np.eye(n)[i]) for i in range(n)]
    diagonal = [second(f, values, unit) for unit in units]
    if None in diagonal:
        return None
    result = np.full((n, n), mp.mpf(0), dtype=object)
    for i in range(n):
        result[i, i] = diagonal[i]
        for j in range(0 if pure else i):
            both = second(f, values, units[i] + units[j])
            if both is None:
                return None
            mixed = (both - diagonal[i] - diagonal[j]) / 2
            result[i, j] = result[j, i] = mp.mpf(0) if abs(mixed) < TINY**0.2 else mixed
    for seed in range(0 if pure else 2):
        way = exact(np.random.default_rng(seed).integers(-8, 9, n) + 0.5)
        bend = second(f, values, way)
        total = way @ result @ way
        if bend is None or not (near(bend, total, mp.mpf(10) ** -25) or abs(bend - total) < TINY**0.2):
            return None
    return result


def trace(matrix: Any) -> Any:
    """The sum of the diagonal; 0 where only rounding is left of it."""
    total = np.trace(matrix)
    return total if abs(total) > RELATIVE * max(map(abs, np.diag(matrix))) else mp.mpf(0)


def along(matrix: Any, way: Any) -> Any:
    """A matrix times a direction; 0 in the entries where only rounding is left."""
    terms = matrix * way
    sums = terms.sum(axis=1)
    return np.array(
        [x if abs(x) > RELATIVE * max(map(abs, row)) else mp.mpf(0) for x, row in zip(sums, terms, strict=True)]
    )


def of_second_order(random: Any) -> list[Judged]:
    """`hessian`, `hvp` and `laplacian` of a formula, claimed right or wrong."""
    n = int(random.integers(1, 4)) if random.random() < 0.3 else 2
    text = pick(random, FORMULAS)
    n = 2 if "[1]" in text else n
    y = np.array([float(pick(random, (0.5, 1.0, -0.25, 0.0, 1.0))) for _ in range(n)])
    r = y.copy() if random.random() < 0.7 else y + np.array([float(pick(random, (0.25, -0.5, 1.0))) for _ in range(n)])
    at = {"y": y, "r": r} if "r[" in text or "- r" in text or ", r)" in text else {"y": y}
    with mp.workdps(DIGITS):
        way = exact(np.array([1.0, 2.0, -1.0][:n]))
        kind = pick(random, ("hessian", "hvp", "laplacian"))
        true = hessian(Formula(text), at, kind == "laplacian")
        drawn = np.full((n, n), mp.mpf(0), dtype=object) if true is None else true.copy()
        slip = pick(random, ("none", "none", "zero", "sign", "double", "entry", "slip"))
        if slip == "entry":
            drawn[0, 0] += mp.mpf("0.001")
        drawn = drawn * {"zero": mp.mpf(0), "sign": mp.mpf(-1), "double": mp.mpf(2), "slip": mp.mpf("1.000001")}.get(
            slip, mp.mpf(1)
        )
        rows = {"hessian": lambda h: h, "hvp": lambda h: along(h, way), "laplacian": lambda h: np.array([trace(h)])}[
            kind
        ]
        claimed = rows(drawn)
        right = true is not None and all(
            abs(a - b) <= abs(b) * mp.mpf(10) ** -20 for a, b in zip(claimed.flat, rows(true).flat, strict=True)
        )
        numbers = (
            f"[{', '.join(literal(row, (n,)) for row in claimed)}]"
            if kind == "hessian"
            else literal(claimed, () if kind == "laplacian" else (n,))
        )
        call = {
            "hessian": "hessian(f, y)",
            "hvp": f"hvp(f, y, {[1.0, 2.0, -1.0][:n]})",
            "laplacian": "laplacian(f, y)",
        }[kind]
        leaves = "".join(f"{name} = {value.tolist()}\n" for name, value in at.items())
        script = f"{leaves}f = {text}\nassert {call} == {numbers}\nf"
        try:
            check = next(check for check in check_script(script, wrt=["y"]).checks if check.kind == "claim")
        except GradcliError as problem:
            return [Judged("second order", f"{script!r}: {problem}", right, "ERROR", "an error")]
    found = fault(right, true is not None, check.verdict, check.message)
    return [Judged("second order", f"{script!r}: {check.verdict} {check.message}", right, check.verdict, found)]

"""Claims about sets: formulas on a box with a tie inside it, and arrays of every size."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpmath import mp

from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from tests.soundness.formulas import TIES, chain, pick
from tests.soundness.points import PASSES, Judged, fault, holds
from tests.soundness.truth import DIGITS, Formula, truth

CENTERS = ("0.5", "1", "1.25", "2", "0.75", "0.3", "0.1", "1.7", "0.3333")
# arrays of any size: what holds for many sizes or signs only stands beside what holds for all
ARRAYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sum(x**2)", ("2*x", "2*abs(x)", "2*x + 0*sum(x)", "3*x")),
    ("sum(x)**2", ("2*sum(x) + 0*x", "2*x", "2*sum(x) - x + x")),
    ("mean(x**2)", ("2*x/len(x)", "x", "2*x/3")),
    ("norm(x)", ("x/norm(x)", "sign(x)", "x/sum(abs(x))")),
    ("norm(x)**2", ("2*x", "2*norm(x)*x", "2*sign(x)*norm(x)")),
    ("sum(relu(x)**2)", ("2*relu(x)", "2*x", "2*where(x > 0, x, 0)")),
    ("where(sum(relu(x)**2) == 0, 5*sum(x), sum(x**2))", ("2*x", "where(sum(relu(x)**2) == 0, 5, 2*x)")),
    ("where(sum(abs(x)) > 3, sum(x**2), sum(x))", ("2*x", "1 + 0*x", "where(sum(abs(x)) > 3, 2*x, 1 + 0*x)")),
    ("where(max(x) < 0, 7*sum(x), sum(x**2))", ("2*x", "where(max(x) < 0, 7 + 0*x, 2*x)")),
    ("where(floor(sum(x)) == 0, sum(x), sum(x**2))", ("2*x", "where(floor(sum(x)) == 0, 1 + 0*x, 2*x)")),
    ("max(x)", ("where(x == max(x), 1, 0)", "softmax(x)", "1 + 0*x")),
    ("max(abs(x))", ("where(abs(x) == max(abs(x)), sign(x), 0)", "sign(x)")),
    ("sum(abs(x))", ("sign(x)", "x/abs(x)", "1 + 0*x", "where(x >= 0, 1, -1)")),
    ("var(x)", ("2*(x - mean(x))/len(x)", "2*(x - mean(x))", "2*x/len(x)")),
    ("logsumexp(x)", ("softmax(x)", "exp(x)/sum(exp(x))", "1 + 0*x", "exp(x)")),
    ("sum(softmax(x)*x)", ("softmax(x)*(1 + x - sum(softmax(x)*x))", "softmax(x)", "1 + 0*x")),
    ("prod(x)", ("prod(x)/x", "1 + 0*x", "prod(x)*x")),
    ("sum(sort(x)**2)", ("2*x", "2*sort(x)")),
    ("sum(cumsum(x))", ("1 + 0*x", "cumsum(x)")),
    ("sum(maximum(x, 0)*x)", ("2*relu(x)", "2*x", "relu(x)")),
    ("sum(sign(x)*x**2)", ("2*abs(x)", "2*x", "2*sign(x)*x")),
    ("sum(x*abs(x))/sum(abs(x))", ("1 + 0*x", "2*abs(x)/sum(abs(x)) - sum(x*abs(x))*sign(x)/sum(abs(x))**2")),
    ("sum(x)/len(x)*sum(x)", ("2*sum(x)/len(x) + 0*x", "2*x")),
    ("(max(x) - min(x))**2 + 0*sum(x)", ("0*x", "2*(max(x) - min(x))*(where(x == max(x), 1, 0) - where(x == min(x), 1, 0))")),
    ("sum(log1p(exp(x)))", ("sigmoid(x)", "exp(x)/(1 + exp(x))", "tanh(x)")),
    ("sum(where(x > 0, x**2, 0))", ("2*relu(x)", "2*x", "where(x >= 0, 2*x, 0)")),
)  # fmt: skip


def on_a_box(random: Any) -> list[Judged]:
    """A formula with a tie inside a box, or outside it, and a claim for the whole box."""
    ties = [tie for tie in TIES if "e-25" not in tie[0] and "e-40" not in tie[0] and "{k} + 1e-30" not in tie[0]]
    u, du = chain(random, int(random.integers(0, 3)))
    center = pick(random, CENTERS)
    form, claims = pick(random, ties)
    u, k, du = u.replace("{x}", "x"), u.replace("{x}", center), du.replace("{x}", "x")

    def filled(text: str) -> str:
        return (
            text.replace("{t}", f"({u} - {k})")
            .replace("{u}", f"({u})")
            .replace("{k}", f"({k})")
            .replace("{du}", f"({du})")
        )

    text, claim = filled(form), filled(pick(random, claims))
    if random.random() < 0.3:
        text, claim = f"{text} + sin(2*x)", f"{claim} + 2*cos(2*x)"
    if random.random() < 0.2:
        claim = f"({claim})*{pick(random, ('1.001', '-1', '(1 + 1e-9)'))}"
    c = float(center)
    low, high = pick(random, ((c - 0.0625, c + 0.5), (c - 0.05, c + 0.125), (c + 0.125, c + 0.5), (c * 0.5, c + 1)))
    x = low + (high - low) * pick(random, (0.25, 0.75, 0.5))
    with mp.workdps(DIGITS):
        f, stated = Formula(text), Formula(claim)
        inside = [mp.mpf(value) for value in (low, high, x, *random.uniform(low, high, 6))]
        inside += [mp.mpf(center)] if low < mp.mpf(center) < high else []
        right = True
        for value in inside:
            true = truth(f, {"x": value}, ("x",))
            if true.gradient is None or not holds(stated, {"x": value}, true):
                right = False
                break
        if "floor" in form:  # it jumps wherever {t} is a whole number, not at the center alone
            steps = Formula(filled("floor({t})"))
            right = right and len({steps({"x": low + (high - low) * mp.mpf(k) / 64}) for k in range(65)}) == 1
    what = f"check_script({text!r}, at={{'x': {x!r}}}, claims={{'x': {claim!r}}}, box={{'x': {(low, high)!r}}})"
    try:
        check = check_script(text, at={"x": x}, claims={"x": claim}, box={"x": (low, high)}).checks[-1]
    except GradcliError as problem:
        return [Judged("box", f"{what}: {problem}", right, "ERROR", "an error")]
    found = fault(right, right, check.verdict, check.message)
    if check.verdict == "AGREES" and "floats" in check.message:
        found = ""
    return [Judged("box", f"{what}: {check.verdict} {check.message}", right, check.verdict, found)]


def of_all_sizes(random: Any) -> list[Judged]:
    """A claim about an array of any size: what is said for all sizes has to hold wherever nothing ties."""
    text, claims = pick(random, ARRAYS)
    claim = pick(random, claims)
    n = int(random.integers(1, 5))
    point = np.round(random.uniform(-2, 2, n) * (1 if random.random() < 0.6 else pick(random, (0.1, 3.0))), 2) + 0.001
    point = np.abs(point) if random.random() < 0.3 else -np.abs(point) if random.random() < 0.2 else point
    with mp.workdps(DIGITS):
        f, stated = Formula(text), Formula(claim)
        true = truth(f, {"x": point}, ("x",), turns=1)
        right = true.gradient is not None and holds(stated, {"x": point}, true)
        everywhere = right
        for size in (1, 2, 3, 5):
            for low, high in ((-2, 2), (-2, -0.1), (0.1, 2), (-0.2, 0.2)):
                other = np.round(random.uniform(low, high, size), 3) + 0.0001
                known = truth(f, {"x": other}, ("x",), turns=0)
                everywhere = everywhere and (known.gradient is None or holds(stated, {"x": other}, known))
                if not everywhere:
                    break
    script = f"x[n] in real; {text}"
    what = f"check_script({script!r}, at={{'x': {point.tolist()!r}}}, claims={{'x': {claim!r}}})"
    try:
        check = check_script(script, at={"x": point}, claims={"x": claim}).checks[-1]
    except GradcliError as problem:
        return [Judged("sizes", f"{what}: {problem}", right, "ERROR", "an error")]
    of_all = bool(check.evidence.get("sizes", {}).get("all"))
    found = fault(right, right and everywhere, check.verdict, check.message)
    if of_all and check.verdict in PASSES and not everywhere:
        found = "what does not hold for all passes for all"
    return [
        Judged(
            "sizes", f"{what}: {check.verdict} {check.message}", everywhere if of_all else right, check.verdict, found
        )
    ]

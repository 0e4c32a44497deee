"""Scripts at a point: a formula, a claim, and whether it is right, by `truth`; judged by `check_script`."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp

from gradcli import calculator
from gradcli.base.diagnostics import GradcliError
from gradcli.checks import check_script
from tests.soundness import formulas
from tests.soundness.truth import DIGITS, Formula, Truth, exact, truth

PASSES = ("PROVED", "CERTIFIED", "AGREES", "IMPRECISE")
REFUTES = ("DISAGREES", "KINK", "BOUNDARY", "DISCONTINUOUS", "UNDEFINED")
RELATIVE = mp.mpf(10) ** -40  # formulas that differ by less are equal
WRITTEN = mp.mpf(10) ** -22  # numbers have 25 digits
MOST_EXPONENT = 395  # of a number in a script
DENORMAL = mp.mpf(2) ** -1074
UNIT = 2.0**-52
ROUNDED, CONDITION = 4, 16  # times that the data are rounded otherwise, and times the change that this makes


class Judged(NamedTuple):
    """What was judged, whether it is right (None: neither), and what gradcli says; `fault` is empty where that fits."""

    route: str
    what: str
    right: bool | None
    verdict: str
    fault: str


SAME_SLOPES = re.compile(r"slopes less than \S+ apart")


def fault(right: bool | None, smooth: bool, verdict: str, message: str) -> str:
    """What is wrong with a verdict on a right, a wrong or a doubtful claim."""
    said = ("to 0 in float64", "digits of its decimals")  # of a number, and of decimals that are no doubles
    if right is False and verdict in PASSES and not (verdict != "PROVED" and any(text in message for text in said)):
        return "a wrong one passes"
    alike = verdict == "KINK" and SAME_SLOPES.search(message) is not None  # they differ, by less than a double shows
    if right and (verdict == "DISAGREES" or (smooth and verdict in REFUTES and not alike)):
        return "a right one is refuted"
    if verdict in ("ERROR", "CRASHED"):
        return "no verdict"
    return ""


def equal(claimed: Any, gradient: Any, relative: Any = RELATIVE) -> bool:
    """Whether a claim has the entries of the gradient, each relative to itself."""
    flat = np.ravel(claimed)
    if flat.size == 1 and gradient.size > 1:
        flat = np.repeat(flat, gradient.size)
    return flat.size == gradient.size and all(
        abs(a - b) <= relative * abs(b) for a, b in zip(flat, gradient, strict=True)
    )


def literal(values: Any, shape: tuple[int, ...]) -> str:
    """Numbers as a claim writes them."""
    texts = [mp.nstr(value, 25, min_fixed=-5, max_fixed=20) for value in values]
    return texts[0] if not shape else f"[{', '.join(texts)}]"


def number_claims(true: Truth, kind: str, size: int, random: Any) -> Any:
    """The entries of a claim made of numbers; None where this kind says nothing."""
    if true.gradient is None and kind == "#zero":
        return [mp.mpf(0)] * size
    if true.gradient is None:
        sides = [s for s in true.slopes if s is not None and s.left is not None and s.right is not None]
        if len(sides) != len(true.slopes) or len(sides) != 1:
            return None
        (side,) = sides
        values = {"#right": side.right, "#left": side.left, "#mean": (side.left + side.right) / 2}
        return [values[kind]] if kind in values and size == 1 else None
    entries = list(true.gradient)
    if kind in ("#right", "#left", "#mean"):
        return entries
    if kind == "#entry":
        place = int(random.integers(len(entries)))
        entries[place] = entries[place] * mp.mpf("1.001") + (0 if entries[place] else mp.mpf("0.001"))
        return entries
    factor = {"#zero": "0", "#sign": "-1", "#double": "2", "#slip": "1.000001"}[kind]
    return [entry * mp.mpf(factor) for entry in entries]


def claim_of(stated: formulas.Stated, f: Formula, true: Truth, random: Any) -> tuple[str, bool | None] | None:
    """A claim, and whether it is right: at the point, and, of a formula, also beside it."""
    kind = formulas.pick(random, stated.claims)
    shape = np.shape(stated.at[stated.leaf])
    if kind.startswith("#"):
        entries = number_claims(true, kind, np.size(stated.at[stated.leaf]), random)
        if entries is None or any(entry and abs(mp.log10(abs(entry))) > MOST_EXPONENT for entry in entries):
            return None
        return literal(entries, shape), true.gradient is not None and equal(np.array(entries), true.gradient, WRITTEN)
    claim = Formula(kind)
    if true.gradient is None or not holds(claim, stated.at, true):
        return kind, False
    for factor in (0.984375, 1.046875):
        beside = formulas.moved(stated.at, stated.leaf, factor)
        other = truth(f, beside, (stated.leaf,))
        if other.gradient is None or not holds(claim, beside, other):
            return kind, None  # right at the point, and in its region perhaps
    return kind, True


def holds(claim: Formula, at: Any, true: Truth) -> bool:
    """Whether a formula has the value of the gradient."""
    try:
        return equal(claim({name: exact(value) for name, value in at.items()}), true.gradient)
    except (ZeroDivisionError, ValueError, TypeError):
        return False


def near_enough(value: Any, gradient: Any, f: Formula, stated: formulas.Stated) -> bool:
    """Whether floats are right to 6 digits, or off by as much as rounding the data of an entry whose terms cancel."""
    flat = np.ravel(value)
    off = [abs(a - b) if mp.isfinite(a) else mp.inf for a, b in zip(flat, gradient, strict=True)]
    far = [i for i, gap in enumerate(off) if gap > abs(gradient[i]) * mp.mpf(10) ** -6 + DENORMAL]
    if not far or len(flat) == 1 or not all(map(mp.isfinite, flat)):
        return not far
    changes = []
    for seed in range(ROUNDED):
        random = np.random.default_rng(seed)
        at = {name: exact(x) * (1 + exact(random.integers(-4, 5, np.shape(x)) * UNIT)) for name, x in stated.at.items()}
        beside = truth(f, at, (stated.leaf,), turns=0).gradient
        changes += [] if beside is None else [abs(beside - gradient)]
    return all(off[i] <= CONDITION * max((change[i] for change in changes), default=0) for i in far)


def at_a_point(random: Any) -> list[Judged]:
    """One formula and one claim, and gradcli's own gradient."""
    stated = formulas.pick(random, formulas.POINTS)(random)
    with mp.workdps(DIGITS):
        f = Formula(stated.text)
        true = truth(f, stated.at, (stated.leaf,))
        drawn = claim_of(stated, f, true, random)
        if drawn is None:
            return []
        claim, right = drawn
        if stated.family == "smooth" and right is None:
            right = False  # a formula that is right at the point alone
        smooth = true.gradient is not None and (
            len(stated.at) == 1 or truth(f, stated.at, tuple(stated.at)).gradient is not None
        )
        what = f"check_script({stated.text!r}, at={stated.at!r}, claims={{{stated.leaf!r}: {claim!r}}})"
        try:
            own = calculator.grad(stated.text, at=stated.at).gradient
            checks = check_script(stated.text, at=stated.at, claims={stated.leaf: claim}).checks
        except GradcliError as problem:
            return [Judged("point", f"{what}: {problem}", right, "ERROR", "an error")]
        results = []
        for check in checks:
            if check.kind == "claim":
                results.append((f"{what}: {check.verdict} {check.message}", right, check))
            elif check.leaf == stated.leaf:
                value = exact(own[check.leaf])
                good = true.gradient is not None and near_enough(value, true.gradient, f, stated)
                finite = all(map(mp.isfinite, np.ravel(value)))
                coarse = check.verdict not in ("PROVED", "CERTIFIED", "AGREES")
                doubtful = not good and coarse and (true.gradient is not None or not finite)  # IMPRECISE is right of it
                results.append(
                    (f"own gradient of {what}: {check.verdict} {check.message}", None if doubtful else good, check)
                )
        return [
            Judged("point", text, good, check.verdict, fault(good, smooth, check.verdict, check.message))
            for text, good, check in results
        ]

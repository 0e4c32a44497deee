"""Subjects at complex points go in, their verdicts come out, by the same three numbers as at real ones.

The convention: L is the real part of the output, and what is judged is dL/dx + i*dL/dy for every complex entry x + i*y.
A claim or a rule states the derivative itself, f'(z) where f is holomorphic and dL/dx - i*dL/dy in general. E is
enclosed along 1 and along i, and nothing is taken to be holomorphic. There are no proofs here: CERTIFIED is the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks import points
from gradcli.checks.case import PRINTED_RELATIVE, RIGHT, Outcome, leaf_names, points_told, rescued, usable
from gradcli.checks.complex_case import DTYPE, ComplexCase
from gradcli.checks.floats import LIMIT_ULPS, evaluated, ulps
from gradcli.checks.literals import rounded_constants
from gradcli.checks.shown import node_text, plain, point_text, position, told_apart
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.lowering import Lowered

    Values = Mapping[str, NDArray[Any]]
    Answer = dict[str, Any]

CONVENTION = "dL/dx + i*dL/dy of the real part L; a claim states dL/dx - i*dL/dy, the derivative f'(z)"


def placed(lowered: Lowered, seed: int) -> dict[str, NDArray[Any]]:
    """A complex value for every leaf: given, default, or drawn where the outputs are finite."""
    from gradcli.points import array_of

    leaves = lowered.program.leaves
    known: dict[str, NDArray[Any]]
    known = {name: np.array(array_of(lowered.values[name]), np.complex128) for name in leaves if name in lowered.values}
    missing = [leaf for name, leaf in leaves.items() if name not in known]
    generator = np.random.default_rng(seed)
    drawn: dict[str, NDArray[Any]] = {}
    for _ in range(points.TRIES if missing else 0):
        for leaf in missing:
            x, y = generator.uniform(-2, 2, (2, *leaf.node.type.shape))
            drawn[leaf.name] = np.asarray(np.round(x, 2) + 1j * np.round(y, 2))
        if all(np.isfinite(one).all() for one in evaluated(lowered.program.outputs, {**known, **drawn}, DTYPE)):
            break
    return {**known, **drawn}


def judge(exact: Exact, subject: Subject, seed: int, samples: int = 3) -> Outcome:
    """The verdict on one subject at its complex point."""
    exact.begin()
    one = Judging(exact, subject, seed, samples)
    found = one.equality() if subject.output is None else one.derivative()
    return found._replace(evidence=plain({"convention": CONVENTION, **one.evidence, **found.evidence}))


class Judging(ComplexCase):
    """One subject being judged at a complex point."""

    # --- derivatives ------------------------------------------------------------------------------------------

    def derivative(self) -> Outcome:
        """By series along 1 and i; by differences of the real part where there are none."""
        subject = self.subject
        assert subject.output is not None and subject.target is not None
        found = self.infinite()
        if found is not None:
            return found
        if subject.target not in reachable([subject.output]):
            return self.independent()
        if self.exact.refused is not None:
            return self.by_differences(self.exact.refused["reason"])
        name = self.exact.derive(
            subject.output, subject.target, subject.moving, self.values, seed=self.seed, plane=True
        )
        near = self.beside()
        answer = self.exact.judge(
            subject.judged,
            self.values,
            name=name,
            beside=[{self.leaf: one[self.leaf]} for one in near],
            wanted=self.samples,
            directions=self.joint(),
            rtol=subject.rtol,
        )
        if "problem" in answer:
            return self.by_differences(answer["reason"])
        value = answer["value"]
        if value.get("failure") == "undefined":
            return self.undefined(value)
        other = self.of_another_function(value)
        if other is not None:
            return other
        here, tie = answer["given"], answer["tie"]
        if tie is not None and tie["kind"] != "smooth":
            return self.rough(tie)
        if answer["digits"] is False:
            return Outcome("INCONCLUSIVE", "series and differences of 60-digit values contradict each other", {})
        if answer["digits"]:
            self.tried["digits"] = "agree with the series"
        spots = [(self.values, here), *((near[one["position"]], one) for one in answer["beside"])]
        wrong = [(values, one) for values, one in spots if "!" in one["relations"]]
        if wrong:
            return self.refuted(name, *wrong[0], answer.get("holomorphic"))
        if "R" in here["relations"]:
            return Outcome("UNDEFINED", f"what is judged has no value here: {here['reason']}", {})
        if not all(set(one["relations"]) <= RIGHT for _, one in spots):
            return self.by_differences(here["reason"] or "E and R overlap, but neither is narrow enough")
        self.tried["series"] = "derivative enclosed along 1 and i"
        return self.right(spots)

    def right(self, spots: Sequence[tuple[Values, Answer]]) -> Outcome:
        """CERTIFIED, or IMPRECISE where the float is far from the enclosed number."""
        worst, at, beyond = 0.0, (0.0j, 0.0j, 0), ""
        rtol = self.subject.rtol or 0.0
        for values, answer in spots:
            made = self.stated(evaluated([self.subject.judged], values, DTYPE)[0].reshape(-1))
            exact = answer["exact"]
            for k, value in enumerate(made):
                if exact[2 * k] is None or exact[2 * k + 1] is None:
                    continue
                true = complex(exact[2 * k], exact[2 * k + 1])
                if abs(value - true) <= rtol * abs(true):
                    continue
                off = max(ulps(getattr(value, p), getattr(true, p), size=abs(true)) for p in ("real", "imag"))
                if off > worst:
                    worst, at = off, (value, true, k)
            for part, digits in answer["beyond"]:
                worst, at, beyond = np.inf, (made[part // 2], 0j, part // 2), digits
        here = spots[0][1]
        shown = sorted(here["details"], key=lambda one: one["entry"])
        made = self.stated(evaluated([self.subject.judged], self.values, DTYPE)[0].reshape(-1))
        floats = [x for value in made for x in (value.real, value.imag)]
        self.evidence |= {
            "parts": [self.part(one["entry"]) for one in shown],
            "exact": [one["exact"] for one in shown],
            "judged": [one["claimed"] for one in shown],
            "float": [repr(float(floats[one["entry"]])) for one in shown],
            "agree_bits": min(one["agreed"] for _, one in spots),
            "ulps": worst,
            "ulps_limit": LIMIT_ULPS,
            "points": len(spots),
        }
        if worst > LIMIT_ULPS:
            value, true, k = at
            where = self.where(k)
            what = f"is off by {worst:.3g} ulp" if np.isfinite(worst) else "is not finite"
            what = "is out of range: float64 ends at 1.8e+308" if beyond else what
            message = f"the rule is right, but the float value {plain(value)}{where} {what}"
            return Outcome("IMPRECISE", f"{message}; exact: {beyond or plain(true)}", {"entry": where})
        message = f"dL/dx and dL/dy are enclosed at {points_told(len(spots))}"
        if any("~" in one["relations"] for _, one in spots):
            message += f", within the tolerance {self.subject.rtol:g}"
            self.evidence["rtol"] = self.subject.rtol
        if len(spots) == 1 or all(x == 0 for _, one in spots for x in one["exact"]):
            message += ", at this point only"
        return Outcome("CERTIFIED", message, {})

    def refuted(self, name: Mapping[str, Any], values: Values, answer: Answer, holomorphic: bool | None) -> Outcome:
        """DISAGREES, unless the digits of constants explain the difference."""
        subject = self.subject
        for printed in (False, True):
            if printed and leaf_names([subject.judged]):
                continue
            again = self.exact.compare(
                subject.judged, [values], name=name, wide=True, printed=printed, plane=True, rtol=subject.rtol
            )
            slack = PRINTED_RELATIVE if printed else 1e-9
            if "problem" not in again and again["points"][0]["region"] and rescued(again["points"][0], slack):
                verdict = "AGREES" if printed else "CERTIFIED"
                constants = ", ".join(rounded_constants([subject.judged, subject.output]) if subject.output else [])
                what = "the number is right to the digits given, at this point"
                what = what if printed else f"equal to the digits of the constants {constants}"
                return Outcome(verdict, what, {"basis": "digits"} if printed else {"reading": "rounded"})
        first = next(one for one in answer["details"] if one["relation"] == "!")
        right, claimed = told_apart(first["exact"], first["claimed"])
        part = self.part(first["entry"])
        found = {
            "at": point_text(values, self.exact.used),
            "entry": part,
            "exact": first["exact"],
            "claimed": first["claimed"],
        }
        message = f"the slope of the real part by {part} is {right}, not {claimed}"
        evidence: dict[str, Any] = {"counterexample": found}
        if holomorphic is False:
            evidence["holomorphic"] = False
            message += "; the output is not holomorphic here"
            message += (
                ": use the real and the imaginary part as leaves of their own"
                if subject.kind == "gradient"
                else ", and what is claimed is dL/dx - i*dL/dy of its real part"
            )
        return Outcome("DISAGREES", message, evidence)

    def rough(self, tie: Answer) -> Outcome:
        """KINK, BOUNDARY or DISCONTINUOUS along 1 or i, or INCONCLUSIVE where the sides do not tell."""
        node = self.exact.node(tie["row"])
        name = "a branch" if node is None else node_text(node)
        if tie["kind"] == "unknown":
            return Outcome("INCONCLUSIVE", f"{name} is not smooth here, and its sides do not tell: {tie['reason']}", {})
        made = self.stated(evaluated([self.subject.judged], self.values, DTYPE)[0].reshape(-1))
        floats = [x for value in made for x in (value.real, value.imag)]
        evidence: dict[str, Any] = {
            "basis": "series",
            "parts": [self.part(i) for i in tie["axes"]],
            "left": tie["left"],
            "right": tie["right"],
            "returned": [floats[i] for i in tie["axes"]],
        }
        diagnostics: tuple[Diagnostic, ...] = ()
        if node is not None:
            evidence |= {"operation": node.primitive.name, "node": name}
            diagnostics = (Diagnostic("GC410", f"{name} has no derivative here", node.span, severity="note"),)
        inside = False
        if tie["kind"] == "DISCONTINUOUS":
            evidence |= {"value": tie["value"], "limits": tie["limits"]}
            limits = " and ".join("none" if one is None else f"{one:.6g}" for one in tie["limits"])
            message = f"the real part jumps at {name}: its limits are {limits}, its value {tie['value']:.6g}"
        else:
            message = (
                f"{name} has no derivative here: slopes {tie['digits'][0]} from below, {tie['digits'][1]} from above"
            )
            sides = list(zip(tie["left"], tie["right"], evidence["returned"], strict=True))
            inside = tie["kind"] == "KINK" and all(
                isinstance(low, float) and isinstance(high, float) and min(low, high) <= value <= max(low, high)
                for low, high, value in sides
            )
            evidence["inside"] = inside
        return Outcome(tie["kind"], message, evidence, diagnostics, inside)

    def independent(self) -> Outcome:
        """The output does not depend on the target."""
        zero = not evaluated([self.subject.judged], self.values, DTYPE)[0].any()
        if zero and not leaf_names([self.subject.judged]):
            return Outcome("PROVED", "the output does not depend on it: the gradient is zero", {"independent": True})
        return Outcome("INCONCLUSIVE", "the output does not depend on it, and the claim is not 0 as it stands", {})

    # --- equalities -------------------------------------------------------------------------------------------

    def equality(self) -> Outcome:
        """The verdict on a claim that two complex values are equal."""
        subject = self.subject
        assert subject.left is not None
        found = self.infinite()
        if found is not None:
            return found
        places = [self.values, *self.moved()]
        answer = self.exact.compare(subject.judged, places, left=subject.left, plane=True, rtol=subject.rtol)
        if "problem" in answer:
            left, right = evaluated([subject.left, subject.judged], self.values, DTYPE)
            self.tried["balls"] = answer["reason"]
            if np.allclose(left, right, rtol=subject.rtol or 1e-9, atol=0):
                return Outcome("AGREES", "equal in floats to 1e-09", {"basis": "numerical", "points": 1, "bound": 1e-9})
            return Outcome(
                "INCONCLUSIVE", f"the floats differ, and no exact oracle could decide: {answer['reason']}", {}
            )
        first = answer["points"][0]
        if set(first["relations"]) & set("ER"):
            return Outcome("UNDEFINED", f"a side has no value here: {first['reason']}", {})
        spots = [(v, p) for v, p in zip(places, answer["points"], strict=True) if usable(p)]
        wrong = next(((v, p) for v, p in spots if "!" in p["relations"]), None)
        if wrong is not None:
            for printed in (False, True):
                if printed and leaf_names([subject.left]) and leaf_names([subject.judged]):
                    continue
                again = self.exact.compare(
                    subject.judged, [wrong[0]], left=subject.left, plane=True, wide=True, printed=printed
                )
                if "problem" not in again and rescued(again["points"][0], PRINTED_RELATIVE if printed else 1e-9):
                    return Outcome("AGREES" if printed else "CERTIFIED", "equal to the digits of its constants", {})
            one = next(d for d in wrong[1]["details"] if d["relation"] == "!")
            part = (
                ("real", "imaginary")[one["entry"] % 2] + " part" + position(one["entry"] // 2, subject.left.type.shape)
            )
            sign = "-" if one["entry"] % 2 else ""
            exact, claimed = told_apart(one["exact"], one["claimed"])
            found_at = {"at": point_text(wrong[0], self.exact.used), "entry": part}
            evidence = {"counterexample": {**found_at, "exact": one["exact"], "claimed": one["claimed"]}}
            said = f"the {part} of the left side is {signed(sign, exact)}, of the right side {signed(sign, claimed)}"
            return Outcome("DISAGREES", said, evidence)
        if spots and all(set(p["relations"]) <= RIGHT for _, p in spots):
            message = f"both sides are enclosed and agree at {points_told(len(spots))}"
            return Outcome("CERTIFIED", message, {"points": len(spots)})
        return Outcome("INCONCLUSIVE", "neither certified nor refuted: the enclosures are too wide", {})


def signed(sign: str, digits: str) -> str:
    """Digits with their sign turned where `sign` is "-"."""
    if not sign or digits in ("0", ""):
        return digits
    return digits[1:] if digits.startswith("-") else f"-{digits}"


__all__ = ["judge", "placed"]

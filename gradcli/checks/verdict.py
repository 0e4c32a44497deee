"""A subject and the oracles go in, its verdict with the evidence comes out; a verdict is never stronger than its evidence.

Three numbers: E, the oracle's enclosure of the derivative; R, what is judged, in balls; F, what is judged, in float64.
R against E says whether the rule is right, F against E whether the number is good. A float alone refutes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks import diagnosis, kinks, numerical, points
from gradcli.checks.floats import evaluated, moving, ulps
from gradcli.checks.shown import node_text, plain, point_text, position, shortened_list
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import LEAF, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.graph.node import Node

    Floats = NDArray[np.float64]
    Values = Mapping[str, Floats]
    Evidence = dict[str, Any]

LIMIT_ULPS = 1024
SYMBOLIC_ENTRIES = 16  # entries of one leaf that are differentiated by at once
PICKED_ENTRIES = 6  # of a larger leaf
RIGHT = frozenset("=~")
PRINTED = 0.01  # half a unit of the third digit


class Outcome(NamedTuple):
    """A verdict, why, and the evidence; `inside` tells, at a kink, whether the returned value is a possible slope."""

    verdict: str
    message: str
    evidence: Evidence
    diagnostics: tuple[Diagnostic, ...] = ()
    inside: bool = False


class Judge:
    """Judges subjects with one oracle, a seed, and a number of points beside the given one."""

    def __init__(self, exact: Exact, seed: int, samples: int = 3, dtype: str = "float64") -> None:
        self.exact = exact
        self.seed = seed
        self.samples = samples
        self.dtype = dtype

    def judge(self, subject: Subject) -> Outcome:
        """The verdict on one subject."""
        self.exact.begin()
        case = Case(self, subject)
        found = case.equality() if subject.output is None else case.derivative()
        return found._replace(evidence=plain({**case.evidence, **found.evidence}))


class Case:
    """One subject being judged: what has been found out so far."""

    def __init__(self, judge: Judge, subject: Subject) -> None:
        self.judge = judge
        self.exact = judge.exact
        self.subject = subject
        self.values = subject.values
        self.tried: dict[str, str] = {}  # oracle -> what came of it
        self.evidence: Evidence = {"oracles": self.tried}
        self.points: list[dict[str, Floats]] = [dict(subject.values)]
        self.names: dict[bool, str] = {}  # SymPy's derivatives, by whether decimals are read as written
        self.tied = False
        self.smooth_tie = False
        both = [node for node in (subject.judged, subject.left) if node is not None]
        self.number = any(not leaves_of(node) for node in both)  # a claim that is a bare number holds at one point

    # --- gradients -----------------------------------------------------------------------------------------

    def derivative(self) -> Outcome:
        """The verdict on a claimed gradient."""
        subject = self.subject
        assert subject.output is not None and subject.target is not None
        if subject.note:
            self.evidence["subject"] = subject.note
        stop = self.value([subject.output])
        if stop is not None:
            return stop
        kink = self.at_a_kink()
        if kink is not None:
            return kink
        entries = self.chosen_entries()
        if self.derive(entries):
            found = self.by_enclosure(entries)
            if found is not None:
                return found
        elif self.tied and not self.smooth_tie:
            rough = self.beside((), "a branch hangs on an exact tie")
            if rough is not None:
                return rough
        return self.by_differences()

    def value(self, nodes: Sequence[Node]) -> Outcome | None:
        """UNDEFINED where a value is not real at the point; None where it is, or where nobody can tell."""
        names = {n.params["name"] for n in reachable([*nodes, self.subject.judged]) if n.primitive is LEAF}
        for name in self.values:
            if name in names and not np.isfinite(self.values[name]).all():
                return Outcome("UNDEFINED", f"{name} holds a value that is not a finite number", {"leaf": name})
        answer = self.exact.values(nodes, self.values)
        if "problem" in answer:
            self.tried["balls"] = answer["reason"]
            found = evaluated(nodes, self.values)
            if all(np.isfinite(x).all() for x in found):
                return None
            return Outcome("UNDEFINED", "the value is not a finite number here", {"basis": "numerical"})
        failed = [entry for row in answer["entries"] for entry in row if "failure" in entry]
        for entry in failed:
            if entry["failure"] == "undefined":
                return self.undefined(entry)
        if failed:
            self.tried["balls"] = failed[0]["reason"]
            if not all(np.isfinite(x).all() for x in evaluated(nodes, self.values)):
                return Outcome("INCONCLUSIVE", f"the value is out of range: {failed[0]['reason']}", {})
        else:
            self.evidence["value"] = shortened_list([entry["digits"] for row in answer["entries"] for entry in row])
        return None

    def undefined(self, entry: Mapping[str, Any]) -> Outcome:
        node = self.exact.node(entry.get("row"))
        reason = entry["reason"]
        if node is None:
            return Outcome("UNDEFINED", f"not a real number here: {reason}", {"reason": reason})
        told = Diagnostic("GC401", reason, node.span, severity="warning")
        evidence = {"reason": reason, "node": node_text(node)}
        return Outcome("UNDEFINED", f"not a real number here: {reason}", evidence, (told,))

    # --- kinks -----------------------------------------------------------------------------------------------

    def at_a_kink(self) -> Outcome | None:
        """KINK, BOUNDARY or DISCONTINUOUS where a tie that moves with the target makes the output rough."""
        subject = self.subject
        assert subject.target is not None
        near = [s for s in subject.surfaces if kinks.depends_on(s, subject.target)]
        if not near:
            return None
        answer = self.exact.values([s.zero for s in near], self.values)
        if "problem" in answer:
            return None
        tied = [
            surface
            for surface, row in zip(near, answer["entries"], strict=True)
            if any(entry.get("sign") == 0 for entry in row)
        ]
        return self.beside(tied) if tied else None

    def beside(self, tied: Sequence[kinks.Surface], reason: str = "") -> Outcome | None:
        """What differences from both sides say; None where the output is smooth all the same."""
        subject = self.subject
        assert subject.output is not None and subject.target is not None
        targets = [subject.target]
        if subject.target.primitive is LEAF:
            reached = set(reachable([subject.output]))
            targets += [
                node
                for node in reached
                if node.primitive is LEAF and node.params["name"] in subject.moving and node is not subject.target
            ]
        targets = [targets[0], *sorted(targets[1:], key=lambda node: node.serial)]
        f, x = moving(subject.output, targets, self.values)
        count = subject.target.type.size
        entries = range(count) if count <= numerical.ALL_ENTRIES else range(numerical.SOME_ENTRIES)
        seen = kinks.behaviour(f, x, entries, joint=True, seed=self.judge.seed)
        found = evaluated([subject.judged], self.values, self.judge.dtype)[0].reshape(-1)[: len(entries)]
        returned = [float(value) for value in found]
        if seen.verdict == "smooth":
            self.tried["kinks"] = "a tie, but the value is smooth across it"
            self.smooth_tie = len(entries) == count and kinks.inside(returned, seen)
            return self.off_a_smooth_tie(tied, returned, seen)
        inside = kinks.inside(returned, seen) if seen.verdict == "KINK" else False
        evidence: Evidence = {
            "left": seen.left,
            "right": seen.right,
            "returned": returned,
            "basis": "numerical",
            "bound": seen.bound,
        }
        message = reason
        diagnostics: tuple[Diagnostic, ...] = ()
        if tied:
            surface = tied[0]
            evidence["operation"] = surface.node.primitive.name
            evidence["node"] = node_text(surface.node)
            evidence["where"] = surface.where
            evidence["convention"] = surface.convention
            message = f"{node_text(surface.node)} has a kink ({surface.where.removeprefix('where ')})"
            diagnostics = (Diagnostic("GC410", message, surface.node.span, severity="note"),)
        if seen.verdict == "DISCONTINUOUS":
            evidence["value"], evidence["limits"] = seen.value, list(seen.limits)
            message = f"the value jumps here: {message}" if message else "the value jumps here"
        elif seen.verdict == "KINK":
            evidence["inside"] = inside
            message += f": slopes {_slopes(seen)}"
            if all(one is not None and one == other for one, other in zip(seen.left, seen.right, strict=True)):
                message += "; the partials exist, but there is no derivative in other directions"
            if not inside:
                message += f", and the value {_short(returned)} is not between them"
        else:
            message += f": slopes {_slopes(seen)}, no finite derivative"
        return Outcome(seen.verdict, message, evidence, diagnostics, inside)

    def off_a_smooth_tie(
        self, tied: Sequence[kinks.Surface], returned: Sequence[float], seen: kinks.Behaviour
    ) -> Outcome | None:
        """Kinks that cancel: the function is smooth, but a convention chose another slope."""
        for value, left, right in zip(returned, seen.left, seen.right, strict=True):
            if left is None or right is None:
                continue
            gap = min(abs(value - left), abs(value - right))
            if not gap <= 100 * seen.bound + 1e-6 * max(abs(left), abs(value)):
                where = f"{node_text(tied[0].node)} has a kink here that cancels" if tied else "a tie that cancels"
                evidence: Evidence = {"left": seen.left, "right": seen.right, "returned": list(returned)}
                evidence |= {"basis": "numerical", "bound": seen.bound, "inside": False}
                return Outcome("KINK", f"{where}: the true slope is {left:.6g}, the value {value:.6g}", evidence)
        return None

    # --- the symbolic oracle ------------------------------------------------------------------------------------

    def chosen_entries(self) -> list[int]:
        """The entries of the target that SymPy differentiates by: all of a small one, the most telling of a large one."""
        subject = self.subject
        assert subject.target is not None
        size = subject.target.type.size
        if size <= SYMBOLIC_ENTRIES:
            return list(range(size))
        nodes = [subject.judged] if subject.engine is None else [subject.judged, subject.engine]
        found = [value.reshape(-1) for value in evaluated(nodes, self.values)]
        weight = np.abs(found[0] - found[1]) if len(found) > 1 else np.abs(found[0])
        weight = np.nan_to_num(weight, nan=np.inf)
        order = np.argsort(-weight, kind="stable")[: PICKED_ENTRIES // 2].tolist()
        generator = np.random.default_rng(self.judge.seed)
        order += generator.choice(size, PICKED_ENTRIES - len(order), replace=False).tolist()
        return sorted(set(order))

    def derive(self, entries: Sequence[int], decimal: bool = False) -> bool:
        """Whether SymPy gave a derivative by these entries."""
        subject = self.subject
        assert subject.output is not None and subject.target is not None
        answer = self.exact.derive(subject.output, subject.target, subject.moving, self.values, decimal, list(entries))
        if "problem" in answer:
            reason = answer["reason"]
            self.tied = answer["problem"] == "tie"
            self.tried["symbolic"] = f"a tie of {reason}" if self.tied else reason
            return False
        self.names[decimal] = answer["name"]
        return True

    def by_enclosure(self, entries: Sequence[int]) -> Outcome | None:
        """The verdict from E and R; None where they leave it open."""
        subject = self.subject
        assert subject.target is not None
        candidates = self.candidates()
        answer = self.exact.compare(
            subject.judged, [self.values, *candidates], name=self.names[False], rtol=subject.rtol
        )
        if "problem" in answer:
            self.tried["symbolic"] = answer["reason"]
            return None
        here, *rest = answer["points"]
        if not here["region"]:
            self.tried["symbolic"] = "the branches could not be decided at the point"
            return None
        nearby = [(c, p) for c, p in zip(candidates, rest, strict=True) if usable(p)][: self.judge.samples]
        if "E" in here["relations"]:
            rough = self.beside((), here["reason"] or "")
            if rough is not None:
                return rough
            self.tried["symbolic"] = f"undefined at the point: {here['reason']}"
            return None
        if "R" in here["relations"]:
            return self.judged_undefined(here)
        wrong = self.refuted([(self.values, here), *nearby], entries)
        if wrong is not None:
            return wrong
        self.points += [values for values, _ in nearby]
        return self.right(here, nearby, entries)

    def candidates(self) -> list[dict[str, Floats]]:
        """Points beside the given one where only the checked leaf has moved."""
        subject = self.subject
        assert subject.target is not None
        if subject.target.primitive is not LEAF or self.number or subject.rtol is not None:
            return []
        name = subject.target.params["name"]
        near = points.nearby(self.values[name], subject.domain, self.judge.samples, self.judge.seed)
        return [{**self.values, name: moved} for moved, _ in zip(near, range(3 * self.judge.samples), strict=False)]

    def judged_undefined(self, here: Mapping[str, Any]) -> Outcome:
        """What is judged has no value where the derivative has one."""
        answer = self.exact.values([self.subject.judged], self.values)
        failed = [entry for entry in answer.get("entries", [[]])[0] if entry.get("failure") == "undefined"]
        evidence = {"exact": shortened_list([one["exact"] for one in here["details"]])}
        rough = self.beside((), "the derivative's formula fails here") if self.subject.kind == "gradient" else None
        if rough is not None:
            return rough
        whose = "the gradient" if self.subject.kind == "gradient" else "the claim"
        found = self.undefined(failed[0]) if failed else Outcome("UNDEFINED", "", {})
        message = f"{whose} has no value here, though the derivative is {here['details'][0]['exact']}"
        reason = f": {failed[0]['reason']}" if failed else ""
        return found._replace(message=message + reason, evidence={**found.evidence, **evidence})

    # --- right ---------------------------------------------------------------------------------------------------

    def right(
        self, here: Mapping[str, Any], nearby: Sequence[tuple[Values, Any]], entries: Sequence[int]
    ) -> Outcome | None:
        """PROVED, CERTIFIED or IMPRECISE; None where E and R neither agree nor differ."""
        subject = self.subject
        assert subject.target is not None
        complete = len(entries) == subject.target.type.size
        agree = all(set(p["relations"]) <= RIGHT for p in (here, *(p for _, p in nearby)))
        proof: Mapping[str, Any] = {"proved": False}
        if complete and "~" not in here["relations"]:
            proof = self.exact.prove(subject.judged, self.values, name=self.names[False])
        proved = bool(proof.get("proved"))
        if not proved and not agree:
            self.tried["symbolic"] = proof.get("reason") or "E and R overlap, but neither is narrow enough"
            return None
        self.tried["symbolic"] = f"proved ({proof['how']})" if proved else "derivative enclosed"
        if not proved and proof.get("reason"):
            self.evidence["not_proved"] = proof["reason"]
        self.evidence["exact"] = shortened_list([one["exact"] for one in sorted_details(here)])
        if proved and proof["region"]:
            self.evidence["region"] = shortened_list(proof["region"])
        if proved and proof["frozen"]:
            self.evidence["fixed"] = proof["frozen"]
        if not complete:
            self.tried["symbolic"] = f"derivative enclosed for {len(entries)} of {subject.target.type.size} entries"
            return None
        worst = self.float_quality([(self.values, here), *nearby], here_only=proved)
        if worst is not None:
            return worst
        if proved:
            return Outcome("PROVED", "equal by algebra" + self.conditions(proof), {})
        if "~" in here["relations"]:
            return Outcome("CERTIFIED", f"within the tolerance {subject.rtol:g}", {"points": 1 + len(nearby)})
        still = not nearby and subject.target.primitive is LEAF and self.judge.samples
        zero = all(x == 0 for _, p in [(None, here), *nearby] for x in p["exact"])
        evidence: Evidence = {"points": 1 + len(nearby)}
        message = f"the exact derivative is enclosed at {counted(1 + len(nearby), 'point')}"
        if zero or still:
            message += ", at this point only"
        if any(points.structure(self.values[n])[0] for n in self.own_leaf()):
            message += "; the point is a symmetric matrix, and so is every point beside it"
        return Outcome("CERTIFIED", message, evidence)

    def own_leaf(self) -> list[str]:
        target = self.subject.target
        return [] if target is None or target.primitive is not LEAF else [target.params["name"]]

    def conditions(self, proof: Mapping[str, Any]) -> str:
        region = ", ".join(proof["region"][:4]) + (", ..." if len(proof["region"]) > 4 else "")
        fixed = ", ".join(proof["frozen"])
        return (f", where {region}" if region else "") + (f", with {fixed} fixed at their values" if fixed else "")

    def float_quality(self, found: Sequence[tuple[Values, Any]], here_only: bool) -> Outcome | None:
        """IMPRECISE where the float value is far from the exact one; else the figure goes into the evidence."""
        subject = self.subject
        worst, exact_at, float_at, entry_at = 0.0, 0.0, 0.0, 0
        normwise = 0.0
        for values, answer in found[:1] if here_only else found:
            made = evaluated([subject.judged], values, self.judge.dtype)[0].reshape(-1)
            largest = max((abs(x) for x in answer["exact"] if x is not None), default=0.0)
            for entry, exact in zip(answer["entries"], answer["exact"], strict=True):
                if exact is None:
                    continue
                off = ulps(float(made[entry]), exact, self.judge.dtype)
                if subject.rtol is not None and abs(made[entry] - exact) <= subject.rtol * abs(exact):
                    off = 0.0
                if off > worst:
                    worst, exact_at, float_at, entry_at = off, exact, float(made[entry]), entry
                normwise = max(normwise, ulps(float(made[entry]), exact, self.judge.dtype, largest))
        self.evidence["ulps"] = _number(worst)
        self.evidence["ulps_of_the_largest_entry"] = _number(normwise)
        self.evidence["ulps_limit"] = LIMIT_ULPS
        if worst <= LIMIT_ULPS:
            return None
        where = position(entry_at, subject.judged.type.shape)
        what = f"is off by {worst:.3g} ulp"
        if not np.isfinite(float_at):
            what = "is not finite"
        elif worst > 2**52:
            what = "has no correct digit"
        evidence: Evidence = {"entry": where, "float": _number(float_at), "exact_value": exact_at}
        blamed = self.blamed()
        message = f"the rule is right, but the float value {float_at!r}{where} {what}; exact: {exact_at!r}"
        diagnostics: tuple[Diagnostic, ...] = ()
        if blamed is not None:
            evidence["node"] = node_text(blamed)
            message += f"; digits are lost in {node_text(blamed)}"
            diagnostics = (
                Diagnostic("GC409", f"digits are lost in {node_text(blamed)}", blamed.span, severity="note"),
            )
        return Outcome("IMPRECISE", message, evidence, diagnostics)

    def blamed(self) -> Node | None:
        """The first node of what is judged whose float is far off though its arguments are good."""
        order = [n for n in reachable([self.subject.judged]) if n in self.exact.table.rows and n.type.kind == "float"]
        if len(order) > 2000 or sum(n.type.size for n in order) > 20_000:
            return None
        answer = self.exact.values(order, self.values)
        if "problem" in answer:
            return None
        bad: set[Node] = set()
        floats = evaluated(order, self.values)
        for node, value, row in zip(order, floats, answer["entries"], strict=True):
            flat = value.reshape(-1)
            for made, entry in zip(flat, row, strict=True):
                exact = entry.get("value")
                if exact is not None and not abs(made - exact) <= 1e-12 * abs(exact):
                    bad.add(node)
        first = [node for node in order if node in bad and not any(arg in bad for arg in node.args)]
        return first[0] if first else None

    # --- wrong -----------------------------------------------------------------------------------------------------

    def refuted(self, found: Sequence[tuple[Values, Any]], entries: Sequence[int]) -> Outcome | None:
        """DISAGREES where R and E are disjoint, whichever way decimals are read; else a note that they differ."""
        subject = self.subject
        wrong = [(values, answer) for values, answer in found if "!" in answer["relations"]]
        if not wrong:
            return None
        values, answer = wrong[0]
        if self.number and self.printed(self.names[False]):
            return self.to_the_digits(answer)
        if not self.stands(values, entries):
            self.evidence["reading"] = "equal only if decimals are read as they are written, not as float64"
            return Outcome(
                "CERTIFIED",
                "equal to the digits of its decimals, which float64 cannot hold exactly",
                {"exact": shortened_list([one["exact"] for one in sorted_details(answer)])},
            )
        name = self.own_leaf()
        if name and self.judge.samples:
            short = points.shortest(values[name[0]], subject.domain, lambda x: self.differs({**values, name[0]: x}))
            if short is not values[name[0]]:
                again = self.exact.compare(subject.judged, [{**values, name[0]: short}], name=self.names[False])
                values, answer = {**values, name[0]: short}, again["points"][0]
        first = next(one for one in answer["details"] if one["relation"] == "!")
        where = position(first["entry"], subject.judged.type.shape)
        evidence: Evidence = {
            "counterexample": {
                "at": point_text(values, self.exact.used),
                "entry": where,
                "exact": first["exact"],
                "claimed": first["claimed"],
            }
        }
        read = self.readings(found, entries)
        if read:
            evidence["diagnosis"] = [
                {"name": r.name, "text": r.text, **({"factor": r.factor} if r.factor else {})} for r in read
            ]
        self.tried["symbolic"] = "exact derivative and claim are disjoint"
        message = f"the exact derivative{where} is {_cut(first['exact'])}, not {_cut(first['claimed'])}"
        if read:
            message += f"; {read[0].text}"
        return Outcome("DISAGREES", message, evidence)

    def stands(self, values: Values, entries: Sequence[int]) -> bool:
        """Whether a refutation survives constants being rounded, and decimals being read as they are written."""
        for decimal in (False, True):
            if decimal not in self.names and not self.derive(entries, decimal):
                continue
            answer = self.exact.compare(
                self.subject.judged,
                [values],
                name=self.names[decimal],
                decimal=decimal,
                wide=True,
                rtol=self.subject.rtol,
            )
            if "problem" not in answer and answer["points"][0]["region"] and rescued(answer["points"][0]):
                return False
        return True

    def printed(self, name: str | None) -> bool:
        """Whether a bare number is right to the digits that were typed."""
        subject = self.subject
        answer = self.exact.compare(
            subject.judged, [self.values], name=name, left=subject.left, wide=True, printed=True, rtol=subject.rtol
        )
        return "problem" not in answer and rescued(answer["points"][0], PRINTED)

    def to_the_digits(self, answer: Mapping[str, Any]) -> Outcome:
        evidence = {"basis": "digits", "exact": shortened_list([one["exact"] for one in sorted_details(answer)])}
        return Outcome("AGREES", "the number is right to the digits given, at this point", evidence)

    def differs(self, values: Values) -> bool:
        """Whether the judged thing is surely wrong at a point, rounded constants allowed for."""
        answer = self.exact.compare(
            self.subject.judged, [values], name=self.names[False], wide=True, rtol=self.subject.rtol
        )
        return "problem" not in answer and usable(answer["points"][0]) and "!" in answer["points"][0]["relations"]

    def readings(self, found: Sequence[tuple[Values, Any]], entries: Sequence[int]) -> list[diagnosis.Reading]:
        """What may be wrong, as far as ratios and exchanges show it."""
        subject = self.subject
        shape = subject.judged.type.shape
        exact, claimed, at = [], [], []
        whole = len(entries) == subject.judged.type.size
        for values, answer in found:
            if None in answer["exact"] or None in answer["claimed"]:
                continue
            form = shape if whole else (len(entries),)
            exact.append(np.array(answer["exact"]).reshape(form))
            claimed.append(np.array(answer["claimed"]).reshape(form))
            at.append(values)
        others = {}
        if whole and subject.others:
            nodes = list(subject.others.values())
            columns = [evaluated(nodes, values) for values in at]
            others = {name: [column[k] for column in columns] for k, name in enumerate(subject.others)}
        assert subject.output is not None
        sizes = [n for node in reachable([subject.output]) for n in (*node.type.shape, node.type.size)]
        return diagnosis.readings(exact, claimed, sizes, others)

    # --- floats only ------------------------------------------------------------------------------------------------

    def by_differences(self) -> Outcome:
        """AGREES or INCONCLUSIVE from differences of values; DISAGREES only where balls part claim and engine."""
        subject = self.subject
        assert subject.output is not None and subject.target is not None
        if subject.target not in reachable([subject.output]):
            return self.independent()
        candidates = self.candidates()[: self.judge.samples]
        if len(self.points) > 1:
            candidates = self.points[1:]
        places: list[dict[str, Floats]] = [dict(self.values), *candidates]
        seen = [self.differenced(values, subject.judged) for values in places]
        self.evidence |= {"basis": "numerical", "seed": self.judge.seed, "steps": 12}
        spoken = [one for one in seen if one.state != "silent"]
        bad = [one for one in seen if one.state in ("differs", "near")]
        if bad:
            return self.parted(places, seen)
        if not spoken:
            self.tried["differences"] = seen[0].reason or "silent"
            return Outcome("INCONCLUSIVE", f"differences cannot tell: {seen[0].reason}", {})
        bound = max(one.bound for one in spoken)
        self.tried["differences"] = f"agree at {counted(len(spoken), 'point')}"
        self.modes()
        message = f"differences agree at {counted(len(spoken), 'point')} to {bound:.1g}"
        if seen[0].state == "silent" and not self.smooth_tie:
            message += f"; at the point itself they cannot tell ({seen[0].reason})"
        evidence: Evidence = {"points": len(spoken), "bound": bound, "covered": spoken[0].covered}
        if seen[0].state == "silent" and self.smooth_tie:
            message = f"differences from both sides agree at the point, and at {counted(len(spoken), 'point')} nearby"
        if not self.forward_agrees:
            return Outcome("INCONCLUSIVE", "forward and reverse mode differ, though differences agree", evidence)
        return Outcome("AGREES", message, evidence)

    def differenced(self, values: Values, judged: Node) -> numerical.Numerical:
        subject = self.subject
        assert subject.output is not None and subject.target is not None
        f, x = moving(subject.output, [subject.target], values)
        found = evaluated([judged], values)[0]
        return numerical.judge(f, x, found, subject.domain, self.judge.seed, subject.rtol)

    def parted(self, places: Sequence[Values], seen: Sequence[numerical.Numerical]) -> Outcome:
        """Differences contradict the claim. That alone decides nothing; a claim that balls part from an engine that
        differences confirm is wrong."""
        subject = self.subject
        worst = max(range(len(seen)), key=lambda i: ("silent", "agrees", "near", "differs").index(seen[i].state))
        reason = seen[worst].reason
        self.tried["differences"] = f"contradict: {reason}"
        if subject.engine is not None and all(one.state in ("differs", "silent") for one in seen):
            engine = [self.differenced(values, subject.engine) for values in places]
            answer = self.exact.compare(subject.judged, places, left=subject.engine, wide=True, rtol=subject.rtol)
            both = [
                values
                for values, one, p in zip(places, engine, answer.get("points", []), strict=False)
                if one.state == "agrees" and usable(p) and "!" in p["relations"]
            ]
            if len(both) > 1 or (len(both) == 1 and len(places) == 1):
                return self.numerically_wrong(both[0], answer["points"][places.index(both[0])])
        if seen[0].state in ("agrees", "silent"):
            return Outcome("INCONCLUSIVE", f"differences contradict it at a point nearby: {reason}", {})
        return Outcome("INCONCLUSIVE", f"differences contradict it, and no exact oracle could decide: {reason}", {})

    def numerically_wrong(self, values: Values, answer: Mapping[str, Any]) -> Outcome:
        shape = self.subject.judged.type.shape
        first = next(one for one in answer["details"] if one["relation"] == "!")
        where = position(first["entry"], shape)
        exact = np.array([np.nan if x is None else x for x in answer["exact"]]).reshape(shape)
        claimed = np.array([np.nan if x is None else x for x in answer["claimed"]]).reshape(shape)
        read = diagnosis.readings([exact], [claimed])
        evidence: Evidence = {
            "counterexample": {
                "at": point_text(values, self.exact.used),
                "entry": where,
                "exact": first["exact"],
                "claimed": first["claimed"],
            },
            "diagnosis": [{"name": r.name, "text": r.text} for r in read],
        }
        message = (
            f"the claim{where} is {_cut(first['claimed'])}; balls part it from the engine's {_cut(first['exact'])}, "
            "and differences confirm the engine"
        )
        return Outcome("DISAGREES", message + (f"; {read[0].text}" if read else ""), evidence)

    forward_agrees = True

    def modes(self) -> None:
        """Forward mode beside reverse mode, in floats, for the engine's own gradient."""
        forward = self.subject.forward
        if forward is None or self.subject.kind != "gradient":
            return
        tangent, judged = evaluated([forward, self.subject.judged], self.values)
        assert self.subject.target is not None
        direction = self.subject.direction(self.judge.seed)
        terms = (judged * direction).reshape(-1)
        gap = abs(float(tangent) - float(terms.sum()))
        self.forward_agrees = bool(gap <= 1e-9 * max(float(np.abs(terms).sum()), 1e-300) or not np.isfinite(gap))
        self.tried["modes"] = "forward and reverse mode agree" if self.forward_agrees else "forward and reverse differ"

    def independent(self) -> Outcome:
        """The output does not depend on the target: the gradient is zero."""
        answer = self.exact.values([self.subject.judged], self.values)
        entries = answer.get("entries", [[]])[0]
        if entries and all(entry.get("sign") == 0 for entry in entries):
            return Outcome("PROVED", "the output does not depend on it: the gradient is zero", {})
        wrong = next((i for i, e in enumerate(entries) if e.get("sign") in (-1, 1)), None)
        if wrong is None:
            return Outcome("INCONCLUSIVE", answer.get("reason", "the claim could not be evaluated"), {})
        where = position(wrong, self.subject.judged.type.shape)
        at = {"at": point_text(self.values, self.exact.used), "entry": where, "exact": "0"}
        evidence = {"counterexample": {**at, "claimed": entries[wrong]["digits"]}}
        return Outcome("DISAGREES", f"the output does not depend on it: the gradient{where} is 0", evidence)

    # --- equalities ----------------------------------------------------------------------------------------------------

    def equality(self) -> Outcome:
        """The verdict on a claim that two values are equal."""
        subject = self.subject
        assert subject.left is not None
        stop = self.value([subject.left, subject.judged])
        if stop is not None:
            return stop
        places = [dict(self.values), *self.moved_one_by_one()]
        answer = self.exact.compare(subject.judged, places, left=subject.left, rtol=subject.rtol)
        if "problem" in answer:
            self.tried["balls"] = answer["reason"]
            return self.in_floats()
        found = [(v, p) for v, p in zip(places, answer["points"], strict=True) if usable(p)]
        wrong = next(((v, p) for v, p in found if "!" in p["relations"]), None)
        if wrong is not None:
            return self.unequal(*wrong)
        proof: Mapping[str, Any] = {}
        if not any("~" in p["relations"] for _, p in found):
            proof = self.exact.prove_equal(subject.left, subject.judged, subject.moving, self.values)
        if not proof.get("proved") and set(answer["points"][0]["relations"]) <= RIGHT:
            if proof.get("reason"):
                self.evidence["not_proved"] = proof["reason"]
            count = sum(1 for _, p in found if set(p["relations"]) <= RIGHT)
            self.tried["balls"] = f"both sides agree at {counted(count, 'point')}"
            close = any("~" in p["relations"] for _, p in found)
            told = f" within the tolerance {subject.rtol:g}" if close else ""
            return Outcome(
                "CERTIFIED", f"both sides are enclosed and agree at {counted(count, 'point')}{told}", {"points": count}
            )
        if not proof.get("proved"):
            reason = proof.get("reason") or "the enclosures overlap, but are too wide"
            self.tried["symbolic"] = reason
            return Outcome("INCONCLUSIVE", f"neither proved nor refuted: {reason}", {})
        self.tried["symbolic"] = f"proved ({proof['how']})"
        if proof["region"]:
            self.evidence["region"] = shortened_list(proof["region"])
        return Outcome("PROVED", "equal by algebra" + self.conditions(proof), {})

    def moved_one_by_one(self) -> list[dict[str, Floats]]:
        """Points where one leaf has moved at a time."""
        found: list[dict[str, Floats]] = []
        if self.number or self.subject.rtol is not None:
            return found
        both = [node for node in (self.subject.left, self.subject.judged) if node is not None]
        used = self.exact.leaves_of(both)
        names = [name for name in self.subject.moving if name in used]
        for turn in range(self.judge.samples):
            for name in names[turn % max(1, len(names)) :][:1]:
                near = points.nearby(self.values[name], None, 1, self.judge.seed + turn)
                found += [{**self.values, name: moved} for moved, _ in zip(near, range(1), strict=False)]
        return found

    def unequal(self, values: Values, answer: Mapping[str, Any]) -> Outcome:
        subject = self.subject
        assert subject.left is not None
        if self.number and self.printed(None):
            return self.to_the_digits(answer)
        for decimal in (False, True):
            again = self.exact.compare(
                subject.judged, [values], left=subject.left, decimal=decimal, wide=True, rtol=subject.rtol
            )
            if "problem" not in again and rescued(again["points"][0]):
                return Outcome(
                    "CERTIFIED", "equal to the digits of its decimals, which float64 cannot hold exactly", {}
                )
        first = next(one for one in answer["details"] if one["relation"] == "!")
        where = position(first["entry"], subject.judged.type.shape)
        given = all(values[name] is self.values[name] for name in values)
        evidence = {
            "counterexample": {
                "at": point_text(values, self.exact.used),
                "entry": where,
                "exact": first["exact"],
                "claimed": first["claimed"],
            }
        }
        message = f"the left side{where} is {_cut(first['exact'])}, the right side {_cut(first['claimed'])}"
        if not given:
            message += " at a point beside the given one, where it holds"
        return Outcome("DISAGREES", message, evidence)

    def in_floats(self) -> Outcome:
        """Both sides in floats, where no exact oracle can read them."""
        assert self.subject.left is not None
        left, right = evaluated([self.subject.left, self.subject.judged], self.values)
        scale = np.maximum(np.abs(left), np.abs(right))
        slack = (self.subject.rtol or 1e-9) * np.maximum(scale, 1e-300)
        evidence: Evidence = {"basis": "numerical", "points": 1, "bound": self.subject.rtol or 1e-9}
        if bool((np.abs(left - right) <= slack).all()):
            return Outcome("AGREES", f"equal in floats to {self.subject.rtol or 1e-9:g}", evidence)
        return Outcome("INCONCLUSIVE", "the floats differ, and no exact oracle could decide", evidence)


def leaves_of(node: Node) -> list[Node]:
    return [inner for inner in reachable([node]) if inner.primitive is LEAF]


def usable(answer: Mapping[str, Any]) -> bool:
    """Whether a point lies in the region and both sides have values there."""
    return bool(answer["region"]) and not set(answer["relations"]) & {"E", "R"}


def rescued(answer: Mapping[str, Any], slack: float = 1e-9) -> bool:
    """Whether both sides are equal after all, as far as rounded constants allow."""
    for relation, exact, claimed in zip(answer["relations"], answer["exact"], answer["claimed"], strict=True):
        if relation in RIGHT:
            continue
        if relation != "?" or exact is None or claimed is None:
            return False
        if not abs(exact - claimed) <= slack * max(abs(exact), abs(claimed)):
            return False
    return True


def sorted_details(answer: Mapping[str, Any]) -> list[Any]:
    return sorted(answer["details"], key=lambda one: one["entry"])


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cut(text: str, digits: int = 17) -> str:
    return text if len(text) <= digits + 6 else f"{text[: digits + 3]}..." if "e" not in text else text


def _slopes(seen: kinks.Behaviour) -> str:
    left, right = seen.left[0], seen.right[0]
    for one, other in zip(seen.left, seen.right, strict=True):
        if one != other:
            left, right = one, other
            break
    told = ["undefined" if side is None else f"{side + 0.0:.6g}" for side in (left, right)]
    return f"{told[0]} from below, {told[1]} from above"


def _short(found: Sequence[float]) -> str:
    return (
        f"{found[0]:.6g}"
        if len(found) == 1
        else f"[{', '.join(f'{x:.6g}' for x in found[:4])}{', ...' if len(found) > 4 else ''}]"
    )


def _number(x: float) -> float | str:
    """A float for JSON: what is not finite becomes a word."""
    return float(x) if np.isfinite(x) else "nan" if np.isnan(x) else "inf" if x > 0 else "-inf"

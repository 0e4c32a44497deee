"""One subject being judged: the oracle, the point, and what has been found out so far; decides nothing by itself.

At a complex point every entry x + i*y counts as two real ones: L is the real part of the output, and dL/dx and dL/dy
are judged. The nodes of a gradient, a claim and a rule hold dL/dx - i*dL/dy, which is f'(z) where f is holomorphic.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide import sample_points
from gradcli.checks.decide.floats import evaluated, evaluator
from gradcli.checks.evaluate.interpretation import rounded_constants
from gradcli.checks.formatting import node_text, point_text, position, shortened_list
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import LEAF, reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.oracle.oracle_client import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.graph.domain import Interval
    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]
    Evidence = dict[str, Any]
    Answer = Mapping[str, Any]

PRINTED_RELATIVE = 0.01  # half a unit of the third digit: how far a rounded number may be off
RIGHT = frozenset("=~")  # relations of an exact to a claimed entry: equal, or within the tolerance
OPEN = "?"  # the relation that is not decided
FAR = 1e-6  # a float value so far from the enclosed one is that of another function
CONVENTION = "dL/dx + i*dL/dy of the real part L; a claim states dL/dx - i*dL/dy, the derivative f'(z)"
NAMELESS = re.compile(r"~(carry|row|fixed|index)\d")  # what the turns of a loop read, which has no name in the script


class Outcome(NamedTuple):
    """A verdict, why, and the evidence; `inside`: at a kink, whether the returned value is a possible slope."""

    verdict: str
    message: str
    evidence: Evidence
    diagnostics: tuple[Diagnostic, ...] = ()
    inside: bool = False


class Case:
    """One subject, the point, the oracle, and what has been found out so far.

    `given` is the comparison of the exact side with what is judged at the point, as the oracle answers it, `nearby` are
    those at other points, and `evidence` is shown with the verdict, whatever it is.
    """

    def __init__(
        self, exact: Exact, subject: Subject, seed: int, samples: int, dtype: str, backend: str = "numpy"
    ) -> None:
        self.exact = exact
        self.subject = subject
        self.seed = seed
        self.samples = samples
        self.dtype = dtype
        self.plane = dtype == "complex128"
        self.backend = backend
        self.values = subject.values
        self.tried: dict[str, str] = {}  # oracle -> what came of it
        self.evidence: Evidence = {"oracles": self.tried}
        if self.plane:
            self.evidence["convention"] = CONVENTION
        if subject.note:
            self.evidence["subject"] = subject.note
        self.given: Any = None
        self.nearby: list[tuple[Values, Answer]] = []
        self.smooth_tie = False  # a tie across which the value is smooth, with the judged slope
        self.holomorphic: bool | None = None  # at a complex point
        self._floats: dict[tuple[Node, ...], Callable[[Values], list[Floats]]] = {}
        both = [node for node in (subject.judged, subject.left) if node is not None]
        self.number = any(not leaf_names([node]) for node in both)
        self.at_one_point = self.number or subject.rtol is not None  # a bare number or a tolerance speaks of no other

    @property
    def output(self) -> Node:
        assert self.subject.output is not None
        return self.subject.output

    @property
    def target(self) -> Node:
        assert self.subject.target is not None
        return self.subject.target

    @property
    def sides(self) -> list[Node]:
        """The nodes that are compared or differentiated: of an equality the left and the right side."""
        subject = self.subject
        return [node for node in (subject.output, subject.left, subject.judged) if node is not None]

    @property
    def compared(self) -> list[tuple[Values, Answer]]:
        """The points of all comparisons with their answers, the given point first."""
        return [(self.values, self.given), *self.nearby]

    @property
    def own_leaf(self) -> str | None:
        """The name of the checked leaf; None where the target is an intermediate value."""
        target = self.subject.target
        return None if target is None or target.primitive is not LEAF else str(target.params["name"])

    @property
    def domains(self) -> dict[str, Interval | None]:
        """The domain of the checked leaf, which alone has one."""
        return {} if self.own_leaf is None else {self.own_leaf: self.subject.domain}

    def moving_beside(self) -> list[str]:
        """The other leaves that may move and that the output depends on; none beside a target that is not a leaf."""
        if self.own_leaf is None:
            return []
        names = leaf_names([self.output]) & set(self.subject.moving)
        order = (node.params["name"] for node in reachable([self.output]) if node.primitive is LEAF)
        return [name for name in order if name in names and name != self.own_leaf]

    # --- the value itself ---------------------------------------------------------------------------------

    def infinite_leaf(self) -> Outcome | None:
        """UNDEFINED where a leaf holds what is not a finite number."""
        names = leaf_names(self.sides)
        for name in self.values:
            if name in names and not np.isfinite(self.values[name]).all():
                return Outcome("UNDEFINED", f"{name} holds a value that is not a finite number", {"leaf": name})
        return None

    def value(self, nodes: Sequence[Node]) -> Outcome | None:
        """UNDEFINED where a value is not real at the point; None where it is, or where that is not decided."""
        answer = self.exact.values(nodes, self.values)
        if "problem" in answer:
            return self.value_in_floats(nodes, answer["reason"])
        return self.value_of([entry for row in answer["entries"] for entry in row], nodes)

    def value_in_floats(self, nodes: Sequence[Node], reason: str) -> Outcome | None:
        """UNDEFINED where a float is not finite, for nodes that balls cannot read."""
        self.tried["balls"] = reason
        if all(np.isfinite(x).all() for x in self.doubles(nodes)):
            return None
        return Outcome("UNDEFINED", "the value is not a finite number here", {"basis": "numerical"})

    def value_of(self, entries: Sequence[Answer], nodes: Sequence[Node]) -> Outcome | None:
        """UNDEFINED or INCONCLUSIVE where an enclosed entry has no value; the digits of the others become evidence."""
        failed = [entry for entry in entries if "failure" in entry]
        for entry in failed:
            if entry["failure"] == "undefined":
                return self.undefined(entry)
        if failed:
            self.tried["balls"] = failed[0]["reason"]
            if not all(np.isfinite(x).all() for x in self.doubles(nodes)):
                return Outcome("INCONCLUSIVE", f"the value is out of range: {failed[0]['reason']}", {})
        else:
            self.evidence["value"] = shortened_list([entry["digits"] for entry in entries if "digits" in entry])
        return None

    def undefined(self, entry: Answer) -> Outcome:
        """UNDEFINED, with the node that fails."""
        node = self.exact.node(entry.get("row"))
        for at in entry.get("inside", ()):  # in a turn of a loop
            node = node and node.params["body"].steps[at]
        reason = entry["reason"]
        message = f"{'no' if self.plane else 'not a real'} number here: {reason}"
        if node is None:
            return Outcome("UNDEFINED", message, {"reason": reason})
        text = node_text(node)
        if NAMELESS.search(text):
            text = node.primitive.name
        told = Diagnostic("GC401", reason, node.span, severity="warning")
        return Outcome("UNDEFINED", message, {"reason": reason, "node": text.replace("~", "")}, (told,))

    def of_another_function(self, entry: Answer) -> Outcome | None:
        """INCONCLUSIVE where floats compute another function of complex numbers than the enclosures do."""
        made, true = float(self.doubles([self.output])[0].real), entry.get("value")
        if true is None or not np.isfinite(made) or abs(made - true) <= FAR * (1 + abs(true)):
            return None
        message = f"the real part is {made!r} in floats and {true!r} in ball arithmetic: "
        message += "an operation has no single meaning for complex numbers, or rounding decides a branch"
        return Outcome("INCONCLUSIVE", message, {})

    # --- the derivative, and other points ---------------------------------------------------------------------

    @cached_property
    def name(self) -> dict[str, Any] | None:
        """The derivative with respect to all entries; None for an equality, and where the oracle does not hold the
        graph.
        """
        return None if self.subject.output is None or self.exact.refused is not None else self.derivative()

    def derivative(self, entries: Sequence[int] | None = None) -> dict[str, Any]:
        """The name of the derivative with respect to these entries of the target, or by all, for the oracle."""
        one = self.subject
        return self.exact.derive(
            self.output, self.target, one.moving, self.values, entries, self.seed, one.inner, self.plane
        )

    def compare(self, places: Sequence[Values], **question: Any) -> Answer:
        """What is judged against the derivative, or the left side, at some points, to the tolerance of the subject."""
        subject = self.subject
        about = {"left": subject.left, "plane": self.plane, "rtol": subject.rtol, "rounding": subject.rounding}
        return self.exact.compare(subject.judged, places, **{"name": self.name, **about, **question})

    def floats(self, nodes: Sequence[Node], values: Values) -> list[Floats]:
        """The values of some nodes in the arithmetic that is judged."""
        key = tuple(nodes)
        if key not in self._floats:
            self._floats[key] = evaluator(nodes, self.dtype, self.backend)
        return self._floats[key](values)

    def doubles(self, nodes: Sequence[Node]) -> list[Floats]:
        """The values of some nodes in double precision, whatever is judged."""
        return evaluated(nodes, self.values, "complex128" if self.plane else "float64")

    def judged_floats(self, values: Values) -> Floats:
        """The entries of what is judged in floats: of complex ones dL/dx and dL/dy in turn."""
        return parts_of(self.floats([self.subject.judged], values)[0])

    def rounded_constants(self) -> list[str]:
        """The literals of many digits on either side."""
        return rounded_constants(self.sides)

    def where(self, entry: int) -> str:
        """The place of an entry for a sentence: "[1, 2]", or " by imag(z[1])" for a part of a complex one."""
        name = self.entry(entry)
        return name if not self.plane else f" ({name})" if self.subject.target is None else f" by {name}"

    def entry(self, entry: int) -> str:
        """The place of an entry for evidence: "[1, 2]", "real(z[1])", or "imaginary part[1]" of an equality."""
        if not self.plane:
            return position(entry, self.subject.judged.type.shape)
        if self.subject.target is None:
            return f"{('real', 'imaginary')[entry % 2]} part{position(entry // 2, self.subject.judged.type.shape)}"
        return self.part(entry)

    def part(self, entry: int) -> str:
        """The name of a part of a complex entry: "real(z[1])"."""
        name = f"{self.own_leaf or self.subject.text}{position(entry // 2, self.target.type.shape)}"
        return f"{('real', 'imag')[entry % 2]}({name})"

    def beside(self, most: int | None = None) -> list[dict[str, Floats]]:
        """Points near the given one where only the checked leaf has moved.

        At most so many, or three times as many as are wanted.
        """
        name = self.own_leaf
        if name is None or self.at_one_point or not self.samples:
            return []
        near = sample_points.nearby(self.values[name], self.subject.domain, self.samples, self.seed)
        return [{**self.values, name: moved} for moved in islice(near, most or 3 * self.samples)]

    def counterexample(self, values: Values, answer: Answer) -> tuple[str, Evidence, Answer]:
        """Where it was, the counterexample as evidence, and the entry of an answer that refutes."""
        first: Answer = next(one for one in answer["details"] if one["relation"] == "!")
        if self.plane and self.subject.target is None and first["entry"] % 2:
            first = {**first, **{side: negated(first[side]) for side in ("exact", "claimed")}}
        where = self.where(first["entry"])
        found = {
            "at": point_text(values, self.exact.used),
            "entry": self.entry(first["entry"]),
            "exact": first["exact"],
            "claimed": first["claimed"],
        }
        return where, {"counterexample": found}, first


def parts_of(made: NDArray[Any]) -> Floats:
    """The entries of a gradient as a flat array: of complex ones dL/dx and dL/dy in turn."""
    flat = made.reshape(-1)
    return np.stack([flat.real, -flat.imag], axis=1).reshape(-1) if flat.dtype.kind == "c" else flat


def negated(digits: str) -> str:
    """The digits of the negated number."""
    return digits[1:] if digits.startswith("-") else digits if digits in ("0", "") else f"-{digits}"


def usable(answer: Answer) -> bool:
    """Whether a point lies in the region and both sides have values there."""
    return bool(answer["region"]) and not set(answer["relations"]) & set("ERT")


def speaks(answer: Answer) -> bool:
    """Whether a point near the given one is evidence: both sides agree there, or differ for certain."""
    return usable(answer) and ("!" in answer["relations"] or OPEN not in answer["relations"])


def rescued(answer: Answer, slack: float = 1e-9) -> bool:
    """Whether both sides are equal to within what rounded constants explain."""
    for relation, exact, claimed in zip(answer["relations"], answer["exact"], answer["claimed"], strict=True):
        if relation in RIGHT:
            continue
        if relation != "?" or exact is None or claimed is None:
            return False
        if not abs(exact - claimed) <= slack * max(abs(exact), abs(claimed)):
            return False
    return True


def exact_digits(answer: Answer) -> list[Any]:
    """The digits of the exact entries, in their order."""
    shown = sorted(answer["details"], key=lambda one: one["entry"])
    return [*(one["exact"] for one in shown), *more_entries(answer)]


def three_numbers(case: Case) -> Evidence:
    """E, R and F at the given point, for the first entries: digits of the balls, and the floats."""
    answer = case.given
    shown = sorted(answer["details"], key=lambda one: one["entry"])
    made = case.judged_floats(case.values)
    more = more_entries(answer)
    return {
        **({"parts": [case.part(one["entry"]) for one in shown]} if case.plane else {}),
        "exact": [*(one["exact"] for one in shown), *more],
        "judged": [*(one["claimed"] for one in shown), *more],
        "float": [*(repr(float(made[one["entry"]])) for one in shown), *more],
    }


def more_entries(answer: Answer) -> list[str]:
    """A note on how many entries are left out; empty where none is."""
    left = len(answer["entries"]) - len(answer["details"])
    return [f"... {left:,} more"] if left else []

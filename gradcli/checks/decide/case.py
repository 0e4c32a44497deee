"""One subject being judged: the oracle, the point, and what has been found out so far; decides nothing by itself.

At a complex point every entry x + i*y counts as two real ones: L is the real part of the output, and dL/dx and dL/dy
are judged. The nodes of a gradient, a claim and a rule hold dL/dx - i*dL/dy, which is f'(z) where f is holomorphic.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice, repeat, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide import sample_points
from gradcli.checks.decide.floats import evaluated, evaluator
from gradcli.checks.formatting import node_text, point_text, position, shortened_list
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import reachable

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

    def __init__(self, exact: Exact, subject: Subject) -> None:
        self.exact = exact
        self.subject = subject
        self.seed = subject.settings.seed or 0
        self.samples = subject.settings.samples
        self.dtype = subject.settings.dtype
        self.plane = self.dtype == "complex128"
        self.backend = subject.settings.backend
        self.values = subject.values
        self.output: Any = subject.output  # None, as the target, of an equality
        self.target: Any = subject.target
        self.own_leaf: str | None = getattr(subject.target, "name", None)  # None where the target is no leaf
        self.target_name: str = self.own_leaf or subject.text  # as reports have it
        self.role = "the gradient" if subject.kind == "gradient" else "the claim"
        self.oracle = "balls" if self.output is None else "series"  # which encloses the exact side
        self.tried: dict[str, str] = {}  # oracle -> what came of it
        self.evidence: Evidence = {"oracles": self.tried}
        if self.plane:
            self.evidence["convention"] = CONVENTION
        if subject.note:
            self.evidence["subject"] = subject.note
        self.surfaces = [] if self.plane else subject.surfaces  # on which a real output is not smooth
        self.independent = self.output is not None and self.target not in reachable([self.output])
        self.given: Any = None
        self.nearby: list[tuple[Values, Answer]] = []
        self.at_tie = False  # a comparison, or the place of a largest entry, is a tie at the point
        self.smooth_tie = False  # a tie across which the value is smooth, with the judged slope
        self.holomorphic: bool | None = None  # at a complex point
        self._floats: dict[tuple[Node, ...], Callable[[Values], list[Floats]]] = {}
        both = [node for node in (subject.judged, subject.left) if node is not None]
        self.number = any(not leaf_names([node]) for node in both)

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
    def domains(self) -> dict[str, Interval | None]:
        """The domain of the checked leaf, which alone has one."""
        return {} if self.own_leaf is None else {self.own_leaf: self.subject.domain}

    # --- the value itself ---------------------------------------------------------------------------------

    def infinite_leaf(self) -> Outcome | None:
        """UNDEFINED where a leaf holds what is not a finite number."""
        names = leaf_names(self.sides)
        for name in self.values:
            if name in names and not np.isfinite(self.values[name]).all():
                return Outcome("UNDEFINED", f"{name} holds a value that is not a finite number", {"leaf": name})
        return None

    def enclosed(self, nodes: Sequence[Node], values: Values | None = None) -> Answer:
        """Enclosures of nodes, at the point unless another one is given; a problem at a complex one."""
        if self.plane:
            return {"problem": "unsupported", "reason": "a complex point"}
        return self.exact.values(nodes, self.values if values is None else values)

    def value(self, nodes: Sequence[Node], answer: Answer | None = None) -> Outcome | None:
        """UNDEFINED or INCONCLUSIVE where nodes have no value at the point, by floats if no oracle can read them.

        None where they have one, whose digits become evidence. `answer` holds enclosures that are known already.
        """
        answer = self.enclosed(nodes) if answer is None else answer
        entries = [entry for row in answer.get("entries", ()) for entry in row]
        failed = [entry for entry in entries if "failure" in entry]
        for entry in failed:
            if entry["failure"] == "undefined":
                return self.undefined(entry)
        if not failed and "problem" not in answer:
            self.evidence["value"] = shortened_list([entry["digits"] for entry in entries if "digits" in entry])
            return None
        reason = self.tried["balls"] = failed[0]["reason"] if failed else answer["reason"]
        if all(np.isfinite(x).all() for x in self.doubles(nodes)):
            return None
        if failed:
            return Outcome("INCONCLUSIVE", f"the value is out of range: {reason}", {})
        return Outcome("UNDEFINED", "the value is not a finite number here", {"basis": "numerical"})

    def undefined(self, entry: Answer) -> Outcome:
        """UNDEFINED, with the node that fails."""
        node = entry.get("node")
        for at in entry.get("inside", ()):  # in a turn of a loop
            node = node and node.params["body"].steps[at]
        reason = entry["reason"]
        message = f"{'no' if self.plane else 'not a real'} number here: {reason}"
        if node is None:
            return Outcome("UNDEFINED", message, {"reason": reason})
        text = node_text(node)
        if NAMELESS.search(text):
            text = node.primitive.name
        note = Diagnostic("GC401", reason, node.span, severity="warning")
        return Outcome("UNDEFINED", message, {"reason": reason, "node": text.replace("~", "")}, (note,))

    def of_another_function(self, entry: Answer) -> Outcome | None:
        """INCONCLUSIVE where floats compute another function of complex numbers than the enclosures do."""
        true = entry.get("value")
        if not self.plane or true is None:
            return None
        real = float(self.doubles([self.output])[0].real)
        if not np.isfinite(real) or abs(real - true) <= FAR * (1 + abs(true)):
            return None
        message = f"the real part is {real!r} in floats and {true!r} in ball arithmetic: "
        message += "an operation has no single meaning for complex numbers, or rounding decides a branch"
        return Outcome("INCONCLUSIVE", message, {})

    # --- the derivative, and other points ---------------------------------------------------------------------

    @cached_property
    def name(self) -> dict[str, Any] | None:
        """The derivative by all entries, for the oracle; None for an equality."""
        return None if self.output is None else self.derivative()

    def derivative(self, entries: Sequence[int] | None = None) -> dict[str, Any]:
        """The name of the derivative by these entries of the target, or by all, for the oracle."""
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

    def doubles(self, nodes: Sequence[Node], values: Values | None = None) -> list[Floats]:
        """The values of some nodes in double precision, at the point unless another one is given."""
        return evaluated(nodes, self.values if values is None else values, "complex128" if self.plane else "float64")

    def judged_floats(self, values: Values) -> Floats:
        """The entries of what is judged in floats: of complex ones dL/dx and dL/dy in turn."""
        return parts_of(self.floats([self.subject.judged], values)[0])

    def where(self, entry: int) -> str:
        """The place of an entry for a sentence: "[1, 2]", or " by imag(z[1])" for a part of a complex one."""
        name = self.entry(entry)
        return name if not self.plane else f" ({name})" if self.target is None else f" by {name}"

    def entry(self, entry: int) -> str:
        """The place of an entry for evidence: "[1, 2]", "real(z[1])", or "imaginary part[1]" of an equality."""
        if not self.plane:
            return position(entry, self.subject.judged.type.shape)
        place = position(entry // 2, (self.target or self.subject.judged).type.shape)
        if self.target is None:
            return f"{('real', 'imaginary')[entry % 2]} part{place}"
        return f"{('real', 'imag')[entry % 2]}({self.target_name}{place})"

    def beside(self, names: Sequence[str | None], most: int) -> list[dict[str, Floats]]:
        """Points near the given one where one of some leaves has moved, each in its turn; at most so many."""
        if self.number or self.subject.rtol is not None:
            return []  # a bare number or a tolerance speaks of no other point
        near = [
            zip(repeat(name), sample_points.nearby(self.values[name], self.domains.get(name), self.samples, self.seed))
            for name in names
            if name is not None
        ]
        turns = (pair for pairs in zip_longest(*near) for pair in pairs if pair is not None)
        return [{**self.values, name: moved} for name, moved in islice(turns, most)]

    def counterexample(self, values: Values, answer: Answer) -> tuple[str, Evidence, Answer]:
        """Where it was, the counterexample as evidence, and the entry of an answer that refutes."""
        first: Answer = next(one for one in answer["details"] if one["relation"] == "!")
        if self.plane and self.target is None and first["entry"] % 2:
            first = {**first, **{side: negated(first[side]) for side in ("exact", "claimed")}}
        where = self.where(first["entry"])
        found = {
            "at": point_text(values, self.exact.used),
            "entry": self.entry(first["entry"]),
            "exact": first["exact"],
            "claimed": first["claimed"],
        }
        return where, {"counterexample": found}, first


def parts_of(gradient: NDArray[Any]) -> Floats:
    """The entries of a gradient as a flat array: of complex ones dL/dx and dL/dy in turn."""
    flat = gradient.reshape(-1)
    return np.stack([flat.real, -flat.imag], axis=1).reshape(-1) if flat.dtype.kind == "c" else flat


def negated(digits: str) -> str:
    """The digits of the negated number."""
    return digits[1:] if digits.startswith("-") else digits if digits in ("0", "") else f"-{digits}"


def speaks(answer: Answer) -> bool:
    """Whether a point near the given one is evidence: in the region both sides have values, and agree or differ."""
    relations = set(answer["relations"]) if answer["region"] else {OPEN}
    return not relations & set("ERT") and ("!" in relations or OPEN not in relations)


def shown_entries(answer: Answer, text: Callable[[Answer], Any]) -> list[Any]:
    """A text for each of the first entries of a comparison, and how many are left out."""
    left = len(answer["entries"]) - len(answer["details"])
    first = sorted(answer["details"], key=lambda one: one["entry"])
    return [*map(text, first), *([f"... {left:,} more"] if left else [])]


def digits_of(answer: Answer, side: str) -> list[Any]:
    """The digits of the first entries of a side, "exact" or "claimed"."""
    return shown_entries(answer, lambda one: one[side])

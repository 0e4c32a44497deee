"""One subject being judged: the oracle, the point, and what is known so far; decides nothing by itself.

At a complex point every entry x + i*y counts as two real ones: L is the real part of the output, and dL/dx and dL/dy
are judged. The nodes of a gradient, a claim and a rule hold dL/dx - i*dL/dy, which is f'(z) where f is holomorphic.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice, repeat, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks.decide import chosen_points
from gradcli.checks.decide.assumptions import by_index_notation
from gradcli.checks.decide.floats import evaluated, evaluator
from gradcli.checks.formatting import point_text
from gradcli.checks.oracle.oracle_client import leaf_names
from gradcli.graph.arrays import subscript
from gradcli.graph.node import reachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.checks.decide.assumptions import Proof
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
UNDERFLOW = "0"  # that of a claimed 0 to a number that rounds to it


class Outcome(NamedTuple):
    """A verdict, why, and the evidence; `inside`: at a kink, whether the returned value is a possible slope."""

    verdict: str
    message: str
    evidence: Evidence
    diagnostics: tuple[Diagnostic, ...] = ()
    inside: bool = False
    later: Callable[[], Evidence] | None = None  # computes evidence that is only shown


class Case:
    """One subject, the point, the oracle, and what is known so far.

    `comparison` is the oracle's comparison of the exact side with what is judged at the point, and `nearby` are those
    at other points. `tried`, `digits`, `proof` and `quality` are part of the evidence of every verdict.
    """

    def __init__(self, exact: Exact, subject: Subject) -> None:
        self.exact = exact
        self.subject = subject
        self.seed = subject.settings.seed or 0
        self.dtype = subject.settings.dtype
        self.plane = subject.settings.plane
        self.values = subject.values
        self.output: Any = subject.output  # None, as the target, of an equality
        self.target: Any = subject.target
        self.own_leaf: str | None = getattr(subject.target, "name", None)  # None where the target is no leaf
        self.target_name: str = self.own_leaf or subject.text  # as reports have it
        self.role = "the gradient" if subject.kind == "gradient" else "the claim"
        # the nodes that are compared or differentiated: of an equality the left and the right side
        self.sides = [node for node in (subject.output, subject.left, subject.judged) if node is not None]
        # whether a side is a bare number, which reads no leaf; what a function of Python returns is one at every point
        sides = [node for node in (subject.judged, subject.left) if node is not None]
        self.number = not subject.rounding and any(not leaf_names([node]) for node in sides)
        self.independent = self.output is not None and self.target not in reachable([self.output])
        self.oracle = "balls" if self.output is None else "series"  # which encloses the exact side
        self.comparison: Any = None
        self.nearby: list[tuple[Values, Answer]] = []
        self.ties: list[str] = []  # comparisons that are equal at the point, or places of a largest entry, in words
        self.smooth_tie = False  # a tie across which the value is smooth, with the judged slope
        self.tried: dict[str, str] = {}  # oracle -> its result
        self.digits: list[Any] = []  # of the value, or of both sides of an equality
        self.agree = False  # whether both sides of a derivative agree at all compared points
        self.proof: Proof | None = None  # that both sides are equal
        self.not_proved: str | None = None  # why there is no proof, where one was tried
        self.quality: Evidence = {}  # how far the floats are off

    @property
    def compared(self) -> list[tuple[Values, Answer]]:
        """The points of all comparisons with their answers, the given point first."""
        return [(self.values, self.comparison), *self.nearby]

    @property
    def domains(self) -> dict[str, Interval | None]:
        """The domain of the checked leaf, which alone has one."""
        return {} if self.own_leaf is None else {self.own_leaf: self.subject.domain}

    # --- exact values -------------------------------------------------------------------------------------------

    def enclosed(self, nodes: Sequence[Node], values: Values | None = None) -> Answer:
        """Enclosures of nodes, at the point unless another one is given; a problem at a complex one."""
        if self.plane:
            return {"problem": "unsupported", "reason": "a complex point"}
        return self.exact.values(nodes, self.values if values is None else values, self.subject.of_equality)

    @cached_property
    def identity(self) -> tuple[Proof | None, str]:
        """The proof that both sides are one formula in index notation, at these sizes; without one, the reason."""
        subject = self.subject
        if self.plane or subject.rtol is not None or not self.exact.proving:
            return None, ""
        from gradcli.formulas import NoFormula  # most gradients are of few entries
        from gradcli.formulas.staged_proof import equal_as_formulas

        try:
            assumed = equal_as_formulas(self.sides[0], subject.target, subject.judged)
        except NoFormula as problem:
            return None, str(problem)
        return None if assumed is None else by_index_notation(assumed, subject.judged.type.size), ""

    def compare(self, places: Sequence[Values], **question: Any) -> Answer:
        """What is judged against the derivative, or the left side, at some points, to the tolerance of the subject."""
        subject = self.subject
        about: dict[str, Any] = {
            "left": subject.left,
            "plane": self.plane,
            "rtol": subject.rtol,
            "rounding": subject.rounding,
        }
        about |= {"derived": subject.of_equality} if self.output is None else {}
        derivative = None if self.output is None else subject.derivative()
        return self.exact.compare(subject.judged, places, derivative=derivative, **about, **question)

    # --- floats -------------------------------------------------------------------------------------------------

    def floats(self, nodes: Sequence[Node], values: Values) -> list[Floats]:
        """The values of some nodes in the arithmetic that is judged."""
        return evaluated(nodes, values, self.dtype, self.subject.settings.backend)

    def doubles(self, nodes: Sequence[Node], values: Values | None = None) -> list[Floats]:
        """The values of some nodes in double precision, at the point unless another one is given."""
        return evaluated(nodes, self.values if values is None else values, self.subject.settings.doubles)

    @cached_property
    def judged_floats(self) -> Callable[[Values], Floats]:
        """The entries of what is judged in floats, at a point: of complex ones dL/dx and dL/dy in turn."""
        at = evaluator([self.subject.judged], self.dtype, self.subject.settings.backend)
        return lambda values: parts_of(at(values)[0])

    # --- entries and points -------------------------------------------------------------------------------------

    def where(self, entry: int) -> str:
        """The place of an entry for a sentence: "[1, 2]", or " by imag(z[1])" for a part of a complex one."""
        name = self.entry(entry)
        return name if not self.plane else f" ({name})" if self.target is None else f" by {name}"

    def entry(self, entry: int) -> str:
        """The place of an entry for evidence: "[1, 2]", "real(z[1])", or "imaginary part[1]" of an equality."""
        if not self.plane:
            return subscript(entry, self.subject.judged.type.shape)
        place = subscript(entry // 2, (self.target or self.subject.judged).type.shape)
        if self.target is None:
            return f"{('real', 'imaginary')[entry % 2]} part{place}"
        return f"{('real', 'imag')[entry % 2]}({self.target_name}{place})"

    def axis(self, entry: int) -> str:
        """The name of an entry of the target, of which slopes are shown; "" where it is all of the target."""
        own = f"{self.target_name}{self.entry(entry)}" if self.target.type.shape else ""
        return self.entry(entry) if self.plane else own

    def beside(self, names: Sequence[str | None], most: int) -> list[dict[str, Floats]]:
        """Points near the given one where one of some leaves has moved, each in its turn; at most so many."""
        if self.number or self.subject.rtol is not None:
            return []  # a bare number or a tolerance holds at no other point
        count = self.subject.settings.samples
        near = [
            zip(repeat(name), chosen_points.nearby(self.values[name], self.domains.get(name), count, self.seed))
            for name in names
            if name is not None
        ]
        turns = (pair for pairs in zip_longest(*near) for pair in pairs if pair is not None)
        return [{**self.values, name: moved} for name, moved in islice(turns, most)]

    def counterexample(self, values: Values, answer: Answer) -> tuple[str, Evidence]:
        """Where the entry is that refutes, for a sentence; and as evidence the point, the entry and both sides."""
        first: Answer = next(detail for detail in answer["details"] if detail["relation"] == "!")
        entry = first["entry"]
        turned = self.plane and self.target is None and entry % 2 == 1
        sides = {side: negated(first[side]) if turned else first[side] for side in ("exact", "claimed")}
        return self.where(entry), {"at": point_text(values, self.exact.used), "entry": self.entry(entry), **sides}


def parts_of(gradient: NDArray[Any]) -> Floats:
    """The entries of a gradient as a flat array: of complex ones dL/dx and dL/dy in turn."""
    flat = gradient.reshape(-1)
    return np.stack([flat.real, -flat.imag], axis=1).reshape(-1) if flat.dtype.kind == "c" else flat


def negated(digits: str) -> str:
    """The digits of the negated number."""
    return digits[1:] if digits.startswith("-") else digits if digits in ("0", "") else f"-{digits}"


def is_evidence(answer: Answer) -> bool:
    """Whether a point near the given one is evidence: in the region both sides have values, and agree or differ."""
    relations = set(answer["relations"]) if answer["region"] else {OPEN}
    return not relations & set("ERT") and ("!" in relations or OPEN not in relations)


def differ(answer: Answer) -> bool:
    """Whether both sides are certainly different at a point of the region."""
    return is_evidence(answer) and "!" in answer["relations"]


def shown_entries(answer: Answer, text: Callable[[Answer], Any]) -> list[Any]:
    """A text for each of the first entries of a comparison, and how many are left out."""
    left = len(answer["entries"]) - len(answer["details"])
    first = sorted(answer["details"], key=lambda entry: entry["entry"])
    return [*map(text, first), *([f"... {left:,} more"] if left else [])]


def digits_of(answer: Answer, side: str) -> list[Any]:
    """The digits of the first entries of a side, "exact" or "claimed"."""
    return shown_entries(answer, lambda entry: entry[side])

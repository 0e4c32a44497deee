"""One subject being judged: the oracle, the point, and what has been found out so far; decides nothing by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.checks import points
from gradcli.checks.floats import evaluated
from gradcli.checks.shown import counted, node_text, point_text, position, shortened_list
from gradcli.diagnostics import Diagnostic
from gradcli.graph.node import LEAF, reachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject
    from gradcli.graph.node import Node

    Floats = NDArray[np.floating[Any]]
    Values = Mapping[str, Floats]
    Evidence = dict[str, Any]
    Answer = Mapping[str, Any]

RIGHT = frozenset("=~")  # relations of an exact to a claimed entry: equal, or within the tolerance


class Outcome(NamedTuple):
    """A verdict, why, and the evidence; `inside` tells, at a kink, whether the returned value is a possible slope."""

    verdict: str
    message: str
    evidence: Evidence
    diagnostics: tuple[Diagnostic, ...] = ()
    inside: bool = False


class Case:
    """The state of judging one subject."""

    def __init__(self, exact: Exact, subject: Subject, seed: int, samples: int, dtype: str) -> None:
        self.exact = exact
        self.subject = subject
        self.seed = seed
        self.samples = samples
        self.dtype = dtype
        self.values = subject.values
        self.tried: dict[str, str] = {}  # oracle -> what came of it
        self.evidence: Evidence = {"oracles": self.tried}
        self.names: dict[bool, str] = {}  # SymPy's derivatives, by whether decimals are read as they are written
        self.nearby: list[dict[str, Floats]] = []  # points beside the given one that lie in its region
        self.tied = False  # SymPy met a branch that hangs on an exact zero
        self.smooth_tie = False  # a tie across which the value is smooth, with the judged slope
        both = [node for node in (subject.judged, subject.left) if node is not None]
        self.number = any(not leaf_names([node]) for node in both)  # a bare number is claimed at one point only

    @property
    def output(self) -> Node:
        assert self.subject.output is not None
        return self.subject.output

    @property
    def target(self) -> Node:
        assert self.subject.target is not None
        return self.subject.target

    @property
    def own_leaf(self) -> str | None:
        """The name of the checked leaf; None where the target is an intermediate value."""
        target = self.subject.target
        return None if target is None or target.primitive is not LEAF else str(target.params["name"])

    # --- the value itself ---------------------------------------------------------------------------------

    def value(self, nodes: Sequence[Node]) -> Outcome | None:
        """UNDEFINED where a value is not real at the point; None where it is, or where nobody can tell."""
        names = leaf_names([*nodes, self.subject.judged])
        for name in self.values:
            if name in names and not np.isfinite(self.values[name]).all():
                return Outcome("UNDEFINED", f"{name} holds a value that is not a finite number", {"leaf": name})
        answer = self.exact.values(nodes, self.values)
        if "problem" in answer:
            self.tried["balls"] = answer["reason"]
            if all(np.isfinite(x).all() for x in evaluated(nodes, self.values)):
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
            digits = [entry["digits"] for row in answer["entries"] for entry in row if "digits" in entry]
            self.evidence["value"] = shortened_list(digits)
        return None

    def undefined(self, entry: Answer) -> Outcome:
        """UNDEFINED, with the node that fails."""
        node = self.exact.node(entry.get("row"))
        reason = entry["reason"]
        message = f"not a real number here: {reason}"
        if node is None:
            return Outcome("UNDEFINED", message, {"reason": reason})
        told = Diagnostic("GC401", reason, node.span, severity="warning")
        return Outcome("UNDEFINED", message, {"reason": reason, "node": node_text(node)}, (told,))

    # --- the symbolic oracle and other points ----------------------------------------------------------------

    def derive(self, entries: Sequence[int], decimal: bool = False) -> bool:
        """Whether SymPy gave a derivative by these entries of the target."""
        answer = self.exact.derive(self.output, self.target, self.subject.moving, self.values, decimal, list(entries))
        if "problem" in answer:
            self.tied = answer["problem"] == "tie"
            if not decimal:
                self.tried["symbolic"] = f"a tie of {answer['reason']}" if self.tied else answer["reason"]
            return False
        self.names[decimal] = answer["name"]
        return True

    def beside(self, entries: Sequence[int] | None = None) -> list[dict[str, Floats]]:
        """Points near the given one where only the checked leaf, or some of its entries, has moved.

        There are none for a bare number or a claim with a tolerance: these speak of one point.
        """
        name = self.own_leaf
        if name is None or self.number or self.subject.rtol is not None or not self.samples:
            return []
        near = points.nearby(self.values[name], self.subject.domain, self.samples, self.seed)
        found = []
        for moved, _ in zip(near, range(3 * self.samples), strict=False):
            if entries is not None and len(entries) < moved.size:
                kept = self.values[name].copy()
                kept.reshape(-1)[list(entries)] = moved.reshape(-1)[list(entries)]
                moved = kept
            found.append({**self.values, name: moved})
        return found

    def counterexample(self, values: Values, answer: Answer) -> tuple[str, Evidence, Answer]:
        """Where it was, the counterexample as evidence, and the entry of an answer that refutes."""
        first: Answer = next(one for one in answer["details"] if one["relation"] == "!")
        where = position(first["entry"], self.subject.judged.type.shape)
        found = {
            "at": point_text(values, self.exact.used),
            "entry": where,
            "exact": first["exact"],
            "claimed": first["claimed"],
        }
        return where, {"counterexample": found}, first


def leaf_names(nodes: Sequence[Node]) -> set[str]:
    """The names of the leaves that some nodes read."""
    return {node.params["name"] for node in reachable(nodes) if node.primitive is LEAF}


def usable(answer: Answer) -> bool:
    """Whether a point lies in the region and both sides have values there."""
    return bool(answer["region"]) and not set(answer["relations"]) & {"E", "R"}


def rescued(answer: Answer, slack: float = 1e-9) -> bool:
    """Whether both sides are equal after all, as far as rounded constants allow."""
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
    return shortened_list([one["exact"] for one in sorted(answer["details"], key=lambda one: one["entry"])])


def points_told(count: int) -> str:
    return counted(count, "point")

"""Exact questions about nodes at points, for the oracle's process: nodes become rows, and points lists.

The time of a check is kept here; nothing else looks at a clock. What the answers mean is for `verdict` to say.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.checks.oracle.worker import TimeOver
from gradcli.graph.flat import Table
from gradcli.graph.loop import nodes_in
from gradcli.graph.node import LEAF, reachable
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.oracle.worker import Oracle
    from gradcli.checks.subjects import Subject
    from gradcli.graph.node import Node

    Values = Mapping[str, NDArray[Any]]
    Answer = dict[str, Any]

MOST_NODES = 40_000  # of a graph that is sent to the oracle


class Deadline:
    """The end of the time for one check. What ends earlier is counted in operations, so no verdict depends on it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = monotonic() + seconds

    def left(self) -> float:
        """How long the next question may take."""
        return max(0.0, self.end - monotonic())


class Exact:
    """The oracle, holding some nodes of a script; without `proving` no proof is tried.

    A method raises NoAnswer where the time of the check is over, or the oracle is lost twice: the check is then
    INCONCLUSIVE. `within` is the deadline of the check that the nodes serve.
    """

    def __init__(
        self,
        oracle: Oracle,
        nodes: Sequence[Node],
        seconds: float,
        proving: bool = True,
        within: Deadline | None = None,
    ) -> None:
        self.oracle = oracle
        self.proving = proving
        order = reachable(nodes)
        self.used = {node.params["name"] for node in order if node.primitive is LEAF}
        self.refused: Answer | None = None
        count = nodes_in(order)
        if count > MOST_NODES:
            reason = f"a graph of {count:,} nodes, more than {MOST_NODES:,}"
            self.refused = {"problem": "unsupported", "reason": reason}
            order = nodes = []
        self.table = Table(nodes, catalogue())
        self.rows = self.table.rows
        self.by_row: dict[int, Node] = {}
        for node, row in self.rows.items():
            self.by_row.setdefault(row, node)
        self.seconds = seconds
        self.within = within
        self.deadline = within or Deadline(seconds)

    def begin(self) -> None:
        """Send these nodes with the next question, and start the clock of the next check."""
        self.oracle.load(self.table.flat)
        self.deadline = self.within or Deadline(self.seconds)

    def beside(self, nodes: Sequence[Node]) -> Exact:
        """The oracle, holding other nodes for a while, within the time of the same check."""
        return Exact(self.oracle, nodes, self.seconds, self.proving, self.deadline)

    def values(self, nodes: Sequence[Node], values: Values) -> Answer:
        """The enclosures of some nodes: `entries`, one list for each."""
        if self.refused is not None:
            return self.refused
        return self._ask("values", rows=[self.rows[node] for node in nodes], point=self.point(values))

    def derive(
        self,
        output: Node,
        target: Node,
        moving: Sequence[str],
        values: Values,
        entries: Sequence[int] | None = None,
        seed: int = 0,
        inner: tuple[Node, Node] | None = None,
        plane: bool = False,
    ) -> dict[str, Any]:
        """The name of a derivative for `compare`: of `output` by entries of `target`, in the region of a point.

        With `inner` the output is the derivative of one scalar by another; in the complex `plane` each entry has two
        slopes, those of the real part by its parts. Nothing is computed yet.
        """
        return {
            "output": self.rows[output],
            "target": self.rows[target],
            "moving": list(moving),
            "point": self.point(values),
            "entries": None if entries is None else list(entries),
            "seed": seed,
            "inner": None if inner is None else [self.rows[node] for node in inner],
            "plane": plane,
        }

    def judge(
        self,
        right: Node,
        values: Values,
        *,
        name: Mapping[str, Any],
        beside: Sequence[Mapping[str, Any]] = (),
        wanted: int = 0,
        directions: Sequence[Any] = (),
        rtol: float | None = None,
    ) -> Answer:
        """All that a check asks of balls, as one question.

        `beside` gives changes of the point; of those in its region as many as are `wanted` are looked at. The answer
        has the `value`, the comparison at the point (`given`), at points `beside` it, and what is known of a `tie`.
        """
        if self.refused is not None:
            return self.refused
        return self._ask(
            "judge",
            derivative=dict(name),
            right=self.rows[right],
            point=self.point(values),
            beside=[self.point(change) for change in beside],
            wanted=wanted,
            directions=list(directions),
            rtol=rtol,
        )

    def compare(
        self,
        right: Node,
        points: Sequence[Values],
        *,
        name: Mapping[str, Any] | None = None,
        left: Node | None = None,
        decimal: bool = False,
        wide: bool = False,
        printed: bool = False,
        plane: bool = False,
        rtol: float | None = None,
    ) -> Answer:
        """The judged node against the derivative of a name, or against another node, at each point."""
        if self.refused is not None:
            return self.refused
        return self._ask(
            "compare",
            derivative=None if name is None else dict(name),
            right=self.rows[right],
            points=[self.point(values) for values in points],
            left=None if left is None else self.rows[left],
            decimal=decimal,
            wide=wide,
            printed=printed,
            plane=plane,
            rtol=rtol,
        )

    def cover(
        self, subject: Subject, box: Mapping[str, tuple[float, float]], *, tolerance: float | None, most: int
    ) -> Answer:
        """What balls say of a subject on a box: settled, open, refuted or undefined; see `series.cover`."""
        assert subject.output is not None and subject.target is not None
        if self.refused is not None:
            return self.refused
        return self._ask(
            "cover",
            derivative=self.derive(subject.output, subject.target, subject.moving, subject.values),
            right=self.rows[subject.judged],
            point=self.point(subject.values),
            box={name: list(sides) for name, sides in box.items()},
            tolerance=tolerance,
            pieces=most,
        )

    def prove(
        self,
        right: Node,
        values: Values,
        *,
        output: Node,
        target: Node,
        moving: Sequence[str],
        entries: Sequence[int],
        decimal: bool = False,
    ) -> Answer:
        """Whether entries of the judged node are the derivatives of `output` by those of `target`, by algebra.

        `proved`, and then `how` (structure, normal form), `region`, `frozen`, and `everywhere` where the region
        is left only through a branch or a point where a side is undefined; else the `reason`.
        """
        return self._prove(
            right=self.rows[right],
            output=self.rows[output],
            target=self.rows[target],
            entries=list(entries),
            moving=list(moving),
            point=self.point(values),
            decimal=decimal,
        )

    def prove_equal(
        self, left: Node, right: Node, moving: Sequence[str], values: Values, decimal: bool = False
    ) -> Answer:
        """Whether two nodes are equal by algebra; the answer is that of `prove`."""
        return self._prove(
            left=self.rows[left],
            right=self.rows[right],
            moving=list(moving),
            point=self.point(values),
            decimal=decimal,
        )

    def enclosure(self, name: Mapping[str, Any]) -> Answer:
        """The derivative of a name by one entry: its `digits`, `value` and `radius`, or the `reason` against it."""
        return self._ask("enclosure", derivative=dict(name))

    def sympy(self, output: Node, target: Node, entry: int, values: Values) -> Answer:
        """SymPy's derivative of `output` by one entry of `target`: its `digits`, `value` and, if short, `formula`."""
        if self.refused is not None:
            return self.refused
        return self._ask(
            "sympy",
            output=self.rows[output],
            target=self.rows[target],
            entry=entry,
            point=self.point(values),
        )

    def point(self, values: Values) -> dict[str, Any]:
        """A point as plain lists, with the leaves that the nodes read."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.used:
                found[name] = [value.real.reshape(-1).tolist(), list(value.shape)]
                if value.dtype.kind == "c":
                    found[name].append(value.imag.reshape(-1).tolist())
        return found

    def shorter(self, node: Node, style: str) -> list[str]:
        """Shorter forms of a scalar node, which nobody has confirmed; none where SymPy cannot read it."""
        texts: list[str] = self._ask("simplify", row=self.rows[node], style=style).get("texts", [])
        return texts

    def leaves_of(self, nodes: Sequence[Node]) -> set[str]:
        """The names of the leaves that some nodes read."""
        return {node.params["name"] for node in reachable(nodes) if node.primitive is LEAF}

    def node(self, row: int | None) -> Node | None:
        """The node of a row that an answer names."""
        return None if row is None else self.by_row.get(row)

    # --- inner ----------------------------------------------------------------------------------------------

    def _prove(self, **question: Any) -> Answer:
        if not self.proving:
            return {"proved": False}
        return self._ask("prove", **question) if self.refused is None else self.refused

    def _ask(self, op: str, **question: Any) -> Answer:
        try:
            return self.oracle.ask(op, self.deadline.left(), **question)
        except TimeOver:
            raise TimeOver(f"{self.deadline.seconds:g} s are over; a longer --timeout may help") from None

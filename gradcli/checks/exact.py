"""Questions about nodes at points go in, answers of the oracle's process come out as plain data; time is counted here.

It turns nodes into rows and points into lists, and a question that got no answer into a problem with its reason. What
the answers mean is for `verdict` to say.
"""

from __future__ import annotations

from json import dumps
from time import monotonic
from typing import TYPE_CHECKING, Any

from gradcli.checks.worker import NoAnswer
from gradcli.graph.flat import Table
from gradcli.graph.node import LEAF, reachable
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.checks.worker import Oracle
    from gradcli.graph.node import Node

    Values = Mapping[str, NDArray[Any]]
    Answer = dict[str, Any]

DERIVE_SECONDS = 6.0
PROVE_SECONDS = 3.0
BALL_SECONDS = 1.0
MOST_NODES = 40_000  # of a graph that is sent to the oracle


class Deadline:
    """The time that is left for one check."""

    def __init__(self, seconds: float) -> None:
        self.end = monotonic() + seconds

    def left(self, most: float) -> float:
        """How long the next question may take; at least a moment, so that it is asked at all."""
        return max(0.05, min(most, self.end - monotonic()))


class Exact:
    """The oracle, holding some nodes of a script."""

    def __init__(self, oracle: Oracle, nodes: Sequence[Node], seconds: float) -> None:
        self.oracle = oracle
        order = reachable(nodes)
        self.used = {node.params["name"] for node in order if node.primitive is LEAF}
        self.refused: Answer | None = None
        if len(order) > MOST_NODES:
            reason = f"a graph of {len(order):,} nodes, more than {MOST_NODES:,}"
            self.refused = {"problem": "unsupported", "reason": reason}
            order = nodes = []
        self.table = Table(nodes, catalogue())
        self.rows = self.table.rows
        self.by_row: dict[int, Node] = {}
        for node, row in self.rows.items():
            self.by_row.setdefault(row, node)
        self.seconds = seconds
        self.deadline = Deadline(seconds)
        self.generation = oracle.generation  # of the process that holds these derivatives:
        self.held: set[str] = set()
        self._hopeless: dict[Node, Answer] = {}  # outputs that took too long in symbols
        self._derived: dict[str, tuple[dict[str, Any], Answer]] = {}

    def begin(self) -> None:
        """Start the clock of the next check."""
        self.oracle.load(self.table.flat)
        self.deadline = Deadline(self.seconds)

    def values(self, nodes: Sequence[Node], values: Values) -> Answer:
        """The enclosures of some nodes: `entries`, one list for each."""
        if self.refused is not None:
            return self.refused
        return self._ask("values", BALL_SECONDS, rows=[self.rows[node] for node in nodes], point=self.point(values))

    def derive(
        self,
        output: Node,
        target: Node,
        moving: Sequence[str],
        values: Values,
        decimal: bool = False,
        entries: Sequence[int] | None = None,
    ) -> Answer:
        """Have SymPy differentiate; the answer's `name` stands for the derivative in later questions.

        The same question is asked once only, whichever check comes first.
        """
        if self.refused is not None:
            return self.refused
        question = {
            "output": self.rows[output],
            "target": self.rows[target],
            "moving": list(moving),
            "point": self.point(values),
            "decimal": decimal,
            "entries": None if entries is None else list(entries),
        }
        name = dumps(question)
        known = self._derived.get(name)
        if known is None:
            answer = self._hopeless.get(output) or self._ask("derive", DERIVE_SECONDS, name=name, **question)
            if answer.get("problem") == "timeout":
                self._hopeless[output] = answer
            self._held(name)
            known = self._derived[name] = ({"name": name, **question}, {**answer, "name": name})
        return known[1]

    def compare(
        self,
        right: Node,
        points: Sequence[Values],
        *,
        name: str | None = None,
        left: Node | None = None,
        decimal: bool = False,
        wide: bool = False,
        printed: bool = False,
        rtol: float | None = None,
    ) -> Answer:
        """The judged node against the derivative of a name, or against another node, at each point."""
        if self.refused is not None:
            return self.refused
        return self._ask(
            "compare",
            BALL_SECONDS * (1 + len(points)),
            name=name,
            right=self.rows[right],
            points=[self.point(values) for values in points],
            left=None if left is None else self.rows[left],
            decimal=decimal,
            wide=wide,
            printed=printed,
            rtol=rtol,
            seconds=BALL_SECONDS,
        )

    def prove(self, right: Node, values: Values, *, name: str) -> Answer:
        """Whether the judged node is the derivative by algebra."""
        return self._ask("prove", PROVE_SECONDS, name=name, right=self.rows[right], point=self.point(values))

    def prove_equal(
        self, left: Node, right: Node, moving: Sequence[str], values: Values, decimal: bool = False
    ) -> Answer:
        """Whether two nodes are equal by algebra."""
        if self.refused is not None:
            return self.refused
        return self._ask(
            "prove",
            PROVE_SECONDS,
            left=self.rows[left],
            right=self.rows[right],
            moving=list(moving),
            point=self.point(values),
            decimal=decimal,
        )

    def point(self, values: Values) -> dict[str, Any]:
        """A point as plain lists, with the leaves that the nodes read."""
        return {
            name: [value.reshape(-1).tolist(), list(value.shape)] for name, value in values.items() if name in self.used
        }

    def leaves_of(self, nodes: Sequence[Node]) -> set[str]:
        """The names of the leaves that some nodes read."""
        return {node.params["name"] for node in reachable(nodes) if node.primitive is LEAF}

    def node(self, row: int | None) -> Node | None:
        """The node of a row that an answer names."""
        return None if row is None else self.by_row.get(row)

    def _held(self, name: str) -> bool:
        """Whether the process still has a derivative; after a loss it has none."""
        if self.generation != self.oracle.generation:
            self.generation, self.held = self.oracle.generation, set()
        known = name in self.held
        self.held.add(name)
        return known

    # --- inner ----------------------------------------------------------------------------------------------

    def _ask(self, op: str, most: float, **question: Any) -> Answer:
        try:
            self.oracle.prepare(self.deadline.left(BALL_SECONDS))
            wanted = question.get("name")
            if op != "derive" and wanted is not None and not self._held(wanted):
                # the process was lost, and with it the derivative
                again = self.oracle.ask("derive", self.deadline.left(DERIVE_SECONDS), **self._derived[wanted][0])
                if "problem" in again:
                    return again
            return self.oracle.ask(op, self.deadline.left(most), **question)
        except NoAnswer as reason:
            return {"problem": "timeout", "reason": str(reason)}

"""Exact questions about nodes at points, for the oracle's process: nodes become rows, and points lists.

The time of a check is kept here; nothing else looks at a clock. What the answers mean is for `verdict` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.oracle.worker import TimeOver
from gradcli.graph.flat import Table
from gradcli.graph.loop import nodes_in
from gradcli.graph.node import LEAF, Node, reachable
from gradcli.primitives import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gradcli.checks.oracle.worker import Oracle

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

    A question raises NoAnswer where the time of the check is over, or the oracle is lost twice: the check is then
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

    def ask(self, question: str, **about: Any) -> Answer:
        """The oracle's answer to a question of `oracle_server`, about nodes and arrays as they are here."""
        if self.refused is not None:
            return self.refused
        try:
            return self.oracle.ask(question, self.deadline.left(), **self._plain(about))
        except TimeOver:
            raise TimeOver(f"{self.deadline.seconds:g} s are over; a longer --timeout may help") from None

    def values(self, nodes: Sequence[Node], values: Values) -> Answer:
        """The enclosures of some nodes: `entries`, one list for each."""
        return self.ask("values", rows=nodes, point=values)

    def compare(self, right: Node, points: Sequence[Values], *, name: Any = None, **about: Any) -> Answer:
        """The judged node against the derivative of a name, or against the node `left`, at each point."""
        return self.ask("compare", right=right, points=points, derivative=name, **about)

    def prove(self, right: Node, values: Values, **about: Any) -> Answer:
        """Whether a node is equal to `left`, or its `entries` to the derivatives of `output` by `target`, by algebra.

        `proved`, and then `how` (structure, normal form), `region`, `frozen`, and `everywhere` where the region
        is left only through a branch or a point where a side is undefined; else the `reason`.
        """
        return self.ask("prove", right=right, point=values, **about) if self.proving else {"proved": False}

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
        name = {"output": output, "target": target, "moving": moving, "point": values, "entries": entries}
        plain: dict[str, Any] = self._plain({**name, "seed": seed, "inner": inner, "plane": plane})
        return plain

    def _plain(self, value: Any) -> Any:
        """Nodes as rows, a point as plain lists of the leaves that the nodes read, anything else as it is."""
        if value is None or isinstance(value, (int, float, str)):
            return value
        if isinstance(value, Node):
            return self.rows[value]
        if isinstance(value, Mapping):
            arrays = {name: one for name, one in value.items() if not isinstance(one, np.ndarray) or name in self.used}
            return {name: self._plain(one) for name, one in arrays.items()}
        if isinstance(value, np.ndarray):
            parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
            real, *imaginary = (one.reshape(-1).tolist() for one in parts)
            return [real, list(value.shape), *imaginary]
        if isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float, str)):
            return [self._plain(one) for one in value]
        return value

    def leaves_of(self, nodes: Sequence[Node]) -> set[str]:
        """The names of the leaves that some nodes read."""
        return {node.params["name"] for node in reachable(nodes) if node.primitive is LEAF}

    def node(self, row: int | None) -> Node | None:
        """The node of a row that an answer names."""
        return None if row is None else self.by_row.get(row)

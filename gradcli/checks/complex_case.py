"""A subject at a complex point goes in: what is near it, what its parts are called, what differences say; no verdict.

Values are complex doubles throughout. The float side of the convention is here: nodes hold the conjugate of
dL/dx + i*dL/dy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks import numerical, points
from gradcli.checks.case import Outcome, leaf_names
from gradcli.checks.differences import seeded_directions
from gradcli.checks.floats import evaluated
from gradcli.checks.shown import node_text, position
from gradcli.diagnostics import Diagnostic
from gradcli.execution.evaluate import Tape
from gradcli.graph.node import LEAF

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gradcli.checks.exact import Exact
    from gradcli.checks.subjects import Subject

    Values = Mapping[str, NDArray[Any]]
    Answer = dict[str, Any]

MANY = 64  # entries of a leaf; with more, no points beside it
JOINT = 4
MOST_JOINT = 32
FAR = 1e-6  # a float value so far from the enclosed one is that of another function
DTYPE = "complex128"


class ComplexCase:
    """The state of judging one subject at a complex point."""

    def __init__(self, exact: Exact, subject: Subject, seed: int, samples: int) -> None:
        self.exact = exact
        self.subject = subject
        self.seed = seed
        self.samples = samples
        self.values: Values = subject.values
        self.tried: dict[str, str] = {}
        self.evidence: dict[str, Any] = {"oracles": self.tried}

    def of_another_function(self, value: Answer) -> Outcome | None:
        """INCONCLUSIVE where floats compute another function of complex numbers than the enclosures do."""
        assert self.subject.output is not None
        made = float(evaluated([self.subject.output], self.values, DTYPE)[0].real)
        true = value.get("value")
        self.evidence["value"] = [value.get("digits", "")]
        if true is None or not np.isfinite(made) or abs(made - true) <= FAR * (1 + abs(true)):
            return None
        message = f"the real part is {made!r} in floats and {true!r} in balls: "
        message += "an operation has no single meaning for complex numbers, or rounding decides a branch"
        return Outcome("INCONCLUSIVE", message, {})

    # --- floats -----------------------------------------------------------------------------------------------

    def by_differences(self, reason: str) -> Outcome:
        """AGREES where differences of the real part along both parts give what is judged."""
        subject = self.subject
        self.tried["series"] = reason
        if subject.target is None or subject.target.primitive is not LEAF or subject.output is None:
            return Outcome("INCONCLUSIVE", reason, {})
        leaf, shape = self.leaf, subject.target.type.shape
        tape = Tape([subject.output])
        needed = {node.params["name"] for node, _ in tape.inputs}
        base = {name: value for name, value in self.values.items() if name in needed}
        size = subject.target.type.size

        def f(rows: NDArray[Any]) -> NDArray[Any]:
            block = (rows[:, :size] + 1j * rows[:, size:]).reshape(len(rows), *shape)
            found = [tape.run({**base, leaf: one}, backend="numpy", dtype=DTYPE)[0] for one in block]
            return np.array([complex(one).real for one in found])

        flat = self.values[leaf].reshape(-1)
        made = np.array(self.stated(evaluated([subject.judged], self.values, DTYPE)[0].reshape(-1)))
        x, gradient = (np.concatenate([one.real, one.imag]) for one in (flat, made))
        seen = numerical.judge(f, x, gradient, None, self.seed, subject.rtol)
        self.tried["differences"] = seen.state
        evidence = {"basis": "numerical", "points": 1, "bound": seen.bound, "covered": seen.covered}
        if seen.state == "agrees":
            message = f"differences of the real part agree at 1 point to {seen.bound:.1g}; not certified: {reason}"
            return Outcome("AGREES", message, evidence)
        return Outcome("INCONCLUSIVE", f"{reason}; differences: {seen.reason}", evidence)

    # --- points -----------------------------------------------------------------------------------------------

    @property
    def leaf(self) -> str:
        """The name of the checked leaf; nothing where an intermediate value is the target."""
        target = self.subject.target
        return "" if target is None or target.primitive is not LEAF else str(target.params["name"])

    def beside(self) -> list[dict[str, NDArray[Any]]]:
        """Points where only the checked leaf has moved; none for a bare number or a claim with a tolerance."""
        subject = self.subject
        bare = not leaf_names([subject.judged])
        if not self.leaf or bare or subject.rtol is not None or self.values[self.leaf].size > MANY:
            return []
        return [{**self.values, self.leaf: one} for one in self.around(self.leaf, 3 * self.samples)]

    def around(self, name: str, count: int) -> list[NDArray[Any]]:
        """Complex numbers beside the value of a leaf."""
        value = self.values[name]
        parts = np.stack([value.real, value.imag])
        near = points.nearby(parts.reshape(-1), None, max(1, count), self.seed)
        found = [one.reshape(parts.shape) for one, _ in zip(near, range(count), strict=False)]
        return [np.asarray(x + 1j * y) for x, y in found]

    def moved(self) -> list[dict[str, NDArray[Any]]]:
        """Points for an equality, where one leaf has moved at a time."""
        subject = self.subject
        used = leaf_names([subject.left, subject.judged]) if subject.left is not None else set()
        names = [name for name in subject.moving if name in used]
        sides = [node for node in (subject.left, subject.judged) if node is not None]
        if subject.rtol is not None or not names or any(not leaf_names([node]) for node in sides):
            return []
        turns = [names[turn % len(names)] for turn in range(self.samples)]
        return [{**self.values, name: self.around(name, turn + 1)[turn]} for turn, name in enumerate(turns)]

    def joint(self) -> list[list[tuple[int, float]]]:
        """Directions in which all parts of the target and of the other leaves move, for a tie."""
        assert self.subject.output is not None and self.subject.target is not None
        names = leaf_names([self.subject.output]) & set(self.subject.moving) - {self.leaf} if self.leaf else set()
        count = 2 * (self.subject.target.type.size + sum(self.values[name].size for name in names))
        if count > MOST_JOINT:
            return []
        ways = seeded_directions(np.ones(count), JOINT, self.seed)
        return [[(i, round(64 * float(speed)) / 64) for i, speed in enumerate(way)] for way in ways]

    # --- words ------------------------------------------------------------------------------------------------

    def stated(self, made: NDArray[Any]) -> list[complex]:
        """What is judged as dL/dx + i*dL/dy: the nodes hold its conjugate."""
        return [complex(one).conjugate() for one in made]

    def where(self, k: int) -> str:
        assert self.subject.target is not None
        return position(k, self.subject.target.type.shape)

    def part(self, i: int) -> str:
        """The name of a part of an entry: "real(z[1])"."""
        name = self.leaf or self.subject.text
        return f"{('real', 'imag')[i % 2]}({name}{self.where(i // 2)})"

    def infinite(self) -> Outcome | None:
        """UNDEFINED where a leaf holds what is no finite number."""
        nodes = [n for n in (self.subject.output, self.subject.left, self.subject.judged) if n is not None]
        for name in sorted(leaf_names(nodes)):
            if name in self.values and not np.isfinite(self.values[name]).all():
                return Outcome("UNDEFINED", f"{name} holds a value that is not a finite number", {"leaf": name})
        return None

    def undefined(self, entry: Answer) -> Outcome:
        """UNDEFINED, with the node that fails."""
        node = self.exact.node(entry.get("row"))
        evidence = {"reason": entry["reason"]}
        if node is None:
            return Outcome("UNDEFINED", f"no number here: {entry['reason']}", evidence)
        told = Diagnostic("GC401", entry["reason"], node.span, severity="warning")
        return Outcome(
            "UNDEFINED", f"no number here: {entry['reason']}", {**evidence, "node": node_text(node)}, (told,)
        )

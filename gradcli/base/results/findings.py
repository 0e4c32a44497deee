"""Findings that explain a gradient, with a reason, a line, a fix and their numbers.

The numbers are a record of a class of their own, so that a type checker reads what a finder fills in and what a
renderer shows. The fields of that record are also the names in the JSON output: they may be added to, never changed.
"""

from __future__ import annotations

from gradcli.base.records import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class AtNode(NamedTuple):
    """The node of the graph to blame."""

    node: str


class Operands(NamedTuple):
    """The node that made the first NaN or infinity, and the names of what it computed it from."""

    node: str
    operands: tuple[str, ...]


class Growth(NamedTuple):
    """The node where growing updates end in NaN or infinity; the first and the last finite norm of the gradient."""

    node: str
    norms: tuple[float, float]


class Branch(NamedTuple):
    """The node that sent NaN, and the line of the branch that was not taken."""

    node: str
    branch: int | None


class Masked(NamedTuple):
    """A softmax over rows that are masked throughout: how many of how many, and the line of the mask."""

    node: str
    rows: int
    of: int
    mask: int | None


class Saved(NamedTuple):
    """The node whose saved value is gone or changed, and its line."""

    node: str
    saved: int | None


class NodeNorm(NamedTuple):
    """The norm of the gradient that arrived at a node, and of what the node sent on."""

    node: str
    line: int | None
    arrived: float
    sent: float


class GradientPath(NamedTuple):
    """The norm of a gradient, and the norms on its path from the loss; `others` have the same trouble."""

    norm: float
    norms: tuple[NodeNorm, ...]
    others: tuple[str, ...] = ()


class Accumulated(NamedTuple):
    """How many backwards a gradient is the sum of, and how many of them since it was last zeroed."""

    backwards: int
    factor: int


class Retained(NamedTuple):
    """How often a loop kept its graph, and the nodes of the first and the last of these graphs."""

    times: int
    nodes: tuple[int, int]


class Histories(NamedTuple):
    """How many graphs a name keeps alive, and their operations."""

    graphs: int
    operations: int


class DeadUnits(NamedTuple):
    """The share of the units of a layer that are zero for every input."""

    share: float
    units: int


class Unregistered(NamedTuple):
    """Parameters in a plain container of a module: its attribute, how many it holds, and the class to use."""

    module: str
    attribute: str
    container: str
    layers: int
    parameters: int
    use: str


class AtStep(NamedTuple):
    """The operation of a script to blame, and its number in the trace."""

    operation: str
    step: int


Evidence = (
    AtNode
    | Operands
    | Growth
    | Branch
    | Masked
    | Saved
    | GradientPath
    | Accumulated
    | Retained
    | Histories
    | DeadUnits
    | Unregistered
    | AtStep
)


class Edit(NamedTuple):
    """A text in the place of what stands between two points, each a line from 1 and a byte of it from 0."""

    first: int
    start: int
    last: int
    stop: int
    text: str


class Patch(NamedTuple):
    """A change of a file that may be the fix; `tried` says what a run of the changed file showed.

    `diff` has the lines of the change, where it was tried.
    """

    file: str
    edits: tuple[Edit, ...]
    tried: str = ""
    helps: bool = False
    diff: tuple[str, ...] = ()

    def applied(self, text: str) -> str:
        """The text of the file with the edits."""
        data = text.encode()
        starts = [0]
        for line in data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        for edit in sorted(self.edits, key=lambda edit: (edit.first, edit.start), reverse=True):
            start, stop = starts[edit.first - 1] + edit.start, starts[edit.last - 1] + edit.stop
            data = data[:start] + edit.text.encode() + data[stop:]
        return data.decode()


class Finding(NamedTuple):
    """One reason: its name, what it is about, where it happened, what to do, and the numbers behind it.

    `tensors` are the names of all tensors that it is about, where these are several; `file` is the one of the line
    where that is not the one that ran. Of `patches` each may be the fix, the likeliest first.
    """

    reason: str
    subject: str | None
    line: int | None
    message: str
    cure: str
    evidence: Evidence | None = None
    tensors: tuple[str, ...] = ()
    file: str | None = None
    patches: tuple[Patch, ...] = ()

    def numbers(self) -> dict[str, Any]:
        """The evidence by the names of its fields, rows of norms included, for machine formats."""
        fields = {} if self.evidence is None else {name: plain(value) for name, value in _fields(self.evidence).items()}
        return {**fields, "tensors": list(self.tensors)} if self.tensors else fields


def plain(value: object) -> object:
    """A field of a record as plain data: records as dictionaries, tuples as lists."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in _fields(value).items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def _fields(record: Any) -> dict[str, Any]:
    fields: dict[str, Any] = record._asdict()
    return fields


class Looked(NamedTuple):
    """How much of a run was looked at."""

    operations: int
    tensors: int
    backwards: int
    steps: int
    optimizers: tuple[str, ...]


class Explanation(NamedTuple):
    """The findings about one file, the most telling first; and the gradients that were looked at, in a few words.

    `on` is the PyTorch that it ran on, empty for gradcli's own tensors.
    """

    file: str
    findings: tuple[Finding, ...]
    gradients: dict[str, str]
    on: str = ""
    looked: Looked | None = None

"""The vertices of a picture of a computation, with what they read, hold and send."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.base.results.calculations import DisplayedResult, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli.base.diagnostics import Diagnostic, Span
    from gradcli.base.results.calculations import Value


class Extent(NamedTuple):
    """What is known of an array that was not kept: its shape, its smallest and largest finite entry, its norm."""

    shape: tuple[int, ...]
    low: float
    high: float
    norm: float
    rest: int  # entries that are not finite


class Group(NamedTuple):
    """A call of a function or a layer, a loop, or an iteration of one: what a large picture opens and closes.

    `key` tells groups of equal labels apart, `place` says where it was called or stands.
    """

    key: int
    label: str
    place: str = ""


class Vertex(Record):
    """One node: `inputs` are positions of other vertices, `sent` what goes back along each of them, if known.

    `role` is leaf, constant or operation; `name` is what gradcli calls it, `torch` the name of PyTorch's node.
    `label` is the name that the source gives to it, `note` what a hand-written rule saved and where it is. Vertices of
    one `line` may be shown as one. A loop has its number of `iterations`, and as `body` what one of them computes.
    `groups` are the calls, loops and iterations that it belongs to, the outermost first.
    """

    index: int
    name: str
    torch: str
    role: str
    inputs: tuple[int, ...]
    type: str
    text: str
    span: Span | None = None
    line: int | None = None
    value: Value | Extent | None = None
    cotangent: Value | Extent | None = None
    sent: tuple[Value | Extent | None, ...] = ()
    label: str = ""
    note: str = ""
    iterations: int = 0
    body: str = ""
    groups: tuple[Group, ...] = ()
    file: str = ""  # of the line, where that is another one than the source


class Graph(DisplayedResult):
    """Vertices in topological order; `outputs` and `gradient` point into them by position.

    `gradient` has an entry per leaf where the graph also computes the gradient. `lines` are the lines of the source.
    """

    expression: str
    at: dict[str, Value]
    vertices: tuple[Vertex, ...]
    outputs: tuple[int, ...]
    gradient: dict[str, int]
    lines: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

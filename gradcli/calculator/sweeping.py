"""Makes the tapes that compute a matrix of derivatives, and reads its entries from their results.

If a matrix of derivatives is sparse, a few sweeps along sums of unit vectors give all its entries; otherwise there is a
tape for each leaf, over all unit vectors at once.
"""

from __future__ import annotations

from functools import partial

from gradcli.base.records import NamedTuple
from gradcli.calculator.along import Along, all_finite
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import namespace
from gradcli.graph.building import building
from gradcli.graph.types import Type
from gradcli.lowering.points import array_of
from gradcli.transforms import derivatives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from gradcli.execution.sparsity.compressed import Compression
    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape
    from gradcli.lowering import Lowered

    Found = tuple[list[Any], Callable[[], list[list[Any]]]]

FEWEST = 12  # entries of a leaf from which looking for a pattern may pay
SAVED = 2  # a compression has to need fewer than one in so many sweeps


class UnitVectorSweep(NamedTuple):
    """A tape that runs over all unit vectors of a leaf, or of an output; without directions if one run is enough."""

    output: int
    leaf: str
    along: Along


class Blocks:
    """The places of the entries in the blocks of a matrix, whose rows and columns are cut at some sizes.

    Blocks are flat arrays, or with `sparse` CSR arrays of SciPy with the entries of the pattern alone.
    """

    def __init__(self, whole: Compression, rows: Sequence[int], columns: Sequence[int], sparse: bool = False) -> None:
        library, self.sparse = namespace("numpy").library, sparse
        row_ends, column_ends = library.cumsum([0, *rows]), library.cumsum([0, *columns])
        left = library.searchsorted(column_ends, whole.columns, side="right") - 1
        self._parts: list[list[tuple[Any, Any, int]]] = []  # of a sparse block the places are an array of its pattern
        for first, height in zip(row_ends, rows, strict=False):
            among = slice(*library.searchsorted(whole.rows, [first, first + height]))  # rows are in order
            self._parts.append([])
            for j, width in enumerate(columns):
                chosen = among if len(columns) == 1 else among.start + library.flatnonzero(left[among] == j)
                high, wide = whole.rows[chosen] - first, whole.columns[chosen] - column_ends[j]
                places: Any = high * width + wide
                if sparse:
                    from scipy.sparse import csr_array

                    at = [part.astype(library.int32) for part in (high, wide)]  # SciPy's solvers take these uncopied
                    places = csr_array((library.zeros(len(wide)), tuple(at)), (height, width))
                self._parts[-1].append((chosen, places, height * width))

    def filled(self, entries: Any) -> list[list[Any]]:
        """The blocks; dense ones have zeros where the pattern has nothing."""
        library = namespace("numpy").library
        blocks: list[list[Any]] = []
        for row in self._parts:
            blocks.append([])
            for chosen, places, size in row:
                if self.sparse:
                    block = object.__new__(type(places))  # a constructor takes twenty times as long
                    parts = {"data": entries[chosen], "indices": places.indices.copy(), "indptr": places.indptr.copy()}
                    block.__dict__.update(places.__dict__, **parts)
                else:
                    block = library.zeros(size, dtype=entries.dtype)
                    block[places] = entries[chosen]
                blocks[-1].append(block)
        return blocks


class Compressed:
    """A tape that computes values and a few sweeps, and the positions of the swept entries in blocks.

    `back` are sweeps in the other direction that give some of the entries. `trusted` is None until random directions
    have shown whether the pattern is right.
    """

    __slots__ = (
        "_across", "_along", "_back", "_blocks", "_compression", "_seeded", "_shapes",
        "sparse", "tape", "trusted", "values",
    )  # fmt: skip

    def __init__(
        self,
        values: Sequence[Node],
        swept: Sequence[Node],
        seeded: Sequence[Node],
        compression: Compression,
        blocks: Blocks,
        across: bool,
        back: Compressed | None = None,
    ) -> None:
        self.tape = Tape([*values, *swept])
        self.sparse = blocks.sparse
        self.values = len(values)
        self.trusted: bool | None = None
        self._shapes = [(node.type.size, len(node.type.shape)) for node in swept]
        self._compression = compression
        self._blocks = blocks
        self._across = across
        self._back = back
        self._seeded = [(node.params["name"], node.type) for node in seeded]
        self._along: Along | None = None

    @property
    def cost(self) -> int:
        """The number of entries that the sweeps compute."""
        others = self._back.cost if self._back is not None else 0
        return others + self._compression.sweeps * sum(size for size, _ in self._shapes)

    def run(self, run: Callable[[Along], list[Any]], probe: Callable[[Along], list[Any]]) -> Found | None:
        """The values, and a function that makes the blocks of the matrix; None without a usable pattern.

        That is so if the pattern is wrong, and, unless the blocks are sparse, if a swept value is not finite: then an
        entry outside the pattern need not be 0. The first time, the results of `run` along the seeds have to agree with
        those of `probe` along random directions. Call the function last: clearing large blocks removes everything else
        from the processor's cache.
        """
        if self.trusted is False:
            return None
        compression = self._compression
        results, swept = self._seen(run)
        finite = all_finite(swept)
        if not finite and not self.sparse:
            return None
        entries = compression.entries(swept)
        if self.trusted is None and finite:
            directions = compression.probes()
            seen = self._swept(probe(self._directions(directions)), len(directions))
            self.trusted = compression.agrees(entries, directions, seen, self._across)
            if not self.trusted:
                return None
        return results[: self.values], partial(self._blocks.filled, entries)

    def again(self, leaves: Mapping[str, Any], dtype: str) -> Found | None:
        """The result of `run` by the same plan; None if the leaves are not plain arrays, or there is no plan yet."""
        if not self.trusted:
            return None
        results, swept = self._seen(lambda along: along.again(leaves, dtype))
        if results is None or not all_finite(swept):
            return None
        return results[: self.values], partial(self._blocks.filled, self._compression.entries(swept))

    def _seen(self, run: Callable[[Along], list[Any] | None]) -> tuple[Any, Any]:
        """The results of a run along the seeds, and what was swept, in both directions; None twice without results."""
        if self._along is None:
            self._along = self._directions(self._compression.seeds())
        results = run(self._along)
        if results is None:
            return None, None
        swept = self._swept(results, self._compression.sweeps)
        if self._back is None:
            return results, swept
        others, back = self._back._seen(run)
        joined = namespace("numpy").library.concatenate
        return (None, None) if others is None else (results, joined((swept, back), axis=None))

    def _directions(self, rows: Any) -> Along:
        """Rows over all seeded entries, split by leaf."""
        units, first = {}, 0
        for name, kind in self._seeded:
            units[name] = rows[:, first : first + kind.size].reshape((len(rows), *kind.shape))
            first += kind.size
        return Along(self.tape, units)

    def _swept(self, results: Sequence[Any], count: int) -> Any:
        """The results of the sweeps side by side, a row for each direction."""
        library = namespace("numpy").library
        swept = results[self.values :]
        if len(swept) == 1:
            return self._flat(library, swept[0], count, self._shapes[0])
        rows = [self._flat(library, result, count, shape) for result, shape in zip(swept, self._shapes, strict=True)]
        return library.concatenate(rows, axis=1)

    @staticmethod
    def _flat(library: Any, value: Any, count: int, shape: tuple[int, int]) -> Any:
        """The results of one output, a row for each direction, even if it does not depend on the direction."""
        size, rank = shape
        if getattr(value, "shape", None) == (count, size):
            return value
        stacked = library.asarray(value)
        if stacked.ndim == rank:
            return library.broadcast_to(stacked.reshape(1, size), (count, size))
        return stacked.reshape(count, size)


def compressed_hessian(
    lowered: Lowered, output: Node, gradient: Sequence[Node], targets: Sequence[Node], sparse: bool
) -> Compressed | None:
    """Value, gradient and second derivatives in few sweeps; None if the Hessian has no structure to use.

    With `sparse` only None if the pattern or the results of the sweeps have too many entries.
    """
    total = sum(target.type.size for target in targets)
    if total < FEWEST and not sparse:
        return None
    from gradcli.execution.sparsity.compressed import symmetric
    from gradcli.execution.sparsity.patterns import pattern

    most = output.builder.entries if sparse else None
    flow = pattern(gradient, targets, most=most)
    if flow is None:
        return None
    compression = symmetric(flow)
    if SAVED * compression.sweeps > total if most is None else compression.sweeps * total > most:
        return None
    seeded = fresh(lowered, [output, *gradient], targets)
    columns = derivatives.jvp(gradient, targets, seeded)
    sizes = [target.type.size for target in targets]
    blocks = Blocks(compression, sizes, sizes, sparse)
    return Compressed([output, *gradient], columns, seeded, compression, blocks, False)


def best_jacobian(
    lowered: Lowered, targets: Mapping[str, Node], sparse: bool
) -> tuple[Compressed | None, dict[str, Compressed]]:
    """First derivatives in few sweeps: of all leaves together, or of those that have more structure by themselves."""
    together = compressed_jacobian(lowered, list(targets.values()), lowered.program.outputs, sparse)
    if len(targets) == 1:
        return together, {}
    by_leaf = {name: compressed_jacobian(lowered, [target], (), sparse) for name, target in targets.items()}
    alone = {name: compressed for name, compressed in by_leaf.items() if compressed is not None}
    heights = sum(output.type.size for output in lowered.program.outputs)
    cost = sum(alone[name].cost if name in alone else heights * target.type.size for name, target in targets.items())
    if together is not None and together.cost <= cost:
        return together, {}
    return None, alone


def compressed_jacobian(
    lowered: Lowered, targets: Sequence[Node], values: Sequence[Node], sparse: bool
) -> Compressed | None:
    """Values and first derivatives in few sweeps, forward or reverse; None as in `compressed_hessian`."""
    outputs = lowered.program.outputs
    heights = [output.type.size for output in outputs]
    widths = [target.type.size for target in targets]
    dense = sum(min(height, width) for height in heights for width in widths)
    if dense < FEWEST and not sparse:
        return None
    from gradcli.execution.sparsity.compressed import both_ways, by_columns, by_rows
    from gradcli.execution.sparsity.patterns import pattern

    most = outputs[0].builder.entries if sparse else None
    flow = pattern(outputs, targets, most=most)
    if flow is None:
        return None
    mixed = both_ways(flow, sum(widths))
    if mixed is not None:
        first, second = mixed
        reverse, sweeps = False, first.sweeps + second.sweeps
    else:
        along, across = by_columns(flow, sum(widths)), by_rows(flow, sum(widths))
        reverse = across.sweeps < along.sweeps
        first = across if reverse else along
        sweeps = first.sweeps
    if SAVED * sweeps > dense if most is None else sweeps * max(sum(heights), sum(widths)) > most:
        return None
    blocks = Blocks(first, heights, widths, sparse)

    def swept(part: Compression, values: Sequence[Node], reverse: bool, back: Compressed | None) -> Compressed:
        seeded = fresh(lowered, outputs, outputs if reverse else targets)
        sweep = derivatives.vjp(outputs, seeded, targets) if reverse else derivatives.jvp(outputs, targets, seeded)
        return Compressed(values, sweep, seeded, part, blocks, reverse, back)

    back = None if mixed is None else swept(second, (), True, None)
    return swept(first, values, reverse, back)


def fresh(lowered: Lowered, nodes: Sequence[Node], like: Sequence[Node]) -> list[Node]:
    """Inputs that no script can name, of the types of some nodes: directions to sweep along."""
    builder = lowered.program.builder
    with building(builder, [*lowered.program.nodes(), *nodes]) as open_builder:
        return [open_builder.fresh_leaf(node.type) for node in like]


def room_for(lowered: Lowered, nodes: Sequence[Node], shape: Shape) -> None:
    """Raise GradcliError GC508 if a result of this shape has too many entries."""
    builder = lowered.program.builder
    with building(builder, ()) as open_builder:
        open_builder.span = next((node.span for node in nodes if node.span is not None), None)
        open_builder.allow(Type("float", shape))


def unit_leaf(lowered: Lowered, nodes: Sequence[Node], like: Node) -> tuple[Node, dict[str, Any]]:
    """A leaf of the shape of `like`, and the unit vectors that it takes as a batch; for a scalar the constant 1."""
    if not like.type.shape:
        with building(lowered.program.builder, [*lowered.program.nodes(), *nodes]) as open_builder:
            return open_builder.constant(1), {}
    room_for(lowered, nodes, like.type.shape * 2)
    leaf = fresh(lowered, nodes, [like])[0]
    size = like.type.size
    units = namespace("numpy").eye(size)
    return leaf, {leaf.params["name"]: units.reshape((size, *like.type.shape))}


def hessian_sweeps(lowered: Lowered, gradient: Sequence[Node], targets: Mapping[str, Node]) -> list[UnitVectorSweep]:
    """A tape per leaf that moves along its unit vectors: one batched run gives its columns."""
    sweeps = []
    for name, target in targets.items():
        tangent, units = unit_leaf(lowered, gradient, target)
        columns = derivatives.jvp(gradient, [target], [tangent])
        sweeps.append(UnitVectorSweep(0, name, Along(Tape(columns), units)))
    return sweeps


def jacobian_sweeps(lowered: Lowered, targets: Mapping[str, Node]) -> list[UnitVectorSweep]:
    """A tape for each output and leaf that runs over the unit vectors of the smaller side."""
    sweeps = []
    for position, output in enumerate(lowered.program.outputs):
        for name, target in targets.items():
            if runs_forward(output, target):
                seed, units = unit_leaf(lowered, [output], target)
                rows = derivatives.jvp([output], [target], [seed])
            else:
                seed, units = unit_leaf(lowered, [output], output)
                rows = derivatives.vjp([output], [seed], [target])
            sweeps.append(UnitVectorSweep(position, name, Along(Tape(rows), units)))
    return sweeps


def runs_forward(output: Node, target: Node) -> bool:
    """Whether a Jacobian is cheaper column by column, in forward mode: the output has more entries than the target."""
    return output.type.size > target.type.size


def shaped(block: Any, shape: Shape, sparse: bool) -> Any:
    """A flat block as an array of this shape, or as a number; a sparse one as it is."""
    if sparse:
        return block
    return block.reshape(shape) if shape else block.item()


def thinned(block: Any, rows: int, sparse: bool) -> Any:
    """A dense block, or with `sparse` a CSR array of it with so many rows."""
    if not sparse:
        return block
    from scipy.sparse import csr_array

    return csr_array(array_of(block).reshape(rows, -1))


def as_last_axes(value: Any, shape: Shape, batch: Shape) -> Any:
    """A batch over unit vectors as trailing axes: (size, *shape) becomes shape + batch."""
    count = 1
    for n in batch:
        count *= n
    stacked = array_of(value)
    if stacked.ndim == len(shape):  # does not depend on the direction
        stacked = stacked[None].repeat(count, axis=0)
    axes = (*range(1, stacked.ndim), 0)
    return stacked.transpose(axes).reshape(shape + batch)

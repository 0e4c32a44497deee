"""The text of a kernel for groups that run together, and what it reads and writes.

A group without reductions is the body of CuPy's ElementwiseKernel. Those with reductions are a kernel of our template,
and a second one where rows are taken in pieces. Groups of one kernel are its phases: later ones use what
earlier ones have reduced in their row, so a row is read from memory once and then from the cache.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.execution.devices import words
from gradcli.execution.devices.bodies import Apart, Body
from gradcli.execution.devices.groups import Group
from gradcli.execution.devices.index import FIRST, Place
from gradcli.execution.devices.rows import entry_of, rest_of, rows_of
from gradcli.execution.devices.templates import Phase, combined, template

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gradcli.execution.devices.groups import Groups, Runs
    from gradcli.execution.plans.values import Op, Value

LARGEST = (1 << 31) - (1 << 25)  # entries that an int counts, with room for a step of all threads


class Kernel(NamedTuple):
    """One kernel: its name and text, and what it reads and writes.

    `text` is a body for ElementwiseKernel where `blocks` is None; else a whole kernel, for so many blocks of threads.
    """

    name: str
    text: str
    before: str  # the types and functions that the text uses
    entries: int  # that an ElementwiseKernel runs over
    arrays: tuple[Value, ...]
    numbers: tuple[Value, ...]
    values: tuple[Value, ...]
    sums: tuple[Op, ...]
    blocks: int | None = None
    pieces: int = 1
    rest: Kernel | None = None  # the second kernel, over the pieces of the first

    def parameters(self) -> tuple[str, str]:
        """The parameters of an ElementwiseKernel: what it reads, what it writes."""
        reads = [f"raw {value.dtype.name} a{at}" for at, value in enumerate(self.arrays)]
        reads += [f"{value.dtype.name} n{at}" for at, value in enumerate(self.numbers)]
        writes = [f"raw {value.dtype.name} o{at}" for at, value in enumerate(self.values)]
        return ", ".join(reads), ", ".join(writes)


class Writer:
    """Kernels of the groups of a program; `moving` names the inputs that have an entry for each point."""

    def __init__(self, groups: Groups, moving: Collection[str] | None = None) -> None:
        self.groups = groups
        self.moving = moving
        longest = max([value.size for op in groups.ops for value in (op.out, *op.args)], default=1)
        whole = "int" if moving is None and longest < LARGEST else "long long"
        self.before = (
            f"typedef {whole} whole;\n"
            "__device__ __forceinline__ whole within_(whole x, whole last)"
            f" {{ return x < 0 ? 0 : x > last ? last : x; }}{words.functions(groups.dtype)}"
        )

    # --- which groups are one kernel ---------------------------------------------------------------------------

    def chains(self) -> list[tuple[Group, ...] | Op]:
        """The work of a program; groups together that go through the same rows, one of what another has reduced."""
        work = self.groups.work
        taken: set[int] = set()
        found: list[tuple[Group, ...] | Op] = []
        for at, item in enumerate(work):
            if at in taken:
                continue
            if not isinstance(item, Group):
                found.append(item)
                continue
            chain = [item]
            if item.runs is not None and rows_of(item.runs).pieces == 1:
                for later in range(at + 1, len(work)):
                    other = work[later]
                    if isinstance(other, Group) and later not in taken and self._follows(chain, other):
                        chain.append(other)
                        taken.add(later)
            found.append(tuple(chain))
        return found

    def _follows(self, chain: Sequence[Group], other: Group) -> bool:
        """Whether a group can be a phase after others: the same rows, and whatever it reads is there before them."""
        first, last = chain[0], chain[-1]
        alike = other.runs == first.runs or (other.runs is None and last.runs is not None)
        if other.level != last.level + 1 or other.entries != first.entries or not alike:
            return False
        if any(value.size != first.entries for value in other.values):
            return False
        body = self._body([*chain, other], len(chain))
        try:
            self._words(body, other)
        except Apart:
            return False
        return all(self._early(value, first.level) for _, value in body.arrays.values())

    def _early(self, value: Value, level: int) -> bool:
        """Whether a value is in memory before the groups of a level run."""
        return value.op is None or value.constant or self.groups.is_before(value, level)

    # --- the text --------------------------------------------------------------------------------------------------

    def kernel(self, chain: Sequence[Group], name: str) -> Kernel:
        """The kernel of groups that run together."""
        arrays: dict[int, tuple[str, Value]] = {}
        numbers: dict[int, tuple[str, Value]] = {}
        phases, outputs, sums = [], 0, 0
        for at, group in enumerate(chain):
            body = self._body(chain, at, arrays, numbers)
            found, terms = self._words(body, group)
            lines = [entry_of(_full(group if group.runs else chain[0]))] if chain[0].runs else ["const whole e = i;"]
            lines += body.lines
            for value, word in zip(group.values, found, strict=True):
                guard = f"if (e < {value.size}) " if value.size < group.entries else ""
                lines.append(f"{guard}o{outputs}[e] = {word};")
                outputs += 1
            reduced = []
            for op, term in zip(group.sums, terms, strict=True):
                guard = f"if (e < {op.args[0].size}) " if op.args[0].size < group.entries else ""
                lines.append(f"{guard}s{sums} = {combined(op, f's{sums}', term)};")
                reduced.append((sums, op))
                sums += 1
            phases.append(Phase(tuple(lines), tuple(reduced)))
        made = Kernel(
            name,
            "\n".join(phases[0].lines),
            self.before,
            chain[0].entries,
            tuple([value for _, value in arrays.values()]),
            tuple([value for _, value in numbers.values()]),
            tuple([value for group in chain for value in group.values]),
            tuple([op for group in chain for op in group.sums]),
        )
        return made if chain[0].runs is None else self._reducing(made, _full(chain[0]), phases)

    def _body(
        self,
        chain: Sequence[Group],
        at: int,
        arrays: dict[int, tuple[str, Value]] | None = None,
        numbers: dict[int, tuple[str, Value]] | None = None,
    ) -> Body:
        """The body of one group, which knows what the groups before it have reduced."""
        group, groups = chain[at], self.groups
        own = {value.serial for before in chain[:at] for value in before.values}
        body = Body(
            group.entries,
            lambda value: groups.loaded(value, group.level) and value.serial not in own,
            lambda value: value.serial in groups.pairs,
            self.moving,
        )
        body.arrays = {} if arrays is None else arrays
        body.numbers = {} if numbers is None else numbers
        held = [op for before in chain[:at] for op in before.sums]
        body.held = {op.out.serial: f"s{number}" for number, op in enumerate(held)}
        if chain[0].runs is not None:
            _count_axes(body, chain[0].runs, chain[0])
        return body

    @staticmethod
    def _words(body: Body, group: Group) -> tuple[list[str], list[str]]:
        """The words for the values and for what is reduced."""
        wanted = [*group.values, *[op.args[0] for op in group.sums]]
        found = [body.word(value, FIRST if value.size == 1 else Place(0)) for value in wanted]
        return found[: len(group.values)], found[len(group.values) :]

    def _reducing(self, plain: Kernel, runs: Runs, phases: Sequence[Phase]) -> Kernel:
        """The text of a kernel with reductions, and the kernel that puts its pieces together."""
        rows = rows_of(runs)
        results = [f"{words.TYPES[op.out.dtype.name]}* __restrict__ r{at}" for at, op in enumerate(plain.sums)]
        parameters = [
            *(f"const {words.TYPES[one.dtype.name]}* __restrict__ a{at}" for at, one in enumerate(plain.arrays)),
            *(f"const {words.TYPES[one.dtype.name]} n{at}" for at, one in enumerate(plain.numbers)),
            *(f"{words.TYPES[one.dtype.name]}* __restrict__ o{at}" for at, one in enumerate(plain.values)),
            *results,
        ]
        text = template(self.before, plain.name, rows, parameters, phases)
        rest = None
        if rows.pieces > 1:
            place = f"k * {rows.rows} + row" if rows.beside else f"row * {rows.pieces} + k"
            lines = [f"s{at} = {combined(op, f's{at}', f'a{at}[{place}]')};" for at, op in enumerate(plain.sums)]
            reads = [f"const {words.TYPES[op.out.dtype.name]}* __restrict__ a{at}" for at, op in enumerate(plain.sums)]
            name, last = f"{plain.name}_rest", rest_of(rows)
            phase = Phase(tuple(lines), tuple(enumerate(plain.sums)))
            second = template(self.before, name, last, [*reads, *results], [phase])
            rest = Kernel(name, second, "", plain.entries, (), (), (), plain.sums, last.blocks)
        return plain._replace(text=text, blocks=rows.blocks, pieces=rows.pieces, rest=rest)


def _full(group: Group) -> Runs:
    """How a group runs: as long as the longest of its values, where it reduces all entries."""
    assert group.runs is not None
    whole = group.runs.reduced == (True,)
    return group.runs._replace(lengths=(group.entries,)) if whole else group.runs


def _count_axes(body: Body, runs: Runs, group: Group) -> None:
    """Tell the body what the threads know of their entry: its axes by the row and the column that they count."""
    if runs.rows == 1:
        body.rows = {"0"}
        return
    body.rows = {"row"}
    if len(runs.lengths) != 2:
        return
    shapes = {tuple([n for n in op.args[0].shape if n > 1]) for op in group.sums}
    if len(shapes) != 1:
        return
    shape = shapes.pop()
    split = next(at for at in range(1, len(shape)) if prod(shape[:at]) == runs.lengths[0])
    parts: tuple[Any, ...] = (shape[:split], shape[split:])
    names = ["k" if gone else "row" for gone in runs.reduced]
    axes = [body.places.unravelled(name, part) for name, part in zip(names, parts, strict=True)]
    body.places.given = (list(shape), [*axes[0], *axes[1]])
    kept = runs.reduced.index(False)
    body.rows.add(body.places.ravelled(axes[kept], parts[kept]))

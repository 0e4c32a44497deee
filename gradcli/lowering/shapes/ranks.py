"""Infers shapes for the names whose shapes a script leaves open.

Ranks follow the conventions of mathematical writing (`A` is a matrix, `x` a vector, `lam` a number), corrected by the
use of the name in the script. Sizes start out as different primes; if an operation needs two of them to be equal, they
become one. Choices that remain are assumptions, recorded in `Assumed`.
"""

from __future__ import annotations

import re
from heapq import heappop, heappush
from itertools import zip_longest
from typing import NamedTuple

from gradcli.base.diagnostics import GradcliError, error
from gradcli.graph.node import DATA, reachable
from gradcli.language.limits import Limits
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.language.syntax import (
    Binary,
    Call,
    Comprehension,
    Declare,
    Name,
    Number,
    Subscript,
    Transpose,
    children,
    names_in,
    nodes_of,
)
from gradcli.lowering import NO_CLAIMS, lower, refuse_numbers
from gradcli.lowering.shapes.open_shapes import OpenShapes
from gradcli.lowering.shapes.open_sizes import OpenSizes, factors, in_names, share_text, value_of
from gradcli.primitives import functions
from gradcli.primitives.comparison import cast
from gradcli.primitives.movement import broadcast, reshape
from gradcli.primitives.positions import take_along
from gradcli.primitives.size_arguments import MAX_ENTRIES, MOST_MORE, named_size, sum_of_sizes, sum_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.graph.node import Node
    from gradcli.graph.types import Shape
    from gradcli.language.syntax import Script, Syntax
    from gradcli.lowering import Lowered

    Symbols = tuple[str | int, ...]  # the sizes of a name: symbols, or numbers that the script fixes

# Sizes that stand for symbols: primes p with (p - 1)/2 prime as well, so that p and p - 1 can be distinguished in a
# product. The small ones are for arrays that are too large with the others.
LARGE = (
    *(2039, 2063, 2099, 2207, 2447, 2459, 2579, 2819, 2879, 2903, 2963, 2999),
    *(3023, 3119, 3167, 3203, 3467, 3623, 3779, 3803, 3863, 3947, 4007, 4079),
    *(4127, 4139, 4259, 4283, 4547, 4679, 4703, 4787, 4799, 4919, 5087, 5099),
)
SMALL = (
    *(47, 83, 107, 179, 263, 359, 467, 503, 587, 839, 887, 1019),
    *(23, 59, 167, 227, 347, 383, 479, 563, 719, 863, 983, 1187),
)
PROBES = 12  # of a set
PAIRS = ((0, 1), (1, 2), (3, 4))  # of sets, the last of small sizes: what both of a pair agree on holds at every size
LETTERS = ("m", "n", "k", "p", "q", "r", "h", "d", "t", "s", "l", "g", "j", "u", "v", "w")
GREEK = frozenset(
    [
        *"αβγδεηκλνρτωφψ",
        "alpha",
        "beta",
        "gamma",
        "delta",
        "eps",
        "epsilon",
        "eta",
        "kappa",
        "lam",
        "lambda_",
        "nu",
        "rho",
    ]
    + ["tau", "omega", "phi", "psi", "lr", "dt", "decay", "scale", "rate", "temperature"]
)
# numbers too where a script has no matrix products, or divides by them
LATIN = frozenset([*"cdhklmnrstμσ", "mu", "sigma"])
MATRIX, VECTOR, NUMBER = 2, 1, 0
RANK_NAMES = ("a number", "a vector", "a matrix")
CAPITAL = ((MATRIX, 0), (VECTOR, 2), (NUMBER, 3))  # ranks with their costs
LETTER = ((VECTOR, 0), (NUMBER, 1), (MATRIX, 3))
ENTRIES = ((VECTOR, 0), (MATRIX, 3))
COEFFICIENT = ((NUMBER, 0), (VECTOR, 2), (MATRIX, 4))
MOST_TRIES = 200  # assignments of ranks
SHAPE_ERRORS = "GC3"


class Assumed(NamedTuple):
    """The shapes of the free names, and the names that could also have another rank.

    `shapes` has a number, a symbol or a sum of them such as `n - 1` for each axis; `others` has the other ranks.
    `counts` has such a size for each name at the end of a range.
    """

    shapes: dict[str, Symbols]
    symbols: tuple[str, ...]
    others: dict[str, tuple[int, ...]]
    counts: dict[str, str | int] = {}

    def at(self, sizes: Mapping[str, int]) -> dict[str, Shape]:
        """The shapes for these sizes."""
        return {name: tuple([value_of(size, sizes.__getitem__) for size in axes]) for name, axes in self.shapes.items()}

    def counted(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The names at the ends of ranges, for these sizes."""
        return {name: value_of(size, sizes.__getitem__) for name, size in self.counts.items()}

    def fixed(self, sizes: Mapping[str, int]) -> FixedShapes:
        """The shapes and sizes for these sizes, for lowering."""
        return FixedShapes(self.at(sizes), {**sizes, **self.counted(sizes)})

    def place(self, symbol: str) -> str:
        """The size, a symbol or a sum of them, as an expression of the language: of a vector if there is one."""
        if not symbol.isidentifier():
            return re.sub(r"[^\W\d]\w*", lambda match: self.place(match[0]), symbol)
        uses = [(len(axes), name, axes.index(symbol)) for name, axes in self.shapes.items() if symbol in axes]
        if not uses:
            return symbol  # of a name that counts no entries
        _, name, axis = min(uses, key=lambda use: (use[2] > 0, use[0]))
        return f"len({name})" if axis == 0 else f"shape({name})[{axis}]"


def probes(scripts: Iterable[Syntax], place: int) -> tuple[int, ...]:
    """A set of sizes that stand for symbols, none of which is found in a number of some scripts."""
    numbers = numbers_of(scripts)

    def stands_alone(p: int) -> bool:
        return all(n % part and abs(n - part) > MOST_MORE for n in numbers - {0} for part in (p, p // 2))

    sizes = [*filter(stands_alone, LARGE if place < 3 else SMALL)]
    return tuple(sizes[place % 3 * PROBES :][:PROBES])


def unallocated(limits: Limits) -> Limits:
    """The limits for a program that is never run: its arrays may be larger."""
    return Limits(**{**limits.as_dict(), "elements": MAX_ENTRIES})


def numbers_of(scripts: Iterable[Syntax]) -> set[int]:
    """The whole numbers that stand in some scripts."""
    return {n for script in scripts for node in nodes_of(script) if isinstance(node, Number) for n in node.ratio}


def symbols_of(shape: Shape, sizes: Mapping[str, int]) -> Symbols:
    """A shape in symbols, which have these sizes: different primes."""
    names = {size: symbol for symbol, size in sizes.items()}
    return tuple([named_size(size, names) or size for size in shape])


class Convention(NamedTuple):
    """The ranks of names in a script that computes with arrays, or also with products of matrices or vectors."""

    arrays: bool
    products: bool
    divisors: frozenset[str]  # names by which it divides
    positions: dict[str, int]  # how many are read in an entry of a name
    whole: frozenset[str]  # names in places that need an array
    apart: frozenset[str]  # names of which a distance is taken

    def choices(self, name: str) -> tuple[tuple[int, int], ...]:
        """The ranks that a name may have, each with its cost; the usual rank costs nothing."""
        if not self.arrays:
            return ((NUMBER, 0),)
        if name in self.positions:
            return ENTRIES if self.positions[name] == 1 else ((self.positions[name], 0),)
        stem = name.rstrip("0123456789_")
        if name[0].isupper() and self.positions and name not in self.whole:
            return COEFFICIENT  # beside entries
        number = stem in LATIN and name not in self.apart and (not self.products or name in self.divisors)
        if number or stem in GREEK:
            return COEFFICIENT
        return CAPITAL if name[0].isupper() else LETTER

    def open_ranks(self, name: str) -> list[int]:
        """The ranks that the convention leaves open: of a small letter vector and number."""
        return [rank for rank, _ in self.choices(name) if rank != MATRIX and not name[0].isupper()]

    def cost(self, name: str, rank: int) -> int:
        """The cost of this rank for a name."""
        return next((cost for choice, cost in self.choices(name) if choice == rank), 0)


class FixedShapes(OpenShapes):
    """Shapes that are known, and the sizes of symbols."""

    __slots__ = ("counts", "shapes", "sizes")
    chosen, symbolic = False, True

    def __init__(self, shapes: Mapping[str, Shape], sizes: Mapping[str, int]) -> None:
        self.shapes = shapes
        self.sizes = sizes
        self.counts = frozenset(sizes)

    def shape(self, name: str) -> Shape:
        return self.shapes.get(name, ())

    def size(self, name: str, others: int) -> int:
        return self.sizes[name]


class Guess(OpenSizes):
    """Shapes by ranks while a script is lowered."""

    __slots__ = ("axes", "convention", "known", "ranks")
    symbolic = guessed = True

    def __init__(self, ranks: Mapping[str, int], known: Mapping[str, Symbols], convention: Convention) -> None:
        super().__init__()
        self.ranks = dict(ranks)
        self.known = known
        self.convention = convention
        self.axes: dict[str, tuple[Any, ...]] = {}

    def shape(self, name: str) -> Shape:
        if name not in self.axes:
            rank = self.ranks.setdefault(name, self.convention.choices(name)[0][0])
            self.axes[name] = self.known.get(name, tuple([(name, axis) for axis in range(rank)]))
        return tuple([self.length(axis) for axis in self.axes[name]])

    def end(self, problem: GradcliError | None) -> None:
        """A size may stay open."""


def declared(source: Source, script: Script, assumed: Assumed) -> Source:
    """A script with a line before it that declares its arrays."""
    own = {statement.name.id for statement in script.statements if isinstance(statement, Declare)}
    shapes = {name: ", ".join(map(str, axes)) for name, axes in assumed.shapes.items() if axes and name not in own}
    line = "; ".join([f"{name}[{axes}] in real" for name, axes in shapes.items()])
    whole = Source(f"{line}\n{source.text}", source.name)
    whole.scalars = source.scalars
    return whole


def with_shapes(
    source: Source, point: Mapping[str, Any], limits: Limits, problem: GradcliError, claims: Mapping[str, str]
) -> Source:
    """A script that a problem of shapes ends, with declarations of those that are assumed for it.

    A claim about an array is its Jacobian: where the output is no number, or no claim fits one, it is an array.
    Raises the problem where it is another, or no shapes fit, and what else is wrong with the script.
    """
    if problem.diagnostics[0].code[:3] != "GC3":
        raise problem
    fitting: Source | None = None
    for scalar in (True, False):
        try:
            script = parse(source, limits)
            assumed = assumed_shapes(script, at=point, known={}, limits=limits, scalar=scalar)
            assumed = assumed._replace(
                shapes={name: axes for name, axes in assumed.shapes.items() if name not in point}
            )
            declaring = declared(source, script, assumed)
            refuse_numbers(lower(parse(declaring, limits), at=point, limits=limits), claims)
            fitting = fitting or declaring
            lower(parse(declaring, limits), at=point, limits=limits, claims=claims)
            return declaring
        except GradcliError as other:
            if fitting is None and other.diagnostics[0].code[:3] != "GC3":
                raise other from None
    if fitting is None:
        raise problem
    return fitting


def assumed_shapes(
    script: Script,
    *,
    at: Mapping[str, Any],
    known: Mapping[str, Symbols],
    limits: Limits,
    scalar: bool = True,
) -> Assumed:
    """The shapes of the free names of a script; with `scalar` such that its output is a number.

    `known` are given shapes, in symbols and numbers. Raises GradcliError for a script that no shapes fit.
    """
    products = any(map(is_product, nodes_of(script)))
    whole, positions = frozenset(whole_arguments(script)), positions_read(script)
    names = divisors(script), positions, whole, distances(script)
    convention = Convention(bool(known) or reads_arrays(script), products, *names)

    large = unallocated(limits)

    def fits(ranks: Mapping[str, int]) -> tuple[Guess, Lowered | GradcliError]:
        shapes = Guess(ranks, known, convention)
        return shapes, fitted(script, at, shapes, large, scalar)

    first: GradcliError | None = None
    waiting: list[tuple[int, int, dict[str, int]]] = [(0, 0, {})]
    seen: set[tuple[tuple[str, int], ...]] = set()
    for tried in range(1, MOST_TRIES):
        if not waiting:
            break
        _, _, ranks = heappop(waiting)
        shapes, problem = fits(ranks)
        if not isinstance(problem, GradcliError):
            others = {}
            for name, rank in shapes.ranks.items():
                if name in shapes.axes and name not in known and name not in whole:
                    near = [other for other in convention.open_ranks(name) if other != rank]
                    ways = [other for other in near if fit_as_well(*fits({**shapes.ranks, name: other}))]
                    others.update({name: tuple(ways)} if ways else {})
            demoted = any(rank < MATRIX == convention.choices(name)[0][0] for name, rank in shapes.ranks.items())
            if first is not None and demoted and first.diagnostics[0].code == "GC307":
                break  # a product of matrices and vectors that is not a number: no reason to read a matrix as a vector
            return named(shapes, others, problem)
        first = first or in_symbols(problem, shapes, script)
        if not convention.arrays or not all(fault.code.startswith(SHAPE_ERRORS) for fault in problem.diagnostics):
            break
        for name in shapes.axes:
            rank = shapes.ranks[name]
            ordered = [choice for choice, _ in convention.choices(name)]
            if name not in known and (place := ordered.index(rank) + 1) < len(ordered):
                other = {**shapes.ranks, name: ordered[place]}
                own = tuple(sorted(other.items()))
                if own not in seen:
                    seen.add(own)
                    total = sum(convention.cost(choice, rank) for choice, rank in other.items())
                    heappush(waiting, (total, tried * 100 + len(waiting), other))
    assert first is not None
    raise first


def in_symbols(problem: GradcliError, shapes: Guess, script: Script) -> GradcliError:
    """An error with letters in place of the sizes that were chosen for axes, and how to give their shapes."""
    free = [letter for letter in LETTERS if letter not in names_in(script)]
    names = {size: axis if isinstance(axis, str) else free.pop(0) for size, axis in shapes.roots().items()}
    unknown = [name for name in shapes.axes if name not in shapes.known]
    example = ", ".join([f"{name}[{', '.join('34'[: shapes.ranks[name]]) or '5'}]" for name in unknown[:1]])
    declare = f"declare shapes, as in `{example} in real`, or give them with --shape" if example else None
    return in_names(problem, names, declare)


def fitted(
    script: Script, at: Mapping[str, Any], shapes: Guess, limits: Limits, scalar: bool
) -> Lowered | GradcliError:
    """Make sizes equal until a script can be lowered; returns the error if it cannot."""
    while True:
        try:
            lowered = lower(script, at=at, limits=limits, shapes=shapes, mode=NO_CLAIMS)
        except GradcliError as problem:
            return problem
        pair = next(alike(lowered), None)
        if pair is not None and shapes.equate(*pair):
            continue
        outputs = lowered.program.outputs
        if scalar and (len(outputs) > 1 or outputs[0].shape):
            return error(
                "GC307",
                f"a gradient needs a scalar output, and this is {result_text(outputs)}",
                outputs[0].span,
                help="take sum(...) or mean(...) of it, or give the shape of a name with --shape",
            )
        return lowered


def result_text(outputs: Sequence[Node]) -> str:
    """The type of a script's result, without the sizes that were chosen for it."""
    rank = len(outputs[0].shape)
    return (
        f"{len(outputs)} values" if len(outputs) > 1 else RANK_NAMES[rank] if rank < 3 else f"an array of rank {rank}"
    )


def fit_as_well(shapes: Guess, lowered: Lowered | GradcliError) -> bool:
    """Whether other ranks make a program too, one with an array."""
    return not isinstance(lowered, GradcliError) and any(shapes.axes.values())


def alike(lowered: Lowered) -> Iterator[tuple[int, int]]:
    """Sizes that are taken to be equal: of a matrix whose diagonal is read, and of rows of which each has a label."""
    for node in reachable(lowered.program.outputs):
        if not node.args:
            continue
        name, x = node.primitive.name, node.args[0]
        if name == "slice" and x.primitive is reshape and len(x.args[0].shape) == 2:
            rows, columns = x.args[0].shape
            if rows != columns and node.params["step"] == (columns + 1,):
                pairs = zip(factors(rows), factors(columns), strict=False)
                yield from (pair for pair in pairs if pair[0] != pair[1])
        elif name == "take_along" and x.primitive is take_along:  # x[arange(n), labels]
            size, count = x.args[0].shape[x.params["axis"]], x.shape[x.params["axis"]]
            if size != count and is_range(x.args[1], count):
                yield size, count


def is_range(positions: Node, count: int) -> bool:
    """Whether positions are 0, 1, 2, ... in this order, as `arange` returns them."""
    while positions.primitive in (reshape, broadcast, cast):
        (positions,) = positions.args
    return positions.primitive is DATA and positions.builder.data[positions.params["digest"]].flat == tuple(
        range(count)
    )


def named(shapes: Guess, others: dict[str, tuple[int, ...]], lowered: Lowered) -> Assumed:
    """The assumption with letters for sizes, in the order in which they occur."""
    roots = shapes.roots()
    leaves = lowered.program.leaves
    free = {name: leaf.node.shape for name, leaf in leaves.items() if name not in lowered.values}
    sums = {shapes.length(axis): parts for axis, parts in shapes.sums.items()}
    for size in {size for shape in free.values() for size in shape}.difference(roots, sums):
        total = sum_of_sizes(size, roots)
        if total is not None and any(isinstance(roots[part], str) for part in total[0]):  # declared as x[n + m]
            sums[size] = tuple([roots[part] for part in total[0]]), total[1]
    largest_first = sorted(free.values(), key=len, reverse=True)
    used = [size for shape in largest_first for size in shape]
    open_axes = list(dict.fromkeys([roots[size] for size in used if size in roots]))
    open_axes += [part for size in used if size in sums for part in sums[size][0] if part not in open_axes]
    open_axes += [name for name in shapes.unknown() if shapes.first(name) == name and name not in open_axes]
    taken = names_in(lowered.script)
    letters = [letter for letter in LETTERS if letter not in taken and letter not in open_axes]
    if len(open_axes) == 1 and "n" in letters:
        letters = ["n"]
    symbols = {axis: axis if isinstance(axis, str) else letters.pop(0) for axis in open_axes}
    literals = numbers_of([lowered.script])

    def symbol(size: int) -> str | int:
        if size in roots:
            return symbols[roots[size]]
        if size not in sums:
            share = share_text(size, {root: str(symbols.get(axis, axis)) for root, axis in roots.items()})
            if share and not literals.intersection([size, *(size + start for start in literals)]):
                hint = "give the sizes of arrays, as in --shape x=4"
                raise error("GC306", f"an array has {share} entries, for which there is no letter", help=hint)
            return size
        parts, more = sums[size]
        return sum_text([symbols[part] for part in parts], more)

    def own(name: str, shape: Shape) -> Symbols:
        known = shapes.known.get(name, ())
        return tuple(
            [
                axis if isinstance(axis, str) and not axis.isidentifier() else symbol(size)
                for axis, size in zip_longest(known, shape)
            ]
        )

    counts = {name: symbol(shapes.length(name)) for name in sorted(shapes.counts)}
    return Assumed({name: own(name, shape) for name, shape in free.items()}, tuple(symbols.values()), others, counts)


def reads_arrays(script: Script) -> bool:
    """Whether a script computes with arrays: it has matrix products, indices, or functions of whole arrays."""
    known = functions()
    for node in nodes_of(script):
        if isinstance(node, (Subscript, Transpose, Comprehension)) or is_product(node):
            return True
        if isinstance(node, Call) and node.function.id in known and not known[node.function.id].pointwise:
            if not (node.function.id in ("max", "min") and len(node.args) > 1):
                return True
    return False


def is_product(node: Syntax) -> bool:
    """Whether a node of the syntax is a product of matrices or vectors."""
    return isinstance(node, Binary) and node.op == "@"


def positions_read(script: Script) -> dict[str, int]:
    """How many positions are read in an entry of each name at variables of comprehensions: 2 of A in A[i, j]."""
    clauses = [clause for node in nodes_of(script) if isinstance(node, Comprehension) for clause in node.clauses]
    variables = {clause.target.id for clause in clauses}
    read: dict[str, int] = {}
    for node in nodes_of(script):
        if isinstance(node, Subscript) and isinstance(node.value, Name):
            count = sum(not variables.isdisjoint(names_in(item)) for item in node.items)
            read[node.value.id] = max(count, read.get(node.value.id, 0))
    return {name: count for name, count in read.items() if count}


def divisors(script: Script) -> frozenset[str]:
    """The names by which a script divides, also in powers, roots and products with numbers: `X/(2*s**2)`."""
    below = [node.right for node in nodes_of(script) if isinstance(node, Binary) and node.op == "/"]
    names = set()
    for node in below:  # the list grows while it is read
        if isinstance(node, Name):
            names.add(node.id)
        elif isinstance(node, Binary) and node.op in ("*", "**"):
            below += [node.left] if node.op == "**" else [node.left, node.right]
        elif isinstance(node, Call) and node.function.id == "sqrt":
            below += node.args
    return frozenset(names)


def distances(script: Script) -> frozenset[str]:
    """The names of which a script takes a distance: `norm(x - mu)`."""
    calls = [node for node in nodes_of(script) if isinstance(node, Call) and node.function.id == "norm"]
    gaps = [call.args[0] for call in calls if call.args]
    ends = [end for gap in gaps if isinstance(gap, Binary) and gap.op == "-" for end in (gap.left, gap.right)]
    return frozenset([end.id for end in ends if isinstance(end, Name)])


def whole_arguments(script: Script) -> set[str]:
    """The names in places that need an array: in a matrix product, before an index, in a reduction."""
    known = functions()
    names: set[str] = set()
    for node in nodes_of(script):
        whole = isinstance(node, (Subscript, Transpose)) or is_product(node)
        if isinstance(node, Call) and node.function.id in known:
            whole = not known[node.function.id].pointwise
        names |= {child.id for child in children(node) if isinstance(child, Name)} if whole else set()
    return names

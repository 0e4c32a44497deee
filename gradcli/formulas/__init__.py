"""Gradients as formulas in the user's terms: a graph is read in index notation, shortened, and written as matrices.

`index_terms` is the algebra, `index_positions` what slices and reshapes make of indices, `index_reading` reads graphs,
`recognition` and `matrix_rules` find shorter forms, `matrix_text` writes them, `normal_form` compares two of them.
Nothing that these write is proved: callers confirm a formula before they show it.
`index_proof` proves claims for all sizes, and `staged_proof` those about networks, node by node.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from gradcli.formulas.index_positions import Index
from gradcli.formulas.index_proof import same_form
from gradcli.formulas.index_reading import Reader
from gradcli.formulas.index_terms import (
    EIGENVECTORS,
    BracketedSum,
    Delta,
    InputEntry,
    NoFormula,
    TooLong,
    add,
    key,
    leaves_in,
    merged,
    multiplied,
    over_all,
    single,
)
from gradcli.formulas.matrix_rules import joined_triangles, split_products
from gradcli.formulas.matrix_text import MatrixWriter, nested
from gradcli.formulas.recognition import shortened
from gradcli.language.syntax import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gradcli.formulas.index_terms import FreshIndices, Sum
    from gradcli.graph.node import Node

    Called = Mapping[Node, str] | None
    Sizes = Mapping[int, str] | None

MOST_LISTED = 9  # entries of an array that is written as a list of them


class JacobianRows(NamedTuple):
    """The rows of a Jacobian: the input that stands for the cotangent of the output, and the shape of the output."""

    name: str
    shape: tuple[int, ...]


def formula_texts(
    node: Node,
    called: Called = None,
    sizes: Sizes = None,
    rows: JacobianRows | None = None,
) -> Iterator[str]:
    """Formulas for a node in the script language, the best first; its builder must be open.

    `called` are nodes with names of their own, beside the leaves. `sizes` are names for sizes, which are different
    primes p then, such that (p - 1)/2 is prime too. With `rows` the node is a linear map of that input, and the
    formulas are those of its matrix: rows first, then the axes of the node.
    """
    for write in (whole_text, listed_text):
        try:
            yield write(node, called, sizes, rows)
        except TooLong:
            return
        except NoFormula:
            continue


def why_none(node: Node, rows: JacobianRows | None = None) -> NoFormula:
    """Why a node has no formula; its builder must be open."""
    try:
        whole_text(node, rows=rows)
    except NoFormula as reason:
        return reason
    return NoFormula("it is too long to be read")


def whole_text(node: Node, called: Called = None, sizes: Sizes = None, rows: JacobianRows | None = None) -> str:
    """The formula of a node as one array; raises NoFormula where there is none."""
    reader = Reader(called)
    axes = tuple([reader.names.index(n) for n in node.shape])
    read = joined_triangles(reader.entry(node, axes), reader.names)
    if rows is not None:
        outer = tuple([reader.names.index(n) for n in rows.shape])
        read = matrix_of(read, rows.name, outer, reader.names)
        axes = (*outer, *axes)
        if len(axes) > 2:
            raise NoFormula("it has more than two axes")
    writer = MatrixWriter(reader, sizes)
    if f"whole {EIGENVECTORS}" in key(read):
        raise NoFormula("it reads eigenvectors one by one")
    plain, split = shortened(read, reader.names), split_products(read, reader.names)
    trees = [writer.sum(shortened(plain, reader.names), axes).tree]
    if key(split) != key(read):
        trees.append(writer.sum(shortened(shortened(split, reader.names), reader.names), axes).tree)
    return min(map(writer.text, trees), key=len)


def matrix_of(linear: Sum, name: str, rows: tuple[Index, ...], names: FreshIndices) -> Sum:
    """The matrix of a linear map: a sum with entry `rows` of the unit matrix in place of an input.

    The backward pass of `y . u` is linear in the cotangent u, so each term has one factor `u[k]`. In row i of the
    Jacobian that factor is 1 where k is i, else 0.
    """
    parts = []
    for term in linear:
        carriers = [factor for factor in term.factors if name in leaves_in(single(factor[0]))]
        base, exponent = carriers[0] if len(carriers) == 1 else (None, 0)
        rest = term._replace(factors=tuple([factor for factor in term.factors if factor[0] is not base]))
        if exponent == 1 and isinstance(base, BracketedSum):
            parts.append(matrix_of(multiplied((rest,), base.inside, names), name, rows, names))
        elif exponent == 1 and isinstance(base, InputEntry):
            pairs = list(zip(rows, base.at, strict=True))
            axes = {own: row for row, own in pairs if isinstance(own, Index) and own not in term.bound}  # of the result
            changes = {own: row for own, row in axes.items() if own.size == row.size}
            units = [(Delta(*pair), Fraction(1)) for pair in pairs]
            moved = names.put((rest._replace(bound=()),), changes)
            rows_of_term = tuple([merged(part.coefficient, (*part.factors, *units)) for part in moved])
            parts.append(over_all(rows_of_term, term.bound, names))
        else:
            raise NoFormula("it is a linear map whose matrix has no formula")
    return add(*parts)


def entries_text(node: Node, called: Mapping[Node, str]) -> str:
    """The formula of an entry of a node, as a formula of whole arrays that may only broadcast to the node's shape."""
    reader = Reader(called)
    axes = tuple([reader.names.index(n) for n in node.shape])
    writer = MatrixWriter(reader)
    return writer.text(writer.sum(shortened(reader.entry(node, axes), reader.names), axes, exact=False).tree)


def listed_text(node: Node, called: Called = None, sizes: Sizes = None, rows: JacobianRows | None = None) -> str:
    """The formula of a small array as a list of its entries."""
    if rows is not None or not 1 <= len(node.shape) <= 2 or node.type.size > MOST_LISTED or not node.type.size:
        raise NoFormula("it has too many entries to list them")
    reader = Reader(called)
    entries = []
    for at in product(*[range(n) for n in node.shape]):
        entry = shortened(shortened(reader.entry(node, at), reader.names), reader.names)
        entries.append(MatrixWriter(reader, sizes).sum(entry, ()).tree)
    if all(whole_number(entry) == 0 for entry in entries):
        return f"zeros({', '.join(map(str, node.shape))})"
    return MatrixWriter(reader).text(nested(entries, node.shape))


__all__ = ["NoFormula", "JacobianRows", "entries_text", "formula_texts", "same_form", "why_none"]

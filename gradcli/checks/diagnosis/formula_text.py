"""Texts in the script language, read back as nodes on the leaves of a case.

A formula that a report proposes is parsed like a script and compared with what it stands for before it is shown.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.checks.decide.case import RIGHT
from gradcli.checks.decide.chosen_points import scattered
from gradcli.checks.decide.floats import evaluated, evaluator
from gradcli.checks.formatting import called, node_text
from gradcli.formulas import formula_texts
from gradcli.graph.building import building
from gradcli.graph.node import DATA, LEAF, Node, reachable
from gradcli.language.parser import parse
from gradcli.language.source import Source, words
from gradcli.lowering import lower
from gradcli.primitives.broadcasting import stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gradcli.checks.decide.case import Case, Values
    from gradcli.checks.subjects import Subject

TRIES = 8  # points that are made to compare a text with what it stands for
LONGEST = 600  # characters of a formula that is worth reading
MOST_STEPS = 200  # nodes of a gradient that is written down: of a longer one no text is that short
BESIDE = 2  # points near the given one at which a formula must hold
MOST_ENTRIES = 64  # of a leaf: of a larger one evenly spaced entries are compared in balls, all of them in floats
FEWEST_ENTRIES, MOST_WORK = 2, 60_000  # so many, or as many as there are entries of all nodes for: a count, no clock
CLOSE, TINY = 1e-7, 1e-12  # relative to the largest entry, and what beside an exact 0 is a rounding error, for floats


@contextmanager
def room_to_build(subject: Subject, most: int) -> Iterator[None]:
    """Inside, the builder of a subject is open and takes so many more nodes, which do not count for the script."""
    builder = subject.judged.builder
    limit, before = builder.limit, builder.count
    builder.limit = max(limit, before + most)
    try:
        with building(builder, reachable(subject.nodes())):
            yield
    finally:
        builder.limit = limit + builder.count - before


class FormulaNames(NamedTuple):
    """What a formula may read: a node for each name, and the names that mean something else in the script."""

    nodes: Mapping[str, Node]
    taken: frozenset[str]


def readable(case: Case) -> FormulaNames:
    """The leaves of a case by the names that a claim would use for them, and what it differentiates by."""
    subject = case.subject
    nodes = {}
    for node in reachable(subject.nodes()):
        if node.primitive is LEAF:
            name = str(node.params["name"])
            nodes[name.rpartition(".")[2] if subject.kind == "vjp" else name] = node
        elif node.primitive is DATA and (name := node.builder.data[node.params["digest"]].name):
            nodes[name] = node
    target = subject.target
    own = None if target is None else subject.names.get(target)
    if target is None or own is None:
        return FormulaNames(nodes, subject.taken)
    return FormulaNames({**nodes, own: target}, subject.taken - {own})


def read_back(case: Case, names: FormulaNames, text: str, like: Node) -> Node | None:
    """The node of a formula on the leaves of a script, of the type of another node.

    None for a text that cannot be read, or that reads or calls what the script means otherwise. The builder of the case
    must be open.
    """
    builder = like.builder
    values = dict(zip(names.nodes, evaluated(list(names.nodes.values()), case.values), strict=True))
    try:
        lowered = lower(parse(Source(text, "<formula>")), at=values)
        outputs, leaves = lowered.program.outputs, lowered.program.leaves
        if len(outputs) != 1 or not set(leaves) <= set(names.nodes) or not names.taken.isdisjoint(words(text)):
            return None
        copies: dict[Node, Node] = {}
        for node in reachable(outputs):
            if node.primitive is LEAF:
                copies[node] = names.nodes[node.params["name"]]
            elif node.primitive is DATA:
                digest = node.params["digest"]
                copies[node] = builder.array(digest, node.builder.data[digest], node.type)
            else:
                copies[node] = builder.copied(node, tuple(copies[arg] for arg in node.args))
        node = copies[outputs[0]]
        if node.type.shape == () != like.type.shape:
            node = stretch(node, like.type.shape)
        return node if node.type == like.type else None
    except (GradcliError, ArithmeticError, ValueError, LookupError):
        return None


def agreement(node: Node, other: Node) -> Callable[[Values], bool]:
    """Whether two nodes have the same finite floats up to rounding, as a function of the point."""
    both = evaluator([node, other])

    def at(values: Values) -> bool:
        ours, theirs = both(values)
        scale = float(np.abs(theirs).max(initial=0.0))
        near = CLOSE * scale if ours.any() else TINY
        return bool(np.isfinite(scale)) and bool((np.abs(ours - theirs) <= near).all())

    return at


def valid(
    case: Case, names: FormulaNames, texts: Iterable[str], node: Node, longest: int = LONGEST
) -> Iterator[tuple[str, Node]]:
    """Those of some texts for a node that are read back with its value, each with the node that it stands for.

    The builder of the case must be open.
    """
    for text in texts:
        formula = read_back(case, names, text, node) if len(text) <= longest else None
        if formula is not None and (formula is node or agreement(formula, node)(case.values)):
            yield text, formula


def as_typed(case: Case, names: FormulaNames, node: Node, longest: int) -> tuple[str, Node] | None:
    """The text of a node as the script has it, and the node that it stands for; None for a text that is not valid."""
    with called({leaf: name for name, leaf in names.nodes.items()}):
        text = node_text(node, longest)
    return next(valid(case, names, [text], node, longest), None)


def shorter(names: FormulaNames, node: Node) -> Iterator[str]:
    """Texts for a node in index notation or as a product of matrices."""
    return formula_texts(node, {leaf: name for name, leaf in names.nodes.items()})


# --- the right formula -----------------------------------------------------------------------------------------------


def correction(case: Case, gradient: Node) -> str | None:
    """The first text for the right gradient that holds; the builder of the case must be open."""
    if len(reachable([gradient])) > MOST_STEPS:
        return None
    names = readable(case)
    floats = [name for name, value in case.values.items() if value.dtype.kind == "f"]
    for text, formula in valid(case, names, shorter(names, gradient), gradient):
        # each leaf moves by itself, so that no symmetry and no equal entries are left
        moved = islice(scattered(case.values, floats, case.domains, 0.25, case.seed + 1), TRIES)
        places = [case.values, *islice(filter(agreement(formula, gradient), moved), BESIDE)]
        if len(places) > BESIDE and holds(case, formula, places):
            return text
    return None


def holds(case: Case, formula: Node, places: Sequence[Values]) -> bool:
    """Whether balls confirm that a formula is the exact derivative at some points."""
    subject = case.subject
    size = case.target.type.size
    nodes = [formula, *subject.nodes()]
    work = sum(node.type.size for node in reachable(nodes))
    count = max(FEWEST_ENTRIES, min(MOST_ENTRIES, MOST_WORK // work))
    entries = None if size <= count else sorted({int(i) for i in np.linspace(0, size - 1, count)})
    exact = case.exact.beside(nodes)
    for place in places:
        answer = exact.compare(formula, [place], derivative=subject.derivative(place, entries))
        if "problem" in answer:
            return False
        point = answer["points"][0]
        if not point["region"] or not point["relations"] or not set(point["relations"]) <= RIGHT:
            return False
    return True

"""The right formula of a refuted gradient, as text in the script language that has been checked like a claim.

A text is shown only if it parses, reads nothing but the leaves of the script, calls nothing but library functions,
and is equal to the exact derivative in balls at the point of the check and at others where every leaf has moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradcli.checks.case import RIGHT
from gradcli.checks.exact import Exact
from gradcli.checks.floats import LIMIT_ULPS, evaluated, ulps
from gradcli.checks.points import contains, shortened
from gradcli.diagnostics import GradcliError
from gradcli.formulas import formula_texts
from gradcli.graph.node import DATA, LEAF, Node, reachable
from gradcli.language.parser import parse
from gradcli.language.source import Source
from gradcli.lowering import lower
from gradcli.primitives.broadcasting import stretch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gradcli.checks.case import Case, Floats, Values
    from gradcli.graph.builder import Builder

LONGEST = 600  # characters of a formula that is worth reading
MOST_STEPS = 600  # nodes of a gradient that is written down
BESIDE = 2  # points beside the given one at which a formula must hold
TRIES = 8  # points that are looked at for these
MOST_ENTRIES = 64  # of a leaf: of a larger one evenly spaced entries are compared in balls
CLOSE, TINY = 1e-7, 1e-12  # relative to the largest entry, and what may be a rounding error of 0, for floats
SECONDS = 4.0
POOR = "  # right, but it loses digits in floating point here"


class Names(NamedTuple):
    """What a formula may read: a node for each name, and the names that mean something else in the script."""

    nodes: Mapping[str, Node]
    taken: frozenset[str]


def correction(case: Case, gradient: Node) -> str | None:
    """The first text for the right gradient that holds; the builder of the case must be open."""
    if len(reachable([gradient])) > MOST_STEPS:
        return None
    names = readable(case)
    for text in candidates(gradient, names):
        if len(text) <= LONGEST:
            shown = holding(case, text, gradient, names)
            if shown is not None:
                return shown
    return None


def candidates(gradient: Node, names: Names) -> Iterator[str]:
    """Texts for a gradient, the best first; none of them is known to be right."""
    return formula_texts(gradient, {node: name for name, node in names.nodes.items()})


def readable(case: Case) -> Names:
    """The leaves of a case by the names that a claim would use for them, and what it differentiates by."""
    subject = case.subject
    nodes = {}
    for node in reachable(subject.nodes()):
        if node.primitive is LEAF:
            name = str(node.params["name"])
            nodes[name.rpartition(".")[2] if subject.kind == "vjp" else name] = node
    own = subject.names.get(case.target)
    if own is None:
        return Names(nodes, subject.taken)
    return Names({**nodes, own: case.target}, subject.taken - {own})


def holding(case: Case, text: str, gradient: Node, names: Names) -> str | None:
    """The text, if it is a formula for the gradient; with a remark where its floats are poor."""
    builder = gradient.builder
    values = dict(zip(names.nodes, evaluated(list(names.nodes.values()), case.values), strict=True))
    try:
        made = on_leaves(text, values, names, builder, gradient)
    except (GradcliError, ArithmeticError, ValueError, LookupError):
        return None
    if made is None:
        return None
    moved = [place for place in moved_points(case) if agree(made, gradient, place)][:BESIDE]
    if len(moved) < BESIDE or not agree(made, gradient, case.values):
        return None
    answers = compared(case, made, [case.values, *moved])
    if answers is None:
        return None
    return text + (POOR if poor(made, case, answers[0]) else "")


def on_leaves(text: str, values: Mapping[str, Floats], names: Names, builder: Builder, gradient: Node) -> Node | None:
    """The node of a formula on the leaves of a script; None where it reads or calls what the script means otherwise."""
    script = parse(Source(text, "<formula>"))
    lowered = lower(script, at=values)
    outputs, leaves = lowered.program.outputs, lowered.program.leaves
    if len(outputs) != 1 or not set(leaves) <= set(names.nodes):
        return None
    if not names.taken.isdisjoint(words(text)):
        return None
    simplifying, builder.simplifying = builder.simplifying, False
    try:
        found: dict[Node, Node] = {}
        for node in reachable(outputs):
            if node.primitive is LEAF:
                found[node] = names.nodes[node.params["name"]]
            elif node.primitive is DATA:
                digest = node.params["digest"]
                found[node] = builder.array(digest, node.builder.data[digest], node.type)
            elif not node.args:
                found[node] = builder.constant(node.params["value"], node.type.shape, node.type.kind)
            else:
                args = tuple(found[arg] for arg in node.args)
                found[node] = builder.apply(node.primitive, args, dict(node.params))
        made = found[outputs[0]]
        if made.type.shape == () != gradient.type.shape:
            made = stretch(made, gradient.type.shape)
        return made if made.type == gradient.type else None
    finally:
        builder.simplifying = simplifying


def words(text: str) -> set[str]:
    """Every name that stands in a text."""
    return {
        word for word in "".join(c if c.isalnum() or c == "_" else " " for c in text).split() if word.isidentifier()
    }


def moved_points(case: Case) -> Iterator[Values]:
    """Points where every leaf has moved by itself, so that no symmetry and no equal entries are left."""
    generator = np.random.default_rng(case.seed + 1)
    for _ in range(TRIES):
        place = dict(case.values)
        for name, value in case.values.items():
            if value.dtype.kind != "f":
                continue
            domain = case.subject.domain if name == case.own_leaf else None
            scale = np.where(value == 0, 1.0, np.abs(value)) * 0.25
            moved = shortened(value + scale * generator.uniform(-1.0, 1.0, value.shape), 3)
            if all(contains(domain, float(entry)) for entry in moved.reshape(-1)):
                place[name] = moved
        yield place


def agree(one: Node, other: Node, values: Values) -> bool:
    """Whether two nodes have the same finite floats, as far as rounding allows."""
    ours, theirs = evaluated([one, other], values)
    scale = float(np.abs(theirs).max(initial=0.0))
    return bool(np.isfinite(scale)) and bool((np.abs(ours - theirs) <= max(CLOSE * scale, TINY)).all())


def compared(case: Case, made: Node, places: Sequence[Values]) -> list[Any] | None:
    """The comparisons of a formula with the exact derivative at some points; None where one does not confirm it."""
    subject = case.subject
    size = case.target.type.size
    entries = None if size <= MOST_ENTRIES else sorted({int(i) for i in np.linspace(0, size - 1, MOST_ENTRIES)})
    nodes = [made, case.output, case.target, *(subject.inner or ())]
    exact = Exact(case.exact.oracle, nodes, SECONDS)
    answers = []
    try:
        exact.begin()
        for place in places:
            name = exact.derive(case.output, case.target, subject.moving, place, entries, case.seed, subject.inner)
            answer = exact.compare(made, [place], name=name)
            if "problem" in answer:
                return None
            found = answer["points"][0]
            if not found["region"] or not found["relations"] or not set(found["relations"]) <= RIGHT:
                return None
            answers.append(found)
    finally:
        case.exact.oracle.load(case.exact.table.flat)
    return answers


def poor(made: Node, case: Case, answer: Any) -> bool:
    """Whether the floats of a formula are far from the exact values at the point of the check."""
    floats = case.floats([made], case.values)[0].reshape(-1)
    pairs = zip(answer["entries"], answer["exact"], strict=True)
    return any(
        exact is not None and ulps(float(floats[entry]), exact, case.dtype) > LIMIT_ULPS for entry, exact in pairs
    )


__all__ = ["correction"]

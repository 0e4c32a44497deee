"""A Function as it was recorded goes in, its backward on inputs of its own comes out, for whoever judges rules.

A rule is noted once for each choice of shapes and of arguments that are no tensors, on the example's own way only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.diagnostics import Span
from gradcli.eager.paths import names_of
from gradcli.eager.recording import placed
from gradcli.eager.state import line_of
from gradcli.eager.tensor import Tensor
from gradcli.graph.handrule import HandRule
from gradcli.graph.program import Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.handwritten import Form
    from gradcli.graph.node import Node

MOST = 16  # rules of one program
ARRIVING = 37 / 32  # stands for the gradient that arrives, where a Function is called inside a backward


def note(form: Form, row: Node, back: Sequence[Node]) -> None:
    """Keep a rule: `row` and `back` are its forward and backward on the form's leaves."""
    trace = form.trace
    key = (form.owner, tuple(node.type for node in form.operands), *[str(x) for x in form.args if not _is_tensor(x)])
    if key in trace.judged or len(trace.rules) >= MOST:
        return
    trace.judged.add(key)
    builder = trace.builder
    known = _operands(form)
    floats = [k for k, leaf in enumerate(form.live) if leaf.type.kind == "float"]
    same = sum(1 for one in trace.rules if one.name.partition("#")[0] == form.name)
    title = f"{form.name}#{same + 1}" if same else form.name
    leaves = [Leaf(own, builder.leaf(f"{title}.{own}", form.live[k].type.shape)) for k, own in _names(form, floats)]
    given = {k: leaf.node for k, leaf in zip(floats, leaves, strict=True)}
    filled: dict[Node, Node] = {}
    for k, (live, held) in enumerate(zip(form.live, form.held, strict=True)):
        filled[live] = filled[held] = given.get(k, known[k])
    (output,) = placed(builder, [row], filled)
    ct = builder.leaf(f"{title}.ct", output.type.shape)
    assert form.made is not None and form.arriving is not None
    results = placed(builder, [back[k] for k in floats], {**filled, form.made: output, form.arriving: ct})
    file, first = _defined(form.owner)
    lines = [line_of(trace.lines.get(back[k])) for k in floats]
    trace.rules.append(
        HandRule(
            title,
            Span(first, 1, first, 1),
            tuple(leaves),
            output,
            ct,
            tuple(results),
            tuple([known[k] for k in floats]),
            file,
            tuple([line if name == file and line else first for name, line in lines]),
        )
    )


def _operands(form: Form) -> list[Node]:
    """The operands in terms of the program's inputs."""
    trace, builder = form.trace, form.trace.builder
    before = {leaf: trace.standing[leaf] for leaf in trace.standing}
    unknown = [leaf for leaf, stands in before.items() if stands is None]
    trace.standing.update({leaf: builder.constant(ARRIVING, leaf.type.shape) for leaf in unknown})
    try:
        found = trace.outermost(form.operands)
    finally:
        trace.standing.update(before)
    return [x if one is None else one for one, x in zip(found, form.operands, strict=True)]


def _names(form: Form, floats: Sequence[int]) -> list[tuple[int, str]]:
    """The operands that a rule is judged by, as forward calls them."""
    skipped = 1 if form.owner.setup_context is None else 0  # ctx
    names = names_of(form.owner.forward, len(form.args) + skipped)[skipped:]
    return [(k, names[form.moving[k]]) for k in floats]


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def _defined(owner: Any) -> tuple[str | None, int]:
    """The file and the line in which a backward is written."""
    code = getattr(owner.way(), "__wrapped__", owner.way()).__code__
    return code.co_filename, code.co_firstlineno

"""Gradients through loops are proved for every number of iterations; one that is wrong in any iteration is never proved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gradcli import checks
from gradcli.checks.algebra import induction
from gradcli.execution.evaluate import evaluate
from gradcli.graph.building import building
from gradcli.graph.loop import Opened, close, loop_key, loop_of, readers_by_loop
from gradcli.graph.node import CONSTANT, LEAF, is_reader, reachable
from gradcli.transforms.derivatives import grad
from tests.support import loop_bodies
from tests.support.rows import all_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.graph.loop import Loop
    from gradcli.graph.node import Builder, Node
    from tests.support.loop_bodies import Made

ITERATIONS = 70  # more than normal forms write out
STACKED = {"outputs", "index_backwards", "no_carry"}  # the output reads the values of all iterations
ALMOST = {("rows", "d"), ("rows", "w"), ("inner_rows", "d"), ("inner_rows", "e"), ("later", "b")}
PROVED = [made for made in loop_bodies.SMOOTH if made.__name__ not in STACKED]


def proved(made: Made, leaf: Node, gradient: Node) -> bool:
    point = {name: (np.asarray(x, float).reshape(-1).tolist(), np.shape(x)) for name, x in made.values.items()}
    moving = [one.params["name"] for one in made.leaves]
    answer = induction.prove_derivative(made.output, leaf, gradient, moving, point, range(leaf.type.size))
    assert not answer["proved"] or answer["induction"]
    return bool(answer["proved"])


@all_rows("count", [ITERATIONS, 10**6])
@all_rows("make", PROVED, ids=lambda make: make.__name__)
def test_the_reverse_loop_is_proved_whatever_the_number_of_iterations(make: Any, count: int) -> None:
    made = make(count if "rows" not in make.__name__ else ITERATIONS)
    for leaf, gradient in zip(made.leaves, grad(made.output, made.leaves), strict=True):
        assert proved(made, leaf, gradient) is ((make.__name__, leaf.params["name"]) not in ALMOST)


# --- sabotage -----------------------------------------------------------------------------------------------------


def damaged(builder: Builder, loop: Loop) -> Iterator[tuple[str, Loop]]:
    """The loop with one thing wrong in it: a step, what an iteration gives, the order of iterations, or where it begins."""
    places = range(len(loop.body.steps))
    for at in places:
        for slip in ("twice", "less", "argument", "sign"):
            made = _closed(builder, loop, {at: slip})
            if made is not None:
                yield f"{slip} {at}", made
    for k in range(len(loop.body.carried)):
        for other in range(len(loop.body.carried)):
            if k < other and loop.body.carried[k].type == loop.body.carried[other].type:
                yield f"swapped {k} {other}", _known(_closed(builder, loop, {}, swapped=(k, other)))
        yield f"forgotten {k}", _known(_closed(builder, loop, {}, forgotten=k))
        if loop.body.carried[k].type.kind == "float":
            yield f"begins {k}", _known(_closed(builder, loop, {}, begins=k))
    yield "order", _known(_closed(builder, loop, {}, reverse=not loop.reverse))


def _known(loop: Loop | None) -> Loop:
    assert loop is not None
    return loop


def _closed(
    builder: Builder,
    loop: Loop,
    slips: dict[int, str],
    swapped: tuple[int, int] | None = None,
    forgotten: int | None = None,
    begins: int | None = None,
    reverse: bool | None = None,
) -> Loop | None:
    opened, body = Opened(loop), loop.body
    made: dict[Node, Node] = {}
    for at, step in enumerate(body.steps):
        if step.primitive is LEAF:
            made[step] = opened.nodes[at]
            continue
        args = tuple([made[arg] for arg in step.args])
        slip = slips.get(at)
        floats = step.type.kind == "float"
        if slip == "argument":
            others = [one for one in made.values() if args and one.type == args[0].type and one is not args[0]]
            if not others:
                return None
            args = (others[-1], *args[1:])
        made[step] = builder.copied(step, args)
        if slip == "twice" and floats and step.primitive is not CONSTANT:
            made[step] = made[step] * 2
        elif slip == "sign" and floats:
            made[step] = -made[step]
        elif slip == "less" and floats:
            made[step] = made[step] + 1
        elif slip is not None and slip != "argument":
            return None
    nexts = [made[node] for node in body.nexts]
    inits = list(loop.args[: len(nexts)])
    if swapped is not None:
        nexts[swapped[0]], nexts[swapped[1]] = nexts[swapped[1]], nexts[swapped[0]]
    if forgotten is not None:
        nexts[forgotten] = opened.carried[forgotten]
    if begins is not None:
        inits[begins] = inits[begins] + 1
    rows = loop.args[len(nexts) : len(nexts) + len(body.rows)]
    return close(
        builder,
        loop.count,
        list(zip(opened.carried, inits, strict=True)),
        nexts,
        rows=list(zip(opened.rows, rows, strict=True)),
        index=opened.index,
        outputs=[made[node] for node in body.steps],
        reverse=loop.reverse if reverse is None else reverse,
    )


def read_from(builder: Builder, gradient: Node, key: Any, loop: Loop) -> Node:
    """A gradient that reads another loop in place of one."""
    made: dict[Node, Node] = {}
    for node in reachable([gradient]):
        if is_reader(node) and loop_key(node) == key:
            if "carry" not in node.params:
                return gradient
            made[node] = loop.last(node.params["carry"])
        else:
            made[node] = builder.copied(node, tuple([made[arg] for arg in node.args])) if node.args else node
    return made[gradient]


def _values(node: Node, made: Made) -> Any:
    return np.asarray(evaluate(node, made.values)[0])


QUICK = ("logistic", "swapped", "only_swapped", "accumulated", "index", "equal_inits", "detached")
SLIPPED = [make if make.__name__ in QUICK else pytest.param(make, marks=pytest.mark.deep) for make in PROVED]


@pytest.mark.parametrize("make", SLIPPED, ids=lambda make: make.__name__)
def test_a_reverse_loop_with_a_slip_is_never_proved(make: Any) -> None:
    """Whatever is proved has the value of the gradient; most slips change it, and none of those is proved."""
    made = make(ITERATIONS)
    gradients = grad(made.output, made.leaves)
    wrong = 0
    with building(made.output.builder, reachable([made.output, *gradients])) as builder:
        forward = {loop_key(first) for first in readers_by_loop(reachable([made.output]))}
        for leaf, gradient in zip(made.leaves, gradients, strict=True):
            true = _values(gradient, made)
            for first in readers_by_loop(reachable([gradient])):
                if loop_key(first) in forward:
                    continue
                for name, loop in damaged(builder, loop_of(first)):
                    slipped = read_from(builder, gradient, loop_key(first), loop)
                    with np.errstate(all="ignore"):
                        alike = np.allclose(_values(slipped, made), true, rtol=1e-9, atol=1e-12 * np.abs(true).max())
                    wrong += not alike
                    assert alike or not proved(made, leaf, slipped), (leaf.params["name"], name)
    assert wrong > 1


@pytest.mark.parametrize(
    "text",
    [
        "x = 0.2\na = 1.3\ny = x\nfor t in range(5000):\n    y = y + 0.0005*a*y*(1 - y/3)\ny",
        "a = 0.7\nx = 0.3\ntotal = 0\nfor t in range(5000):\n    x = x + 0.001*sin(a*x)\n    total += (x - a)**2\ntotal/5000",
        "a = 0.3\nx = a\nfor t in range(2000): x = x + 0.001*(sin(x) - a*x)\n"
        "y = x*a\nfor t in range(2000): y = y - 0.002*a*y**3\nx*y",
        "r = 2.5\nx = 0.3\nfor t in range(50): x = r*x*(1 - x)\nx",
    ],
    ids=["state", "accumulated", "two, each short enough to be written out", "short, of a high degree"],
)
def test_check_proves_gradients_of_long_loops(text: str) -> None:
    found = checks.check_script(text).checks
    assert [one.verdict for one in found] == ["PROVED"] * len(found)
    assert all("by induction over the iterations" in one.message for one in found)

"""Selects iterations of loops to show: the first, the last and one more are written out, the others stay a loop."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter

from gradcli.base.diagnostics import error
from gradcli.calculator.magnitudes import finite
from gradcli.execution.evaluate import Tape
from gradcli.execution.loops.scan import Scan
from gradcli.execution.namespaces import namespace
from gradcli.graph.building import building
from gradcli.graph.exact import count_text
from gradcli.graph.loop import loop_of, readers_by_loop, written_nodes
from gradcli.graph.node import is_reader
from gradcli.lowering import Lowered
from gradcli.transforms.unroll import every_iteration, unrolled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from gradcli.graph.loop import Loop
    from gradcli.graph.node import Node
    from gradcli.transforms.unroll import Iterations


MOST_STEPS = 20_000  # of a program that `why` reads with all iterations of its loops
SERIAL = attrgetter("serial")


def with_iterations(lowered: Lowered, iteration: int | None = None) -> tuple[Lowered, dict[Node, int]]:
    """The script with the first and the last iteration of each loop written out, and the one with this number, from 1.

    Beside it the iteration of each node that belongs to one. Raises GradcliError GC728 for an iteration that no loop
    has.
    """
    loops = _loops(lowered)
    longest = max([loop.body.first + loop.count for loop in loops], default=0)
    if iteration is not None and not 1 <= iteration <= longest:
        phrase = (
            f"the longest loop that is shown iteration by iteration has {count_text(longest)}"
            if loops
            else "no loop is folded"
        )
        message = f"cannot show iteration {count_text(iteration)}: {phrase}"
        raise error("GC728", message, None, help="short loops are shown whole")

    def chosen(loop: Loop) -> Collection[int]:
        return _ends(loop) if iteration is None else {*_ends(loop), iteration - 1 - loop.body.first}

    return _written_out(lowered, loops, chosen)


def to_explain(lowered: Lowered, values: Mapping[str, Any], dtype: str) -> tuple[Lowered, dict[Node, int]]:
    """The script as `why` reads it: with all iterations, or of many the ends and the first that is not finite."""
    loops, nodes = _loops(lowered), sorted(lowered.program.nodes(), key=SERIAL)
    short: dict[Node, int] = {}  # the iterations of loops that were written out when the script was read
    for block in lowered.blocks:  # those of outer loops come last
        if block.label.startswith("iteration "):
            own = nodes[bisect_left(nodes, block.first, key=SERIAL) : bisect_right(nodes, block.last, key=SERIAL)]
            short.update(
                dict.fromkeys([node for node in own if node.args], int(block.label.removeprefix("iteration ")))
            )
    if written_nodes(nodes) <= MOST_STEPS:
        shown, iterations = _written_out(lowered, loops, every_iteration)
        return shown, {**short, **iterations}
    xp = namespace("numpy", dtype)

    def chosen(loop: Loop) -> Collection[int]:
        known = Tape(loop.args).run_all(values, backend="numpy", dtype=dtype)
        args = [xp.array(known[arg], arg.type.kind) for arg in loop.args]
        steps = [loop.stacked(at) for at, step in enumerate(loop.body.steps) if step.args]
        inputs = len(loop.body.inputs)
        with xp.arithmetic():
            for number, iteration_values in Scan(steps).iterations(xp, args, [len(arg.shape) for arg in loop.args]):
                if not all(value is None or finite(value) for value in iteration_values[inputs : len(loop.body.steps)]):
                    return {*_ends(loop), number}
        return _ends(loop)

    shown, iterations = _written_out(lowered, loops, chosen)
    return shown, {**short, **iterations}


def _loops(lowered: Lowered) -> list[Loop]:
    return [loop_of(first) for first in readers_by_loop(lowered.program.nodes())]


def _ends(loop: Loop) -> set[int]:
    return {loop.count - 1} if loop.body.first else {0, loop.count - 1}


def _written_out(lowered: Lowered, loops: Sequence[Loop], chosen: Iterations) -> tuple[Lowered, dict[Node, int]]:
    if not loops:
        return lowered, {}
    program = lowered.program
    iterations: dict[Node, int] = {}
    with building(program.builder, program.nodes()) as builder:
        replaced = unrolled(builder, program.outputs, chosen, iterations)
    shown = program.with_outputs([replaced[node] for node in program.outputs])
    names = {replaced.get(node, node): name for node, name in lowered.names.items()}
    # iterations that were written out when the script was read: their nodes stand where those of the bodies stand
    places = {step.span for loop in loops if loop.body.first for step in loop.body.steps if step.args}
    for node in shown.nodes():
        if node not in iterations and node.args and node.span in places and not is_reader(node):
            iterations[node] = 1
    return lowered.with_program(shown, names), iterations

"""A function of tensors goes in, its central differences for every entry come out, from a few evaluations of its graph.

The function is recorded once, and its graph says which entries may move together. The function itself is asked at
random points beside it: where the graph does not give what the function gives (a function with a state, one that reads
entries, narrow formats inside), there is no answer, and every entry is moved by a call. Nor is there one where the
differences of all entries do not give that along a random direction.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.diagnostics import GradcliError
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._trace import record
from gradcli.execution.evaluate import Tape
from gradcli.execution.namespaces import REFUSED
from gradcli.structure.perturbed import perturbed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gradcli.graph.program import Program

    Floats = NDArray[np.floating[Any]]

FEWEST = 16  # entries below which calls cost less than a recording
CACHED = 1 << 15  # entries of the largest value in one evaluation
PROBES = 2
SAME = 1e-11  # relative: what the graph and the function may differ by
ALONG = 1e-7  # relative: the same for differences along a direction
NOISE = 1e-8  # of the largest value, in such a difference with a step of 1e-6
RECORDED_RUNS = 4


def central_differences(
    f: Callable[[Tensor], Tensor], x: Tensor, eps: float, known: Floats | None = None
) -> Floats | None:
    """The transposed Jacobian of f at x by central differences, [entries of x, entries of f]; None: no answer.

    `known` is f(x) where somebody has it.
    """
    here = np.array(x._array)
    if here.size < FEWEST or here.dtype != np.float64 or not np.isfinite(here).all():
        return None
    try:
        program = record(lambda t: f(t), x, runs=RECORDED_RUNS, values_only=True)
    except Exception:
        return None  # whatever went wrong with stand-ins: the function is called with tensors, and may say it again
    try:
        with np.errstate(all="ignore"):
            found = _from_graph(program, here, eps)
            return found if _is_right(f, program, here, eps, found, known) else None
    except (GradcliError, *REFUSED):
        return None


def _from_graph(program: Program, here: Floats, eps: float) -> Floats:
    name, values = next(iter(program.leaves)), {key: leaf.default for key, leaf in program.leaves.items()}
    output, target = program.outputs[0], program.leaves[name].node
    together = perturbed(output, [target], values)
    size, rows = here.size, output.type.size
    steps = np.stack([np.full(size, -eps), np.full(size, eps)])
    if together is None:
        return _one_by_one(program, here, eps)
    if not output.shape:
        below, above = together.totals(steps)
        return ((above - below) / (2 * eps)).reshape(size, 1)  # type: ignore[no-any-return]
    below, above = together.pairs(steps)
    found = np.zeros((size, rows))
    found[together.columns, together.rows] = (above - below) / (2 * eps)
    return found


def _one_by_one(program: Program, here: Floats, eps: float) -> Floats:
    """Every entry moved alone, many points in one evaluation."""
    tape = Tape(program)
    largest = max(node.type.size for node in tape.nodes)
    size, rows = here.size, max(4, CACHED // max(largest, 1))
    found = np.empty((size, program.outputs[0].type.size))
    for start in range(0, size, rows):
        places = np.arange(start, min(start + rows, size))
        points = np.repeat(here.reshape(1, -1), 2 * len(places), axis=0)
        points[places - start, places] += eps
        points[len(places) + places - start, places] -= eps
        values = _at(tape, program, points.reshape(-1, *here.shape))
        found[places] = (values[: len(places)] - values[len(places) :]) / (2 * eps)
    return found


def _at(tape: Tape, program: Program, points: Floats) -> Floats:
    """The entries of the output at some points."""
    name, output = next(iter(program.leaves)), program.outputs[0]
    values = np.asarray(tape.run({name: points}, backend="numpy")[0], dtype=np.float64)
    return np.broadcast_to(values, (len(points), *output.shape)).reshape(len(points), -1)


def _is_right(
    f: Callable[[Tensor], Tensor], program: Program, here: Floats, eps: float, found: Floats, known: Floats | None
) -> bool:
    """Whether the graph gives what the function gives at two points, and the differences what it gives on two ways."""
    ways = _ways(here.shape)
    above = here + eps * ways
    values = _at(Tape(program), program, np.concatenate([above, here - eps * ways, here[None]]))
    real = [_value(f, above[0]), known.reshape(-1) if known is not None else _value(f, above[1])]
    size = max(float(np.abs(one).max(initial=0.0)) for one in real)
    for one, value in zip(real, values[[0, -1 if known is not None else 1]], strict=True):
        if not (np.abs(one - value) <= SAME * max(size, 1e-300)).all():
            return False
    slopes = (values[:PROBES] - values[PROBES : 2 * PROBES]) / (2 * eps)
    for way, slope in zip(ways.reshape(PROBES, -1), slopes, strict=True):
        slack = ALONG * (np.abs(found).T @ np.abs(way)) + NOISE * 1e-6 / eps * size
        if not (np.abs(found.T @ way - slope) <= slack + 1e-300).all():
            return False
    return True


@lru_cache(maxsize=4)
def _ways(shape: tuple[int, ...]) -> Floats:
    """Random directions for a shape, to be read only."""
    random = np.random.default_rng(math.prod(shape))
    found: Floats = random.uniform(0.5, 1.0, (PROBES, *shape)) * random.choice([-1.0, 1.0], (PROBES, *shape))
    found.flags.writeable = False
    return found


def _value(f: Callable[[Tensor], Tensor], point: Floats) -> Floats:
    return np.array(f(Tensor(np.array(point), True))._array, dtype=np.float64).reshape(-1)

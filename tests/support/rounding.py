"""How far a plan may be from the evaluator: as far as a few ulp in each operation move the evaluator's own results.

The evaluator runs some times more, with a relative error of some ulp in everything that an operation has rounded; sums
and matrix products are off by as much as another order of additions can make of them. Plans are not read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.inputs import data_value, leaf_value
from gradcli.execution.namespaces.numpy_ import NumpyNamespace
from gradcli.graph.arrays import nearest_float
from gradcli.graph.node import CONSTANT, DATA, LEAF

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.execution.evaluate import Tape

ULPS = 4  # of the result, in each operation
RUNS = 3
MARGIN = 10  # times what the runs differ by


class Allowed(NamedTuple):
    """An output of the evaluator, and how far an answer may be from it; inf where rounding decides about anything."""

    value: Any
    gap: Any


class Rounded(NumpyNamespace):
    """NumPy, but every sum comes out as another order of additions might make it."""

    def __init__(self, dtype: str, seed: int) -> None:
        super().__init__(np, dtype)
        self.random = np.random.default_rng(seed)
        self.overflow = (np.nan, np.inf, -np.inf)[seed % 3]
        self.eps = float(np.finfo(dtype).eps)

    def _off(self, exact: Any, size: Any, count: int) -> Any:
        if np.asarray(exact).dtype.kind != "f":
            return exact
        size = np.minimum(size, np.finfo(self.dtype).max)
        change = self.random.uniform(-1, 1, np.shape(exact)) * self.eps * max(count - 1, 0) * size
        return (exact + change).astype(np.asarray(exact).dtype)

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        exact, size = np.sum(x, axis=axis, keepdims=keepdims), np.sum(np.abs(x), axis=axis, keepdims=keepdims)
        off = self._off(exact, size, x.size // max(np.size(exact), 1))
        return self._reordered(off, x, _sized(x), axis, keepdims) if np.isinf(size).any() else off

    def matmul(self, x: Any, y: Any) -> Any:
        exact, size = np.matmul(x, y), np.matmul(np.abs(x), np.abs(y))
        off = self._off(exact, size, x.shape[-1] + 1)
        if not np.isinf(size).any():
            return off
        terms, sized = [a[..., None] * b[..., None, :, :] for a, b in ((x, y), (_sized(x), _sized(y)))]
        return self._reordered(off, terms, sized, -2)

    def _reordered(self, total: Any, terms: Any, sized: Any, axis: Any, keepdims: bool = False) -> Any:
        """Totals of terms that overflow: what this run has for them, wherever some order of additions gives that.

        NaN needs both infinities; an infinity among the terms leaves none of the other sign.
        """
        up, down = [np.isinf(np.sum(np.maximum(x, 0), axis=axis, keepdims=keepdims)) for x in (terms, -terms)]
        known = np.sum(sized, axis=axis, keepdims=keepdims)
        gives = (
            up & down if np.isnan(self.overflow) else (up if self.overflow > 0 else down) & (known != -self.overflow)
        )
        return np.where(gives & ~np.isnan(known), self.overflow, total).astype(np.asarray(total).dtype)


def _sized(x: Any) -> Any:
    """Terms, or factors, with 1 for the size of all that are finite: what they say of a sum, whatever its order."""
    return np.where(np.isfinite(x), np.sign(x), x)


def run(tape: Tape, values: Mapping[str, Any], dtype: str, seed: int) -> list[Any]:
    """The outputs of a tape with rounding errors of this size."""
    xp = Rounded(dtype, seed)
    random = xp.random
    given = dict(zip([node for node, _ in tape.inputs], tape.input_values(values), strict=True))
    found: dict[Any, Any] = {}
    with xp.arithmetic():
        for node in tape.nodes:
            if node.primitive is CONSTANT:
                number = xp.array(nearest_float(node.params["value"]), node.type.kind)
                found[node] = np.broadcast_to(number, node.type.shape)
            elif node.primitive is DATA:
                found[node] = data_value(xp, node, tape.data[node.params["digest"]])
            elif node.primitive is LEAF:
                found[node] = np.asarray(leaf_value(xp, node, given[node]))
            else:
                args = [found[arg] for arg in node.args]
                params = dict(node.params)
                if not node.primitive.pointwise:
                    params["ranks"] = tuple([len(arg.type.shape) for arg in node.args])
                exact = np.asarray(node.primitive.impl(xp, *args, **params))
                terms = sum(map(np.abs, args)) if node.primitive.name in ("add", "sub") else np.abs(exact)
                made = _rounded(exact, args, terms, xp, random)
                found[node] = made if made.shape == node.type.shape else np.broadcast_to(made, node.type.shape)
    return [found[node] for node in tape.outputs]


def _rounded(exact: Any, args: Sequence[Any], terms: Any, xp: Rounded, random: np.random.Generator) -> Any:
    """A result with an error of some ulp of its terms in each entry, but for those that stand among the operands."""
    if exact.dtype.kind != "f" or not exact.size:
        return exact
    error = random.uniform(-1, 1, exact.shape)
    off = exact + (exact != 0) * (error * ULPS * xp.eps * terms).astype(exact.dtype)
    off += (exact != 0) * np.rint(4 * error).astype(exact.dtype) * np.finfo(exact.dtype).smallest_subnormal
    known = np.abs(np.concatenate([np.ravel(arg) for arg in args]))
    few = exact.size * known.size < 1 << 14
    size = np.abs(exact)
    stay = (size[..., None] == known).any(-1) if few else np.isin(size, known)
    if all(np.array_equal(arg, np.rint(arg)) for arg in args):  # positions, and numbers of turns; large floats all are
        stay = stay | ((exact == np.rint(exact)) & (size < 1 / xp.eps))
    return np.where(stay | ~np.isfinite(exact), exact, off)


def allowed(tape: Tape, values: Mapping[str, Any], dtype: str = "float64") -> list[Allowed]:
    """The evaluator's results, each with the gap to any answer that is right."""
    plain = tape.run(values, backend="numpy", dtype=dtype)
    runs = [run(tape, values, dtype, seed) for seed in range(RUNS)]
    found = []
    with np.errstate(all="ignore"):
        for place, value in enumerate(plain):
            value = np.asarray(value)
            moved = [
                np.where(_same(one[place], value), 0.0, np.abs(np.subtract(one[place], value, dtype=float)))
                for one in runs
            ]
            gap = MARGIN * np.max(moved, axis=0)
            if np.any(gap):  # errors of some entries of many cancel by chance
                gap = gap + MARGIN * np.finfo(dtype).eps * np.abs(value)
            found.append(Allowed(value, np.nan_to_num(gap, nan=np.inf, posinf=np.inf)))
    return found


def _same(one: Any, other: Any) -> Any:
    return (one == other) | (np.isnan(one) & np.isnan(other))


def beyond(answer: Sequence[Any], rows: Sequence[Allowed]) -> list[tuple[int, tuple[int, ...]]]:
    """The outputs and entries of an answer that are farther from the evaluator's than is allowed."""
    found = []
    for at, (one, row) in enumerate(zip(answer, rows, strict=True)):
        assert np.shape(one) == np.shape(row.value), at
        with np.errstate(all="ignore"):
            off = np.abs(np.subtract(one, row.value, dtype=float))
        fine = _same(np.asarray(one), row.value) | (off <= row.gap) | np.isposinf(row.gap)
        found += [(at, tuple(place.tolist())) for place in np.argwhere(~fine)]
    return found

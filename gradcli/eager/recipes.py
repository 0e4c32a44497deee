"""What an operation did once goes in; the same operation on tensors of the same shapes and formats comes out faster.

The long way of `dispatch` asks many questions whose answers depend on shapes and formats only. A recipe holds the
answers, and a function that asks the rest: which operands need a gradient, and were they ever changed in place. It is
used where nothing unusual is on.
"""

from __future__ import annotations

from functools import cache
from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import kernels
from gradcli.eager.cache import Cache
from gradcli.eager.nodes import class_named
from gradcli.eager.plans import MOST_NODES, MOST_WAYS
from gradcli.eager.rules import RuleNode, source_of
from gradcli.eager.saving import Saved, versions
from gradcli.eager.state import SPECIAL, ours, sequence, state
from gradcli.eager.tensor import Counter, Tensor
from gradcli.execution import generated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.plans import Plan

MOST_OPERANDS = 8  # a follower has lines for each operand; operations on more of them take the long way
_recipes = Cache(MOST_NODES)

_HEAD = """
def follow(recipe, {xs}):
    if {odd}:
        if {inference}:
            return None
    {raws}
    out, = recipe.value({arrays})
    {apart}
    r = new(Tensor)
    r._raw = out
    r._count = None
    if state.mode:
        r._node = None
        r._requires = False
        return r
    i = 0{turned}"""

_SOURCE = """
    if x{k}._odd:
        s{k} = source_of(x{k})
        if s{k} is not None:
            i += {bit}
    elif x{k}._requires:
        s{k} = x{k}._node or x{k}
        i += {bit}
    else:
        s{k} = None"""

_TAIL = """
    if not i{low}:
        r._node = None
        r._requires = False
        return r
    n = recipe.made()
    way, n.fits, keep = recipe.ways.get(i) or recipe.make(i)
    n.way = way
    n.ins = ({ins},)
    n.saved = keep({xs}, r)
    n.vers = None if {calm} else versions(n.saved)
    f = _getframe(2)
    while f is not None and ours[f.f_globals.get("__name__")]:
        f = f.f_back
    if f is None:
        n._code, n._at = None, 0
    else:
        n._code, n._at = f.f_code, f.f_lasti
    n._seq = next(sequence)
    n.extra = None
    r._node = n
    r._requires = True
    return r
"""

_SCOPE: dict[str, Any] = {
    "Counter": Counter,
    "Saved": Saved,
    "Tensor": Tensor,
    "alone": kernels.alone,
    "_getframe": _getframe,
    "__name__": "gradcli.eager.generated",
    "ndarray": np.ndarray,
    "new": object.__new__,
    "ours": ours,
    "sequence": sequence,
    "source_of": source_of,
    "state": state,
    "versions": versions,
}


@cache
def _follower(
    count: int, shown: tuple[int, ...], moves: tuple[bool, ...], view: bool, products: tuple[int, ...]
) -> Any:
    """The function that follows recipes of so many operands."""
    every = range(count)
    xs = ", ".join(f"x{k}" for k in every)
    if view:
        raws = [f"a{k} = x{k}._raw if x{k}._raw.__class__ is ndarray else x{k}._array" for k in every]
        apart = "pass"
    else:
        raws = [f"a{k} = x{k}._raw" for k in every]
        same = " or ".join(f"out is a{k}" for k in every)
        apart = f"if out.base is not None or {same}: out = alone(out)"
    text = _HEAD.format(
        xs=xs,
        odd=" or ".join(f"x{k}._odd" for k in every),
        inference=" or ".join(f"x{k}._inference" for k in every),
        raws="; ".join(raws),
        arrays=", ".join(f"a{k}" for k in every),
        apart=apart,
        turned="".join(f"\n    if not a{k}.flags.c_contiguous: i += {2 ** (count + k)}" for k in products),
    )
    text += "".join(_SOURCE.format(k=k, bit=2**k) for k in every if moves[k])
    text += _TAIL.format(
        low=f" & {2**count - 1}" if products else "",
        xs=xs,
        ins=", ".join(f"s{k}" if moves[k] else "None" for k in shown),
        calm=" and ".join(f"((c := x{k}._count) is None or not c.value)" for k in every),
    )
    return generated.function(text, _SCOPE, "follow")


@cache
def _keeper(count: int, reads: tuple[int, ...], needs_out: bool) -> Any:
    """The function from operands and the result to what a node saves; the result without its tensor."""
    parts = "".join([*[f"x{k}, " for k in reads], "s, " if needs_out else ""])
    xs = ", ".join(f"x{k}" for k in range(count))
    result = "    s = Saved(); s._raw = r._raw; s._count = r._count = Counter()\n" if needs_out else ""
    return generated.function(f"def keep({xs}, r):\n{result}    return ({parts})\n", _SCOPE, "keep")


class Recipe:
    """One operation on tensors of known shapes and formats."""

    __slots__ = ("arrays", "follow", "kind", "made", "plan", "shown", "size", "value", "ways")

    def __init__(
        self, plan: Plan, kind: np.dtype[Any], name: str, shown: tuple[int, ...], view: bool, arrays: Sequence[Any]
    ) -> None:
        self.plan = plan
        self.size = plan.size
        self.kind = kind
        self.made = class_named(RuleNode, name)
        self.shown = shown
        self.arrays = [(array.shape, array.dtype) for array in arrays]
        self.value = plan.forward.function(kind)
        products = () if view else plan.products()
        self.ways: dict[int, Any] = {}
        self.follow = _follower(len(arrays), shown, plan.differentiable, view, products)

    def make(self, bits: int) -> Any:
        """For a mask of operands that need a gradient: the way back, what has to be fitted, and what saves.

        The bits above those of the operands say whose memory is not row by row.
        """
        count = len(self.arrays)
        mask = tuple([bool(bits >> k & 1) for k in range(count)])
        turned = tuple([k for k in range(count) if bits >> (count + k) & 1])
        way = self.plan.way(mask, self.kind, self.shown, False, turned)
        fits = None
        if way.lacking or self.plan.pointwise:
            shape = np.broadcast_shapes(*[known for known, _ in self.arrays]) if self.plan.pointwise else None
            if way.lacking or any(mask[k] and self.arrays[k][0] != shape for k in self.shown):
                fits = tuple([self.arrays[k] if mask[k] else None for k in self.shown])
        if len(self.ways) >= MOST_WAYS:
            self.ways.clear()
        found = self.ways[bits] = (way, fits, _keeper(count, way.reads, way.needs_out))
        return found


def key_of(signature: Any, xs: Sequence[Any]) -> Any:
    """By what a recipe is found; None where an operand is no tensor, and for many operands."""
    if len(xs) > MOST_OPERANDS:
        return None
    try:
        if len(xs) == 1:
            raw = xs[0]._raw
            return (signature, raw.shape, raw.dtype)
        if len(xs) == 2:
            raw, other = xs[0]._raw, xs[1]._raw
            return (signature, raw.shape, raw.dtype, other.shape, other.dtype)
        return (signature, *[part for x in xs for part in (x._raw.shape, x._raw.dtype)])
    except AttributeError:
        return None


def find(key: Any) -> Recipe | None:
    """The recipe of this key, if an operation was done so before."""
    return _recipes.get(key)


def keep(
    key: Any,
    plan: Plan,
    kind: np.dtype[Any],
    name: str,
    shown: tuple[int, ...],
    view: bool,
    arrays: Sequence[Any],
) -> None:
    """Remember how an operation was done."""
    _recipes.keep(key, Recipe(plan, kind, name, shown, view, arrays))


def again(signature: Any, *xs: Any) -> Tensor | None:
    """The result of an operation on these tensors, if there is a recipe and nothing unusual is on.

    For callers that ask before they check their operands: a recipe exists only for what passed the checks.
    """
    if state.mode == SPECIAL:
        return None
    recipe: Recipe | None = _recipes.get(key_of(signature, xs))
    return None if recipe is None else recipe.follow(recipe, *xs)

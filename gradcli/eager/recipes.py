"""What an operation did once goes in; the same operation on tensors of the same shapes and formats comes out faster.

The long way of `dispatch` asks many questions whose answers depend on shapes and formats only. A recipe holds the
answers. It is used where nothing unusual is on, and made of operations that read no positions.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.nodes import Saved, class_named, versions
from gradcli.eager.rules import RuleNode, source_of
from gradcli.eager.state import SILENT, outside, sequence, state
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from gradcli.eager.plans import Plan

_LIMIT = 20_000
_recipes: dict[Any, Recipe] = {}
_new = object.__new__


class Recipe:
    """One operation on tensors of known shapes and formats."""

    __slots__ = ("differentiable", "kind", "made", "plan", "shown", "value", "ways")

    def __init__(self, plan: Plan, kind: np.dtype[Any], name: str, shown: tuple[int, ...]) -> None:
        self.plan = plan
        self.kind = kind
        self.made = class_named(RuleNode, name)
        self.shown = shown
        self.value = plan.forward.function(kind)
        self.differentiable = plan.differentiable
        self.ways: dict[Any, Any] = {}


def key_of(function: Any, xs: tuple[Any, ...], params: dict[str, Any], name: str, edges: Any, view: bool) -> Any:
    """By what a recipe is found; None where an operand is no tensor."""
    try:
        kinds = tuple([(x._raw.shape, x._raw.dtype.num) for x in xs])
    except AttributeError:
        return None
    return (function, name, edges, view, kinds, *params.values()) if params else (function, name, edges, view, kinds)


def keep(key: Any, plan: Plan, kind: np.dtype[Any], name: str, shown: tuple[int, ...]) -> None:
    """Remember how an operation was done."""
    if len(_recipes) >= _LIMIT:
        _recipes.clear()
    _recipes[key] = Recipe(plan, kind, name, shown)


def follow(key: Any, xs: tuple[Any, ...], view: bool) -> Tensor | None:
    """The result by a recipe; None where there is none, or where an inference tensor asks for the long way."""
    recipe = _recipes.get(key)
    if recipe is None:
        return None
    raws = [x._array if view else x._raw for x in xs]
    sources = []
    for x in xs:
        if x._odd:
            if x._inference:
                return None
            sources.append(source_of(x))
        else:
            sources.append(None if not x._requires else x if x._node is None else x._node)
    out = recipe.value(*raws)[0]
    if not view and isinstance(out, np.ndarray) and (out.base is not None or any(out is raw for raw in raws)):
        out = out.copy()
    result = _new(Tensor)
    result._raw = out
    result._node = None
    result._requires = False
    if state.mode == SILENT:
        return result
    mask = tuple([source is not None and moves for source, moves in zip(sources, recipe.differentiable, strict=True)])
    if True not in mask:
        return result
    way = recipe.ways.get(mask)
    if way is None:
        way = recipe.ways[mask] = recipe.plan.way(mask, recipe.kind, recipe.shown)
    node = _new(recipe.made)
    node.ins = tuple([sources[i] if mask[i] else None for i in recipe.shown])
    node.place = outside(_getframe(2))
    node._seq = next(sequence)
    node.extra = None
    node.way = way
    saved = [xs[i] for i in way.reads]
    if way.needs_out:
        saved.append(Saved(out, result._counter))
    node.saved = tuple(saved)
    node.vers = versions(node.saved)
    node.fits = None
    if way.lacking or recipe.plan.pointwise:
        shape = out.shape
        if way.lacking or any(mask[i] and raws[i].shape != shape for i in recipe.shown):
            node.fits = tuple([(raws[i].shape, raws[i].dtype) if mask[i] else None for i in recipe.shown])
    result._node = node
    result._requires = True
    return result

"""Generated functions for what is called again and again: operators, and operations of known shapes.

An operator that is called a hundred thousand times cannot afford questions. The functions made here ask the few that
are needed (is anything unusual on, are the operands plain tensors of one float format) and take the long way of
`record.py` if an answer is no. What they compute and what they save is read off the declarations, as everywhere.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager._core.dtypes import FLOATS
from gradcli.eager._core.modes import SPECIAL, ours, outside, sequence, state
from gradcli.eager._core.node import Saved, class_named, saved_result, versions
from gradcli.eager._core.tensor import Counter, Tensor
from gradcli.eager._engine.codegen import Script
from gradcli.eager._engine.plan import MOST_NODES, Cache, limited, plan_of
from gradcli.eager._engine.rule_node import RuleNode, source_of
from gradcli.execution import generated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.eager._engine.plan import Plan

F32, F64 = FLOATS

# what is the same for every recorded result: the parts of a node that do not depend on the operation
NODE = """
            n._seq = next(sequence)
            n.extra = None
            f = _getframe(1)
            if ours[f.f_globals.get("__name__")]:
                n.place = outside(f)
            else:
                n._code = f.f_code
                n._at = f.f_lasti
            r._node = n
            r._requires = True"""

SOURCE = "None if m else source_of({x}) if {x}._special else ({x}._node or {x}) if {x}._requires else None"

RESULT = """
            r = new(Tensor)
            r._raw = out
            r._count = None
            {sources}
            if {none}:
                r._node = None
                r._requires = False
                return r"""

ONE = (
    """
def {name}(input):
    m = state.mode
    if m < 2 and isinstance(input, Tensor) and not input._inference:
        a = input._raw
        d = a.dtype
        double = d is F64
        if not double and d is not F32:
            return long_way(input)
        out = {text}"""
    + RESULT.format(sources=f"s = {SOURCE.format(x='input')}", none="s is None").replace("\n    ", "\n")
    + """
        n = Made()
        n.ins = (s,)
        n.vjp = (vjps64[1] or made64(1)) if double else (vjps32[1] or made32(1))
        n.broadcast_to = None
        {kept}
        n.vers = {vers}"""
    + NODE.replace("\n    ", "\n")
    + """
        return r
    return long_way(input)
"""
)

TWO = (
    """
def {name}({signature}):
    m = state.mode
    if m < 2{guard} and isinstance(input, Tensor) and not input._inference:
        a = input._raw
        d = a.dtype
        double = d is F64
        if not double and d is not F32:
            return long_way({call})
        if isinstance(other, Tensor):
            b = other._raw
            if d is not b.dtype or other._inference:
                return long_way({call})
            try:
                out = {text}
            except (ValueError, TypeError):
                return long_way({call})
            broadcast_to = None if a.shape == b.shape else ((a.shape, d), (b.shape, d))"""
    + RESULT.format(
        sources=f"s = {SOURCE.format(x='input')}\n            t = {SOURCE.format(x='other')}",
        none="s is None and t is None",
    )
    + """
            n = Made()
            n.ins = (s, t)
            if t is None:
                i = 1
                {kept1}
            elif s is None:
                i = 2
                {kept2}
            else:
                i = 3
                {kept3}
            n.broadcast_to = broadcast_to
            n.vers = {vers}
        elif other.__class__ is float or other.__class__ is int:
            y = (numbers64 if double else numbers32)[other]
            b = y._raw
            out = {text}"""
    + RESULT.format(sources=f"s = {SOURCE.format(x='input')}", none="s is None")
    + """
            i = {number}
            n = OfNumber()
            n.ins = {edges}
            {kept1n}
            n.broadcast_to = None
            n.vers = {vers1n}
        else:
            return long_way({call})
        n.vjp = (vjps64[i] or made64(i)) if double else (vjps32[i] or made32(i))"""
    + NODE.replace("\n    ", "\n")
    + """
        return r
    return long_way({call})
"""
)


MOST_OPERANDS = 8  # operations on more of them take the long way
_recipes = Cache(MOST_NODES)

# what generated functions name
_SHARED: dict[str, Any] = {
    **{one.__name__: one for one in (Counter, Saved, Tensor, _getframe, outside, source_of, versions)},
    "ours": ours,
    "sequence": sequence,
    "state": state,
    "new": object.__new__,
    "F32": F32,
    "F64": F64,
    "__name__": "gradcli.eager.generated",
}


class Recipe:
    """One operation on tensors of known shapes and formats."""

    def __init__(
        self, plan: Plan, kind: np.dtype[Any], name: str, shown: tuple[int, ...], view: bool, arrays: Sequence[Any]
    ) -> None:
        self.plan, self.kind, self.size, self.shown, self.view = plan, kind, plan.size, shown, view
        self.made = class_named(RuleNode, name)
        self.arrays = [(array.shape, array.dtype) for array in arrays]
        self.value = plan.forward.function(kind)
        self.moving = [k for k, moves in enumerate(plan.differentiable) if moves]
        self.vjps: dict[int, Any] = {}

    def follow(self, *xs: Any) -> Tensor | None:
        """The result on such tensors; None where one was made in inference mode."""
        for x in xs:
            if x._special and x._inference:
                return None
        if self.view:
            (out,) = self.value(*[x._raw if x._raw.__class__ is np.ndarray else x._array for x in xs])
        else:
            arrays = [x._raw for x in xs]
            (out,) = self.value(*arrays)
            if out.base is not None or id(out) in map(id, arrays):
                out = out.copy()
        r: Tensor = object.__new__(Tensor)
        r._raw = out
        r._count = r._node = None
        r._requires = False
        if state.mode:
            return r
        mask, sources = 0, [None] * len(xs)
        for k in self.moving:
            x = xs[k]
            source = source_of(x) if x._special else (x._node or x) if x._requires else None
            if source is not None:
                sources[k] = source
                mask |= 1 << k
        if not mask:
            return r
        n = self.made()
        n.vjp, n.broadcast_to = self.vjps.get(mask) or self.make(mask)
        n.ins = tuple([sources[k] for k in self.shown])
        saved = [xs[k] for k in n.vjp.reads]
        if n.vjp.needs_out:
            r._count = Counter()
            saved.append(saved_result(out, r._count))
        n.saved = tuple(saved)
        n.vers = versions(n.saved)
        n._code, n._at = outside(_getframe(2)) or (None, 0)
        n._seq = next(sequence)
        n.extra = None
        r._node = n
        r._requires = True
        return r

    def make(self, bits: int) -> Any:
        """For a mask of operands that need a gradient: the derivative, and what has to be fitted."""
        mask = tuple([bool(bits >> k & 1) for k in range(len(self.arrays))])
        vjp = self.plan.vjp(mask, self.kind, self.shown)
        broadcast_to = None
        if vjp.lacking or self.plan.pointwise:
            shape = np.broadcast_shapes(*[known for known, _ in self.arrays]) if self.plan.pointwise else None
            if vjp.lacking or any(mask[k] and self.arrays[k][0] != shape for k in self.shown):
                broadcast_to = tuple([self.arrays[k] if mask[k] else None for k in self.shown])
        return limited(self.vjps, bits, (vjp, broadcast_to))


def key_of(signature: Any, xs: Sequence[Any]) -> Any:
    """By what a recipe is found; None where an operand is not a tensor, and for many operands."""
    if len(xs) > MOST_OPERANDS:
        return None
    try:
        return (signature, *[part for x in xs for part in (x._raw.shape, x._raw.dtype)])
    except AttributeError:
        return None


def find(key: Any) -> Recipe | None:
    """The recipe of this key, if an operation was done so before."""
    return _recipes.get(key)


def keep(
    key: Any, plan: Plan, kind: np.dtype[Any], name: str, shown: tuple[int, ...], view: bool, arrays: Sequence[Any]
) -> None:
    """Remember how an operation was done."""
    _recipes.keep(key, Recipe(plan, kind, name, shown, view, arrays))


def again(signature: Any, *xs: Any) -> Tensor | None:
    """The result of an operation on these tensors, if there is a recipe and nothing unusual is on.

    For callers that try this before they check their operands: a recipe exists only for what passed the checks.
    """
    if state.mode == SPECIAL:
        return None
    recipe: Recipe | None = _recipes.get(key_of(signature, xs))
    return None if recipe is None else recipe.follow(*xs)


_MANY = 4096


class Number:
    """A plain number in a format, as an array without axes."""

    __slots__ = ("_raw",)
    _count = None

    def __init__(self, raw: Any) -> None:
        self._raw = raw


class Numbers(dict[Any, Number]):
    """Numbers that were used before, by their value."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, value: Any) -> Number:
        found = Number(np.asarray(value, self.kind))
        if value:  # 0.0 and -0.0 would be one entry
            if len(self) >= _MANY:
                self.clear()
            self[value] = found
        return found


_SHARED["numbers32"], _SHARED["numbers64"] = Numbers(F32), Numbers(F64)


def _expression(scripts: list[Script], function: Any, args: tuple[str, ...]) -> str:
    """The text of a declared operation, or of a formula of such operations, on named operands."""
    if hasattr(function, "impl"):
        texts = [script.applied(function, args, [None] * len(args), {}) for script in scripts]
    else:
        forward = plan_of(function, (), ("float",) * len(args), {}, True).forward
        texts = [f"{script.name(forward.function(script.kind))}({', '.join(args)})[0]" for script in scripts]
    return texts[0] if texts[0] == texts[1] else f"({texts[1]} if double else {texts[0]})"


def _kept(parts: list[str]) -> str:
    """The statement that saves; a result is saved without its tensor."""
    result = "s = Saved(); s._raw = out; s._count = r._count = Counter(); " if "r" in parts else ""
    return f"{result}n.saved = ({''.join(['s, ' if part == 'r' else f'{part}, ' for part in parts])})"


def _made(name: str, arguments: str, write: Callable[[list[Script]], str], scope: dict[str, Any]) -> Any:
    """A function that is written out when it is first called."""

    def build() -> Any:
        scripts = [Script(F32, "k"), Script(F64, "q")]
        text = write(scripts)
        for script in scripts:
            scope.update(script.names)
        function.__code__ = generated.function(text, scope, name).__code__
        return function

    parameters = arguments.replace("alpha=alpha", "*, alpha=1")
    scope.update(_SHARED, build=build)
    text = f"def {name}({parameters}):\n    return build()({arguments})\n"
    function: Any = generated.function(text, scope, name)
    scope[name] = function
    function.__kwdefaults__ = {"alpha": 1} if "alpha" in arguments else None
    return function


def _vjps(function: Any, count: int) -> dict[str, Any]:
    """For both formats a list of derivatives, by the mask of operands that need a gradient, and what makes one.

    At 0 stands that of the first operand for a node which has no edge for the second one.
    """
    found: dict[str, Any] = {}
    for bits, kind in ((32, F32), (64, F64)):
        known: list[Any] = [None] * 2**count

        def make(mask: int, known: list[Any] = known, kind: Any = kind) -> Any:
            plan = plan_of(function, (), ("float",) * count, {}, True)
            moves = tuple([bool((mask or 1) >> i & 1) for i in range(count)])
            known[mask] = plan.vjp(moves, kind, tuple(range(count)) if mask else (0,))
            return known[mask]

        found[f"vjps{bits}"], found[f"made{bits}"] = known, make
    return found


def unary(name: str, primitive: Any, node: str, long_way: Callable[..., Any]) -> Any:
    """A function of one tensor."""

    def write(scripts: list[Script]) -> str:
        back = plan_of(primitive, (), ("float",), {}, True).backward((True,))
        return ONE.format(
            name=name,
            text=_expression(scripts, primitive, ("a",)),
            kept=_kept([*(["input"] if back.reads else []), *(["r"] if back.needs_out else [])]),
            vers=f"None if {_calm('input')} else versions(n.saved)" if back.reads else "None",
        )

    scope = {"long_way": long_way, "Made": class_named(RuleNode, node), **_vjps(primitive, 1)}
    return _made(name, "input", write, scope)


def _calm(operand: str) -> str:
    """Whether an operand was never changed in place."""
    return f"((c := {operand}._count) is None or not c.value)"


def binary(
    name: str, primitive: Any, node: str, long_way: Callable[..., Any], scaled: bool = False, of_number: str = ""
) -> Any:
    """A function of a tensor and a tensor or number; `scaled`: with PyTorch's `alpha`.

    `of_number`: the name of the node for a number, where that node has one edge.
    """

    def write(scripts: list[Script]) -> str:
        plan = plan_of(primitive, (), ("float", "float"), {}, True)
        texts: dict[str, str] = {}
        for mask in (1, 2, 3):
            back = plan.backward((bool(mask & 1), bool(mask & 2)))
            parts = [("input", "other")[i] for i in back.reads] + (["r"] if back.needs_out else [])
            texts[f"kept{mask}"] = _kept(parts)
            if mask == 1:
                texts["kept1n"] = _kept(["y" if part == "other" else part for part in parts])
        calm = f"{_calm('input')} and {_calm('other')}"
        return TWO.format(
            name=name,
            signature="input, other, *, alpha=1" if scaled else "input, other",
            guard=" and alpha == 1" if scaled else "",
            call="input, other, alpha=alpha" if scaled else "input, other",
            text=_expression(scripts, primitive, ("a", "b")),
            number=0 if of_number else 1,
            edges="(s,)" if of_number else "(s, None)",
            vers="None" if texts["kept3"] == _kept([]) else f"None if {calm} else versions(n.saved)",
            vers1n=f"None if {_calm('input')} else versions(n.saved)" if "input" in texts["kept1n"] else "None",
            **texts,
        )

    scope = {"long_way": long_way, "Made": class_named(RuleNode, node), **_vjps(primitive, 2)}
    scope["OfNumber"] = class_named(RuleNode, of_number or node)
    return _made(name, "input, other, alpha=alpha" if scaled else "input, other", write, scope)

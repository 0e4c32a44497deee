"""Generated functions for what is called again and again: operators, and operations of known shapes.

An operator that is called a hundred thousand times cannot afford many tests. The functions generated here make the few
that are needed (is anything unusual on, are the operands plain tensors of one float format) and take the long way of
`record.py` if one fails. What they compute and what they save is read off the declarations, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from sys import _getframe
from typing import Any

import numpy as np

from gradcli.eager._core.dtypes import FLOATS
from gradcli.eager._core.grad_fn import SavedResult, class_named, versions
from gradcli.eager._core.modes import SPECIAL, ours, outside, sequence, state
from gradcli.eager._core.tensor import Counter, Tensor
from gradcli.eager._engine.codegen import FunctionSource, straight
from gradcli.eager._engine.plan import MOST_NODES, Cache, OperationPlan, limited, plan_of
from gradcli.eager._engine.rule_node import RuleNode, source_of
from gradcli.execution import generated

F32, F64 = FLOATS

SOURCE = "None if m else source_of({x}) if {x}._special else ({x}._node or {x}) if {x}._requires else None"

# what is the same for every result, and for one that is recorded
RESULT = """
r = new(Tensor)
r._raw = out
r._count = None
{sources}
if {none}:
    r._node = None
    r._requires = False
    return r"""

NODE = """
n = {cls}()
n.ins = ({ins},)
n.vjp = {vjp}
n.broadcast_to = {broadcast_to}
{kept}
n.vers = {vers}
n._seq = next(sequence)
n.extra = None
f = _getframe(1)
if ours[f.f_globals.get("__name__")]:
    n.place = outside(f)
else:
    n._code = f.f_code
    n._at = f.f_lasti
r._node = n
r._requires = True
return r"""


def _deep(depth: int, text: str, **parts: Any) -> str:
    """A part of a function's text so many levels deep."""
    return text.format(**parts).replace("\n", "\n" + depth * "    ")


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
    + _deep(2, RESULT, sources=f"s = {SOURCE.format(x='input')}", none="s is None")
    + _deep(
        2,
        NODE,
        cls="NodeClass",
        ins="s",
        vjp="(vjps64 if double else vjps32)[1]",
        broadcast_to=None,
        kept="{kept}",
        vers="{vers}",
    )
    + """
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
                return long_way({call})"""
    + _deep(
        3,
        RESULT,
        sources=f"s = {SOURCE.format(x='input')}\nt = {SOURCE.format(x='other')}",
        none="s is None and t is None",
    )
    + _deep(
        3,
        NODE,
        cls="NodeClass",
        ins="s, t",
        vjp="(vjps64 if double else vjps32)[1 if t is None else 2 if s is None else 3]",
        broadcast_to="None if a.shape == b.shape else ((a.shape, d), (b.shape, d))",
        kept="if t is None: {kept1}\nelif s is None: {kept2}\nelse: {kept3}",
        vers="{vers}",
    )
    + """
        if other.__class__ is float or other.__class__ is int:
            y = (numbers64 if double else numbers32)[other]
            b = y._raw
            out = {text}"""
    + _deep(3, RESULT, sources=f"s = {SOURCE.format(x='input')}", none="s is None")
    + _deep(
        3,
        NODE,
        cls="OfNumber",
        ins="{edges}",
        vjp="(vjps64 if double else vjps32)[{number}]",
        broadcast_to=None,
        kept="{kept1n}",
        vers="{vers1n}",
    )
    + """
    return long_way({call})
"""
)

# of a recipe, whose ways are functions for the operands that need a gradient
FOLLOW = """
def follow(recipe, {xs}):
    if {special}:
        if {inference}:
            return None
    m = state.mode
    {sources}
    i = {mask}
    return (recipe.ways.get(i) or recipe.make(i))({given})
"""

MOST_OPERANDS = 8  # operations on more of them take the long way
recipes = Cache(MOST_NODES)
_MANY = 4096


class PlainNumber:
    """A plain number in a format, as an array without axes, or an array that a node saved; read as a tensor is."""

    __slots__ = ("_raw",)
    _count = None
    _special = _inference = _requires = False
    _array = property(lambda self: self._raw)

    def __init__(self, raw: Any) -> None:
        self._raw = raw


class NumberCache(dict[Any, PlainNumber]):
    """Numbers that were used before, by their value."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, value: Any) -> PlainNumber:
        number = PlainNumber(np.asarray(value, self.kind))
        if value:  # 0.0 and -0.0 would be one entry
            if len(self) >= _MANY:
                self.clear()
            self[value] = number
        return number


NUMBERS = {F32: NumberCache(F32), F64: NumberCache(F64)}
# what generated functions name
_SHARED: dict[str, Any] = {
    item.__name__: item for item in (Counter, PlainNumber, SavedResult, Tensor, _getframe, outside, source_of, versions)
}
_SHARED.update(ours=ours, sequence=sequence, state=state, new=object.__new__, F32=F32, F64=F64)
_SHARED.update(numbers32=NUMBERS[F32], numbers64=NUMBERS[F64], __name__="gradcli.eager.generated")


@cache
def _follower(count: int, moves: tuple[bool, ...]) -> Any:
    """The function that follows recipes of so many operands, some of which may need a gradient."""
    xs, moving = [f"x{k}" for k in range(count)], [k for k in range(count) if moves[k]]
    text = FOLLOW.format(
        xs=", ".join(xs),
        special=" or ".join(f"{x}._special" for x in xs),
        inference=" or ".join(f"{x}._inference" for x in xs),
        sources="; ".join(f"s{k} = {SOURCE.format(x=xs[k])}" for k in moving) or "pass",
        mask=" + ".join(f"(s{k} is not None) * {2**k}" for k in moving) or "0",
        given=", ".join([*xs, *[f"s{k}" for k in moving]]),
    )
    return generated.function(text, _SHARED, "follow")


class TensorRecipe:
    """One operation on tensors of known shapes and formats.

    `follow(recipe, *xs)` is its result on such tensors, None where one was made in inference mode. What is done is one
    function for each set of operands that need a gradient (`ways`, by a mask of bits).
    """

    def __init__(
        self,
        plan: OperationPlan,
        kind: np.dtype[Any],
        name: str,
        shown: tuple[int, ...],
        view: bool,
        arrays: Sequence[Any],
    ) -> None:
        self.plan, self.kind, self.size, self.shown, self.view = plan, kind, plan.size, shown, view
        self.node_class = class_named(RuleNode, name)
        self.types = [(array.shape, array.dtype) for array in arrays]
        self.turned = tuple([k for k, array in enumerate(arrays) if array.flags.f_contiguous and array.ndim == 2])
        self.ways: dict[int, Any] = {}
        self.follow = _follower(len(arrays), plan.differentiable)

    def make(self, bits: int) -> Any:
        """The function of the operands, and of where the gradients of those in a mask go."""
        plan, every = self.plan, range(len(self.types))
        mask = tuple([bool(bits >> k & 1) for k in every])
        back = plan.backward(mask) if bits else None
        script = FunctionSource(self.kind)
        script.lines = [f"v{k} = x{k}.{'_array' if self.view else '_raw'}" for k in every]
        known = dict(zip(plan.leaves, [f"v{k}" for k in every], strict=True))
        out, *kept = straight(script, known, plan.forward.order, [plan.out, *(back.kept if back else ())])
        script.lines.append(f"out = {out}")
        if not self.view:
            same = " or ".join(f"out is v{k}" for k in every)
            script.lines.append(f"if out.base is not None or {same}: out = out.copy()")
        end = _deep(1, RESULT, sources="", none=not bits)
        if back:
            vjp = plan.vjp(mask, self.kind, self.shown, turned=self.turned)
            shape = np.broadcast_shapes(*[shape for shape, _ in self.types]) if plan.pointwise else plan.out.shape
            script.names.update(vjp=vjp, broadcast_to=vjp.fitted_to(self.types, shape), NodeClass=self.node_class)
            operands = [f"x{k}" for k in back.reads]
            end += _deep(
                1,
                NODE,
                cls="NodeClass",
                ins=", ".join(f"s{k}" if mask[k] else "None" for k in self.shown),
                vjp="vjp",
                broadcast_to="broadcast_to",
                kept=_kept([*operands, *["r"] * back.needs_out, *[f"PlainNumber({name})" for name in kept]]),
                vers=_versions(operands),
            )
        script.names.update(_SHARED)
        arguments = ", ".join([*[f"x{k}" for k in every], *[f"s{k}" for k in every if plan.differentiable[k]]])
        return limited(self.ways, bits, script.function("way", arguments, end))


def key_of(signature: Any, xs: Sequence[Any]) -> Any:
    """By what a recipe is found; None where an operand is not a tensor, and for many operands."""
    if len(xs) > MOST_OPERANDS:
        return None
    try:
        return (signature, *[part for x in xs for part in (x._raw.shape, x._raw.dtype)])
    except AttributeError:
        return None


def with_numbers(xs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands with plain numbers in the format of the first tensor of floats."""
    for x in xs:
        if isinstance(x, Tensor) and x._raw.dtype in NUMBERS:
            known = NUMBERS[x._raw.dtype]
            return tuple([known[x] if type(x) is float or (type(x) is int and abs(x) < _MANY) else x for x in xs])
    return xs


def again(signature: Any, *xs: Any) -> Tensor | None:
    """The result of an operation on these tensors, if there is a recipe and nothing unusual is on.

    For callers that try this before they check their operands: a recipe exists only for what passed the checks.
    """
    if state.mode == SPECIAL:
        return None
    recipe: TensorRecipe | None = recipes.get(key_of(signature, xs))
    return None if recipe is None else recipe.follow(recipe, *xs)


def _expression(scripts: list[FunctionSource], function: Any, args: tuple[str, ...]) -> str:
    """The text of a declared operation, or of a formula of such operations, on named operands."""
    if hasattr(function, "impl"):
        texts = [script.applied(function, args, [None] * len(args), {}) for script in scripts]
    else:
        forward = plan_of(function, (), ("float",) * len(args), {}, True).forward
        texts = [f"{script.name(forward.function(script.kind))}({', '.join(args)})[0]" for script in scripts]
    return texts[0] if texts[0] == texts[1] else f"({texts[1]} if double else {texts[0]})"


def _kept(parts: list[str]) -> str:
    """The statement that saves; a result is saved without its tensor."""
    result = "s = SavedResult(); s._raw = out; s._count = r._count = Counter(); " if "r" in parts else ""
    return f"{result}n.saved = ({''.join(['s, ' if part == 'r' else f'{part}, ' for part in parts])})"


def _versions(operands: list[str]) -> str:
    """The versions of saved operands: None where none was ever changed in place."""
    calm = " and ".join(f"((c := {operand}._count) is None or not c.value)" for operand in operands)
    return f"None if {calm} else versions(n.saved)" if operands else "None"


class Vjps(dict[int, Any]):
    """Derivatives of one operation by the mask of operands that need a gradient.

    At 0 stands that of the first operand for a node which has no edge for the second one.
    """

    def __init__(self, function: Any, count: int, kind: np.dtype[Any]) -> None:
        super().__init__()
        self.function, self.count, self.kind = function, count, kind

    def __missing__(self, mask: int) -> Any:
        plan = plan_of(self.function, (), ("float",) * self.count, {}, True)
        moves = tuple([bool((mask or 1) >> i & 1) for i in range(self.count)])
        vjp = self[mask] = plan.vjp(moves, self.kind, tuple(range(self.count)) if mask else (0,))
        return vjp


def _deferred(
    name: str, function: Any, arguments: str, count: int, write: Callable[[list[FunctionSource]], str], **scope: Any
) -> Any:
    """A function of operands that is written out when it is first called."""

    def build() -> Any:
        scripts = [FunctionSource(F32, "k"), FunctionSource(F64, "q")]
        text = write(scripts)
        for script in scripts:
            scope.update(script.names)
        stub.__code__ = generated.function(text, scope, name).__code__
        return stub

    parameters = arguments.replace("alpha=alpha", "*, alpha=1")
    scope.update(_SHARED, build=build, vjps32=Vjps(function, count, F32), vjps64=Vjps(function, count, F64))
    text = f"def {name}({parameters}):\n    return build()({arguments})\n"
    stub: Any = generated.function(text, scope, name)
    scope[name] = stub
    stub.__kwdefaults__ = {"alpha": 1} if "alpha" in arguments else None
    return stub


def unary(name: str, primitive: Any, node: str, long_way: Callable[..., Any]) -> Any:
    """A function of one tensor."""

    def write(scripts: list[FunctionSource]) -> str:
        back = plan_of(primitive, (), ("float",), {}, True).backward((True,))
        operands = ["input"] * len(back.reads)
        kept = _kept([*operands, *["r"] * back.needs_out])
        text = _expression(scripts, primitive, ("a",))
        return ONE.format(name=name, text=text, kept=kept, vers=_versions(operands))

    return _deferred(name, primitive, "input", 1, write, long_way=long_way, NodeClass=class_named(RuleNode, node))


def binary(
    name: str, primitive: Any, node: str, long_way: Callable[..., Any], scaled: bool = False, of_number: str = ""
) -> Any:
    """A function of a tensor and a tensor or number; `scaled`: with PyTorch's `alpha`.

    `of_number`: the name of the node for a number, where that node has one edge.
    """
    call = "input, other, alpha=alpha" if scaled else "input, other"

    def write(scripts: list[FunctionSource]) -> str:
        plan = plan_of(primitive, (), ("float", "float"), {}, True)
        texts: dict[str, str] = {}
        for mask in (1, 2, 3):
            back = plan.backward((bool(mask & 1), bool(mask & 2)))
            parts = [("input", "other")[i] for i in back.reads] + ["r"] * back.needs_out
            texts[f"kept{mask}"] = _kept(parts)
            if mask == 1:
                texts["kept1n"] = _kept(["y" if part == "other" else part for part in parts])
        return TWO.format(
            name=name,
            signature="input, other, *, alpha=1" if scaled else "input, other",
            guard=" and alpha == 1" if scaled else "",
            call=call,
            text=_expression(scripts, primitive, ("a", "b")),
            number=0 if of_number else 1,
            edges="s" if of_number else "s, None",
            vers="None" if texts["kept3"] == _kept([]) else _versions(["input", "other"]),
            vers1n=_versions(["input"] if "input" in texts["kept1n"] else []),
            **texts,
        )

    classes = {"NodeClass": class_named(RuleNode, node), "OfNumber": class_named(RuleNode, of_number or node)}
    return _deferred(name, primitive, call, 2, write, long_way=long_way, **classes)

"""The short way of operators: a text per operation goes in, functions on tensors of one float format come out.

An operator that is called a hundred thousand times cannot afford questions. The functions made here ask the few that
are needed (is anything unusual on, are both operands plain tensors of one float format) and take the long way of
`dispatch` if an answer is no. What they compute and what they save is read off the declarations, as everywhere.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import templates
from gradcli.eager.nodes import class_named
from gradcli.eager.out_argument import written
from gradcli.eager.plans import plan_of
from gradcli.eager.promotion import FLOATS
from gradcli.eager.rules import RuleNode
from gradcli.eager.saving import Saved, versions
from gradcli.eager.source import Script
from gradcli.eager.state import caller, ours, outside, sequence, state
from gradcli.eager.tensor import Counter, Tensor
from gradcli.execution import generated

if TYPE_CHECKING:
    from collections.abc import Callable

F32, F64 = FLOATS
_MANY = 4096


class Number:
    """A plain number in a format: as a scalar for scalars, as an array without axes for arrays, which is faster."""

    __slots__ = ("_raw", "alone")
    _count = None

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.alone = (self,)  # as what a node saves


class Numbers(dict[Any, Number]):
    """Numbers that were used before, by their value."""

    def __init__(self, kind: np.dtype[Any], array: bool) -> None:
        super().__init__()
        self.kind = kind
        self.array = array

    def __missing__(self, value: Any) -> Number:
        found = Number(np.asarray(value, self.kind) if self.array else self.kind.type(value))
        if value:  # 0.0 and -0.0 would be one entry
            if len(self) >= _MANY:
                self.clear()
            self[value] = found
        return found


class Ways:
    """For each mask of operands that need a gradient the way back, made when it is first needed."""

    def __init__(self, function: Any, params: dict[str, Any], count: int, kind: Any) -> None:
        self.known: list[Any] = [None] * 2**count
        self.made = (function, params, count, kind)

    def make(self, mask: int) -> Any:
        """The way for a mask of bits."""
        function, params, count, kind = self.made
        plan = plan_of(function, (), ("float",) * count, params, True)
        bits = tuple([bool(mask >> i & 1) for i in range(count)])
        found = self.known[mask] = plan.way(bits, kind, tuple(range(count)))
        return found


_SHARED: dict[str, Any] = {
    "Counter": Counter,
    "F32": F32,
    "F64": F64,
    "Saved": Saved,
    "Tensor": Tensor,
    "_getframe": _getframe,
    "float32": np.float32,
    "float64": np.float64,
    "new": object.__new__,
    "ours": ours,
    "caller": caller,
    "outside": outside,
    "sequence": sequence,
    "state": state,
    "versions": versions,
    "written": written,
}
_SHARED["array32"], _SHARED["array64"] = Numbers(F32, True), Numbers(F64, True)
_SHARED["scalar32"], _SHARED["scalar64"] = Numbers(F32, False), Numbers(F64, False)


def _expression(scripts: list[Script], primitive: Any, args: tuple[str, ...], params: dict[str, Any]) -> str:
    texts = [script.applied(primitive, args, [None] * len(args), params) for script in scripts]
    return texts[0] if texts[0] == texts[1] else f"({texts[1]} if double else {texts[0]})"


def _of_a_number(text: str, scripts: list[Script]) -> str:
    """The statement for one number: Python's own function, called directly where the text is nothing but its call."""
    for script in scripts:
        for name, function in script.names.items():
            if text == f"{name}(a)" and hasattr(function, "precise"):
                script.names[f"{name}p"], script.names[f"{name}f"] = function.precise, function.function
                return f"try: out = k({name}p(a))\n            except (ValueError, OverflowError): out = {name}f(a)"
    return f"out = {text}"


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _kept(parts: list[str]) -> str:
    """The statement that saves; a result is saved without its tensor."""
    if "r" not in parts:
        return f"n.saved = {_tuple(parts)}"
    line = "s = Saved(); s._raw = out; s._count = r._count = Counter(); n.saved = "
    return line + _tuple(["s" if part == "r" else part for part in parts])


def _made(name: str, arguments: str, write: Callable[[list[Script]], str], scope: dict[str, Any]) -> Any:
    """A function that is written out when it is first called."""

    def build() -> Any:
        scripts = [Script(F32, "k"), Script(F64, "q")]
        text = write(scripts)
        for script in scripts:
            scope.update(script.names)
        function.__code__ = generated.function(text, scope, name).__code__
        return function

    scaled = "alpha=alpha, " if "alpha" in arguments else ""
    parameters = arguments.replace(f"{scaled}out=out", f"*, {scaled}out=None".replace("=alpha", "=1"))
    scope.update(_SHARED, build=build, __name__="gradcli.eager.generated")
    text = f"def {name}({parameters}):\n    return build()({arguments})\n"
    function: Any = generated.function(text, scope, name)
    function.__kwdefaults__ = {"alpha": 1, "out": None} if "alpha" in arguments else {"out": None}
    return function


def _ways(primitive: Any, params: dict[str, Any], count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for bits, kind in ((32, F32), (64, F64)):
        ways = Ways(primitive, params, count, kind)
        found[f"ways{bits}"], found[f"made{bits}"] = ways.known, ways.make
    return found


def unary(
    name: str, primitive: Any, node: str, long_way: Callable[..., Any], params: dict[str, Any] | None = None
) -> Any:
    """A function of one tensor."""
    given = params or {}

    def write(scripts: list[Script]) -> str:
        back = plan_of(primitive, (), ("float",), given, True).backward((True,))
        text = _expression(scripts, primitive, ("a",), given)
        return templates.ONE.format(
            name=name,
            text=text,
            scalar=_of_a_number(text, scripts),
            kept=_kept([*(["input"] if back.reads else []), *(["r"] if back.needs_out else [])]),
            vers=f"None if {_calm('input')} else versions(n.saved)" if back.reads else "None",
        )

    scope = {"long_way": long_way, "Made": class_named(RuleNode, node), **_ways(primitive, given, 1)}
    return _made(name, "input, out=out", write, scope)


def _calm(operand: str) -> str:
    """Whether an operand was never changed in place."""
    return f"((c := {operand}._count) is None or not c.value)"


def binary(name: str, primitive: Any, node: str, long_way: Callable[..., Any], scaled: bool = False) -> Any:
    """A function of a tensor and a tensor or number; `scaled`: with PyTorch's `alpha`."""

    def write(scripts: list[Script]) -> str:
        plan = plan_of(primitive, (), ("float", "float"), {}, True)
        texts: dict[str, str] = {}
        for mask in (1, 2, 3):
            back = plan.backward((bool(mask & 1), bool(mask & 2)))
            parts = [("input", "other")[i] for i in back.reads] + (["r"] if back.needs_out else [])
            texts[f"kept{mask}"] = _kept(parts)
            if mask == 1:
                number = ["y" if part == "other" else part for part in parts]
                texts["kept1n"] = "n.saved = y.alone" if number == ["y"] else _kept(number)
        calm = f"{_calm('input')} and {_calm('other')}"
        return templates.TWO.format(
            name=name,
            signature="input, other, *, alpha=1, out=None" if scaled else "input, other, *, out=None",
            given='(input, other), {"alpha": alpha}' if scaled else "(input, other), {}",
            guard=" and alpha == 1" if scaled else "",
            call="input, other, alpha=alpha" if scaled else "input, other",
            text=_expression(scripts, primitive, ("a", "b"), {}),
            vers="None" if texts["kept3"] == _kept([]) else f"None if {calm} else versions(n.saved)",
            vers1n=f"None if {_calm('input')} else versions(n.saved)" if "input" in texts["kept1n"] else "None",
            **texts,
        )

    scope = {"long_way": long_way, "Made": class_named(RuleNode, node), **_ways(primitive, {}, 2)}
    return _made(name, "input, other, alpha=alpha, out=out" if scaled else "input, other, out=out", write, scope)

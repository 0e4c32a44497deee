"""The short way of operators: a text per operation goes in, functions on tensors of one float format come out.

An operator that is called a hundred thousand times cannot afford questions. The functions made here ask the few that
are needed (is anything unusual on, are both operands plain tensors of one float format) and take the long way of
`dispatch` if an answer is no. What they compute and what they save is read off the declarations, as everywhere.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager.nodes import Saved, class_named, versions
from gradcli.eager.plans import plan_of
from gradcli.eager.promotion import FLOATS
from gradcli.eager.rules import RuleNode
from gradcli.eager.source import Script
from gradcli.eager.state import outside, sequence, state
from gradcli.eager.tensor import Tensor
from gradcli.execution import generated

if TYPE_CHECKING:
    from collections.abc import Callable

F32, F64 = FLOATS
_MANY = 4096


class Number:
    """A plain number in a format: as a scalar for scalars, as an array without axes for arrays, which is faster."""

    __slots__ = ("_raw",)
    _count = None

    def __init__(self, raw: Any) -> None:
        self._raw = raw


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


class Ways(list[Any]):
    """For each mask of operands that need a gradient the way back, made when it is first needed."""

    def __init__(self, function: Any, params: dict[str, Any], count: int, shown: tuple[int, ...], kind: Any) -> None:
        super().__init__([None] * 2**count)
        self.made = (function, params, count, shown, kind)

    def make(self, mask: int) -> Any:
        """The way for a mask of bits."""
        function, params, count, shown, kind = self.made
        plan = plan_of(function, (), ("float",) * count, params, True)
        bits = tuple([bool(mask >> i & 1) for i in range(count)])
        found = self[mask] = plan.way(bits, kind, shown)
        return found


_NODE = """
            n._seq = next(sequence)
            n.extra = None
            f = _getframe(1)
            n.place = outside(f) if f.f_globals.get("__name__", "")[:8] == "gradcli." else (f.f_code, f.f_lasti)
            r._node = n
            r._requires = True"""

_ONE = (
    """
def {name}(input):
    m = state.mode
    if m < 2 and isinstance(input, Tensor) and not input._odd:
        a = input._raw
        d = a.dtype
        if d is F32 or d is F64:
            r = new(Tensor)
            out = r._raw = {text}
            if m or not input._requires:
                r._node = None
                r._requires = False
                return r
            n = new(Made)
            p = input._node
            n.ins = (input if p is None else p,)
            w = ways32 if d is F32 else ways64
            n.way = w[1] or w.make(1)
            n.fits = None
            n.saved = {saved}
            n.vers = {vers}"""
    + _NODE
    + """
            return r
    return long_way(input)
"""
)

_TWO = (
    """
def {name}({signature}):
    m = state.mode
    if m < 2{guard} and isinstance(input, Tensor) and not input._odd:
        a = input._raw
        d = a.dtype
        if d is F32 or d is F64:
            if isinstance(other, Tensor):
                b = other._raw
                if d is not b.dtype or other._odd:
                    return long_way({call})
                try:
                    out = {text}
                except (ValueError, TypeError):
                    return long_way({call})
                r = new(Tensor)
                r._raw = out
                i = input._requires + 2 * other._requires
                if m or not i:
                    r._node = None
                    r._requires = False
                    return r
                n = new(Made)
                p = input._node
                q = other._node
                if i == 3:
                    n.ins = (input if p is None else p, other if q is None else q)
                    n.saved = {saved3}
                elif i == 1:
                    n.ins = (input if p is None else p, None)
                    n.saved = {saved1}
                else:
                    n.ins = (None, other if q is None else q)
                    n.saved = {saved2}
                n.fits = None if a.shape == b.shape else ((a.shape, d), (b.shape, d))
                n.vers = None if {calm} else versions(n.saved)
            elif other.__class__ is float or other.__class__ is int:
                if a.__class__ is ndarray:
                    y = (array32 if d is F32 else array64)[other]
                else:
                    y = (scalar32 if d is F32 else scalar64)[other]
                b = y._raw
                r = new(Tensor)
                r._raw = {text}
                if m or not input._requires:
                    r._node = None
                    r._requires = False
                    return r
                i = 1
                n = new(Made)
                p = input._node
                n.ins = (input if p is None else p, None)
                n.saved = {saved1n}
                n.fits = None
                n.vers = {vers1n}
            else:
                return long_way({call})
            w = ways32 if d is F32 else ways64
            n.way = w[i] or w.make(i)"""
    + _NODE
    + """
            return r
    return long_way({call})
"""
)

_SHARED: dict[str, Any] = {
    "F32": F32,
    "F64": F64,
    "Tensor": Tensor,
    "_getframe": _getframe,
    "ndarray": np.ndarray,
    "new": object.__new__,
    "outside": outside,
    "result_saved": lambda r: Saved(r._raw, r._counter),
    "sequence": sequence,
    "state": state,
    "versions": versions,
}
_SHARED["array32"], _SHARED["array64"] = Numbers(F32, True), Numbers(F64, True)
_SHARED["scalar32"], _SHARED["scalar64"] = Numbers(F32, False), Numbers(F64, False)


def _expression(scripts: list[Script], primitive: Any, args: tuple[str, ...], params: dict[str, Any]) -> str:
    texts = [script.applied(primitive, args, [None] * len(args), params) for script in scripts]
    return texts[0] if texts[0] == texts[1] else f"({texts[0]} if d is F32 else {texts[1]})"


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


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
    scope.update(_SHARED, build=build, __name__=__name__)
    text = f"def {name}({parameters}):\n    return build()({arguments})\n"
    function: Any = generated.function(text, scope, name)
    if "alpha" in arguments:
        function.__kwdefaults__ = {"alpha": 1}
    return function


def _ways(primitive: Any, params: dict[str, Any], count: int) -> dict[str, Any]:
    shown = tuple(range(count))
    return {f"ways{bits}": Ways(primitive, params, count, shown, kind) for bits, kind in ((32, F32), (64, F64))}


def unary(
    name: str, primitive: Any, node: str, long_way: Callable[..., Any], params: dict[str, Any] | None = None
) -> Any:
    """A function of one tensor."""
    given = params or {}

    def write(scripts: list[Script]) -> str:
        back = plan_of(primitive, (), ("float",), given, True).backward((True,))
        saved = [*(["input"] if back.reads else []), *(["result_saved(r)"] if back.needs_out else [])]
        return _ONE.format(
            name=name,
            text=_expression(scripts, primitive, ("a",), given),
            saved=_tuple(saved),
            vers="None if input._count is None else versions(n.saved)" if back.reads else "None",
        )

    scope = {"long_way": long_way, "Made": class_named(RuleNode, node), **_ways(primitive, given, 1)}
    return _made(name, "input", write, scope)


def binary(name: str, primitive: Any, node: str, long_way: Callable[..., Any], scaled: bool = False) -> Any:
    """A function of a tensor and a tensor or number; `scaled`: with PyTorch's `alpha`."""

    def write(scripts: list[Script]) -> str:
        plan = plan_of(primitive, (), ("float", "float"), {}, True)
        texts: dict[str, str] = {}
        for mask in (1, 2, 3):
            back = plan.backward((bool(mask & 1), bool(mask & 2)))
            saved = [("input", "other")[i] for i in back.reads] + (["result_saved(r)"] if back.needs_out else [])
            texts[f"saved{mask}"] = _tuple(saved)
        texts["saved1n"] = texts["saved1"].replace("other", "y")
        reads = "input" in texts["saved1n"]
        return _TWO.format(
            name=name,
            signature="input, other, *, alpha=1" if scaled else "input, other",
            guard=" and alpha == 1" if scaled else "",
            call="input, other, alpha=alpha" if scaled else "input, other",
            text=_expression(scripts, primitive, ("a", "b"), {}),
            vers1n="None if input._count is None else versions(n.saved)" if reads else "None",
            calm="input._count is None and other._count is None",
            **texts,
        )

    scope = {"long_way": long_way, "Made": class_named(RuleNode, node), **_ways(primitive, {}, 2)}
    return _made(name, "input, other, alpha=alpha" if scaled else "input, other", write, scope)

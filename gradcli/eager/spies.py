"""An `impl` and the names of its operands go in, the text of what it does comes out; knows no operation.

The `impl` is called once with stand-ins that write down what is done to them: `lambda xp, x: xp.sin(x)` becomes the
text `sin(v0)`. One that looks at its operands cannot be written down so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.eager.source import Script

_SMALL = 4096  # up to so many entries a repeated number is written out, which is faster than a view without strides


_ALONG = {"take_along_axis": kernels.taken_along, "put_along_add": kernels.put_along}


class _Opaque(Exception):
    """An `impl` did something that cannot be written down."""


def written(
    script: Script, impl: Any, args: Sequence[str], shapes: Sequence[Any], params: dict[str, Any]
) -> str | None:
    """What an `impl` does as text, each part of it once; None where it cannot be written down."""
    spies = [_Spy(script, arg, shape) for arg, shape in zip(args, shapes, strict=True)]
    script.parts = []
    try:
        found = impl(_Names(script), *spies, **params)
    except Exception:  # whatever a stand-in cannot do, the function itself can
        return None
    return _shared(script, found.text) if isinstance(found, _Spy) else None


def _shared(script: Script, text: str) -> str:
    """Give parts that occur several times a name where they occur first."""
    for part in sorted(set(script.parts), key=len, reverse=True):
        if text.count(part) > 1:
            before, rest = text.split(part, 1)
            name = f"c{script.shared}"
            script.shared += 1
            text = f"{before}({name} := {part}){rest.replace(part, name)}"
    return text


class _Names:
    """The namespace as an `impl` under observation sees it."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def __getattr__(self, name: str) -> Any:
        script = self._script

        def called(*xs: Any, **options: Any) -> Any:
            if not any(isinstance(x, _Spy) for x in xs):
                raise _Opaque
            return _Spy(script, _called(script, name, xs, options), None, True)

        return called


def _called(script: Script, name: str, xs: tuple[Any, ...], options: dict[str, Any]) -> str:
    texts = [x.text if isinstance(x, _Spy) else None for x in xs]
    if name == "reshape" and not options and len(xs) == 2:
        return f"{texts[0]}.reshape({script.name(tuple(xs[1]))})"
    if name == "transpose" and not options and len(xs) == 2 and isinstance(xs[0], _Spy):
        return f"{texts[0]}.transpose({script.name(tuple(xs[1]))})"
    if name == "sum" and script.backward and len(options) == 1 and xs[0].known and len(xs[0].known) == 2:
        sums = kernels.sums_of(xs[0].known, options.get("axis", ()), script.kind)
        if sums is not None:
            return f"{script.name(sums)}({texts[0]})"
    if name == "maximum" and len(xs) == 2 and not isinstance(xs[1], _Spy) and xs[1] == 0 and script.kind.kind == "f":
        return f"{script.name(kernels.rectified)}({texts[0]}, {_plain(script, xs[1])})"
    if name == "sum" and options.get("axis") in (-1, (-1,)) and set(options) <= {"axis", "keepdims"}:
        return f"{script.name(kernels.along_rows)}({texts[0]}, {script.name(options.get('keepdims', False))})"
    if name == "sum" and set(options) == {"axis"}:
        return f"{script.name(kernels.added_up)}({texts[0]}, {script.name(options['axis'])})"
    if name == "sum" and "axis" in options and set(options) == {"axis", "keepdims"}:
        how = ", ".join(f"{key}={script.name(value)}" for key, value in options.items())
        return f"{script.name(kernels.added_up)}({texts[0]}, {how})"
    if name == "expand_dims" and not options:
        return f"{script.name(kernels.raised)}({texts[0]}, {_plain(script, xs[1])})"
    if name in _ALONG:
        known = getattr(script.xp, name)
        given = [x.text if isinstance(x, _Spy) else _plain(script, x) for x in xs]
        given += [f"{key}={_plain(script, value)}" for key, value in options.items()]
        return f"{script.name(_ALONG[name])}({script.name(known)}, {', '.join(given)})"
    if name == "argmax" and set(options) == {"axis"}:
        general = script.name(getattr(script.xp, name))
        return f"{script.name(kernels.place_of_largest)}({general}, {texts[0]}, {_plain(script, options['axis'])})"
    if name == "max" and "axis" in options and set(options) <= {"axis", "keepdims"}:
        how = ", ".join(f"{key}={script.name(value)}" for key, value in options.items())
        return f"{script.name(kernels.largest)}({texts[0]}, {how})"
    if name == "broadcast_to" and not options:
        shape = tuple(xs[1])
        small = script.backward and math.prod(shape) <= _SMALL and math.prod(xs[0].shape) == 1  # a value may be a view
        repeated = kernels.written_out if small else np.broadcast_to
        return f"{script.name(repeated)}({texts[0]}, {script.name(shape)})"
    if name == "cast":
        if xs[1] != "float":
            raise _Opaque
        return f"{texts[0]}.astype({script.name(script.kind)})"
    function = kernels.of_scalars(name, getattr(script.xp, name))
    given = [x.text if isinstance(x, _Spy) else _plain(script, x) for x in xs]
    given += [f"{key}={_plain(script, value)}" for key, value in options.items()]
    return f"{script.name(function)}({', '.join(given)})"


def _plain(script: Script, x: Any) -> str:
    if isinstance(x, float) and script.kind.kind in "fc":
        return script.name(np.asarray(x, script.kind))
    parts = x if isinstance(x, tuple) else (x,)
    if all(isinstance(part, (int, float, str, slice, type(None), np.generic)) for part in parts):
        return script.name(x)
    raise _Opaque


def _operator(sign: str, swapped: bool = False) -> Any:
    def method(self: _Spy, other: Any) -> _Spy:
        text = other.text if isinstance(other, _Spy) else _plain(self.script, other)
        left, right = (text, self.text) if swapped else (self.text, text)
        return _Spy(self.script, f"({left} {sign} {right})", None, True)

    return method


class _Spy:
    """A stand-in for an operand, which writes down what is done to it."""

    __slots__ = ("known", "script", "text")

    def __init__(self, script: Script, text: str, shape: Any, part: bool = False) -> None:
        self.script = script
        self.text = text
        self.known = shape
        if part:
            script.parts.append(text)

    @property
    def shape(self) -> Any:
        if self.known is None:
            raise _Opaque
        return self.known

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __bool__(self) -> bool:
        raise _Opaque

    def __getitem__(self, index: Any) -> _Spy:
        return _Spy(self.script, f"{self.text}[{_plain(self.script, index)}]", None, True)

    def __neg__(self) -> _Spy:
        return _Spy(self.script, f"(-{self.text})", None, True)

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __lt__, __le__, __gt__, __ge__ = _operator("<"), _operator("<="), _operator(">"), _operator(">=")
    __eq__, __ne__ = _operator("=="), _operator("!=")
    __and__, __or__ = _operator("&"), _operator("|")

    def __hash__(self) -> int:
        return id(self)

"""PyTorch's text for a tensor, from its array and its flags.

The rules are those of PyTorch 2.13. Widths and notation follow from the finite non-zero elements of what is shown, so
a summary never reads the whole array.

>>> import numpy
>>> tensor_text(numpy.array([1.0, 2.5]), dtype="float32", requires_grad=True)
'tensor([1.0000, 2.5000], requires_grad=True)'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from gradcli.eager._core import dtypes

Element = Callable[[Any], str]
PREFIX = "tensor("
INDENT = len(PREFIX)


class PrintOptions(NamedTuple):
    """What `set_printoptions` changes.

    `precision`: digits after the point; `threshold`: arrays with more elements are summarised; `edgeitems`: how many
    elements a summary shows at each end of an axis; `linewidth`: columns; `sci_mode`: True, False, or None (chosen by
    the values).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=inf),
}
_current = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors are printed from now on.

    `profile` ("default", "short", "full") is applied first; options that are None keep their value, except `sci_mode`,
    which every call sets. An unknown profile changes nothing, as in PyTorch.

    >>> set_printoptions(precision=2); import numpy; tensor_text(numpy.array(0.125), dtype="float32")
    'tensor(0.12)'
    >>> set_printoptions(profile="default")
    """
    global _current
    base = _current if profile is None else _PROFILES.get(profile, _current)
    changes: Any = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _current = base._replace(sci_mode=sci_mode, **{name: new for name, new in changes.items() if new is not None})


def tensor_text(
    array: np.ndarray[Any, Any],
    *,
    dtype: str,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    parameter: bool = False,
    default_dtype: str = "float32",
    device: str | None = None,
) -> str:
    """The text of a tensor, to the character.

    `array`: any shape, NumPy's bool, integer, float or complex kind. `dtype`: the tensor's dtype without "torch.";
    it is named in the text only, so that a bfloat16 tensor may be held in float32. `grad_fn_name` goes before
    `requires_grad`. `device` is given only where it is not the default one.

    >>> import numpy
    >>> tensor_text(numpy.array(-18.0), dtype="float32", grad_fn_name="MulBackward0")
    'tensor(-18., grad_fn=<MulBackward0>)'
    """
    options = _current
    suffixes = []
    if device is not None:
        suffixes.append(f"device='{device}'")
    if array.size == 0:
        body = "[]"
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        named = dtype != default_dtype
    else:
        body = _body(array, options)
        if not options.edgeitems:
            suffixes.append(f"size={tuple(array.shape)}")
        complex_default = "complex128" if default_dtype == "float64" else "complex64"
        named = dtype not in (default_dtype, complex_default, "int64", "bool")
    if named:
        suffixes.append(f"dtype=torch.{dtype}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    text = _with_suffixes(PREFIX + body, suffixes, options.linewidth)
    return f"Parameter containing:\n{text}" if parameter else text


def _with_suffixes(text: str, suffixes: Sequence[str], linewidth: int) -> str:
    # a text of one line counts two columns too many (rfind gives -1): PyTorch's own count, on which line breaks depend
    used = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if used + len(suffix) + 2 > linewidth:
            parts.append(",\n" + " " * INDENT + suffix)
            used = INDENT + len(suffix)
        else:
            parts.append(", " + suffix)
            used += len(suffix) + 2
    return "".join(parts) + ")"


def _body(array: np.ndarray[Any, Any], options: PrintOptions) -> str:
    shown, cut = _shown(array, options)
    element: Element
    if array.dtype.kind == "c":
        real, real_width = _element(shown.real.ravel().tolist(), True, options)
        imag, imag_width = _element(shown.imag.ravel().tolist(), True, options)

        def joined(value: complex) -> str:
            tail = (imag(value.imag) + "j").lstrip()
            return real(value.real) + (tail if tail[0] in "+-" else "+" + tail)

        element = joined
        length = real_width + imag_width + 3
    else:
        element, width = _element(shown.ravel().tolist(), array.dtype.kind == "f", options)
        length = width + 2
    if array.ndim == 0:
        return element(shown.item())
    return _nested(shown.tolist(), cut, INDENT, element, length, options)


def _shown(array: np.ndarray[Any, Any], options: PrintOptions) -> tuple[np.ndarray[Any, Any], list[bool]]:
    """The part of the array that is printed, and for each axis whether its middle was left out."""
    edge = options.edgeitems
    cut = [array.size > options.threshold and size > 2 * edge for size in array.shape]
    if not any(cut):
        return array, cut
    kept = [
        [*range(edge), *range(size - edge, size)] if shortened else range(size)
        for size, shortened in zip(array.shape, cut, strict=True)
    ]
    return array[np.ix_(*kept)], cut


def _element(values: list[Any], floating: bool, options: PrintOptions) -> tuple[Element, int]:
    """How one element is written, and the width to which all are padded."""
    plain: Element
    if not floating:
        plain = str
        width = max(map(len, map(str, values)), default=1)
        return lambda value: plain(value).rjust(width), width
    finite = [value for value in values if value and isfinite(value)]
    digits = options.precision
    smallest, largest = (extreme(map(abs, finite), default=1) for extreme in (min, max))
    # 1 / tiny may overflow to infinity, which is "more than 1000 times" all the same
    wide = largest > 1e8 or smallest < 1e-4 or largest / smallest > 1000
    if finite and (wide if options.sci_mode is None else options.sci_mode):
        plain = f"{{:.{digits}e}}".format
    elif all(value.is_integer() for value in finite):
        plain = lambda value: f"{value:.0f}{'.' if isfinite(value) else ''}"  # noqa: E731
    else:
        plain = f"{{:.{digits}f}}".format
    width = max((len(plain(value)) for value in finite), default=1)
    return lambda value: plain(value).rjust(width), width


def _nested(
    values: list[Any], cut: Sequence[bool], indent: int, element: Element, length: int, options: PrintOptions
) -> str:
    edge = options.edgeitems
    if len(cut) == 1:
        items = [element(value) for value in values]
        if cut[0]:
            items[edge:edge] = [" ..." if edge else "..."]
        per_line = max(1, (options.linewidth - indent) // length)
        lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [_nested(row, cut[1:], indent + 1, element, length, options) for row in values]
    if cut[0]:
        rows[edge:edge] = ["..."]
    return "[" + ("," + "\n" * (len(cut) - 1) + " " * (indent + 1)).join(rows) + "]"


def shown(x: Any) -> str:
    """The tensor's text with its suffixes: format, `grad_fn` or `requires_grad`."""
    node = x.grad_fn
    return tensor_text(
        x._array,
        dtype=x.dtype.name,
        device=None if x.device.type == "cpu" else str(x.device),
        requires_grad=x.requires_grad,
        grad_fn_name=None if node is None else type(node).__name__,
        parameter=x._is_param,
        default_dtype=dtypes.get_default_dtype().name,
    )

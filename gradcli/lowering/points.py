"""Reads points in every accepted form: `--at` texts, mappings of numbers, nested lists and arrays."""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, error, pointing_into, visible
from gradcli.language.limits import DEFAULT_LIMITS
from gradcli.language.source import Source
from gradcli.language.syntax import Number, Unary, nodes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.language.limits import Limits
    from gradcli.language.syntax import Expression

RANDOM_ARRAYS = 1000  # counted from here in points, so that they differ from those of the script
_SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def read_point(
    at: Mapping[str, Any] | Sequence[str] | None, limits: Limits | None = None
) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """The value of each name, and notes; texts are what `--at` takes, a mapping holds numbers, lists or arrays.

    Raises GradcliError: GC1xx for a text that cannot be read, GC6xx for a file, GC333 for what is not a number.

    >>> read_point(["x=2,y=[1,2,3]"])[0]
    {'x': 2.0, 'y': array([1., 2., 3.])}
    """
    limits = limits or DEFAULT_LIMITS
    at = () if at is None else at
    if hasattr(at, "items"):
        return {str(name): _value_of(str(name), value) for name, value in at.items()}, ()
    texts = (at,) if isinstance(at, str) else at
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise error("GC701", f"{visible(repr(at))} is not a point", help='give names with their values: {"x": 2}')
    reading = _Reading(limits)
    for text in texts:
        reading.add(text)
    return reading.point, tuple(reading.notes)


def _value_of(name: str, value: Any) -> Any:
    if isinstance(value, (float, complex)):
        return value
    if isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            raise error("GC107", f"the value of `{visible(name)}` is larger than the largest float64") from None
    if isinstance(value, str):
        if value in _SPECIAL:
            return _SPECIAL[value]
        raise error("GC333", f"the value of `{visible(name)}` is the text {value!r}, not a number")
    if isinstance(value, (list, tuple)):
        return [_value_of(name, item) for item in value]
    if getattr(value, "mask", None) is not None and value.mask.any():
        raise error("GC333", f"the value of `{visible(name)}` has masked entries", help="fill them: value.filled(0)")
    dtype = getattr(value, "dtype", None)
    if dtype is not None and dtype.kind == "c" and not value.shape:
        return complex(value)
    if dtype is not None and dtype.kind in "fiubc":
        return value.astype(float) if dtype.kind in "iub" else value
    what = f"of type {type(value).__name__}" if dtype is None else f"an array of {dtype}"
    raise error("GC333", f"the value of `{visible(name)}` is {what}, not a number or an array of numbers")


class _Reading:
    """The values of the texts that were given so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.point: dict[str, Any] = {}
        self.notes: list[Diagnostic] = []
        self.random_arrays = RANDOM_ARRAYS  # those without a seed differ from each other

    def add(self, text: str) -> None:
        """Read one text of `--at`."""
        from gradcli.language.values import FileReference, parse_at

        source = Source(text, "--at")
        with pointing_into(source):
            for binding in parse_at(text, self.limits):
                if isinstance(binding.value, FileReference):
                    from gradcli.lowering.data_files.loading import load, placed

                    read = load(binding.value.path, name=binding.name, limits=self.limits, span=binding.span)
                    self.point[binding.name] = read.array
                    self.notes.extend(placed(note, binding.span).with_source(source) for note in read.notes)
                else:
                    self.point[binding.name] = self.closed_value(binding.value, source)
                    self.notes.extend(_rounding(binding.name, binding.value, source))

    def closed_value(self, expression: Expression, source: Source) -> Any:
        """The value of an expression made of literals: `2`, `[1, 2, 3]`, `randn(3, 4, seed=1)`, `1 + 2i`.

        Raises GradcliError GC202 where it reads a name other than i or j, the imaginary unit.
        """
        if isinstance(expression, Number):
            return _rounded(expression)
        if isinstance(expression, Unary) and isinstance(expression.operand, Number) and expression.op != "not":
            value = _rounded(expression.operand)
            return -value if expression.op == "-" else value
        from gradcli.execution.evaluate import evaluate
        from gradcli.language.syntax import ExpressionStatement, Script
        from gradcli.lowering import LoweringMode, lower
        from gradcli.lowering.names import IMAGINARY

        statement = ExpressionStatement(expression, expression.span)
        script = Script((statement,), source, None, (), expression.span)
        lowered = lower(script, limits=self.limits, mode=LoweringMode(random_arrays=self.random_arrays))
        self.random_arrays = lowered.random_arrays
        names = list(lowered.program.leaves)
        if names and set(names) <= IMAGINARY:
            return evaluate(lowered.program, dict.fromkeys(names, 1j), dtype="complex128")[0]
        if names:
            name = names[0]
            raise error(
                "GC202",
                f"`{visible(name)}` has no value here: a point is made of literals",
                lowered.uses.get(name),
                source=source,
            )
        return evaluate(lowered.program, {})[0]


def _rounding(name: str, value: Expression, source: Source) -> list[Diagnostic]:
    """A note for each whole number that a double does not hold; of decimals everybody knows it."""
    notes: list[Diagnostic] = []
    for literal in [node for node in nodes_of(value) if isinstance(node, Number) and node.text.isdigit()]:
        nearest = int(_rounded(literal))
        if nearest != literal.ratio[0]:
            message = f"the value of `{visible(name)}` is rounded: the double nearest to {literal.text} is {nearest}"
            notes.append(Diagnostic("GC414", message, literal.span, severity="note", source=source))
    return notes


def _rounded(literal: Number) -> float:
    """The double nearest to a literal."""
    numerator, denominator = literal.ratio
    return numerator / denominator


def array_of(value: Any) -> Any:
    """Numbers in nested lists, or an array, as an array of NumPy."""
    from gradcli.execution.namespaces import namespace

    if hasattr(value, "dtype"):
        return value
    dtype = "complex128" if _holds_complex(value) else "float64"
    return namespace("numpy", dtype).numbers(value, "float")


def dtype_at(point: Mapping[str, Any], dtype: str) -> str:
    """The dtype for a point: a complex number in it makes float64 complex128."""
    return "complex128" if dtype == "float64" and any(map(_holds_complex, point.values())) else dtype


def _holds_complex(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_complex, value))
    return isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c"

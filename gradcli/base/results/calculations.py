"""The results of calculations: frozen records of values, gradients and traces.

The records behave as frozen dataclasses do (`dataclasses.fields`, `replace` and `asdict` accept them,
assigning raises `FrozenInstanceError`), but `dataclasses` is imported only when it is used: the
import and the generated methods would cost a one-line calculation a third of its time.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, ClassVar, TypeAlias, dataclass_transform

    from numpy.typing import NDArray

    from gradcli.base.diagnostics import Diagnostic, Span

    Value: TypeAlias = float | complex | NDArray[Any]
    Values: TypeAlias = Value | tuple[Value, ...]

else:  # typing costs 3 ms at start-up, and what it says matters to a type checker only

    def dataclass_transform(**_: object) -> object:
        return lambda decorated: decorated


class DataclassFields:
    """The attribute by which `dataclasses` recognises its own, made when it is first read."""

    def __init__(self) -> None:
        self.known: dict[type[Any], dict[str, Any]] = {}

    def __get__(self, instance: object, owner: type[Any]) -> dict[str, Any]:
        if owner in self.known:
            return self.known[owner]
        defaults = owner._defaults
        columns = [
            (name, kind, *([defaults[name]] if name in defaults else []))
            for name, kind in owner.__annotations__.items()
            if name in owner._names
        ]
        twin = import_module("dataclasses").make_dataclass(owner.__name__, columns, frozen=True)
        fields: dict[str, Any] = twin.__dataclass_fields__
        return self.known.setdefault(owner, fields)


@dataclass_transform(frozen_default=True)
class Record:
    """Base of the results: the annotations of a subclass are its fields, in order, and it is frozen."""

    _names: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[Any] = DataclassFields()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        names = tuple(name for name in cls.__annotations__ if not name.startswith("_"))
        cls._names = names
        type.__setattr__(cls, "__match_args__", names)
        cls._defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self._names
        if len(values) == len(names) and not named:
            self.__dict__.update(zip(names, values, strict=True))
            return
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} values, not {len(values)}")
        fields = dict(zip(names, values, strict=False))
        for name, value in named.items():
            if name in fields or name not in names:
                raise TypeError(f"{type(self).__name__} got an unexpected or repeated value {name!r}")
            fields[name] = value
        missing = [name for name in names if name not in fields and name not in self._defaults]
        if missing:
            raise TypeError(f"{type(self).__name__} lacks {', '.join(missing)}")
        self.__dict__.update({**self._defaults, **fields})

    def __setattr__(self, name: str, value: object) -> None:
        raise import_module("dataclasses").FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise import_module("dataclasses").FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(same(getattr(self, name), getattr(other, name)) for name in self._names)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # values may be arrays

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({shown})"


def same(first: object, second: object) -> bool:
    """Equality that also holds for containers of arrays; a NaN equals nothing, itself included."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    if hasattr(first, "shape") or hasattr(second, "shape"):
        if getattr(first, "shape", ()) != getattr(second, "shape", ()):
            return False
        equal: Any = first == second
        return bool(equal.all() if hasattr(equal, "all") else equal)
    return bool(first == second)


class DisplayedResult(Record):
    """A result whose `str` is what its command prints; a notebook shows it as a table, a formula or a drawing.

    `_displayed` returns the module that writes texts; the package sets it when a function of its interface is first
    used.
    """

    _displayed: ClassVar[Callable[[], Any] | None] = None

    def __str__(self) -> str:
        return repr(self) if DisplayedResult._displayed is None else str(DisplayedResult._displayed().text(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        if DisplayedResult._displayed is None:
            return {"text/plain": repr(self)}
        bundle: dict[str, str] = DisplayedResult._displayed().bundle(self)
        return bundle


class Evaluation(DisplayedResult):
    """The value of a script at a point; several outputs are a tuple of values.

    `exact` is None unless it was requested and floats lost their digits; then it has the exact `value`, and `lost_in`
    names the operation.
    """

    expression: str
    at: dict[str, Value]
    value: Values
    diagnostics: tuple[Diagnostic, ...] = ()
    exact: dict[str, Any] | None = None


class Gradient(DisplayedResult):
    """Value and gradient; `gradient[leaf]` has the leaf's shape, `derivatives[leaf]` is (f', f'', ...).

    `exact` is None unless it was requested and floats lost their digits; then it has the exact `value` and `gradient`
    by leaf (each only if its float is wrong), and `lost_in` names the operation.
    """

    expression: str
    at: dict[str, Value]
    value: Value
    gradient: dict[str, Value]
    derivatives: dict[str, tuple[Value, ...]] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    exact: dict[str, Any] | None = None


class Hessian(DisplayedResult):
    """Value, gradient and second derivatives; `hessian[a][b]` has the shape of a, then that of b."""

    expression: str
    at: dict[str, Value]
    value: Value
    gradient: dict[str, Value]
    hessian: dict[str, dict[str, Value]]
    diagnostics: tuple[Diagnostic, ...] = ()


class Jacobian(DisplayedResult):
    """Value and Jacobian; `jacobian[leaf]` has the shape of the output, then that of the leaf.

    For several outputs, `value` and `jacobian` are tuples with an entry for each output.
    """

    expression: str
    at: dict[str, Value]
    value: Values
    jacobian: dict[str, Value] | tuple[dict[str, Value], ...]
    diagnostics: tuple[Diagnostic, ...] = ()


MOST_CONDITIONS = 4  # in one sentence


class DerivationStep(Record):
    """One line of a derivation: the operation, its rule, and the derivative as `line` and, in the leaf, as `result`.

    `left` is the left side of both; `letter` is the name of the operation in later lines, if they do not repeat it.
    `proof` says which derivative of the whole operation has the normal form of the result.
    """

    of: str
    rule: str
    left: str
    line: str
    result: str
    proof: str
    letter: str = ""


class Derivative(Record):
    """A derivative in closed form, confirmed by `check`; a gradient has the shape of its leaf.

    `leaf` is its leaf, for a higher derivative the leaves in the order of differentiation: `x,y`. `formula` is in the
    script language; `text` is the same with symbols for sizes, for people, and `short` that with names for parts.
    `verdict` is the weakest verdict on it at the `checked` sizes, `every` says that it is proved for all sizes, and
    `only` are the sizes that it holds for where it depends on them. `assumptions` are the conditions under which it
    holds. `steps`, if requested, are the lines of its derivation.
    """

    leaf: str
    formula: str
    text: str
    verdict: str
    checked: list[dict[str, int]] | None
    assumptions: list[dict[str, str]]
    every: bool = False
    only: dict[str, int] | None = None
    short: str | None = None
    steps: list[DerivationStep] | None = None


class Derivation(DisplayedResult):
    """The derivatives of a script in closed form.

    `assumes` has the shape of every free name in symbols and numbers, `others` the ranks that a name might have as
    well, and `missing` the derivatives without a formula, with the reason. With `rows` the formulas are Jacobians of
    an array. `emitted` is a file in another language. `parts` defines the names for long parts that repeat, if there
    are any. A field of the derivatives is a dictionary by leaf here: `derivation.formula["x"]`.
    """

    expression: str
    derivatives: tuple[Derivative, ...]
    assumes: dict[str, list[str | int]]
    others: dict[str, list[int]]
    missing: dict[str, str]
    rows: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    emitted: str | None = None
    parts: dict[str, str] | None = None

    def by_leaf(self, field: str) -> dict[str, Any]:
        """A field of the derivatives that have it."""
        fields = {derivative.leaf: getattr(derivative, field) for derivative in self.derivatives}
        return {leaf: value for leaf, value in fields.items() if value is not None}

    @property
    def formula(self) -> dict[str, str]:
        return self.by_leaf("formula")

    @property
    def text(self) -> dict[str, str]:
        return self.by_leaf("text")

    @property
    def verdict(self) -> dict[str, str]:
        return self.by_leaf("verdict")

    @property
    def checked(self) -> dict[str, list[dict[str, int]]]:
        return self.by_leaf("checked")

    @property
    def assumptions(self) -> dict[str, list[dict[str, str]]]:
        return self.by_leaf("assumptions")

    @property
    def only(self) -> dict[str, dict[str, int]]:
        return self.by_leaf("only")

    @property
    def short(self) -> dict[str, str] | None:
        return self.by_leaf("short") or None

    @property
    def steps(self) -> dict[str, list[DerivationStep]] | None:
        return self.by_leaf("steps") or None

    @property
    def every(self) -> list[str]:
        return [derivative.leaf for derivative in self.derivatives if derivative.every]


def wherever(conditions: Sequence[Mapping[str, str]]) -> str:
    """Conditions as the end of a sentence: ", wherever both sides are defined and no comparison is a tie"."""
    texts = [condition["text"] for condition in conditions]
    if len(texts) > MOST_CONDITIONS:
        texts = [*texts[: MOST_CONDITIONS - 1], f"{len(texts) - MOST_CONDITIONS + 1} more conditions hold"]
    return f", wherever {', '.join(texts[:-1])}{' and ' if texts[1:] else ''}{texts[-1]}" if texts else ""


def derivative_label(key: str) -> str:
    """The name of a derivative: d/dx, d2/dx2, d2/dx dy."""
    key, along, direction = key.partition(" along ")
    if along:
        return f"{derivative_label(key)} along {direction}"
    leaves = key.split(",")
    if len(leaves) == 1:
        return f"d/d{key}"
    alike = len(set(leaves)) == 1
    return f"d{len(leaves)}/d{leaves[0]}{len(leaves)}" if alike else f"d{len(leaves)}/d{' d'.join(leaves)}"


class SelfContained(Record):
    """A script as a function of its leaves: the value and the gradient in formulas, and a point with its numbers.

    `leaves` has the shape of each leaf, `sizes` the leaf and the axis from which each size is read. `parts` are names
    with formulas, in order, which `value` and `gradient` use. `conditions` says of each leaf, in a sentence, where its
    gradient holds, if not everywhere.
    """

    expression: str
    leaves: dict[str, list[str | int]]
    sizes: dict[str, tuple[str, int]]
    parts: dict[str, str]
    value: str
    gradient: dict[str, str]
    at: dict[str, Any]
    number: float
    numbers: dict[str, Any]
    conditions: list[str]

    def shape_of(self, size: str) -> int:
        """A size at the point of the test."""
        leaf, axis = self.sizes[size]
        inner = self.at[leaf]
        for _ in range(axis):
            inner = inner[0]
        return len(inner)


class ForwardStep(Record):
    """One node of the forward pass: its operation, the nodes that it reads, its value, and its place in the source.

    `torch` is PyTorch's name of the node; `inserted` says that lowering inserted it, such as a reshape or a
    broadcast. `iteration` is the iteration of the loop that it belongs to, counted from 1.
    """

    index: int
    primitive: str
    inputs: tuple[int, ...]
    type: str
    value: Value
    text: str
    span: Span | None
    params: dict[str, object]
    torch: str = ""
    inserted: bool = False
    iteration: int | None = None


class Contribution(Record):
    """What a node sends to one of its inputs: cotangent times local partial, and the sum that `to` then holds.

    `summed`: the input was broadcast, so the products of cotangent and partial are added up. `formula`, if requested,
    is the partial in terms of the inputs of the node; for a node without partials, what it sends for a cotangent `ct`.
    """

    to: int
    partial: Value | None
    value: Value
    accumulated: Value
    summed: bool = False
    formula: str = ""


class BackwardStep(Record):
    """One node of the backward pass: its complete cotangent, and what it passes on."""

    index: int
    primitive: str
    cotangent: Value
    contributions: tuple[Contribution, ...]


class NaiveTrace(Record):
    """A backward pass in depth-first order, which passes on cotangents before they are complete: a common mistake.

    `steps` are the nodes in that order, each with the cotangent that it passed on; `parts_at` is the position of the
    first step that passes on an incomplete cotangent, None if none does.
    """

    steps: tuple[BackwardStep, ...]
    parts_at: int | None
    gradient: dict[str, Value]


class Passes(Record):
    """Both passes without the nodes that lowering inserted; a contribution to one of these is shown at its input."""

    forward: tuple[ForwardStep, ...]
    backward: tuple[BackwardStep, ...]
    naive: NaiveTrace | None = None


class Trace(DisplayedResult):
    """The forward pass in topological order, the backward pass in the reverse, and the gradient.

    `written` has the passes without the nodes that lowering inserted; None if there are no such nodes.
    """

    expression: str
    at: dict[str, Value]
    value: Value
    forward: tuple[ForwardStep, ...]
    backward: tuple[BackwardStep, ...]
    gradient: dict[str, Value]
    naive: NaiveTrace | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    written: Passes | None = None

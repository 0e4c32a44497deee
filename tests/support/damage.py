"""A declaration goes in, damaged copies of its rules come out one by one: wrong sign, factor, operand, term, axis.

A `Mutant` replaces one rule of one primitive while it is installed. What a rule returned is changed, not how: so each
mutant is a mistake that an author could have made in that rule.
"""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradcli.graph.arrays import ArrayData
from gradcli.graph.node import Node, reachable
from gradcli.graph.primitive import Closed, Complex, Operand
from gradcli.primitives.axes import reversed_along
from gradcli.primitives.creation import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gradcli.graph.primitive import Primitive

    Change = Callable[[Any, tuple[Any, ...]], Any]

SLIGHT = Fraction(1_000_001, 1_000_000)


class Same(Exception):
    """The change does not apply here, or leaves what it found."""


class Mutant:
    """One rule of one primitive, damaged in one way; `applied` tells whether it has changed anything so far.

    `make(damaged)` gives the new value of the field, where `damaged(right, attempt)` is a rule that returns what
    `attempt` makes, or what the right rule returns where `attempt` does not apply.
    """

    def __init__(self, primitive: Primitive, rule: str, kind: str, make: Callable[[Any], Any]) -> None:
        self.primitive = primitive
        self.rule = rule
        self.kind = kind
        self.applied = False
        self.value = make(self._damaged)

    def _damaged(self, right: Callable[..., Any], attempt: Callable[..., Any]) -> Callable[..., Any]:
        def rule(*xs: Any, **params: Any) -> Any:
            try:
                made = attempt(*xs, **params)
            except Same:
                return right(*xs, **params)
            self.applied = True
            return made

        return rule

    def __repr__(self) -> str:
        return f"{self.primitive.name}: {self.rule}, {self.kind}"

    @property
    def key(self) -> tuple[str, str, str]:
        return self.primitive.name, self.rule, self.kind

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The damaged rule in place of the right one."""
        name = self.rule.split("[")[0]
        right = getattr(self.primitive, name)
        setattr(self.primitive, name, self.value)
        try:
            yield
        finally:
            setattr(self.primitive, name, right)


class Like:
    """A function that lowering takes for another one: same parameters and defaults."""

    def __init__(self, function: Callable[..., Any], original: Callable[..., Any]) -> None:
        self.function = function
        self.__code__ = original.__code__
        self.__defaults__ = original.__defaults__
        self.__kwdefaults__ = original.__kwdefaults__

    def __call__(self, *xs: Any, **params: Any) -> Any:
        return self.function(*xs, **params)


# --- changes of what a rule returned ----------------------------------------------------------------------


def sign(found: Any, xs: tuple[Any, ...]) -> Any:
    if isinstance(found, (int, Fraction)) and found == 0:
        raise Same
    return -found


def factor(found: Any, xs: tuple[Any, ...]) -> Any:
    if isinstance(found, (int, Fraction)) and found == 0:
        raise Same
    return 2 * found


def slight(found: Any, xs: tuple[Any, ...]) -> Any:
    if isinstance(found, (int, Fraction)) and found == 0:
        raise Same
    return SLIGHT * found


def zero(found: Any, xs: tuple[Any, ...]) -> Any:
    """0, or 1 where the rule says 0."""
    if not isinstance(found, Operand):
        return 1 if found == 0 else 0
    return found.builder.constant(0, found.shape) if isinstance(found, Node) else found * 0


def axis(found: Any, xs: tuple[Any, ...]) -> Any:
    """The last two axes exchanged where they are equal, else the entries along an axis in the opposite order."""
    if not isinstance(found, Node) or not found.shape:
        raise Same
    if len(found.shape) > 1 and found.shape[-1] == found.shape[-2] > 1:
        return found.mT
    for i, size in enumerate(found.shape):
        if size > 1:
            return reversed_along(found, i - len(found.shape))
    raise Same


def dropped(number: int, side: int) -> Change:
    """The `number`-th sum or difference that the rule made, without one of its terms."""

    def change(found: Any, xs: tuple[Any, ...]) -> Any:
        if not isinstance(found, Node):
            raise Same
        newest = max((x.serial for x in xs if isinstance(x, Node)), default=0)
        sums = [node for node in reachable([found]) if node.primitive.name in ("add", "sub") and node.serial > newest]
        if number >= len(sums):
            raise Same
        chosen = sums[number]
        kept = chosen.args[1 - side]
        if side == 0 and chosen.primitive.name == "sub":
            kept = -kept
        return replaced(found, chosen, kept)

    return change


def replaced(found: Node, chosen: Node, kept: Node) -> Node:
    """The graph of `found` with one node in place of another."""
    known = {chosen: kept}
    for node in reachable([found]):
        if node not in known and any(arg in known for arg in node.args):
            args = tuple(known.get(arg, arg) for arg in node.args)
            known[node] = node.builder.apply(node.primitive, args, node.params)
    return known[found]


CHANGES: dict[str, Change] = {
    "sign": sign,
    "factor 2": factor,
    "zero": zero,
    "1e-6": slight,
    "axis": axis,
    **{f"term {2 * i + side} dropped": dropped(i, side) for i in range(3) for side in (0, 1)},
}
PLAIN = ("sign", "factor 2", "zero", "1e-6")


def within(change: Change, found: Any, xs: tuple[Any, ...]) -> Any:
    """The change in every part of a result: of several results, of a constant array, of sizes."""
    if isinstance(found, tuple) and found:
        return tuple(within(change, part, xs) for part in found)
    if isinstance(found, Complex):
        return Complex(within(change, found.real, xs), within(change, found.imag, xs))
    if isinstance(found, Closed):
        parts = tuple(within(change, x, xs) if isinstance(x, (Closed, int, Fraction)) else x for x in found.xs)
        return Closed(found.primitive, parts, found.params)
    if isinstance(found, ArrayData):
        return ArrayData(found.shape, [within(change, entry, xs) if entry else entry for entry in found.flat])
    if isinstance(found, Recipe):
        raise Same  # random numbers
    if isinstance(found, int) and change is slight:
        raise Same  # a size is whole
    made = change(found, xs)
    if made is found:
        raise Same
    return made


# --- mutants of a declaration --------------------------------------------------------------------------------


def rule_mutants(primitive: Primitive) -> Iterator[Mutant]:
    """Damaged derivative rules: partials, transposes, pushforwards, definitions."""
    rule = primitive.partials
    if rule is not None:
        for position in range(primitive.arity or 0):
            for kind, change in CHANGES.items():
                if kind != "axis":
                    yield _mutant(primitive, f"partials[{position}]", kind, rule, _partial(rule, position, change))
        if (primitive.arity or 0) > 1:
            yield _mutant(primitive, "partials", "swapped", rule, _swapped_partials(rule))
    transpose = primitive.transpose
    if callable(transpose):
        for kind, change in CHANGES.items():
            yield _mutant(primitive, "transpose", kind, transpose, _changed(transpose, change))
    elif transpose:
        for position, rule in transpose.items():
            for kind, attempt in _attempts(rule, _swapped):
                yield _mutant(primitive, f"transpose[{position}]", kind, rule, attempt, (transpose, position))
    for position, rule in enumerate(primitive.pushforward or ()):
        if rule is not None:
            for kind, attempt in _attempts(rule, _swapped):
                where = (dict(enumerate(primitive.pushforward or ())), position)
                yield _mutant(primitive, f"pushforward[{position}]", kind, rule, attempt, where)
    if primitive.definition is not None:
        for kind, attempt in _attempts(primitive.definition, _swapped_call):
            yield _mutant(primitive, "definition", kind, primitive.definition, attempt)


def _mutant(
    primitive: Primitive,
    rule: str,
    kind: str,
    right: Callable[..., Any],
    attempt: Callable[..., Any],
    among: tuple[dict[int, Any], int] | None = None,
) -> Mutant:
    def make(damaged: Callable[..., Any]) -> Any:
        made = Like(damaged(right, attempt), right)
        if among is None:
            return made
        rules, position = among
        found = {**rules, position: made}
        return found if rule.startswith("transpose") else list(found.values())

    return Mutant(primitive, rule, kind, make)


def _attempts(rule: Callable[..., Any], swapped: Callable[..., Any]) -> list[tuple[str, Callable[..., Any]]]:
    return [*((kind, _changed(rule, change)) for kind, change in CHANGES.items()), ("swapped", swapped(rule))]


def _partial(rule: Callable[..., Any], position: int, change: Change) -> Callable[..., Any]:
    def partials(*xs: Any, out: Any, **params: Any) -> Any:
        found = list(rule(*xs, out=out, **params))
        if position >= len(found) or found[position] is None:
            raise Same
        made = change(found[position], (*xs, out))
        if made is found[position]:
            raise Same
        found[position] = made
        return tuple(found)

    return partials


def _swapped_partials(rule: Callable[..., Any]) -> Callable[..., Any]:
    def partials(*xs: Any, out: Any, **params: Any) -> Any:
        found = list(rule(*xs, out=out, **params))
        if found[0] is found[1] or None in found[:2]:
            raise Same
        return (found[1], found[0], *found[2:])

    return partials


def _changed(rule: Callable[..., Any], change: Change) -> Callable[..., Any]:
    def changed(*xs: Any, **params: Any) -> Any:
        found = rule(*xs, **params)
        return within(change, found, (*xs, *(p for p in params.values() if isinstance(p, Node))))

    return changed


def _swapped(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A transpose or pushforward that mistakes one operand for another one of the same type."""

    def swapped(t: Any, *xs: Any, **params: Any) -> Any:
        if len(xs) < 2 or xs[0].type != xs[1].type or xs[0] is xs[1]:
            raise Same
        right, made = rule(t, *xs, **params), rule(t, xs[1], xs[0], *xs[2:], **params)
        if made is right:
            raise Same
        return made

    return swapped


def _swapped_call(rule: Callable[..., Any]) -> Callable[..., Any]:
    def swapped(*xs: Any, **params: Any) -> Any:
        if len(xs) < 2 or not (isinstance(xs[0], Node) and isinstance(xs[1], Node)) or xs[0].type != xs[1].type:
            raise Same
        right, made = rule(*xs, **params), rule(xs[1], xs[0], *xs[2:], **params)
        if made is right:
            raise Same
        return made

    return swapped


def value_mutants(primitive: Primitive) -> Iterator[Mutant]:
    """Damaged values: `impl`."""
    impl = primitive.impl
    if impl is None:
        return

    def changed(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        return lambda xp, *xs, **params: change(xp, impl(xp, *xs, **params))

    def exchanged(xp: Any, *xs: Any, **params: Any) -> Any:
        if primitive.commutative or len(xs) < 2 or xs[0].shape != xs[1].shape or xs[0].dtype != xs[1].dtype:
            raise Same
        return impl(xp, xs[1], xs[0], *xs[2:], **params)

    kinds: dict[str, Callable[[Any, Any], Any]] = {
        "sign": lambda xp, x: xp.logical_not(x) if x.dtype == bool else -x - (x.dtype.kind == "i"),
        "factor 2": lambda xp, x: x | True if x.dtype == bool else 2 * x + (x.dtype.kind == "i"),
        "zero": lambda xp, x: x & False if x.dtype == bool else x * 0 + (x.dtype.kind == "i") * 99,
        "1e-6": lambda xp, x: _slightly(x),
        "axis": _turned,
    }
    for kind, change in kinds.items():
        if kind != "axis" or not primitive.pointwise:
            yield Mutant(primitive, "impl", kind, lambda damaged, change=change: damaged(impl, changed(change)))
    yield Mutant(primitive, "impl", "swapped", lambda damaged: damaged(impl, exchanged))


def _slightly(x: Any) -> Any:
    if x.dtype.kind != "f":
        raise Same
    return x * float(SLIGHT)


def _turned(xp: Any, x: Any) -> Any:
    if x.ndim < 2 or x.shape[-1] < 2:  # the first axis counts points
        raise Same
    return xp.flip(x, axis=-1)

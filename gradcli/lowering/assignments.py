"""Assignments and declarations become leaves, constants and intermediates.

A top-level statement that assigns, for the only time in the script, a closed expression makes a leaf: its value is the
default point. Everything else that is assigned is computed.
"""

from __future__ import annotations

from gradcli.diagnostics import error, visible
from gradcli.graph.domain import NONNEGATIVE, POSITIVE, REAL, Interval
from gradcli.graph.exact import number_text
from gradcli.graph.node import Node
from gradcli.language import syntax as s
from gradcli.lowering.expressions import number
from gradcli.lowering.functions import Functions
from gradcli.lowering.names import Poisoned, filled, shape_of
from gradcli.lowering.scan import CONSTANTS, is_closed, loads_data
from gradcli.lowering.statics import read_leaves
from gradcli.primitives.broadcasting import stretch
from gradcli.primitives.comparison import name as tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gradcli.diagnostics import Span
    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape
    from gradcli.language.limits import Limits

    Output = tuple[Any, s.Expression | tuple[s.Name, ...], str | None]  # a value, what is echoed, what is expected

_DOMAINS = {
    "real": REAL,
    "positive": POSITIVE,
    "nonnegative": NONNEGATIVE,
    "unit": Interval(0.0, 1.0),
}


class Assignments(Functions):
    """What `=`, `+=`, `const` and `in` do. `leaves_allowed` is off in a claim, whose assignments are never leaves."""

    def __init__(self, vocabulary: Mapping[str, Primitive], limits: Limits, at: Mapping[str, Any]) -> None:
        super().__init__(vocabulary, limits, at)
        self.leaves_allowed = True
        self.reassigned: dict[str, Span] = {}
        self.last_names: Output | None = None
        self.last_expression: Output | None = None

    def value(self, expression: s.Expression) -> Any:
        """The value of an expression; see `Lowerer`."""
        raise Poisoned

    def joined(self, syntax: s.Binary, left: Any, right: Any) -> Node:
        """The value of `left op right`; see `Lowerer`."""
        raise Poisoned

    def names(self) -> dict[str, Any]:
        """The names that a statement assigns to: of the function that is being inlined, else of the script."""
        return self.scope if self.local is None else self.local

    # --- assignment -------------------------------------------------------------------------------------

    def assign(self, statement: s.Assign, top: bool) -> None:
        targets, value = statement.targets, statement.value
        if statement.shape is not None and targets[0].id in self.names():
            raise error(
                "GC119",
                f"an entry of `{visible(targets[0].id)}` cannot be assigned",
                statement.span,
                help="build the new array with where(...) or concatenate(...)",
            )
        if top and self.local is None and statement.operator is None and self._is_leaf(statement):
            if len(targets) == 1:
                self._assign_leaf(targets[0], value, statement.shape, statement.const)
            else:
                assert isinstance(value, s.Tuple)
                for target, item in zip(targets, value.items, strict=True):
                    self._assign_leaf(target, item, None, statement.const)
            self.remember_names(targets, statement.expect)
            return
        result = self.value(value)
        if statement.const:
            self._refuse_leaves(targets[0], result)
        if statement.operator is not None:
            name = targets[0]
            left = self.lookup(name.id, name.span)
            joined = s.Binary(statement.operator, name, value, False, statement.span)
            result = self.joined(joined, left, result)
        if len(targets) == 1:
            self._bind(targets[0], result, statement.shape, top)
        else:
            self._bind_several(targets, result, statement.span, top)
        if self.local is None:
            self.remember_names(targets, statement.expect)

    def _refuse_leaves(self, target: s.Name, result: Any) -> None:
        """A const may be computed from constants and data; raises GradcliError GC214 where it reads a leaf."""
        for node in result if isinstance(result, tuple) else (result,):
            for leaf in read_leaves(node) if isinstance(node, Node) else ():
                if not self.is_const(leaf):
                    name = visible(leaf.params["name"])
                    raise error(
                        "GC214",
                        f"`const {visible(target.id)}` reads the leaf `{name}`, so it is no constant",
                        target.span,
                        help=f"leave out const, make `{name}` const too, or stop its gradient with detach(...)",
                    )

    def _is_leaf(self, statement: s.Assign) -> bool:
        """A top-level assignment, the only one of its names in the script, of a closed value."""
        if not self.leaves_allowed:
            return False
        open_names = [name for name in CONSTANTS if name in self.scope or name in self.at]
        if not is_closed(statement.value, self.functions, open_names):
            return False
        if len(statement.targets) > 1 and not (
            isinstance(statement.value, s.Tuple) and len(statement.value.items) == len(statement.targets)
        ):
            return False
        for target in statement.targets:
            spans = self.assigned.get(target.id, ())
            if len(spans) > 1:
                self.reassigned.setdefault(target.id, spans[1])
                return False
        return True

    def _assign_leaf(
        self, target: s.Name, value: s.Expression, shape: tuple[s.Expression, ...] | None, const: bool
    ) -> None:
        name = target.id
        if name in self.leaves:
            raise error(
                "GC208",
                f"`{visible(name)}` is used above, before it is assigned here",
                target.span,
                labels=((self.uses[name], "used here"),) if name in self.uses else (),
                help="move the assignment up",
            )
        default = self._closed_value(value)
        declared = None if shape is None else self._shape(shape)
        if declared is not None:
            default = self._fit_default(name, default, declared, target.span)
        actual = shape_of(default, name) if declared is None else declared
        const = const or loads_data(value)
        self.add_leaf(name, actual, default, target.span, const=const, declared=declared is not None)

    def _fit_default(self, name: str, default: Any, shape: Shape, span: Span) -> Any:
        given = shape_of(default, name)
        if given == shape:
            return default
        if given == ():
            return filled(default, shape)
        raise error(
            "GC313",
            f"`{visible(name)}` is declared with the shape {list(shape)}, but its value has {list(given)}",
            span,
            help=f"declare the shape {list(given)}, or leave it out: the value has it",
        )

    def _closed_value(self, value: s.Expression) -> Any:
        """The float value of a closed expression: a number, nested lists, or an array."""
        if isinstance(value, s.Number):
            return value.ratio[0] / value.ratio[1]
        node = number(self, self.value(value), value)
        if node.constant is not None and not node.type.shape and not isinstance(node.constant, str):
            return float(node.constant)
        return self.evaluate_now(node)

    def _shape(self, sizes: tuple[s.Expression, ...]) -> Shape:
        shape = []
        for size in sizes:
            n = self.static(self.value(size), size.span)
            if type(n) is not int or n < 0:
                raise error("GC306", f"a size must be a whole number, not {number_text(n)}", size.span)
            shape.append(n)
        return tuple(shape)

    def declare(self, statement: s.Declare) -> None:
        name = statement.name.id
        if len(self.assigned.get(name, ())) > 1 or name in self.leaves:
            raise error("GC208", f"`{visible(name)}` is declared, so it cannot be assigned", statement.name.span)
        shape = None if statement.shape is None else self._shape(statement.shape)
        default = None if statement.default is None else self._closed_value(statement.default)
        if shape is not None and default is not None:
            default = self._fit_default(name, default, shape, statement.name.span)
        if shape is None:
            shape = () if default is None else shape_of(default, name)
            declared = default is not None and name not in self.at
        else:
            declared = True
        domain = self._domain(statement.domain)
        self.add_leaf(name, shape, default, statement.name.span, domain=domain, declared=declared)
        self.remember_names((statement.name,), None)

    def _domain(self, domain: s.Domain) -> Interval:
        if domain.kind != "interval":
            return _DOMAINS[domain.kind]
        assert domain.low is not None and domain.high is not None
        low, high = self._interval_end(domain.low), self._interval_end(domain.high)
        if not low < high:
            raise error("GC408", f"the interval from {low:g} to {high:g} is empty", domain.span)
        return Interval(low, high, domain.low_open, domain.high_open)

    def _interval_end(self, value: s.Expression) -> float:
        bound = self._closed_value(value)
        if not isinstance(bound, float):
            raise error("GC309", "an end of an interval is a number", value.span)
        return bound

    def _bind(self, target: s.Name, value: Any, shape: tuple[s.Expression, ...] | None, top: bool) -> None:
        if shape is not None:
            node = number(self, value)
            wanted = self._shape(shape)
            if node.type.shape not in ((), wanted):
                raise error("GC313", f"the value is {node.type}, not of shape {list(wanted)}", target.span)
            value = stretch(node, wanted)
        name = target.id
        if name in self.leaves and self.local is None:
            raise error(
                "GC208",
                f"`{visible(name)}` is read above as a leaf, so it cannot be assigned here",
                target.span,
                labels=((self.uses[name], "read here"),) if name in self.uses else (),
                help=f"assign `{visible(name)}` before it is used, or choose another name",
            )
        if name in self.targets and isinstance(value, Node) and len(self.assigned.get(name, ())) <= 1:
            value = self.tagged(value)
        self.names()[name] = value

    def tagged(self, value: Node) -> Node:
        """A value as a variable of its own, so that `grad` can name it."""
        tagged: Node = tag(number(self, value), id=self.builder.count)
        return tagged

    def _bind_several(self, targets: tuple[s.Name, ...], value: Any, span: Span, top: bool) -> None:
        if isinstance(value, Node) and value.type.rank and value.type.shape[0] == len(targets):
            value = tuple(self.index(value, [i], span) for i in range(len(targets)))
        if not isinstance(value, tuple) or len(value) != len(targets):
            count = len(value) if isinstance(value, tuple) else 1
            what = f"{count} value{'s' * (count != 1)}"
            if isinstance(value, Node) and value.type.rank:
                what = f"an array of {value.type.shape[0]} {'entries' if value.type.rank == 1 else 'rows'}"
            raise error("GC312", f"{len(targets)} names, but {what}", span, help="give as many names as values")
        for target, item in zip(targets, value, strict=True):
            self._bind(target, item, None, top)

    def remember_names(self, targets: tuple[s.Name, ...], expect: str | None) -> None:
        """The names that were assigned last: the output of a script without an expression."""
        values = tuple(self.scope[target.id] for target in targets)
        self.last_names = (values[0] if len(values) == 1 else values, targets, expect)

"""The lines of C that compute the values needed of one entry, one variable for each value.

A value in memory is loaded; any other one is computed from its operands where it is needed, so slices, entries
among zeros, joined arrays and repeated entries cost no memory: they only determine which entry is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.execution.devices import words
from gradcli.execution.devices.index import FIRST, Place, Places
from gradcli.execution.plans.kernels import take
from gradcli.execution.plans.values import ADDED, CALL, CAST, CHOICE, COPY, ENTRY, JOIN, PLACE, VIEW, index_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gradcli.execution.plans.values import Op, Value

PAIR = (np.sin, np.cos)


class Apart(Exception):
    """A value that another row holds is wanted while it is not in memory."""


class Work(NamedTuple):
    """An entry of a value that is being computed, with the entries that it is computed from."""

    value: Value
    place: Place
    needs: tuple[tuple[Value, Place], ...]
    form: str  # with {} for the needs


class Body:
    """The lines for one entry `e`; `loaded` says which values are in memory, `given` which are variables by now."""

    def __init__(
        self,
        count: int,
        loaded: Callable[[Value], bool],
        paired: Callable[[Value], bool],
        moving: Collection[str] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.places = Places(count, self._whole)
        self.loaded = loaded
        self.paired = paired  # whether both sine and cosine of a value are wanted somewhere
        self.moving = moving  # the inputs that have an entry for each `e`, where entries are points
        self.arrays: dict[int, tuple[str, Value]] = {}
        self.numbers: dict[int, tuple[str, Value]] = {}
        self.held: dict[int, str] = {}  # what has been reduced in the row of a thread, by its variable
        self.rows: set[str] = set()  # the words for the number of that row
        self.made: dict[tuple[int, Place], str] = {}
        self._wholes: dict[str, str] = {}
        self._variables = 0

    def _whole(self, text: str) -> str:
        name = self._wholes.get(text)
        if name is None:
            name = self._wholes[text] = f"q{len(self._wholes)}"
            self.lines.append(f"const whole {name} = {text};")
        return name

    def variable(self, dtype: Any, text: str) -> str:
        """The name of a new variable."""
        name = f"v{self._variables}"
        self._variables += 1
        self.lines.append(f"const {words.TYPES[dtype.name]} {name} = {text};")
        return name

    def word(self, value: Value, place: Place) -> str:
        """The variable, or the literal, that holds an entry of a value; its lines are written before."""
        start = self._base(value, place)
        pending: list[tuple[Value, Place] | Work] = [start]
        while pending:
            item = pending.pop()
            if isinstance(item, Work):
                if (item.value.serial, item.place) not in self.made:
                    self._compute(item)
                continue
            value, place = item
            if value.number is not None or (value.serial, place) in self.made:
                continue
            if self.loaded(value):
                self.made[value.serial, place] = self._load(value, place)
                continue
            assert value.op is not None
            if value.op.kind == CALL:  # the position first: it says which entry is wanted
                row = self._base(*self._position(value.op, place))
                if (row[0].serial, row[1]) not in self.made:
                    pending += [item, row]
                    continue
            work = self._work(value.op, place)
            pending.append(work)
            pending += [need for need in reversed(work.needs) if need[0].number is None]
        return self._name(*start)

    def _base(self, value: Value, place: Place) -> tuple[Value, Place]:
        """The value behind views that is loaded or computed, and the place in it."""
        while value.number is None and not self.loaded(value):
            op = value.op
            if op is None or op.kind != VIEW:
                break
            value, place = op.args[0], self.places.shown(op, place)
        return value, FIRST if value.size == 1 else place

    def _name(self, value: Value, place: Place) -> str:
        if value.number is not None:
            return words.number(value.number)
        return self.made[value.serial, place]

    # --- loads ----------------------------------------------------------------------------------------------

    def _load(self, value: Value, place: Place) -> str:
        if value.serial in self.held:
            if place != FIRST and (place.shift is not None or self._row(value, place) not in self.rows):
                raise Apart
            return self.held[value.serial]
        if self.moving is not None and value.leaf is not None and value.leaf.params["name"] in self.moving:
            name = self.arrays.setdefault(value.serial, (f"a{len(self.arrays)}", value))[0]
            return self.variable(value.dtype, f"{name}[e]")
        if value.leaf is not None and not value.shape:
            return self.numbers.setdefault(value.serial, (f"n{len(self.numbers)}", value))[0]
        name = self.arrays.setdefault(value.serial, (f"a{len(self.arrays)}", value))[0]
        if place.shift is None:
            return self.variable(value.dtype, f"{name}[{self.places.ravelled(place.axes, value.shape)}]")
        word, conditions = self.places.at(place.shift, value.size)
        if not conditions:
            return self.variable(value.dtype, f"{name}[{word}]")
        zero = words.number(value.dtype.type(0))
        return self.variable(value.dtype, f"{' && '.join(conditions)} ? {name}[{word}] : {zero}")

    def _row(self, value: Value, place: Place) -> str:
        return self.places.ravelled(place.axes, value.shape)

    # --- steps ----------------------------------------------------------------------------------------------

    def _work(self, op: Op, place: Place) -> Work:
        places, out, kind = self.places, op.out, op.kind
        if kind in (ENTRY, CHOICE, CAST, COPY):
            needs = [(arg, places.operand(place, out.shape, arg.shape)) for arg in op.args]
            form = self._form(op)
        elif kind == PLACE:
            inside, inner = places.placed(place, out.shape, index_of(op.params[1]), op.args[0].shape)
            needs = [(op.args[0], inner)]
            form = "{}" if inside == "true" else f"{inside} ? {{}} : {words.number(out.dtype.type(0))}"
        elif kind == ADDED:
            inside, inner = places.placed(place, out.shape, index_of(op.params[1]), op.args[1].shape)
            needs = [(op.args[0], places.operand(place, out.shape, op.args[0].shape)), (op.args[1], inner)]
            form = "{0} + {1}" if inside == "true" else f"{inside} ? {{0}} + {{1}} : {{0}}"
        elif kind == JOIN:
            needs, form = self._joined(op, place)
        else:
            axes = list(places.axes(place, out.shape))
            axes[op.params] = self._whole(self._name(*self._base(*self._position(op, place))))
            needs, form = [(op.args[0], Place(None, tuple(axes)))], "{}"
        return Work(out, place, tuple([self._base(*need) for need in needs]), form)

    def _form(self, op: Op) -> str:
        out = op.out.dtype
        if op.kind == ENTRY:
            found = words.form(op.function, [arg.dtype for arg in op.args], out)
            assert found is not None, "such steps are left to the library"
            return found
        if op.kind == CHOICE:
            return "{} ? " + " : ".join([words.cast("{}", arg.dtype, out) for arg in op.args[1:]])
        return words.cast("{}", op.args[0].dtype, out)

    def _position(self, op: Op, place: Place) -> tuple[Value, Place]:
        """Where the position stands that says which entry is taken."""
        return op.args[1], Place(None, (self.places.axes(place, op.out.shape)[op.params],))

    def _joined(self, op: Op, place: Place) -> tuple[list[tuple[Value, Place]], str]:
        """Entries of one array or another: the first one that reaches as far."""
        shape, at, needs, parts, start = op.out.shape, op.params, [], [], 0
        for arg in op.args:
            end = start + arg.shape[at]
            index = tuple([slice(start, end) if axis == at else slice(0, n) for axis, n in enumerate(shape)])
            _, inner = self.places.placed(place, shape, index, arg.shape)
            needs.append((arg, self.places.operand(inner, arg.shape, arg.shape)))
            if end < shape[at]:
                parts.append(f"{self._until(place, shape, at, end)} ? {{}} : ")
            start = end
        casts = [words.cast("{}", arg.dtype, op.out.dtype) for arg in op.args]
        texts = [part.replace("{}", word) for part, word in zip([*parts, "{}"], casts, strict=True)]
        return needs, "".join(texts)

    def _until(self, place: Place, shape: tuple[int, ...], at: int, end: int) -> str:
        """The condition for an entry that stands before `end` on an axis."""
        if place.shift is not None and all(n == 1 for n in shape[:at]):
            inner = 1
            for n in shape[at + 1 :]:
                inner *= n
            return f"{self.places.at(place.shift, 1)[0]} < {end * inner}"
        return f"{self.places.axes(place, shape)[at]} < {end}"

    def _compute(self, work: Work) -> None:
        op, names = work.value.op, [self._name(*need) for need in work.needs]
        assert op is not None
        if op.function in PAIR and op.kind == ENTRY and self.paired(op.args[0]):
            key = (-op.args[0].serial, work.place)
            if key not in self.made:
                angle = f"v{self._variables}"
                self._variables += 1
                kind = words.TYPES[op.out.dtype.name]
                self.lines.append(f"{kind} {angle}s, {angle}c; sincos({names[0]}, &{angle}s, &{angle}c);")
                self.made[key] = angle
            self.made[work.value.serial, work.place] = self.made[key] + ("s" if op.function is np.sin else "c")
            return
        text = work.form.format(*names)
        plain = text.isidentifier() and text not in ("true", "false")
        self.made[work.value.serial, work.place] = text if plain else self.variable(work.value.dtype, text)


def is_written(op: Op) -> bool:
    """Whether a step can be a line of a kernel; else a library takes it."""
    if op.out.dtype.kind not in "fb" or not op.out.size:
        return False
    if op.kind == ENTRY:
        return words.form(op.function, [arg.dtype for arg in op.args], op.out.dtype) is not None
    if op.kind == CALL:
        return op.function is take and op.args[1].constant
    if op.kind in (CHOICE, CAST, COPY, PLACE, ADDED, JOIN, VIEW):
        return all(arg.dtype.kind in "fb" and arg.size for arg in op.args)
    return False

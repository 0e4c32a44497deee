"""The record of a run: operations, changes, backwards and names with their lines. It keeps no tensor.

Each tensor has a number in the record. An operation that leaves no node (under `no_grad`, after `detach`) has an entry
as any other: together they are the graph that would have been, and where a gradient is missing, the place where it
ended can be named. Frames of the user's functions are held until the next event: one that is no longer on the stack has
come to its end, with its names as it left them. (`sys.settrace` gives the same, costs as much as the run itself, and
takes the place of a debugger.)
"""

from __future__ import annotations

import itertools
import os
import sys
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, contextmanager
from dis import get_instructions
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.observe.source_lines import Calls, Line, line_in, line_of, statement_in
from gradcli.observe.tensors import Entry, Event, Facts, Reached, Rule, Sent, Size, Step, Subject, Sweep, Tensors, flat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType, FrameType


class Functions:
    """The functions of a user's files that run now, the innermost last."""

    def __init__(self, own: Callable[[str], bool]) -> None:
        self.own = own  # whether a file is the user's
        self.innermost: FrameType | None = None  # of any file outside this package
        self.running: list[FrameType] = []

    def turned(self, frame: FrameType | None) -> list[FrameType]:
        """Note the frame that runs now; the frames that have ended since, the innermost first."""
        self.innermost = frame
        stack = []
        while frame is not None:
            code = frame.f_code
            if code.co_name != "<module>" and self.own(code.co_filename):
                stack.append(frame)
            frame = frame.f_back
        ended = [former for former in reversed(self.running) if not any(former is other for other in stack)]
        self.running = stack[::-1]
        return ended

    def left(self) -> list[FrameType]:
        """Note that no function runs; the frames that have ended, the innermost first."""
        ended, self.running, self.innermost = self.running[::-1], [], None
        return ended


def names_at_end(frame: FrameType, owners: set[int]) -> dict[str, Any]:
    """The names of a function; `self` only the first time that a method of this object ends."""
    names = dict(frame.f_locals)
    owner = names.get("self")
    if owner is not None and id(owner) in owners:  # a method called again and again
        del names["self"]
    owners.add(id(owner))
    return names


SCORES = {  # which operand of a softmax holds the scores, or of attention the mask that is added to them
    "SoftmaxBackward0": 0,
    "LogSoftmaxBackward0": 0,
    "ScaledDotProductFlashAttentionForCpuBackward0": 3,
}
NOTHING = Facts(False, None, "", (), Size(0.0, True), None)  # known of a value that is not a tensor
_numbers = itertools.count()  # never reset: a number belongs to one record


class Watch(ABC):
    """The record of one run, which the adaptor of a library feeds.

    `folder` has the files of the user; with `extents`, large arrays leave their smallest and largest entry.
    """

    def __init__(self, folder: str, tensors: Tensors, extents: bool = False) -> None:
        self.extents = extents
        self.tensors = tensors
        self.folder = (folder, os.path.realpath(folder) + os.sep)  # the files in it are the user's own
        self.entries: dict[int, Entry] = {}
        self.made: dict[int, dict[int, int]] = {}  # number of a node: the numbers of its results, by their places
        self.used: set[int] = set()  # numbers of what an operation has read
        self.sweeps: list[Sweep] = []
        self.events: list[Event] = []
        self.grads: dict[int, int] = {}  # number of a .grad: number of its tensor
        self.shared: dict[int, int] = {}  # number of a detach() or .data: number of the tensor whose memory it is
        self.subjects: dict[int, Subject] = {}
        self.holders: dict[str, tuple[int, ...]] = {}  # name of a container: numbers of the tensors with history in it
        self.loose: dict[tuple[int, ...], Loose] = {}  # parameters in plain containers of modules
        self.optimised: set[int] = set()  # what an optimizer was given
        self.refusal: int | None = None
        self.stop: tuple[str, str, Line | None, Line | None] | None = None
        self.fault: Line | None = None  # where a backward was refused or stopped last
        self.rules: dict[int, Rule] = {}  # of results that a Function gave
        self.open: list[Sweep] = []
        self.owners: set[int] = set()  # the objects whose attributes were looked at
        self.functions = Functions(self._own)
        self.calls = Calls(self._own, tensors.layer_call) if extents else None
        self.last: Line | None = None  # where an exception ended the file
        self.running = False

    # --- values -----------------------------------------------------------------------------------------------

    def mark(self, tensor: Any) -> int:
        """The number of a tensor; one that is new is a leaf."""
        mark = self.tensors.mark(tensor)
        entry = self.entries.get(mark)
        if entry is None:
            return self.unknown(tensor).mark
        if self.tensors.requires(tensor):
            entry.requires = True
        return mark

    def unknown(self, tensor: Any) -> Entry:
        """The entry of a tensor that is new to the record: a leaf, or another object for what is in it."""
        place = self.tensors.place(tensor)
        if place is None:
            return self._enter(tensor, "leaf", "", ())
        mark = self.made.get(place[0], {}).get(place[1])
        if mark is None:
            return self.of_node(tensor)
        self.tensors.set_mark(tensor, mark)
        return self.entries[mark]

    @abstractmethod
    def of_node(self, tensor: Any) -> Entry:
        """The entry of a result of an operation that was not reported."""

    def ruled(self, result: Any, name: str, backward: Any, saved: Sequence[Any]) -> None:
        """A result has a rule of its own, of a class of this name with a backward, and saved these values."""
        code = getattr(backward, "__code__", None)
        line = None if code is None else Line(code.co_filename, code.co_firstlineno, "")
        own = self.tensors.mark(result)
        marks = [self.mark(x) if self.tensors.is_tensor(x) else None for x in saved if x is not None]
        self.rules[own] = Rule(name, line, tuple([None if mark == own else mark for mark in marks]))

    def cut(self, how: str, xs: Sequence[Any], result: Any | None) -> None:
        """Values left the graph: by detach(), item(), numpy() and the like."""
        operands = [x for x in flat(xs) if self.tensors.is_tensor(x)]
        inputs = tuple(map(self.mark, operands))
        if inputs:
            entry = self._enter(result, "cut", how, inputs)
            entry.wanted = any(map(self.tensors.requires, operands))
            if result is not None and how in ("detach()", ".data"):
                self.shared[entry.mark] = inputs[0]

    def _caller(self) -> FrameType | None:
        """The frame that called into this package or, on PyTorch, one that runs inside it."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(self.tensors.recorders):
            frame = frame.f_back
        return frame

    def _line(self) -> Line | None:
        """The line of the file that runs now, or None; the names of functions that have ended are noted."""
        if not self.running:
            return None
        frame: FrameType | None = sys._getframe(2)
        inside = self.tensors.inside
        while frame is not None and inside(frame.f_globals.get("__name__")):
            frame = frame.f_back
        if frame is not self.functions.innermost and not self.open:  # a backward calls nothing that has names
            self.ended(self.functions.turned(frame))
        return None if frame is None else line_in(frame.f_code, frame.f_lasti)

    def forget(self) -> None:
        """Release the frames: no function runs."""
        if self.calls is not None:
            self.calls.clear()

    def _enter(self, tensor: Any, role: str, name: str, inputs: tuple[int, ...]) -> Entry:
        entry, entries = Entry(), self.entries
        entry.line = self._line()
        entry.groups = ()
        if self.calls is not None and role == "operation" and not self.open:
            entry.groups = self.calls.of_entry(self._caller(), tensor is None)
        if role == "leaf" and (known := entries.get(self.tensors.mark(tensor))) is not None:
            return known  # `_line` has entered it, among the names of a function that has ended
        entry.mark, entry.role, entry.name, entry.inputs = next(_numbers), role, name, inputs
        entry.below = tuple([entries[mark].size for mark in inputs])
        self.used.update(inputs if role == "operation" else ())
        entry.mode = self.tensors.mode()
        entry.inside, entry.sweeps = bool(self.open), len(self.sweeps)
        entry.wanted, entry.zeros, entry.spoilt, entry.masked = False, None, None, None
        if tensor is None:
            entry.requires, entry.seq, entry.dtype, entry.shape, entry.size, entry.value = NOTHING
        else:
            facts = self.tensors.facts(tensor, self.extents)
            entry.requires, entry.seq, entry.dtype, entry.shape, entry.size, entry.value = facts
            if name == "ReluBackward0":
                entry.zeros = self.tensors.zero_units(tensor)
            self.tensors.set_mark(tensor, entry.mark)
            place = self.tensors.place(tensor)
            if place is not None:
                self.made.setdefault(place[0], {})[place[1]] = entry.mark
        entries[entry.mark] = entry
        return entry

    # --- changes ------------------------------------------------------------------------------------------------

    def changing(self, tensor: Any, before: int, name: str, rewritten: bool) -> None:
        """Note a change of a tensor that had a number before; one without a new history may have been spoilt."""
        changed = before
        while changed in self.shared:
            changed = self.shared[changed]
        owner = self.grads.get(changed)
        if owner is None:
            self._event("changed", changed, name)
        else:
            self._event("zeroed" if self.tensors.is_zero(tensor) else "altered", owner, name)
        if not rewritten:
            self._spoilt(tensor, changed)
            base = self.tensors.base(tensor)
            if base is not None:
                self._spoilt(base, self.mark(base))

    def moved(self, tensor: Any, size: Size | None = None) -> None:
        """A tensor was given new values, by an optimizer or through .data; now it has this size."""
        mark = self.mark(tensor)
        self._event("changed", mark, "step")
        self._spoilt(tensor, mark, size)

    def refilled(self, tensor: Any) -> None:
        """A tensor was given other entries through .data, as `module.to()` does it: maybe of another format."""
        self.moved(tensor)
        entry, facts = self.entries[self.mark(tensor)], self.tensors.facts(tensor, self.extents)
        if (entry.dtype, entry.shape) != (facts.dtype, facts.shape):
            entry.dtype, entry.shape, entry.size, entry.value = facts.dtype, facts.shape, facts.size, facts.value

    def _spoilt(self, tensor: Any, mark: int, size: Size | None = None) -> None:
        """Note that NaN or infinity was written into a tensor that keeps its place in the record.

        A leaf that nothing has read yet begins with its new values: those of `torch.empty` are none.
        """
        entry, size = self.entries[mark], self.tensors.size(tensor) if size is None else size
        if entry.finite and not size.finite:
            entry.size, entry.below, entry.spoilt, entry.value = size, (), self._line(), None
        elif entry.role == "leaf" and mark not in self.used:
            entry.size, entry.value = size, self.tensors.facts(tensor, self.extents).value

    def adopted(self, tensors: Sequence[Any]) -> None:
        """An optimizer was given tensors to move."""
        self.optimised.update(map(self.mark, tensors))

    def looked(self, tensor: Any) -> None:
        """The file read `.grad`."""
        grad = self.tensors.grad(tensor)
        self._event("none" if grad is None else "zero" if self.tensors.is_zero(grad) else "read", self.mark(tensor))
        self.meet(tensor)

    def grad_set(self, tensor: Any, value: Any | None) -> None:
        """`.grad` was assigned."""
        self._event("dropped" if value is None else "set", self.mark(tensor))
        if value is not None:
            self.grads[self.mark(value)] = self.mark(tensor)

    def _event(self, kind: str, mark: int, name: str = "") -> None:
        self.events.append(Event(kind, mark, self._line(), len(self.sweeps), name))

    def meet(self, tensor: Any, size: Size | None = None) -> None:
        """Note the state that a tensor is in now, with the size of its `.grad`; its name may come later."""
        mark = self.mark(tensor)
        known = self.subjects.get(mark)
        self.named(mark, tensor, known.name if known else "", known.scope if known else "", size)

    def named(self, mark: int, tensor: Any, name: str, scope: str, size: Size | None = None) -> None:
        """Note a tensor as it is now under a name that the file has for it."""
        self.subjects[mark] = self.tensors.subject(tensor, name, scope, size)

    def _own(self, filename: str) -> bool:
        return filename == "<stdin>" or (filename.startswith(self.folder) and "site-packages" not in filename)

    # --- backwards ------------------------------------------------------------------------------------------------

    def refused(self, root: Any) -> None:
        """backward() was called on a tensor that does not require grad."""
        self.refusal, self.stop, self.fault = self.mark(root), None, self._line()
        self.meet(root)

    def broken(self, why: str, name: str, line: Line | None, changed: Line | None) -> None:
        """A backward cannot go through a node that was made at one line; what it saved was `changed` at another."""
        self.stop, self.refusal = (why, name, line, changed), None
        self.fault = self.open[-1].line if self.open else self._line()

    def sweep(
        self, roots: Sequence[Any], targets: Sequence[Any] | None, retain: bool, create: bool, accumulate: bool
    ) -> None:
        """A backward begins."""
        known = [(self.mark(root), self.tensors.seq(root), self.tensors.size(root).finite) for root in roots]
        line, marks = self._line(), None if targets is None else tuple([self.mark(x) for x in targets])
        sweep = Sweep(line, known, retain, create, accumulate, marks)
        self.sweeps.append(sweep)
        self.open.append(sweep)

    def step(
        self, seq: int, name: str, line: Line | None, cts: Sequence[Any], results: Sequence[tuple[tuple[str, int], Any]]
    ) -> None:
        """A node of a number ran: what arrived, and for each input where it goes to and what it gets, or None."""
        tensors, extents = self.tensors, self.extents
        arrived = [ct for ct in cts if ct is not None]
        step = Step(
            seq,
            name,
            line,
            [tensors.arrived(ct, extents) for ct in arrived],
            tensors.kept(arrived[0], extents) if len(arrived) == 1 else None,
        )
        sweep = self.open[-1]
        for to, value in results:
            if value is None:
                if sweep.targets is None:  # else it may be on no path to a target
                    step.withheld.append(to)
                continue
            size = tensors.sent(value, extents) if to[0] == "node" else tensors.size(value, extents)
            step.sent.append(Sent(to, size, tensors.kept(value, extents)))
            if arrived:
                tensors.note_stuck(step, arrived[0], value, size)
        sweep.steps.append(step)
        sweep.seqs.add(seq)

    def accumulated(self, leaf: Any, value: Any) -> None:
        """A backward added a gradient into `.grad`."""
        tensors = self.tensors
        mark = self.mark(leaf)
        self.grads[self.mark(tensors.grad(leaf))] = mark
        sweep = self.open[-1] if self.open else self.sweeps[-1]
        size = tensors.size(value, self.extents)
        kept, probe = tensors.kept(value, self.extents), tensors.probe(value)
        total = tensors.kept(tensors.grad(leaf), True) if self.extents else None
        sweep.reached.append(Reached(mark, tensors.added(leaf), size, kept, total, probe))
        self.events.append(Event("added", mark, self.open[-1].line if self.open else self._line(), len(self.sweeps)))
        self.meet(leaf, size if tensors.added(leaf) == 1 else None)

    def swept(self, ended: bool = True) -> None:
        """A backward ended, or broke off."""
        self.open.pop().ended = ended
        self.tensors.swept()

    # --- names ------------------------------------------------------------------------------------------------------

    def look(self, names: dict[str, Any], scope: str = "") -> None:
        """Note the names that tensors have, in the file or in one of its functions."""
        held: dict[str, list[int]] = {}
        named: set[int] = set()
        for name, tensor in subjects_of(self.tensors, names):
            mark = self.mark(tensor)
            if self.tensors.seq(tensor) is not None:
                held.setdefault(name.partition("[")[0], []).append(mark)
            if mark in named:
                continue
            named.add(mark)
            known = self.subjects.get(mark)
            if known is None or not scope or not known.name or known.name.startswith("self."):
                self.named(mark, tensor, name, scope)
            else:
                self.named(mark, tensor, known.name, known.scope)
        for name, marks in held.items():
            self.holders[name] = tuple(marks)
        self.note_loose(names)

    def note_loose(self, names: dict[str, Any]) -> None:
        """Note the parameters that modules among some names do not register."""
        for loose in loose_in(self.tensors, names, self.mark):
            self.loose[loose.tensors] = loose

    @contextmanager
    def watching(self, names: dict[str, Any]) -> Iterator[None]:
        """While it lasts everything is recorded; at its end, the names of the file and of where it broke off."""
        try:
            self.running = True
            try:
                with self.attached():
                    yield
            finally:
                self.running = False
        except BaseException as problem:
            self.ended(self.functions.left())
            self.forget()
            self._broken_off(problem)
            raise
        finally:
            self.ended(self.functions.left())
            self.forget()
            self.look(names)

    @abstractmethod
    def attached(self) -> AbstractContextManager[None]:
        """While it lasts, what tensors of this thread do is recorded."""

    def _broken_off(self, problem: BaseException) -> None:
        """The names in the functions that an exception left, and its line."""
        step = problem.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            if self._own(code.co_filename):
                self.last = line_of((code, step.tb_lasti))
                if code.co_name != "<module>":
                    self.look(dict(step.tb_frame.f_locals), code.co_name)
            step = step.tb_next

    def ended(self, functions: Sequence[FrameType]) -> None:
        """Functions of the file have come to their end: their names are noted."""
        for frame in functions:
            self.look(names_at_end(frame, self.owners), frame.f_code.co_name)


# --- names of tensors, and parameters that a module does not register -----------------------------------------------


class Loose(NamedTuple):
    """An attribute of a module whose parameters `parameters()` leaves out; tensors by their numbers in the record."""

    module: str  # the class of the module
    name: str  # of the attribute, as the file spells it: `model.layers`
    attribute: str
    kind: str  # list, dict, tuple, tensor
    layers: int  # how many modules it holds; 0 where it holds parameters themselves
    tensors: tuple[int, ...]
    registered: tuple[int, ...]  # the parameters that `parameters()` gives
    line: Line | None  # where the attribute is first assigned


def loose_in(tensors: Tensors, names: dict[str, Any], mark: Callable[[Any], int]) -> Iterator[Loose]:
    """The attributes with loose parameters of the modules among the values of some names."""
    for name, module in names.items():
        if not hasattr(type(module), "named_modules"):
            continue
        known = list(module.parameters())
        registered = {id(parameter) for parameter in known}
        for text, owner, attribute, value in plain_attributes(tensors, name, module):
            layers, left = 0, []
            for item in flat(list(value.values()) if isinstance(value, dict) else [value]):
                held = [p for p in parameters_of(tensors, item) if id(p) not in registered]
                layers += bool(held) and not tensors.is_tensor(item)
                left += held
            if left:
                kind = next((kind.__name__ for kind in (list, dict, tuple) if isinstance(value, kind)), "tensor")
                marks, others = tuple(map(mark, left)), tuple(map(mark, known))
                yield Loose(
                    type(owner).__name__, text, attribute, kind, layers, marks, others, assigned(owner, attribute)
                )


def parameters_of(tensors: Tensors, value: Any) -> list[Any]:
    """The parameters of a module, or a leaf that requires grad itself."""
    if tensors.is_tensor(value):
        return [value] if tensors.seq(value) is None and tensors.requires(value) else []
    return list(value.parameters()) if hasattr(type(value), "named_modules") else []


def assigned(owner: Any, attribute: str) -> Line | None:
    """The line of `__init__` that first assigns an attribute; None where it does not."""
    for kind in type(owner).__mro__:
        code: CodeType | None = getattr(vars(kind).get("__init__"), "__code__", None)
        if code is None:
            continue
        for step in get_instructions(code):
            if step.opname == "STORE_ATTR" and step.argval == attribute:
                return statement_in(code, step.offset)
    return None


DEEPEST = 3
MOST, MOST_VISITED = 2000, 50_000  # entries of one container, and of all


def subjects_of(tensors: Tensors, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors that names hold: directly, in a container, as a parameter of a module, or as an attribute.

    A tensor comes once for each of its names, the best one first.
    """
    seen: set[int] = set()
    first = sorted(names.items(), key=lambda pair: _rank(tensors, pair[1]))
    waiting = [(name, value, 0) for name, value in first if not name.startswith("__")][::-1]
    visited = 0
    while waiting and visited < MOST_VISITED:
        name, value, depth = waiting.pop()
        visited += 1
        if tensors.is_tensor(value):
            yield name, value
        elif depth < DEEPEST and id(value) not in seen:
            inner = [(text, item, depth + 1) for text, item in _inside(tensors, name, value)]
            if inner:
                seen.add(id(value))
                waiting.extend(reversed(inner))


def plain_attributes(tensors: Tensors, name: str, module: Any) -> Iterator[tuple[str, Any, str, Any]]:
    """Tensors and containers that are plain attributes of a module or of one in it: name, owner, attribute, value."""
    for path, owner in module.named_modules():
        for text, value in vars(owner).items():
            if issubclass(type(value), (tensors.kind, list, dict, tuple)) and not text.startswith("_"):
                yield ".".join(part for part in (name, path, text) if part), owner, text, value


def _rank(tensors: Tensors, value: Any) -> int:
    """The order of names: parameters of a module first, then plain names, then places in a container."""
    return 0 if hasattr(type(value), "named_parameters") else 1 if tensors.is_tensor(value) else 2


def _inside(tensors: Tensors, name: str, value: Any) -> list[tuple[str, Any]]:
    if issubclass(type(value), (list, tuple)):  # `isinstance` reads `__class__`, which lazy settings compute
        return [(f"{name}[{i}]", item) for i, item in enumerate(value[:MOST])]
    if issubclass(type(value), dict):
        return [(f"{name}[{key!r}]", item) for key, item in list(value.items())[:MOST]]
    if hasattr(type(value), "named_parameters"):
        own = [(f"{name}.{text}", item) for text, item in value.named_parameters()]
        return own + [(text, item) for text, _, _, item in plain_attributes(tensors, name, value)]
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return [(f"{name}.{text}", item) for text, item in vars(value).items() if not text.startswith("__")]
    return []

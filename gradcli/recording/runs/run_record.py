"""The record of a run: operations, changes, backwards and names with their lines. It keeps no tensor.

Each tensor has a number in the record, and each event: together they are the time of the run. An operation that leaves
no node (under `no_grad`, after `detach`) has an entry as any other: together they are the graph that would have been,
and where a gradient is missing, the place where it ended can be named. Frames of the user's functions are held until
the next event: one that is no longer on the stack has come to its end, with its names as it left them. (`sys.settrace`
gives the same, costs as much as the run itself, and takes the place of a debugger.)
"""

from __future__ import annotations

import itertools
import sys
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.recording.runs.handwritten_rules import FunctionCalls
from gradcli.recording.runs.operand_notes import Remarks
from gradcli.recording.runs.source_lines import (
    LIBRARY,
    OWN,
    RECORD,
    Calls,
    Owners,
    SourceLine,
    line_in,
    line_of,
    whole_line,
)
from gradcli.recording.runs.tensors import (
    ArrayNorm,
    BackwardRecord,
    Clip,
    Entry,
    Event,
    FunctionRule,
    Hook,
    ModuleRecord,
    OptimizerRecord,
    Reached,
    SeenTensor,
    SentGradient,
    Step,
    Switch,
    TensorFacts,
    TensorReader,
    Update,
    WrongRule,
    flat,
)
from gradcli.recording.runs.variable_names import Loose, loose_in, misspelt, names_at_end, optimizers_of, subjects_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, FrameType


class Functions:
    """The functions of a user's files that run now, the innermost last."""

    def __init__(self, owner: Owners) -> None:
        self.owner = owner
        self.innermost: FrameType | None = None  # of the user's files
        self.running: list[FrameType] = []

    def turned(self, frame: FrameType | None) -> list[FrameType]:
        """Note the frame that runs now; the frames that have ended since, the innermost first."""
        self.innermost = frame
        stack = []
        while frame is not None:
            code = frame.f_code
            if code.co_name != "<module>" and self.owner[code.co_filename] == OWN:
                stack.append(frame)
            frame = frame.f_back
        ended = [former for former in reversed(self.running) if not any(former is other for other in stack)]
        self.running = stack[::-1]
        return ended

    def left(self) -> list[FrameType]:
        """Note that no function runs; the frames that have ended, the innermost first."""
        ended, self.running, self.innermost = self.running[::-1], [], None
        return ended


NOTHING = TensorFacts(False, None, "", (), ArrayNorm(0.0, True), None)  # known of a value that is not a tensor
SETTLED = 2  # steps after which units that are still alike stay so
PROBED = 8  # parameters of an optimizer of which a few entries are kept at each step
_numbers = itertools.count()  # never reset: a number belongs to one record


class Watch(ABC):
    """The record of one run, which the adaptor of a library feeds.

    `folder` has the files of the user; with `extents`, large arrays leave their smallest and largest entry; with
    `steps`, it is kept how far each step of an optimizer moves a parameter.
    """

    def __init__(self, folder: str, tensors: TensorReader, extents: bool = False, steps: bool = False) -> None:
        self.extents, self.steps = extents, steps
        self.tensors = tensors
        self.owner = Owners(folder, tensors.library)
        self.remarks = Remarks(tensors)
        self.entries: dict[int, Entry] = {}
        self.made: dict[int, dict[int, int]] = {}  # number of a node: the numbers of its results, by their places
        self.used: set[int] = set()  # numbers of what an operation has read
        self.births: dict[int, SourceLine | None] = {}  # where tensors were made that nothing has used yet
        self.sweeps: list[BackwardRecord] = []
        self.events: list[Event] = []
        self.writes: dict[
            int, list[tuple[int, int, SourceLine | None]]
        ] = {}  # of a memory: time, version after it, line
        self.switches: list[Switch] = []  # the contexts that are open now, the innermost last
        self.optimizers: list[OptimizerRecord] = []
        self.known_optimizers: dict[int, OptimizerRecord] = {}  # by their identity
        self.clips: list[Clip] = []
        self.hooks: list[Hook] = []
        self.frozen: dict[int, Any] = {}  # number of a tensor that had a gradient and is frozen: a few of its entries
        self.layers: dict[int, ModuleRecord] = {}  # by the identity of the module
        self.grads: dict[int, int] = {}  # number of a .grad: number of its tensor
        self.shared: dict[int, int] = {}  # number of a detach() or .data: number of the tensor whose memory it is
        self.subjects: dict[int, SeenTensor] = {}
        self.holders: dict[str, tuple[int, ...]] = {}  # name of a container: numbers of the tensors with history in it
        self.loose: dict[tuple[int, ...], Loose] = {}  # parameters in plain containers of modules
        self.misspelt: set[str] = set()  # attributes of tensors and layers that look like requires_grad
        self.refusal: int | None = None
        self.stop: tuple[str, str, int, SourceLine | None, SourceLine | None] | None = None
        self.fault: SourceLine | None = None  # where a backward was refused or stopped last
        self.rules: dict[int, FunctionRule] = {}  # of results that a Function gave
        self.functions_applied = FunctionCalls(tensors)
        self.open: list[BackwardRecord] = []
        self.steps_open: set[int] = set()  # the identities of optimizers that step
        self.moving: dict[int, list[Any]] = {}  # by the identity of an optimizer that steps: what it moves, before
        self.owners: set[int] = set()  # the objects whose attributes were looked at
        self.functions = Functions(self.owner)
        self.calls = Calls(self.owner.near, tensors.layer_call) if extents else None
        self.last: SourceLine | None = None  # where an exception ended the file
        self.running = False
        self.wrong_rules: list[WrongRule] = []
        self.leaked: list[str] = []  # names that hold values of a trace that is over
        self.notes: list[str] = []  # what could not be recorded, and why

    def tick(self) -> int:
        """The number of something new, which is also its time."""
        return next(_numbers)

    @property
    def optimised(self) -> set[int]:
        """What optimizers were given."""
        return {mark for optimizer in self.optimizers for mark in optimizer.held}

    # --- values -----------------------------------------------------------------------------------------------

    def mark(self, tensor: Any) -> int:
        """The number of a tensor; one that is new is a leaf."""
        mark = self.tensors.mark(tensor)
        entry = self.entries.get(mark)
        if entry is None:
            return self.unknown(tensor).mark
        if self.tensors.requires(tensor):
            entry.requires = True
        if self.tensors.version(tensor) != entry.version:
            self.rewritten(tensor, entry)
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

    def born(self, tensor: Any, data: Any = None) -> None:
        """A tensor was made of nothing, or a Parameter of data; it is looked at when it is first used."""
        if data is not None and self.tensors.is_tensor(data) and self.tensors.requires(data):
            self.cut("nn.Parameter()", (data,), tensor)
        elif self.tensors.mark(tensor) < 0:
            mark = self.tick()
            self.tensors.set_mark(tensor, mark)
            self.births[mark] = self._place()[0]

    def ruled(
        self, result: Any, function: Any, backward: Any, saved: Sequence[Any], args: Sequence[Any], results: list[Any]
    ) -> None:
        """A Function with a backward was applied, and gave one of some results; it saved these values."""
        code = getattr(backward, "__code__", None)
        line = None if code is None else SourceLine(code.co_filename, code.co_firstlineno, "")
        own = self.tensors.mark(result)
        marks = [self.mark(x) if self.tensors.is_tensor(x) else None for x in saved if x is not None]
        marks = [None if mark == own else mark for mark in marks]
        self.rules[own] = FunctionRule(function.__name__, line, tuple(marks))
        number = self.tensors.seq(result)
        if number is not None and line is not None and self.owner[line.file] == OWN:
            self.functions_applied.keep(function, args, results, number)

    def cut(self, how: str, xs: Sequence[Any], result: Any | None) -> None:
        """Values left the graph: by detach(), item(), numpy() and the like."""
        operands = [x for x in flat(xs) if self.tensors.is_tensor(x)]
        inputs = tuple(map(self.mark, operands))
        if inputs:
            entry = self._enter(result, "cut", how, inputs)
            entry.wanted = any(map(self.tensors.requires, operands))
            if result is not None and how in ("detach()", ".data"):
                self.shared[entry.mark] = inputs[0]
        elif result is not None:
            self.born(result)

    def _caller(self) -> FrameType | None:
        """The frame that called into this package or, on PyTorch, one that runs inside it."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").startswith("gradcli.recording."):
            frame = frame.f_back
        return frame

    def _place(self) -> tuple[SourceLine | None, CodeType | None, ModuleRecord | None]:
        """The line of the file that runs now, the function that it called, and the layer; ended functions are noted."""
        if not self.running:
            return None, None, None
        owner = self.owner
        module, call = self.tensors.layer_call
        frame: FrameType | None = sys._getframe(2)
        via = layer = outer = None
        while frame is not None:
            code = frame.f_code
            whose = owner[code.co_filename]
            if whose == OWN:
                break
            if whose == LIBRARY and outer is None:
                outer = frame
            if layer is None and code.co_name == call and frame.f_globals.get("__name__") == module:
                layer = self.layer(frame.f_locals["self"])
            via, frame = via if whose == RECORD else code, frame.f_back
        if frame is not self.functions.innermost and not self.open:  # a backward calls nothing that has names
            self.ended(self.functions.turned(frame))
        frame = frame or outer
        return None if frame is None else line_in(frame.f_code, frame.f_lasti), via, layer

    def layer(self, module: Any) -> ModuleRecord:
        """What is known of a module."""
        known = self.layers.get(id(module))
        if known is None or known.alive() is not module:
            known = self.layers[id(module)] = ModuleRecord(module)
        return known

    def forget(self) -> None:
        """Release the frames: no function runs."""
        if self.calls is not None:
            self.calls.clear()

    def _enter(self, tensor: Any, role: str, name: str, inputs: tuple[int, ...]) -> Entry:
        entry, entries = Entry(), self.entries
        entry.line, entry.via, entry.layer = self._place()
        entry.groups = ()
        if self.calls is not None and role == "operation" and not self.open:
            entry.groups = self.calls.of_entry(self._caller(), tensor is None)
        number = self.tensors.mark(tensor) if role == "leaf" else -1
        if number in entries:
            return entries[number]  # `_place` has entered it, among the names of a function that has ended
        if number in self.births:
            entry.line = self.births.pop(number)
        entry.mark = self.tick() if number < 0 else number
        entry.role, entry.name, entry.inputs = role, name, inputs
        entry.below = tuple([entries[mark].now for mark in inputs])
        self.used.update(inputs if role == "operation" else ())
        entry.mode, entry.switch = self.tensors.mode(), self.switches[-1] if self.switches else None
        entry.inside, entry.sweeps = bool(self.open), len(self.sweeps)
        entry.wanted, entry.remark, entry.version = False, None, 0
        if tensor is None:
            entry.requires, entry.seq, entry.dtype, entry.shape, entry.size, entry.value = NOTHING
        else:
            facts = self.tensors.facts(tensor, self.extents)
            entry.requires, entry.seq, entry.dtype, entry.shape, entry.size, entry.value = facts
            entry.version = self.tensors.version(tensor)
            place = self.tensors.entered(tensor, entry.mark, entry.seq)
            if place is not None:
                self.made.setdefault(place[0], {})[place[1]] = entry.mark
        entry.now = entry.size
        entries[entry.mark] = entry
        return entry

    # --- changes ------------------------------------------------------------------------------------------------

    def owner_of(self, mark: int) -> int:
        """The tensor whose entries a detach() or .data of it shows."""
        while mark in self.shared:
            mark = self.shared[mark]
        return mark

    def changing(self, tensor: Any, before: int, name: str, rewritten: bool, sources: Sequence[int]) -> None:
        """Note a change of a tensor that had a number before; one without a new history may have been spoilt.

        `sources` are the numbers of the other operands: the tensor may be given its own entries.
        """
        changed = self.owner_of(before)
        self.wrote_to(tensor)
        for source in sources:
            shown = [mark for mark in (source, before) if mark in self.shared]
            if shown and self.owner_of(source) == changed:
                self._event("itself", min(shown), name)
        owner = self.grads.get(changed)
        if owner is None:
            self._event("changed", changed, name)
        else:
            self._event("zeroed" if self.tensors.is_zero(tensor) else "altered", owner, name)
        if not rewritten:
            self.rewritten(tensor, self.entries[changed])
            base = self.tensors.base(tensor)
            if base is not None:
                self.mark(base)

    def wrote_to(self, tensor: Any) -> None:
        """Note the line that wrote to the memory of a tensor."""
        write = self.tick(), self.tensors.version(tensor), self._place()[0]
        self.writes.setdefault(self.tensors.memory(tensor), []).append(write)

    def writer(self, memory: int, since: int, version: int) -> SourceLine | None:
        """The line that first wrote to a memory after a time, when it had a version."""
        writes = (line for time, after, line in self.writes.get(memory, ()) if time > since and after > version)
        return next(writes, None)

    def rewritten(self, tensor: Any, entry: Entry, size: ArrayNorm | None = None) -> None:
        """Look again at a tensor that keeps its number, after a change of its memory.

        A leaf that nothing has read yet begins with its new values: those of `torch.empty` are none.
        """
        before = entry.version
        entry.version, size = self.tensors.version(tensor), self.tensors.size(tensor) if size is None else size
        if entry.now.finite and not size.finite:
            line = self.writer(self.tensors.memory(tensor), entry.mark, before) or self._place()[0]
            self.events.append(Event("spoilt", entry.mark, line, len(self.sweeps), self.tick()))
        elif entry.role == "leaf" and entry.mark not in self.used:
            entry.size, entry.value = size, self.tensors.facts(tensor, self.extents).value
        entry.now = size

    def moved(self, tensor: Any) -> None:
        """A tensor was given new values through .data."""
        entry = self.entries[self.mark(tensor)]
        self._event("changed", entry.mark, "data")
        self.rewritten(tensor, entry)

    def refilled(self, tensor: Any, value: Any = None) -> None:
        """A tensor was given other entries through .data, as `module.to()` does it: maybe of another format."""
        self.moved(tensor)
        mark, source = self.mark(tensor), -1 if value is None else self.tensors.mark(value)
        if source in self.shared and self.owner_of(source) != self.owner_of(mark):
            self.shared[mark] = self.owner_of(source)
        entry, facts = self.entries[self.mark(tensor)], self.tensors.facts(tensor, self.extents)
        if (entry.dtype, entry.shape) != (facts.dtype, facts.shape):
            entry.dtype, entry.shape, entry.size, entry.value = facts.dtype, facts.shape, facts.size, facts.value

    def filled(self, tensor: Any, name: str) -> None:
        """An initialiser gave a tensor its values."""
        self._event("filled", self.mark(tensor), name)

    def froze(self, tensor: Any, requires: bool) -> None:
        """`requires_grad` of a leaf was set."""
        mark = self.mark(tensor)
        self._event("unfrozen" if requires else "frozen", mark)
        self.frozen.pop(mark, None)
        if not requires and mark in self.grads.values():
            self.frozen[mark] = self.tensors.probe(tensor)

    def retained(self, tensor: Any) -> None:
        """retain_grad() was called on a tensor."""
        self._event("retained", self.mark(tensor))

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
        self.events.append(Event(kind, mark, self._place()[0], len(self.sweeps), self.tick(), name))

    def meet(self, tensor: Any, size: ArrayNorm | None = None) -> None:
        """Note the state that a tensor is in now, with the size of its `.grad`; its name may come later."""
        mark = self.mark(tensor)
        known = self.subjects.get(mark)
        self.named(mark, tensor, known.name if known else "", known.scope if known else "", size)

    def named(self, mark: int, tensor: Any, name: str, scope: str, size: ArrayNorm | None = None) -> None:
        """Note a tensor as it is now under a name that the file has for it."""
        self.subjects[mark] = self.tensors.subject(tensor, name, scope, size)

    def switched(self, context: object, action: str, mode: str, caller: FrameType | None, function: Any) -> None:
        """A context turned recording on or off: it was entered, left, or made by a `call`.

        A `caller` decorates a `function`, if that is not None.
        """
        self.switches = [switch for switch in self.switches if switch.context is not context]
        if action == "exit":
            return
        plain, line = action == "call", self._place()[0]
        code = getattr(function, "__code__", None) if function is not None else caller and caller.f_code
        if code is None or self.owner[code.co_filename] != OWN:
            action = "library"
        elif function is not None:
            action, line = "decorator", whole_line(code.co_filename, code.co_firstlineno)
        if plain:  # it replaces calls before it: all of a library's, but the file's last may yet be entered and left
            while self.switches and self.switches[-1].plain and action == self.switches[-1].how == "library":
                self.switches.pop()
            while len(self.switches) > 1 and self.switches[-1].plain and self.switches[-2].plain:
                del self.switches[-2]
            if action == "library" and mode == (self.switches[-1].mode if self.switches else "grad"):
                return  # what the file set is restored
        self.switches.append(Switch(context, mode, line, action, self.tick(), plain))

    def hooked(self, tensor: Any, kind: str) -> None:
        """The file registered a hook on a tensor."""
        line, time = self._place()[0], self.tick()
        self.hooks.append(Hook(line, time, self.mark(tensor), self.tensors.seq(tensor), None, kind, []))

    def hooked_layer(self, module: Any, kind: str) -> Hook:
        """The file registered a hook on a layer."""
        hook = Hook(self._place()[0], self.tick(), -1, None, self.layer(module), kind, [])
        self.hooks.append(hook)
        return hook

    # --- optimizers -----------------------------------------------------------------------------------------------

    def making(self, optimizer: Any, *_: Any) -> None:
        """An optimizer is made."""
        known = OptimizerRecord(type(optimizer).__name__, self._place()[0], self.tick())
        self.known_optimizers[id(optimizer)] = known
        self.optimizers.append(known)

    def gathered(self, optimizer: Any) -> OptimizerRecord:
        """Note what an optimizer moves; it may have been made before the record began."""
        if id(optimizer) not in self.known_optimizers:
            self.making(optimizer)
            self.known_optimizers[id(optimizer)].line = None
        known, time = self.known_optimizers[id(optimizer)], self.tick()
        for mark in map(self.mark, self.held(optimizer)):
            known.held.setdefault(mark, time)
        return known

    def held(self, optimizer: Any) -> list[Any]:
        """What an optimizer moves, without parameters that have no shape yet."""
        held = [x for group in optimizer.param_groups for x in group["params"]]
        return [x for x in held if self.tensors.is_tensor(x) and not type(x).__name__.startswith("Uninitialized")]

    def stepping(self, optimizer: Any) -> None:
        """An optimizer begins a step."""
        if not self.gathered(optimizer).updates:
            self.known_optimizers[id(optimizer)].probes = self.probes(optimizer)
        self.steps_open.add(id(optimizer))
        if self.steps:
            self.moving[id(optimizer)] = list(map(self.tensors.copied, self.held(optimizer)))

    def stepped(self, optimizer: Any, moved: Sequence[Any]) -> None:
        """An optimizer has moved tensors."""
        self.steps_open.discard(id(optimizer))
        sizes = self.tensors.sizes(moved)  # all norms are on their way before one is read
        known, held = self.known_optimizers[id(optimizer)], self.held(optimizer)
        line, time, begun = self._place()[0], self.tick(), len(self.sweeps)
        marks = []
        for x, size in zip(moved, sizes, strict=True):
            mark = self.tensors.mark(x)
            entry = self.entries.get(mark)
            if entry is None:
                mark, entry = self.mark(x), self.entries[self.mark(x)]
            marks.append(mark)
            self.writes.setdefault(self.tensors.memory(x), []).append((time, self.tensors.version(x), line))
            self.events.append(Event("changed", mark, line, begun, time, "step"))
            self.rewritten(x, entry, size)
        groups = optimizer.param_groups
        rates = tuple([float(group.get("lr", 0.0)) for group in groups])
        known.decay = max([float(group.get("weight_decay") or 0) for group in groups], default=0.0)
        known.remembers = known.kind != "SGD" or any(bool(group.get("momentum")) for group in groups)
        known.uphill = any(bool(group.get("maximize")) for group in groups)
        before = self.moving.pop(id(optimizer), ())
        ratios = {self.mark(x): self.tensors.ratio(x, former) for x, former in zip(held, before, strict=False)}
        known.updates.append(Update(time, line, begun, rates, tuple(marks), self.probes(optimizer), ratios))
        if len(known.updates) == SETTLED:
            known.alike = [self.mark(x) for x in held if self.tensors.alike(x)]
        for x, mark in zip(moved, marks, strict=True):
            if mark in self.frozen and self.tensors.probe(x) != self.frozen[mark]:
                self.events.append(Event("drifted", mark, line, begun, time))

    def clipping(self, parameters: Sequence[Any]) -> None:
        """Gradients are about to be clipped."""
        marks, empty = tuple(map(self.mark, parameters)), not any(map(self.tensors.added, parameters))
        self.clips.append(Clip(self.tick(), self._place()[0], marks, empty))

    def probes(self, optimizer: Any) -> tuple[Any, ...]:
        """A few entries of the first tensors that an optimizer moves."""
        return tuple(map(self.tensors.probe, self.held(optimizer)[:PROBED]))

    # --- backwards ------------------------------------------------------------------------------------------------

    def refused(self, root: Any) -> None:
        """backward() was called on a tensor that does not require grad."""
        self.refusal, self.stop, self.fault = self.mark(root), None, self._place()[0]
        self.meet(root)

    def broken(self, why: str, name: str, seq: int, line: SourceLine | None, changed: SourceLine | None) -> None:
        """A backward cannot go through a node that was made at one line; what it saved was `changed` at another."""
        self.stop, self.refusal = (why, name, seq, line, changed), None
        self.fault = self.open[-1].line if self.open else self._place()[0]

    def sweep(
        self, roots: Sequence[Any], targets: Sequence[Any] | None, retain: bool, create: bool, accumulate: bool
    ) -> None:
        """A backward begins."""
        known = [(self.mark(root), self.tensors.seq(root), self.tensors.size(root).finite) for root in roots]
        line, marks = self._place()[0], None if targets is None else tuple([self.mark(x) for x in targets])
        sweep = BackwardRecord(self.tick(), line, known, retain, create, accumulate, marks, bool(self.steps_open))
        self.sweeps.append(sweep)
        self.open.append(sweep)

    def step(
        self,
        seq: int,
        name: str,
        line: SourceLine | None,
        cts: Sequence[Any],
        results: Sequence[tuple[tuple[str, int], Any]],
    ) -> None:
        """A node of a number ran: what arrived, and for each input where it goes to and what it gets, or None."""
        tensors, extents = self.tensors, self.extents
        arrived = [ct for ct in cts if ct is not None]
        overwritten = next((self.mark(ct) for ct in arrived if tensors.overwritten(ct)), None)
        step = Step(
            seq,
            name,
            line,
            [tensors.arrived(ct, extents) for ct in arrived],
            tensors.kept(arrived[0], extents) if len(arrived) == 1 else None,
            overwritten=overwritten,
        )
        sweep = self.open[-1]
        for to, value in results:
            if value is None:
                if sweep.targets is None:  # else it may be on no path to a target
                    step.withheld.append(to)
                continue
            size = tensors.sent(value, extents) if to[0] == "node" else tensors.size(value, extents)
            step.sent.append(SentGradient(to, size, tensors.kept(value, extents)))
            if arrived:
                tensors.note_stuck(step, arrived[0], value, size)
        sweep.steps.append(step)
        sweep.seqs.add(seq)
        if overwritten is None:  # else it is not known what came
            self.functions_applied.ran(seq, cts, [value for _, value in results])

    def accumulated(self, leaf: Any, value: Any) -> None:
        """A backward added a gradient into `.grad`."""
        tensors = self.tensors
        mark = self.mark(leaf)
        self.grads[self.mark(tensors.grad(leaf))] = mark
        sweep = self.open[-1] if self.open else self.sweeps[-1]
        size = tensors.size(value, self.extents)
        kept, probe = tensors.kept(value, self.extents), tensors.probe(value)
        total = tensors.kept(tensors.grad(leaf), True) if self.extents else None
        counts = tensors.counts(value) if self.steps else None
        sweep.reached.append(Reached(mark, tensors.added(leaf), size, kept, total, probe, counts))
        line = self.open[-1].line if self.open else self._place()[0]
        self.events.append(Event("added", mark, line, len(self.sweeps), self.tick()))
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
        for name, value in optimizers_of(self.tensors, names):
            optimizer = self.gathered(value)
            optimizer.name = optimizer.name or name
        self.name_layers(names, scope)
        for name, tensor in subjects_of(self.tensors, names):
            mark = self.mark(tensor)
            self.misspelt.update(misspelt(tensor))
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

    def name_layers(self, names: dict[str, Any], scope: str) -> None:
        """Give layers the names that the file has for them; those of the file itself count more than a function's."""
        for name, module in names.items():
            if not hasattr(type(module), "named_modules") or (scope and self.layer(module).name):
                continue
            for path, part in module.named_modules():
                layer = self.layer(part)
                self.misspelt.update(misspelt(part))
                if not layer.name or (layer.local and not scope):
                    layer.name, layer.local = f"{name}.{path}" if path else name, bool(scope)

    def note_loose(self, names: dict[str, Any]) -> None:
        """Note the parameters that modules among some names do not register."""
        for loose in loose_in(self.tensors, names, self.mark, self.made_of):
            self.loose[loose.tensors] = loose

    def made_of(self, tensor: Any, line: SourceLine) -> tuple[int, ...]:
        """The leaves that a line computed a tensor from; none for a tensor of another line."""
        entry = self.entries[self.mark(tensor)]
        if entry.line is None or entry.line[:2] != line[:2]:
            return ()
        leaves, waiting = set(), [entry.mark]
        while waiting:
            above = self.entries[waiting.pop()]
            waiting += above.inputs
            if above.role == "leaf" and above.requires:
                leaves.add(above.mark)
        return tuple(sorted(leaves))

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
            if self.owner[code.co_filename] == OWN:
                self.last = line_of((code, step.tb_lasti))
                if code.co_name != "<module>":
                    self.look(dict(step.tb_frame.f_locals), code.co_name)
            step = step.tb_next

    def ended(self, functions: Sequence[FrameType]) -> None:
        """Functions of the file have come to their end: their names are noted."""
        for frame in functions:
            self.look(names_at_end(frame, self.owners), frame.f_code.co_name)

"""Watches a run of the installed PyTorch: its hooks become the events of the record that `why`, `graph`, `trace` read.

A TorchFunctionMode sees operations, looks at `.grad`, and values that leave the graph. Every node that a backward will
visit has a hook for as long as that lasts: what arrived, and what it sent. The nodes of a composite are found by
walking `next_functions` from its result. Steps are seen by the global hooks of optimizers. What `Recorder.replaced`
lists is replaced while a run is watched, and put back at its end.

Not followed: what `torch.compile` would compile (it runs as it is written), and reductions between the processes of
DistributedDataParallel.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial, wraps
from importlib import import_module
from itertools import islice
from math import nan
from typing import TYPE_CHECKING, Any

from gradcli.base.diagnostics import error
from gradcli.recording.calls.gradient_libraries import TORCH, is_a, untested
from gradcli.recording.libraries.torch_tensors import TorchTensors, name_of
from gradcli.recording.runs.run_record import Watch
from gradcli.recording.runs.source_lines import OWN
from gradcli.recording.runs.tensors import ArrayNorm, flat, spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry

CUTS = {
    **dict.fromkeys(("item", "__float__", "__int__", "__index__", "__bool__", "__complex__", "__format__"), "item()"),
    **dict.fromkeys(("numpy", "__array__"), "numpy()"),
    **dict.fromkeys(("detach", "detach_"), "detach()"),
    **dict.fromkeys(("tensor", "as_tensor"), "torch.tensor()"),
    "tolist": "tolist()",
}
COPIES = ("__deepcopy__", "__reduce_ex__")  # functions whose results are leaves with a history of their own
IN_PLACE = frozenset(
    ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__")
    + ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__", "__imatmul__", "_fill", "_zero")
)
UNSCALES = "_amp_foreach_non_finite_check_and_unscale_"  # divides gradients, whose version stays
KINDS = {  # what composites are called, whichever kernels run or nodes they consist of
    "scaled_dot_product_attention": "ScaledDotProductFlashAttentionForCpuBackward0",
    "cross_entropy_loss": "CrossEntropyLossBackward0",
}
QUIET = (  # methods that make no tensor
    *("__repr__", "__hash__", "__len__", "__dir__", "backward", "size", "dim", "numel", "stride"),
    *("is_floating_point", "is_complex", "element_size", "data_ptr"),
)
DATA = "torch.utils.data"  # whose code, or code that it calls, takes samples and puts batches together
SAMPLES = frozenset(("__getitem__", "select", "narrow", "index_select"))
BATCHES = frozenset(("stack", "cat", "concat"))
LOADED = SAMPLES | BATCHES
LAYER_HOOKS = ("register_forward_hook", "register_full_backward_hook", "register_full_backward_pre_hook")
GRAD_MODE = "torch.autograd.grad_mode"
ACTIONS = {"__enter__": "with", "__exit__": "exit", "__init__": "call", "__call__": "exit"}
PARALLEL = ("DistributedDataParallel", "FullyShardedDataParallel")
WRONG_VERSION = re.compile(r"is at version (\d+); expected version (\d+)")


class TorchWatch(Watch):
    """The record of a run of the installed PyTorch."""

    tensors: TorchTensors

    def __init__(self, torch: Any, folder: str, extents: bool = False, every: int = 1, steps: bool = False) -> None:
        super().__init__(folder, TorchTensors(torch), extents, steps)
        self.torch, self.every = torch, every
        self.keeping: dict[int, Any] = {}  # number of a node: a reference to its result, which keeps its gradient
        self.unseen: dict[tuple[int, int], Entry] = {}  # place of a value inside a composite, until a tensor holds it
        self.samples: dict[int, tuple[str, int]] = {}  # of data that nothing else has used: the operation, its operand
        self.notes += untested(TORCH, str(torch.__version__))

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While it lasts, what PyTorch does is recorded."""
        with Recorder(self).attached():
            yield
        self.wrong_rules += self.functions_applied.wrong(self.torch)
        self.notes += [f"the entries of a {kind} were not read: {why}" for kind, why in self.tensors.unread.items()]

    def look(self, names: dict[str, Any], scope: str = "") -> None:
        """Note the names that tensors have, and what optimizers were given that never made a step."""
        for value in names.values():
            if type(value).__name__ in PARALLEL and is_a(value, self.torch.nn.Module):
                self.note(f"{type(value).__name__}: the communication between its processes is not recorded")
        super().look(names, scope)

    def note(self, text: str) -> None:
        """Say once what is not recorded."""
        if text not in self.notes:
            self.notes.append(text)

    def named(self, mark: int, tensor: Any, name: str, scope: str, size: ArrayNorm | None = None) -> None:
        """Note a tensor as it is now under a name that the file has for it."""
        try:
            super().named(mark, tensor, name, scope, size)
        except (RuntimeError, TypeError) as problem:
            self.notes.append(f"{name or 'a tensor'} was not read: {str(problem).partition(chr(10))[0]}")

    # --- values ---------------------------------------------------------------------------------------------------

    def unknown(self, tensor: Any) -> Entry:
        """The entry of a tensor that is new to the record; it may be a value inside a composite, or a sample."""
        sample = self.samples.pop(self.tensors.mark(tensor), None)
        if sample is not None:
            return self.computed(sample[0], [sample[1]], False, tensor)
        data = None if self.extents or tensor.requires_grad else self.tensors.base(tensor)
        if data is not None and not data.requires_grad:
            return self.computed(title("select"), [self.mark(data)], False, tensor)
        return self.uncovered(tensor) or super().unknown(tensor)

    def take_sample(self, name: str, data: Any, sample: Any) -> None:
        """A sample was taken of data that require no grad; it has an entry only if more than a batch uses it."""
        number = self.tick()
        self.samples[number] = title(name), self.source(data)
        self.tensors.set_mark(sample, number)

    def source(self, tensor: Any) -> int:
        """The number of a tensor, or of the data that it is a sample of."""
        known = self.tensors.mark(tensor)
        sample = self.samples.get(known)
        if sample is None and known < 0 and not tensor.requires_grad and tensor._base is not None:
            return self.mark(tensor._base)
        return self.mark(tensor) if sample is None else sample[1]

    def uncovered(self, tensor: Any) -> Entry | None:
        """The entry of a value inside a composite, now that a tensor holds it; None for other tensors."""
        between = self.unseen.pop(self.tensors.place(tensor) or (0, 0), None)
        return None if between is None else self.seen(between, tensor)

    def of_node(self, tensor: Any) -> Entry:
        """The entry of a result of an operation that no hook reported."""
        return self.computed("", (), False, tensor)

    def seen(self, entry: Entry, tensor: Any) -> Entry:
        """The entry of a value inside a composite, with what a tensor shows of it."""
        facts = self.tensors.facts(tensor, self.extents)
        entry.requires, entry.seq, entry.dtype, entry.shape, entry.size, entry.value = facts
        self.tensors.set_mark(tensor, entry.mark)
        return entry

    def applied(self, name: str, operands: Sequence[Any], result: Any) -> Entry:
        """An operation on tensors gave a result."""
        return self.computed(name, list(map(self.mark, operands)), any(map(self.tensors.requires, operands)), result)

    def collate(self, name: str, operands: Sequence[Any], result: Any) -> Entry:
        """Samples that require no grad were put together: the batch is computed from the data."""
        return self.computed(name, list(dict.fromkeys(map(self.source, operands))), False, result)

    def by_function(self, name: str, operands: Sequence[Any], result: Any) -> None:
        """A Function gave a result, which an operation in its forward may have entered before."""
        self._place()
        if self.tensors.mark(result) not in self.entries:
            self.applied(name, operands, result)

    def computed(self, name: str, inputs: Sequence[int], wanted: bool, result: Any) -> Entry:
        """A result was made from values of these numbers, through one node, several, or none."""
        node = self.tensors.node(result)
        first = len(self.entries)
        if node is not None:
            name = name_of(node)
            edges, reached = self.beneath(node)
            inputs = [mark for mark in inputs if mark in reached or not self.entries[mark].requires]
            if not reached.issuperset(edges) or sum(mark in reached for mark in inputs) != len(edges):
                # nodes of a composite lie between, or an operand gave no more than its shape
                inputs = [*edges, *[mark for mark in inputs if mark not in reached]]
        entry = self._enter(result, "operation", name, tuple(inputs))
        entry.wanted = wanted or node is not None
        if not entry.size.finite and len(self.entries) > first + 1:
            self.spread(list(islice(reversed(self.entries.values()), len(self.entries) - first))[::-1])
        return entry

    def spread(self, entries: Sequence[Entry]) -> None:
        """Take values inside a composite for not finite where an operand is not, as its result is not."""
        for entry in entries:
            entry.below = tuple([self.entries[mark].now for mark in entry.inputs])
            if not all(size.finite for size in entry.below):
                entry.size = entry.now = ArrayNorm(nan, False)

    def beneath(self, node: Any) -> tuple[list[int], set[int]]:
        """The marks of what a node reads, and which of these, or of those under new nodes, had one before."""
        before: set[int] = set()
        inner: dict[Any, set[int]] = {}  # new nodes, and which of their results are read
        pending = list(node.next_functions)
        while pending:
            below, at = pending.pop()
            mark = None if below is None else self.mark_of(below, at)
            if mark is not None:
                before.add(mark)
            elif below is not None:
                pending += () if below in inner else below.next_functions
                inner.setdefault(below, set()).add(at)
        for below in sorted(inner, key=lambda below: below._sequence_nr()):
            for at in sorted(inner[below]):
                self.between(below, at)
        if inner and self.extents:
            self.read_saved([node, *inner])
        return self.edges(node), before

    def mark_of(self, node: Any, at: int) -> int | None:
        """The mark of a result of a node, or of the leaf that a node adds to; None where the record has none."""
        if hasattr(node, "variable"):
            return self.mark(node.variable)
        return self.made.get(self.tensors.number(node), {}).get(at)

    def edges(self, node: Any) -> list[int]:
        """The marks of what a node reads."""
        marks = [self.mark_of(below, at) for below, at in node.next_functions if below is not None]
        return [mark for mark in marks if mark is not None]

    def read_saved(self, nodes: Sequence[Any]) -> None:
        """Read values inside a composite from what its nodes have saved, unless hooks that pack it would see that."""
        if self.tensors.packing():
            return
        for value in [value for node in nodes for value in saved(node) if self.tensors.is_tensor(value)]:
            entry = self.unseen.get(self.tensors.place(value) or (0, 0))
            if entry is not None:
                self.seen(entry, value)

    def between(self, node: Any, at: int) -> None:
        """Enter a value inside a composite: no one has seen more of it than its node."""
        entry = self._enter(None, "operation", name_of(node), tuple(self.edges(node)))
        number = self.tensors.number(node)
        entry.seq, entry.requires, entry.wanted = number, True, True
        entry.size = entry.now = ArrayNorm(nan, True)  # not known
        known = getattr(node, "_input_metadata", None)
        if known:
            entry.shape, entry.dtype = tuple(known[at].shape), spoken(known[at].dtype)
        self.unseen[number, at] = entry
        self.made.setdefault(number, {})[at] = entry.mark

    def line_of(self, node: Any) -> SourceLine | None:
        """The line that made a node."""
        marks = self.made.get(self.tensors.number(node))
        return self.entries[next(iter(marks.values()))].line if marks else None

    def wrote(self, name: str, operands: Sequence[Any], tensor: Any, before: int) -> None:
        """A tensor, which had this number before, was changed in place."""
        tensors = self.tensors
        rewritten = tensors.mode() == "grad" and tensors.node(tensor) is not None
        self.changing(tensor, before, name, rewritten, [self.tensors.mark(x) for x in operands if x is not tensor])
        if rewritten:
            wanted = any(map(tensors.requires, operands))
            self.computed(name, [before if x is tensor else self.mark(x) for x in operands], wanted, tensor)
            base = tensors.base(tensor)
            if base is not None:
                self.mark(base)
            if tensor.retains_grad:
                self.keep(tensor)

    def keep(self, tensor: Any) -> None:
        """Note that a tensor keeps its gradient: no leaf has a hook that would tell."""
        number = self.tensors.seq(tensor)
        if number is not None:
            self.keeping[number] = weakref.ref(tensor)

    def retained(self, tensor: Any) -> None:
        """retain_grad() was called on a tensor."""
        self.keep(tensor)
        super().retained(tensor)

    def kept_at(self, number: int) -> Any:
        """The result of a node that keeps its gradient, if it still is that; or None."""
        kept = self.keeping[number]() if number in self.keeping else None
        return kept if kept is not None and self.tensors.seq(kept) == number else None

    def accumulated(self, leaf: Any, value: Any) -> None:
        """A backward added a gradient into `.grad`."""
        mark = self.mark(leaf)
        self.tensors.added_to[mark] = self.tensors.added_to.get(mark, 0) + 1
        super().accumulated(leaf, value)

    def _event(self, kind: str, mark: int, name: str = "") -> None:
        if kind in ("dropped", "zeroed", "set"):
            self.tensors.added_to[mark] = 0
        super()._event(kind, mark, name)


class Recorder:
    """Feeds a record from the hooks of PyTorch."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch, self.tensors, self.torch = watch, watch.tensors, watch.torch
        self.process = os.getpid()
        self.off = False  # whether the mode is off, because a function that it saw is running
        self.stepping = 0
        self.resume = ExitStack()  # ends a step that the mode does not see
        self.clock: Any = None  # the optimizer whose steps are counted
        self.iteration = 0  # steps, or backwards where no optimizer steps
        self.versions: dict[int, list[int]] = {}  # by the identity of an optimizer that steps
        self.handlers = self._handlers()
        self.mode = self._mode()
        self.unseen = self.torch._C.DisableTorchFunction  # what the record itself reads is no part of the run
        self.has_override = import_module("torch.overrides").has_torch_function
        self._engine: Any = None
        self._apply: Any = None

    # --- attaching ------------------------------------------------------------------------------------------------

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While it lasts, PyTorch is watched."""
        optimizer = import_module("torch.optim.optimizer")
        with ExitStack() as stack:
            for owner, name, value in self.replaced():
                before = vars(owner)[name]
                setattr(owner, name, value)
                stack.callback(setattr, owner, name, before)
            stack.callback(lambda: self.resume.close())  # of a step that raised
            stack.callback(optimizer.register_optimizer_step_pre_hook(self.step_begins).remove)
            stack.callback(optimizer.register_optimizer_step_post_hook(self.step_ended).remove)
            stack.enter_context(self.mode)
            yield

    def replaced(self) -> list[tuple[Any, str, Any]]:
        """What stands in another's place during a run: owner, name, value."""
        torch = self.torch
        functional = torch.nn.functional
        self._engine = torch.autograd._engine_run_backward
        self._apply = vars(torch.autograd.Function)["apply"]
        recorder = self

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            result = recorder._apply.__get__(None, cls)(*args, **kwargs)
            recorder.guarded(cls.__name__, recorder.ruled, cls, (*args, *kwargs.values()), result)
            return result

        parameter, optimizer = torch.nn.Parameter, torch.optim.Optimizer
        inference, module = torch.autograd.grad_mode.inference_mode, torch.nn.Module
        utils = torch.nn.utils
        return [
            (torch.autograd, "_engine_run_backward", self.backward),
            (torch.autograd.Function, "apply", classmethod(apply)),
            (parameter, "__new__", staticmethod(self.after(parameter.__new__, self.born))),
            (optimizer, "__init__", self.before(optimizer.__init__, self.watch.making)),
            (
                optimizer,
                "add_param_group",
                self.after(optimizer.add_param_group, lambda _, x, *__: self.watch.gathered(x)),
            ),
            (inference, "__enter__", self.before(inference.__enter__, self.inferring)),
            (inference, "__exit__", self.before(inference.__exit__, self.inferring)),
            *[(module, name, self.registering(name, getattr(module, name))) for name in LAYER_HOOKS],
            (torch, "compile", self.compile),
            *[(utils, name, self.clipping(getattr(utils, name))) for name in ("clip_grad_norm_", "clip_grad_value_")],
            # composites of torch.nn.functional run as they are written: the mode sees what they consist of
            (functional, "has_torch_function", self.overridden),
            (functional, "has_torch_function_unary", lambda x: self.overridden((x,))),
            (functional, "has_torch_function_variadic", lambda *xs: self.overridden(xs)),
        ]

    def after(self, function: Any, note: Callable[..., object]) -> Any:
        """A function that calls another one, then notes its result and arguments."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self.guarded(function.__qualname__, note, result, *args, *kwargs.values())
            return result

        return call

    def before(self, function: Any, note: Callable[..., None]) -> Any:
        """A function that notes its arguments, then calls another one."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.guarded(function.__qualname__, note, *args)
            return function(*args, **kwargs)

        return call

    def clipping(self, function: Any) -> Any:
        """A function that notes which gradients are clipped, then calls another one."""

        @wraps(function)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            xs = [parameters] if self.tensors.is_tensor(parameters) else list(parameters)
            if self.sampled:
                self.guarded("a clip", self.watch.clipping, [x for x in xs if self.tensors.is_tensor(x)])
            return function(xs, *args, **kwargs)

        return clip

    def registering(self, kind: str, function: Any) -> Any:
        """A function that registers a hook on a layer, whose calls are counted if it is the file's own."""

        @wraps(function)
        def register(module: Any, hook: Any, *args: Any, **kwargs: Any) -> Any:
            if self.watch.owner[sys._getframe(1).f_code.co_filename] == OWN:
                hook = Counted(hook, self.watch.hooked_layer(module, kind).calls)
            return function(module, hook, *args, **kwargs)

        return register

    def born(self, parameter: Any, cls: Any, data: Any = None, *_: Any) -> None:
        """A Parameter was made."""
        if type(parameter) in self.tensors.classes:
            self.watch.born(parameter, data)

    def inferring(self, context: Any, *leaving: Any) -> None:
        """A context of inference mode is entered or, with an exception or none, left."""
        mode = "inference" if context.mode else "grad"
        caller = sys._getframe(3)
        self.watch.switched(context, "exit" if leaving else "with", mode, caller, decorated(caller))

    def switched(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Recording is turned on or off, by one of PyTorch's contexts or by hand."""
        result = self.plain(func, args, kwargs)
        self.guarded("a mode", self.note_switch, sys._getframe(3), "grad" if args[0] else "no_grad")
        return result

    def note_switch(self, frame: Any, mode: str) -> None:
        """Record which of PyTorch's contexts set a mode, from the frame that set it."""
        context = None
        while frame.f_globals.get("__name__") == GRAD_MODE and frame.f_back is not None:
            context, frame = frame if frame.f_code.co_name in ACTIONS else context, frame.f_back
        if context is not None:
            action = ACTIONS[context.f_code.co_name]
            self.watch.switched(context.f_locals["self"], action, mode, frame, decorated(frame))

    def overridden(self, xs: Sequence[Any]) -> bool:
        """Whether a tensor of another class takes functions over; the mode of this run does not count."""
        classes = self.tensors.classes
        others = [x for x in xs if type(x) not in classes and hasattr(x, "__torch_function__")]
        return bool(others) and bool(self.has_override(others))

    def compile(self, model: Any = None, **options: Any) -> Any:
        """Stands for torch.compile: the function itself."""
        self.watch.note("torch.compile is skipped: the function is recorded uncompiled")
        return (lambda function: function) if model is None else model

    def _mode(self) -> Any:
        recorder = self

        class Mode(import_module("torch.overrides").TorchFunctionMode):  # type: ignore[misc]
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if recorder.stepping and recorder.in_step(2):
                    return func(*args, **(kwargs or {}))
                return recorder.called(func, args, kwargs or {})

        return Mode()

    def _handlers(self) -> dict[Any, Callable[..., Any]]:
        tensor, watch = self.torch.Tensor, self.watch

        def noted(what: str, note: Callable[..., Any], always: bool = True) -> Callable[..., Any]:
            def handler(func: Any, args: Any, kwargs: Any) -> Any:
                result = self.plain(func, args, kwargs)
                if (always or self.sampled) and self.tensors.is_tensor(args[0]):
                    self.guarded(what, note, result, *args, **kwargs)
                return result

            return handler

        grad_set = noted(".grad", lambda result, x, value=None: watch.grad_set(x, value))
        hooks = ("register_hook", "register_post_accumulate_grad_hook")
        return {
            self.torch._C._set_grad_enabled: self.switched,
            tensor.requires_grad.__set__: noted("requires_grad", lambda _, x, value: watch.froze(x, value)),
            tensor.requires_grad_: noted("requires_grad", lambda _, x, value=True, **__: watch.froze(x, value)),
            **{getattr(tensor, name): noted(name, partial(self.on_tensor, name)) for name in hooks},
            tensor.grad.__get__: self.grad_read,
            tensor.grad.__set__: grad_set,
            tensor.grad.__delete__: grad_set,
            tensor.data.__get__: noted(".data", lambda result, x, *_: watch.cut(".data", (x,), result), always=False),
            tensor.data.__set__: noted(".data", lambda result, x, value: watch.refilled(x, value)),
            tensor.retain_grad: noted("retain_grad", lambda result, x: watch.retained(x)),
            **dict.fromkeys((self.torch.autograd.grad, self.torch.autograd.backward), self.plain),
            **{getattr(tensor, name): self.plain for name in QUIET},
        }

    def on_tensor(self, kind: str, _: Any, tensor: Any, hook: Any) -> None:
        """A hook was registered on a tensor."""
        self.watch.hooked(tensor, kind)

    # --- operations -----------------------------------------------------------------------------------------------

    @property
    def sampled(self) -> bool:
        """Whether this step is recorded."""
        return self.iteration % self.watch.every == 0

    def outside(self, gradients: Any = ()) -> bool:
        """Whether what runs cannot be recorded, which is said once."""
        where = "inside a transform of torch.func" if self.tensors.transforming() else ""
        where = where or ("in a batched backward" if self.tensors.batched(gradients) else "")
        if where:
            self.watch.note(f"{where} nothing is recorded")
        return bool(where)

    def plain(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that the mode saw."""
        off, self.off = self.off, True
        try:
            return func(*args, **kwargs)
        finally:
            self.off = off

    def guarded(self, what: str, note: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Record something; a tensor that cannot be read costs its place in the record, not the run."""
        try:
            with self.unseen():
                return note(*args, **kwargs)
        except Exception as problem:
            text = f"{type(problem).__name__}: {str(problem).partition(chr(10))[0]}"
            self.watch.note(f"{what} is missing from the record: {text}")
            return None

    def called(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A function of PyTorch is called."""
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(func, args, kwargs)
        if getattr(func, "__module__", None) == "torch.nn.init":  # a parameter begins where it is first used
            result = self.plain(func, args, kwargs)
            for x in flat([*args[:1], *kwargs.values()]):
                if self.tensors.is_tensor(x):
                    self.guarded(func.__name__, self.watch.filled, x, func.__name__)
            return result
        if not self.sampled or os.getpid() != self.process or self.outside():
            return self.plain(func, args, kwargs)
        name: str = getattr(func, "__name__", "")
        if name == "__get__":
            result = self.plain(func, args, kwargs)
            if not isinstance(result, self.torch.Tensor):
                return result
            name = func.__self__.__name__
            changes: list[tuple[Any, int, int]] = []
        else:
            if name in SAMPLES and self.loading():
                result = self.plain(func, args, kwargs)
                if not self.tensors.is_tensor(result) or result.requires_grad or result._base is None:
                    self.guarded(name, self.note, name, args, kwargs, [], result)
                return result  # a view of the data, which tells by itself what it was taken of
            changes = []
            if changing(name) or kwargs.get("out") is not None:
                changes = self.guarded(name, self.versions_of, args, kwargs) or []
            result = self.plain(func, args, kwargs)
        self.guarded(name, self.note, name, args, kwargs, changes, result)
        return result

    def note(self, name: str, args: Any, kwargs: Any, changes: list[tuple[Any, int, int]], result: Any) -> None:
        """Record a call and its result; of what it may have changed the numbers and versions are those before."""
        operands = [x for x in flat([*args, *kwargs.values()]) if self.tensors.is_tensor(x)]
        for x, mark, version in changes:
            if x._version != version or name == UNSCALES:
                self.watch.wrote(name, operands, x, mark)
        if name in CUTS:
            self.watch.cut(CUTS[name], operands, result if self.tensors.is_tensor(result) else None)
        elif isinstance(result, (self.torch.Tensor, list, tuple, dict)) and name not in COPIES:
            for x in flat(list(result.values()) if isinstance(result, dict) else [result]):
                if self.tensors.is_tensor(x) and not any(x is operand for operand in operands):
                    self.made(name, [] if name.endswith("_like") else operands, x)

    def made(self, name: str, operands: list[Any], result: Any) -> None:
        """An operation gave a result."""
        if self.tensors.node(result) is None:
            leaf = result.requires_grad and not result._is_view()  # views under no_grad say that they require grad
            if leaf or not operands:
                self.watch.born(result)
                return
        if self.tensors.mark(result) in self.watch.entries or self.watch.uncovered(result):
            return  # what was there before, as `y._base` or a second result
        if name in LOADED and not any(x.requires_grad for x in operands) and self.loading():
            if name in BATCHES:
                self.watch.collate(title(name), operands, result)
            else:
                self.watch.take_sample(name, operands[0], result)
            return
        entry = self.watch.applied(title(name), operands, result)
        entry.remark = self.watch.remarks.on(entry, KINDS.get(name, entry.name), operands, result)

    def loading(self) -> bool:
        """Whether PyTorch's loaders and data sets, or what they call, run an operation; a picture shows all."""
        if self.watch.extents:
            return False
        caller: Any = sys._getframe(1)
        while caller is not None:
            module = str(caller.f_globals.get("__name__"))
            if module.startswith(DATA):
                return True
            if not module.startswith(("gradcli.", "torch.")):  # it may be `__getitem__` of a data set
                caller = caller.f_back
                return caller is not None and str(caller.f_globals.get("__name__")).startswith(DATA)
            caller = caller.f_back
        return False

    def versions_of(self, args: Any, kwargs: Any) -> list[tuple[Any, int, int]]:
        """The tensors that a function may change: each with its number and version."""
        tensors = [x for x in flat([*args[:1], kwargs.get("out", ())]) if self.tensors.is_tensor(x)]
        return [(x, self.watch.mark(x), x._version) for x in tensors if not x.is_inference()]

    def in_step(self, depth: int) -> bool:
        """Whether an optimizer calls: what it does to its parameters is one event, `zero_grad` in a closure is not."""
        caller = sys._getframe(depth)
        module = str(caller.f_globals.get("__name__"))
        return self.stepping > 0 and module.startswith("torch.optim") and caller.f_code.co_name != "zero_grad"

    def grad_read(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Someone looks at `.grad`."""
        result = self.plain(func, args, kwargs)
        file = sys._getframe(3).f_code.co_filename
        if self.sampled and self.watch.owner[file] == OWN and self.tensors.is_tensor(args[0]):
            self.guarded(".grad", self.watch.looked, args[0])
        return result

    def ruled(self, cls: Any, args: Sequence[Any], result: Any) -> None:
        """A Function was applied."""
        if not self.sampled or self.outside():
            return
        operands = [x for x in flat(args) if self.tensors.is_tensor(x)]
        results = [x for x in flat([result]) if self.tensors.is_tensor(x)]
        for x in results:
            if x.is_leaf and x.requires_grad:
                continue
            self.watch.by_function(f"{cls.__name__}Backward", operands, x)
            if x.grad_fn is not None:
                backward = cls.vjp if cls.backward is self.torch.autograd.Function.backward else cls.backward
                self.watch.ruled(x, cls, backward, getattr(x.grad_fn, "saved_tensors", ()), args, results)

    # --- backwards ------------------------------------------------------------------------------------------------

    def backward(self, outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Stands for PyTorch's engine: hooks on every node, then a backward."""
        self.resume.close()
        roots = [x for x in outputs if self.tensors.is_tensor(x)]
        if not self.sampled or len(roots) < len(outputs) or self.outside(args[0]):
            return self._engine(outputs, *args, **kwargs)
        _, retain, create, inputs = args[:4]
        refused = next((x for x in roots if not x.requires_grad), None)
        if refused is not None:
            self.guarded("a backward", self.watch.refused, refused)
            return self._engine(outputs, *args, **kwargs)
        begun = len(self.watch.open)
        handles = self.guarded("a backward", self.begun, roots, inputs, retain, create, kwargs)
        ended, off = False, self.off
        with ExitStack() as stack:
            for handle in handles or ():
                stack.callback(handle.remove)
            try:
                if off:  # what hooks compute is seen
                    stack.enter_context(self.mode)
                self.off = False
                result = self._engine(outputs, *args, **kwargs)
                ended = True
                if create:
                    self.guarded("a gradient", self.gave, result)
            except RuntimeError as problem:
                self.guarded("a backward", self.stopped, str(problem), roots)
                raise
            finally:
                self.off = off
                while len(self.watch.open) > begun:
                    with self.unseen():
                        self.watch.swept(ended)
        if not create and not kwargs.get("accumulate_grad"):
            self.guarded("a gradient", self.returned, result, roots)
        if self.clock is None and len(self.watch.sweeps) > 1:
            self.iteration += 1
        return result

    def gave(self, result: Any) -> None:
        """Record the nodes that a backward made, as its own."""
        for x in result if isinstance(result, tuple) else ():
            if self.tensors.is_tensor(x):
                self.watch.mark(x)

    def returned(self, result: Any, roots: Sequence[Any]) -> None:
        """Record the gradients that autograd.grad() gave, which have no history."""
        for x in result if isinstance(result, tuple) else ():
            if self.tensors.is_tensor(x):
                self.watch.cut("torch.autograd.grad()", roots, x)

    def begun(self, roots: Sequence[Any], inputs: Any, retain: Any, create: Any, options: dict[str, Any]) -> list[Any]:
        """Record that a backward begins, and hang hooks on its nodes, whose handles are given back."""
        targets = [x for x in inputs if self.tensors.is_tensor(x)] if inputs else None
        for x in (targets or ()) if options.get("accumulate_grad") else ():
            self.watch.keep(x)
        fills = bool(options.get("accumulate_grad")) and targets is None
        self.watch.sweep(roots, targets, bool(retain), bool(create), fills)
        return list(map(self.hooked, self.nodes(roots)))

    def nodes(self, roots: Sequence[Any]) -> list[Any]:
        """Every node that a backward may visit."""
        reached: dict[int, Any] = {}
        pending = [self.root(x) for x in roots]
        while pending:
            node = pending.pop()
            number = self.tensors.number(node)
            if number not in reached:
                reached[number] = node
                pending += [below for below, _ in node.next_functions if below is not None]
        return list(reached.values())

    def root(self, tensor: Any) -> Any:
        """Where a backward begins: the node of a tensor, or what accumulates into a leaf."""
        return self.torch.autograd.graph.get_gradient_edge(tensor).node

    def hooked(self, node: Any) -> Any:
        """A hook on a node, as its handle."""
        if hasattr(node, "variable"):
            return node.register_hook(partial(self.arrived, node.variable))
        to: list[tuple[str, int] | None] = []
        for below, _ in node.next_functions:
            if below is None:
                to.append(None)
            elif hasattr(below, "variable"):
                to.append(("leaf", self.watch.mark(below.variable)))
            else:
                to.append(("node", self.tensors.number(below)))
        number, line = self.tensors.number(node), self.watch.line_of(node)
        return node.register_hook(partial(self.ran, number, name_of(node), line, to))

    def ran(self, number: int, name: str, line: SourceLine | None, to: list[Any], sent: Any, arrived: Any) -> None:
        """A node ran in a backward."""
        results = [
            (where, value)
            for where, value in zip(to, sent, strict=False)
            if where is not None and (value is None or self.tensors.is_tensor(value))
        ]
        operands = [x if self.tensors.is_tensor(x) else None for x in arrived]
        kept = self.watch.kept_at(number)
        if kept is not None and operands and operands[0] is not None:
            self.guarded("a gradient", self.watch.accumulated, kept, operands[0])
        self.guarded(name, self.watch.step, number, name, line, operands, results)

    def arrived(self, leaf: Any, sent: Any, arrived: Any) -> None:
        """A gradient was added into the `.grad` of a leaf."""
        if self.tensors.is_tensor(arrived[0]):
            self.guarded("a gradient", self.watch.accumulated, leaf, arrived[0])

    def stopped(self, problem: str, roots: Sequence[Any]) -> None:
        """A backward broke off: which node had lost what it saved, and by whom."""
        for why, said in (("changed", "modified by an inplace operation"), ("freed", "a second time")):
            if said not in problem:
                continue
            ran = self.watch.open[-1].seqs
            nodes = self.nodes(roots)
            waiting = [node for node in nodes if self.tensors.number(node) not in ran and not hasattr(node, "variable")]
            waiting.sort(key=lambda node: -node._sequence_nr())
            node = next((node for node in waiting if said in lost(node)), None)
            if node is not None:
                number = self.tensors.number(node)
                changed = self.writer(node, number) if why == "changed" else None
                self.watch.broken(why, name_of(node), number, self.watch.line_of(node), changed)

    def writer(self, node: Any, number: int) -> SourceLine | None:
        """The line that changed what a node had saved, which has a newer version than the node expects."""
        created = min(self.watch.made.get(number, {0: -1}).values())
        for name in saved_names(node.__class__):
            try:
                getattr(node, name, None)
            except RuntimeError as problem:
                expected = WRONG_VERSION.search(str(problem))
                for raw in flat([getattr(node, f"_raw{name}" if name[0] == "_" else "_raw_saved_tensors", None)]):
                    value: Any = getattr(raw, "data", None)
                    if expected and self.tensors.is_tensor(value) and value._version == int(expected[1]):
                        return self.watch.writer(self.tensors.memory(value), created, int(expected[2]))
        return None

    # --- optimizers -----------------------------------------------------------------------------------------------

    def step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer begins a step."""
        self.stepping += 1
        self.clock = self.clock or optimizer
        if plain_step(optimizer, args, kwargs):
            self.resume = stack = ExitStack()
            stack.enter_context(self.unseen())
        if self.sampled:
            self.guarded("a step", self.beginning, optimizer)

    def beginning(self, optimizer: Any) -> None:
        """Record what an optimizer moves before it does."""
        self.watch.stepping(optimizer)
        self.versions[id(optimizer)] = [x._version for x in parameters_of(optimizer)]

    def step_ended(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer has made a step."""
        self.resume.close()
        self.stepping -= 1
        self.guarded("a step", self.stepped, optimizer)
        if optimizer is self.clock:
            self.iteration += 1

    def stepped(self, optimizer: Any) -> None:
        """Record a step."""
        versions = self.versions.pop(id(optimizer), None)
        if versions is not None:
            pairs = zip(parameters_of(optimizer), versions, strict=False)
            self.watch.stepped(optimizer, [x for x, version in pairs if x._version != version])


class Counted:
    """A hook on a layer that notes when it is called."""

    def __init__(self, hook: Any, calls: list[int]) -> None:
        self.hook, self.calls = hook, calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(len(self.calls))
        return self.hook(*args, **kwargs)

    def __reduce__(self) -> Any:
        return itself, (self.hook,)


def itself(hook: Any) -> Any:
    """A hook without its count, in a copy of a layer."""
    return hook


def decorated(frame: Any) -> Any:
    """The function that a frame of PyTorch's decorators is about to call; None for other frames."""
    return frame.f_locals.get("func") if frame.f_globals.get("__name__") == "torch.utils._contextlib" else None


def parameters_of(optimizer: Any) -> list[Any]:
    """What an optimizer moves."""
    return [x for group in optimizer.param_groups for x in group["params"]]


def plain_step(optimizer: Any, args: Any, kwargs: Any) -> bool:
    """Whether a step runs nothing but PyTorch's own code on plain tensors: no closure, no hooks."""
    hooks = (*optimizer._optimizer_step_pre_hooks, *optimizer._optimizer_step_post_hooks)
    return (
        type(optimizer).__module__.startswith("torch.optim")
        and len(args) < 2
        and not kwargs
        and not hooks
        and all(type(x).__name__ in ("Tensor", "Parameter") for x in parameters_of(optimizer))
    )


def lost(node: Any) -> str:
    """What a node says where it cannot give what it saved; nothing where it can."""
    for name in saved_names(node.__class__):
        try:
            getattr(node, name, None)
        except RuntimeError as problem:
            return str(problem)
    return ""


def saved(node: Any) -> Iterator[Any]:
    """What a node has saved and not lost."""
    for name in saved_names(node.__class__):
        with suppress(RuntimeError):
            yield from flat([getattr(node, name, None)])


@cache
def saved_names(kind: Any) -> list[str]:
    """The attributes in which nodes of a class give what they saved."""
    return [name for name in dir(kind) if name.startswith("_saved_")] or ["saved_tensors"]


@cache
def changing(name: str) -> bool:
    """Whether a function of this name changes its first operand."""
    return (name.endswith("_") and not name.endswith("__")) or name in IN_PLACE


@cache
def title(name: str) -> str:
    """What the node of a function would be called: `log_softmax` makes a LogSoftmaxBackward0."""
    return "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward0"


@contextmanager
def default_dtype(torch: Any, name: str) -> Iterator[None]:
    """While it lasts, PyTorch's default format of floats."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, name))
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def installed() -> Any:
    """The installed PyTorch, as a module. Raises GradcliError (GC713) where there is none."""
    try:
        return import_module("torch")
    except ImportError:
        raise error("GC713", "PyTorch is not installed", help="pip install 'gradcli[peers]'") from None

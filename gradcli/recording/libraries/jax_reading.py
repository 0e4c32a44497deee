"""Reads one call of a function whose gradient JAX has taken: its operations on numbers, then their derivatives back.

The operations come from the jaxpr of the function, with what it calls written out and the branches and iterations that
the numbers take. A function that looks at numbers (`if x > 0`) has no jaxpr: it is followed as it runs.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.recording.graphs.jaxpr_graph import CALLED, CALLS
from gradcli.recording.libraries.jax_tensors import KINDS
from gradcli.recording.runs.handwritten_rules import deviation
from gradcli.recording.runs.source_lines import OWN, SourceLine, placed
from gradcli.recording.runs.tensors import BackwardRecord, Reached, SeenTensor, WrongRule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.recording.libraries.jax_tensors import JaxRecord

REMARKED = ("Relu", "Softmax", "LogSoftmax")
SOFTMAX = ("softmax", "_softmax", "log_softmax")
NUMBERS = {
    "_item": "item()",
    "item": "item()",
    "tolist": "tolist()",
    "__int__": "int()",
    "__float__": "float()",
    "__index__": "int()",
}
WHOLE = ("log_softmax", "logsumexp")  # functions of JAX that stand for one operation
CUSTOM = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
MOST = 20_000  # operations of one call that are read


class TrackedValue:
    """A value of a function that is read: its numbers, its number in the record, whether a gradient passes it."""

    __slots__ = ("active", "array", "mark", "target")

    def __init__(self, array: Any, mark: int, active: bool, target: tuple[str, int]) -> None:
        self.array, self.mark, self.active, self.target = array, mark, active, target


class DerivedOperation(NamedTuple):
    """An operation that a gradient passes, and its derivative; of a rule of the file, also that of its own forward."""

    seq: int
    kind: str
    name: str
    line: SourceLine | None
    inputs: list[TrackedValue]
    results: list[TrackedValue]
    pull: Callable[[list[Any]], Sequence[Any]]
    own: Callable[[], tuple[list[Any], Any]] | None


class JaxLine(NamedTuple):
    """The line of the file at which an operation stands, and the functions of JAX that it called there."""

    line: SourceLine | None
    via: frozenset[str] = frozenset()


class GradientCall(NamedTuple):
    """A gradient that was taken: of which function, at which arguments, with respect to which of them."""

    fun: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    numbers: tuple[int, ...]
    aux: bool
    gradients: Any  # what JAX has given
    start: Any = None  # what it began with; None for 1


class CallReader:
    """Reads one call: forward, then backward."""

    def __init__(self, watch: JaxRecord, line: SourceLine | None) -> None:
        self.watch, self.jax, self.line = watch, watch.jax, line
        self.tree, self.numpy = watch.jax.tree_util, watch.jax.numpy
        self.infos = import_module("jax._src.source_info_util")
        self.vjp = import_module("jax._src.api").vjp  # not the one that is watched
        self.ran: list[DerivedOperation] = []
        self.places: dict[Any, tuple[Any, JaxLine]] = {}  # by the identity of a traceback, which is held
        self.shell: tuple[str, JaxLine] | None = None  # a function of JAX that is read: its file, where it was called
        self.outer = JaxLine(line)
        self.literals: list[list[Any]] = []
        self.count = 0

    # --- the call ---------------------------------------------------------------------------------------------------

    def read(self, call: GradientCall) -> None:
        """Read a call, and note it as a backward of the record."""
        watch, tree = self.watch, self.tree
        numbers = [number % len(call.args) for number in call.numbers]
        names = argument_names(call.fun, len(call.args))
        watch.here = self.line
        shapes, leaves, called = [], list[Any](), list[str]()
        for number in numbers:
            paths, shape = tree.tree_flatten_with_path(call.args[number])
            shapes.append((number, shape, len(paths)))
            leaves += [self.numpy.asarray(leaf) for _, leaf in paths]
            called += [f"{names[number]}{tree.keystr(path)}" for path, _ in paths]
        others = [(names[at], arg) for at, arg in enumerate(call.args) if at not in numbers]
        for name, arg in [*others, *call.kwargs.items()]:
            self.name_arguments(arg, name)

        def of_leaves(*flat: Any) -> Any:
            full, rest = list(call.args), list(flat)
            for number, shape, count in shapes:
                full[number], rest = tree.tree_unflatten(shape, rest[:count]), rest[count:]
            result = call.fun(*full, **call.kwargs)
            return result[0] if call.aux else result

        inputs = [self.leaf(leaf) for leaf in leaves]
        roots = [self.value(x) for x in self.forward(of_leaves, inputs)]
        started = [(x.mark, x.target[1], watch.tensors.size(x.array).finite) for x in roots]
        targets = tuple([x.mark for x in inputs])
        sweep = BackwardRecord(watch.tick(), self.line, started, False, False, True, targets, False)
        watch.sweeps.append(sweep)
        watch.open.append(sweep)
        starts = [self.numpy.ones_like(x.array) for x in roots]
        starts = starts if call.start is None else tree.tree_leaves(call.start)
        arrived = self.backward(dict(zip([x.mark for x in roots if x.active], starts, strict=False)))
        sweep.ended = True
        self.finish(sweep, list(zip(inputs, called, tree.tree_leaves(call.gradients), strict=True)), arrived)

    def leaf(self, array: Any) -> TrackedValue:
        """What a gradient is wanted for."""
        entry = self.watch.entered(array, "leaf", "", ())
        entry.requires = self.is_float(array)
        return TrackedValue(array, entry.mark, entry.requires, ("leaf", entry.mark))

    def is_float(self, array: Any) -> bool:
        """Whether a gradient can pass an array."""
        return bool(self.numpy.issubdtype(array.dtype, np.inexact))

    def name_arguments(self, arg: Any, name: str) -> None:
        """Name arrays that are given, and take no part in the derivative, by their arguments."""
        for path, leaf in self.tree.tree_flatten_with_path(arg)[0]:
            if self.watch.tensors.is_tensor(leaf) and self.watch.mark(leaf) not in self.watch.subjects:
                self.watch.named(self.watch.mark(leaf), leaf, f"{name}{self.tree.keystr(path)}", "")

    def finish(
        self, sweep: BackwardRecord, leaves: Sequence[tuple[TrackedValue, str, Any]], arrived: dict[int, Any]
    ) -> None:
        """Note the gradients that JAX has given, and where what was read differs from them."""
        watch, tensors, zero = self.watch, self.watch.tensors, []
        for value, name, gradient in leaves:
            if not value.active:
                continue
            size, mark = tensors.size(gradient), value.mark
            if mark in arrived:
                kept, probe = tensors.kept(gradient, watch.extents), tensors.probe(gradient)
                sweep.reached.append(Reached(mark, 1, size, kept, None, probe, None))
            if not alike(tensors.array(arrived.get(mark, np.zeros(()))), tensors.array(gradient)):
                watch.note(f"the gradient of {name} was not reproduced, and may have another reason")
            shape, dtype = np.shape(gradient), str(value.array.dtype)
            watch.subjects[mark] = SeenTensor(name, "", True, True, False, True, dtype, "", shape, True, size)
            zero.append(watch.subjects[mark].grad == "zero")
        if zero and all(zero):
            marks = [value.mark for value, _, _ in leaves if value.active]
            for mark in [mark for mark in marks if mark in arrived] or marks:
                watch.missed(mark)

    # --- forward ------------------------------------------------------------------------------------------------------

    def forward(self, fun: Callable[..., Any], inputs: list[TrackedValue]) -> list[Any]:
        """The results of a function on values."""
        try:
            closed = self.jax.make_jaxpr(fun)(*[x.array for x in inputs])
        except Exception:  # such as a branch of Python
            return self.followed(fun, inputs)
        consts = [self.value(x) if np.ndim(x) else x for x in closed.consts]
        return self.interpreted(closed.jaxpr, consts, inputs)

    def followed(self, fun: Callable[..., Any], inputs: list[TrackedValue]) -> list[Any]:
        """The results of a function that looks at numbers."""
        core = import_module("jax._src.core")
        with core.take_current_trace() as parent:
            trace, tracer = follower(core, self, parent)
            with core.set_current_trace(trace):
                result = fun(*[tracer(trace, x) for x in inputs])
        return [x.value if isinstance(x, tracer) else x for x in self.tree.tree_leaves(result)]

    def value(self, x: Any) -> TrackedValue:
        """What is known of an operand that no gradient passes."""
        if isinstance(x, TrackedValue):
            return x
        array = x if self.watch.tensors.is_tensor(x) else self.numpy.asarray(x)
        return TrackedValue(array, self.watch.mark(array), False, ("leaf", -1))

    def looked_at(self, x: TrackedValue) -> None:
        """Note that a value became a number of Python, unless only a branch looked at it."""
        place = self.place(self.infos.current().traceback)
        how = next((name for name in NUMBERS if name in place.via), None)
        if how is not None:
            self.watch.here = place.line
            entry = self.watch.entered(None, "cut", NUMBERS[how], (x.mark,))
            entry.wanted = True

    def met(self, x: Any) -> Any:
        """An operand of a function that is followed: an array that it did not make is entered."""
        literal = any(x is each for results in self.literals for each in results)
        return x if literal or not self.watch.tensors.is_tensor(x) else self.value(x)

    def interpreted(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr."""
        env: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True))

        def read(var: Any) -> Any:
            return var.val if hasattr(var, "val") else env[var]

        for eqn in jaxpr.eqns:
            place = self.place(eqn.source_info.traceback)
            env.update(zip(eqn.outvars, self.equation(eqn, list(map(read, eqn.invars)), place), strict=True))
        return list(map(read, jaxpr.outvars))

    def equation(self, eqn: Any, xs: list[Any], place: JaxLine) -> list[Any]:
        """The results of one operation, or of what it calls."""
        name, params = eqn.primitive.name, eqn.params
        inner = next((params[key] for key in CALLS if key in params), None)
        outer, self.outer = self.outer, place
        try:
            if name in CALLED and name not in CUSTOM and inner is not None and params.get("name") not in WHOLE:
                return self.called(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), xs, place)
            if name == "cond":
                branch = params["branches"][int(array_of(xs[0]))]
                return self.interpreted(branch.jaxpr, branch.consts, xs[1:])
            if name == "scan" and params["length"] * len(params["jaxpr"].jaxpr.eqns) + self.count < MOST:
                return self.iterations(params, xs)
        finally:
            self.outer = outer
        if name in CUSTOM and inner is not None:
            own = import_module("jax.extend.core").jaxpr_as_fun(inner) if name != CUSTOM[0] else None
            title = getattr(getattr(inner.jaxpr, "debug_info", None), "func_name", name).strip("_")
            return self.operation(title, bound(eqn), xs, place, own, camel(title))
        return self.operation(params["name"] if params.get("name") in WHOLE else name, bound(eqn), xs, place)

    def called(self, jaxpr: Any, consts: Sequence[Any], xs: list[Any], place: JaxLine) -> list[Any]:
        """The results of a function that was compiled.

        JAX compiles its own functions once: their operations carry the line that called them first.
        """
        title = str(getattr(getattr(jaxpr, "debug_info", None), "func_src_info", "") or "")
        file, shell = title.partition(" at ")[2].rpartition(":")[0], self.shell
        if file and self.watch.owner[file] != OWN:
            self.shell = file, JaxLine(place.line, place.via | {title.partition(" ")[0]})
        try:
            return self.interpreted(jaxpr, consts, xs)
        finally:
            self.shell = shell

    def iterations(self, params: Any, xs: list[Any]) -> list[Any]:
        """The results of a scan, iteration by iteration."""
        jaxpr, first = params["jaxpr"], params["num_consts"]
        last = first + params["num_carry"]
        carry, stacks = xs[first:last], list[list[Any]]()
        order = range(params["length"])
        for iteration in reversed(order) if params["reverse"] else order:
            now = [
                self.operation("dynamic_slice", lambda x, at=iteration: [x[at]], [x], self.outer)[0] for x in xs[last:]
            ]
            results = self.interpreted(jaxpr.jaxpr, jaxpr.consts, [*xs[:first], *carry, *now])
            carry, rows = results[: len(carry)], results[len(carry) :]
            stacks = [[row] for row in rows] if not stacks else [[*s, row] for s, row in zip(stacks, rows, strict=True)]
        ordered = [stack[::-1] for stack in stacks] if params["reverse"] else stacks
        joined = [self.operation("concatenate", lambda *x: [self.numpy.stack(x)], s, self.outer)[0] for s in ordered]
        if not order:
            joined = [
                self.numpy.zeros(var.aval.shape[:0] + (0, *var.aval.shape)) for var in jaxpr.jaxpr.outvars[len(carry) :]
            ]
        return [*carry, *joined]

    def operation(
        self,
        name: str,
        fun: Callable[..., list[Any]],
        xs: list[Any],
        place: JaxLine,
        own: Callable[..., Any] | None = None,
        kind: str = "",
    ) -> list[Any]:
        """The results of an operation, entered into the record, with its derivative where a gradient passes it."""
        watch, tensors = self.watch, self.watch.tensors
        self.count += 1
        if self.count > MOST:
            raise ValueError(f"it has more than {MOST} operations")
        kind = kind or KINDS.get(name) or camel(name)
        watch.here = place.line
        values = [self.value(x) if tensors.mark(x) >= 0 else x for x in xs]
        if not any(isinstance(x, TrackedValue) for x in values):
            self.literals.append(fun(*xs))  # made of plain numbers
            return self.literals[-1]
        arrays = list(map(array_of, values))
        active = [at for at, x in enumerate(values) if isinstance(x, TrackedValue) and x.active]
        stops = name == "stop_gradient"
        pull = None
        if active and not stops:
            with suppress(Exception):  # no derivative, as of a while loop
                results, pull = self.derivative(fun, arrays, active)
        if pull is None:
            results = fun(*arrays)
        inputs, seq = tuple([x.mark for x in values if isinstance(x, TrackedValue)]), watch.tick()
        outputs = list[TrackedValue]()
        asked = stops and place.line is not None and "stop_gradient" in place.line.text
        for at, array in enumerate(results):
            passes = pull is not None and self.is_float(array)
            drawn = "random" in place.via and bool(active) and not passes
            role, title = ("cut", "stop_gradient()") if asked else ("operation", "Multinomial" if drawn else kind)
            entry = watch.entered(array, role, title, inputs)
            entry.requires, entry.wanted = passes, bool(active) and (asked or not stops)
            if passes:
                entry.seq = seq
                watch.made.setdefault(seq, {})[at] = entry.mark
            if not entry.finite or kind in REMARKED:
                softmax = kind == "Sub" and not place.via.isdisjoint(SOFTMAX)
                entry.remark = watch.remarks.on(entry, "Softmax" if softmax else kind, arrays, array)
            outputs.append(TrackedValue(array, entry.mark, passes, ("node", seq)))
        if pull is not None:
            own_rule = None if own is None else partial(self.derivative, own, arrays, active)
            self.ran.append(
                DerivedOperation(seq, kind, name, place.line, [values[at] for at in active], outputs, pull, own_rule)
            )
        return list(outputs)

    def derivative(self, fun: Callable[..., Any], arrays: list[Any], active: list[int]) -> tuple[list[Any], Any]:
        """The results of a function, and what sends gradients of them to some of its operands."""

        def of_active(*xs: Any) -> list[Any]:
            full = list(arrays)
            for at, x in zip(active, xs, strict=True):
                full[at] = x
            return list(fun(*full))

        pair: tuple[list[Any], Any] = self.vjp(of_active, *[arrays[at] for at in active])
        return pair

    # --- backward -----------------------------------------------------------------------------------------------------

    def backward(self, arrived: dict[int, Any]) -> dict[int, Any]:
        """What comes to each value."""
        for ran in reversed(self.ran):
            came = [arrived.get(x.mark) for x in ran.results]
            if all(ct is None for ct in came):
                continue
            full = [self.nothing(x.array) if ct is None else ct for x, ct in zip(ran.results, came, strict=True)]
            sent = ran.pull(full)
            watched = [(x.target, ct) for x, ct in zip(ran.inputs, sent, strict=True)]
            self.watch.step(ran.seq, ran.kind, ran.line, [ct for ct in came if ct is not None], watched)
            if ran.own is not None:
                with suppress(Exception):  # a rule may stand for what has no derivative of its own
                    self.judge(ran, sent, ran.own()[1](full))
            for x, ct in zip(ran.inputs, sent, strict=True):
                arrived[x.mark] = ct if x.mark not in arrived else arrived[x.mark] + ct
        return arrived

    def nothing(self, array: Any) -> Any:
        """A gradient of zero for a result."""
        if self.is_float(array):
            return self.numpy.zeros_like(array)
        return np.zeros(np.shape(array), self.jax.dtypes.float0)

    def judge(self, ran: DerivedOperation, sent: Sequence[Any], own: Sequence[Any]) -> None:
        """Compare a rule of the file with the derivative of its own forward, unless it differs on purpose.

        On purpose: the function is the identity (a gradient is reversed, clipped or scaled), or has no slope of its
        own (a straight-through estimator), or entries of the gradient are left out (a guided one).
        """
        tensors = self.watch.tensors
        for at, (x, theirs, ours) in enumerate(
            zip(ran.inputs, map(tensors.array, sent), map(tensors.array, own), strict=True)
        ):
            results = [tensors.array(r.array) for r in ran.results]
            same = any(r.shape == np.shape(x.array) and (r == tensors.array(x.array)).all() for r in results)
            wrong = None if same else deviation(theirs, ours)
            if wrong is not None:
                self.watch.wrong_rules.append(WrongRule(ran.name, ran.line, at, wrong.factor))

    # --- places -------------------------------------------------------------------------------------------------------

    def place(self, traceback: Any) -> JaxLine:
        """Where an operation stands."""
        key = id(traceback), self.shell
        known = self.places.get(key)
        if known is None:
            known = self.places[key] = traceback, self.place_of(traceback)
        return known[1]

    def place_of(self, traceback: Any) -> JaxLine:
        """The innermost line of the file in a traceback of JAX, and what of JAX is below it."""
        codes = traceback.raw_frames()[0] if traceback is not None else []
        at = next((at for at, code in enumerate(codes) if self.watch.owner[code.co_filename] == OWN), None)
        below = codes[:at]
        via = {code.co_name for code in below}
        via |= {"random" for code in below if "/_src/random" in code.co_filename.replace("\\", "/")}
        if at is None or (self.shell is not None and all(code.co_filename != self.shell[0] for code in codes[at:])):
            outer = self.outer if self.shell is None else self.shell[1]
            return JaxLine(outer.line, outer.via | via)
        frames = self.infos.user_frames(traceback)
        frame = next(frame for frame in frames if frame.file_name == codes[at].co_filename)
        line = placed(frame.file_name, frame.start_line, frame.end_line, frame.start_column, frame.end_column)
        return JaxLine(line, frozenset(via))


class Equation(NamedTuple):
    """An operation outside of a jaxpr."""

    primitive: Any
    params: dict[str, Any]


def follower(core: Any, reading: CallReader, parent: Any) -> tuple[Any, Any]:
    """A trace of JAX whose values have numbers, and the class of these values."""

    class Follower(core.Trace):  # type: ignore[misc]
        """Hands each operation to the reading."""

        def given(self, results: list[Any]) -> list[Any]:
            return [Followed(self, x) if isinstance(x, TrackedValue) and x.active else array_of(x) for x in results]

        def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
            place = reading.place(reading.infos.current().traceback)
            with core.set_current_trace(parent):
                xs = [reading.met(value_of(x)) for x in tracers]
                results = self.given(reading.equation(Equation(primitive, params), xs, place))
            return results if primitive.multiple_results else results[0]

        def custom(self, primitive: Any, tracers: Any, params: dict[str, Any]) -> list[Any]:
            xs = list(map(value_of, tracers))

            def called(*arrays: Any) -> Any:
                avals = tuple(map(core.typeof, arrays))
                return primitive.bind_with_trace(core.trace_ctx.trace, arrays, avals, params)

            with core.set_current_trace(parent):
                closed = reading.jax.make_jaxpr(called)(*map(array_of, xs))
                return self.given(reading.interpreted(closed.jaxpr, closed.consts, xs))

        def process_custom_jvp_call(self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **params: Any) -> Any:
            return self.custom(primitive, tracers, {"subfuns": (fun, jvp), **params})

        def process_custom_vjp_call(
            self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **params: Any
        ) -> Any:
            return self.custom(primitive, tracers, {"subfuns": (fun, fwd, bwd), **params})

    class Followed(core.Tracer):  # type: ignore[misc]
        """A value that is followed."""

        def __init__(self, trace: Any, value: TrackedValue) -> None:
            super().__init__(trace, core.typeof(value.array))
            self.value = value

        def full_lower(self) -> Any:
            return self

        def to_concrete_value(self) -> Any:
            reading.looked_at(self.value)
            return core.to_concrete_value(self.value.array)

    def value_of(x: Any) -> Any:
        return x.value if isinstance(x, Followed) else x

    return Follower(), Followed


def camel(name: str) -> str:
    """`ArgMax` of `arg_max`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def array_of(x: Any) -> Any:
    """The numbers of a value, or of an operand that has no more than these."""
    return x.array if isinstance(x, TrackedValue) else x


def bound(eqn: Any) -> Callable[..., list[Any]]:
    """An operation as a function."""

    def called(*xs: Any) -> list[Any]:
        params = eqn.primitive.get_bind_params(eqn.params)
        functions, params = params if isinstance(params, tuple) else ((), params)  # before 0.9
        results = eqn.primitive.bind(*functions, *xs, **params)
        return list(results) if eqn.primitive.multiple_results else [results]

    return called


def argument_names(fun: Any, count: int) -> list[str]:
    """What a function calls its arguments."""
    try:
        parameters = list(signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return [*names, *[f"argument {at}" for at in range(len(names), count)]]


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two gradients agree, up to rounding."""
    ours = np.broadcast_to(ours, theirs.shape).astype(complex if theirs.dtype.kind == "c" else float)
    scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
    return np.allclose(ours, theirs, rtol=1e-2, atol=1e-4 * scale + 1e-30, equal_nan=True)

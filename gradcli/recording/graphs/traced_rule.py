"""Forward and backward of a function of NumPy, PyTorch or JAX as one program of ours, for the oracles to judge.

A `torch.autograd.Function` is traced at two points, with other cotangents: graphs that differ hold something that only
looks constant, such as what NumPy computed. Everything is recorded in float64, so a verdict is about the formulas, for
real numbers, at the shapes of the point. Nothing here imports a framework: its caller has.

A recording has one use only: all inputs, all results. A backward sees which inputs require a gradient, and which
results were used (None arrives for the others, unless they are materialized); the forward of a `jax.custom_vjp` may
return something else than the function itself. So other uses are compared with the recorded one, at the point.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.base.diagnostics import GradcliError
from gradcli.graph.node import DATA, Builder, Node
from gradcli.graph.program import Leaf, Program, cotangent_name
from gradcli.primitives import catalogue, functions
from gradcli.recording.calls.box import GRADIENT, JACOBIAN, OWN, PAIR, VJP
from gradcli.recording.calls.call_arguments import DerivativeForm
from gradcli.recording.calls.failures import Failed, describe
from gradcli.recording.calls.gradient_libraries import (
    EAGER,
    JAX,
    NUMPY,
    TORCH,
    array_of,
    is_a,
    is_function_class,
    is_tensor,
    kind_of,
    library_at,
    listed,
    read_by,
    sent_back,
)
from gradcli.recording.graphs import aten_graph, jaxpr_graph, numpy_graph
from gradcli.recording.graphs.operations import Opaque, constant, shaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gradcli.recording.calls.box import BlackBox

    Floats = NDArray[np.floating[Any]]
    Gradients = dict[str, Floats]

PARTS = ("__wrapped__", "func", "forward", "backward", "fwd", "bwd")  # of a rule: the functions of its author
MOST_NAMED = 5_000  # entries of an array that may have a name: of larger ones no program is recorded


class TracedRule(NamedTuple):
    """A function and its backward as nodes: results, which of them a cotangent arrives at, what is sent back.

    `formats` are those of fewer digits than float64 that the function computes in.
    """

    program: Program
    outputs: list[Node]
    cotangents: dict[int, Node]
    gradients: dict[str, Node]
    formats: list[str]


def is_rule(f: Any) -> bool:
    """Whether f is a rule itself, a Function or a function with a custom derivative, or one that `wraps` it."""
    while kind_of(f) is None and hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    return is_function_class(getattr(f, "__self__", f)) or (kind_of(f) == JAX and hasattr(f, "nondiff_argnums"))


def traced_rule(box: BlackBox, seed: int) -> TracedRule | None:
    """The program of a box's function and of its backward; None where there is nothing to trace.

    Raises Opaque where it has something that no program of ours stands for.
    """
    read: Any = {TORCH: of_torch, JAX: of_jax, NUMPY: of_numpy}.get(box.library.name)
    readable = box.kind != OWN if read is of_numpy else box.kind in (OWN, GRADIENT)
    if read is None or not np.isfinite(box.x).all():
        return None
    if not readable:
        raise Opaque("with jac=, vjp= or the pair (value, gradient) only functions of NumPy are recorded")
    builder = Builder(catalogue(), entries=2**40)
    leaves = {name: builder.leaf(name, box.shape_of(name)) for name in box.names}
    for name, array in named_arrays(box):
        node = constant(builder, array)
        if node.primitive is DATA:
            builder.data[node.params["digest"]].name = name
    try:
        with box.listener.hearing("f", False):
            outputs, cotangents, gradients, formats = read(box, builder, list(leaves.values()), seed)
    except Failed as problem:
        raise Opaque(problem.reason) from None
    except GradcliError as problem:
        raise Opaque(problem.diagnostics[0].message) from None
    except Exception as problem:  # an operation may have other parameters in another version of its framework
        if os.environ.get("GRADCLI_DEBUG"):
            raise
        raise Opaque(f"its graph cannot be read ({type(problem).__name__})") from None
    values = {name: box.x[box.slices[name]].reshape(box.shape_of(name)) for name in box.names}
    inputs = {name: Leaf(name, node, values[name]) for name, node in leaves.items()}
    for node in cotangents.values():
        name = node.params["name"]
        inputs[name] = Leaf(name, node, np.zeros(node.type.shape))
    return TracedRule(Program(builder, inputs, outputs), outputs, cotangents, gradients, sorted({*formats}))


def named_arrays(box: BlackBox) -> Iterator[tuple[str, Any]]:
    """The arrays that a function and its derivative read, by the names that their code has for them.

    They are other arguments, attributes of an object whose methods these are, globals and closure cells.
    """
    taken = {*box.names, *functions()}
    values: dict[str, Any] = {arg.name: arg.value for arg in box.arguments}
    owner = getattr(box.f, "__self__", None)
    inside = [getattr(rule, name, None) for rule in (box.f, owner) for name in PARTS]
    pending, seen = [box.f, box.derivative, *inside], set[int]()
    home = root_of(next((function for function in pending if hasattr(function, "__code__")), None))
    while pending:
        function = pending.pop(0)
        seen.add(id(function))
        for name, value in read_by(function):
            values.setdefault(name, value)
            if is_a(value, FunctionType) and id(value) not in seen and root_of(value) == home:
                pending.append(value)
    for name, value in {**getattr(owner, "__dict__", {}), **values}.items():
        array = numbers_in(value) if name.isidentifier() and name not in taken else None
        if array is not None and array.dtype.kind in "fiub" and 1 < array.size <= MOST_NAMED:
            yield name, array.astype(np.float64) if array.dtype.kind == "b" else array


def numbers_in(value: Any) -> NDArray[Any] | None:
    """The entries of an array of NumPy or of a framework; None for anything else, of which nothing is asked."""
    if is_a(value, np.ndarray):
        return np.asarray(value)
    if library_at(type(value).__module__) is None or not hasattr(value, "__array__"):
        return None
    try:
        return np.asarray(array_of(value) if is_tensor(value) else value)
    except (TypeError, RuntimeError):  # such as a tensor without entries, or one that is sparse
        return None


def root_of(function: Any) -> str:
    """The package or the file that a function was written in."""
    return str(getattr(function, "__module__", None)).partition(".")[0]


def arrays_at(box: BlackBox, x: Floats) -> list[Floats]:
    """The arguments that are judged, as arrays of float64."""
    return [np.array(x[box.slices[name]].reshape(box.shape_of(name)), np.float64) for name in box.names]


def second_points(box: BlackBox, seed: int) -> list[Floats]:
    """A point far from the given one, with other signs, and one beside it."""
    rng = np.random.default_rng(seed)
    far = -0.7 * np.roll(box.x, 1) + 0.1 * rng.uniform(0.5, 1.5, box.x.size) * (1 + np.abs(box.x))
    return [far, box.x * (1 + 0.01 * rng.uniform(0.5, 1.5, box.x.size))]


def call(box: BlackBox, moved: Sequence[Any], function: Any = None) -> Any:
    """f, or another function, with tensors for the arguments that are judged, and the others as they are given."""
    arguments = box.arguments_at(box.x, False)
    if box.library.name == TORCH:  # of its own, into which it may write
        arguments = {name: value.clone() if is_tensor(value) else value for name, value in arguments.items()}
    return box.spread(function or box.f, {**arguments, **dict(zip(box.names, moved, strict=True))})


def written_gradients(box: BlackBox, moved: Sequence[Any]) -> list[Any]:
    """What the gradient that was written by hand returns, one tensor for each argument that is judged."""
    parts = listed(call(box, moved, box.derivative))
    if len(parts) == len(box.arguments):
        parts = [part for part, arg in zip(parts, box.arguments, strict=True) if arg.name in box.names]
    if len(parts) != len(box.names):
        raise Opaque("its gradient returns something other than a tensor for each argument")
    return parts


def sent_to(
    builder: Builder, taken: Sequence[str], shapes: Sequence[tuple[int, ...]], places: Sequence[int]
) -> dict[int, Node]:
    """A leaf for the cotangent of each result that one arrives at, with a name that no argument has."""
    name = cotangent_name(taken)
    names = [name] if len(places) == 1 else [f"{name}{k}" for k in range(len(places))]
    return {place: builder.leaf(name, shapes[place]) for place, name in zip(places, names, strict=True)}


# --- PyTorch ------------------------------------------------------------------------------------------------------


def of_torch(box: BlackBox, builder: Builder, leaves: list[Node], seed: int) -> tuple[Any, ...]:
    """Results, cotangents, gradients and formats of a function of PyTorch's tensors."""
    torch = sys.modules[TORCH]

    def tensors_of(value: Any) -> list[Any]:
        if not all(map(is_tensor, listed(value))):
            raise Opaque("it returns something other than tensors")
        return listed(value)

    def results_at(leaves: list[Any]) -> list[Any]:
        copies = [x.clone() if box.library.copies else x for x in leaves]
        return tensors_of(call(box, copies))

    def first_call(kind: Any) -> list[Any]:
        with torch.enable_grad():
            return results_at([x.clone().to(kind).requires_grad_() for x in example])

    example = [torch.from_numpy(array) for array in arrays_at(box, box.x)]
    kind = torch.float64
    try:
        first = first_call(kind)
    except RuntimeError:  # its own tensors are of float32, and do not go with others
        kind = torch.float32
        first = first_call(kind)
    places = [k for k, x in enumerate(first) if x.requires_grad and box.kind == OWN]
    shapes = [tuple(x.shape) for x in first]

    def both(*arguments: Any) -> Any:
        with torch.enable_grad():
            moved = [x.detach().requires_grad_() for x in arguments[len(places) :]]
            results = results_at(moved)
            if box.kind == GRADIENT:
                copies = [x.detach().clone() for x in moved]
                return [*(x.detach() for x in (*results, *tensors_of(written_gradients(box, copies))))]
            pairs = [(results[k], ct) for k, ct in zip(places, arguments, strict=False)]
            sent = sent_back(torch, pairs, moved) if pairs else []
        return [*(x.detach() for x in results), *sent]

    def cotangents(seed: int) -> list[Any]:
        draw = np.random.default_rng(seed)
        return [torch.from_numpy(draw.uniform(0.5, 1.5, shapes[k])).to(first[k].dtype) for k in places]

    sent = sent_to(builder, box.names, shapes, places)
    formats: list[str] = []

    def nodes_at(x: Floats, seed: int) -> list[Any]:
        tensors = [torch.from_numpy(array).to(kind) for array in arrays_at(box, x)]
        return aten_graph.recorded(builder, both, [*sent.values(), *leaves], [*cotangents(seed), *tensors], formats)

    nodes = nodes_at(box.x, seed)
    reason = "it cannot be traced at a second point"
    for x in second_points(box, seed):
        try:
            other = nodes_at(x, seed + 1)
        except Opaque as problem:
            reason = str(problem)
            continue
        if nodes != other:
            raise Opaque("traced at two points it gives two graphs: does it compute with NumPy, or keep state?")
        break
    else:
        raise Opaque(reason)
    outputs, back = nodes[: len(first)], nodes[len(first) :]
    if box.kind == GRADIENT:
        outputs = [shaped(outputs[0], ())]
    return outputs, sent, _gradients(box, builder, leaves, back), formats


# --- JAX ----------------------------------------------------------------------------------------------------------


def of_jax(box: BlackBox, builder: Builder, leaves: list[Node], seed: int) -> tuple[Any, ...]:
    """Results, cotangents, gradients and formats of a function of JAX's arrays."""
    jax = sys.modules[JAX]
    example = [jax.numpy.asarray(array) for array in arrays_at(box, box.x)]

    def forward(*moved: Any) -> Any:
        return jax.tree_util.tree_leaves(call(box, moved))

    graph = jaxpr_graph.traced(forward, example)
    kinds = [aval.dtype.kind for aval in graph.out_avals]
    shapes = [tuple(map(int, aval.shape)) for aval in graph.out_avals]
    places = [k for k, kind in enumerate(kinds) if kind in "fV" and box.kind == OWN]

    def backward(*arguments: Any) -> Any:
        if box.kind == GRADIENT:
            return written_gradients(box, arguments)
        _, back = jax.vjp(forward, *arguments[len(places) :])
        seeds: list[Any] = [np.zeros(shape, jax.dtypes.float0) for shape in shapes]
        for k, ct in zip(places, arguments, strict=False):
            seeds[k] = ct
        return back(seeds)

    cts = [jax.numpy.ones(shapes[k], graph.out_avals[k].dtype) for k in places]
    back = jaxpr_graph.traced(backward, [*cts, *example])
    sent = sent_to(builder, box.names, shapes, places)
    formats: list[str] = []
    reading = jaxpr_graph.JaxprReader(builder, formats)
    outputs = [_node(builder, x) for x in reading.outputs(graph, leaves)]
    if box.kind == GRADIENT:
        outputs = [shaped(outputs[0], ())]
    gradients = [_node(builder, x) for x in reading.outputs(back, [*sent.values(), *leaves])]
    return outputs, sent, _gradients(box, builder, leaves, gradients), formats


# --- NumPy --------------------------------------------------------------------------------------------------------


def of_numpy(box: BlackBox, builder: Builder, leaves: list[Node], seed: int) -> tuple[Any, ...]:
    """Results, cotangents, gradients and formats of a function of NumPy's arrays and of its written derivative."""
    arguments = box.arguments_at(box.x, False)
    moved = {name: numpy_graph.argument(leaf, arguments[name]) for name, leaf in zip(box.names, leaves, strict=True)}
    symbols = numpy_graph.Symbols()
    derivative: Any = box.derivative
    sent: dict[int, Node] = {}
    formats: list[str] = []
    try:
        with numpy_graph.recording(builder, box.names, formats, box.f, derivative):
            value = box.value_of(box.spread(box.f, {**arguments, **copies(moved)}))
            if box.kind == PAIR:
                value, raw = value
            output = symbols.read("f", value).node
            if box.kind == VJP or (box.kind == JACOBIAN and box.shape):
                sent = sent_to(builder, box.names, [output.type.shape], [0])
            if box.kind == VJP:
                raw = box.pull({**arguments, **copies(moved)}, numpy_graph.Symbol(sent[0]))
            elif box.kind != PAIR:
                raw = box.spread(derivative, {**arguments, **copies(moved)})
            outer = (box.shape or ()) if box.kind == JACOBIAN else ()
            parts = DerivativeForm(box.role, symbols, box.arguments, outer).read(raw, box.names)
    finally:
        if np.isnan(box.value(box.x)).all():  # an object that keeps what it computed forgets the recording
            raise Opaque("it raises when it is called again")
    gradients = [symbols.read("", part).node for part in parts]
    if box.kind == JACOBIAN and sent:
        gradients = [numpy_graph.pulled_back(sent[0], node) for node in gradients]
    elif not sent:
        output = shaped(output, ())
    return [output], sent, _gradients(box, builder, leaves, gradients), formats


def copies(symbols: dict[str, numpy_graph.Symbol]) -> dict[str, numpy_graph.Symbol]:
    """Arguments for one call, which may write into them."""
    return {name: numpy_graph.Symbol(x.node, x.scalar, x.own) for name, x in symbols.items()}


# --- inner --------------------------------------------------------------------------------------------------------


def _node(builder: Builder, x: Any) -> Node:
    return x if isinstance(x, Node) else constant(builder, jaxpr_graph.numbers(x))


def _gradients(box: BlackBox, builder: Builder, leaves: list[Node], back: Sequence[Any]) -> dict[str, Node]:
    """What is sent to each argument that is judged; zeros where nothing is."""
    gradients = {}
    for name, leaf, node in zip(box.names, leaves, [*back, *[None] * (len(leaves) - len(back))], strict=True):
        gradients[name] = builder.constant(0, leaf.type.shape) if node is None else node
        if gradients[name].type.shape != leaf.type.shape:
            raise Opaque("its backward returns an array of another shape")
    return gradients


# --- how it is used ---------------------------------------------------------------------------------------------------

CLOSE, LOOSE = 1e-9, 1e-2  # of what is sent, relatively: in float64, and in other formats


class Use(NamedTuple):
    """One use of a rule: its value, how many results have a gradient, and what a cotangent sends to the arguments."""

    value: list[Floats]
    results: int
    sent: Gradients


def by_usage(box: BlackBox, seed: int) -> dict[str, str]:
    """For each argument, in words, how its gradient or the value depends on the use; empty where nothing does."""
    use = {TORCH: used_by_torch, EAGER: used_by_torch, JAX: used_by_jax}.get(box.library.name)
    if use is None or box.kind != OWN or not np.isfinite(box.x).all():
        return {}
    words: dict[str, str] = {}
    with box.listener.hearing(box.role, False), np.errstate(all="ignore"):
        for name, text in differences(box, partial(use, box, seed)):
            words.setdefault(name, text)
    return words


def used_by_torch(box: BlackBox, seed: int, names: Sequence[str], which: int | None = None) -> Use:
    """A use in which these arguments require a gradient, and a cotangent arrives at all results or at one."""
    module: Any = sys.modules[box.library.name]
    arguments = box.arguments_at(box.x, False)
    for name in names:
        arguments[name].requires_grad_()
    copies = {name: arguments[name].clone() for name in names if box.library.copies}
    results = [x for x in listed(box.spread(box.f, {**arguments, **copies})) if is_tensor(x)]
    draw = np.random.default_rng(seed)
    cotangents = [draw.uniform(0.5, 1.5, tuple(x.shape)) for x in results]
    pairs = [(x, ct) for x, ct in zip(results, cotangents, strict=True) if x.requires_grad]
    chosen = pairs if which is None else pairs[which : which + 1]
    returned = [None for _ in names]
    if chosen:
        seeded = [(x, module.tensor(ct, dtype=x.dtype).to(x.device)) for x, ct in chosen]
        returned = sent_back(module, seeded, [arguments[name] for name in names])
    sent = {name: part_of(box, name, part) for name, part in zip(names, returned, strict=True)}
    return Use([np.asarray(array_of(x)) for x in results], len(pairs), sent)


def used_by_jax(box: BlackBox, seed: int, names: Sequence[str]) -> Use:
    """A use in which these arguments are differentiated. A cotangent of zeros arrives at results that are not used."""
    jax: Any = sys.modules[JAX]
    arguments = box.arguments_at(box.x, False)

    def run(*moved: Any) -> list[Any]:
        value = box.spread(box.f, {**arguments, **dict(zip(names, moved, strict=True))})
        return list(jax.tree_util.tree_leaves(value))

    if not names:
        return Use(list(map(np.asarray, run())), 1, {})
    value, back = jax.vjp(run, *[arguments[name] for name in names])
    draw = np.random.default_rng(seed)
    seeds: list[Any] = [np.zeros(leaf.shape, jax.dtypes.float0) for leaf in value]
    for k, leaf in enumerate(value):
        if leaf.dtype.kind in "fV":
            seeds[k] = jax.numpy.asarray(draw.uniform(0.5, 1.5, leaf.shape), leaf.dtype)
    sent = {name: part_of(box, name, part) for name, part in zip(names, back(seeds), strict=True)}
    return Use(list(map(np.asarray, value)), 1, sent)


def differences(box: BlackBox, use: Callable[..., Use]) -> Iterator[tuple[str, str]]:
    """The arguments whose gradients, and the first one where the value, differ between uses, with what differs."""
    try:
        plain, whole, again = use([]), use(box.names), use(box.names)
    except Exception:  # the verdict reports what a function raises
        return
    if not all(same(box, whole.sent[name], again.sent[name]) for name in box.names):
        return  # random numbers, or state: the verdict says so
    for k, (array, other) in enumerate(zip(plain.value, whole.value, strict=True)):
        if array.dtype.kind == "f" and not same(box, array, other):
            text = f"its result {k} changes" if len(plain.value) > 1 else "its value changes"
            yield box.names[0], f"{text} when a gradient is taken: {gap(array, other)}"
    for name in box.names if len(box.names) > 1 else ():
        text = f"where only {name} requires a gradient"
        try:
            alone = use([name]).sent[name]
        except NotImplementedError:
            continue
        except Exception as problem:
            yield name, f"the backward pass raises {text}: {describe(problem)}"
            continue
        if not same(box, whole.sent[name], alone):
            yield name, f"the backward pass gives different gradients {text}: {gap(whole.sent[name], alone)}"
    if whole.results < 2:
        return
    total = {name: np.zeros_like(array) for name, array in whole.sent.items()}
    for which in range(whole.results):
        try:
            alone_too = use(box.names, which).sent
        except NotImplementedError:
            return
        except Exception as problem:
            text = f"the backward pass raises where only result {which} is used: {describe(problem)}"
            yield from ((name, text) for name in box.names)
            return
        total = {name: total[name] + alone_too[name] for name in total}
    for name, summed in total.items():
        if not same(box, whole.sent[name], summed):
            text = "the gradients of the single results do not add up to the gradient of all of them"
            yield name, f"{text}: {gap(whole.sent[name], summed)}"


def part_of(box: BlackBox, name: str, sent: Any) -> Floats:
    """What was sent to an argument, as numbers; zeros where nothing was."""
    if sent is None:
        return np.zeros(box.shape_of(name))
    return np.asarray(box.library.read(box.role, sent), np.float64)


def same(box: BlackBox, array: Floats, other: Floats) -> bool:
    """Whether two gradients are the same but for rounding."""
    return alike(array, other, LOOSE if box.float32 or box.dtype != "float64" else CLOSE)


def alike(array: Floats, other: Floats, close: float) -> bool:
    """Whether two arrays agree to a part of their largest entry, and are finite in the same places."""
    if array.shape != other.shape or not np.array_equal(np.isfinite(array), np.isfinite(other)):
        return False
    finite = np.isfinite(array)
    scale = max(np.abs(array[finite]).max(initial=0.0), np.abs(other[finite]).max(initial=0.0))
    return bool((np.abs(array - other)[finite] <= close * scale).all())


def gap(array: Floats, other: Floats) -> str:
    """The entry that differs most, as both have it."""
    if array.shape != other.shape:
        return f"of shape {list(other.shape)}, not {list(array.shape)}"
    apart = np.nan_to_num(np.abs(array - other), nan=np.inf).reshape(-1)
    at = int(apart.argmax())
    place = list(map(int, np.unravel_index(at, array.shape)))
    entry = f" at {place}" if place else ""
    return f"{other.reshape(-1)[at]!s} instead of {array.reshape(-1)[at]!s}{entry}"

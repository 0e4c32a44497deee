"""Records a function of PyTorch tensors as nodes of ours, while it runs.

A dispatch mode sees every operation below autograd: of a backward written by hand those that it runs, whatever it
saves. Each is run, and where an operand depends on the point, the table says which nodes its results are. All other
tensors are constants. Tensors that share memory are parts of one node, so what is written in place shows in all views.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.graph.node import Node
from gradcli.primitives.broadcasting import stretch
from gradcli.recording.calls.gradient_libraries import listed
from gradcli.recording.graphs import operations
from gradcli.recording.graphs.operations import ATEN, Opaque, added_up, constant, entries, moved, of_kind, pointwise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from gradcli.graph.node import Builder

    Places = NDArray[np.int64]

FACTORIES = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty_like", "new_empty")
READS = ("numpy", "__array__", "tolist", "__dlpack__")  # what shows Python the entries of a tensor
CHECKS = ("_linalg_check_errors", "_assert_async", "_assert_scalar", "_assert_tensor_metadata")  # of what has run
# what adds up entries at positions
SUMS = (
    "index_add", "scatter_add", "scatter_reduce", "embedding_dense_backward", "_embedding_bag",
    "_embedding_bag_backward", "col2im",
)  # fmt: skip
MOST_ENTRIES = 4_096  # that are sent one by one to see where each is added
COUNTS = ("nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount", "histc")
BRANCHES = "it branches on values, or reads them with item()"


def recorded(
    builder: Builder, function: Callable[..., Any], inputs: Sequence[Node], example: Sequence[Any], formats: list[str]
) -> list[Node | None]:
    """What a function returns at an example, as nodes; `inputs` are those of the example.

    Formats of fewer digits than float64 that it computes in are added to `formats`. Raises Opaque for what no node
    stands for.
    """
    overrides, dispatch = import_module("torch.overrides"), import_module("torch.utils._python_dispatch")
    recording = Recording(builder, formats)

    class AtenFunctions(overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "")
            if name in READS and recording.depends(args[0]) and args[0].numel():
                recording.refuse("it passes values to NumPy or Python, which may branch on them")
            if name == "one_hot" and recording.depends(args[0]):  # it reads the labels, unless it is told their number
                count = (*args[1:], *(kwargs or {}).values(), -1)[0]
                if count > 0:
                    return (args[0].unsqueeze(-1) == import_module("torch").arange(count)).long()
            return func(*args, **(kwargs or {}))

    class Operations(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:  # else the first operation imports the compiler: a second
            return False

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return recording.call(self, func, args, kwargs or {})

    try:
        with warnings.catch_warnings(), AtenFunctions():
            warnings.simplefilter("ignore")
            for node, x in zip(inputs, example, strict=True):
                recording.hold(x, node)
            with Operations():
                results = function(*example)
    except Opaque as problem:
        raise recording.refused or problem from None
    except Exception as problem:
        text = (str(problem).splitlines() or [""])[0][:120]
        raise recording.refused or Opaque(f"it cannot be traced: {type(problem).__name__}: {text}") from None
    if recording.refused is not None:  # the function went on
        raise recording.refused
    return [None if x is None else recording.node(x) for x in results]


class TensorMemory:
    """Memory that depends on the point: nodes, and which of their entries, counted through, stands where; -1 for none.

    There are no nodes where nothing is known of an operation's result. `version` counts the writes.
    """

    def __init__(self, node: Node | None, x: Any) -> None:
        self.parts, self.dtype, self.version = [] if node is None else [node], x.dtype, 0
        self.order: Places = np.full(x.untyped_storage().nbytes() // x.element_size(), -1)
        if node is not None:
            self.order[positions(x).reshape(-1)] = np.arange(x.numel())

    def read(self, x: Any, builder: Builder) -> Node:
        """The node of a tensor in this memory."""
        parts, places = used(self.parts, self.order[positions(x)])
        if (places < 0).any():
            raise Opaque("it uses a result of an operation that is not supported")
        return entries(builder, parts, places.reshape(-1), tuple(x.shape))

    def write(self, x: Any, node: Node) -> None:
        """What the memory holds once a node was written into a tensor in it."""
        count = sum(part.type.size for part in self.parts)
        self.order[positions(x).reshape(-1)] = count + np.arange(node.type.size)
        self.parts, self.order = used([*self.parts, node], self.order)
        self.version += 1


def used(parts: Sequence[Node], places: Places) -> tuple[list[Node], Places]:
    """The nodes that some of the entries at these places belong to, and the places in them alone."""
    kept, renumbered, start, count = [], np.full(places.shape, -1), 0, 0
    for part in parts:
        inside = (places >= start) & (places < start + part.type.size)
        if inside.any():
            kept.append(part)
            renumbered[inside] = places[inside] - start + count
            count += part.type.size
        start += part.type.size
    return kept, renumbered


class Recording:
    """What is known of the tensors while a function runs."""

    def __init__(self, builder: Builder, formats: list[str]) -> None:
        self.builder, self.formats = builder, formats
        self.refused: Opaque | None = None  # the first time
        self.memories: dict[int, TensorMemory] = {}  # by the identity of the memory
        self.nodes: dict[int, tuple[Node, int]] = {}  # by the identity of the tensor, with the version of its memory
        self.alive: list[Any] = []  # tensors: an identity is not used again while they are

    def refuse(self, reason: str) -> None:
        """Raise Opaque; the function may catch it, so it is remembered."""
        problem = Opaque(reason)
        self.refused = self.refused or problem
        raise problem

    # --- tensors ----------------------------------------------------------------------------------------------

    def depends(self, x: Any) -> bool:
        return is_tensor(x) and memory_of(x) in self.memories

    def node(self, x: Any) -> Node:
        """The node of a tensor as it is now; a constant where it does not depend on the point."""
        memory = self.memories.get(memory_of(x))
        if memory is None:
            return constant(self.builder, self.numbers(x))
        known = self.nodes.get(id(x))
        if known is not None and known[1] == memory.version:
            return known[0]
        if x.dtype != memory.dtype:
            raise Opaque("it reads the bits of its numbers")
        node = memory.read(x, self.builder)
        self.keep(x, node, memory)
        return node

    def keep(self, x: Any, node: Node, memory: TensorMemory) -> None:
        self.nodes[id(x)] = node, memory.version
        self.alive.append(x)

    def hold(self, x: Any, node: Node | None) -> None:
        """Remember the node of a tensor, which is new, or a view of one that is known."""
        memory = self.memories.get(memory_of(x))
        if memory is None:
            memory = self.memories[memory_of(x)] = TensorMemory(node, x)
            self.alive.append(x)
        if node is not None and x.dtype == memory.dtype:
            self.keep(x, node, memory)

    def write(self, x: Any, node: Node) -> None:
        """Remember that a tensor holds something else now, and with it all that share its memory."""
        memory = self.memories[memory_of(x)]
        if x.dtype != memory.dtype:
            raise Opaque("it writes the bits of its numbers")
        memory.write(x, node)
        self.keep(x, node, memory)

    def numbers(self, x: Any) -> Any:
        """The entries of a tensor that does not depend on the point; remembers rounded ones of fewer digits."""
        array = numbers(x)
        if is_tensor(x) and x.is_floating_point() and str(x.dtype) != "torch.float64" and (array * 256 % 1).any():
            self.formats.append(str(x.dtype).removeprefix("torch."))
        return array

    def read(self, x: Any) -> Any:
        """Arguments with nodes in place of the tensors that depend on the point."""
        return replaced(x, lambda value: self.node(value) if self.depends(value) else value)

    # --- operations -------------------------------------------------------------------------------------------

    def call(self, mode: Any, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation, and remember what its results are."""
        try:
            return self.called(mode, target, args, kwargs)
        except Opaque as problem:
            self.refused = self.refused or problem
            raise

    def called(self, mode: Any, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        import torch

        if not hasattr(target, "_schema"):
            raise Opaque(f"it calls {getattr(target, '__name__', target)}, which is not a PyTorch operation")
        name, space = packet(target), target.namespace
        if torch.Tag.nondeterministic_seeded in target.tags:
            raise Opaque(f"it draws random numbers ({name})")
        if name in FACTORIES or not any(map(self.depends, leaves_of((args, kwargs)))):
            results = target(*args, **kwargs)
            self.alive.append(results)
            return results
        if space not in ("aten", "prims"):
            raise Opaque(f"it calls {space}::{name}, whose implementation cannot be recorded")
        if name in CHECKS:
            return None
        if name in COUNTS:
            raise Opaque(f"how many entries {name} gives depends on the point")
        known = (
            name in ATEN
            or name.removesuffix("_backward") in WINDOWED
            or name in SUMS
            or by_entry(target)
            or target._schema.is_mutable
        )
        if not known and not is_view(target):
            table = import_module("torch._decomp").decomposition_table
            with mode:  # PyTorch itself makes it of operations that the table may have
                results = table.get(target, target.decompose)(*args, **kwargs)
            if results is not NotImplemented:
                return results
        return self.recorded(target, args, kwargs)

    def recorded(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation some of whose operands depend on the point."""
        schema = target._schema.arguments
        passed = dict(zip((a.name for a in schema), args, strict=False)) | dict(kwargs)
        written = [passed[a.name] for a in schema if a.alias_info is not None and a.alias_info.is_write]
        if len(written) > 1:
            raise Opaque(f"the operation aten::{packet(target)} is not supported where it writes several tensors")
        for x in written:
            self.begin_writing(x)
        operands, options = self.read(args), {key: self.read(x) for key, x in kwargs.items() if key != "out"}
        bound = {a.name: self.read(passed.get(a.name, a.default_value)) for a in schema if not a.is_out}
        results = target(*args, **kwargs)
        several = listed(results)
        if not all(x is None or is_tensor(x) for x in several):
            raise Opaque(BRANCHES)
        nodes = self.results(target, bound, operands, options, several)
        if written:
            (x,), node = written, nodes[0]
            assert node is not None
            self.write(x, stretch(of_kind(node, kind_of(x)), tuple(x.shape)))
            return results
        for x, node in zip(several, nodes, strict=True):
            if x is not None and (node is not None or packet(target) not in SUMS):  # positions, beside a sum
                self.hold(x, node)
        return results

    def begin_writing(self, x: Any) -> None:
        """Before a tensor is written: memory that did not depend on the point does from here on, as a whole.

        If it is memory that the function keeps from call to call, its second recording begins with other numbers.
        """
        if memory_of(x) in self.memories:
            return
        whole = x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0)
        self.hold(whole, constant(self.builder, self.numbers(whole)))

    def results(
        self, target: Any, bound: dict[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], own: Sequence[Any]
    ) -> list[Node | None]:
        """The nodes of an operation's `own` results, by its row of the table or by what it moves where."""
        name, row, same = packet(target), ATEN.get(packet(target)), by_entry(target)
        followed = isinstance(bound.get("index"), Node)  # positions depend on the point
        unread = Opaque(f"the operation {target.namespace}::{name} is not supported")
        nodes: Any
        if row is None and is_view(target) and all(memory_of(x) in self.memories for x in own):
            return [None] * len(own)  # their places in memory identify their entries
        if bound.get("reduce") not in (None, "sum"):
            raise Opaque(f"{unread} with reduce={bound['reduce']!r}")
        if name == "index_put" and is_mask(bound):
            nodes = self.masked(bound)
        elif (positions := positions_in(name, bound)) is not None:
            nodes = self.at_positions(bound, positions)
        elif (name in SUMS and not followed) or (name == "index_put" and bound.get("accumulate")):
            nodes = self.added(target, args, kwargs)
        elif name.removesuffix("_backward") in WINDOWED:
            nodes = self.windowed(name, bound)
        elif row is None and same is not None:
            nodes = pointwise(same, *map(self.operand, bound.values()))
        elif row is None or (name in ("gather", "scatter") and not followed):
            nodes = self.moved(target, args, kwargs)
        else:
            nodes = self.by_row(row, {key: self.operand(x) if is_tensor(x) else x for key, x in bound.items()})
        nodes = listed(nodes)
        for k, (x, node) in enumerate(zip(own, nodes, strict=False)):
            if x is not None and str(x.dtype) != "torch.float64" and x.is_floating_point():
                self.formats.append(str(x.dtype).removeprefix("torch."))
            if x is None or node is None:
                continue
            nodes[k] = of_kind(node, kind_of(x))
            if node.type.shape != tuple(x.shape) and not target._schema.is_mutable:
                raise unread
        return [*nodes[: len(own)], *[None] * (len(own) - len(nodes))]

    def by_row(self, row: operations.Row, bound: dict[str, Any]) -> Any:
        """The nodes that a row of the table gives: its function takes what has its parameters' names, then operands."""
        operands = [x for key, x in bound.items() if isinstance(x, Node) and key not in row.parameters]
        first = next(iter(bound))
        if not isinstance(bound[first], Node):  # `2 ** x`
            operands.insert(0, bound[first])
        return row.function(*operands, **operations.options(row, bound))

    # --- what only moves entries, or adds them up -----------------------------------------------------------------

    def moved(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Node]:
        """An operation that only moves entries about."""
        import torch

        live = list(dict.fromkeys(nodes_in((args, kwargs))))
        if "ind" in str(target._schema) and any(node.type.kind != "float" for node in live):
            raise Opaque(f"{packet(target)} picks entries that depend on the point, which is not supported")

        def run(arrays: list[Any]) -> Any:
            stand = dict(zip(live, map(torch.from_numpy, arrays), strict=True))
            own_args, own_kwargs = replaced((args, kwargs), lambda x: stand.get(x, x) if isinstance(x, Node) else x)
            return [result.numpy() for result in listed(target(*own_args, **own_kwargs))]

        return moved(self.builder, live, run, f"the operation {target.namespace}::{packet(target)}")

    def added(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Node:
        """An operation that adds up entries, or means of them: where each goes is seen by sending it alone."""
        import torch

        live = list(dict.fromkeys(nodes_in((args, kwargs))))
        unread = Opaque(f"the operation aten::{packet(target)} is not supported")

        def run(*arrays: Any) -> Any:
            stand = dict(zip(live, arrays, strict=True))
            own_args, own_kwargs = replaced((args, kwargs), lambda x: stand.get(x, x) if isinstance(x, Node) else x)
            results = target(*own_args, **own_kwargs)
            return (results[0] if isinstance(results, tuple) else results).double().numpy()

        nothing = [torch.zeros(node.type.shape, dtype=torch.float64) for node in live]
        if sum(node.type.size for node in live) > MOST_ENTRIES:
            raise Opaque(f"{unread} for more than {MOST_ENTRIES:,} entries")
        base = run(*nothing)
        result = constant(self.builder, base)
        for k, node in enumerate(live):
            sent: list[Any] = []  # from where, to where, times what
            for i in range(node.type.size):
                alone = [x.clone() for x in nothing]
                alone[k].view(-1)[i] = 1.0
                gap = (run(*alone) - base).reshape(-1)
                sent += [(i, place, gap[place]) for place in np.flatnonzero(gap)]
            if sent:
                sources, places, weights = map(np.array, zip(*sent, strict=True))
                times = np.maximum(np.rint(weights), 1.0)
                over = np.rint(times / weights)  # of a mean, how many entries there are
                if not np.allclose(times, over * weights, rtol=1e-9, atol=0):
                    raise unread
                part = entries(self.builder, [node], sources, sources.shape)
                for name, numbers in (("mul", times), ("div", over)):
                    part = part if (numbers == 1).all() else pointwise(name, part, numbers)
                result = pointwise("add", result, added_up(self.builder, part, places, base.shape))
        return result

    def windowed(self, name: str, bound: dict[str, Any]) -> Any:
        """A convolution or a pooling, or what it sends back to its operands."""
        forward, keys = WINDOWED[name.removesuffix("_backward")]
        bound = {key: self.operand(x) if is_tensor(x) else x for key, x in bound.items()}
        xs = [bound[key] for key in keys]
        if name in WINDOWED:
            return forward(bound, *xs)
        g = bound["grad_output"]
        sent = operations.sent_back(lambda *xs: forward(bound, *xs)[0], xs, g)
        bias = operations.own("sum")(g, axis=(0, *range(2, len(g.type.shape))))
        return [*sent, bias] if name == "convolution_backward" else sent

    def masked(self, bound: Mapping[str, Any]) -> Node:
        """The array with a number where the mask is true, as in `g[x < 0] = 0`; the mask may have fewer axes."""
        (mask,) = bound["indices"]
        x, value = (self.operand(bound[key]) for key in ("self", "values"))
        value = operations.shaped(value, ())
        if bound["accumulate"]:
            value = pointwise("add", x, value)
        mask = operations.shaped(mask, mask.type.shape + (1,) * (len(x.type.shape) - len(mask.type.shape)))
        return pointwise("where", mask, value, x)

    def at_positions(self, bound: Mapping[str, Any], positions: dict[int, Any]) -> Node:
        """Entries at positions along some axes, one of which depends on the point; or what is added up there."""
        x = self.operand(bound["self"] if "self" in bound else bound["weight"])
        axes, rank = sorted(positions), len(x.type.shape)
        indices = [index if isinstance(index, Node) else self.numbers(index) for _, index in sorted(positions.items())]
        source = bound.get("source", bound.get("values"))
        if source is None:
            result = operations.taken_at(x, axes, indices)
            count = len(result.type.shape) - (rank - len(axes))  # axes of the positions
            adjacent = axes == [*range(axes[0], axes[0] + len(axes))]
            places = [*range(axes[0], axes[0] + count)] if adjacent else [*range(count)]
            return operations.own("moveaxis")(result, tuple(range(count)), tuple(places))
        ((axis,), (index,)) = axes, indices
        shape = (*x.type.shape[:axis], *index.type.shape, *x.type.shape[axis + 1 :])
        updates = stretch(of_kind(self.operand(source), "float"), shape)
        alpha = bound.get("alpha", 1)
        updates = updates if alpha == 1 else pointwise("mul", updates, alpha)
        count = len(index.type.shape)
        updates = operations.own("moveaxis")(updates, tuple(range(axis, axis + count)), tuple(range(count)))
        return operations.added_at(x, axis, index, updates)

    def operand(self, x: Any) -> Node:
        """A node, or the node of a tensor that does not depend on the point."""
        return x if isinstance(x, Node) else constant(self.builder, self.numbers(x))


def convolution(bound: Mapping[str, Any], x: Node, weight: Node) -> list[Node]:
    """A convolution as windows of its input times its kernel; a transposed one as what another sends to its input."""
    groups, (out, per, *kernel) = int(bound["groups"]), weight.type.shape
    if bound["transposed"]:
        options = (each(bound[key], len(kernel)) for key in ("stride", "padding", "dilation", "output_padding"))
        sizes = zip(x.type.shape[2:], kernel, *options, strict=True)
        size = [(n - 1) * s - 2 * p + d * (k - 1) + more + 1 for n, k, s, p, d, more in sizes]
        zeros = x.builder.constant(0, (x.type.shape[0], groups * per, *size))
        plain = {**bound, "transposed": False, "bias": None}
        sent = operations.sent_back(lambda z: convolution(plain, z, weight)[0], [zeros], x)[0]
        return [with_bias(sent, bound)]
    space = "uvw"[: len(kernel)]
    places = windows_of(bound, x.type.shape, kernel)
    places = places.reshape(x.type.shape[0], groups, -1, *places.shape[2:])
    kernels = operations.shaped(weight, (groups, out // groups, per, int(np.prod(kernel))))
    patches = operations.in_windows(x, places, 0.0)
    product = operations.summed(f"ngc{space}x,gocx->ngo{space}", patches, kernels)
    return [with_bias(operations.shaped(product, (x.type.shape[0], out, *product.type.shape[3:])), bound)]


def with_bias(x: Node, bound: Mapping[str, Any]) -> Node:
    bias = bound.get("bias")
    if bias is None:
        return x
    return pointwise("add", x, operations.shaped(bias, (x.type.shape[1], *(1,) * (len(x.type.shape) - 2))))


def largest(bound: Mapping[str, Any], x: Node) -> tuple[Node, Node]:
    """The largest entries of windows, and where they stand in their plane."""
    windows, rank = windows_of(bound, x.type.shape, bound["kernel_size"]), len(bound["kernel_size"])
    return operations.pooled(x, windows, "max", int(np.prod(x.type.shape[-rank:])))


def averages(bound: Mapping[str, Any], x: Node) -> list[Node]:
    """The means of windows."""
    windows = windows_of(bound, x.type.shape, bound["kernel_size"])
    count: Any = windows.shape[-1] if bound["count_include_pad"] else (windows >= 0).sum(-1)
    if bound["divisor_override"]:
        count = float(bound["divisor_override"])
    return [pointwise("div", operations.own("sum")(operations.in_windows(x, windows, 0.0), axis=-1), count)]


# forward operations with windows, and the names of their operands
WINDOWED: dict[str, tuple[Callable[..., Sequence[Node]], tuple[str, ...]]] = {
    "convolution": (convolution, ("input", "weight")),
    "avg_pool2d": (averages, ("self",)),
    "max_pool2d_with_indices": (largest, ("self",)),
    "max_pool3d_with_indices": (largest, ("self",)),
}


def windows_of(bound: Mapping[str, Any], shape: Sequence[int], size: Sequence[int]) -> Places:
    """The windows of a convolution or a pooling, which slide along the last axes of an array."""
    if bound.get("ceil_mode"):
        raise Opaque("it pools with ceil_mode, which is not supported")
    outer, rank = len(shape) - len(size), len(size)
    stride, padding, dilation = (
        each(value, rank) for value in (bound["stride"] or size, bound["padding"], bound.get("dilation", [1]))
    )
    around = [(0, 0)] * outer + [(p, p) for p in padding]
    return operations.windows(
        shape, [1] * outer + each(size, rank), [1] * outer + stride, around, [1] * outer + dilation
    )


def each(value: Sequence[int], rank: int) -> list[int]:
    """An option for each of so many axes, which may be given once for all."""
    return list(value) * (rank if len(value) == 1 else 1)


# --- small things -------------------------------------------------------------------------------------------------


def is_tensor(x: Any) -> bool:
    return hasattr(x, "detach") and hasattr(x, "dtype")


def memory_of(x: Any) -> int:
    """The identity of the memory of a tensor, which its views share."""
    if str(x.layout) != "torch.strided":
        raise Opaque(f"it computes with tensors of layout {x.layout}")
    return int(x.untyped_storage()._cdata)


def positions(x: Any) -> Places:
    """Where the entries of a tensor stand in its memory."""
    import torch

    count = torch.arange(x.untyped_storage().nbytes() // x.element_size())
    places: Places = count.as_strided(x.shape, x.stride(), x.storage_offset()).numpy()
    return places


def numbers(x: Any) -> Any:
    """The entries of a tensor that does not depend on the point; those of float32 as doubles."""
    if not is_tensor(x):
        return x
    if x.is_complex():
        raise Opaque("it computes with complex numbers")
    if x.is_floating_point():
        x = x.double()
    return x.detach().cpu().numpy().copy()


def kind_of(x: Any) -> str:
    """Whether a tensor is of floats, whole numbers or truths."""
    if x.is_complex():
        raise Opaque("it computes with complex numbers")
    return "float" if x.is_floating_point() else "bool" if str(x.dtype) == "torch.bool" else "int"


def is_mask(bound: Mapping[str, Any]) -> bool:
    """Whether one number is written where a mask is true."""
    values, indices = bound["values"], bound["indices"]
    size = values.type.size if isinstance(values, Node) else values.numel()
    return size == 1 and len(indices) == 1 and isinstance(indices[0], Node) and indices[0].type.kind == "bool"


def positions_in(name: str, bound: Mapping[str, Any]) -> dict[int, Any] | None:
    """The positions of an operation by the axes that they are along; None where none depends on the point."""
    if name in ("index_select", "index_add"):
        x, dim = bound["self"], int(bound["dim"])
        rank = len(x.type.shape if isinstance(x, Node) else x.shape)
        positions = {dim % rank: bound["index"]} if rank else {}
    elif name == "embedding":
        positions = {0: bound["indices"]}
    elif name == "index" or (name == "index_put" and bound["accumulate"]):
        positions = {axis: index for axis, index in enumerate(bound["indices"]) if index is not None}
    else:
        return None
    live = [index for index in positions.values() if isinstance(index, Node)]
    only = len(positions) == 1 or name == "index"
    return positions if only and any(index.type.kind == "int" for index in live) else None


def is_view(target: Any) -> bool:
    """Whether an operation returns entries of an argument in the same memory."""
    return any(a.alias_info is not None and not a.alias_info.is_write for a in target._schema.arguments)


def packet(target: Any) -> str:
    """The name of an operation without its overload: `add` of `aten.add_.Tensor` too."""
    name = str(target._schema.name).partition("::")[2]
    return name.rstrip("_") if name.endswith("_") and not name.endswith("__") else name


def by_entry(target: Any) -> str | None:
    """Our name of an operation that computes entry by entry of all its arguments; None for any other."""
    kinds = [str(a.type) for a in target._schema.arguments if not a.is_out]
    return operations.elementwise(packet(target), len(kinds)) if {*kinds} <= {"Tensor", "number", "Scalar"} else None


def replaced(x: Any, how: Callable[[Any], Any]) -> Any:
    """Arguments of an operation with other values in place of some."""
    if isinstance(x, dict):
        return {key: replaced(value, how) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        values = [replaced(value, how) for value in x]
        return values if isinstance(x, list) else tuple(values)
    return how(x)


def leaves_of(x: Any) -> Iterator[Any]:
    """Arguments or results of an operation, one by one."""
    if isinstance(x, (list, tuple, dict)):
        for value in x.values() if isinstance(x, dict) else x:
            yield from leaves_of(value)
    else:
        yield x


def nodes_in(x: Any) -> Iterator[Node]:
    return (value for value in leaves_of(x) if isinstance(value, Node))

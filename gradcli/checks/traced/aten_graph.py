"""Records a function of PyTorch tensors as a graph of aten's operations, and reads such a graph as nodes of ours.

`make_fx` records below autograd: of a backward written by hand come the operations that it runs, whatever it saves.
What of a graph does not depend on the point is computed by PyTorch itself and becomes constants.
"""

from __future__ import annotations

import operator
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.traced import operations
from gradcli.checks.traced.operations import ATEN, Opaque, added_up, constant, entries, moved, of_kind, pointwise
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gradcli.graph.builder import Builder

FACTORIES = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty_like", "new_empty")
MOST_ENTRIES = 5_000  # of an array that does not depend on the point and whose entries Python may read
READS = ("numpy", "__array__", "tolist", "__dlpack__")  # what shows Python the entries of a tensor
CHECKS = ("_linalg_check_errors", "_assert_async", "_assert_scalar", "_assert_tensor_metadata")  # of what has run
SUMS = ("index_add", "scatter_add", "embedding_dense_backward", "col2im")  # what adds up entries at positions


def traced(function: Callable[..., Any], example: Sequence[Any]) -> Any:
    """The graph of a function at an example; Opaque where Python looks at values."""
    from torch.fx.experimental import proxy_tensor

    make_fx: Any = proxy_tensor.make_fx
    limit = getattr(proxy_tensor, "CONSTANT_NUMEL_LIMIT", None)
    try:
        if limit is not None:  # what does not depend on the point may be read: one_hot reads the largest label
            proxy_tensor.CONSTANT_NUMEL_LIMIT = MOST_ENTRIES
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_fx(watched(function), decomposition_table=decompositions())(*example)
    except Opaque:
        raise
    except Exception as problem:
        text = str(problem)
        if "data-dependent" in text or "value out of a tracing tensor" in text or "_local_scalar_dense" in text:
            raise Opaque("it branches on values, or reads them with item()") from None
        raise Opaque(f"it cannot be traced: {type(problem).__name__}: {(text.splitlines() or [''])[0][:120]}") from None
    finally:
        if limit is not None:
            proxy_tensor.CONSTANT_NUMEL_LIMIT = limit


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, where NumPy and Python may only read what does not depend on the point."""
    mode: Any = import_module("torch.overrides").TorchFunctionMode

    class Watched(mode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__name__", "") in READS and args[0].numel():
                try:
                    args[0].detach().reshape(-1)[0].item()  # the tracer knows the constants, and refuses others
                except RuntimeError:
                    raise Opaque("it hands values to NumPy or Python, which may branch on them") from None
            return func(*args, **(kwargs or {}))

    def inside(*args: Any) -> Any:
        with Watched():
            return function(*args)

    return inside


def decompositions() -> dict[Any, Any]:
    """How PyTorch itself makes operations that the table does not have of ones that it has."""
    from torch._decomp import decomposition_table

    return {
        op: made
        for op, made in decomposition_table.items()
        if hasattr(op, "_schema") and packet(op) not in ATEN and not op._schema.is_mutable and not is_view(op)
    }


def is_view(target: Any) -> bool:
    """Whether an operation returns entries of an argument in the same memory."""
    return any(a.alias_info is not None and not a.alias_info.is_write for a in target._schema.arguments)


def packet(target: Any) -> str:
    """The name of an operation without its overload: `add` of `aten.add_.Tensor` too."""
    name = str(target._schema.name).partition("::")[2]
    return name.rstrip("_") if name.endswith("_") and not name.endswith("__") else name


def alike(one: Any, other: Any) -> bool:
    """Whether two graphs are the same, constants included: what Python did between the operations shows there."""
    import torch

    nodes, others = list(one.graph.nodes), list(other.graph.nodes)
    if len(nodes) != len(others):
        return False
    for a, b in zip(nodes, others, strict=True):
        if a.op != b.op or (a.op != "get_attr" and a.target != b.target):
            return False
        if a.op == "get_attr":
            x, y = getattr(one, a.target), getattr(other, b.target)
            if x.shape != y.shape or x.dtype != y.dtype or not torch.equal(torch.nan_to_num(x), torch.nan_to_num(y)):
                return False
        elif repr(a.args) != repr(b.args) or repr(a.kwargs) != repr(b.kwargs):
            return False
    return True


class Cell:
    """A tensor while a graph is read: its node, and of which other tensor it is a view at which positions."""

    def __init__(self, node: Node, base: Cell | None = None, places: Any = None) -> None:
        self.own, self.base, self.places = node, base, places
        self.version: int = base.root.version if base else 0

    @property
    def root(self) -> Cell:
        return self.base.root if self.base else self

    @property
    def node(self) -> Node:
        """The value now: of a view, of what its base holds now."""
        if self.base is not None and self.version != self.root.version:
            self.own = entries(self.own.builder, [self.root.own], self.places.reshape(-1), self.own.type.shape)
            self.version = self.root.version
        return self.own

    def write(self, value: Node) -> None:
        """The value after an operation in place, seen by the base and all of its views."""
        root = self.root
        if root is not self:
            count = root.own.type.size
            order = np.arange(count)
            order[self.places.reshape(-1)] = count + np.arange(self.own.type.size)
            root.own = entries(value.builder, [root.own, value], order, root.own.type.shape)
        root.version += 1
        self.own, self.version = value, root.version


class Reading:
    """Reads one graph: each of its values is a tensor that does not depend on the point, or a cell with a node."""

    def __init__(self, builder: Builder, graph: Any, inputs: Sequence[Node], single: list[str]) -> None:
        self.builder, self.graph, self.inputs, self.single = builder, graph, list(inputs), single
        targets = [one.target for one in graph.graph.nodes if hasattr(one.target, "_schema")]
        self.written = any(target._schema.is_mutable for target in targets)  # whether something is changed in place

    def outputs(self) -> list[Any]:
        """What the graph returns: nodes, and None where nothing is returned."""
        env: dict[Any, Any] = {}
        given = iter(self.inputs)
        for one in self.graph.graph.nodes:
            if one.op == "placeholder":
                env[one] = Cell(next(given))
            elif one.op == "get_attr":
                env[one] = getattr(self.graph, one.target).detach().clone()
            elif one.op == "call_function":
                args, kwargs = replaced((one.args, one.kwargs), env)
                if one.target is operator.getitem:
                    env[one] = args[0][args[1]]
                else:
                    env[one] = self.call(one, args, kwargs)
                    if self.written and is_tensor(env[one]) and env[one].is_floating_point():
                        env[one] = Cell(constant(self.builder, self.numbers(env[one])))  # it may be filled later
            elif one.op == "output":
                found = replaced(one.args[0], env)
                found = found if isinstance(found, (list, tuple)) else [found]
                return [self.node(x) for x in found]
        return []

    def node(self, x: Any) -> Any:
        if isinstance(x, Cell):
            return x.node
        return None if x is None else constant(self.builder, self.numbers(x))

    def numbers(self, x: Any) -> Any:
        """The entries of a tensor that does not depend on the point; remembers rounded ones of fewer digits."""
        found = numbers(x)
        if is_tensor(x) and x.is_floating_point() and str(x.dtype) != "torch.float64" and (found * 256 % 1).any():
            self.single.append(str(x.dtype).removeprefix("torch."))
        return found

    def call(self, one: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The result of one operation."""
        import torch

        target = one.target
        if not hasattr(target, "_schema"):
            raise Opaque(f"it calls {getattr(target, '__name__', target)}, which is not an operation of PyTorch")
        if torch.Tag.nondeterministic_seeded in target.tags:
            raise Opaque(f"it draws random numbers ({packet(target)})")
        space = target.namespace
        if space not in ("aten", "prims"):
            raise Opaque(f"it calls {space}::{packet(target)}, whose implementation cannot be recorded")
        cells = list(inside((args, kwargs)))
        name = packet(target)
        if name in CHECKS:
            return None
        if not cells:
            return target(*args, **kwargs)
        if name in FACTORIES:
            like = torch.zeros(args[0].node.type.shape, dtype=one.args[0].meta["val"].dtype)
            return target(like, *args[1:], **kwargs)
        given = dict(zip((a.name for a in target._schema.arguments), args, strict=False)) | dict(kwargs)
        bound = {a.name: given.get(a.name, a.default_value) for a in target._schema.arguments}
        found = self.result(name, target, one, bound, args, kwargs)
        return self.held(target, one, found, args, kwargs)

    def held(self, target: Any, one: Any, found: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The results as cells: of an operation in place the changed one, of a view one that follows its base."""
        if target._schema.is_mutable:
            if not isinstance(args[0], Cell):
                raise Opaque("a tensor from outside is changed in place")
            args[0].write(operations.shaped(operations.expanded(found, args[0].own.type.shape), found.type.shape))
            return args[0]
        if isinstance(found, list):
            return [None if x is None else Cell(x) for x in found]
        base = args[0] if args and isinstance(args[0], Cell) else None
        if not is_view(target) or base is None or not isinstance(found, Node):
            return Cell(found) if isinstance(found, Node) else found
        import torch

        count = torch.arange(base.root.own.type.size).reshape(base.root.own.type.shape)
        places = count if base.base is None else torch.from_numpy(base.places)
        try:
            there = target(places, *args[1:], **kwargs)
        except (RuntimeError, TypeError):
            return Cell(found)
        return Cell(found, base, there.numpy()) if isinstance(there, torch.Tensor) else Cell(found)

    def result(
        self, name: str, target: Any, one: Any, bound: dict[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """The nodes of an operation, by its row of the table or by what it moves where."""
        values, space = one.meta.get("val"), target.namespace
        kinds = kinds_of(values, self.single)
        followed = isinstance(bound.get("index"), Cell)  # positions depend on the point
        if name == "index_put" and is_mask(bound):
            return masked(self.builder, {key: unwrapped(x) for key, x in bound.items()})
        if (name in SUMS and not followed) or (name == "index_put" and bound.get("accumulate")):
            return self.added(target, one, args, kwargs)
        row = ATEN.get(name)
        if bound.get("reduce") is not None and followed:
            raise Opaque(f"the operation {space}::{name} is not read where its positions depend on the point")
        if name == "convolution":
            found: Any = self.convolved(bound)
        elif row is None or (name in ("gather", "scatter") and not followed):
            found = self.moved(name, target, args, kwargs)
        else:
            own = {"dim" if key == "dims" and space == "prims" else key: unwrapped(x) for key, x in bound.items()}
            found = self.by_row(row, own, target)
        several = isinstance(found, (list, tuple))
        pieces = [
            of_kind(node, kind) if isinstance(node, Node) else node
            for node, kind in zip(found if several else [found], kinds, strict=False)
        ]
        expected = values if isinstance(values, (list, tuple)) else [values]
        pieces += [None] * (len(expected) - len(pieces))
        for piece, value in zip(pieces, expected, strict=True):
            if isinstance(piece, Node) and is_tensor(value) and piece.type.shape != tuple(value.shape):
                raise Opaque(f"the operation {space}::{name} is not read")
        return pieces if isinstance(values, (list, tuple)) else pieces[0]

    def by_row(self, row: operations.Row, bound: dict[str, Any], target: Any) -> Any:
        bound = {key: constant(self.builder, self.numbers(x)) if is_tensor(x) else x for key, x in bound.items()}
        if isinstance(row.ours, str):
            schema = target._schema.arguments
            xs = [bound[a.name] for a in schema if str(a.type) in ("Tensor", "number", "Scalar") and a.name in bound]
            return pointwise(row.ours, [x for x in xs if x is not None], self.builder)
        names = row.ours.__code__.co_varnames[: row.ours.__code__.co_argcount + row.ours.__code__.co_kwonlyargcount]
        first = names[0]
        order = list(bound)
        given = {first: bound[order[0]]}
        rest = [key for key in order[1:] if key not in names and (isinstance(bound[key], Node))]
        free = [name for name in names[1:] if name not in bound]
        given |= {key: value for key, value in bound.items() if key in names}
        given |= dict(zip(free, [bound[key] for key in rest], strict=False))
        if row.ours.__code__.co_flags & 8:
            given |= {key: value for key, value in bound.items() if key in ("dim", "keepdim", "correction", "unbiased")}
        return row.ours(**given)

    # --- what only moves entries, or adds them up -----------------------------------------------------------------

    def moved(self, name: str, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        import torch

        cells = list(inside((args, kwargs)))

        def run(arrays: list[Any]) -> Any:
            stand = dict(zip(map(id, cells), map(torch.from_numpy, arrays), strict=True))
            own_args, own_kwargs = replaced_cells((args, kwargs), stand)
            found = target(*own_args, **own_kwargs)
            return [one.numpy() for one in (found if isinstance(found, (list, tuple)) else [found])]

        try:
            nodes = moved(self.builder, [cell.node for cell in cells], run)
        except Exception as problem:  # whatever an operation raises on numbers that are none of its own
            if isinstance(problem, Opaque) and str(problem):
                raise
            raise Opaque(f"the operation {target.namespace}::{name} is not read") from None
        several = any("[]" in str(r.type) or "List" in str(r.type) for r in target._schema.returns)
        return nodes if several or len(nodes) > 1 else nodes[0]

    def added(self, target: Any, one: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """An operation that adds up entries at positions: the positions are what its derivative moves back."""
        import torch

        cells = list(inside((args, kwargs)))
        shape = tuple(one.meta["val"].shape)
        numbers = torch.arange(1.0, one.meta["val"].numel() + 1, dtype=torch.float64).reshape(shape)
        parts = []
        leaves = [torch.zeros(cell.node.type.shape, dtype=torch.float64, requires_grad=True) for cell in cells]
        stand = dict(zip(map(id, cells), leaves, strict=True))
        own_args, own_kwargs = replaced_cells((args, kwargs), stand)
        base = args[0] if isinstance(args[0], torch.Tensor) else None
        if base is not None and base.dtype.is_floating_point and base.any():
            parts.append(constant(self.builder, base.numpy()))
        found = target(*[x + 0 if is_tensor(x) and x.is_floating_point() else x for x in own_args], **own_kwargs)
        if not found.requires_grad:
            raise Opaque(f"the operation aten::{packet(target)} is not read")
        back = torch.autograd.grad(found, leaves, numbers, allow_unused=True)
        for cell, places in zip(cells, back, strict=True):
            if places is None or (places != places.round()).any() or places.min() < 1 or places.max() > numbers.numel():
                raise Opaque(f"the operation aten::{packet(target)} is not read")
            parts.append(added_up(self.builder, cell.node, places.reshape(-1).long().numpy() - 1, shape))
        result = parts[0]
        for part in parts[1:]:
            result = pointwise("add", [result, part], self.builder)
        return result

    def convolved(self, bound: dict[str, Any]) -> Node:
        """A convolution as windows of its input times its kernel."""
        import torch

        if bound["transposed"]:
            raise Opaque("the operation aten::convolution is not read where it is transposed")
        x, weight, bias = (self.node(bound[key]) for key in ("input", "weight", "bias"))
        groups, kernel = int(bound["groups"]), weight.type.shape[2:]
        rank = len(kernel)

        def spread(value: Any) -> list[int]:
            return list(value) * (rank if len(value) == 1 else 1)

        padding, stride, dilation = (spread(bound[key]) for key in ("padding", "stride", "dilation"))

        def windows(arrays: list[Any]) -> Any:
            found = torch.from_numpy(arrays[0])
            found = torch.nn.functional.pad(found, [n for p in reversed(padding) for n in (p, p)])
            for i, (k, s, d) in enumerate(zip(kernel, stride, dilation, strict=True)):
                found = found.unfold(2 + i, (k - 1) * d + 1, s)[..., ::d]
            return found.reshape(found.shape[0], groups, -1, *found.shape[2:]).numpy()

        (patches,) = moved(self.builder, [x], windows)
        out, per = weight.type.shape[:2]
        kernels = operations.shaped(weight, (groups, out // groups, per, *kernel))
        space, taps = "uvw"[:rank], "xyz"[:rank]
        found = operations.summed(f"ngc{space}{taps},goc{taps}->ngo{space}", patches, kernels)
        found = operations.shaped(found, (found.type.shape[0], out, *found.type.shape[3:]))
        if bias is None:
            return found
        return pointwise("add", [found, operations.shaped(bias, (out, *(1,) * rank))], self.builder)


def is_mask(bound: Mapping[str, Any]) -> bool:
    """Whether one number is written where a mask is true, as in `g[x < 0] = 0`."""
    values, indices = unwrapped(bound["values"]), bound["indices"]
    size = values.type.size if isinstance(values, Node) else values.numel()
    return size == 1 and len(indices) == 1 and isinstance(indices[0], Cell) and indices[0].node.type.kind == "bool"


def masked(builder: Builder, bound: Mapping[str, Any]) -> Node:
    """The array with the number where the mask is true; the mask may have fewer axes."""
    (mask,), value = bound["indices"], bound["values"]
    x = bound["self"] if isinstance(bound["self"], Node) else constant(builder, numbers(bound["self"]))
    value = operations.shaped(value if isinstance(value, Node) else constant(builder, numbers(value)), ())
    if bound["accumulate"]:
        value = pointwise("add", [x, value], builder)
    mask = operations.shaped(mask, mask.type.shape + (1,) * (len(x.type.shape) - len(mask.type.shape)))
    return pointwise("where", [mask, value, x], builder)


# --- small things -------------------------------------------------------------------------------------------------


def is_tensor(x: Any) -> bool:
    return hasattr(x, "detach") and hasattr(x, "dtype")


def numbers(x: Any) -> Any:
    """The entries of a tensor that does not depend on the point; those of float32 as doubles."""
    if not is_tensor(x):
        return x
    if x.is_complex():
        raise Opaque("it computes with complex numbers")
    if x.is_floating_point():
        x = x.double()
    return x.detach().cpu().numpy()


def unwrapped(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(unwrapped, x))
    return x.node if isinstance(x, Cell) else x


def inside(x: Any) -> Any:
    """The cells in arguments, each once."""
    seen: dict[int, Cell] = {}

    def look(x: Any) -> None:
        if isinstance(x, Cell):
            seen[id(x)] = x
        elif isinstance(x, dict):
            look(list(x.values()))
        elif isinstance(x, (list, tuple)):
            for one in x:
                look(one)

    look(x)
    return seen.values()


def replaced(x: Any, env: Mapping[Any, Any]) -> Any:
    """Arguments of a graph's node with values in place of nodes."""
    if isinstance(x, dict):
        return {key: replaced(value, env) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([replaced(one, env) for one in x]) if type(x) in (list, tuple) else [replaced(y, env) for y in x]
    try:
        return env.get(x, x)
    except TypeError:
        return x


def replaced_cells(x: Any, stand: Mapping[int, Any]) -> Any:
    """Arguments with tensors in place of cells."""
    if isinstance(x, dict):
        return {key: replaced_cells(value, stand) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([replaced_cells(one, stand) for one in x])
    return stand[id(x)] if isinstance(x, Cell) else x


def kinds_of(values: Any, single: list[str]) -> list[str]:
    """Whether each result is of floats, whole numbers or truths; remembers formats of fewer digits."""
    found = []
    for one in values if isinstance(values, (list, tuple)) else [values]:
        if one is None or not is_tensor(one):
            found.append("float")
            continue
        if one.is_complex():
            raise Opaque("it computes with complex numbers")
        if one.is_floating_point() and str(one.dtype) != "torch.float64":
            single.append(str(one.dtype).removeprefix("torch."))
        is_float = one.is_floating_point()
        found.append("float" if is_float else "bool" if str(one.dtype) == "torch.bool" else "int")
    return found

"""Reads a jaxpr as nodes of ours: `jax.make_jaxpr` of a function, or of what `jax.vjp` does with it.

JAX traces on abstract values, so a Python branch on values raises and nothing can be frozen unseen. What does not
depend on the point is computed by JAX itself and becomes constants.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.graph.node import Node
from gradcli.recording.calls.gradient_libraries import listed
from gradcli.recording.graphs import operations
from gradcli.recording.graphs.operations import JAX, Opaque, added_up, constant, moved, of_kind, pointwise, shaped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.node import Builder

CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # where a primitive keeps the jaxpr that it calls
CALLED = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
          "remat", "checkpoint", "remat2", "custom_lin"}  # fmt: skip
MOST_ITERATIONS = 64  # of a loop that is written out
POOLS = {"reduce_window_max": "max", "reduce_window_min": "min"}


def traced(function: Callable[..., Any], example: Sequence[Any]) -> Any:
    """The jaxpr of a function; Opaque where Python looks at values."""
    jax = sys.modules["jax"]
    try:
        return jax.make_jaxpr(function)(*example)
    except Exception as problem:
        name = type(problem).__name__
        if name in ("TracerBoolConversionError", "ConcretizationTypeError", "TracerIntegerConversionError"):
            raise Opaque("it branches on values") from None
        if name == "TracerArrayConversionError":
            raise Opaque("it passes values to NumPy") from None
        raise Opaque(f"it cannot be traced: {name}: {str(problem).splitlines()[0][:120]}") from None


class GatherPositions(NamedTuple):
    """Positions along several axes, as JAX joins them for a gather: arrays or nodes whose last axis has one entry."""

    columns: list[Any]


class JaxprReader:
    """Reads one jaxpr: each of its values is an array that does not depend on the point, or a node."""

    def __init__(self, builder: Builder, single: list[str]) -> None:
        self.builder, self.single = builder, single

    def outputs(self, closed: Any, inputs: Sequence[Any]) -> list[Any]:
        """What the jaxpr returns on nodes and arrays."""
        jaxpr = closed.jaxpr if hasattr(closed, "jaxpr") else closed
        consts = list(getattr(closed, "consts", ()))
        env: dict[Any, Any] = {}
        env.update(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, inputs, strict=True))

        def read(var: Any) -> Any:
            return var.val if hasattr(var, "val") else env[var]

        needed = needed_by(jaxpr)
        for eqn in jaxpr.eqns:
            if not any(id(var) in needed for var in eqn.outvars):
                continue  # such as the result of a rule's own forward, which only effects keep
            results = self.call(eqn, [read(var) for var in eqn.invars])
            env.update(zip(eqn.outvars, results, strict=False))
        return [read(var) for var in jaxpr.outvars]

    def call(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """The results of one equation."""
        name, params = eqn.primitive.name, eqn.params
        if name in CALLED:
            inner = next((params[key] for key in CALLS if key in params), None)
            if inner is None:
                raise Opaque(f"the operation {name} is not supported")
            if params.get("name") == "slogdet" and " lu " in str(inner) and isinstance(xs[-1], Node):
                return [self.builder.call(known, xs[-1]) for known in ("slogdet_sign", "logabsdet")]
            return self.outputs(inner, xs[-len((inner.jaxpr if hasattr(inner, "jaxpr") else inner).invars) :])
        if name in METHODS:
            return METHODS[name](self, eqn, xs)
        if name.startswith("random") or name in ("threefry2x32", "random_bits"):
            raise Opaque(f"it draws random numbers ({name})")
        if "callback" in name or name in ("ffi_call", "pallas_call", "custom_call"):
            raise Opaque(f"it calls {name}, whose implementation cannot be recorded")
        if name == "lu":
            return [UNREAD] * len(eqn.outvars)
        if (
            name == "lt"
            and operations.counted(xs[0])
            and not isinstance(xs[1], Node)
            and (np.asarray(xs[1]) <= 0).all()
        ):
            return [np.zeros(tuple(eqn.outvars[0].aval.shape), bool)]  # no position is counted from the end
        if name == "select_n" and not isinstance(xs[0], Node) and not np.any(xs[0]):
            return [xs[1]]
        if name == "concatenate" and any(map(operations.counted, xs)):
            return [GatherPositions(xs)]
        if name == "gather" and isinstance(xs[1], (Node, GatherPositions)):
            return [self.gathered(eqn, *xs)]
        if any(isinstance(x, GatherPositions) for x in xs):
            raise Opaque(f"the operation {name} is not supported at indices that depend on the point")
        if any(x is UNREAD for x in xs):
            raise Opaque("it uses a factor of an LU decomposition, which is not supported")
        if not any(isinstance(x, Node) for x in xs):
            results = eqn.primitive.bind(*xs, **params)
            return list(results) if eqn.primitive.multiple_results else [results]
        kinds = [self.kind(var) for var in eqn.outvars]
        row = JAX.get(name)
        if name == "scatter-add" or name == "scatter_add":
            results = [self.added(eqn, xs)]
        elif name == "triangular_solve":
            a, b = map(self.operand, xs)
            flags = not params["lower"], params["left_side"], params["unit_diagonal"], params["transpose_a"]
            results = [operations.triangle(a, b, *flags)]
        elif row is not None:
            results = listed(row.function(*map(self.operand, xs), **operations.options(row, params)))
        elif (same := operations.elementwise(name, len(xs))) is not None:
            results = [pointwise(same, *map(self.operand, xs))]
        else:
            results = self.moved(eqn, xs)
        return [of_kind(x, kind) if isinstance(x, Node) else x for x, kind in zip(results, kinds, strict=True)]

    def kind(self, var: Any) -> str:
        """Whether a value is of floats, whole numbers or truths; remembers formats of fewer digits."""
        dtype = var.aval.dtype
        if dtype.kind == "c":
            raise Opaque("it computes with complex numbers")
        if dtype.kind in "fV" and dtype != np.float64:
            self.single.append(str(dtype))
        return operations.KINDS.get(dtype.kind, "float")

    # --- what only moves entries, or adds them up -----------------------------------------------------------------

    def moved(self, eqn: Any, xs: list[Any]) -> list[Any]:
        live = [i for i, x in enumerate(xs) if isinstance(x, Node)]
        jax = sys.modules["jax"]

        def run(arrays: list[Any]) -> Any:
            operands = list(xs)
            for i, array in zip(live, arrays, strict=True):
                operands[i] = jax.numpy.asarray(array)
            operands = [jax.numpy.asarray(x, np.float64) if floats(x) else x for x in operands]
            return eqn.primitive.bind(*operands, **eqn.params)

        return moved(self.builder, [xs[i] for i in live], run, f"the operation {eqn.primitive.name}")

    def gathered(self, eqn: Any, x: Any, indices: Any) -> Node:
        """Entries at positions along some axes, one of which depends on the point."""
        numbers, x = eqn.params["dimension_numbers"], self.operand(x)
        batched: Any = getattr(numbers, "operand_batching_dims", ())
        batches: Any = getattr(numbers, "start_indices_batching_dims", ())
        axes, sizes, rank = (*numbers.start_index_map, *batched), eqn.params["slice_sizes"], len(x.type.shape)
        if isinstance(indices, GatherPositions):
            columns = [column[..., 0] if not isinstance(column, Node) else column for column in indices.columns]
        else:
            columns = [indices]
        columns = [shaped(c, c.type.shape[:-1]) if isinstance(c, Node) else np.asarray(c) for c in columns]
        whole = all(sizes[k] == (1 if k in axes else x.type.shape[k]) for k in range(rank))
        collapsed = sorted((*numbers.collapsed_slice_dims, *batched)) == sorted(axes)
        if len(columns) != len(numbers.start_index_map) or not whole or not collapsed:
            raise Opaque("it selects entries at indices that depend on the point")
        shape = next(column.type.shape for column in columns if isinstance(column, Node))
        for axis in batches:
            columns.append(np.broadcast_to(np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1)), shape))
        result = operations.taken_at(x, axes, columns)
        last = tuple(numbers.offset_dims)
        order = [*(k for k in range(len(result.type.shape)) if k not in last), *last]
        back = tuple(order.index(k) for k in range(len(order)))
        return operations.own("transpose")(result, back) if back != (*range(len(back)),) else result

    def added(self, eqn: Any, xs: list[Any]) -> Node:
        """Entries added up at positions that do not depend on the point; the transposed operation gives these."""
        jax = sys.modules["jax"]
        operand, indices, updates = xs
        if isinstance(indices, Node):
            numbers = eqn.params["dimension_numbers"]
            axes, inserted = numbers.scatter_dims_to_operand_dims, numbers.inserted_window_dims
            batched: Any = getattr(numbers, "operand_batching_dims", ())
            if len(axes) != 1 or tuple(inserted) != tuple(axes) or batched:
                raise Opaque("it sums entries at several indices that depend on the point")
            updates = self.operand(updates)
            first = [k for k in range(len(updates.type.shape)) if k not in numbers.update_window_dims]
            order = (*first, *numbers.update_window_dims)
            updates = operations.own("transpose")(updates, order) if order != (*range(len(order)),) else updates
            index = shaped(indices, indices.type.shape[:-1])
            return operations.added_at(self.operand(operand), axes[0], index, updates)
        shape = tuple(eqn.outvars[0].aval.shape)
        count = int(np.prod(shape, dtype=np.int64))
        zero = jax.numpy.zeros(shape)
        like = jax.numpy.zeros(tuple(eqn.invars[2].aval.shape))
        back = jax.linear_transpose(lambda u: eqn.primitive.bind(zero, indices, u, **eqn.params), like)
        (places,) = back(jax.numpy.arange(1.0, count + 1).reshape(shape))
        places = np.asarray(places).reshape(-1).astype(np.int64) - 1
        if (places < 0).any():
            raise Opaque("it sums entries outside the array")
        result = added_up(self.builder, self.operand(updates), places, shape)
        return pointwise("add", result, self.operand(operand))

    def pooled(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """The largest or smallest entries of windows."""
        (x,) = map(self.operand, xs)
        return [operations.pooled(x, windows_of(eqn, x), POOLS[eqn.primitive.name], x.type.size)[0]]

    def summed(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """Sums over windows."""
        (x,) = map(self.operand, xs)
        return [operations.own("sum")(operations.in_windows(x, windows_of(eqn, x), 0.0), axis=-1)]

    def spread(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """What is sent to the largest or smallest entry of each window."""
        source, x = map(self.operand, xs)
        which = {"ge": "max", "le": "min"}[eqn.params["select_prim"].name]
        return operations.sent_back(
            lambda x: operations.pooled(x, windows_of(eqn, x), which, x.type.size)[0], [x], source
        )

    def operand(self, x: Any) -> Node:
        """A node, or the node of an array that does not depend on the point."""
        return x if isinstance(x, Node) else constant(self.builder, numbers(x))

    def branched(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """A cond or switch: one branch where the index is known, else all of them, of which the index chooses."""
        index, *operands = xs
        branches = eqn.params["branches"]
        if not isinstance(index, Node):
            return self.outputs(branches[min(max(int(index), 0), len(branches) - 1)], operands)
        results, *others = (self.outputs(branch, operands) for branch in branches)
        for k, other in enumerate(others, 1):
            chosen = pointwise("greater_equal", of_kind(index, "int"), k)
            pairs = [map(self.operand, pair) for pair in zip(other, results, strict=True)]
            results = [pointwise("where", chosen, *pair) for pair in pairs]
        return results

    def platform(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """The branch of a function that has one for some platforms."""
        return [next(k for k, names in enumerate(eqn.params["platforms"]) if names is None or "cpu" in names)]

    def repeated(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """A while_loop whose number of iterations does not depend on the point, written out."""
        params = eqn.params
        fixed, more = int(params["cond_nconsts"]), int(params["body_nconsts"])
        carry = xs[fixed + more :]
        for _ in range(MOST_ITERATIONS + 1):
            (goes_on,) = self.outputs(params["cond_jaxpr"], [*xs[:fixed], *carry])
            if isinstance(goes_on, Node):
                raise Opaque("it has a while_loop whose number of iterations depends on the point")
            if not goes_on:
                return carry
            carry = self.outputs(params["body_jaxpr"], [*xs[fixed : fixed + more], *carry])
        raise Opaque(f"it has a while_loop of more than {MOST_ITERATIONS} iterations, which is not supported")

    def solved(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """A linear system with a matrix; JAX has it as the function that multiplies by the matrix."""
        count, matvec = eqn.params["const_lengths"].matvec, eqn.params["jaxprs"].matvec
        matrices, (b, *others) = xs[:count], xs[sum(eqn.params["const_lengths"]) :]
        unread = Opaque("it solves a linear system that is not given by a matrix, which is not supported")
        shape = (int(b.shape[-1]),) * 2
        if others or len(matrices) != 1 or tuple(matrices[0].shape) != shape:
            raise unread
        draw = np.random.default_rng(0)
        trial, x = draw.normal(size=shape), draw.normal(size=tuple(b.shape))
        (product,) = self.outputs(matvec, [trial, x])
        ways = {"as it is": trial, "transposed": trial.T}
        way = next((way for way, a in ways.items() if np.allclose(product, x @ a.T, rtol=1e-10, atol=0)), None)
        if way is None:
            raise unread
        a = self.operand(matrices[0])
        a = a if way == "as it is" else operations.swapped(a, -2, -1)
        rows = len(b.shape) > 1
        solution = operations.solved(a, operations.swapped(self.operand(b), -2, -1) if rows else self.operand(b))
        return [operations.swapped(solution, -2, -1) if rows else solution]

    def scanned(self, eqn: Any, xs: list[Any]) -> list[Any]:
        """A scan of a few iterations, written out."""
        params = eqn.params
        length, consts, carried = int(params["length"]), int(params["num_consts"]), int(params["num_carry"])
        if length > MOST_ITERATIONS:
            raise Opaque(f"it has a scan of {length} iterations, which is not supported")
        fixed, carry, stacks = xs[:consts], xs[consts : consts + carried], xs[consts + carried :]
        iterations = range(length - 1, -1, -1) if params["reverse"] else range(length)
        rows: dict[int, list[Any]] = {}
        for iteration in iterations:
            results = self.outputs(params["jaxpr"], [*fixed, *carry, *(slice_of(x, iteration) for x in stacks)])
            carry, rows[iteration] = results[:carried], results[carried:]
        stacked = [
            self.stacked([rows[iteration][k] for iteration in range(length)])
            for k in range(len(rows[0]) if rows else 0)
        ]
        return [*carry, *stacked]

    def stacked(self, parts: list[Any]) -> Any:
        if not any(isinstance(x, Node) for x in parts):
            return np.stack([np.asarray(x) for x in parts])
        nodes = list(map(self.operand, parts))
        flat = operations.joined([shaped(x, (x.type.size,)) for x in nodes])
        return shaped(flat, (len(nodes), *nodes[0].type.shape))


UNREAD = object()  # a result that nothing may use
METHODS = {
    "scan": JaxprReader.scanned, "while": JaxprReader.repeated, "cond": JaxprReader.branched,
    "platform_index": JaxprReader.platform, "custom_linear_solve": JaxprReader.solved,
    "reduce_window_max": JaxprReader.pooled, "reduce_window_min": JaxprReader.pooled,
    "reduce_window_sum": JaxprReader.summed, "select_and_scatter_add": JaxprReader.spread,
}  # fmt: skip


def windows_of(eqn: Any, x: Node) -> Any:
    """The windows of an operation on an array."""
    params, rank = eqn.params, len(x.type.shape)
    if any(n != 1 for n in params.get("base_dilation", ())):
        raise Opaque(f"the operation {eqn.primitive.name} is not supported where its operand is dilated")
    dilation = params.get("window_dilation", (1,) * rank)
    size, stride = params["window_dimensions"], params["window_strides"]
    return operations.windows(x.type.shape, size, stride, params["padding"], dilation)


def slice_of(x: Any, iteration: int) -> Any:
    if not isinstance(x, Node):
        return x[iteration]
    size = x.type.size // x.type.shape[0]
    places = np.arange(iteration * size, (iteration + 1) * size)
    return operations.entries(x.builder, [x], places, x.type.shape[1:])


def needed_by(jaxpr: Any) -> set[int]:
    """The variables that the results of a jaxpr depend on, by `id`."""
    needed = {id(var) for var in jaxpr.outvars}
    for eqn in reversed(jaxpr.eqns):
        if any(id(var) in needed for var in eqn.outvars):
            needed.update(id(var) for var in eqn.invars)
    return needed


def numbers(x: Any) -> Any:
    """A node, or the entries of an array that does not depend on the point."""
    if isinstance(x, Node):
        return x
    array = np.asarray(x)
    return array.astype(np.float64) if floats(array) else array


def floats(x: Any) -> bool:
    kind = getattr(x, "dtype", np.asarray(x).dtype).kind
    return kind in "fV"

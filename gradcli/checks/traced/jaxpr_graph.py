"""Reads a jaxpr as nodes of ours: `jax.make_jaxpr` of a function, or of what `jax.vjp` does with it.

JAX traces on abstract values, so a Python branch on values raises and nothing can be frozen unseen. What does not
depend on the point is computed by JAX itself and becomes constants.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.checks.traced import operations
from gradcli.checks.traced.operations import JAX, Opaque, added_up, constant, moved, of_kind, pointwise, shaped
from gradcli.graph.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gradcli.graph.builder import Builder

CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # where a primitive keeps the jaxpr that it calls
CALLED = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
          "remat", "checkpoint", "remat2", "custom_lin"}  # fmt: skip
LOOPS = {"while": "while_loop", "cond": "cond"}
MOST_TURNS = 64  # of a scan that is written out


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


class Reading:
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
        for one in jaxpr.eqns:
            if not any(id(var) in needed for var in one.outvars):
                continue  # such as the result of a rule's own forward, which only effects keep
            found = self.call(one, [read(var) for var in one.invars])
            env.update(zip(one.outvars, found, strict=False))
        return [read(var) for var in jaxpr.outvars]

    def call(self, one: Any, xs: list[Any]) -> list[Any]:
        """The results of one equation."""
        name, params = one.primitive.name, one.params
        if name in CALLED:
            inner = next((params[key] for key in CALLS if key in params), None)
            if inner is None:
                raise Opaque(f"the operation {name} is not supported")
            return self.outputs(inner, xs[-len((inner.jaxpr if hasattr(inner, "jaxpr") else inner).invars) :])
        if name in LOOPS:
            raise Opaque(f"it has a {LOOPS[name]}, which is not supported")
        if name == "scan":
            return self.scanned(params, xs)
        if name.startswith("random") or name in ("threefry2x32", "random_bits"):
            raise Opaque(f"it draws random numbers ({name})")
        if "callback" in name or name in ("ffi_call", "pallas_call", "custom_call"):
            raise Opaque(f"it calls {name}, whose implementation cannot be recorded")
        if not any(isinstance(x, Node) for x in xs):
            found = one.primitive.bind(*xs, **params)
            return list(found) if one.primitive.multiple_results else [found]
        kinds = [self.kind(var) for var in one.outvars]
        row = JAX.get(name)
        if name == "scatter-add" or name == "scatter_add":
            found = [self.added(one, xs)]
        elif name == "triangular_solve":
            found = [self.triangle(params, *xs)]
        elif row is not None:
            found = self.by_row(row, xs, params)
        else:
            found = self.moved(one, xs)
        return [of_kind(x, kind) if isinstance(x, Node) else x for x, kind in zip(found, kinds, strict=True)]

    def by_row(self, row: operations.Row, xs: list[Any], params: dict[str, Any]) -> list[Any]:
        xs = [numbers(x) for x in xs]
        if isinstance(row.ours, str):
            return [pointwise(row.ours, xs, self.builder)]
        code = row.ours.__code__
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        named = {row.params.get(key, key): value for key, value in params.items()}
        named = {key: tuple(map(int, value)) if isinstance(value, tuple) and key == "dim" else value
                 for key, value in named.items() if key in known}  # fmt: skip
        if "arg" in getattr(row.ours, "__name__", "") or row.ours.__name__ == "place":
            named["dim"] = named["dim"][0]
        found = row.ours(*xs, **named)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    def kind(self, var: Any) -> str:
        """Whether a value is of floats, whole numbers or truths; remembers formats of fewer digits."""
        dtype = var.aval.dtype
        if dtype.kind == "c":
            raise Opaque("it computes with complex numbers")
        if dtype.kind in "fV" and dtype != np.float64:
            self.single.append(str(dtype))
        return operations.KINDS.get(dtype.kind, "float")

    # --- what only moves entries, or adds them up -----------------------------------------------------------------

    def moved(self, one: Any, xs: list[Any]) -> list[Any]:
        live = [i for i, x in enumerate(xs) if isinstance(x, Node)]
        jax = sys.modules["jax"]

        def run(arrays: list[Any]) -> Any:
            given = list(xs)
            for i, array in zip(live, arrays, strict=True):
                given[i] = jax.numpy.asarray(array)
            given = [jax.numpy.asarray(x, np.float64) if floats(x) else x for x in given]
            return one.primitive.bind(*given, **one.params)

        try:
            return list(moved(self.builder, [xs[i] for i in live], run))
        except Exception:  # whatever a primitive raises on numbers that are none of its own
            raise Opaque(f"the operation {one.primitive.name} is not supported") from None

    def added(self, one: Any, xs: list[Any]) -> Node:
        """Entries added up at positions that do not depend on the point; the transposed operation tells them."""
        jax = sys.modules["jax"]
        operand, indices, updates = xs
        if isinstance(indices, Node):
            raise Opaque("it sums entries at indices that depend on the point")
        shape = tuple(one.outvars[0].aval.shape)
        count = int(np.prod(shape, dtype=np.int64))
        zero = jax.numpy.zeros(shape)
        like = jax.numpy.zeros(tuple(one.invars[2].aval.shape))
        back = jax.linear_transpose(lambda u: one.primitive.bind(zero, indices, u, **one.params), like)
        (places,) = back(jax.numpy.arange(1.0, count + 1).reshape(shape))
        places = np.asarray(places).reshape(-1).astype(np.int64) - 1
        if (places < 0).any():
            raise Opaque("it sums entries outside the array")
        moved_there = updates if isinstance(updates, Node) else constant(self.builder, numbers(updates))
        result = added_up(self.builder, moved_there, places, shape)
        return pointwise("add", [result, numbers(operand)], self.builder)

    def triangle(self, params: dict[str, Any], a: Any, b: Any) -> Node:
        return operations.triangle(
            numbers(a),
            numbers(b),
            not params["lower"],
            params["left_side"],
            params["unit_diagonal"],
            params["transpose_a"],
        )

    def scanned(self, params: dict[str, Any], xs: list[Any]) -> list[Any]:
        """A scan of a few turns, written out."""
        length, consts, carried = int(params["length"]), int(params["num_consts"]), int(params["num_carry"])
        if length > MOST_TURNS:
            raise Opaque(f"it has a scan of {length} turns, which is not supported")
        fixed, carry, stacks = xs[:consts], xs[consts : consts + carried], xs[consts + carried :]
        turns = range(length - 1, -1, -1) if params["reverse"] else range(length)
        rows: dict[int, list[Any]] = {}
        for turn in turns:
            found = self.outputs(params["jaxpr"], [*fixed, *carry, *(slice_of(x, turn) for x in stacks)])
            carry, rows[turn] = found[:carried], found[carried:]
        stacked = [self.stacked([rows[turn][k] for turn in range(length)]) for k in range(len(rows[0]) if rows else 0)]
        return [*carry, *stacked]

    def stacked(self, parts: list[Any]) -> Any:
        if not any(isinstance(x, Node) for x in parts):
            return np.stack([np.asarray(x) for x in parts])
        nodes = [x if isinstance(x, Node) else constant(self.builder, numbers(x)) for x in parts]
        flat = operations.joined([shaped(x, (x.type.size,)) for x in nodes])
        return shaped(flat, (len(nodes), *nodes[0].type.shape))


def slice_of(x: Any, turn: int) -> Any:
    if not isinstance(x, Node):
        return x[turn]
    size = x.type.size // x.type.shape[0]
    places = np.arange(turn * size, (turn + 1) * size)
    return operations.entries(x.builder, [x], places, x.type.shape[1:])


def needed_by(jaxpr: Any) -> set[int]:
    """The variables that the results of a jaxpr depend on, by `id`."""
    needed = {id(var) for var in jaxpr.outvars}
    for one in reversed(jaxpr.eqns):
        if any(id(var) in needed for var in one.outvars):
            needed.update(id(var) for var in one.invars)
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

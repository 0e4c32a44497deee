"""A recording goes in, the same products of matrices in a cheaper order come out; sums are added in another order.

`(A @ B) @ v` takes more than `A @ (B @ v)`. A product that only other products read is taken apart where its factors,
one after the other, take fewer multiplications in all of them. Nothing is computed here.
"""

from __future__ import annotations

from math import prod

from gradcli.execution.plans.recording import Recording, live
from gradcli.execution.plans.values import PRODUCT, VIEW, Op, Value

SHARE = 0.8  # of the multiplications, at most, that may be left


def cost(x: Value, y: Value) -> int:
    """The multiplications of a product."""
    return prod(x.shape) * y.shape[-1]


def ordered(recording: Recording) -> Recording:
    """The recording with chains of products in a cheap order; the recording itself where there is none."""
    if sum([op.kind == PRODUCT for op in recording.ops]) < 2:
        return recording
    chains = _Chains(recording)
    for op in reversed(recording.ops):
        chains.look_at(op)
    if not chains.instead:
        return recording
    return Recording(chains.ops(), recording.inputs, recording.outputs)


class _Chains:
    """Which steps stand in the place of others."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.instead: dict[int, list[Op]] = {}  # by the serial of a result, what stands in the place of its step
        self.homes: dict[int, int] = {}  # of steps that are made here: in whose place they stand
        self.readers: dict[int, list[Op]] = {}
        self.kept = {value.serial for value in recording.outputs}
        given = [*recording.outputs, *[value for _, value in recording.inputs]]
        self.count = max(
            [one.serial for one in given + [x for op in recording.ops for x in (op.out, *op.args)]], default=0
        )
        for op in recording.ops:
            self._enter(op)

    def _enter(self, op: Op) -> None:
        for arg in op.args:
            self.readers.setdefault(arg.serial, []).append(op)

    def _leave(self, op: Op) -> None:
        for arg in op.args:
            self.readers[arg.serial] = [one for one in self.readers[arg.serial] if one is not op]

    def look_at(self, made: Op) -> None:
        """Take a product apart where that pays."""
        if made.kind != PRODUCT or made.out.constant or made.out.serial in self.kept:
            return
        uses = self._uses(made.out)
        if not uses:
            return
        x, y = made.args
        before, after = cost(x, y), 0
        for reader, turned in uses:
            left = self._shows(reader.args[0], made.out)
            other = reader.args[1 if left else 0]
            if self._shows(other, made.out):
                return
            before += cost(*reader.args)
            near = x if left == turned else y  # the factor beside the other one
            far = y if near is x else x
            width = other.shape[-1] if left else other.shape[-2]
            after += (prod(near.shape) + prod(far.shape)) * width
        if after > SHARE * before:
            return
        self._leave(made)
        self.instead[made.out.serial] = []
        for reader, turned in uses:
            self._take_apart(reader, x, y, turned, self._shows(reader.args[0], made.out))

    def _uses(self, value: Value) -> list[tuple[Op, bool]]:
        """The products that read a value, and whether they read it transposed; none where something else reads it."""
        found: list[tuple[Op, bool]] = []
        for reader in self.readers.get(value.serial, []):
            if reader.kind == PRODUCT:
                found.append((reader, False))
            elif _turns(reader) and reader.out.serial not in self.kept:
                beyond = self.readers.get(reader.out.serial, [])
                if not all(one.kind == PRODUCT for one in beyond):
                    return []
                found += [(one, True) for one in beyond]
            else:
                return []
        return found

    @staticmethod
    def _shows(value: Value, product: Value) -> bool:
        return value is product or (value.op is not None and _turns(value.op) and value.op.args[0] is product)

    def _take_apart(self, reader: Op, x: Value, y: Value, turned: bool, left: bool) -> None:
        ops: list[Op] = []
        if turned:
            x, y = self._transposed(y, reader, ops), self._transposed(x, reader, ops)
        if left:
            inner = self._product(y, reader.args[1], reader, ops)
            pair = (x, inner)
        else:
            inner = self._product(reader.args[0], x, reader, ops)
            pair = (inner, y)
        last = Op(PRODUCT, None, pair, None, reader.out, reader.node)
        self._leave(reader)
        reader.out.op = last
        home = self.homes.get(reader.out.serial, reader.out.serial)
        steps = self.instead.setdefault(home, [reader])
        at = steps.index(reader)
        steps[at : at + 1] = [*ops, last]
        for op in (*ops, last):
            self._enter(op)
            self.homes[op.out.serial] = home

    def _value(self, shape: tuple[int, ...], like: Value) -> Value:
        self.count += 1
        return Value(self.count, shape, like.dtype)

    def _product(self, x: Value, y: Value, reader: Op, ops: list[Op]) -> Value:
        out = self._value((*x.shape[:-1], y.shape[-1]), x)
        out.constant = x.constant and y.constant
        out.op = Op(PRODUCT, None, (x, y), None, out, reader.node)
        ops.append(out.op)
        return out

    def _transposed(self, x: Value, reader: Op, ops: list[Op]) -> Value:
        if x.op is not None and _turns(x.op):
            return x.op.args[0]
        rank = len(x.shape)
        out = self._value((*x.shape[:-2], x.shape[-1], x.shape[-2]), x)
        out.constant = x.constant
        out.op = Op(VIEW, "permute", (x,), (*range(rank - 2), rank - 1, rank - 2), out, reader.node)
        ops.append(out.op)
        return out

    def ops(self) -> list[Op]:
        """All steps in order, those of a chain where the product stood that they give."""
        found: list[Op] = []
        for op in self.recording.ops:
            found += self.instead.get(op.out.serial, [op])
        return live(found, self.recording.outputs)


def _turns(op: Op) -> bool:
    """Whether a step transposes matrices."""
    rank = len(op.out.shape)
    return op.kind == VIEW and op.function == "permute" and op.params == (*range(rank - 2), rank - 1, rank - 2)

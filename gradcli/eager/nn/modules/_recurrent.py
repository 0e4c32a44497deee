"""Recurrent layers and their cells: RNN, LSTM and GRU.

The graph is that of the definition, step by step: products of the whole sequence first, then one step after the other.
An LSTM layer in single precision is one node, as in PyTorch; its backward runs the derivative of the step, which
follows from the formula, from the last step to the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradcli.eager._core import events
from gradcli.eager._core.modes import SPECIAL, enable_grad, recording, state, warn
from gradcli.eager._core.node import Node, saved_result
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.codegen import Steps
from gradcli.eager._engine.numpy_kernels import column_sums, product
from gradcli.eager._engine.record import noded
from gradcli.eager._engine.rule_node import renamed, source_of
from gradcli.eager._ops.joining import cat, split_as, stack
from gradcli.eager._ops.views import transpose
from gradcli.eager.autograd.functional import grad
from gradcli.eager.nn import init
from gradcli.eager.nn._layer import Layer, weighted
from gradcli.eager.nn.modules.activation import dropout
from gradcli.eager.nn.modules.linear import linear
from gradcli.eager.nn.utils.rnn import PackedSequence
from gradcli.graph.builder import Builder, building
from gradcli.graph.node import CONSTANT, reachable
from gradcli.graph.types import FLOAT
from gradcli.primitives import catalogue
from gradcli.transforms.reverse import pull

State = tuple[Any, ...]
Step = Callable[[Tensor, State, tuple[Any, Any]], State]
Weights = Sequence[Any]  # for the input and the state, and the two biases, which may be None

_GATES, _LAYER = "UnsafeSplitBackward0", "MkldnnRnnLayerBackward0"  # PyTorch's nodes of the gates, of an LSTM layer


def _parts(x: Tensor, count: int) -> tuple[Tensor, ...]:
    return split_as(x, x.shape[-1] // count, -1, _GATES)


def _plain(nonlinearity: str) -> Step:
    def step(projected: Tensor, state: State, own: tuple[Any, Any]) -> State:
        return (getattr(linear(state[0], *own) + projected, nonlinearity)(),)

    return step


def _lstm(projected: Tensor, state: State, own: tuple[Any, Any]) -> State:
    hidden, cell = state
    enter, keep, new, leave = _parts(linear(hidden, *own) + projected, 4)
    return _remembered(enter, keep, new, leave, cell, sigmoid=lambda x: x.sigmoid(), tanh=lambda x: x.tanh())


def _remembered(enter: Any, keep: Any, new: Any, leave: Any, cell: Any, *, sigmoid: Any, tanh: Any) -> tuple[Any, Any]:
    """The hidden state and the cell of an LSTM after a step, from the four gates and the cell before it."""
    cell = sigmoid(keep) * cell + sigmoid(enter) * tanh(new)
    return sigmoid(leave) * tanh(cell), cell


def _gru(projected: Tensor, state: State, own: tuple[Any, Any]) -> State:
    (hidden,) = state
    theirs, ours = _parts(projected, 3), _parts(linear(hidden, *own), 3)
    reset = (ours[0] + theirs[0]).sigmoid()
    update = (ours[1] + theirs[1]).sigmoid()
    new = (theirs[2] + ours[2] * reset).tanh()
    return ((hidden - new) * update + new,)


# of each kind of step how many gates and how many states it has, and the step itself
_KINDS: dict[str, tuple[int, int, Step]] = {
    "RNN_TANH": (1, 1, _plain("tanh")),
    "RNN_RELU": (1, 1, _plain("relu")),
    "LSTM": (4, 2, _lstm),
    "GRU": (3, 1, _gru),
}


# --- an LSTM layer as one node ----------------------------------------------------------------------------------------


class _Step:
    """One step of an LSTM on arrays: its value, and its derivative in two parts.

    `slopes` computes what does not depend on the gradient that arrives, for all steps at once; `back` the rest.
    """

    def __init__(self) -> None:
        builder, known = Builder(catalogue(), entries=2**62), catalogue()
        leaves = [builder.fresh_leaf(FLOAT) for _ in range(5)]
        outputs = _remembered(*leaves, sigmoid=known["sigmoid"], tanh=known["tanh"])
        with building(builder, reachable([*outputs, *leaves])):
            cts = [builder.fresh_leaf(FLOAT) for _ in outputs]
            gradients: list[Any] = pull(builder, list(zip(outputs, cts, strict=True)), leaves)
        moving, slopes = set(cts), {}
        for node in reachable(gradients, (*cts, *leaves)):
            if not moving.isdisjoint(node.args):
                moving.add(node)
                slopes.update(dict.fromkeys(arg for arg in node.args if arg not in moving))
        fixed = [arg for arg in slopes if arg.primitive is not CONSTANT]
        kind = np.dtype(np.float32)
        self.value = Steps(leaves, outputs).function(kind)
        self.slopes = Steps(leaves, fixed).function(kind)
        self.back = Steps([*cts, *fixed], gradients).function(kind)


_step = cache(_Step)


class LstmNode(Node):
    """The node of an LSTM layer: backward through time."""

    __slots__ = ("outputs", "reverse")
    outputs: int
    reverse: bool

    def run(self, cts: list[Any], create_graph: bool) -> list[Any]:
        """The gradients of the input, the weights, the biases and the first state."""
        self.check_not_freed()
        self.check_versions()
        saved: Any = self.saved
        if create_graph:
            with enable_grad():
                output, state = _step_by_step(_lstm, saved[0], saved[1:5], saved[5:7], self.reverse)
            pairs = [(out, ct) for out, ct in zip((output, *state), cts, strict=True) if ct is not None]
            wanted = [x for x, source in zip(saved[:7], self.ins, strict=True) if source is not None]
            roots, seeds = [out for out, _ in pairs], [ct for _, ct in pairs]
            waiting = iter(grad(roots, wanted, seeds, create_graph=True, allow_unused=True))
            return [None if source is None else next(waiting) for source in self.ins]
        arrays: list[Any] = [None if value is None else value._raw for value in saved]
        x, w_ih, w_hh, _, _, h, c, gates, hidden, cells = arrays
        steps, batch, size = hidden.shape
        order = range(steps - 1, -1, -1) if not self.reverse else range(steps)
        step, back = _step(), product(batch, 4 * size, size)
        slopes = step.slopes(*_gates_of(gates), _before(cells, c, self.reverse))
        sent = np.empty_like(gates)
        parts = _gates_of(sent)
        dy, dh, dc = (
            np.zeros(like.shape, like.dtype) if ct is None else ct for ct, like in zip(cts, (hidden, h, c), strict=True)
        )
        for t in order:
            dh = dh + dy[t]
            *parts_of_gates, dc = step.back(dh, dc, *[slope[t] for slope in slopes])
            for part, gate in zip(parts, parts_of_gates, strict=True):
                part[t] = gate
            dh = back(sent[t], w_hh)
        sent, x, before = (array.reshape(steps * batch, -1) for array in (sent, x, _before(hidden, h, self.reverse)))
        makers: tuple[Callable[[], Any], ...] = (
            lambda: product(steps * batch, 4 * size, x.shape[1])(sent, w_ih).reshape(steps, batch, -1),
            lambda: product(4 * size, steps * batch, x.shape[1])(sent.T, x),
            lambda: product(4 * size, steps * batch, size)(sent.T, before),
            *[lambda: column_sums(sent)] * 2,
            *(lambda: dh, lambda: dc),
        )
        return [None if source is None else make() for source, make in zip(self.ins, makers, strict=True)]


def _gates_of(x: Any) -> list[Any]:
    """The four gates, beside each other along the last axis."""
    size = x.shape[-1] // 4
    return [x[..., i * size : (i + 1) * size] for i in range(4)]


def _before(states: Any, first: Any, reverse: bool) -> Any:
    """The state before each step."""
    return np.concatenate([states[1:], first[None]] if reverse else [first[None], states[:-1]])


def _step_by_step(
    step: Step, x: Tensor, weights: Weights, state: State, reverse: bool, sizes: list[int] | None = None
) -> tuple[Tensor, State]:
    """A layer with the nodes of its steps: all hidden states, and the last state.

    `sizes`: how many sequences each step of a packed batch has.
    """
    w_ih, w_hh, b_ih, b_hh = weights
    moved = linear(x, w_ih, b_ih)
    rows = moved.unbind(0) if sizes is None else moved.split(sizes)
    outputs = []
    for row in reversed(rows) if reverse else rows:
        count = len(row)
        rest = [part[count:] for part in state] if count < len(state[0]) else []
        state = step(row, tuple([part[:count] for part in state]) if rest else state, (w_hh, b_hh))
        outputs.append(state[0])
        if rest:  # the shorter sequences, which stand last, keep their states
            state = tuple([cat(pair) for pair in zip(state, rest, strict=True)])
    outputs = outputs[::-1] if reverse else outputs
    return stack(outputs) if sizes is None else cat(outputs), state


def _is_plain(xs: Sequence[Any]) -> bool:
    """Whether a layer on these operands may be one node: in single precision, where nothing unusual is on."""
    if state.mode == SPECIAL and not state.recorder_only:
        return False
    payloads = [(x._raw, x._inference) for x in xs if x is not None]
    return all(isinstance(a, np.ndarray) and a.dtype == np.float32 and a.size and not i for a, i in payloads)


def _whole(x: Tensor, weights: Weights, state: State, reverse: bool) -> tuple[Tensor, State]:
    """An LSTM layer as one node; results as of `_step_by_step`."""
    xs = (x.contiguous(), *weights, *state)
    arrays: list[Any] = [None if tensor is None else tensor._array for tensor in xs]
    x, w_ih, w_hh, b_ih, b_hh, h, c = arrays
    (steps, batch, width), size = x.shape, w_hh.shape[1]
    gates = product(steps * batch, width, 4 * size)(x.reshape(-1, width), w_ih.T)
    if b_ih is not None:
        gates += b_ih + b_hh
    gates = gates.reshape(steps, batch, 4 * size)
    hidden, cells = np.empty((2, steps, batch, size), np.float32)
    value, times, turned = _step().value, product(batch, size, 4 * size), np.ascontiguousarray(w_hh.T)
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        row = gates[t]
        row += times(h, turned)
        h, c = value(*_gates_of(row), c)
        hidden[t], cells[t] = h, c
    results = Tensor(hidden), Tensor(h), Tensor(c)
    if recording() and any(x is not None and x.requires_grad for x in xs):
        sources = [None if x is None else source_of(x) for x in xs]
        kept = (*xs, Tensor(gates), saved_result(hidden, results[0]._counter), Tensor(cells))
        noded(results, LstmNode, _LAYER, sources, kept, outputs=3, reverse=reverse)
    if events.own.current is not None:
        for result in results:
            events.own.current.operation(_LAYER, xs, result)
    return results[0], results[1:]


def _names(end: str) -> list[str]:
    return [f"{name}{end}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]


class _Recurrent(Layer):
    """Weights for the input and for the state, which start from uniform numbers by the size of the state."""

    mode = ""
    _shown = "{self.input_size}, {self.hidden_size}"
    _usual = {"bias": True}

    def _gates(self, dtype: Any, end: str, width: int, bias: bool) -> None:
        size, rows = self.hidden_size, _KINDS.get(self.mode, (1,))[0] * self.hidden_size
        shapes = [(rows, width), (rows, size), *[(rows,) if bias else None] * 2]
        names = _names(end) if bias or not end else _names(end)[:2]  # layers do not even name what they leave out
        self._weights(dtype, **dict(zip(names, shapes, strict=False)))

    def reset_parameters(self) -> None:
        """Start again from new random numbers."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)


def _ordered(states: State, at: Tensor | None) -> State:
    """The states of sequences in another order, if there is one."""
    return states if at is None else tuple([h.index_select(1, at) for h in states])


class _Layers(_Recurrent):
    """Layers of one kind of step, in one direction or both."""

    _options = weighted(
        "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, "
        "proj_size=0"
    )
    _usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}

    def _build(self, hidden_size: Any, num_layers: int, dropout: Any, dtype: Any, **options: Any) -> None:
        kind = f"RNN_{options['nonlinearity'].upper()}" if "nonlinearity" in options else self.mode
        if kind not in _KINDS:
            raise ValueError(f"Unknown nonlinearity {options['nonlinearity']!r}. Select from 'tanh' or 'relu'.")
        if type(dropout) not in (int, float) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of a zero")
        if dropout > 0 and num_layers == 1:
            warn(f"dropout={dropout} needs num_layers greater than 1: it follows all but the last recurrent layer")
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        for name, value in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if options["proj_size"]:
            raise RuntimeError("proj_size is not supported")
        self.mode = kind  # an attribute of the layer itself, as all options are
        super()._build(hidden_size=hidden_size, num_layers=num_layers, dropout=float(dropout), **options)
        for layer in range(num_layers):
            width = self.input_size if layer == 0 else hidden_size * (1 + self.bidirectional)
            for end in ("", "_reverse")[: 1 + self.bidirectional]:
                self._gates(dtype, f"_l{layer}{end}", width, self.bias)
        self.reset_parameters()

    def flatten_parameters(self) -> None:
        """Does nothing: how the weights lie in memory makes no difference here."""

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> Any:
        """The states at each step, and the last state of each layer. RuntimeError for sizes that do not fit.

        For a packed sequence the states at each step are packed too.
        """
        output: Any
        if isinstance(input, PackedSequence):
            sizes = input.batch_sizes.tolist()
            states = self._states(input.data, sizes[0], hx, False)
            states = states if hx is None else _ordered(states, input.sorted_indices)
            output, last = self._run(input.data, states, sizes)
            output, last = input._replace(data=output), _ordered(last, input.unsorted_indices)
        else:
            if input.ndim not in (2, 3):
                raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead")
            single = input.ndim == 2
            x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
            output, last = self._run(x, self._states(x, x.shape[1], hx, single))
            if single:
                output, last = output.squeeze(1), tuple([h.squeeze(1) for h in last])
            elif self.batch_first:
                output = renamed(output.transpose(0, 1), transpose.row.nodes[self.mode != "LSTM"])
        return output, last if len(last) > 1 else last[0]

    def _states(self, x: Tensor, batch: int, hx: Any, single: bool) -> State:
        """The first states (layers, N, H). RuntimeError for another number, rank or size of given ones."""
        count, rank = _KINDS[self.mode][1], 2 if single else 3
        shape = (self.num_layers * (1 + self.bidirectional), batch, self.hidden_size)
        if hx is None:
            return (x.new_zeros(shape),) * count
        states = tuple(hx) if count > 1 else (hx,)
        if len(states) != count:
            raise RuntimeError(f"{type(self).__name__} needs {count} states, not {len(states)}")
        if any(h.ndim != rank for h in states):
            raise RuntimeError(f"For {'unbatched 2' if single else 'batched 3'}-D input, hx should also be {rank}-D")
        states = tuple([h.unsqueeze(1) for h in states]) if single else states
        for h in states:
            if tuple(h.shape) != shape:
                raise RuntimeError(f"Expected hidden size {shape}, got {list(h.shape)}")
        return states

    def _run(self, x: Tensor, states: State, sizes: list[int] | None = None) -> tuple[Tensor, State]:
        if x.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size {self.input_size}, not {x.shape[-1]}")
        step, ends = _KINDS[self.mode][2], []
        starts = zip(*[layers.unbind(0) for layers in states], strict=True)
        for layer in range(self.num_layers):
            outputs = []
            for reverse in (False, True)[: 1 + self.bidirectional]:
                weights = [getattr(self, name, None) for name in _names(f"_l{layer}{'_reverse' * reverse}")]
                state = next(starts)
                if step is _lstm and sizes is None and _is_plain((x, *weights, *state)):
                    output, end = _whole(x, weights, state, reverse)
                else:
                    output, end = _step_by_step(step, x, weights, state, reverse, sizes)
                outputs.append(output)
                ends.append(end)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = dropout(x, self.dropout)
        return x, tuple([stack(parts) for parts in zip(*ends, strict=True)])


class RNN(_Layers):
    """h' = tanh(x @ W_ih.T + b_ih + h @ W_hh.T + b_hh) over a sequence (L, N, H), or relu in place of tanh."""

    _options = weighted(
        "input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0, "
        "bidirectional=False, proj_size=0"
    )


class LSTM(_Layers):
    """Long short-term memory over a sequence (L, N, H); the state is (h, c)."""

    mode = "LSTM"


class GRU(_Layers):
    """Gated recurrent units over a sequence (L, N, H)."""

    mode = "GRU"


class _Cell(_Recurrent):
    """One step of a recurrent layer."""

    _options = weighted("input_size, hidden_size, bias=True")

    def _build(self, dtype: Any, **options: Any) -> None:
        super()._build(**options)
        self._gates(dtype, "", self.input_size, self.bias)
        self.reset_parameters()

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The next state. ValueError and RuntimeError for sizes that do not fit."""
        if self.mode not in _KINDS:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        name, (_, count, step) = type(self).__name__, _KINDS[self.mode]
        hidden = () if hx is None else tuple(hx) if count > 1 else (hx,)
        for what, h in (("input", input), *[("hidden", h) for h in hidden]):
            if h.ndim not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {h.ndim}D instead")
        x = input.unsqueeze(0) if input.ndim == 1 else input
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        shape = (x.shape[0], self.hidden_size)
        states = tuple([h.unsqueeze(0) if h.ndim == 1 else h for h in hidden]) or (x.new_zeros(shape),) * count
        for h in states:
            if tuple(h.shape) != shape:
                raise RuntimeError(f"hidden has inconsistent hidden_size: got {list(h.shape)}")
        after = step(linear(x, self.weight_ih, self.bias_ih), states, (self.weight_hh, self.bias_hh))
        after = tuple([h.squeeze(0) for h in after]) if input.ndim == 1 else after
        return after if count > 1 else after[0]


class RNNCell(_Cell):
    """One step of `RNN`. RuntimeError in a call for another nonlinearity than tanh and relu."""

    _options = weighted("input_size, hidden_size, bias=True, nonlinearity='tanh'")
    _usual = {"bias": True, "nonlinearity": "tanh"}
    mode = property(lambda self: f"RNN_{self.nonlinearity.upper()}")


class LSTMCell(_Cell):
    """One step of `LSTM`; the state is (h, c)."""

    mode = "LSTM"


class GRUCell(_Cell):
    """One step of `GRU`."""

    mode = "GRU"

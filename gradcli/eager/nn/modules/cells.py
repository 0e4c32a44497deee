"""Sizes go in, recurrent cells come out: one step from an entry of a sequence and a state to the next state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager.factory import empty
from gradcli.eager.joining import split
from gradcli.eager.nn import functional, init
from gradcli.eager.nn.modules.module import Module
from gradcli.eager.nn.parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.tensor import Tensor

    State = tuple[Tensor, ...]
    Step = Callable[[Tensor, State, tuple[Any, Any]], State]


def _parts(x: Tensor, count: int) -> tuple[Tensor, ...]:
    return split(x, x.shape[-1] // count, -1, node="UnsafeSplitBackward0")


def _tanh(given: Tensor, state: State, own: tuple[Any, Any]) -> State:
    found: Tensor = (functional.linear(state[0], *own) + given).tanh()
    return (found,)


def _relu(given: Tensor, state: State, own: tuple[Any, Any]) -> State:
    found: Tensor = (functional.linear(state[0], *own) + given).relu()
    return (found,)


def _lstm(given: Tensor, state: State, own: tuple[Any, Any]) -> State:
    hidden, cell = state
    enter, keep, new, leave = _parts(functional.linear(hidden, *own) + given, 4)
    cell = keep.sigmoid() * cell + enter.sigmoid() * new.tanh()
    found: Tensor = leave.sigmoid() * cell.tanh()
    return found, cell


def _gru(given: Tensor, state: State, own: tuple[Any, Any]) -> State:
    (hidden,) = state
    theirs, ours = _parts(given, 3), _parts(functional.linear(hidden, *own), 3)
    reset = (ours[0] + theirs[0]).sigmoid()
    update = (ours[1] + theirs[1]).sigmoid()
    new = (theirs[2] + ours[2] * reset).tanh()
    return ((hidden - new) * update + new,)


GATES = {"RNN_TANH": (1, 1, _tanh), "RNN_RELU": (1, 1, _relu), "LSTM": (4, 2, _lstm), "GRU": (3, 1, _gru)}


class _Cell(Module):
    gates: ClassVar[int] = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, dtype=dtype))
        self.register_parameter("bias_ih", Parameter(empty(rows, dtype=dtype)) if bias else None)
        self.register_parameter("bias_hh", Parameter(empty(rows, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again from new random numbers."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _stepped(self, input: Tensor, given: tuple[Any, ...], step: Step) -> State:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for one in given:
            if one is not None and one.ndim not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {one.ndim}D instead")
        single = input.ndim == 1
        x = input.unsqueeze(0) if single else input
        if x.shape[1] != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.shape[1]} expected {self.input_size}")
        zeros = x.new_zeros((x.shape[0], self.hidden_size))
        states = [zeros if one is None else one.unsqueeze(0) if one.ndim == 1 else one for one in given]
        for one in states:
            if tuple(one.shape) != (x.shape[0], self.hidden_size):
                raise RuntimeError(f"hidden has inconsistent hidden_size: got {list(one.shape)}")
        found = step(functional.linear(x, self.weight_ih, self.bias_ih), tuple(states), (self.weight_hh, self.bias_hh))
        return tuple([one.squeeze(0) for one in found]) if single else found

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else f", bias={self.bias}")


class RNNCell(_Cell):
    """One step of `RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state. RuntimeError for another nonlinearity than tanh and relu."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._stepped(input, (hx,), _tanh if self.nonlinearity == "tanh" else _relu)[0]

    def extra_repr(self) -> str:
        more = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + more


class LSTMCell(_Cell):
    """One step of `LSTM`; the state is (h, c)."""

    gates = 4

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """The next state."""
        hidden, cell = self._stepped(input, (None, None) if hx is None else tuple(hx), _lstm)
        return hidden, cell


class GRUCell(_Cell):
    """One step of `GRU`."""

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next state."""
        return self._stepped(input, (hx,), _gru)[0]

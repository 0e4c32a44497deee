"""Optimizers: groups of parameters with hyperparameters of their own, steps and state.

A subclass declares its hyperparameters, from which the constructor follows, and has the rule of a step, which writes
the new values of a parameter into its memory. Rules work entry by entry; on large arrays they are called block by
block, so that temporaries stay in the cache.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gradcli.eager._core import events
from gradcli.eager._core.modes import enable_grad, place, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._engine.arguments import constructor, options
from gradcli.eager.nn.parameter import clear

Array = Any
State = dict[str, Any]
Group = dict[str, Any]
_BLOCK = 32_768  # entries: a few arrays of so many stay in the cache
_COUNT = np.zeros((), np.float32)  # the steps that a parameter made are counted in single precision, as in PyTorch


def kept(state: State, name: str, like: Array, start: float = 0) -> Array:
    """An array of the state of a parameter; a missing one is filled with `start`, in both parts of complex entries."""
    if name not in state:
        full = complex(start, start) if like.dtype.kind == "c" else start
        state[name] = Tensor(np.full_like(like, full) if start else np.zeros_like(like))
    return state[name]._array


def by_blocks(rule: Callable[..., None], *arrays: Array) -> None:
    """Call a rule that works entry by entry on arrays of one shape, the first of which is a parameter's memory.

    It gets both parts of complex entries as numbers of their own.
    """
    if arrays[0].dtype.kind == "c":
        arrays = tuple([array[..., None].view(array.real.dtype) for array in arrays])
    size = arrays[0].size
    if size <= _BLOCK or not all(array.flags.c_contiguous for array in arrays):
        rule(*arrays)
        return
    rows = [array.reshape(-1) for array in arrays]
    for start in range(0, size, _BLOCK):
        rule(*[row[start : start + _BLOCK] for row in rows])


def lerp(old: Array, new: Array, weight: float) -> None:
    """Move an array in place towards another one, by a share of the distance."""
    away = new - old
    away *= weight
    old += away


def average_squares(mean: Array, new: Array, weight: float) -> None:
    """Move a running mean of squares in place: `weight` is how much of it stays."""
    square = new * new
    square *= 1 - weight
    mean *= weight
    mean += square


def root(x: Array) -> Array:
    """The square roots in a new array, for numbers too."""
    return np.sqrt(x, out=np.empty_like(x))


_AT_LEAST_ZERO = ("lr", "eps", "weight_decay", "momentum", "alpha", "rho", "lr_decay", "initial_accumulator_value")
_TITLES = {"lr": "learning rate", "eps": "epsilon value"}  # in errors


class Optimizer:
    """Base of optimizers.

    `params` are tensors, or dictionaries with `params` and options of their own. ValueError for no parameters and for
    computed ones, TypeError for what is not a tensor.

    A subclass declares `hyperparameters`, the arguments of the constructor after `params`, as Python writes them; those
    that only say how PyTorch computes (`foreach`, `fused`, `capturable`, `differentiable`) change nothing here.
    `_memory` names the arrays that are remembered of a parameter, each with the hyperparameter that has to be on for it
    ("" for none), and `_move` makes a step.
    """

    hyperparameters = ""
    _memory: Mapping[str, str] = {}

    def __init_subclass__(cls) -> None:
        if "hyperparameters" in vars(cls):
            cls.__init__ = constructor(options(f"params, {cls.hyperparameters}"), cls._start)  # type: ignore[method-assign]

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        """Check the hyperparameters and take the parameters; a subclass may check more."""
        if isinstance(defaults["lr"], Tensor) and defaults["lr"].numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name in _AT_LEAST_ZERO:
            if not defaults.get(name, 0) >= 0:
                raise ValueError(f"Invalid {_TITLES.get(name, f'{name} value')}: {defaults[name]}")
        for i, beta in enumerate(defaults.get("betas", ())):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        Optimizer.__init__(self, params, defaults)

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._steps = 0
        self._watched: int | None = None  # how many steps there were when the first scheduler was made
        events.report("making", self)
        if isinstance(params, Tensor):
            raise TypeError("params must be an iterable of tensors or dicts, not one tensor: put it in a list")
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own. ValueError for one that is there already."""
        listed = param_group["params"]
        if isinstance(listed, set):
            raise TypeError("the parameters of an optimizer need an order, which a set does not have: pass a list")
        xs: list[Any] = [listed] if isinstance(listed, Tensor) else list(listed)
        for x in xs:
            if not isinstance(x, Tensor):
                raise TypeError(f"optimizer can only optimize tensors, but one of the params is {type(x).__name__}")
            if not x.is_leaf and not x.retains_grad:
                raise ValueError("can't optimize a non-leaf tensor: it was computed, so a step would change nothing")
        if len({id(x) for x in xs}) != len(xs):
            warn("a parameter appears twice in one group of the optimizer", UserWarning)
        known = {id(x) for group in self.param_groups for x in group["params"]}
        if any(id(x) in known for x in xs):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({"params": xs} | {**self.defaults, **param_group, "params": xs})
        events.report("gathered", self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for group in self.param_groups:
            for x in group["params"]:
                clear(x, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; `closure` computes the loss first, which is returned."""
        loss, where = None, place()
        events.report("stepping", self)
        if closure is not None:
            with enable_grad():
                loss = closure()
        moved = []
        for group in self.param_groups:
            for x in group["params"]:
                if x._grad is None:
                    continue
                grad, alone = x._grad._raw, isinstance(x._raw, np.generic)
                array = np.array(x._raw) if alone else x._array
                self._update(x, array, -grad if group.get("maximize") else grad, group)
                if alone:  # a number stays one: numbers compute faster than arrays
                    x._raw = array[()]
                x._counter.bump(where)
                moved.append(x)
        self._steps += 1
        events.report("stepped", self, moved)
        return loss

    def _update(self, key: Tensor, x: Array, grad: Array, group: Group) -> None:
        """Write the new value of the parameter `key` into its memory `x`; `grad` is not changed."""
        state = self.state[key]
        count = kept(state, "step", _COUNT)
        count += 1
        step, decay, rate = float(count), group["weight_decay"], float(group["lr"])
        apart = rate * decay if group.get("decoupled_weight_decay") else 0.0

        def move(x: Array, grad: Array, *arrays: Array) -> None:
            if apart:
                x *= 1 - apart
            elif decay:
                grad = grad + decay * x
            self._move(group, step, rate, x, grad, *arrays)

        names = [name for name, option in self._memory.items() if not option or group[option]]
        by_blocks(move, x, grad, *[kept(state, name, x) for name in names])

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        """Write the new entries of a parameter into `x`, and into the arrays that are remembered."""
        raise NotImplementedError(f"{type(self).__name__} has no rule for a step")

    def state_dict(self) -> dict[str, Any]:
        """The state of each parameter and the options of the groups; parameters are numbered in their order."""
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for x in group["params"]:
                numbers.setdefault(id(x), len(numbers))
        groups = [{**group, "params": [numbers[id(x)] for x in group["params"]]} for group in self.param_groups]
        return {"state": {numbers.get(id(x), x): value for x, value in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the state of an optimizer with the same groups. ValueError where the groups differ."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        numbered: dict[int, Tensor] = {}
        for ours, theirs in zip(self.param_groups, groups, strict=True):
            if len(ours["params"]) != len(theirs["params"]):
                raise ValueError("loaded state dict contains a parameter group of a different size")
            numbered.update(zip(theirs["params"], ours["params"], strict=True))
            ours.update({name: copy.deepcopy(value) for name, value in theirs.items() if name != "params"})
        self.state = defaultdict(dict)
        for number, value in state_dict["state"].items():
            self.state[numbered[number]] = copy.deepcopy(value)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(("\n" if i else "") + f"Parameter Group {i}")
            lines.extend(f"    {name}: {group[name]}" for name in sorted(group) if name != "params")
        return "\n".join([*lines, ")"])


# --- the optimizers: every rule computes in the parameter's own format, in PyTorch's order of operations --------------


class SGD(Optimizer):
    """Gradient descent: x - lr*g, with momentum (Nesterov's too), weight decay and dampening.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([x], lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0., 0.], requires_grad=True)
    """

    hyperparameters = (
        "lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None, "
        "differentiable=False, fused=None"
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        if defaults["nesterov"] and (defaults["momentum"] <= 0 or defaults["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super()._start(params, **defaults)

    def _update(self, key: Tensor, x: Array, grad: Array, group: Group) -> None:
        rate, momentum, decay = float(group["lr"]), group["momentum"], group["weight_decay"]
        state: State = self.state[key] if momentum else {}
        first = bool(momentum) and state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = Tensor(np.empty_like(x))
        fresh = 1 - group["dampening"]

        def move(x: Array, grad: Array, *buffers: Array) -> None:
            if decay:
                grad = grad + decay * x
            for buffer in buffers:
                if first:
                    buffer[...] = grad
                else:
                    buffer *= momentum
                    buffer += fresh * grad
                grad = grad + momentum * buffer if group["nesterov"] else buffer
            x -= rate * grad

        by_blocks(move, x, grad, *([state["momentum_buffer"]._array] if momentum else []))


class Adam(Optimizer):
    """Steps by the averages of gradients and of their squares (Kingma and Ba, 2015); `amsgrad` keeps the largest.

    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.9000], requires_grad=True)
    """

    hyperparameters = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, maximize=False, foreach=None, "
        "capturable=False, differentiable=False, fused=None, decoupled_weight_decay=False"
    )
    _memory = {"exp_avg": "", "exp_avg_sq": "", "max_exp_avg_sq": "amsgrad"}

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        mean, square, *largest = arrays
        beta1, beta2 = group["betas"]
        lerp(mean, grad, 1 - beta1)
        average_squares(square, grad, beta2)
        for most in largest:
            square = np.maximum(most, square, out=most)
        away = root(square)
        away /= (1 - beta2**step) ** 0.5
        away += group["eps"]
        np.divide(mean, away, out=away)
        away *= rate / (1 - beta1**step)
        x -= away


class AdamW(Adam):
    """Adam with decoupled weight decay, which the averages do not contain (Loshchilov and Hutter, 2019)."""

    hyperparameters = (
        "lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None, "
        "capturable=False, differentiable=False, fused=None"
    )

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        super()._start(params, **defaults, decoupled_weight_decay=True)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi, Hazan and Singer, 2011)."""

    hyperparameters = (
        "lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False, "
        "differentiable=False, fused=None"
    )
    _memory = {"sum": ""}

    def _start(self, params: Iterable[Any], **defaults: Any) -> None:
        super()._start(params, **defaults)
        for group in self.param_groups:
            for x in group["params"]:
                kept(self.state[x], "step", _COUNT)
                kept(self.state[x], "sum", x._array, group["initial_accumulator_value"])

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        (total,) = arrays
        total += grad * grad
        x -= rate / (1 + (step - 1) * group["lr_decay"]) * (grad / (root(total) + group["eps"]))


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients (Hinton's lecture 6e)."""

    hyperparameters = (
        "lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, capturable=False, foreach=None, "
        "maximize=False, differentiable=False"
    )
    _memory = {"square_avg": "", "momentum_buffer": "momentum", "grad_avg": "centered"}

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        square, *more = arrays
        alpha, momentum = group["alpha"], group["momentum"]
        average_squares(square, grad, alpha)
        if group["centered"]:
            mean = more[-1]
            lerp(mean, grad, 1 - alpha)
            square = square - mean * mean
        away = grad / (root(square) + group["eps"])
        if momentum:
            buffer = more[0]
            buffer *= momentum
            buffer += away
            away = buffer
        x -= rate * away


class Adadelta(Optimizer):
    """Steps in the ratio of two running means: of squared steps and of squared gradients (Zeiler, 2012)."""

    hyperparameters = (
        "lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, maximize=False, capturable=False, "
        "differentiable=False"
    )
    _memory = {"square_avg": "", "acc_delta": ""}

    def _move(self, group: Group, step: float, rate: float, x: Array, grad: Array, *arrays: Any) -> None:
        square, moved = arrays
        rho, eps = group["rho"], group["eps"]
        average_squares(square, grad, rho)
        away = np.sqrt(moved + eps) / np.sqrt(square + eps) * grad
        average_squares(moved, away, rho)
        x -= rate * away

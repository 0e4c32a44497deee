"""PyTorch's `torch.amp`: mixed precision, which gradcli computes in the dtype of the operands, and scaled losses.

`autocast` is accepted and changes no dtype, which a warning says once. `GradScaler` multiplies a loss by a power of two
and divides the gradients by it again, and skips a step whose gradients are not finite, as PyTorch's does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from gradcli.eager._core import dtypes
from gradcli.eager._core.devices import cuda_is_available, device
from gradcli.eager._core.events import per_thread
from gradcli.eager._core.modes import once, warn
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.arguments import constructor, options

Optimizer = Any  # of `optim`, which stands on this module
__all__ = ["GradScaler", "autocast"]

_TARGETS = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
_own = per_thread(enabled=frozenset())  # the kinds of devices for which autocast is on in this thread


class autocast:
    """A context or decorator under which PyTorch computes products in half precision; here dtypes stay as they are.

    UserWarning, once, where it is enabled; and where the device is a GPU that is not there.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"expected device_type of type str, got {type(device_type)}")
        self.device = device(device_type).type
        self.fast_dtype = _TARGETS[self.device] if dtype is None else dtype
        if enabled and self.device == "cuda" and not cuda_is_available():
            warn("CUDA is not available: autocast is disabled", UserWarning)
            enabled = False
        if enabled and self.device == "cpu" and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            warn("autocast on the CPU supports bfloat16 and float16 only: it is disabled", UserWarning)
            enabled = False
        self._enabled = bool(enabled)

    def __enter__(self) -> Self:
        self._before = _own.enabled
        if self._enabled:
            once("autocast", "autocast changes nothing in gradcli: operations keep the dtype of their operands")
        _own.enabled = self._before | {self.device} if self._enabled else self._before - {self.device}
        return self

    def __exit__(self, *exc: object) -> None:
        _own.enabled = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled):
                return function(*args, **kwargs)

        return inside


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether a block of `autocast` for this kind of device is open."""
    return device_type in _own.enabled


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that PyTorch would compute products in."""
    return _TARGETS[device(device_type).type]


class GradScaler:
    """Scales losses, so that small gradients survive in half precision, and the gradients back before a step.

    With `enabled=False`, or for a GPU that is not there (UserWarning), everything passes unchanged.

    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer, scaler = torch.optim.SGD([w], lr=0.25), GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w, scaler.get_scale()
    (tensor([0.5000], requires_grad=True), 65536.0)
    """

    def _start(self, device: str, init_scale: float, enabled: bool, **state: Any) -> None:
        if enabled and device == "cuda" and not cuda_is_available():
            warn("GradScaler is enabled, but CUDA is not available: it is disabled", UserWarning)
            enabled = False
        if enabled and not state["backoff_factor"] < 1 < state["growth_factor"]:
            raise AssertionError("the growth factor must be > 1.0, and the backoff factor < 1.0")
        self._enabled, self._state = enabled, {"scale": init_scale, **state, "_growth_tracker": 0}
        self._finite: dict[int, bool] = {}  # by optimizer, whether the gradients that were scaled back are finite

    _options = options("device='cuda', init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5")
    __init__ = constructor([*_options, *options("growth_interval=2000, enabled=True")], _start)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or the tensors of a list or tuple, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(output) for output in outputs])
        return outputs * self._state["scale"]

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale. RuntimeError where that is done since the last update()."""
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        grads = [x._grad for group in optimizer.param_groups for x in group["params"] if x._grad is not None]
        self._finite[id(optimizer)] = all(bool(np.isfinite(grad._array).all()) for grad in grads)
        for grad in grads:
            grad.detach().mul_(1.0 / self._state["scale"])

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, on gradients that are scaled back; skipped where one is not finite."""
        if self._enabled and id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        return optimizer.step(*args, **kwargs) if self._finite.get(id(optimizer), True) else None

    def update(self) -> None:
        """Take a smaller scale after gradients that were not finite, a larger one after many that were."""
        if not self._enabled:
            return
        state, finite = self._state, all(self._finite.values())
        state["_growth_tracker"] += 1
        if not finite or state["_growth_tracker"] == state["growth_interval"]:
            state["scale"] *= state["growth_factor" if finite else "backoff_factor"]
            state["_growth_tracker"] = 0
        self._finite = {}

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1 where losses are not scaled."""
        return float(self._state["scale"]) if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """The scale and how it changes; empty where losses are not scaled."""
        return dict(self._state) if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict()`."""
        if self._enabled:
            self._state = {name: state_dict[name] for name in self._state}


def deprecated(kind: str) -> dict[str, Any]:
    """The names of `torch.cuda.amp`, which need no device; each use is a FutureWarning."""

    def said(name: str) -> None:
        warn(f"torch.{kind}.amp.{name} is deprecated: use torch.amp.{name}({kind!r}, ...)", FutureWarning)

    class Autocast(autocast):
        def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
            said("autocast")
            super().__init__(kind, dtype, enabled)

    class Scaler(GradScaler):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            said("GradScaler")
            super().__init__(kind, *args, **kwargs)

    return {"autocast": Autocast, "GradScaler": Scaler}


__getattr__, __dir__ = room("amp", __all__)

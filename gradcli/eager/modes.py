"""A block of code, function or generator goes in; whether operations in it leave nodes is what changes.

Each mode is a context and a decorator. Around a generator it is switched back between yields.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from gradcli.eager.state import PLAIN, SILENT, SPECIAL, recording, state, warn


def is_grad_enabled() -> bool:
    """Whether operations leave nodes here."""
    return recording() if not state.inference else state.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on here."""
    return state.inference


class _Mode:
    """A context that sets flags and sets them back; nested uses of one object are kept in order."""

    grad: bool | None = None
    inference: bool | None = None

    def __init__(self) -> None:
        self.before: list[tuple[bool, bool]] = []

    def again(self) -> _Mode:
        """Another context of the same kind."""
        return type(self)()

    def __enter__(self) -> None:
        self.before.append((state.grad_enabled, state.inference))
        if self.grad is not None:
            state.grad_enabled = self.grad
        if self.inference is not None:
            state.inference = self.inference

    def __exit__(self, *exc: object) -> None:
        grad, inference = self.before.pop()
        if inference is state._inference and state.mode != SPECIAL:
            state._grad, state.mode = grad, PLAIN if grad else SILENT
        else:
            state.grad_enabled, state.inference = grad, inference

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            warn(
                "decorating a class with a grad mode is deprecated and affects __init__ only: decorate methods",
                FutureWarning,
            )
            setattr(function, "__init__", self(function.__init__))  # noqa: B010 - a method of the user's class
            return function
        again = self.again
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def stepwise(*args: Any, **kwargs: Any) -> Any:
                with again():
                    inner = function(*args, **kwargs)
                    step = functools.partial(next, inner)
                while True:
                    try:
                        with again():
                            value = step()
                    except StopIteration as end:
                        return end.value
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with again():
                            inner.close()
                        raise
                    except BaseException as thrown:
                        step = functools.partial(inner.throw, thrown)
                    else:
                        step = functools.partial(inner.send, sent)

            return stepwise

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        return inside


def _direct(cls: type[_Mode], function: Any) -> Any:
    """`@no_grad` without parentheses decorates at once."""
    made = object.__new__(cls)
    made.__init__()  # type: ignore[misc]
    return made(function) if function is not None else made


class no_grad(_Mode):
    """Operations inside leave no nodes."""

    grad = False

    def __new__(cls, function: Any = None) -> Any:
        return object.__new__(cls) if function is None else _direct(cls, function)

    def __init__(self, function: Any = None) -> None:
        self.before = []

    def __enter__(self) -> None:  # the general way without its questions: training steps come here often
        self.before.append((state._grad, state._inference))
        state._grad = False
        if state.mode == PLAIN:
            state.mode = SILENT


class enable_grad(_Mode):
    """Operations inside leave nodes again, in a `no_grad` block too."""

    grad = True

    def __new__(cls, function: Any = None) -> Any:
        return super().__new__(cls) if function is None else _direct(cls, function)

    def __init__(self, function: Any = None) -> None:
        super().__init__()


class inference_mode(_Mode):
    """Operations inside leave no nodes, and their results can never be saved for a backward."""

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else _direct(cls, mode)

    def __init__(self, mode: Any = True) -> None:
        super().__init__()
        self.mode = mode if isinstance(mode, bool) else True
        self.inference = self.mode
        self.grad = False if self.mode else None

    def again(self) -> _Mode:
        made: _Mode = inference_mode(self.mode)
        return made


class set_grad_enabled(_Mode):
    """Recording on or off: at once when called, and back at the end of a `with` block."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self.grad = self.mode
        self.old = (state.grad_enabled, state.inference)
        state.grad_enabled = self.mode

    def __enter__(self) -> None:
        self.before.append(self.old)
        state.grad_enabled = self.mode

    def __call__(self, function: Any) -> Any:
        state.grad_enabled = self.old[0]  # as a decorator it must not change the mode outside
        return super().__call__(function)

    def again(self) -> _Mode:
        return set_grad_enabled(self.mode)

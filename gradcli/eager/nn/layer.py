"""Layers without parameters, each declared by its function.

`layer("Softplus", softplus)` is a module whose constructor takes the options of `softplus`, keeps them as attributes,
passes them on in `forward`, and prints them.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from gradcli.eager._engine.arguments import constructor
from gradcli.eager.nn.composite import reduction_of
from gradcli.eager.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OLD_SWITCHES = ("size_average", "reduce")  # of losses: they become `reduction`


class Layer(Module):
    """A function of tensors with its options as attributes; options that are tensors are buffers."""

    _function: ClassVar[Callable[..., Any]]
    _options: ClassVar[tuple[str, ...]] = ()
    _tensors: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[str | None] = None

    def _start(self, **options: Any) -> None:
        Module.__init__(self)
        old = [options.pop(name, None) for name in _OLD_SWITCHES]
        if old != [None, None]:
            options["reduction"] = reduction_of("mean", *old)
        self._keep(**options)

    def _keep(self, **options: Any) -> None:
        """Make the options attributes; a subclass may check or change them first."""
        for name, value in options.items():
            if name in self._tensors:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The function of the inputs."""
        return type(self)._function(*inputs, **named, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self) -> str:
        if self._shown is not None:
            return self._shown.format(self=self)
        values = {name: getattr(self, name) for name in self._options if name != "training"}
        return ", ".join([f"{name}={value!r}" for name, value in values.items() if name != "inplace" or value])


def layer(
    name: str,
    function: Callable[..., Any],
    *,
    inputs: int = 1,
    leave_out: Sequence[str] = (),
    last: str = "",
    keyword_only: bool = False,
    base: type[Layer] = Layer,
    shown: str | None = None,
) -> type[Any]:
    """The module of a function whose first arguments are the inputs of `forward`, the others its options.

    `training` is the module's own. `last` names an option that the constructor takes last. `shown` is what the printed
    module says of itself, `{self.name}` for an option; without it all options are printed.

    >>> def scale(input, factor=2.0):
    ...     return input * factor
    >>> layer("Scale", scale)(3.0), layer("Scale", scale)(3.0)(1.0)
    (Scale(factor=3.0), 3.0)
    """
    given = [one for one in list(inspect.signature(function).parameters.values())[inputs:] if one.name not in leave_out]
    kind = inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    options = [one.replace(kind=kind) for one in given if one.name != "training"]
    options.sort(key=lambda one: one.name == last)
    body = {
        "__module__": function.__module__,
        "__qualname__": name,
        "__doc__": f"`functional.{function.__name__}` as a module: {inspect.getdoc(function) or ''}".partition("\n")[0],
        "__init__": constructor(options, base._start),
        "_function": staticmethod(function),
        "_options": tuple([one.name for one in given if one.name not in _OLD_SWITCHES]),
        "_tensors": tuple([one.name for one in given if one.annotation == "Tensor | None"]),
        "_shown": base._shown if shown is None else shown,
    }
    return type(name, (base,), body)

"""PyTorch's `torch.func`: transforms of functions, such as `grad`, `vjp`, `jvp`, `jacrev` and `vmap`.

`functional_call` is defined here: it calls a module with other values for its parameters, without changing the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._ops.tensor_joining import stack
from gradcli.eager.func._batching import vmap
from gradcli.eager.func._derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.eager.nn._module import Module

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state"]
__all__ += ["vjp", "vmap"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of parameters and buffers, named by their dotted names.

    Unknown names become attributes during the call; with `strict`, unknown and missing names raise RuntimeError. Raises
    AttributeError for an unknown module, TypeError for anything but a tensor, ValueError for a name that comes twice.

    >>> layer = torch.nn.Linear(1, 1)
    >>> functional_call(layer, {"weight": torch.ones(1, 1), "bias": torch.zeros(1)}, torch.ones(1))
    tensor([1.])
    """
    dictionaries = (
        [parameter_and_buffer_dicts] if hasattr(parameter_and_buffer_dicts, "items") else parameter_and_buffer_dicts
    )
    values: dict[str, Tensor] = {}
    for dictionary in dictionaries:
        for name, value in dictionary.items():
            if name in values:
                raise ValueError(f"{name} appears in two dictionaries")
            values[name] = value
    held: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    held.update(module.named_buffers(remove_duplicate=False))
    if strict and held.keys() != values.keys():
        missing, unknown = sorted(held.keys() - values.keys()), sorted(values.keys() - held.keys())
        raise RuntimeError(f"functional_call: missing keys {missing}, unexpected keys {unknown}")
    swapped: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for name, value in values.items():
            tied = [other for other, x in held.items() if x is held[name]] if tie_weights and name in held else [name]
            for table, own in [_place(module, other) for other in tied]:
                swapped.append((table, own, table.get(own)))
                table[own] = value
        positional = args if isinstance(args, tuple) else () if args is None else (args,)
        return module(*positional, **(kwargs or {}))
    finally:
        for table, own, before in reversed(swapped):
            if before is None:
                del table[own]
            else:
                table[own] = before


def _place(module: Module, name: str) -> tuple[dict[str, Any], str]:
    """Where a tensor is stored, by its dotted name: the dictionary and the key. TypeError for what is no tensor."""
    path, _, own = name.rpartition(".")
    owner = module.get_submodule(path)
    for table in (owner._parameters, owner._buffers):
        if table.get(own) is not None:
            return table, own
    if not isinstance(vars(owner).get(own), Tensor | None):
        raise TypeError(f"{name} is {type(vars(owner)[own]).__name__}, so a tensor cannot replace it")
    return vars(owner), own


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of models of one class, each stacked along a new axis: for `vmap` over models.

    Raises RuntimeError without models, for different classes or modes, and if only some parameters require a gradient.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    tables = [(dict(model.named_parameters()), dict(model.named_buffers())) for model in models]
    parameters = {}
    for name, value in tables[0][0].items():
        if any(own[name].requires_grad is not value.requires_grad for own, _ in tables):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        parameters[name] = stack([own[name].detach() for own, _ in tables]).requires_grad_(value.requires_grad)
    buffers = {name: stack([own[name] for _, own in tables]) for name in tables[0][1]}
    return parameters, buffers


__getattr__, __dir__ = room("func", __all__)

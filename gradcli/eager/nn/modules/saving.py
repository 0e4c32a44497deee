"""A module goes in, its state by dotted names comes out, and back; files are no matter of this module."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.eager.modes import no_grad
from gradcli.eager.nn.parameter import is_lazy
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping


class IncompatibleKeys(NamedTuple):
    """The keys that a state lacked, and those that nothing asked for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def save(module: Any, prefix: str, keep_vars: bool) -> OrderedDict[str, Any]:
    """Parameters and persistent buffers by their dotted names, without their history unless `keep_vars`."""
    found: OrderedDict[str, Any] = OrderedDict()
    for path, one in module.named_modules(remove_duplicate=False):
        start = f"{prefix}{path}." if path else prefix
        for name, value in (*one._parameters.items(), *one._buffers.items()):
            if value is not None and name not in one._non_persistent:
                found[start + name] = value if keep_vars or is_lazy(value) else value.detach()
    return found


def load(module: Any, state: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Copy values into a module, or with `assign` put the tensors themselves there."""
    wanted: dict[str, tuple[Any, str, Any]] = {}
    for path, one in module.named_modules(remove_duplicate=False):
        start = f"{path}." if path else ""
        for name, value in (*one._parameters.items(), *one._buffers.items()):
            if value is not None and name not in one._non_persistent:
                wanted[start + name] = (one, name, value)
    missing = [name for name in wanted if name not in state]
    unexpected = [name for name in state if name not in wanted]
    problems = []
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_listed(unexpected)}. ")
    if strict and missing:
        problems.insert(0, f"Missing key(s) in state_dict: {_listed(missing)}. ")
    for name, (owner, own, value) in wanted.items():
        if name not in state:
            continue
        given = state[name]
        if not isinstance(given, Tensor):
            problems.append(f'While copying the parameter named "{name}", a tensor was expected.')
        elif is_lazy(value) and is_lazy(given):
            continue
        elif is_lazy(value):
            value.materialize(given.shape)
            with no_grad():
                value.copy_(given)
        elif given.shape != value.shape:
            problems.append(
                f"size mismatch for {name}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {value.shape}."
            )
        elif assign:
            _put(owner, own, value, given)
        else:
            with no_grad():
                value.copy_(given)
    if problems:
        text = "".join(f"\n\t{problem}" for problem in problems)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:{text}")
    return IncompatibleKeys(missing, unexpected)


def _put(owner: Any, name: str, old: Any, given: Tensor) -> None:
    from gradcli.eager.nn.parameter import Parameter

    if name in owner._parameters:
        owner._parameters[name] = given if isinstance(given, Parameter) else Parameter(given, old.requires_grad)
    else:
        owner._buffers[name] = given


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)

"""Reads tensors of the installed PyTorch for a record: numbers, flags, nodes and entries.

Entries in main memory are read where they are, through NumPy. Of a large tensor on another device nothing but numbers
is copied: norms are computed there and fetched together, the first time that one of them is needed.
"""

from __future__ import annotations

import itertools
import os
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.base.results.graph_vertices import Extent
from gradcli.recording.runs.tensors import SMALL, ArrayNorm, SeenTensor, TensorFacts, TensorReader, size_of, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.recording.runs.tensors import Step

LOW, HIGH = 1e-10, 1e15  # of a norm in single precision that neither lost nor overflowed anything

THREADED = 1 << 17  # entries from which on PyTorch's threads are worth their start
HELD = 8  # gradients that are kept until they arrive
WAITING = 1 << 24  # bytes of gradients that are kept until it is known whether they are finite


class Fetched:
    """A few numbers on a device, fetched with all others that wait there."""

    __slots__ = ("_tensors", "_values")

    def __init__(self, tensors: TorchTensors, values: Any) -> None:
        self._tensors, self._values = tensors, values
        tensors.waiting.append(self)

    @property
    def values(self) -> list[float]:
        """The numbers."""
        if not isinstance(self._values, list):
            self._tensors.fetch()
        values: list[float] = self._values
        return values

    def __float__(self) -> float:
        return self.values[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fetched) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]


class FetchedSize(ArrayNorm):
    """The size of a tensor on a device."""

    __slots__ = ("_norm",)

    def __init__(self, norm: Fetched) -> None:
        self._norm = norm

    @property
    def norm(self) -> float:  # type: ignore[override]
        """The norm."""
        return float(self._norm)

    @property
    def finite(self) -> bool:  # type: ignore[override]
        """Whether every entry is finite; computed in double precision, where squares of singles do not overflow."""
        norm = float(self._norm)
        return norm - norm == 0


class TorchTensors(TensorReader):
    """Reads tensors of the installed PyTorch."""

    layer_call = ("torch.nn.modules.module", "_wrapped_call_impl")

    def __init__(self, torch: Any, host: frozenset[str] = frozenset(("cpu",))) -> None:
        self.torch, self.kind, self.optimizer = torch, torch.Tensor, torch.optim.Optimizer
        self.library = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.host = host  # the devices whose memory is read where it is
        self.waiting: list[Fetched] = []
        self.norms = (torch.float32, torch.float64)  # formats whose norm PyTorch takes, in its own threads
        self.unread: dict[str, str] = {}  # classes of tensors whose entries could not be read, and why
        self.added_to: dict[int, int] = {}  # mark of a leaf: how many backwards have added into its .grad
        self._known: dict[int, tuple[Any, int, int | None]] = {}  # id: reference, mark, number of the node at that time
        self.classes = (torch.Tensor, torch.nn.Parameter)
        self._passed: dict[int, tuple[Any, int, ArrayNorm]] = {}  # what was sent, by its id, until it arrives
        self._doubtful: list[
            tuple[Step, ArrayNorm, Any, Any, tuple[int, int]]
        ] = []  # what arrived at a node, what it sent
        self._bytes = 0  # of these
        self._copied: tuple[Any, int, Any] = (None, 0, None)  # what was copied last from a device
        self._key = object()  # under which a node carries its number
        self._numbers = itertools.count(1)
        functorch = getattr(torch._C, "_functorch", None)
        self._wrapped = getattr(functorch, "is_functorch_wrapped_tensor", lambda value: False)
        self._batched = getattr(functorch, "is_legacy_batchedtensor", lambda value: False)
        self._level = getattr(functorch, "maybe_current_level", lambda: None)
        self._packed = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda traced: True)

    # --- tensors --------------------------------------------------------------------------------------------------

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor that has entries; one inside a transform of torch.func has none of its own."""
        kind = type(value)
        if kind not in self.classes:
            if not issubclass(kind, self.kind) or kind.__module__.startswith("torch._subclasses"):
                return False
        return not self._wrapped(value)

    def transforming(self) -> bool:
        """Whether a transform of torch.func runs: its values have no entries."""
        return self._level() is not None

    def packing(self) -> bool:
        """Whether hooks pack what nodes save (`saved_tensors_hooks`, a checkpoint), and unpack it where it is read."""
        try:
            return bool(self._packed(True))
        except TypeError:  # a version without this argument
            return True

    def batched(self, gradients: Any) -> bool:
        """Whether a backward starts from several gradients at once (`is_grads_batched`)."""
        return any(isinstance(x, self.kind) and self._batched(x) for x in gradients)

    def mark(self, tensor: Any) -> int:
        """Its number in a record; -1 for none, and where another node stands for it since."""
        known = self._known.get(id(tensor))
        return -1 if known is None or known[2] != self.seq(tensor) else known[1]

    def set_mark(self, tensor: Any, mark: int) -> None:
        """Give it a number, which it loses when it dies."""
        self.entered(tensor, mark, self.seq(tensor))

    def entered(self, tensor: Any, mark: int, seq: int | None) -> tuple[int, int] | None:
        at = id(tensor)
        known = self._known.get(at)
        held = weakref.ref(tensor, partial(self._forget, at)) if known is None else known[0]
        self._known[at] = (held, mark, seq)
        return None if seq is None else (seq, tensor.output_nr)

    def _forget(self, at: int, _: Any) -> None:
        self._known.pop(at, None)

    def requires(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def node(self, tensor: Any) -> Any:
        """The node that made it; a view that was made and written to under no_grad refuses to say that it has none."""
        try:
            return tensor.grad_fn
        except RuntimeError:
            return None

    def seq(self, tensor: Any) -> int | None:
        node = self.node(tensor)
        return None if node is None else self.number(node)

    def place(self, tensor: Any) -> tuple[int, int] | None:
        node = self.node(tensor)
        return None if node is None else (self.number(node), tensor.output_nr)

    def number(self, node: Any) -> int:
        """The number of a node, which it carries in its metadata: those of PyTorch are counted by thread."""
        held = node.metadata
        number: int | None = held.get(self._key)
        if number is None:
            number = held[self._key] = next(self._numbers)
        return number

    def version(self, tensor: Any) -> int:
        try:
            return int(tensor._version)
        except RuntimeError:  # made in inference mode
            return 0

    def memory(self, tensor: Any) -> int:
        try:
            return int(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):  # sparse, or of a class without entries of its own
            return id(tensor)

    def base(self, tensor: Any) -> Any:
        return tensor._base

    def grad(self, tensor: Any) -> Any:
        return tensor.grad if self.node(tensor) is None or tensor.retains_grad else None

    def added(self, tensor: Any) -> int:
        return self.added_to.get(self.mark(tensor), 0)

    def facts(self, tensor: Any, extents: bool) -> TensorFacts:
        shape = tuple(tensor.shape) if not tensor.is_nested else ()
        try:
            size, value = self.size(tensor, extents), self.kept(tensor, extents)
        except (RuntimeError, TypeError) as problem:  # a class of tensors whose entries are not to be had
            size, value = ArrayNorm(0.0, True), None
            self.unread[type(tensor).__name__] = str(problem).partition("\n")[0]
        return TensorFacts(tensor.requires_grad, self.seq(tensor), spoken(tensor.dtype), shape, size, value)

    def subject(self, tensor: Any, name: str, scope: str, size: ArrayNorm | None) -> SeenTensor:
        node, grad = self.node(tensor), self.grad(tensor)
        return SeenTensor(
            name,
            scope,
            node is None,
            tensor.requires_grad,
            tensor.retains_grad,
            tensor.is_floating_point() or tensor.is_complex(),
            spoken(tensor.dtype),
            "" if node is None else name_of(node),
            tuple(tensor.shape) if not tensor.is_nested else (),
            isinstance(tensor, self.torch.nn.Parameter),
            None if grad is None else size or self.size(grad),
        )

    # --- entries --------------------------------------------------------------------------------------------------

    def plain(self, value: Any) -> Any:
        """The entries as a tensor without history that every kernel can read; None where there are none."""
        value = value.detach()
        if value.is_nested or value.layout is not self.torch.strided:
            if value.is_sparse:
                value = value.coalesce().values()
            elif value.is_nested or value.layout is not self.torch._mkldnn:
                value = value.values()
            else:
                value = value.to_dense()
        if value.is_meta:
            return None
        return value.dequantize() if value.is_quantized else value

    def array(self, value: Any) -> Any:
        plain = self.plain(value)
        if plain is None:
            return np.zeros(0)
        if plain.device.type != "cpu":
            if self._copied[0] is not value or self._copied[1] != value._version:
                self._copied = value, value._version, plain.cpu()  # norm and entries are read one after the other
            plain = self._copied[2]
        if spoken(plain.dtype) not in NUMPY:
            plain = plain.float()
        return plain.resolve_conj().resolve_neg().numpy()

    def far(self, value: Any) -> Any:
        """The entries of a large tensor on a device, as a plain tensor; None for others, which are read at once."""
        if value.device.type in self.host or value.is_meta:
            return None
        plain = self.plain(value)
        return plain if plain.numel() > SMALL else None

    def fetch(self) -> None:
        """Copy the numbers that wait from their devices, with one copy each."""
        waiting, self.waiting = self.waiting, []
        devices: dict[Any, dict[tuple[Any, bool], list[Fetched]]] = {}
        for fetched in waiting:
            tensor = fetched._values
            devices.setdefault(tensor.device, {}).setdefault((tensor.dtype, tensor.ndim > 0), []).append(fetched)
        for device, kinds in devices.items():
            wide = self._wide(device)
            lines = []
            for (_, line), alike in kinds.items():  # as few launches as kinds of numbers
                tensors = [fetched._values for fetched in alike]
                lines.append((self.torch.cat(tensors) if line else self.torch.stack(tensors)).to(wide))
            numbers = iter(self.torch.cat(lines).tolist())
            for fetched in itertools.chain(*kinds.values()):
                fetched._values = list(itertools.islice(numbers, fetched._values.numel()))

    def _wide(self, device: Any) -> Any:
        """The format in which norms are computed on a device."""
        return self.torch.float32 if device.type == "mps" else self.torch.float64

    def size(self, value: Any, exact: bool = False) -> ArrayNorm:
        far = self.far(value)
        if far is None:
            near = value.device.type in self.host and value.dtype in self.norms
            if near and not exact and value.layout is self.torch.strided:
                return self._near(value.detach())
            return super().size(value, exact)
        if not (far.is_floating_point() or far.is_complex()):
            return ArrayNorm(0.0, True)
        kind = self.torch.complex128 if far.is_complex() else self._wide(far.device)
        return FetchedSize(Fetched(self, self.torch.linalg.vector_norm(far, dtype=kind)))

    def sizes(self, values: Sequence[Any]) -> list[ArrayNorm]:
        """The sizes of some tensors; the norms of those on a device are computed together."""
        far = {k: y for k, x in enumerate(values) if (y := self.far(x)) is not None and y.is_floating_point()}
        if not far:
            return list(map(self.size, values))
        entries = list(far.values())
        norms = self.torch._foreach_norm(entries, 2, dtype=self._wide(entries[0].device))
        fetched: dict[int, ArrayNorm] = {
            k: FetchedSize(Fetched(self, norm)) for k, norm in zip(far, norms, strict=True)
        }
        return [fetched[k] if k in fetched else self.size(x) for k, x in enumerate(values)]

    def copied(self, tensor: Any) -> Any:
        return tensor.detach().clone()

    def _near(self, value: Any) -> ArrayNorm:
        """The size of a dense tensor in main memory, in single or double precision."""
        if value.numel() < THREADED and not value.is_neg():
            return size_of(value.numpy())
        norm = self.torch.linalg.vector_norm(value).item()
        if LOW < norm < HIGH:
            return ArrayNorm(norm, True)
        if norm == 0 and not value.any():
            return ArrayNorm(0.0, True)
        if value.dtype is self.torch.float64:
            return super().size(value)
        norm = self.torch.linalg.vector_norm(value, dtype=self.torch.float64).item()  # squares do not overflow there
        return ArrayNorm(norm, norm - norm == 0)

    def sent(self, value: Any, exact: bool) -> ArrayNorm:
        """The size of what a node sends to another: most of it arrives as it is, unless a hook changes it."""
        size = self.size(value, exact)
        if len(self._passed) >= HELD:
            self._passed.clear()
        self._passed[id(value)] = (value, value._version, size)
        return size

    def arrived(self, value: Any, exact: bool) -> ArrayNorm:
        known = self._passed.pop(id(value), None)
        if known is None or known[0] is not value or known[1] != value._version:
            return self.size(value, exact)
        return known[2]

    def overwritten(self, value: Any) -> bool:
        known = self._passed.get(id(value))
        return known is not None and known[0] is value and known[1] != value._version

    def swept(self) -> None:
        """A backward is over."""
        self._passed.clear()
        self._copied = (None, 0, None)
        self.settle()

    def kept(self, value: Any, extents: bool) -> Any:
        if not extents and value.numel() > SMALL:
            return None
        far = self.far(value)
        return super().kept(value, extents) if far is None else self._extent(far)

    def _extent(self, far: Any) -> Extent:
        far = far.abs() if far.is_complex() else far
        sound = far[far.isfinite()].double()
        rest, shape = far.numel() - sound.numel(), tuple(far.shape)
        if not sound.numel():
            return Extent(shape, float("nan"), float("nan"), float("nan"), rest)
        low, high, norm = self.torch.stack([sound.min(), sound.max(), self.torch.linalg.vector_norm(sound)]).tolist()
        return Extent(shape, low + 0.0, high + 0.0, norm, rest)

    def is_zero(self, value: Any) -> bool:
        far = self.far(value)
        return super().is_zero(value) if far is None else not far.any()

    def probe(self, value: Any) -> Any:
        far = self.far(value)
        if far is None:
            return super().probe(value)
        line = far.abs() if far.is_complex() else far
        return Fetched(self, line.reshape(-1)[:: max(1, line.numel() // 2)])

    def unit_signs(self, value: Any) -> Any:
        far = self.far(value)
        if far is None:
            return super().unit_signs(value)
        rows = far.reshape(-1, far.shape[-1])
        return Fetched(self, self.torch.cat([~rows.any(dim=0), (rows > 0).all(dim=0)]))

    def note_stuck(self, step: Step, arrived: Any, sent: Any, size: ArrayNorm) -> None:
        if self.far(sent) is None:
            super().note_stuck(step, arrived, sent, size)
        elif arrived.shape == sent.shape:
            versions = arrived._version, sent._version
            self._doubtful.append((step, size, arrived.detach(), sent.detach(), versions))
            self._bytes += sent.nbytes
            if self._bytes > WAITING:
                self.settle()

    def settle(self) -> None:
        """Look at the gradients that were kept, now that their norms are fetched together."""
        for step, size, arrived, sent, versions in self._doubtful:
            if not size.finite and (arrived._version, sent._version) == versions:
                step.stuck_shares.append(Fetched(self, (~self.plain(sent).isfinite() & (arrived == 0)).double().mean()))
        self._doubtful.clear()
        self._bytes = 0

    # --- where the run stands -------------------------------------------------------------------------------------

    def mode(self) -> str:
        if self.torch.is_inference_mode_enabled():
            return "inference"
        return "grad" if self.torch.is_grad_enabled() else "no_grad"


NUMPY = frozenset(
    ("float16", "float32", "float64", "complex64", "complex128", "bool", "uint8", "int8", "int16", "int32", "int64")
)


def name_of(node: Any) -> str:
    """The name of a node without its namespace."""
    name: str = type(node).__name__
    return name if name != "CppFunction" else node.name().rpartition("::")[2]

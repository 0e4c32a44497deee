"""Arrays of JAX, and the record of a run: what `why` reads of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.recording.calls.gradient_libraries import JAX, untested
from gradcli.recording.runs.run_record import Watch
from gradcli.recording.runs.tensors import ArrayNorm, SeenTensor, TensorFacts, TensorReader, kept, size_of
from gradcli.recording.runs.variable_names import subjects_of

if TYPE_CHECKING:
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry

KINDS = {  # what operations of JAX are called that have another name in `why/readings.py`
    "dot_general": "Mm",
    "conv_general_dilated": "Convolution",
    "select_n": "Where",
    "reduce_max": "Amax",
    "max": "Maximum",
    "min": "Minimum",
    "reduce_min": "Amin",
    "reduce_sum": "Sum",
    "gather": "Index",
    "dynamic_slice": "Index",
    "broadcast_in_dim": "Expand",
    "reshape": "View",
    "transpose": "Permute",
    "convert_element_type": "ToCopy",
    "logistic": "Sigmoid",
    "integer_pow": "Pow",
    "scatter": "CopySlices",
    "copy": "Clone",
    "eigh": "LinalgEigh",
    "eig": "LinalgEig",
    "svd": "LinalgSvd",
    "qr": "LinalgQr",
    "square": "Pow",
}
SHOWN = {kind: name for name, kind in reversed(KINDS.items()) if kind != "Pow"}  # pow, whatever JAX makes of it
NEVER = type("Never", (), {})
SMALL = 100  # parts of a container that are looked at


class JaxTensors(TensorReader):
    """Reads arrays of JAX."""

    kind: Any

    layer_call = ("", "")
    optimizer = NEVER
    dialect = JAX

    def __init__(self, jax: Any) -> None:
        self.jax, self.kind = jax, jax.Array
        self.library = os.path.dirname(jax.__file__) + os.sep
        self.marks: dict[int, tuple[Any, int]] = {}  # by the identity of an array, which is held for as long

    def shown(self, name: str) -> str:
        return SHOWN.get(name, name if not name.isidentifier() else name[:1].lower() + name[1:])

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.kind) and not isinstance(value, self.jax.core.Tracer) and plain(value.dtype)

    def mark(self, tensor: Any) -> int:
        known = self.marks.get(id(tensor))
        return -1 if known is None else known[1]

    def set_mark(self, tensor: Any, mark: int) -> None:
        self.marks[id(tensor)] = tensor, mark

    def requires(self, tensor: Any) -> bool:
        return False

    def place(self, tensor: Any) -> tuple[int, int] | None:
        return None

    def version(self, tensor: Any) -> int:
        return 0

    def memory(self, tensor: Any) -> int:
        return id(tensor)

    def base(self, tensor: Any) -> Any:
        return None

    def grad(self, tensor: Any) -> Any:
        return None

    def added(self, tensor: Any) -> int:
        return 1

    def facts(self, tensor: Any, extents: bool) -> TensorFacts:
        array = self.array(tensor)
        dtype = str(getattr(tensor, "dtype", array.dtype))
        return TensorFacts(False, None, dtype, array.shape, size_of(array), kept(array, extents))

    def subject(self, tensor: Any, name: str, scope: str, size: ArrayNorm | None) -> SeenTensor:
        dtype = str(tensor.dtype)
        return SeenTensor(name, scope, True, False, False, "float" in dtype, dtype, "", np.shape(tensor), False, size)

    def array(self, value: Any) -> Any:
        if not plain(getattr(value, "dtype", None)):
            return np.zeros(0)
        array = np.asarray(value)
        return array if array.dtype.kind in "fcbiu" else array.astype(np.float32)  # bfloat16 and smaller

    def copied(self, tensor: Any) -> Any:
        return tensor

    def settle(self, entries: dict[int, Entry]) -> None:
        """Let go of what was computed in a call that is over."""
        self.marks = {at: known for at, known in self.marks.items() if entries[known[1]].role == "leaf"}

    def mode(self) -> str:
        return "grad"


def plain(dtype: Any) -> bool:
    """Whether arrays of a format have numbers; keys of random numbers have none."""
    return "key<" not in str(dtype) and str(dtype) != "[('float0', 'V')]"


class JaxRecord(Watch):
    """The record of a run of JAX, whoever writes to it."""

    tensors: JaxTensors

    def __init__(self, jax: Any, folder: str, extents: bool = False) -> None:
        super().__init__(folder, JaxTensors(jax), extents)
        self.jax = jax
        self.here: SourceLine | None = None  # of the operation that is read
        self.reading = False
        self.notes += untested(JAX, str(jax.__version__))

    def of_node(self, tensor: Any) -> Entry:
        return self._enter(tensor, "leaf", "", ())

    def _place(self) -> tuple[SourceLine | None, Any, Any]:
        return (self.here, None, None) if self.reading else super()._place()

    def look(self, names: dict[str, Any], scope: str = "") -> None:
        """Note the names of arrays that took part in a gradient, and of values that outlived their trace."""
        for name, array in subjects_of(self.tensors, names):
            mark = self.tensors.mark(array)
            known = self.subjects.get(mark)
            if mark in self.entries and known is None:
                self.named(mark, array, name, scope)
        if not scope:
            self.leaked += [name for name, value in names.items() if self.holds_tracer(value)]

    def holds_tracer(self, value: Any, depth: int = 2) -> bool:
        """Whether a value of the file is a tracer, or a container or an object of the file that holds one."""
        if isinstance(value, self.jax.core.Tracer):
            return True
        if not depth or isinstance(value, (type, str)):
            return False
        if isinstance(value, (list, tuple, set)):
            return any(self.holds_tracer(x, depth - 1) for x in list(value)[-SMALL:])
        if isinstance(value, dict):
            return any(self.holds_tracer(x, depth - 1) for x in list(value.values())[:SMALL])
        own = type(value).__module__ == "__main__"
        return own and any(self.holds_tracer(x, depth - 1) for x in getattr(value, "__dict__", {}).values())

    def entered(self, array: Any, role: str, name: str, inputs: tuple[int, ...]) -> Entry:
        """A value of a function that is read."""
        return self._enter(array, role, name, inputs)

    def missed(self, mark: int) -> None:
        """All gradients of a call are zero: no one can want that."""
        self._event("zero", mark)

    def note(self, text: str) -> None:
        """Say once what is not recorded."""
        if text not in self.notes:
            self.notes.append(text)

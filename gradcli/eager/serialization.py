"""PyTorch's `torch.save` and `torch.load`, in a format that holds numbers, text and arrays, and no code.

A file is a zip archive, stored without compression: `tree.json` says how the object is built, and each array is an
entry that `numpy.load(path)` reads too. Nothing is pickled, so a file cannot run anything. Files of PyTorch are
pickles; they are refused.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import secrets
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from gradcli.eager._core import devices, dtypes
from gradcli.eager._core.tensor import Size, Tensor
from gradcli.eager._core.unsupported import REAL

__all__ = ["load", "save"]

FORMAT, VERSION = "gradcli tensors", 1
_TREE = "tree.json"
_DEPTH = 100  # levels of lists and dictionaries
_HOLDS = "numbers, text, tensors, and lists, tuples, sets and dictionaries of them"
_PLAIN = (type(None), bool, int, str)
_SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "Size": Size}
_MAPPINGS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_KINDS = {kind.name: kind for kind in vars(dtypes).values() if isinstance(kind, dtypes.dtype)}
# values that are written as text: their type, and the functions to and from text
_TEXTS: dict[str, tuple[type, Any, Any]] = {
    "float": (float, repr, float),  # inf and NaN
    "complex": (complex, str, complex),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "dtype": (dtypes.dtype, lambda x: x.name, _KINDS.__getitem__),
    "device": (devices.device, str, devices.device),
}


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: Any = None,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object of numbers, text, tensors and collections of them to a path or a binary file.

    Tensors that share memory share it again after `load`. A path is written beside itself and then renamed, so it
    never holds half of a file. TypeError, before anything is written, for an object of another type; RuntimeError for
    a folder that does not exist; AttributeError for what is not a file.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(f"torch.save needs a path or a file that has 'write', not {type(f).__name__}")
    writer = _Writer(obj)
    if not isinstance(f, (str, os.PathLike)):
        writer.write(f)
        return
    path = Path(os.fsdecode(f)).resolve()
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    if path.is_dir():
        raise RuntimeError(f"{path} is a directory")
    if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
        with path.open("wb") as file:
            writer.write(file)
        return
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            writer.write(file)
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: Any = None, mmap: Any = None
) -> Any:
    """The object that `save` wrote to a path or a binary file; `weights_only` is always true here.

    RuntimeError for a file that is damaged or not written by `save`, and for a device that is not there; EOFError for
    an empty one.
    """
    to = _target(map_location)
    if isinstance(f, (str, os.PathLike)):
        with Path(os.fsdecode(f)).open("rb") as file:
            return _loaded(file, os.fsdecode(f), to)
    if not hasattr(f, "read"):
        raise AttributeError(f"torch.load needs a path or a file that has 'read', not {type(f).__name__}")
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError("torch.load needs a file that is opened in binary mode ('rb')")
    return _loaded(io.BytesIO(data), getattr(f, "name", "the file"), to)


def _target(map_location: Any) -> devices.device | None:
    """Where `map_location` puts tensors that were saved on the processor."""
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu")
    if map_location is None or callable(map_location):
        return None
    to = devices.device(map_location)
    if to.type == "cuda" and not devices.cuda_is_available():
        raise RuntimeError("map_location names a GPU, and none was found: use map_location='cpu'")
    return to


class _Writer:
    """An object as a tree of plain values, and its arrays by the names of their entries."""

    def __init__(self, obj: Any) -> None:
        self.arrays: dict[str, Any] = {}
        self._tensors: list[tuple[list[Any], Any, str]] = []  # the node in the tree, the array, its place
        tree = self._node(obj, (), 0)
        self._place()
        text = {"format": FORMAT, "version": VERSION, "tree": tree}
        try:
            self.tree = json.dumps(text, allow_nan=False).encode()
        except (ValueError, UnicodeEncodeError) as wrong:
            raise TypeError(f"torch.save cannot write this object: {wrong}") from None

    def _node(self, x: Any, place: tuple[str, ...], depth: int) -> Any:
        kind = type(x)
        if kind in _PLAIN or (kind is float and math.isfinite(x)):
            return x
        if depth > _DEPTH:
            raise TypeError(f"torch.save supports at most {_DEPTH} levels of lists and dictionaries")
        if isinstance(x, Tensor):
            node = ["parameter" if x._is_param else "tensor", x.requires_grad]
            self._tensors.append((node, np.asarray(devices.moved(x._array, "cpu")), ".".join(place)))
            return node
        if kind in _SEQUENCES.values():
            return [kind.__name__, [self._node(item, (*place, str(i)), depth + 1) for i, item in enumerate(x)]]
        if kind in _MAPPINGS.values():
            pairs = [[self._node(item, (*place, str(pair[0])), depth + 1) for item in pair] for pair in x.items()]
            return [kind.__name__, pairs]
        for tag, (written, encode, _) in _TEXTS.items():
            if kind is written:
                return [tag, encode(x)]
        if isinstance(x, (np.ndarray, np.generic)) and x.dtype.newbyteorder("=") in dtypes._BY_NUMPY:
            node = ["array" if isinstance(x, np.ndarray) else "number", False]
            self._tensors.append((node, np.asarray(x), ".".join(place)))
            return node
        raise TypeError(_refused(x, place))

    def _place(self) -> None:
        """Give every tensor an entry: those that share memory one together, with the place of each in it."""
        owners = Counter(id(_owner(array)) for _, array, _ in self._tensors)
        names: dict[int, str] = {}
        for node, array, place in self._tensors:
            owner = _owner(array)
            if owners[id(owner)] == 1 or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
                node.append(self._entry(np.ascontiguousarray(array).reshape(array.shape), place))
                continue
            if id(owner) not in names:
                names[id(owner)] = self._entry(owner.reshape(-1, order="A"), place)
            offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
            node += [names[id(owner)], array.dtype.newbyteorder("<").str, array.shape, array.strides, offset]

    def _entry(self, array: Any, place: str) -> str:
        start = name = re.sub(r"[^\w.-]", "_", place) or "tensor"
        while name in self.arrays:
            name = f"{start}_{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def write(self, file: Any) -> None:
        """Write the archive; entries bear no time, so equal objects give equal files."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(_TREE), self.tree)
            for name, array in self.arrays.items():
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                    np.lib.format.write_array(entry, little, version=(1, 0), allow_pickle=False)


def _owner(array: Any) -> Any:
    """The array that owns the memory of an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _refused(x: Any, place: tuple[str, ...]) -> str:
    where = f" (at {'.'.join(place)!r})" if place else ""
    kind = type(x).__name__
    if hasattr(x, "state_dict"):
        return f"torch.save cannot store a {kind}{where}, because its class is code: save its state_dict()"
    hint = "; vars(...) of it is a dictionary" if hasattr(x, "__dict__") and not callable(x) else ""
    return f"torch.save cannot store a {kind}{where}: it holds {_HOLDS}{hint}"


def _loaded(file: Any, name: str, to: devices.device | None) -> Any:
    start = file.read(1)
    file.seek(0)
    if not start:
        raise EOFError(f"torch.load: {name} is empty")
    foreign = start == b"\x80"
    try:
        if not foreign:
            with zipfile.ZipFile(file) as archive:
                names = archive.namelist()
                foreign = any(entry.rpartition("/")[2] == "data.pkl" for entry in names)
                if _TREE in names and not foreign:
                    return _Reader(archive, to).root
    except OSError:
        raise
    except Exception as wrong:  # what a damaged archive makes of zipfile, json and NumPy
        said = str(wrong) or type(wrong).__name__
        raise RuntimeError(f"torch.load: {name} is damaged, or was not written by torch.save: {said}") from None
    if not foreign:
        raise RuntimeError(f"torch.load: {name} was not written by torch.save of gradcli")
    raise RuntimeError(
        f"torch.load: {name} is a file of PyTorch, a pickle, which may run code when it is read, so gradcli "
        "does not read it. "
        "Under PyTorch, numpy.savez(path, **{name: x.numpy() for name, x in state.items()}) writes what numpy.load "
        f"reads; {REAL}"
    )


class _Reader:
    """The object of an archive."""

    def __init__(self, archive: zipfile.ZipFile, to: devices.device | None) -> None:
        self.archive, self.to = archive, to
        self._memory: dict[str, Any] = {}
        text = json.loads(self._bytes(_TREE))
        if text["format"] != FORMAT or text["version"] != VERSION:
            raise ValueError(f"version {text['version']} of {text['format']!r} is not known")
        self.root = self._value(text["tree"])

    def _bytes(self, name: str) -> bytes:
        info = self.archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{name} is compressed")
        return self.archive.read(info)

    def _array(self, name: str) -> Any:
        """The array of an entry; its size is what its header says, or ValueError."""
        if name not in self._memory:
            entry = io.BytesIO(self._bytes(f"{name}.npy"))
            if np.lib.format.read_magic(entry) != (1, 0):
                raise ValueError(f"{name} is of another version")
            shape, fortran, kind = np.lib.format.read_array_header_1_0(entry)
            dtypes.of(kind.newbyteorder("="))
            data = bytearray(entry.read())
            self._memory[name] = np.ndarray(shape, kind, data, order="F" if fortran else "C")
            if self._memory[name].nbytes != len(data):
                raise ValueError(f"{name} is longer than its header states")
        return self._memory[name]

    def _value(self, node: Any) -> Any:
        if not isinstance(node, list):
            return node
        tag, held = node[:2]
        if tag in _SEQUENCES:
            return _SEQUENCES[tag]([self._value(item) for item in held])
        if tag in _MAPPINGS:
            return _MAPPINGS[tag]({self._value(key): self._value(value) for key, value in held})
        if tag in _TEXTS:
            return _TEXTS[tag][2](held)
        return self._tensor(tag, held, *node[2:])

    def _tensor(self, tag: str, moving: bool, name: str, *part: Any) -> Any:
        array = self._array(name)
        if part:
            kind, shape, strides, offset = part
            dtypes.of(np.dtype(kind).newbyteorder("="))
            array = np.ndarray(shape, kind, array, offset, strides)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        if tag in ("array", "number"):
            return array if tag == "array" else array[()]
        if tag not in ("tensor", "parameter"):
            raise ValueError(f"{tag!r} is not known")
        x = Tensor(array if array.ndim or part else array[()])
        if self.to is not None:
            x._raw = devices.moved(x._array, self.to)
        if tag == "parameter":
            from gradcli.eager.nn.parameter import Parameter

            return Parameter(x, bool(moving))
        return x.requires_grad_() if moving else x

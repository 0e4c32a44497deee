"""Data sets and the loader of batches, in the order that PyTorch's stream of random numbers gives.

One process loads everything, whatever `num_workers` says; a warning says so once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core.devices import cuda_is_available
from gradcli.eager._core.modes import once, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import ON_TORCH, room
from gradcli.eager._ops.tensor_creation import tensor
from gradcli.eager._ops.tensor_joining import stack

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "default_convert", "random_split"]
__getattr__, __dir__ = room("utils.data", __all__)


class Dataset:
    """Base of data sets: a subclass defines `__getitem__` and `__len__`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls  # a class may be written with the type of its examples, as in `Dataset[int]`

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset):
    """Tensors with a common first axis: an example has their parts at one position. AssertionError for other sizes.

    >>> TensorDataset(torch.tensor([1.0, 2.0]), torch.tensor([3, 4]))[1]
    (tensor(2.), tensor(4))
    """

    def __init__(self, *tensors: Any) -> None:
        if any(x.shape[0] != tensors[0].shape[0] for x in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([x[index] for x in self.tensors])

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """The examples of a data set at some positions."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Parts of some lengths, or shares of 1, in random order. ValueError where they do not sum to the whole."""
    count = len(dataset)
    sizes = [int(n) for n in lengths]
    if abs(sum(lengths) - 1) < 1e-6 and sum(lengths) <= 1:
        sizes = [int(count * share) for share in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = iter((generator or streams.own.default_generator).randperm(count).tolist())
    return [Subset(dataset, list(islice(order, size))) for size in sizes]


def default_collate(batch: Any) -> Any:
    """Examples as one batch: tensors are stacked, numbers become a tensor, tuples and dictionaries keep their form.

    TypeError for what cannot be put together.
    """
    first = batch[0]
    if isinstance(first, (Tensor, np.ndarray)):
        return stack([default_convert(example) for example in batch])
    if isinstance(first, float):
        return Tensor(np.array(batch, np.float64))
    if isinstance(first, (int, np.integer)):
        return tensor(batch)
    if isinstance(first, str):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([example[key] for example in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(f"default_collate: batch must contain tensors, arrays, numbers, dicts or lists, not {type(first)}")


def default_convert(data: Any) -> Any:
    """An example as it is: arrays as tensors, tuples as lists."""
    if isinstance(data, tuple):
        parts = [default_convert(part) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else parts
    return Tensor(data) if isinstance(data, np.ndarray) else data


def _drawn(generator: Any) -> int:
    """A seed of 63 bits, from the words that PyTorch takes for one."""
    words = (generator or streams.own.default_generator)._long_words(1)
    return int(words[0]) % 2**63


class DataLoader:
    """Batches of a data set; with `shuffle` in another random order each time.

    ValueError for a size of batches that is not positive, TypeError for samplers and whatever else PyTorch's takes.

    >>> [batch.tolist() for batch in DataLoader(torch.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        *,
        collate_fn: Any = None,
        drop_last: bool = False,
        generator: Any = None,
        **others: Any,
    ) -> None:
        num_workers, self.pin_memory = others.pop("num_workers", 0), others.pop("pin_memory", False)
        if others:
            raise TypeError(f"DataLoader takes no {next(iter(others))!r} in gradcli; {ON_TORCH}")
        if type(batch_size) is not int or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if num_workers:
            once("workers", f"one process loads the data: num_workers={num_workers} is taken as 0")
        self.dataset, self.batch_size, self.shuffle, self.generator = dataset, batch_size, shuffle, generator
        self.num_workers, self.collate_fn = num_workers, collate_fn or default_collate
        self.drop_last = drop_last

    def _positions(self) -> Iterator[int]:
        count = len(self.dataset)
        if not self.shuffle:
            yield from range(count)
        elif count:
            yield from (self.generator or streams.Generator(_drawn(None))).randperm(count).tolist()

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and not cuda_is_available():
            warn("pin_memory is set, but there is no GPU: memory is not pinned", UserWarning)
        _drawn(self.generator)  # the seed of the workers, which PyTorch draws although there are none
        return self._batches(self._positions())

    def _batches(self, positions: Iterator[int]) -> Iterator[Any]:
        while batch := list(islice(positions, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn([self.dataset[index] for index in batch])

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

"""Examples go in, batches of them come out, in the order that PyTorch's stream of random numbers gives.

One process loads everything: `num_workers` and what belongs to it are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager.factory import tensor
from gradcli.eager.joining import stack
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Dataset:
    """Base of data sets: a subclass defines `__getitem__`, and `__len__` if it has an end."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class IterableDataset(Dataset):
    """Base of data sets that are only gone through: a subclass defines `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")


class TensorDataset(Dataset):
    """Tensors side by side: an example is their parts at one position. AssertionError for different sizes.

    >>> import gradcli.eager as torch
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
        self.dataset = dataset
        self.indices = indices

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
    order = (generator or streams.default_generator).randperm(count).tolist()
    ends = np.cumsum(sizes).tolist()
    return [Subset(dataset, order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def default_collate(batch: Any) -> Any:
    """Examples as one batch: tensors are stacked, numbers become a tensor, tuples and dictionaries keep their form.

    TypeError for what cannot be put together.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray):
        return stack([Tensor(one) for one in batch])
    if isinstance(first, float):
        return Tensor(np.array(batch, np.float64))
    if isinstance(first, (int, np.integer)):
        return tensor(batch)
    if isinstance(first, str):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([one[key] for one in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(one) != len(first) for one in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )


def _drawn(generator: Any) -> int:
    """A seed of 63 bits, from the words that PyTorch takes for one."""
    words = (generator or streams.default_generator)._long_words(1)
    return int(words[0]) % 2**63


class DataLoader:
    """Batches of a data set; with `shuffle` in another random order each time.

    >>> import gradcli.eager as torch
    >>> [batch.tolist() for batch in DataLoader(torch.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        generator: Any = None,
        **more: Any,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if num_workers:
            raise RuntimeError("DataLoader with num_workers is not supported: leave it out, one process loads the data")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("batch_sampler is mutually exclusive with batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("batch_size=None disables batching, and drop_last needs it")
        if batch_size is not None and batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.shuffle, self.sampler, self.batch_sampler = bool(shuffle), sampler, batch_sampler
        self.collate_fn = collate_fn or (_as_tensor if batch_size is None else default_collate)
        self.generator = generator
        self.num_workers = 0

    def _order(self) -> Any:
        if self.sampler is not None:
            return self.sampler
        if not self.shuffle:
            return range(len(self.dataset))
        generator = self.generator or streams.Generator(_drawn(None))
        return generator.randperm(len(self.dataset)).tolist()

    def _batches(self) -> Iterator[list[Any]]:
        if self.batch_sampler is not None:
            yield from self.batch_sampler
            return
        batch: list[Any] = []
        for index in self._order():
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __iter__(self) -> Iterator[Any]:
        _drawn(self.generator)  # the seed of the workers, which PyTorch draws although there are none
        if isinstance(self.dataset, IterableDataset):
            return self._of_stream()
        return self._of_map()

    def _of_map(self) -> Iterator[Any]:
        if self.batch_size is None and self.batch_sampler is None:
            for index in self._order():
                yield self.collate_fn(self.dataset[index])
            return
        for batch in self._batches():
            yield self.collate_fn([self.dataset[index] for index in batch])

    def _of_stream(self) -> Iterator[Any]:
        batch: list[Any] = []
        for one in self.dataset:
            if self.batch_size is None:
                yield self.collate_fn(one)
                continue
            batch.append(one)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        count = len(self.dataset if self.sampler is None else self.sampler)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _as_tensor(one: Any) -> Any:
    """An example as it is: arrays as tensors, tuples as lists."""
    if isinstance(one, tuple):
        parts = [_as_tensor(part) for part in one]
        return type(one)(*parts) if hasattr(one, "_fields") else parts
    return Tensor(one) if isinstance(one, np.ndarray) else one

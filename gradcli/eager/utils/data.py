"""Data sets, samplers and the loader of batches, in the order that PyTorch's stream of random numbers gives.

One process loads everything, whatever `num_workers` says; a warning says so once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import random as streams
from gradcli.eager._core import dtypes
from gradcli.eager._core.devices import cuda_is_available
from gradcli.eager._core.modes import once, warn
from gradcli.eager._core.tensor import Tensor
from gradcli.eager._core.unsupported import room
from gradcli.eager._engine.arguments import constructor, options, vars_of
from gradcli.eager._ops.creation import as_tensor, multinomial, tensor
from gradcli.eager._ops.joining import stack

__all__ = [
    *("BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "IterableDataset", "RandomSampler"),
    *("Sampler", "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler"),
    *("default_collate", "default_convert", "get_worker_info", "random_split"),
]
__getattr__, __dir__ = room("utils.data", __all__)


class _Generic:
    """A class that may be written with the type of its examples, as in `Dataset[int]`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    if TYPE_CHECKING:  # the arguments are attributes

        def __getattr__(self, name: str) -> Any: ...


class Dataset(_Generic):
    """Base of data sets: a subclass defines `__getitem__`, and `__len__` if it has an end."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of data sets that are iterated over: a subclass defines `__iter__`."""


class ConcatDataset(Dataset):
    """Several data sets one after another. AssertionError for none, and for iterable ones."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset takes one dataset or more that have a length")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise ValueError("the index is larger than the dataset")
        index %= len(self)
        at = bisect_right(self.cumulative_sizes, index)
        return self.datasets[at][index - (self.cumulative_sizes[at - 1] if at else 0)]


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

    __init__ = constructor(options("dataset, indices"), vars_of)

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


def _drawn(generator: Any) -> int:
    """A seed of 63 bits, from the words that PyTorch takes for one."""
    words = (generator or streams.own.default_generator)._long_words(1)
    return int(words[0]) % 2**63


def _need_positive(**options: Any) -> None:
    """ValueError for an option that is not a positive whole number."""
    for name, value in options.items():
        if type(value) is not int or value <= 0:
            raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler(_Generic):
    """Base of orders in which examples are taken: a subclass defines `__iter__`, which gives positions."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler):
    """All positions in order."""

    __init__ = constructor(options("data_source"), vars_of)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """All positions in random order, or `num_samples` drawn with `replacement`. ValueError for fewer than one."""

    def __init__(
        self, data_source: Any, replacement: Any = False, num_samples: Any = None, generator: Any = None
    ) -> None:
        if num_samples is not None:
            _need_positive(num_samples=num_samples)
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many positions are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or streams.Generator(_drawn(None))
        count, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            for size in (*[32] * (wanted // 32), wanted % 32):
                yield from generator.randint(0, count, (size,)).tolist()
        else:
            for size in (*[count] * (wanted // count if count else 0), wanted % count if count else 0):
                yield from generator.randperm(count).tolist()[:size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some positions in random order."""

    __init__ = constructor(options("indices, generator=None"), vars_of)

    def __iter__(self) -> Iterator[int]:
        for at in (self.generator or streams.own.default_generator).randperm(len(self.indices)).tolist():
            yield self.indices[at]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Positions drawn with probabilities in proportion to weights. ValueError for fewer than one."""

    def __init__(
        self, weights: Sequence[float], num_samples: Any, replacement: Any = True, generator: Any = None
    ) -> None:
        _need_positive(num_samples=num_samples)
        self.weights = as_tensor(weights, dtypes.float64)
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """The positions of another sampler in lists of one size; the last may be shorter, or is dropped."""

    def __init__(self, sampler: Any, batch_size: Any, drop_last: Any) -> None:
        _need_positive(batch_size=batch_size)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        positions = iter(self.sampler)
        while batch := list(islice(positions, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DataLoader(_Generic):
    """Batches of a data set; with `shuffle` in another random order each time.

    >>> [batch.tolist() for batch in DataLoader(torch.arange(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def _start(
        self, dataset: Any, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any, **rest: Any
    ) -> None:
        ordered = shuffle or sampler is not None
        if rest["num_workers"]:
            once("workers", f"one process loads the data: num_workers={rest['num_workers']} is taken as 0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or ordered or drop_last):
            raise ValueError("batch_sampler is mutually exclusive with batch_size, shuffle, sampler and drop_last")
        if batch_size is None and drop_last:
            raise ValueError("batch_size=None disables batching, and drop_last needs it")
        if isinstance(dataset, IterableDataset):
            if ordered or batch_sampler is not None:
                raise ValueError("an IterableDataset has its own order: no shuffle, sampler or batch_sampler")
            sampler = dataset  # which gives examples in place of positions
        elif sampler is None and batch_sampler is None:
            sampler = RandomSampler(dataset, generator=rest["generator"]) if shuffle else SequentialSampler(dataset)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        collate = rest.pop("collate_fn") or (default_convert if batch_sampler is None else default_collate)
        vars(self).update(rest, dataset=dataset, batch_size=batch_size, drop_last=drop_last)
        vars(self).update(sampler=sampler, batch_sampler=batch_sampler, collate_fn=collate)

    __init__ = constructor(
        options(
            "dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, "
            "pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, "
            "generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device='', in_order=True"
        ),
        _start,
    )

    def __iter__(self) -> Iterator[Any]:
        if self.pin_memory and not cuda_is_available():
            warn("pin_memory is set, but there is no GPU: memory is not pinned", UserWarning)
        _drawn(self.generator)  # the seed of the workers, which PyTorch draws although there are none
        if isinstance(self.dataset, IterableDataset):
            return map(self.collate_fn, self.sampler if self.batch_sampler is None else self.batch_sampler)
        if self.batch_sampler is None:
            return (self.collate_fn(self.dataset[index]) for index in self.sampler)
        return (self.collate_fn([self.dataset[index] for index in batch]) for batch in self.batch_sampler)

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


def default_convert(data: Any) -> Any:
    """An example as it is: arrays as tensors, tuples as lists."""
    if isinstance(data, tuple):
        parts = [default_convert(part) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else parts
    return Tensor(data) if isinstance(data, np.ndarray) else data


def get_worker_info() -> None:
    """None: there are no workers."""

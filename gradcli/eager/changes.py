"""Functions whose names end in `_`: a tensor goes in, the same tensor comes out with other entries or another shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.eager import entrywise, joining, movement, placing, pointwise, products, random, reductions
from gradcli.eager.inplace import change, overwritten, refuse
from gradcli.eager.signatures import checked
from gradcli.eager.sizes import sizes
from gradcli.eager.state import PLAIN, SPECIAL, place, recording, state
from gradcli.eager.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradcli.eager.signatures import Operand


def copy_(self: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Replace the entries by those of another tensor, repeated to the shape and changed to the format."""
    return change(self, lambda old: overwritten(old, src, "CopyBackwards", 2), (src,))


def zero_(self: Tensor) -> Tensor:
    """Replace the entries by zeros."""
    self._added = 0
    return change(self, lambda old: overwritten(old, 0, "ZeroBackward0", 1))


def fill_(self: Tensor, value: Operand) -> Tensor:
    """Replace the entries by a number, or by that of a 0-d tensor."""
    name, edges = ("FillBackward3", 2) if isinstance(value, Tensor) else ("FillBackward2", 1)
    return change(self, lambda old: overwritten(old, value, name, edges), (value,))


def detach_(self: Tensor) -> Tensor:
    """Forget the history; RuntimeError for a view."""
    if self._base is not None:
        raise RuntimeError("a view cannot be detached in place: use detach()")
    self._edge, self._requires, self._retains = None, False, False
    self._own_tangent = None
    return self


def _drawn(name: str, node: str, draw: Callable[..., Any]) -> Callable[..., Tensor]:
    def in_place(self: Tensor, *args: Any, generator: Any = None, **options: Any) -> Tensor:
        source = generator or random.default_generator
        raw = np.asarray(draw(source, self, *args, **options)).astype(self._raw.dtype)
        if raw.shape != self._raw.shape:  # a row, as the numbers are drawn
            raw = random.laid_out(raw, self._array)
        return change(self, lambda old: overwritten(old, Tensor(raw), node, 1))

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"Replace the entries by random numbers: `{name}`."
    return in_place


def _normal(source: Any, x: Tensor, mean: float = 0.0, std: float = 1.0) -> Any:
    contiguous = x._array.flags.c_contiguous
    return source.normal((x._raw.size,), float(mean), float(std), x.dtype.name, contiguous=contiguous)


def _uniform(source: Any, x: Tensor, low: float = 0.0, high: float = 1.0) -> Any:
    return source.uniform((x._raw.size,), float(low), float(high), x.dtype.name)


def _bernoulli(source: Any, x: Tensor, p: Any = 0.5) -> Any:
    bound = p._raw if isinstance(p, Tensor) else p
    return source.rand(x._raw.shape, "float64") < bound


def _random(source: Any, x: Tensor, low: int = 0, high: int | None = None) -> Any:
    if high is None:
        low, high = (0, low) if low else (0, 2**24 if x._raw.dtype == np.float32 else 2**53)
    return source.randint(low, high, (x._raw.size,))


def _exponential(source: Any, x: Tensor, lambd: float = 1.0) -> Any:
    return -np.log1p(-source.rand((x._raw.size,), "float64")) / lambd


_DIRECT = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def _directly(ufunc: Any, x: Tensor, other: Any) -> bool:
    """Whether arithmetic without history was written straight into the memory: what an optimiser's step does."""
    raw = x._raw
    alone = isinstance(raw, np.generic)  # a number has no memory that others could see
    if state.mode == SPECIAL or x._inference or not (alone or isinstance(raw, np.ndarray)):
        return False
    if isinstance(other, Tensor):
        if state.mode == PLAIN and (x.requires_grad or other.requires_grad):
            return False
        value = other._raw
        if value.dtype is not raw.dtype or value.shape != raw.shape:
            return False
    elif other.__class__ is float and not (state.mode == PLAIN and x.requires_grad):
        value = raw.dtype.type(other)
    else:
        return False
    if raw.dtype.kind != "f" or not (alone or raw.flags.writeable):
        return False
    if alone:
        x._raw = ufunc(raw, value)
    else:
        ufunc(raw, value, out=raw)
    x._counter.bump(place())
    return True


def _changing(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    ufunc = _DIRECT.get(name)
    guarded = checked(function)
    check, least = getattr(guarded, "check", None), getattr(guarded, "least", 1)
    several = name in pointwise.SEVERAL
    alone = check is None and not several

    def in_place(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if ufunc is not None and len(args) == 1 and not kwargs and _directly(ufunc, self, args[0]):
            return self
        if check is not None:
            check((self, *args))
            if 1 + len(args) + len(kwargs) < least:
                raise TypeError(f"{name}_() takes {least - 1} arguments, but {len(args) + len(kwargs)} were given")
        elif alone and args:
            raise TypeError(f"{name}_() takes no arguments ({len(args)} given)")
        elif several and (len(args) != 1 or not isinstance(args[0], (Tensor, int, float, complex, np.generic))):
            if "other" not in kwargs:
                raise TypeError(f"{name}_() takes a tensor or a number")
        return change(self, lambda old: function(old, *args, **kwargs), (*args, *kwargs.values()))

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"`{name}`, written into the tensor itself."
    return in_place


_IN_PLACE = {
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
    "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1",
}


def _comparing(name: str) -> Callable[..., Tensor]:
    function = pointwise.TABLE[name]

    def in_place(self: Tensor, other: Any) -> Tensor:
        found = function(self.detach(), other.detach() if isinstance(other, Tensor) else other)
        node = f"{name.capitalize()}Backward{int(isinstance(other, Tensor))}"
        return change(self, lambda old: overwritten(old, found, node, 1))

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"`{name}`, written into the tensor itself as ones and zeros."
    return in_place


def _reshaping(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    check = checked(function).check

    def in_place(self: Tensor, *args: Any) -> Tensor:
        check((self, *args))
        if self._base is not None:
            raise RuntimeError(f"{name}_() on a view is not supported: use {name}()")
        if recording() and self.requires_grad:
            refuse(self)
        old = Tensor(self._array, self._requires, self._counter)
        old._edge = self._edge
        found = function(old, *args)
        self._counter.bump(place())
        self._raw = found._raw
        if state.dual is not None:
            state.dual.moved(self, function, args)
        if found._node is not None:
            from gradcli.eager.indexing import renamed

            self._edge = renamed(found, _IN_PLACE[type(found._node).__name__])._edge
        return self

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"`{name}`, of the tensor itself."
    return in_place


def fill_diagonal_(self: Tensor, fill_value: Operand, wrap: bool = False) -> Tensor:
    """Replace the entries of the diagonal by a number."""
    if self.ndim < 2:
        raise RuntimeError("fill_diagonal_: dimensions must be larger than 1")
    positions = np.arange(min(self.shape)) * (
        self.shape[1] + 1 if self.ndim == 2 else sum(np.cumprod(self.shape[1:])) + 1
    )
    return change(
        self, lambda old: placing.placed(old, positions, fill_value, "FillDiagonalBackward0", 1), (fill_value,)
    )


def resize_(self: Tensor, *size: Any) -> Tensor:
    """Another number of entries; RuntimeError for a tensor that requires grad."""
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    shape = sizes(size)
    flat = np.zeros(int(np.prod(shape)), self._raw.dtype)
    kept = self._array.reshape(-1)[: flat.size]
    flat[: kept.size] = kept
    self._raw = flat.reshape(shape)
    return self


_POINTWISE = (
    "add sub mul pow exp exp2 log log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "sigmoid relu neg abs sign floor ceil trunc round clamp clip reciprocal masked_fill remainder square log1p expm1 "
    "erf erfc erfinv lgamma digamma atan2 xlogy sinc"
)
_ENTRYWISE = (
    "div fmod frac logit clamp_min clamp_max nan_to_num copysign floor_divide float_power deg2rad rad2deg threshold"
)
_SELECTING = "scatter scatter_add index_add index_copy index_fill masked_scatter index_put"
_RESHAPING = "squeeze unsqueeze t transpose swapaxes swapdims"

_Table = dict[str, Any]
TABLE: _Table = {function.__name__: function for function in (copy_, zero_, fill_, detach_, fill_diagonal_, resize_)}
_GROUPS: tuple[tuple[_Table, str], ...] = (
    (pointwise.TABLE, _POINTWISE),
    (entrywise.TABLE, _ENTRYWISE),
    (placing.TABLE, _SELECTING),
    (products.TABLE, "addcmul addcdiv lerp addmm addmv baddbmm"),
    (joining.TABLE, "tril triu"),
    (reductions.TABLE, "cumsum cumprod"),
)
for _table, _names in _GROUPS:
    TABLE.update({f"{name}_": _changing(name, _table[name]) for name in _names.split()})
TABLE.update({f"{name}_": _comparing(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")})
TABLE.update({f"{name}_": _reshaping(name, movement.TABLE[name]) for name in _RESHAPING.split()})
TABLE.update(
    normal_=_drawn("normal_", "NormalBackward0", _normal),
    uniform_=_drawn("uniform_", "UniformBackward0", _uniform),
    bernoulli_=_drawn("bernoulli_", "BernoulliBackward2", _bernoulli),
    random_=_drawn("random_", "RandomBackward2", _random),
    exponential_=_drawn("exponential_", "ExponentialBackward0", _exponential),
)
_ALSO = {"multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "negative": "neg"}
_ALSO["absolute"] = "abs"
TABLE.update({f"{name}_": TABLE[f"{usual}_"] for name, usual in _ALSO.items()})
TABLE.update({f"arc{name[1:]}_": TABLE[f"{name}_"] for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")})

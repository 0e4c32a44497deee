"""`Operand`, the operators that graph nodes and eager tensors share: what derivative rules compute with.

A rule is written once, with operators and callable primitives. An `Operand` can `bind` a primitive to arguments: a
node records it in its builder, a tensor also computes it. A primitive that is called on plain numbers alone gives a
`Closed` value, which is bound when it is combined with an operand.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any, TypeVar

    from gradcli.graph.primitive import Primitive
    from gradcli.graph.types import Shape

    Number = int | float | Fraction
    Self_ = TypeVar("Self_", bound="Operand")


class Operand:
    """Base of everything that a derivative rule may combine: nodes, tensors, closed values."""

    __slots__ = ()

    def bind(self: Self_, primitive: Primitive, xs: tuple[Any, ...], params: dict[str, Any]) -> Self_:
        """Apply `primitive` to `xs`, of which at least one is an operand like this one."""
        raise TypeError(f"{type(self).__name__} cannot bind {primitive.name}")

    def named(self, name: str) -> Primitive:
        """The primitive with this name in the vocabulary that this operand belongs to."""
        raise TypeError(f"{type(self).__name__} has no vocabulary to look up {name}")

    @property
    def shape(self) -> Shape:
        """The core shape: what the value has at one point, without batch axes."""
        raise TypeError(f"{type(self).__name__} has no shape of its own")

    def _call(self: Self_, name: str, *xs: Any, **params: Any) -> Self_:
        return self.bind(self.named(name), xs, params)

    def __add__(self: Self_, other: Self_ | Number | Closed) -> Self_:
        return self._call("add", self, other)

    def __radd__(self: Self_, other: Number) -> Self_:
        return self._call("add", other, self)

    def __sub__(self: Self_, other: Self_ | Number | Closed) -> Self_:
        return self._call("sub", self, other)

    def __rsub__(self: Self_, other: Number) -> Self_:
        return self._call("sub", other, self)

    def __mul__(self: Self_, other: Self_ | Number | Closed) -> Self_:
        return self._call("mul", self, other)

    def __rmul__(self: Self_, other: Number) -> Self_:
        return self._call("mul", other, self)

    def __truediv__(self: Self_, other: Self_ | Number | Closed) -> Self_:
        return self._call("div", self, other)

    def __rtruediv__(self: Self_, other: Number) -> Self_:
        return self._call("div", other, self)

    def __pow__(self: Self_, other: Self_ | Number) -> Self_:
        if isinstance(other, int):
            return self._call("power", self, n=other)
        return self._call("pow", self, other)

    def __neg__(self: Self_) -> Self_:
        return self._call("neg", self)

    def __matmul__(self: Self_, other: Self_) -> Self_:
        return self._call("matmul", self, other)

    def __lt__(self: Self_, other: Self_ | Number) -> Self_:
        return self._call("less", self, other)

    def __le__(self: Self_, other: Self_ | Number) -> Self_:
        return self._call("less_equal", self, other)

    def __gt__(self: Self_, other: Self_ | Number) -> Self_:
        return self._call("greater", self, other)

    def __ge__(self: Self_, other: Self_ | Number) -> Self_:
        return self._call("greater_equal", self, other)

    @property
    def mT(self: Self_) -> Self_:
        """The matrix transpose: the last two core axes swapped."""
        rank = len(self.shape)
        axes = (*range(-rank, -2), -1, -2)
        return self._call("permute", self, axes=axes)


class Closed(Operand):
    """A primitive applied to numbers only, such as `log(10)` in a rule: bound by the first operand it is used with."""

    __slots__ = ("params", "primitive", "xs")

    def __init__(self, primitive: Primitive | str, xs: tuple[Any, ...], params: dict[str, Any]) -> None:
        self.primitive = primitive
        self.xs = xs
        self.params = params

    def _call(self, name: str, *xs: Any, **params: Any) -> Any:
        for x in xs:
            if isinstance(x, Operand) and not isinstance(x, Closed):
                return x.bind(x.named(name), xs, params)
        return Closed(name, xs, params)

    def bind(self, primitive: Primitive, xs: tuple[Any, ...], params: dict[str, Any]) -> Any:
        for x in xs:
            if isinstance(x, Operand) and not isinstance(x, Closed):
                return x.bind(primitive, xs, params)
        return Closed(primitive, xs, params)

    def __repr__(self) -> str:
        name = self.primitive if isinstance(self.primitive, str) else self.primitive.name
        return f"Closed({name}{self.xs!r})"


class Complex:
    """Complex numbers as two operands, the real and the imaginary part: what a Fourier transform returns."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any) -> None:
        self.real = real
        self.imag = imag

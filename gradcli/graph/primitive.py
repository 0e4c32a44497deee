"""The declaration of an operation: its kind, values, rules, domain and kinks; and the operands that rules combine.

A rule is written once, with operators and callable primitives. An `Operand` can `bind` a primitive to arguments: a
node records it in its builder, a tensor also computes it. A primitive that is called on plain numbers alone gives a
`Closed` value, which is bound when it is combined with an operand.

There are six kinds. The author of an operation writes what cannot be derived; the transforms derive
every derivative of every order from it, in both modes.

| kind | written | derived |
|---|---|---|
| elementwise | a partial for each input | vjp, jvp, type rule, batching |
| linear | a transpose for each input in which it is linear | vjp; jvp is the operation itself |
| bilinear | two transposes | vjp, jvp |
| structured | a pushforward for each input, linear in the tangent | jvp; vjp is the transposed pushforward |
| composite | a definition in other operations | everything |
| nondifferentiable | nothing | its derivative is zero |
"""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.graph.types import Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction
    from typing import Any, TypeVar, overload

    from gradcli.graph.domain import Interval
    from gradcli.graph.types import Shape

    Rule = Callable[..., Any]
    Number = int | float | Fraction
    Self_ = TypeVar("Self_", bound="Operand")
    T = TypeVar("T", bound="Operand")

OPERATORS = {  # of the script language, between two operands, and the operations that they stand for
    "+": "add", "-": "sub", "*": "mul", "/": "div", "@": "matmul", "**": "pow", "<": "less", "<=": "less_equal",
    ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal", "and": "and", "or": "or",
}  # fmt: skip


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


# What may be said of an operation as a whole, by those who treat such operations alike.
TRAITS = {
    "keeps_whole": "whole numbers give whole numbers; true of what moves entries and of what has no derivative",
    "piecewise_constant": "its derivative is 0 between jumps",
    "whole_steps": "a whole number decides: it jumps, or its derivative does, where an operand passes one",
    "saturates": "it is flat far away from 0, without being constant",
    "chooses": "some of its entries are those of an operand, and the others have no influence",
    "gives_positions": "its entries are positions in an operand",
    "real_only": "it has no meaning for complex numbers here",
    "every_size": "it is defined alike for arrays of every size, as what works entry by entry is",
}

REQUIRED = object()  # the default of a parameter that has none


class Kink(NamedTuple):
    """Where an operation is not smooth, and which derivative it returns there.

    `surface(*xs, **params)` is an expression in graph operations that is zero exactly on the kink; `where` and
    `value` say in words where that is and what the convention gives. A jump of the value itself is a
    `discontinuity`.
    """

    surface: Rule
    where: str
    value: str
    discontinuity: bool = False

    def arguments(self) -> Sequence[str]:
        """The arguments of the operation, as `where` and `value` name them."""
        names: Sequence[str] | None = getattr(self.surface, "names", None)
        return self.surface.__code__.co_varnames if names is None else names


class Primitive:
    """An operation as it was declared: data only, shared by every reading of a program.

    The fields and their defaults stand below. Called like a function, as in `sin(x)`, it binds the operation through
    its first operand.
    """

    name: str
    kind: str
    summary: str
    impl: Rule | None = None  # the value, in a namespace of floats
    symbolic: Rule | None = None  # in SymPy
    ball: Rule | None = None  # in python-flint
    entries: Rule | None = None  # entry by entry, in any field
    moves: bool = False  # whether it only moves entries
    traits: str = ""  # words of TRAITS, each of them then true as an attribute
    keeps_whole: bool = False
    piecewise_constant: bool = False
    whole_steps: bool = False
    saturates: bool = False
    chooses: bool = False
    gives_positions: bool = False
    real_only: bool = False
    every_size: bool = False
    compares: str = ""  # the sign of a comparison
    holds: Callable[[int], bool] | None = None  # whether it is true, by the sign of x - y
    lift: Rule | None = None  # the parameters with one more axis in front
    partials: Rule | None = None
    transpose: Mapping[int, Rule] | Rule | None = None
    pushforward: Sequence[Rule | None] | None = None
    definition: Rule | None = None
    type_rule: Callable[..., Type] | None = None
    data_operands: tuple[int, ...] = ()  # conditions and positions: those in which it is not linear
    pointwise: bool = False
    aligned: bool = False  # whether operands get as many axes as the longest
    arity: int | None = None
    call: Rule | None = None  # makes a call in a script a node
    static: tuple[str, ...] = ()  # the names of parameters
    internal: bool = False
    aliases: tuple[str, ...] = ()
    names: str = (
        ""  # where other libraries have it: "c. numpy.arcsin torch." is C's and PyTorch's `asin`, NumPy's `arcsin`
    )
    domain: Sequence[Interval] = ()  # of each operand
    kinks: Sequence[Kink] = ()
    sample: Sequence[Any] = ()  # where tests evaluate it
    examples: Sequence[tuple[str, Any]] = ()
    formula: str | Callable[..., str] = ""  # as people write it
    elementary: str = ""  # itself in simpler operations, exactly: for proofs, and for languages that lack it
    steady: str = ""  # the same without overflow and lost digits, for languages that lack it
    node: str | Callable[..., str] = ""  # PyTorch's name of its node
    identity: int | None = None
    annihilator: int | None = None
    commutative: bool = False
    fold: Rule | None = None  # of exact constants
    rewrite: Rule | None = None
    plane: Rule | None = None  # of complex numbers, by their real and imaginary parts, where it is not holomorphic
    closed: Rule | None = None  # an internal operation in public ones, where it is smooth: for formulas
    derivative: Any = None  # the operation that is a derivative of this one of given orders, where no other is
    parameters: Mapping[str, Any] | None = None  # of one declared by text: each with its default or `REQUIRED`
    package: str | None = None  # that declares it from outside; "" until its name is known

    def __init__(self, name: str, kind: str, summary: str, **fields: Any) -> None:
        if not fields.keys() <= _DEFAULTS.keys():
            raise TypeError(f"{name}: an operation has no {', '.join(sorted(fields.keys() - _DEFAULTS.keys()))}")
        self.__dict__.update(_DEFAULTS, name=name, kind=kind, summary=summary, **fields)
        if self.moves or kind == "nondifferentiable":
            self.keeps_whole = True
        if kind == "linear" and isinstance(self.transpose, dict):
            self.data_operands = tuple([i for i in range(self.arity or 0) if i not in self.transpose])
        for trait in self.traits.split():
            if trait not in TRAITS:
                raise TypeError(f"{name}: no trait is called {trait}; there are {', '.join(TRAITS)}")
            self.__dict__[trait] = True

    if TYPE_CHECKING:

        @overload
        def __call__(self, x: T, /, *xs: Any, **params: Any) -> T: ...
        @overload
        def __call__(self, x: Number, y: T, /, *xs: Any, **params: Any) -> T: ...
        @overload
        def __call__(self, x: Number, y: Number, z: T, /, *xs: Any, **params: Any) -> T: ...
        @overload
        def __call__(self, *xs: Number, **params: Any) -> Closed: ...
        def __call__(self, *xs: Any, **params: Any) -> Any: ...

    else:

        def __call__(self, *xs: Any, **params: Any) -> Any:
            if self.parameters is not None:
                xs = (*xs, *[x for x in [*self.parameters.values()][len(xs) :] if x is not REQUIRED])
            for x in xs:
                if isinstance(x, Operand) and not isinstance(x, Closed):
                    return x.bind(self, xs, params)
            return Closed(self, xs, params)

    def result_type(self, types: tuple[Type, ...], params: Mapping[str, Any]) -> Type:
        """The type of the result; raises GradcliError (GC3xx) if the operands do not fit."""
        if self.type_rule is None:
            return types[0]
        return self.type_rule(*types, **params)

    def node_name(self, params: Mapping[str, Any]) -> str:
        """PyTorch's name of the node of this operation, or a name formed like it."""
        if self.node:
            return self.node(**params) if callable(self.node) else self.node
        return "".join(part.capitalize() for part in self.name.split("_")) + "Backward0"

    def argument_names(self) -> tuple[str, ...]:
        """The arguments of an entry-by-entry operation, as its partial derivatives name them."""
        if self.parameters is not None:
            return tuple(self.parameters)
        rule, skipped = self.partials or self.call or self.definition, 0
        if rule is None:
            rule, skipped = self.impl, 1
        assert rule is not None and self.arity is not None
        return rule.__code__.co_varnames[skipped : skipped + self.arity]

    @property
    def form(self) -> str:
        """How a script calls the operation, such as `norm(x, ord=None, axis=None, keepdims=False)`."""
        return f"{self.name}({signature_of(self)})"

    @property
    def addresses(self) -> list[str]:
        """Where other libraries have the operation, in full: `torch.linalg.inv`."""
        return [word + self.name if word.endswith(".") else word for word in self.names.split()]

    def called(self, *libraries: str) -> str | None:
        """Its address in the first of some libraries that has it, in JAX as in NumPy if nothing is said.

        >>> from gradcli.primitives import functions
        >>> [functions()["asin"].called(library) for library in ("c", "numpy", "torch", "jax", "cuda")]
        ['c.asin', 'numpy.arcsin', 'torch.asin', 'jax.numpy.arcsin', None]
        """
        for library in libraries:
            address = next((address for address in self.addresses if address.startswith(f"{library}.")), None)
            if address is None and library == "jax":
                in_numpy = self.called("numpy")
                address = in_numpy and f"jax.{in_numpy}"
            if address is not None:
                return address
        return None

    def written(self, params: Mapping[str, Any]) -> str:
        """The formula that people read, for these parameters."""
        return self.formula(**params) if callable(self.formula) else self.formula

    def linear_in(self, position: int) -> Rule | None:
        """The transpose with respect to one argument, or None where the operation is not linear in it."""
        transpose = self.transpose
        if callable(transpose):  # one rule for any number of arguments
            return lambda ct, *args, **params: transpose(ct, *args, position=position, **params)
        return None if transpose is None else transpose.get(position)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


_DEFAULTS = {field: getattr(Primitive, field, None) for field in Primitive.__annotations__}


class Signature:
    """The parameters of a declared function: names in order, defaults, and whether any number of operands is taken."""

    __slots__ = ("complete", "defaults", "keyword_only", "names", "variadic")

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.names = tuple(parameters)
        self.complete = True  # whether defaults are given to the rule, rather than left to it
        self.variadic: str | None = None
        self.keyword_only: tuple[str, ...] = ()
        self.defaults = {name: default for name, default in parameters.items() if default is not REQUIRED}

    @classmethod
    def of(cls, rule: Callable[..., Any], skip: int = 0, count: int | None = None) -> Signature:
        """The signature of a Python function, without its first `skip` parameters."""
        code = rule.__code__
        every = code.co_varnames
        positional = code.co_argcount if count is None else skip + count
        signature = cls(dict.fromkeys(every[skip:positional], REQUIRED))
        signature.complete = False
        signature.variadic = every[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 4 else None
        after = code.co_argcount
        signature.keyword_only = every[after : after + code.co_kwonlyargcount] if count is None else ()
        defaults = rule.__defaults__ or ()
        signature.defaults.update(zip(signature.names[len(signature.names) - len(defaults) :], defaults, strict=False))
        signature.defaults.update(rule.__kwdefaults__ or {})
        return signature

    def __str__(self) -> str:
        parts = [f"{n}={self.defaults[n]!r}" if n in self.defaults else n for n in self.names]
        if self.variadic:
            parts.append(f"*{self.variadic}")
        parts += [f"{n}={self.defaults.get(n)!r}" for n in self.keyword_only if n != "position"]
        return ", ".join(parts)


_signatures: dict[Primitive, Signature] = {}


def signature_of(primitive: Primitive) -> Signature:
    """How a script calls an operation; read once from its Python function."""
    known = _signatures.get(primitive)
    if known is None:
        rule = primitive.call or primitive.definition
        if primitive.parameters is not None:
            known = Signature(primitive.parameters)
        elif primitive.partials is not None and rule is None:
            known = Signature.of(primitive.partials, count=primitive.arity)
        elif rule is None:
            assert primitive.impl is not None
            known = Signature.of(primitive.impl, skip=1, count=primitive.arity)
        else:
            known = Signature.of(rule)
        _signatures[primitive] = known
    return known


def elementwise(
    name: str, summary: str, *, impl: Rule, partials: Rule, arity: int | None = None, **fields: Any
) -> Primitive:
    """A function of numbers, applied entry by entry; `partials(*xs, out)` returns one partial for each input."""
    count = partials.__code__.co_argcount if arity is None else arity
    return Primitive(name, "elementwise", summary, impl=impl, partials=partials, arity=count, pointwise=True, **fields)


def linear(name: str, summary: str, *, impl: Rule, transpose: Mapping[int, Rule] | Rule, **fields: Any) -> Primitive:
    """Linear in some arguments: `transpose[i](ct, *xs, **params)`, or one function that serves for every argument."""
    return Primitive(name, "linear", summary, impl=impl, transpose=transpose, **fields)


def bilinear(name: str, summary: str, *, impl: Rule, transpose: Mapping[int, Rule], **fields: Any) -> Primitive:
    """Linear in each of two arguments: `transpose[i](ct, x, y, **params)`."""
    return Primitive(name, "bilinear", summary, impl=impl, transpose=transpose, arity=2, **fields)


def structured(
    name: str,
    summary: str,
    *,
    impl: Rule,
    pushforward: Sequence[Rule | None],
    transpose: Mapping[int, Rule] | None = None,
    **fields: Any,
) -> Primitive:
    """`pushforward[i](t, *xs, out, **params)`: the derivative in the direction t of argument i, linear in t."""
    return Primitive(
        name,
        "structured",
        summary,
        impl=impl,
        pushforward=pushforward,
        transpose=transpose,
        arity=len(pushforward),
        **fields,
    )


def composite(name: str, summary: str, *, definition: Rule, impl: Rule | None = None, **fields: Any) -> Primitive:
    """Defined by other operations; with an `impl` it stays one node for evaluation, else it is expanded."""
    return Primitive(name, "composite", summary, impl=impl, definition=definition, **fields)


def nondifferentiable(name: str, summary: str, *, impl: Rule, **fields: Any) -> Primitive:
    """An operation whose derivative is zero: comparisons, argmax, detach."""
    return Primitive(name, "nondifferentiable", summary, impl=impl, **fields)

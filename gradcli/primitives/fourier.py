"""Discrete Fourier transforms of real numbers, by NumPy's names.

Numbers are real here, so a transform returns two operands, its real and its imaginary part (`Complex`); `abs`, `real`,
`imag` and `angle` make real numbers of them again, and sums, products, subscripts and further transforms take them too.
Both parts are linear in x by symmetric matrices of cosines and sines, so each is its own transpose. They are declared
as structured, not linear: cosines have both signs, so the transpose could not carry a mask of entries that count.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gradcli.base.diagnostics import error
from gradcli.graph.arrays import ArrayData
from gradcli.graph.domain import REAL
from gradcli.graph.primitive import Complex, Primitive, composite, structured
from gradcli.primitives.arithmetic import parts, times_i
from gradcli.primitives.axes import described, filled, part, permuted, placed, reshaped, reversed_along
from gradcli.primitives.broadcasting import together
from gradcli.primitives.closed_forms import larger_than_2x2
from gradcli.primitives.exponential import exp, log
from gradcli.primitives.hyperbolic import cosh, sinh
from gradcli.primitives.joining import joined
from gradcli.primitives.powers import hypot
from gradcli.primitives.size_arguments import normalize_axes, normalize_axis, whole_number
from gradcli.primitives.trigonometric import PI, atan2, cos, sin

MOST_POWER = 16  # that is written as a product
MOST_EXACT = 64  # entries that exact readings multiply by cosines and sines

# --- the two linear operations ------------------------------------------------------------------------------


def _waves(x: Any, wave: Primitive) -> Any:
    """Sums of x[j]*wave(2*pi*j*k/n), for exact readings."""
    n = x.shape[-1]
    if n > MOST_EXACT:
        return larger_than_2x2(x, shape=x.shape)
    steps = joined([filled(x, j, (1, 1)) for j in range(n)], -1)
    angles = (steps.mT @ steps) * filled(x, 1, (n, n)) * (2 * PI / n)
    rows = reshaped(x, (1, n)) if len(x.shape) == 1 else reshaped(x, (_count(x), n))
    return reshaped(rows @ wave(angles), x.shape)


def _count(x: Any) -> int:
    total = 1
    for size in x.shape[:-1]:
        total *= size
    return total


fft_real: Primitive = structured(
    "fft_real",
    "The real part of the Fourier transform along the last axis.",
    impl=lambda xp, x, *, ranks: xp.fourier(x).real,
    definition=lambda x: _waves(x, cos),
    pushforward=[lambda t, x, *, out: fft_real(t)],
    transpose={0: lambda ct, x: fft_real(ct)},
    plane=lambda z: whole(Complex(*map(fft_real, parts(z)))),
    internal=True,
)

fft_imag: Primitive = structured(
    "fft_imag",
    "The imaginary part of the Fourier transform along the last axis.",
    impl=lambda xp, x, *, ranks: xp.fourier(x).imag,
    definition=lambda x: -_waves(x, sin),
    pushforward=[lambda t, x, *, out: fft_imag(t)],
    transpose={0: lambda ct, x: fft_imag(ct)},
    plane=lambda z: whole(Complex(*map(fft_imag, parts(z)))),
    internal=True,
)

# --- complex numbers as two operands ------------------------------------------------------------------------


def _of_parts(z: Any, function: Any) -> Any:
    """A movement of entries, of both parts."""
    return Complex(function(z.real), function(z.imag)) if isinstance(z, Complex) else function(z)


def combined(op: str, x: Any, y: Any) -> Complex:
    """x + y, x - y, x*y or x/y, where one or both are complex; raises GradcliError GC309 for any other operator."""
    if op not in ("+", "-", "*", "/"):
        raise error("GC309", f"`{op}` takes no complex numbers", help="take abs(z), real(z) or imag(z) first")
    if not isinstance(y, Complex):
        a, b, c = together(x.real, x.imag, y)
        if op in ("+", "-"):
            return Complex(a + c if op == "+" else a - c, b)
        return Complex(a * c, b * c) if op == "*" else Complex(a / c, b / c)
    if not isinstance(x, Complex):
        a, c, d = together(x, y.real, y.imag)
        if op == "/":
            size = c * c + d * d
            return Complex(a * c / size, -(a * d) / size)
        return Complex(a * c, a * d) if op == "*" else Complex(a + c, d) if op == "+" else Complex(a - c, -d)
    a, b, c, d = together(x.real, x.imag, y.real, y.imag)
    if op == "*":
        return Complex(a * c - b * d, a * d + b * c)
    if op == "/":
        size = c * c + d * d
        return Complex((a * c + b * d) / size, (b * c - a * d) / size)
    return Complex(a + c, b + d) if op == "+" else Complex(a - c, b - d)


def raised(z: Complex, exponent: Any) -> Any:
    """A power with an exponent that is one number; raises GradcliError GC309 for any other."""
    if exponent is None or isinstance(exponent, str):
        raise error("GC309", "a power of a complex number has an exponent that is a number")
    if exponent != int(exponent) or not -MOST_POWER <= exponent <= MOST_POWER:
        size, turn = log(hypot(z.real, z.imag)) * exponent, atan2(z.imag, z.real) * exponent
        return Complex(exp(size) * cos(turn), exp(size) * sin(turn))
    power: Any = Complex(z.real * 0 + 1, z.imag * 0)
    for _ in range(abs(int(exponent))):
        power = combined("*", power, z)
    return power if exponent >= 0 else combined("/", z.real * 0 + 1, power)


OF_COMPLEX: dict[str, Any] = {  # functions of a complex number by its real and imaginary part
    "abs": lambda z: hypot(z.real, z.imag),
    "square": lambda z: combined("*", z, z),
    "reciprocal": lambda z: raised(z, -1),
    "exp": lambda z: Complex(exp(z.real) * cos(z.imag), exp(z.real) * sin(z.imag)),
    "log": lambda z: Complex(log(hypot(z.real, z.imag)), atan2(z.imag, z.real)),
    "sqrt": lambda z: raised(z, Fraction(1, 2)),
    "sin": lambda z: Complex(sin(z.real) * cosh(z.imag), cos(z.real) * sinh(z.imag)),
    "cos": lambda z: Complex(cos(z.real) * cosh(z.imag), -(sin(z.real) * sinh(z.imag))),
    "sinh": lambda z: Complex(sinh(z.real) * cos(z.imag), cosh(z.real) * sin(z.imag)),
    "cosh": lambda z: Complex(cosh(z.real) * cos(z.imag), sinh(z.real) * sin(z.imag)),
    "tan": lambda z: combined("/", OF_COMPLEX["sin"](z), OF_COMPLEX["cos"](z)),
    "tanh": lambda z: combined("/", OF_COMPLEX["sinh"](z), OF_COMPLEX["cosh"](z)),
}
BY_PARTS = frozenset(  # functions that are linear, and take real coefficients only
    ("sum", "mean", "cumsum", "diff", "trace", "reshape", "flatten", "transpose", "flip", "roll", "squeeze")
)


def whole(z: Any) -> Any:
    """Complex numbers as one operand of a program on complex numbers."""
    return z.real + times_i(z.imag) if isinstance(z, Complex) else z


def by_parts(definition: Any) -> Any:
    """A definition that reads and gives real and imaginary parts, for a program on complex numbers."""
    return lambda z, *args, **options: whole(definition(Complex(*parts(z)), *args, **options))


def _require_complex(z: Any, name: str) -> None:
    if not isinstance(z, Complex):
        raise error(
            "GC309",
            f"{name} reads the result of a transform such as fft",
            help=f"leave out {name}, or write {name}(fft(x))",
        )


def _part_of(name: str) -> Any:
    def definition(z: Any) -> Any:
        _require_complex(z, name)
        return getattr(z, name)

    return definition


real = composite(
    "real",
    "The real part of a result of fft.",
    definition=_part_of("real"),
    plane=by_parts(_part_of("real")),
    domain=[REAL],
    formula="Re(z)",
    examples=[("real(fft([1, 2]))", [3, -1])],
)

imag = composite(
    "imag",
    "The imaginary part of a result of fft.",
    definition=_part_of("imag"),
    plane=by_parts(_part_of("imag")),
    domain=[REAL],
    formula="Im(z)",
    examples=[("imag(fft([1, 2, 3, 5]))", [0, 3, 0, -3])],
)


def _angle(z: Any) -> Any:
    _require_complex(z, "angle")
    return atan2(z.imag, z.real)


angle = composite(
    "angle",
    "The angle of a result of fft, between -pi and pi.",
    definition=_angle,
    plane=by_parts(_angle),
    domain=[REAL],
    formula="atan2(Im(z), Re(z))",
    examples=[("angle(fft([0, 1, 0, 0]))[1]", -1.5707963267948966)],
)


def _conj(z: Any) -> Any:
    return Complex(z.real, -z.imag) if isinstance(z, Complex) else z


conj = composite(
    "conj",
    "The complex conjugate of a result of fft.",
    definition=_conj,
    aliases=("conjugate",),
    plane=by_parts(_conj),
    domain=[REAL],
    formula="Re(z) - i*Im(z)",
    examples=[("imag(conj(fft([1, 2, 3, 5])))", [0, -3, 0, 3])],
)

# --- transforms ---------------------------------------------------------------------------------------------


def _sized(x: Any, n: int) -> Any:
    size = x.shape[-1]
    return part(x, -1, 0, n) if n <= size else placed(x, -1, 0, n)


def _along(z: Any, n: int | None, axis: int, name: str, transform: Any) -> Any:
    """A transform along one axis, which stands last meanwhile, of n entries."""
    rank = len(z.real.shape if isinstance(z, Complex) else z.shape)
    at = normalize_axis(axis, rank)
    if n is not None:
        whole_number(n, f"the length of {name}", 1)
    order = (*(i for i in range(-rank, 0) if i != at), at)
    back = tuple(order.index(i) - rank for i in range(-rank, 0))
    last = _of_parts(z, lambda x: permuted(x, order))
    if not (last.real if isinstance(last, Complex) else last).shape[-1]:
        raise error("GC322", f"{name} of no entries")
    return _of_parts(transform(last, n), lambda x: permuted(x, back))


def _transform(name: str, transform: Any) -> Any:
    return lambda z, n=None, axis=-1: _along(z, n, axis, name, transform)


def _forward(z: Any, n: int | None) -> Complex:
    z = z if n is None else _of_parts(z, lambda x: _sized(x, n))
    if not isinstance(z, Complex):
        return Complex(fft_real(z), fft_imag(z))
    a, b = z.real, z.imag
    return Complex(fft_real(a) - fft_imag(b), fft_imag(a) + fft_real(b))


def _backward(z: Any, n: int | None) -> Complex:
    spectrum = _forward(Complex(z.real, -z.imag) if isinstance(z, Complex) else z, n)
    size = spectrum.real.shape[-1]
    return Complex(spectrum.real / size, -spectrum.imag / size)


def _half(z: Any, n: int | None) -> Complex:
    if isinstance(z, Complex):
        raise error("GC309", "rfft takes real numbers", help="write fft(z)")
    spectrum = _forward(z, n)
    size = spectrum.real.shape[-1] // 2 + 1
    return Complex(part(spectrum.real, -1, 0, size), part(spectrum.imag, -1, 0, size))


def _from_half(z: Any, n: int | None) -> Any:
    """The real numbers whose transform begins with z, and goes on with the conjugates in the opposite order."""
    size = (z.real if isinstance(z, Complex) else z).shape[-1]
    n = 2 * (size - 1) if n is None else n
    if n < 1:
        raise error("GC322", "irfft of one number needs its length", help="write irfft(z, n)")
    if not isinstance(z, Complex):
        return fft_real(_mirrored(_sized(z, n // 2 + 1), n, 1)) / n
    real = _mirrored(_sized(z.real, n // 2 + 1), n, 1)
    imag = _mirrored(_sized(z.imag, n // 2 + 1), n, -1)
    return (fft_real(real) + fft_imag(imag)) / n


def _mirrored(x: Any, n: int, side: int) -> Any:
    """n entries that begin with x and end with side*x in the opposite order."""
    rest = (n + 1) // 2 - 1
    if not rest:
        return x
    back = reversed_along(part(x, -1, 1, rest), -1)
    return joined([x, back if side > 0 else -back], -1)


fft = composite(
    "fft",
    "The discrete Fourier transform along an axis. It is complex: take abs, real, imag or angle of it.",
    definition=_transform("fft", _forward),
    static=("n", "axis"),
    plane=by_parts(_transform("fft", _forward)),
    domain=[REAL],
    formula="sum of x[j]*exp(-2*π*i*j*k/n)",
    examples=[("abs(fft([1, 2, 3]))[0]", 6), ("real(fft([1, 2, 4, 8], 2))", [3, -1])],
    node="FftR2CBackward0",
)

ifft = composite(
    "ifft",
    "The inverse of fft along an axis. It is complex: take abs, real, imag or angle of it.",
    definition=_transform("ifft", _backward),
    static=("n", "axis"),
    plane=by_parts(_transform("ifft", _backward)),
    domain=[REAL],
    formula="sum of z[j]*exp(2*π*i*j*k/n)/n",
    examples=[("real(ifft([1, 2]))", [1.5, -0.5]), ("real(ifft(fft([1, 2])))", [1, 2])],
    node="FftC2CBackward0",
)

_rfft = _transform("rfft", _half)

rfft = composite(
    "rfft",
    "The first half of fft of real numbers; the second half contains the conjugates of the first.",
    definition=_rfft,
    static=("n", "axis"),
    plane=lambda z, *args, **options: whole(_rfft(z, *args, **options)),
    domain=[REAL],
    formula="sum of x[j]*exp(-2*π*i*j*k/n), k up to n/2",
    examples=[("real(rfft([1, 2, 4, 8]))", [15, -3, -5])],
    node="FftR2CBackward0",
)

irfft = composite(
    "irfft",
    "The inverse of rfft: real numbers.",
    definition=_transform("irfft", _from_half),
    static=("n", "axis"),
    plane=by_parts(_transform("irfft", _from_half)),
    domain=[REAL],
    formula="x with rfft(x) = z",
    examples=[("irfft(rfft([1, 2]))", [1, 2]), ("irfft([1, 0, 0])", [0.25, 0.25, 0.25, 0.25])],
    node="FftC2RBackward0",
)


def _fft2(z: Any) -> Any:
    return _along(_along(z, None, -1, "fft2", _forward), None, -2, "fft2", _forward)


fft2 = composite(
    "fft2",
    "The discrete Fourier transform along the last two axes.",
    definition=_fft2,
    plane=by_parts(_fft2),
    domain=[REAL],
    formula="fft along both axes",
    examples=[("real(fft2([[1, 2], [3, 4]]))", [[10, -2], [-4, 0]])],
    node="FftR2CBackward0",
)


def _fftshift(z: Any, axes: int | tuple[int, ...] | None = None) -> Any:
    def shifted(x: Any) -> Any:
        for at in normalize_axes(axes, len(x.shape)):
            size = x.shape[at]
            if size > 1:
                upper = (size + 1) // 2
                x = joined([part(x, at, upper, size - upper), part(x, at, 0, upper)], at)
        return x

    return _of_parts(z, shifted)


fftshift = composite(
    "fftshift",
    "The two halves of each axis exchanged, so that frequency 0 is in the middle.",
    definition=_fftshift,
    static=("axes",),
    domain=[REAL],
    formula="x rolled by half of its length",
    examples=[("fftshift([0, 1, 2, -2, -1])", [-2, -1, 0, 1, 2])],
)


def _frequencies(n: Any, d: Any, half: bool) -> ArrayData:
    count = whole_number(n, "the length of fftfreq", 1)
    if not isinstance(d, (int, float, Fraction)) or not d:
        raise error("GC306", f"the spacing of fftfreq is one number other than 0, not {described(d)}")
    turns = range(count // 2 + 1) if half else [*range((count + 1) // 2), *range(-(count // 2), 0)]
    scale = Fraction(d) * count
    return ArrayData((len(turns),), tuple(Fraction(k) / scale for k in turns))


fftfreq = composite(
    "fftfreq",
    "The frequencies of the entries of fft, for samples that are d apart.",
    definition=lambda n, d=1: _frequencies(n, d, False),
    static=("n", "d"),
    formula="0, 1, ..., -1, divided by n*d",
    examples=[("fftfreq(4, 0.5)", [0, 0.5, -1, -0.5])],
)

rfftfreq = composite(
    "rfftfreq",
    "The frequencies of the entries of rfft, for samples that are d apart.",
    definition=lambda n, d=1: _frequencies(n, d, True),
    static=("n", "d"),
    formula="0, 1, ..., n/2, divided by n*d",
    examples=[("rfftfreq(4, 0.5)", [0, 0.5, 1])],
)

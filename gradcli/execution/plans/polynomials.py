"""exp, log, sin, cos and tanh as straight arithmetic on doubles: a compiler makes vector code of it, unlike of calls.

Every function takes one number and has neither branch nor loop, only choices. The polynomials are Chebyshev fits of our
own; the reductions are Cody and Waite's. Errors: exp and log below 1.5 ulp, sin and cos (up to 100,000) and tanh below
2.5 ulp, whether products and sums are contracted or not. Its callers supply `bits` and `real`, which read a
double as a whole number and back.
"""

from __future__ import annotations

import math
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FARTHEST = 1e5
ROUNDING = 1.5 * 2.0**52  # added and taken away, it rounds to a whole number, whose bits stand at the end of the sum
ROUNDING_BITS = 0x4338000000000000
MANTISSA, ONE_BITS, BIAS = 0xFFFFFFFFFFFFF, 0x3FF0000000000000, 1023
LEAST_NORMAL, SCALE, SCALED = 2.0**-1022, 2.0**54, 54.0
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
TWO_OVER_PI = 0.6366197723675814
RIGHT_1, RIGHT_2, RIGHT_3 = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21  # parts of pi/2
ROOT_TWO = 1.4142135623730951
INF, NAN = math.inf, math.nan


def bits(x: float) -> int:
    raise TypeError("given by the compiler")


def real(n: int) -> float:
    raise TypeError("given by the compiler")


def exp_(x: float) -> float:
    """exp: x = k log 2 + r, in two factors 2**k, so that subnormal results come out right."""
    x = 710.0 if x > 710.0 else x
    x = -746.0 if x < -746.0 else x
    t = x * LOG2_E + ROUNDING
    n = bits(t) - ROUNDING_BITS
    k = t - ROUNDING
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = 2.0914679595617734e-09
    p = p * r + 2.510520668068106e-08
    p = p * r + 2.7557273660822466e-07
    p = p * r + 2.7557255425009614e-06
    p = p * r + 2.480158732553378e-05
    p = p * r + 0.00019841269874801073
    p = p * r + 0.0013888888888883752
    p = p * r + 0.008333333333326141
    p = p * r + 0.04166666666666667
    p = p * r + 0.1666666666666667
    p = p * r + 0.5
    half = n >> 1
    return (1.0 + (r + r * r * p)) * real((half + BIAS) << 52) * real((n - half + BIAS) << 52)


def log_(x: float) -> float:
    """log: x = 2**k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2)."""
    small = x < LEAST_NORMAL
    y = x * SCALE if small else x
    word = bits(y)
    k = (real((word >> 52) + ROUNDING_BITS) - ROUNDING) - BIAS
    k = k - SCALED if small else k
    m = real((word & MANTISSA) | ONE_BITS)
    large = m > ROOT_TWO
    m = m * 0.5 if large else m
    k = k + 1.0 if large else k
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 0.13086640233968908
    p = p * z + 0.1326877179171568
    p = p * z + 0.15386239753109723
    p = p * z + 0.1818179563920822
    p = p * z + 0.2222222239172257
    p = p * z + 0.28571428570803575
    p = p * z + 0.4000000000000088
    p = p * z + 0.6666666666666666
    half = 0.5 * f * f
    found = k * LN2_HIGH - ((half - (s * (half + p * z) + k * LN2_LOW)) - f)
    found = -INF if x == 0.0 else found
    found = NAN if x < 0.0 else found
    return found if x < INF else x


def sincos_(x: float) -> tuple[float, float]:
    """sin and cos up to 100,000: x = n pi/2 + r."""
    t = x * TWO_OVER_PI + ROUNDING
    n = bits(t)
    k = t - ROUNDING
    r = ((x - k * RIGHT_1) - k * RIGHT_2) - k * RIGHT_3
    z = r * r
    p = 1.5918128937554457e-10
    p = p * z - 2.5051131840044124e-08
    p = p * z + 2.7557316102528646e-06
    p = p * z - 0.00019841269836758528
    p = p * z + 0.008333333333330948
    p = p * z - 0.16666666666666666
    sine = r + r * z * p
    p = -1.138263220199036e-11
    p = p * z + 2.0876146265300598e-09
    p = p * z - 2.7557317271714906e-07
    p = p * z + 2.480158729876566e-05
    p = p * z - 0.0013888888888887398
    p = p * z + 0.041666666666666664
    half = 0.5 * z
    whole = 1.0 - half
    cosine = whole + (((1.0 - whole) - half) + z * z * p)
    odd = (n & 1) == 1
    first = cosine if odd else sine
    second = sine if odd else cosine
    first = -first if (n & 2) == 2 else first
    second = -second if ((n + 1) & 2) == 2 else second
    return (x if x == 0.0 else first), second


def sincos_far_(x: float) -> tuple[float, float]:
    """sin and cos of any angle: those that are far out by the library."""
    if abs(x) <= FARTHEST:
        return sincos_(x)
    return math.sin(x), math.cos(x)


def tanh_(x: float) -> float:
    """tanh: a polynomial up to 0.55, 1 - 2/(exp(2x) + 1) beyond."""
    size = abs(x)
    z = x * x
    p = -2.060263804879809e-05
    p = p * z + 8.511295362274356e-05
    p = p * z - 0.0002346346293139328
    p = p * z + 0.0005889360143672369
    p = p * z - 0.001455661822465716
    p = p * z + 0.003592110377734
    p = p * z - 0.008863234397741929
    p = p * z + 0.021869488493663804
    p = p * z - 0.053968253967433946
    p = p * z + 0.13333333333332714
    p = p * z - 0.3333333333333333
    far = math.copysign(1.0 - 2.0 / (exp_(2.0 * size) + 1.0), x)
    near = x if size == 0.0 else x + x * z * p  # tanh(-0) is -0
    return far if size > 0.55 else near


def far(x: float) -> int:
    """1 for an angle that `sincos_` does not know."""
    return 0 if abs(x) <= FARTHEST else 1


FUNCTIONS: tuple[Any, ...] = (exp_, log_, sincos_, sincos_far_, tanh_, far)


def compiled() -> tuple[Callable[..., Any], dict[str, Any]]:
    """numba's compiler with our options, and our functions compiled by it, by name. Raises ImportError without numba.

    Nothing is reassociated. Inside our functions a product and a sum may be one instruction, which rounds once: that
    halves their work, and no error grows. Whatever a script says itself keeps IEEE's roundings.
    """
    numba: Any = import_module("numba")
    if not _made:
        ir: Any = import_module("llvmlite.ir")
        intrinsic = import_module("numba.extending").intrinsic
        types = numba.types

        def as_bits(context: Any, x: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.bitcast(args[0], ir.IntType(64))

            return types.int64(types.float64), code

        def as_real(context: Any, n: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.bitcast(args[0], ir.DoubleType())

            return types.float64(types.int64), code

        def widest(context: Any) -> Any:
            """0; and the function that calls it is compiled for the longest vectors of the processor."""

            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                set.add(builder.function.attributes, '"prefer-vector-width"="512"')
                return ir.Constant(ir.IntType(64), 0)

            return types.int64(), code

        scope: dict[str, Any] = {**globals(), "bits": intrinsic(as_bits), "real": intrinsic(as_real)}
        for function in FUNCTIONS:
            own = FunctionType(function.__code__, scope, function.__name__)
            scope[function.__name__] = _made[function.__name__] = numba.njit(
                nogil=True, error_model="numpy", fastmath={"contract"}
            )(own)
        _made["wide"] = intrinsic(widest)
    return numba.njit, dict(_made)


_made: dict[str, Any] = {}

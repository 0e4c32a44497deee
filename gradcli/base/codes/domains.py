"""The codes of domains, as rows of the catalogue."""

from __future__ import annotations

from gradcli.base.codes.row import CodeDoc

DOMAINS: dict[str, CodeDoc] = {
    "GC401": CodeDoc(
        "outside the domain",
        "The operand of an operation lies outside its domain, so the result is NaN or infinite.",
        "gradcli evaluates the formula at every point and warns at the operation. `check` reports UNDEFINED.",
        "log(x)  # with --at x=-2",
        "Choose another point, or guard the operation: where(x > 0, log(x), 0).",
    ),
    "GC402": CodeDoc(
        "infinite value",
        "An operation has finite operands and an infinite result: a pole, or a number too large for the float type.",
        "An infinity propagates through the formula and often becomes NaN.",
        "1/x  # with --at x=0",
        "Choose another point, rescale, or use a stable form such as logsumexp.",
    ),
    "GC403": CodeDoc(
        "undefined value",
        "An operation has no value for its finite operands, such as 0/0 or the inverse of a singular matrix.",
        "The result is NaN, and so is everything computed from it.",
        "x/x  # with --at x=0",
        "Choose another point, or guard the operation with where.",
    ),
    "GC404": CodeDoc(
        "input is not finite",
        "An input, a constant or an entry of the data is NaN or infinite, and so is the result. This is a note.",
        "Such values are allowed; the note says where the NaN or infinity of the result comes from.",
        "x + 1  # with --at x=nan",
        "Give a finite value, or replace missing data first.",
    ),
    "GC405": CodeDoc(
        "derivative is not finite",
        "The value is finite, but a derivative is infinite or undefined at this point.",
        "The function has no finite derivative there, or the formula of the derivative divides by zero.",
        "sqrt(x)  # with --at x=0",
        "Choose another point; gradcli check says whether it is a kink, a boundary or a jump.",
    ),
    "GC406": CodeDoc(
        "not a position",
        "Data that is used as positions contains a number that is not whole or lies outside the axis.",
        "A position selects one entry of the axis, so it must be a whole number below its size.",
        "x[2] = 0\nk[1] = 5\nsum(take(x, k))",
        "Correct the data; positions count from 0, negative ones from the end.",
    ),
    "GC407": CodeDoc(
        "real part of a complex output",
        "With --dtype complex128 the output is complex; the gradient is that of its real part. This is a note.",
        "Only a real number L has a gradient; for a complex leaf z it is dL/d(conj z), as in PyTorch.",
        "sqrt(x)  # with --at x=-1 --dtype complex128",
        "Write the real function that you mean, such as abs(z)**2.",
    ),
    "GC408": CodeDoc(
        "empty interval",
        "The lower end of the domain of a leaf is not below its upper end.",
        "check takes points from the domain, and an empty domain has none.",
        "x in (2, 1) = 1.5\nx**2",
        "Write the smaller end first: x in (1, 2).",
    ),
    "GC409": CodeDoc(
        "digits are lost",
        "The formula is right, but this operation loses most digits of its operands. A note or warning, no error.",
        "The difference of nearly equal numbers consists mostly of their rounding errors.",
        "(1 - cos(x))/x**2  # with --at x=1e-7",
        "Use a form without the subtraction, such as expm1(x), log1p(x), or 2*sin(x/2)**2 for 1 - cos(x).",
    ),
    "GC410": CodeDoc(
        "kink",
        "The slopes from the left and from the right differ, so there is no unique derivative. A note.",
        "The gradient at a kink is a convention: gradcli follows PyTorch, and gradcli ops NAME shows the choice.",
        "abs(x)  # with --at x=0",
        "Check at another point, mark the line with # expect: kink, or use --allow kink.",
    ),
    "GC411": CodeDoc(
        "not holomorphic",
        "With --dtype complex128, a Jacobian or second derivatives are asked of a function such as |z|.",
        "They are complex derivatives here, and |z| has none: its slope depends on the direction.",
        "hessian(abs(x)**2, x)  # with --at x=-1 --dtype complex128",
        "Take the gradient, or use the real and the imaginary part as separate leaves.",
    ),
    "GC412": CodeDoc(
        "a mistake in a derivation",
        "A wrong rule at this operation, such as a forgotten factor, gives the claimed gradient. A note of check.",
        "Most wrong derivatives contain one mistake at one place. This mistake gives the claimed values at every point "
        "that was tried, which is no proof that you made it.",
        "y = sin(2*x)\nassert grad(y, x) == cos(2*x)  # with --at x=0.3",
        "Compare your derivation with the corrected formula that check prints.",
    ),
    "GC413": CodeDoc(
        "symmetric leaf",
        "The entries [i, j] and [j, i] of a leaf that is declared symmetric differ. A note says what derivatives mean.",
        "These two entries are one variable: a derivative moves both, so the gradient is G + G.T - diag(diag(G)): "
        "G is the gradient by independent entries.",
        "S[2, 2] in symmetric = [[1, 2], [3, 4]]\nlogdet(S)",
        "Give a symmetric matrix, or declare S[n, n] in real, where every entry is a variable of its own.",
    ),
    "GC414": CodeDoc(
        "rounded value",
        "A whole number of the point has more digits than a float64 holds. A note.",
        "Values are computed in float64, which holds every whole number up to 2**53 only.",
        "x + 1  # with --at x=9007199254740993",
        "Nothing, if the nearest double will do; else shift or rescale the variable.",
    ),
}

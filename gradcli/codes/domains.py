"""The codes of domains, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

DOMAINS: dict[str, CodeDoc] = {
    "GC401": CodeDoc(
        "outside the domain",
        "An operation has an operand outside its domain; the IEEE result, NaN or infinite, is used.",
        "A point is never refused: the formula is evaluated and the place named. `check` calls it UNDEFINED.",
        "log(x)  # with --at x=-2",
        "Choose another point, or guard it: where(x > 0, log(x), 0).",
    ),
    "GC402": CodeDoc(
        "infinite value",
        "An operation made an infinity from finite operands: a pole, or more than the float type holds.",
        "Infinity propagates through the formula and usually ends as NaN.",
        "1/x  # with --at x=0",
        "Choose another point, rescale, or use a stable form such as logsumexp.",
    ),
    "GC403": CodeDoc(
        "undefined value",
        "An operation has no value for its finite operands, as 0/0 or the inverse of a singular matrix.",
        "NaN then spreads to everything that uses it.",
        "x/x  # with --at x=0",
        "Choose another point, or guard it with where.",
    ),
    "GC404": CodeDoc(
        "input is not finite",
        "An input, constant or data entry is NaN or infinite, and the result is too. This is a note.",
        "Such values are allowed; this says where the result's NaN comes from.",
        "x + 1  # with --at x=nan",
        "Give a finite value, or replace missing data first.",
    ),
    "GC405": CodeDoc(
        "derivative is not finite",
        "The value exists, but a derivative is infinite or undefined at this point.",
        "The function is not differentiable there, or its partial derivatives only exist in the limit.",
        "sqrt(x)  # with --at x=0",
        "Choose another point; `check` names kinks and verticals.",
    ),
    "GC406": CodeDoc(
        "not a position",
        "Data used as positions holds an entry that is not a whole number or lies outside the axis.",
        "Positions pick entries; 1.5 or 7 of 5 picks none.",
        "x[2] = 0\nk[1] = 5\nsum(take(x, k))",
        "Correct the data; positions count from 0, negative ones from the end.",
    ),
    "GC407": CodeDoc(
        "real part of a complex output",
        "With --dtype complex128 the output is complex: its real part is taken. This is a note.",
        "A gradient is that of a real number; the convention is dL/d(conj z) for the real part L.",
        "sqrt(x)  # with --at x=-1 --dtype complex128",
        "Write the real function that is meant, such as abs(z)**2.",
    ),
    "GC408": CodeDoc(
        "empty interval",
        "The lower end of a domain is not below its upper end.",
        "A domain says where a leaf may lie; in an empty one there is no point to check.",
        "x in (2, 1) = 1.5\nx**2",
        "Write the smaller end first: x in (1, 2).",
    ),
    "GC409": CodeDoc(
        "digits are lost",
        "The formula is right, but this operation loses most digits of its float. A note of check, eval and grad.",
        "Subtracting nearly equal numbers leaves only their rounding errors.",
        "(1 - cos(x))/x**2  # with --at x=1e-7",
        "Use a form without the subtraction, such as expm1, log1p, or 2*sin(x/2)**2.",
    ),
    "GC410": CodeDoc(
        "kink",
        "There is no unique derivative here: the slopes from the left and the right differ. A note of check.",
        "At a kink a gradient is a convention; ours is PyTorch's, and gradcli ops NAME shows it.",
        "abs(x)  # with --at x=0",
        "Check at another point, mark the line with # expect: kink, or use --allow-kink.",
    ),
    "GC411": CodeDoc(
        "complex gradient without a rule",
        "With --dtype complex128, the gradient differs from differences of the real part of the output.",
        "The rules are the holomorphic ones. norm uses |z|, and |z|*z has no complex derivative.",
        "abs(sqrt(x))*sqrt(x)  # with --at x=-1 --dtype complex128",
        "Use the real and the imaginary part as separate leaves.",
    ),
    "GC412": CodeDoc(
        "a mistake in a derivation",
        "Applying the rule wrongly at this operation gives the claimed gradient. A note of check.",
        "One mistake at one place is the usual way to get a derivative wrong. The note is consistent with the claim at "
        "every point that was tried, but that is not a proof.",
        "y = sin(2*x)\nassert grad(y, x) == cos(2*x)  # with --at x=0.3",
        "Compare with the corrected formula that check prints.",
    ),
}

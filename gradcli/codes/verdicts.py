"""The codes of verdicts, which report files and remarks name, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

VERDICT_CODES: dict[str, CodeDoc] = {
    "GC801": CodeDoc(
        "DISAGREES: not the derivative",
        "The gradient, the claim or the equality is wrong, and the check shows a point at which both sides differ.",
        "It is reported only with a counterexample whose error is bounded; a rounding error is never the reason.",
        "x = 2\nassert grad(x**2, x) == x\nx**2",
        "Compare with the exact value and the corrected formula that check prints, and correct the rule or the claim.",
    ),
    "GC802": CodeDoc(
        "IMPRECISE: right rule, few digits",
        "The formula is right, but the float that comes out of it is far from the exact value. A failure only with "
        "--require precise.",
        "A formula can be exact in algebra and lose most of its digits in floating-point numbers.",
        "(1 - cos(x))/x**2  # with --at x=1e-8 --require precise",
        "Rewrite the operation that check names, or mark the line with # expect: imprecise.",
    ),
    "GC803": CodeDoc(
        "KINK: two slopes",
        "The slopes on both sides of the point differ, so there is no unique derivative to compare with.",
        "What a gradient says at a kink is a convention, and a training that stops there may depend on it.",
        "relu(x)  # with --at x=0",
        "Check at another point, mark the line with # expect: kink, or use --allow-kink or --dodge.",
    ),
    "GC804": CodeDoc(
        "BOUNDARY: no finite derivative",
        "The point lies at the end of the domain, or the slope is infinite there.",
        "No number is the derivative at such a point, whatever the rule returns.",
        "sqrt(x - 1)  # with --at x=1",
        "Move the point into the domain, or mark the line with # expect: boundary.",
    ),
    "GC805": CodeDoc(
        "DISCONTINUOUS: the value jumps",
        "The function has a jump at the point, so it has no derivative there.",
        "The rule of a step is zero on both sides, which says nothing about the jump.",
        "sign(x)  # with --at x=0",
        "Check at another point, or mark the line with # expect: discontinuous.",
    ),
    "GC806": CodeDoc(
        "UNDEFINED: no value at the point",
        "The value itself is not a real number at the point: a logarithm of a negative number, a division by zero.",
        "A derivative needs a value beside which it is taken.",
        "log(x - 2)  # with --at x=1",
        "Choose a point in the domain, or mark the line with # expect: undefined.",
    ),
    "GC807": CodeDoc(
        "INCONCLUSIVE: not decided",
        "No oracle could confirm or refute the derivative; the message says which was tried and what stopped it.",
        "A verdict is never stronger than its evidence, and an open question is not a pass.",
        "where(x > 0, x*sin(1/x), 0)  # with --at x=0",
        "Check at another point or with a longer --timeout, or accept open questions with --lenient.",
    ),
    "GC808": CodeDoc(
        "ERROR: could not be checked",
        "The script cannot be read or lowered, or gradcli failed on it; a diagnostic beside the verdict says why.",
        "A script that was not checked must not look like one that passed.",
        "x = 2\ny = x**",
        "Correct the error that the diagnostic names; gradcli explain CODE says more about it.",
    ),
    "GC809": CodeDoc(
        "CRASHED: the process died twice",
        "The worker process died while it checked this script, and died again when the script was checked alone.",
        "A crash or a lack of memory in one script must not take the results of the others.",
        "x**2  # no script should end its process",
        "Run gradcli check on this file alone; give it more memory, or report the script that crashes.",
    ),
    "GC810": CodeDoc(
        "not as required",
        "The verdict is good, but not what was required: --require refuses it, or an expectation is not met.",
        "A remark that has become wrong hides the next failure, so it fails also where the result is better.",
        "x = 3\nx**2  # expect: kink",
        "Remove or correct the remark, or lower the level of --require.",
    ),
    "GC811": CodeDoc(
        "unused suppression",
        "A remark suppresses a verdict that the line does not have.",
        "A suppression that is left behind would hide a failure that comes later.",
        "x = 3\nx**2  # gradcli: ignore[GC803] no kink is left here",
        "Remove the remark, or correct its code.",
    ),
}

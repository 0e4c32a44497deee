"""The codes of verdicts, which report files and remarks name, as rows of the catalogue."""

from __future__ import annotations

from gradcli.codes.row import CodeDoc

VERDICT_CODES: dict[str, CodeDoc] = {
    "GC801": CodeDoc(
        "DISAGREES: not the derivative",
        "The gradient, the claim or the equality is wrong, and check shows a point at which both sides differ.",
        "check computes both sides there with a bound on the error, so rounding cannot be the reason.",
        "x = 2\nassert grad(x**2, x) == x\nx**2",
        "Compare with the exact value and the corrected formula that check prints, and correct the rule or the claim.",
    ),
    "GC802": CodeDoc(
        "IMPRECISE: right rule, few digits",
        "The formula is right, but its floating-point result is far from the exact value. The check fails only with "
        "--require precise.",
        "A formula can be right in algebra and lose most of its digits in floating-point arithmetic.",
        "(1 - cos(x))/x**2  # with --at x=1e-8 --require precise",
        "Rewrite the operation that check names, or mark the line with # expect: imprecise.",
    ),
    "GC803": CodeDoc(
        "KINK: two slopes",
        "The slopes on both sides of the point differ, so there is no unique derivative to compare with.",
        "The gradient at a kink is a convention, and your results may depend on it.",
        "relu(x)  # with --at x=0",
        "Check at another point, mark the line with # expect: kink, or use --allow kink or --avoid-kinks.",
    ),
    "GC804": CodeDoc(
        "BOUNDARY: no finite derivative",
        "The point lies at the end of the domain, or the slope is infinite there.",
        "There is no finite derivative at such a point, whatever a gradient returns.",
        "sqrt(x - 1)  # with --at x=1",
        "Move the point into the domain, or mark the line with # expect: boundary.",
    ),
    "GC805": CodeDoc(
        "DISCONTINUOUS: the value jumps",
        "The function has a jump at the point, so it has no derivative there.",
        "The gradient of a step function is zero on both sides and does not show the jump.",
        "sign(x)  # with --at x=0",
        "Check at another point, or mark the line with # expect: discontinuous.",
    ),
    "GC806": CodeDoc(
        "UNDEFINED: no value at the point",
        "The function has no real value at the point, as for the logarithm of a negative number or a division by zero.",
        "Where a function has no value, it has no derivative.",
        "log(x - 2)  # with --at x=1",
        "Choose a point in the domain, or mark the line with # expect: undefined.",
    ),
    "GC807": CodeDoc(
        "INCONCLUSIVE: not decided",
        "check could neither confirm nor refute the derivative; the message says what stopped it.",
        "A verdict is never stronger than its evidence, so an undecided check does not pass.",
        "where(x > 0, x*sin(1/x), 0)  # with --at x=0",
        "Check at another point or with a longer --timeout, or accept undecided checks with --allow inconclusive.",
    ),
    "GC808": CodeDoc(
        "ERROR: could not be checked",
        "The script has an error, or gradcli failed on it; the diagnostic beside the verdict gives the reason.",
        "A script that was not checked must not look like one that passed.",
        "x = 2\ny = x**",
        "Correct the error that the diagnostic names; gradcli explain CODE says more about it.",
    ),
    "GC809": CodeDoc(
        "CRASHED: the process died twice",
        "The worker process died while it checked this script, and again when it checked the script alone.",
        "A crash or a lack of memory in one script must not lose the results of the others.",
        "x**2  # no script should end its process",
        "Run gradcli check on this file alone, with more memory; if it still crashes, please report the script.",
    ),
    "GC810": CodeDoc(
        "not as required",
        "The verdict alone would pass, but --require demands a stronger one, or an # expect: remark another one.",
        "A remark that is no longer true could hide the next failure, so it fails even where the verdict is better.",
        "x = 3\nx**2  # expect: kink",
        "Remove or correct the remark, or lower the level of --require.",
    ),
    "GC811": CodeDoc(
        "unused suppression",
        "A remark suppresses a verdict that the line does not have.",
        "An outdated suppression would hide a later failure.",
        "x = 3\nx**2  # gradcli: ignore[GC803] no kink is left here",
        "Remove the remark, or correct its code.",
    ),
}

"""The codes of verdicts, which report files and pragmas name, as rows of the catalogue."""

from __future__ import annotations

from gradcli.base.codes.row import CodeDoc

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
        "where(x == 0, 0, x*sin(1/sin(1/x)))  # with --at x=0",
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
        "The verdict alone would pass, but --require demands a stronger one, or an # expect: pragma another one.",
        "A pragma that is no longer true could hide the next failure, so it fails even where the verdict is better.",
        "x = 3\nx**2  # expect: kink",
        "Remove or correct the pragma, or lower the level of --require.",
    ),
    "GC811": CodeDoc(
        "unused suppression",
        "A pragma suppresses a verdict that the line does not have.",
        "An outdated suppression would hide a later failure.",
        "x = 3\nx**2  # gradcli: ignore[GC803] no kink is left here",
        "Remove the pragma, or correct its code.",
    ),
}

# verdicts without a code, because they pass, or because they are those of an audit
WORDS: dict[str, CodeDoc] = {
    "PROVED": CodeDoc(
        "equal as formulas",
        "The difference of the derivative and the claim is 0 as a formula, under the signs that hold at the point.",
        "Algebra does not round, so this verdict holds for all digits, and near the point as well.",
        "x**2  # with --at x=3",
        "Nothing. The reason beside the verdict says what the proof assumes.",
    ),
    "CERTIFIED": CodeDoc(
        "enclosed in exact numbers",
        "Exact enclosures of both sides agree at the points, and the number is within 1,024 units in its last place.",
        "Two functions may agree at some points by luck, so a proof would be stronger.",
        "lambertw(x)  # with --at x=2",
        "Nothing; --samples checks at more points.",
    ),
    "AGREES": CodeDoc(
        "no difference seen",
        "Numerical evidence only: finite differences agree with the claim to the bound that is stated.",
        "Functions of Python that cannot be read as formulas are judged by their values.",
        "gradcli check --python samples/python/noisy.py:single --grad samples/python/noisy.py:single_slope --at "
        '"x=[0.3,-1.2,0.8]"',
        "Nothing, or ask for more with --require certified.",
    ),
    "SURROGATE": CodeDoc(
        "a gradient on purpose",
        "In an audit: forward does not change with its input, or is the identity, and backward is something else.",
        "Straight-through estimators and reversed gradients are meant so, and are no derivative.",
        "gradcli audit -- python train.py",
        'Nothing, or write it down: [tool.gradcli.audit.expect] "layers.RoundSte" = "SURROGATE".',
    ),
    "SYMMETRIC": CodeDoc(
        "right for the arguments that are allowed",
        "In an audit: the gradient differs from the derivative, but not along symmetric matrices. So do those ON THE "
        "SPHERE, for vectors of one length, and ON THE SIMPLEX, for vectors of one sum.",
        "Only such arguments are passed to the function, so both conventions train alike.",
        "gradcli audit -- python fit.py",
        "Nothing, if the function is called with such arguments only.",
    ),
    "APPROXIMATE": CodeDoc(
        "a finite difference",
        "In an audit: the gradient has the error of finite differences.",
        "It is computed by differences, so it is right to some digits only.",
        "gradcli audit -- python fit.py",
        "Nothing, or replace it by an exact gradient.",
    ),
    "STOCHASTIC": CodeDoc(
        "two calls at one point differ",
        "In an audit: the function or its gradient returns other numbers when it is called again.",
        "Differences of random numbers show nothing about a gradient.",
        "gradcli audit -- python train.py",
        "Fix the seed inside the function, to have it judged.",
    ),
    "STATE CHANGED": CodeDoc(
        "no longer the value of the run",
        "In an audit: the function no longer gives the value that it gave during the run.",
        "Its values at other points cannot be compared with the recorded call.",
        "gradcli audit -- python train.py",
        "Leave arguments and state as they are, to have it judged.",
    ),
    "LOOK": CodeDoc(
        "a pair that a person should read",
        "In an audit with --pairs: two functions whose names are those of a function and its derivative do not agree.",
        "That they are a pair is a guess, and one call that differs may have another reason.",
        "gradcli audit --pairs pvlib",
        "Read both functions. If they are a pair, confirm it in a file of pairs: then a difference fails.",
    ),
    "UNPAIRED": CodeDoc(
        "no pair after all",
        "In an audit with --pairs: no reading of the second function is a derivative of the first.",
        "Names alone were the reason to compare them.",
        "gradcli audit --pairs pvlib",
        "Nothing; if they are a pair, confirm it in a file of pairs.",
    ),
    "NOT JUDGED": CodeDoc(
        "recorded, but not checked",
        "In an audit: there was no time, no memory or no way to call the function again; the reason says which.",
        "What was not checked must not look as if it had passed.",
        "gradcli audit --budget 900 -- python train.py",
        "Raise --budget or --size, or run the command that the report names.",
    ),
}

"""The names by which functions and their hand-written derivatives are recognised, and the pairs of a file."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradcli.base.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ONE_ARGUMENT = "X_dY -> X"  # where Y is an argument
# Names of a derivative, and of the function that it may be the derivative of. X, Y and Z stand for parts of names, and
# a minus sign is that of the derivative. The first name that exists counts.
ANYWHERE = (
    "X_grad|X_gradient|X_deriv|X_derivative|X_der|X_prime|X_jac|X_jacobian|X_fprime|X_dx -> X",
    "X_grad_Y|X_gradient_Y|X_derivative_Y|X_deriv_Y|X_jacobian_Y -> X|X_Y",
    "grad_X|gradient_X|deriv_X|derivative_X|der_X|jac_X|jacobian_X|d_X|dX -> X",
    "X_hess|X_hessian|X_deriv2|X_derivative2|X_der2|X_second_derivative -> X_grad|X_gradient|X_jac|X_deriv|X_der",
    "hess_X|hessian_X -> grad_X|gradient_X|jac_X|jacobian_X",
    "dX_dY_dZ -> dX_dY",
    "dX_dY|dXdY|dX_by_dY -> X_of_Y|X|X_Y",
    "d2X_dY2|d2XdY2|d2X_dYdZ -> dX_dY|dXdY",
    "d3X_dY3 -> d2X_dY2",
    "X_pdf|X_PDF -> X_cdf|X_CDF",
    ONE_ARGUMENT,
    "fprime|jac|jacobian|grad|gradient -> f|fun|func|function|objective|residual|residuals",
    "fprime2|hess|hessian -> fprime|jac|jacobian|grad|gradient",
)
IN_CLASSES = (
    "fit_deriv -> evaluate",
    "score -> loglike",
    "score_obs -> loglikeobs",
    "hessian -> score",
    "psi -> rho",
    "psi_deriv -> psi",
    "deriv|derivative -> __call__|evaluate|value|function",
    "deriv2|second_derivative -> deriv|derivative",
    "inverse_deriv -> inverse",
    "inverse_deriv2 -> inverse_deriv",
    "gradient|grad|derivatives|_gradient|_grad -> link|loss|value|cost|function|fn|evaluate|_evaluate|__call__|energy"
    "|potential|forward|eval|log_prob|log_likelihood",
    "hessian|hess|_hessian|_hess|grad2 -> gradient|grad|derivatives|_gradient|_grad",
    "d_score -> score",
    "evaluateS1 -> __call__",
    "simulateS1 -> simulate",
    "_Rforce|_zforce|_phitorque -> -_evaluate",
    "_R2deriv|_Rzderiv|_Rphideriv -> -_Rforce",
    "_z2deriv|_phizderiv -> -_zforce",
    "_phi2deriv -> -_phitorque",
    "dlogpdf_dlink -> logpdf_link",
    "raw_grad -> value",
    "raw_hessian -> raw_grad",
    "get_forces|forces|force -> -get_potential_energy|energy|potential_energy|potential",
    "delta|vega|rho -> price|value",
    "theta -> -price|value",
    "gamma|vanna|charm -> delta",
    "pdf|_pdf -> cdf|_cdf",
    "hazard -> cumulative_hazard",
    "volga|vomma -> vega",
    "speed|zomma|color -> gamma",
    "ultima -> vomma|volga",
)
# of these, those that are taken entry by entry: of links, norms, activations and densities
ENTRYWISE = frozenset(
    {"deriv", "deriv2", "inverse_deriv", "inverse_deriv2", "psi", "psi_deriv", "X_prime", "raw_grad", "raw_hessian"}
    | {"pdf", "_pdf", "hazard", "X_pdf", "dlogpdf_dlink"}
)
# a parameter by which a function returns its derivative, too; one that also takes a function is a solver
FLAG = re.compile(r"(return_|eval_|with_|compute_|calc_)?(grad|gradients?|jac|jacobian|deriv|derivs|derivatives?)")
FUNCTIONS = frozenset({"f", "fun", "func", "function", "fn", "objective"})
# a function that returns its value with its derivative, and how such a derivative is called in it
WORDS = r"(grad|gradients?|der|derivs?|derivatives?|jac|jacobians?)"
TOGETHER = re.compile(
    rf"(and|with|loss|cost|obj\w*|fun\w*|value|energy|nll|kl)_?(\w*_)?{WORDS}(_|$)|(^|_){WORDS}_(and|with)|S1$"
)
RETURNED = re.compile(
    r"_?[dD]?_?(grad|jac|deriv|hess)\w*|\w*(grad|gradient|jac|jacobian|deriv|derivative)s?|d\w?_?d\w+"
)
APPROXIMATE = re.compile(r"numeric|approx|finite|_fd$|^fd_|check_|test")


class Pair(NamedTuple):
    """A function and what may be its derivative, both as `module:qualified.name`.

    `kind` is "gradient", "entrywise" (a derivative for each entry), "flag" or "together".
    `flag` is the parameter by which `value` returns the derivative, too; without one, a function that is both returns
    the two together, so many `values` before the derivatives. `sign` is that of the derivative, `by` the argument that
    it belongs to, where that is known. A `confirmed` pair is no guess.
    """

    derivative: str
    value: str
    rule: str
    kind: str = "gradient"
    sign: int = 1
    by: str = ""
    flag: str = ""
    sure: str = "guess"
    confirmed: bool = False
    place: str = ""
    values: int = 1

    @property
    def module(self) -> str:
        """The module after whose import the pair can be watched."""
        return self.derivative.partition(":")[0]


@cache
def patterns(rules: Sequence[str]) -> list[tuple[re.Pattern[str], tuple[str, ...], int, str]]:
    """Each name of a derivative as a pattern, the names of its function, the sign, and the rule as text."""
    rows = []
    for rule in rules:
        derivatives, functions = rule.split(" -> ")
        sign = -1 if functions.startswith("-") else 1
        for name in derivatives.split("|"):
            pattern = re.sub("([XYZ])", r"(?P<\1>\\w+?)", name)
            pattern = re.sub(r"(\(\?P<([YZ])>\\w\+)\?\)", r"\1)", pattern)
            templates = tuple(re.sub("([XYZ])", r"{\1}", text) for text in functions.lstrip("-").split("|"))
            rows.append((re.compile(pattern), templates, sign, f"{name} -> {functions}"))
    return rows


class Match(NamedTuple):
    """A name that may be that of a derivative: the names of its function, the sign, the variable, and the rule."""

    names: list[str]
    sign: int
    by: str
    rule: str

    @property
    def kind(self) -> str:
        """What the derivative is of its function."""
        return "entrywise" if self.rule.partition(" -> ")[0] in ENTRYWISE else "gradient"


def matches(name: str, in_class: bool) -> Iterator[Match]:
    """What a name may be the derivative of, the surest first."""
    for rules in (IN_CLASSES, ANYWHERE) if in_class else (ANYWHERE,):
        for pattern, templates, sign, rule in patterns(rules):
            match = pattern.fullmatch(name)
            if match is not None:
                parts = match.groupdict()
                names = [template.format(**{**dict.fromkeys("XYZ", ""), **parts}) for template in templates]
                yield Match(names, sign, parts.get("Z", parts.get("Y", "")), rule)


# --- files of pairs ---------------------------------------------------------------------------------------------


def written(pairs: Sequence[Pair], package: str) -> str:
    """Pairs as TOML, for a person to read."""
    lines = [
        f"# {len(pairs)} pairs of {package}, recognised by their names. Nothing was imported or run.",
        "# Delete what is no pair. `confirmed = true` says that one is: then it may fail an audit.",
    ]
    for pair in pairs:
        lines += ["", "[[pairs]]" + (f"  # {pair.place}" if pair.place else "")]
        for name in Pair._fields:
            content = getattr(pair, name)
            if name != "place" and content != Pair._field_defaults.get(name):
                lines.append(f"{name} = {json.dumps(content, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def read(path: str) -> list[Pair]:
    """The pairs of a file. Raises GradcliError GC747 where it holds none."""
    try:
        rows = tomllib.loads(Path(path).read_text("utf-8"))["pairs"]
        pairs = [Pair(**{"rule": "by the file", **row}) for row in rows]
    except OSError as problem:
        raise error("GC747", f"cannot read {visible(path, 200)}: {(problem.strerror or '').lower()}") from None
    except (ValueError, KeyError, TypeError) as problem:
        raise error(
            "GC747",
            f"{visible(path, 200)} holds no pairs: {visible(str(problem), 200)}",
            help="gradcli audit --scan PACKAGE writes such a file",
        ) from None
    return pairs

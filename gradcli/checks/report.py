"""How a check is judged, and its report: a record per gradient, claim or rule, a report per script."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.base.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.language.syntax import Directive
    from gradcli.lowering import Lowered

VERDICTS = (
    "PROVED", "CERTIFIED", "AGREES", "IMPRECISE", "DISAGREES", "KINK", "BOUNDARY", "DISCONTINUOUS", "UNDEFINED",
    "INCONCLUSIVE", "ERROR", "CRASHED",
)  # fmt: skip
GOOD = ("PROVED", "CERTIFIED", "AGREES", "IMPRECISE")  # on what is right, the best first
NONSMOOTH = ("KINK", "BOUNDARY", "DISCONTINUOUS")  # on points without a derivative

# the code of a verdict that does not pass, by which reports name it and suppressions ignore it
CODE_OF_VERDICT = {
    "DISAGREES": "GC801", "IMPRECISE": "GC802", "KINK": "GC803", "BOUNDARY": "GC804", "DISCONTINUOUS": "GC805",
    "UNDEFINED": "GC806", "INCONCLUSIVE": "GC807", "ERROR": "GC808", "CRASHED": "GC809",
}  # fmt: skip
NOT_AS_REQUIRED = "GC810"  # a good verdict that is not what is required or expected


class Settings(NamedTuple):
    """How a check is judged, what counts as good, and what is shown; see `check_script`."""

    samples: int = 3
    timeout: float = 60.0
    dtype: str = "float64"
    seed: int | None = None
    require: frozenset[str] = frozenset()
    allow_kink: bool = False
    lenient: bool = False
    backend: str = "numpy"
    rtol: float | None = None
    witnesses: tuple[str, ...] = ()
    steps: bool = False
    dodge: bool = False

    @classmethod
    def of_caller(cls, require: str | None = None, **options: Any) -> Settings:
        """The settings of a call; raises GradcliError (GC721) for a value that a setting cannot have."""
        self = cls(require=frozenset([require] if require else ()), **options)
        kinds: dict[str, Any] = {"samples": Integral, "timeout": Real}
        kinds |= {} if self.seed is None else {"seed": Integral}
        kinds |= {} if self.rtol is None else {"rtol": Real}
        values = [(name, getattr(self, name), kind) for name, kind in kinds.items()]
        wrong = [(name, value) for name, value, kind in values if not (isinstance(value, kind) and value >= 0)]
        wrong += [("require", word) for word in self.require - {"certified", "precise"}]
        for name, value in wrong:
            hints = {"require": "certified or precise", "timeout": "seconds", "rtol": "a number, 0 or more"}
            hint = hints.get(name, "a whole number, 0 or more")
            raise error("GC721", f"{name} cannot be {visible(repr(value))}", help=f"give {hint}")
        return self

    def with_directives(self, directives: Iterable[Directive]) -> Settings:
        """These settings with what pragmas say on top, a later one on top of an earlier one."""
        settings = self
        for directive in directives:
            changes: dict[str, Any] = {key.replace("-", "_"): value for key, value in directive.settings.items()}
            if "require" in changes:
                changes["require"] = settings.require | {changes["require"]}
            settings = settings._replace(**changes)
        return settings

    @property
    def plane(self) -> bool:
        """Whether entries are complex."""
        return self.dtype == "complex128"

    @property
    def doubles(self) -> str:
        """The dtype of the values that exact numbers are compared with."""
        return "complex128" if self.plane else "float64"

    def at_lines(self, lowered: Lowered, *lines: int | None) -> Settings:
        """The settings that hold at some lines of a script, the nearest of which is the last."""
        local = [directive for directive in lowered.script.directives if not directive.whole]
        return self.with_directives(directive for line in lines for directive in local if directive.covers(line))


@dataclass(frozen=True)
class Check:
    """The verdict on one gradient, claim, hand-written rule or callable.

    `evidence` is plain JSON data; `passed`, the truth value, counts what the script expected and the caller required.
    `seconds` is how long it took, the preparation of the script with the first check; it is no part of the verdict.
    """

    id: str
    file: str | None
    line: int | None
    kind: str
    leaf: str | None
    verdict: str
    evidence: dict[str, object]
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()
    expected: str | None = None
    passed: bool = True
    later: Callable[[], dict[str, object]] | None = field(default=None, compare=False, repr=False)
    seconds: float | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        return self.passed


@dataclass(frozen=True)
class Report:
    """All checks of one script; true only if something was judged and all of it passed, as `ok` says.

    `block` is the number of a script in the document `file`, 0 for a file of its own.
    """

    expression: str
    checks: tuple[Check, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    file: str | None = None
    block: int = 0

    @property
    def ok(self) -> bool:
        """Whether there are checks and all passed: INCONCLUSIVE does not, unless the caller is lenient."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def shown(self) -> Report:
        """The same report with evidence that is computed `later`, for people: no verdict depends on it."""
        checks = [replace(x, evidence={**x.evidence, **x.later()}, later=None) if x.later else x for x in self.checks]
        return replace(self, checks=tuple(checks))

    @property
    def summary(self) -> dict[str, int]:
        """How many checks are "passed", "failed" and "inconclusive", and how many have each verdict.

        If a baseline accepts failures, there is also how many are "accepted", which do not count as passed.
        """
        verdicts = [check.verdict for check in self.checks]
        failed = ["inconclusive" if verdict == "INCONCLUSIVE" else "failed" for verdict in verdicts]
        passed = ["accepted" if "baseline" in check.evidence else "passed" for check in self.checks]
        groups = [passed[i] if check.passed else failed[i] for i, check in enumerate(self.checks)]
        counts = {group: groups.count(group) for group in ("passed", "failed", "inconclusive")}
        counts |= {"accepted": groups.count("accepted")} if "accepted" in groups else {}
        return counts | {verdict: verdicts.count(verdict) for verdict in VERDICTS if verdict in verdicts}


def refused(diagnostics: Sequence[Diagnostic], expression: str = "", file: str | None = None) -> Report:
    """The report of a script that could not be read: one check, ERROR, with the diagnostics that say why."""
    first = diagnostics[0]
    evidence: dict[str, object] = {"codes": list(dict.fromkeys(diagnostic.code for diagnostic in diagnostics))}
    about = ("error", file, first.span and first.span.line, "gradient", None, "ERROR", evidence, first.message)
    return Report(expression, (Check(*about, tuple(diagnostics), passed=False),), file=file)


def timed(report: Report, seconds: Iterable[float | None]) -> Report:
    """A report with the seconds that each of its checks took."""
    checks = [replace(check, seconds=took) for check, took in zip(report.checks, seconds, strict=True)]
    return replace(report, checks=tuple(checks))

"""The options of `check`: their declarations by the headings of the help, and a record of the values under each."""

from __future__ import annotations

from gradcli.commands._declaration import Operand, Option
from gradcli.commands._shared import CLUSTER
from gradcli.records import NamedTuple


class Point(NamedTuple):
    """Where and how it is evaluated; the options that other commands have too."""

    at: tuple[str, ...]
    wrt: str | None
    dtype: str
    backend: str
    limit: tuple[str, ...]


class Judged(NamedTuple):
    """What to check."""

    claim: tuple[str, ...]
    python: str | None
    grad: str | None
    samples: int
    seed: int | None
    box: tuple[str, ...]
    dodge: bool
    steps: bool
    witnesses: str | None
    timeout: float


class Failing(NamedTuple):
    """What counts as a failure."""

    require: str | None
    allow_kink: bool
    lenient: bool
    allow_empty: bool
    baseline: str | None
    write_baseline: str | None


class Files(NamedTuple):
    """Which files."""

    docs: bool
    select: tuple[str, ...]
    exclude: tuple[str, ...]
    shard: str | None
    last_failed: bool


class Running(NamedTuple):
    """How it runs."""

    jobs: int | None
    memory: int | None
    cluster: str | None
    fail_fast: bool
    watch: bool
    cache: str | None
    no_cache: bool


class Shown(NamedTuple):
    """What is shown."""

    show: str
    verdict: str | None
    verbose: bool
    update: bool
    diff: bool


class Written(NamedTuple):
    """Report files."""

    json: str | None
    junit: str | None
    sarif: str | None
    gitlab: str | None
    markdown: str | None
    github: bool
    tap: bool


GROUPS = (Judged, Failing, Files, Running, Shown, Written, Point)
TARGETS = Operand(
    "targets",
    "[PATH ... | EXPR]",
    "Files, folders, or one expression. Default: this folder.",
    required=False,
    many=True,
)
SECTIONS = {
    "What to check": (
        Option(
            "--claim",
            many=True,
            metavar='"LEAF = SCRIPT"',
            help="A derivative worked out by hand. May be repeated.",
        ),
        Option(
            "--python",
            metavar="TARGET:NAME",
            help="A Python function; TARGET is a path ending in .py or a dotted module. Its code is executed.",
        ),
        Option(
            "--grad",
            metavar="TARGET:NAME",
            help="Its hand-written gradient or Jacobian, or its backward, which takes the same arguments and then a "
            "cotangent (a method of the same object: the cotangent alone).",
        ),
        Option("--samples", kind="int", default=3, low=0, setting=True, help="Further points near the given one."),
        Option(
            "--seed",
            kind="int",
            low=0,
            setting=True,
            help="Seed of these points. Default: computed from the text of the script.",
        ),
        Option(
            "--box",
            many=True,
            metavar="LEAF=LO:HI",
            help="Check on a whole box: every entry of LEAF between LO and HI. May be repeated.",
        ),
        Option("--dodge", kind="flag", setting=True, help="At a kink, check at a point next to it instead."),
        Option("--steps", kind="flag", help="Show finite differences for a sequence of steps, and plot their errors."),
        Option(
            "--witnesses",
            metavar="all|none|WORDS",
            help="Derivatives to show side by side: reverse, enclosure, sympy, differences. "
            "Default: all for one expression on a terminal.",
        ),
        Option(
            "--timeout",
            kind="float",
            default=60.0,
            low=0,
            high=86_400,
            metavar="SECONDS",
            setting=True,
            help="Time for one check; after it the verdict is INCONCLUSIVE.",
        ),
    ),
    "What counts as a failure": (
        Option(
            "--require",
            choices=("certified", "precise"),
            setting=True,
            help="Fail on AGREES (certified) or on IMPRECISE (precise) as well.",
        ),
        Option(
            "--allow-kink",
            kind="flag",
            setting=True,
            help="Accept a KINK if the gradient lies between the one-sided slopes.",
        ),
        Option("--lenient", kind="flag", setting=True, help="Accept INCONCLUSIVE."),
        Option("--allow-empty", kind="flag", setting=True, help="Succeed if there is nothing to check."),
        Option("--baseline", metavar="FILE", setting=True, help="Accept the failures that this file lists."),
        Option("--write-baseline", metavar="FILE", help="List the failures of this run in a file for --baseline."),
    ),
    "Which files": (
        Option("--docs", kind="flag", setting=True, help="Check the gradcli blocks of .md and .rst documents too."),
        Option(
            "--select",
            many=True,
            metavar="PATTERN",
            help="In folders, check only files that match a pattern, written as in .gitignore. May be repeated.",
        ),
        Option(
            "--exclude",
            many=True,
            metavar="PATTERN",
            help="In folders, skip files that match a pattern, written as in .gitignore. May be repeated.",
        ),
        Option("--shard", metavar="K/N", help="Check only part K of N, to share the work among N machines."),
        Option(
            "--last-failed", kind="flag", help="Check only what failed in the last run, or everything if nothing did."
        ),
    ),
    "How it runs": (
        Option("--jobs", kind="int", low=1, setting=True, help="Worker processes. Default: one per processor."),
        Option("--memory", kind="int", low=320, metavar="MIB", setting=True, help="Memory that one worker may use."),
        CLUSTER,
        Option("--fail-fast", kind="flag", help="Stop after the first case that fails."),
        Option("--watch", kind="flag", help="Check again whenever a file changes, until Ctrl-C."),
        Option("--cache", metavar="FOLDER", help="Folder for stored results. Default: your user cache folder."),
        Option("--no-cache", kind="flag", help="Check everything again, and store nothing."),
    ),
    "What is shown": (
        Option(
            "--show",
            choices=("all", "failing"),
            default="failing",
            setting=True,
            help="Which checks to show with their evidence.",
        ),
        Option("--verdict", metavar="WORDS", help="Report only checks with these verdicts, such as KINK,DISAGREES."),
        Option("--verbose", kind="flag", setting=True, help="Print a line for each file as soon as it is checked."),
        Option("--update", kind="flag", help="Rewrite expected results (lines #> ...) that differ in the scripts."),
        Option("--diff", kind="flag", help="Print what --update would rewrite, and nothing else."),
    ),
    "Report files": (
        Option("--json", metavar="FILE", help="Write a JSON report to FILE, in addition to the output."),
        Option("--junit", metavar="FILE", help="Write a JUnit XML report to FILE, in addition to the output."),
        Option("--sarif", metavar="FILE", help="Write a SARIF 2.1.0 report to FILE, for code scanning."),
        Option("--gitlab", metavar="FILE", help="Write a GitLab code quality report to FILE."),
        Option("--markdown", metavar="FILE", help="Write a Markdown summary to FILE."),
        Option("--github", kind="flag", help="Write annotations and a step summary; the default on GitHub."),
        Option("--tap", kind="flag", help="Print TAP (Test Anything Protocol), as --format tap does."),
    ),
}

"""The options of `check`: their declarations by the headings of the help, and a record of the values under each."""

from __future__ import annotations

from gradcli.base.records import NamedTuple
from gradcli.interfaces.options.declaration import Option, PositionalArgument
from gradcli.interfaces.options.shared_options import CLUSTER, Point


class Judged(NamedTuple):
    """What to check."""

    claim: tuple[str, ...]
    python: str | None
    grad: str | None
    samples: int
    seed: int | None
    box: tuple[str, ...]
    avoid_kinks: bool
    step_sizes: bool
    witnesses: str | None
    timeout: float


class Failing(NamedTuple):
    """What counts as a failure."""

    require: str | None
    allow: tuple[str, ...]
    baseline: str | None
    write_baseline: str | None


class Files(NamedTuple):
    """Which files."""

    docs: bool
    select: tuple[str, ...]
    exclude: tuple[str, ...]
    keyword: str | None
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
    """What is shown, and the report files."""

    show: str
    update: bool
    diff: bool
    json: str | None
    junit: str | None
    sarif: str | None
    gitlab: str | None
    markdown: str | None
    github: bool


GROUPS = (Judged, Failing, Files, Running, Shown, Point)
TARGETS = PositionalArgument(
    "targets",
    "[PATH ... | EXPR]",
    "Files, folders, or one expression. Default: this folder.",
    required=False,
    many=True,
    expression=True,
)
SECTIONS = {
    "What to check": (
        Option(
            "--claim",
            kind="texts",
            metavar='"LEAF = SCRIPT"',
            help="A derivative worked out by hand, of `hessian(x) = ...` the second. May be repeated.",
        ),
        Option(
            "--python",
            metavar="TARGET:NAME",
            help="A Python function; TARGET is a path ending in .py or a dotted module. Its code is executed.",
        ),
        Option(
            "--grad",
            metavar="TARGET:NAME",
            help="Its hand-written gradient or Jacobian, or its backward, which takes the same arguments and a "
            "cotangent: last, or first if the other names are the same (a method of the same object: it alone).",
        ),
        Option(
            "--samples",
            kind="int",
            default=3,
            bounds=(0, None),
            setting=True,
            help="Further points near the given one.",
        ),
        Option(
            "--seed",
            kind="int",
            bounds=(0, None),
            setting=True,
            help="Seed of these points. Default: computed from the text of the script.",
        ),
        Option(
            "--box",
            kind="texts",
            metavar="LEAF=LO:HI",
            help="Check on a whole box: every entry of LEAF between LO and HI. May be repeated.",
        ),
        Option("--avoid-kinks", kind="flag", setting=True, help="At a kink, check at a point next to it instead."),
        Option("--step-sizes", kind="flag", help="Show finite differences for a sequence of steps, and their errors."),
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
            bounds=(0, 86_400),
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
            "--allow",
            kind="texts",
            metavar="WORDS",
            setting=True,
            help="Accept kink (with a gradient between the one-sided slopes), inconclusive, empty (nothing to check).",
        ),
        Option("--baseline", metavar="FILE", setting=True, help="Accept the failures that this file lists."),
        Option("--write-baseline", metavar="FILE", help="List the failures of this run in a file for --baseline."),
    ),
    "Which files": (
        Option("--docs", kind="flag", setting=True, help="Check the gradcli blocks of .md and .rst documents too."),
        Option(
            "--select",
            kind="texts",
            metavar="PATTERN",
            setting=True,
            help="In folders, check only files that match a pattern, written as in .gitignore. May be repeated.",
        ),
        Option(
            "--exclude",
            kind="texts",
            metavar="PATTERN",
            setting=True,
            help="In folders, skip files that match a pattern, written as in .gitignore. May be repeated.",
        ),
        Option(
            "--keyword",
            "-k",
            metavar="WORDS",
            help='Judge only checks whose file or name contains a word, as pytest does: loss, "claim and not w".',
        ),
        Option("--shard", metavar="K/N", help="Check only part K of N, to share the work among N machines."),
        Option(
            "--last-failed", kind="flag", help="Check only what failed in the last run, or everything if nothing did."
        ),
    ),
    "How it runs": (
        Option(
            "--jobs",
            "-j",
            kind="int",
            bounds=(1, None),
            setting=True,
            help="Worker processes. Default: one per processor.",
        ),
        Option(
            "--memory",
            kind="int",
            bounds=(320, None),
            metavar="MIB",
            setting=True,
            help="Memory that one worker may use.",
        ),
        CLUSTER,
        Option("--fail-fast", "-x", kind="flag", help="Stop after the first case that fails."),
        Option("--watch", kind="flag", help="Check again whenever a file changes; Ctrl-C ends it, with 130."),
        Option("--cache", metavar="FOLDER", help="Folder for stored results. Default: your user cache folder."),
        Option("--no-cache", kind="flag", help="Check everything again, and store nothing."),
    ),
    "What is shown": (
        Option(
            "--show",
            default="failing",
            metavar="WORDS",
            setting=True,
            help="failing: evidence of failures; files (-v): a line for each file too; all (-vv): evidence of all "
            "checks; summary (-q): the last line alone; KINK,DISAGREES: reports of these verdicts only.",
        ),
        Option("--update", kind="flag", help="Rewrite expected results (lines #> ...) that differ in the scripts."),
        Option("--diff", kind="flag", help="Print what --update would rewrite, and nothing else."),
    ),
    "Report files": (
        Option("--json", metavar="FILE", setting=True, help="Write a JSON report to FILE, in addition to the output."),
        Option(
            "--junit", metavar="FILE", setting=True, help="Write a JUnit XML report to FILE, in addition to the output."
        ),
        Option("--sarif", metavar="FILE", setting=True, help="Write a SARIF 2.1.0 report to FILE, for code scanning."),
        Option("--gitlab", metavar="FILE", setting=True, help="Write a GitLab code quality report to FILE."),
        Option("--markdown", metavar="FILE", setting=True, help="Write a Markdown summary to FILE."),
        Option("--github", kind="flag", help="Write annotations and a step summary; the default on GitHub."),
    ),
}

SHORT = {"-q": "--show=summary", "-v": "--show=files", "-vv": "--show=all"}
RENAMED = {
    "--allow-kink": "--allow=kink",
    "--lenient": "--allow=inconclusive",
    "--allow-empty": "--allow=empty",
    "--dodge": "--avoid-kinks",
    "--steps": "--step-sizes",
    "--verdict": "--show",
    "--verbose": "--show=files",
    "--tap": "--format=tap",
}
# what most users need, which --help shows
COMMON = frozenset(
    ("claim", "python", "grad", "box", "require", "allow", "baseline", "write_baseline", "docs", "select", "exclude",
     "keyword", "jobs", "fail_fast", "watch", "show", "update", "json", "junit", "at", "wrt", "format", "output",
     "expression"),
)  # fmt: skip
# the kinds of checks; a document counts as several files
EXPRESSION, FILE, FILES, FUNCTION = "an expression", "one file", "several files", "a Python function"
# the kinds of checks for which an option does something; one that is not here is for all of them
KINDS = {
    **dict.fromkeys(("claim", "box"), (EXPRESSION, FILE)),
    "witnesses": (EXPRESSION, FILE, FUNCTION),
    **dict.fromkeys(("avoid_kinks", "step_sizes", "backend"), (EXPRESSION, FILE, FILES)),
    **dict.fromkeys(("docs", "select", "exclude", "shard", "last_failed", "fail_fast", "watch"), (FILE, FILES)),
    **dict.fromkeys(("keyword", "jobs", "cluster", "cache", "update", "diff"), (FILE, FILES)),
    **dict.fromkeys(("python", "grad"), (FUNCTION,)),
    "memory": (FILE, FILES, FUNCTION),
}

"""Operands and options that several commands share, and the two functions that turn texts into inputs."""

from __future__ import annotations

import os
import re
import sys

from gradcli.base.diagnostics import GradcliError, error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.command_parts.result_views import calculation, derivation
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.declaration import Option, PositionalArgument, PresentationOption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any, Protocol

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.batch import points as many
    from gradcli.derivation import deriving
    from gradcli.interfaces.command_parts.result_views import View
    from gradcli.language import limits, source, values
    from gradcli.language.limits import Limits
    from gradcli.language.source import Source
    from gradcli.rendering import matrix_files

    class CommandOutput(Protocol):
        """The output of a command; only `cli` has an implementation."""

        settings: Mapping[str, Any]
        explicit: Collection[str]
        format: str

        def emit(self, view: View, *, framed: bool = True) -> None:
            """Render a result in the chosen format on standard output, its diagnostics on standard error."""

        def write(self, pieces: Iterable[str]) -> None:
            """Write text as it is."""

        def line(self, text: str) -> None:
            """Write one line at once."""

        def say(self, text: str) -> None:
            """Write one line to standard error."""

        def note(self, *diagnostics: Diagnostic) -> None:
            """Report diagnostics on standard error."""

        def progress(self, done: int, total: int, label: str = "", failed: int = 0) -> None:
            """Show the progress of long work, and how much of it failed, on a terminal only."""

        def expect(self, path: str) -> None:
            """Raise GradcliError if a report file cannot be written later."""

        def save(self, path: str, content: Iterable[str] | bytes) -> None:
            """Write a file as a whole."""

        def read(self, most: int) -> bytes:
            """Standard input, up to a number of bytes."""

        def lines(self, path: str) -> Iterable[str]:
            """The lines of a file, or of standard input for `-`, one at a time."""

else:
    limits, many, source, values = room("limits"), room("many"), room("source"), room("values")
    deriving, matrix_files = room("deriving"), room("matrix_files")

PATH = re.compile(r"[\w./-]+")  # characters of which a path can be made that is no expression with an operator
BINDING = re.compile(r"\s*[^\W\d]\w*\s*=(?!=)")  # NAME= at the start of an operand

MATRICES = ("mtx", "npz")  # formats of one sparse matrix, as SciPy reads them
FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown", "latex")

MADE_OF_ONE = ("json", "jsonl", "markdown", "latex")  # formats of one whole result, not of a stream of rows

SCRIPT = PositionalArgument(
    "script", "EXPR|FILE|-", 'An expression such as "x**2 + y", a .grad file, or - for standard input.', expression=True
)

EVALUATION = (
    Option(
        "--at",
        kind="texts",
        metavar="NAME=VALUE,...",
        help="The point: x=2,y=3 or x=[1,2,3] or X=@data.npy or x=randn(3,4). May be repeated.",
    ),
    Option(
        "--wrt",
        metavar="NAMES",
        help="Leaves to differentiate with respect to, such as x,y. Default: every leaf that is not const.",
    ),
    Option(
        "--dtype",
        choices=("float64", "float32", "complex128"),
        default="float64",
        setting=True,
        help="Kind of numbers.",
    ),
    Option(
        "--backend",
        choices=("numpy", "cupy", "jax", "auto"),
        default="auto",
        setting=True,
        help="Library for computing with arrays.",
    ),
    Option(
        "--limit",
        kind="texts",
        metavar="NAME=VALUE,...",
        help="Raise a limit. Defaults: text=64KiB, nodes=1000000, work=100000000, nesting=200, digits=400, "
        "elements=134217728.",
    ),
)

POINTS = Option(
    "--points",
    metavar="FILE",
    help="A file of points, one in each row: .csv, .npy, .npz or .parquet. Without --output, results are printed as "
    "CSV.",
)

CLUSTER = Option(
    "--cluster",
    metavar="ADDRESS",
    help="Compute on the workers of a Dask scheduler, such as tcp://HOST:8786, which you trust. Extra: cluster.",
)

RELAX = Option(
    "--relax",
    kind="flag",
    help="Allow faster forms with larger rounding errors: |x - c|**2 by a matrix product, powers by products.",
)


class Point(NamedTuple):
    """Where and how a script is evaluated: the values of EVALUATION."""

    at: tuple[str, ...]
    wrt: str | None = None
    dtype: str = "float64"
    backend: str = "auto"
    limit: tuple[str, ...] = ()


def presentation(*formats: str) -> tuple[Option, ...]:
    """The options of every command: format, output file, digits, colour, operations of one's own."""
    return (
        PresentationOption(
            "--format",
            "-f",
            choices=formats,
            default=None if "table" in formats else formats[0],
            setting=True,
            help="Format of the result." + (" Default: table on a terminal, else plain." if "table" in formats else ""),
        ),
        PresentationOption(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the result to FILE; without --format, its ending chooses the format.",
        ),
        PresentationOption(
            "--digits",
            kind="int",
            bounds=(1, 40),
            setting=True,
            help="Round the numbers in tables and text to N significant digits.",
        ),
        PresentationOption(
            "--color",
            choices=("auto", "always", "never"),
            default="auto",
            setting=True,
            help="Whether to use colours; auto obeys NO_COLOR and FORCE_COLOR.",
        ),
        PresentationOption(
            "--import",
            kind="texts",
            metavar="FILE",
            setting=True,
            help="A Python file that declares operations by gradcli.operation. Its code is executed. May be repeated.",
        ),
    )


OUTPUT = presentation(*FORMATS)
MATRIX_OUTPUT = presentation(*FORMATS, *MATRICES)


def load(operand: str, output: CommandOutput, bounds: Limits | None) -> Source:
    """The script that an operand names: standard input, a .grad file, or the text itself.

    Raises GradcliError where a file cannot be read (GC601), is too long (GC501) or is not UTF-8 (GC102), and where
    the operand is a file of another kind (GC721).
    """
    bounds = bounds or limits.DEFAULT_LIMITS
    if operand in ("-", "/dev/stdin"):
        return source.decode_source(output.read(bounds.text + 1), "<stdin>", limits=bounds)
    if is_file(operand):
        return source.read_source(operand, bounds)
    if operand.startswith("/") and os.path.exists(operand) and not os.path.isfile(operand):
        raise error("GC721", f"{visible(operand, 200)} is not a script", help="`gradcli check` takes a folder")
    script = f"{operand.rstrip('/')}.grad"
    if PATH.fullmatch(operand) and (os.path.isdir(operand) or os.path.isfile(script)):
        shown, folder = visible(operand, 200), os.path.isdir(operand)
        other = f"gradcli check {shown} checks the scripts in it" if folder else f"write {visible(script, 200)}"
        what = "is a folder" if folder else f"is a name, and {visible(script, 200)} a script"
        raise error("GC721", f"{shown} {what}", help=f"{other}; for the expression write -e {shown}")
    if ("." in operand or operand.startswith("/")) and os.path.isfile(operand):
        shown, python = visible(operand, 200), operand.endswith(".py")
        what = "is a Python file" if python else "is a file, but not a script: the name of a script ends in .grad"
        hint = "rename it, or pass its text on standard input with -"
        hint = f"gradcli run --trace {shown}, gradcli why {shown} and gradcli graph {shown} take it" if python else hint
        raise error("GC721", f"{shown} {what}", help=hint)
    return source.Source(operand.removesuffix("\n"))


def is_file(operand: str) -> bool:
    """Whether an operand names a script file rather than being an expression."""
    return operand.endswith(".grad")


def joined_point(at: Iterable[str], operands: Iterable[str]) -> str | None:
    """Advice for a point that contains a space: "write --at x=2,y=3" for `--at x=2 y=3`."""
    bindings, parts = [*at], [text for text in operands if BINDING.match(text)]
    return f"write --at {visible(','.join([*bindings, *parts]), 200)}" if bindings and parts else None


def names(wrt: str | None) -> list[str] | None:
    """The names of `--wrt x,y`; raises GradcliError GC209 for an empty one, as an unset variable of a shell gives."""
    parts = None if wrt is None else [values.leaf_named(name.strip()) for name in wrt.split(",")]
    if parts is not None and not all(parts):
        hint = "write --wrt x,y, or leave --wrt out for every leaf that is not const"
        raise error("GC209", f"--wrt {visible(repr(wrt), 200)} has an empty name", help=hint)
    return parts


def allowed(limit: tuple[str, ...], output: CommandOutput) -> Limits | None:
    """The limits of the configuration, overridden by those of the command line; None if neither sets any.

    Raises GradcliError (GC702) for a limit that cannot be read.
    """
    configured = output.settings.get("limits")
    bounds = limits.make_limits(configured) if configured else None
    for text in limit:
        bounds = limits.parse_limits(text, bounds or limits.DEFAULT_LIMITS)
    return bounds


def many_points(
    output: CommandOutput,
    script: str,
    point: Point,
    points: str | None,
    gradient: bool,
    *,
    relax: bool,
    cluster: str | None,
) -> int:
    """Compute the result for every row of a file of points, and print how many points there were.

    Raises GradcliError (GC721) for a format that a table of results does not have, and for a cluster without points.
    """
    if points is None:
        hint = "give a file of points with --points, or leave --cluster out"
        raise error("GC721", "--cluster needs --points: a single point is computed on this machine", help=hint)
    form = output.settings["format"]
    if form in MADE_OF_ONE:
        hint = "leave --format out: --output FILE chooses by its ending .csv, .tsv, .npy, .npz or .parquet"
        raise error("GC721", f"--format {form} does not go with --points", help=hint)
    source, options = evaluation(output, script, point)
    place = output.settings["output"]
    streams = place is None and sys.stdout.isatty()  # rows on a terminal would meet the progress line
    try:
        done = many.answer_points(
            source,
            points,
            output.line if place is None else place,
            **options,
            gradient=gradient,
            relax=relax,
            progress=None if streams else output.progress,
            cluster=cluster,
        )
    except KeyboardInterrupt:
        if place is not None and (kept := many.unfinished(place)):
            output.say(f"the results so far are in {visible(kept, 200)}: the same command continues from there")
        raise
    output.note(*done.diagnostics)
    if done.path is not None:
        before = f", {done.resumed:,} of them before" if done.resumed else ""
        output.say(f"{done.points:,} point{'' if done.points == 1 else 's'} in {visible(done.path, 200)}{before}")
    return 0


def evaluation(output: CommandOutput, script: str, point: Point) -> tuple[Source, dict[str, Any]]:
    """The script, and the keyword arguments that every function of the calculator takes."""
    bounds = allowed(point.limit, output)
    options = {**point._asdict(), "wrt": names(point.wrt), "limits": bounds}
    del options["limit"]
    return load(script, output, bounds), options


def answered(
    output: CommandOutput,
    source: Source,
    options: dict[str, Any],
    command: str,
    result: Callable[..., Any],
    **more: Any,
) -> int:
    """Emit a result at a point; where no point is given, the formulas that `derive` has for it.

    A format of matrices takes the sparse result. `more` are options of `derive`, and the `hint` of `calculation`.
    """
    hint = more.pop("hint", str)
    if output.format in MATRICES:
        sparse = result(sparse=True)
        array, path = matrix_files.matrix(sparse), output.settings["output"]
        if path is not None:
            output.save(path, matrix_files.content(array, output.format))
        elif output.format == "npz":
            raise error("GC721", "--format npz needs a file to write", help="write --output matrix.npz")
        else:
            output.write((matrix_files.content(array, output.format).decode("ascii"),))
        output.note(*sparse.diagnostics)
        return 0
    try:
        view = calculation(command, result(), hint)
    except GradcliError as problem:
        free = all(note.code == "GC202" for note in problem.diagnostics)
        numbers = all(note.code.startswith("GC3") for note in problem.diagnostics)  # which free names counted as
        if options["at"] or not (free or numbers):
            raise
        try:
            closed = deriving.derive(source, wrt=options["wrt"], limits=options["limits"], **more)
        except GradcliError as other:
            raise (problem if numbers else other) from None
        leaves = {key.partition(",")[0] for key in (*closed.formula, *closed.missing)}
        if not leaves <= closed.assumes.keys():
            raise  # some names have values, so a point is meant
        view = derivation(closed)
    output.emit(view)
    return 0

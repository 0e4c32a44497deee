"""`gradcli freeze`: record the results of scripts in the scripts themselves, for `gradcli check` to compare."""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic, error, visible
from gradcli.base.records import NamedTuple
from gradcli.interfaces.command_parts import check_inputs as inputs
from gradcli.interfaces.command_parts.acceptance import counted
from gradcli.interfaces.command_parts.written_expectations import text_of, updated
from gradcli.interfaces.commands import check as checking
from gradcli.interfaces.commands import room
from gradcli.interfaces.options.check_options import RENAMED
from gradcli.interfaces.options.declaration import Declaration, Option, PositionalArgument
from gradcli.interfaces.options.shared_options import allowed, is_file, load, presentation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gradcli import checks
    from gradcli.batch import frozen_scripts
    from gradcli.interfaces.options.shared_options import CommandOutput
    from gradcli.language import source
else:
    checks, frozen_scripts, source = room("checks"), room("frozen_scripts"), room("source")


class Judging(NamedTuple):
    """How the scripts are judged, with options of check."""

    dtype: str
    backend: str
    samples: int
    seed: int | None
    timeout: float
    require: str | None
    allow: tuple[str, ...]


def freeze(
    output: CommandOutput,
    files: tuple[str, ...],
    *,
    force: bool,
    stdout: bool,
    judging: Judging,
    limit: tuple[str, ...],
) -> int:
    """Record results in scripts, for check to compare.

    Value, gradients and verdicts become comment lines after the last statement, such as
    `#> grad x = [64, 32]`, which gradcli check compares from then on: relative tolerance 1e-9, or that of
    `# gradcli: rtol=1e-6`. Lines that were recorded there before are replaced. For an array of more than
    40 entries the sum, the norm and the moment (the sum of k/n times the k-th of n entries) are recorded. A
    script that does not pass its check is left unchanged.

    Exit codes: 0 all scripts are frozen, 1 a script did not pass its check, 2 usage or syntax.

    Examples:
      gradcli freeze loss.grad
      gradcli freeze --stdout loss.grad
    """
    bounds = allowed(limit, output)
    settings = inputs.judging({**judging._asdict(), "avoid_kinks": False}) | {"limits": bounds}
    refused = 0
    for path in files:
        if not is_file(path):
            raise error("GC721", f"{visible(path, 200)} is not a .grad file", help="give the files one by one")
        script = load(path, output, bounds)
        blanks, last = frozen_scripts.with_blanks(script, bounds)
        report = checks.check_script(blanks, **settings)
        judged = [check for check in report.checks if check.kind != "expectation" or (check.line or 0) <= last]
        wrong = [check for check in judged if not check.passed]
        if wrong and not force:
            refused += 1
            output.note(refusal(path, wrong[0], len(wrong)))
            continue
        after = updated(blanks, report, last=last)
        if stdout:
            output.line(after.removesuffix("\n"))
        elif after != script.text:
            output.save(path, (text_of(path)[0], after))
            count = sum(line.startswith("#>") for line in source.Source(after).lines()[last:])
            output.say(f"gradcli freeze: {visible(path, 200)}: {counted(count, 'expected result')}")
    return 1 if refused else 0


def refusal(path: str, first: Any, count: int) -> Diagnostic:
    """The reason why a script is not frozen: the first check that did not pass."""
    others = f" ({count} checks do not pass)" if count > 1 else ""
    where = f"line {first.line}: " if first.line else ""
    reason = first.message.partition("; ")[0]
    message = f"{visible(path, 200)} is not frozen: {where}{first.verdict}, {reason}{others}"
    return Diagnostic("GC738", message, help="run gradcli check; --force records the results as they are")


FILES = PositionalArgument("files", "FILE.grad ...", "Scripts.", many=True)
DECLARATION = Declaration(
    freeze,
    (FILES,),
    (
        Option("--force", kind="flag", help="Record the results even of a script that does not pass its check."),
        Option("--stdout", kind="flag", help="Print the scripts instead of rewriting them."),
        *(option for option in checking.DECLARATION.own if option.name in (*Judging._fields, "limit")),
        *presentation("plain"),
    ),
    (Judging,),
    endings={".grad": ("stdout", (True,))},
    renamed={old: RENAMED[old] for old in ("--allow-kink", "--lenient")},
)

"""The checks of the Python interface: reports that print, and show in a notebook, as the command line shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

from gradcli import checks
from gradcli.base.diagnostics import error, visible
from gradcli.batch.totals import Totals
from gradcli.rendering import plain, tabular
from gradcli.rendering.document import Style
from gradcli.rendering.documents import verdicts

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Report", "check", "check_callable", "check_script"]

Script = ParamSpec("Script")
Function = ParamSpec("Function")


@dataclass(frozen=True, repr=False)
class Report(checks.Report):
    """All checks of one script or function, with the counts of their verdicts in `summary`.

    `assert report.ok`, or `assert report`, fails unless something was judged and is right. `str(report)` is the text
    that `gradcli check` prints; a notebook shows it as a table.
    """

    def __str__(self) -> str:
        text = plain.render(verdicts.reports([self.shown()], Style()))
        notes = [f"{note.severity}: {note.message}" for note in self.diagnostics]
        return "\n".join([text, *notes])

    def __repr__(self) -> str:
        return f"<Report {verdicts.title(self)}: {verdicts.totals(Totals.of([self]))}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/markdown": tabular.markdown(verdicts.reports([self.shown()], Style()))}


class Check(Protocol[Script, Function]):
    """The type of `check`: it takes what the check of a script takes, or what the check of a function takes."""

    @overload
    def __call__(self, *args: Script.args, **kwargs: Script.kwargs) -> Report: ...
    @overload
    def __call__(self, *args: Function.args, **kwargs: Function.kwargs) -> Report: ...


def displayed(judge: Callable[Script, checks.Report]) -> Callable[Script, Report]:
    """The same check for people: its report prints, with all witnesses unless others are requested."""

    @wraps(judge)
    def judged(*args: Script.args, **kwargs: Script.kwargs) -> Report:
        kwargs.setdefault("witnesses", None)
        return Report(**vars(judge(*args, **kwargs)))

    taken = signature(judge)
    shown = [x.replace(default=None) if x.name == "witnesses" else x for x in taken.parameters.values()]
    judged.__signature__ = taken.replace(parameters=shown)  # type: ignore[attr-defined]
    return judged


def either(script: Callable[Script, Report], function: Callable[Function, Report]) -> Check[Script, Function]:
    """The check of a script or of a function, whichever the first argument is."""

    def check(source: Any, *args: Any, **options: Any) -> Report:
        """Judge every gradient, claim and hand-written rule of a script, or the gradient of a Python function.

        A script is a text or a `Source`; a function is anything that can be called. The options are those of
        `check_script` and of `check_callable`, which document them.

        Raises GradcliError for a script that cannot be read, GC133 for what is neither a text nor a function, or a
        file's name, and GC732 for a point that does not fit the function.

        >>> report = check("x**2*y", at={"x": 2, "y": 3}, claims={"x": "2*x*y"})
        >>> [(judged.kind, judged.leaf, judged.verdict) for judged in report.checks]
        [('gradient', 'x', 'PROVED'), ('gradient', 'y', 'PROVED'), ('claim', 'x', 'PROVED')]
        >>> check(lambda x: x**3, lambda x: 3*x**2, at=2.0).ok, check(lambda x: x**3, lambda x: 2*x**2, at=2.0).ok
        (True, False)
        """
        if callable(source) and type(source).__module__.partition(".")[0] != "sympy":  # a Symbol can be called
            return function(source, *args, **options)
        if isinstance(source, str) and not (args or options.get("at")) and os.path.exists(source[:4096]):
            message = f"{visible(source, 200)} is a file or folder, and check takes the text of a script"
            raise error("GC133", message, help="read the file; `gradcli check` takes paths")
        return script(source, *args, **options)

    first, *of_scripts = signature(script).parameters.values()
    _, *of_functions = signature(function).parameters.values()
    options = {parameter.name: parameter for parameter in (*of_functions, *of_scripts)}
    check.__signature__ = Signature([first, *options.values()], return_annotation="Report")  # type: ignore[attr-defined]
    return cast("Check[Script, Function]", check)


check_script = displayed(checks.check_script)
check_callable = displayed(checks.check_callable)
check = either(check_script, check_callable)

"""The pytest plug-in: the checks of `.grad` files as tests, and the fixture `assert_gradient`.

A `.grad` file that is named on pytest's command line is collected. With `--gradcli`, or `gradcli = true` in pytest's
configuration, so is all that `gradcli check` finds in the folders of the command line, whatever pytest's
`norecursedirs` says; `--ignore` and `--ignore-glob` leave files out. Each check is a test (`loss.grad::gradient:x`),
and its failure is what `gradcli check` prints. The settings of the project, `[tool.gradcli]`, count as they do there. A
file is judged once, at the first of its tests that runs; with pytest-xdist every process that runs one judges the file,
and `--dist loadfile` makes this one process.

pytest imports this file in every project where gradcli is installed, so it loads the rest of the package only where
there is something to check.
"""

from __future__ import annotations

import os
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from gradcli.batch.discovery.cases import BatchCase
    from gradcli.checks import Check, Report
    from gradcli.interfaces.options.settings import CommandSettings

SUFFIX = ".grad"
SETTINGS = pytest.StashKey["CommandSettings"]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """The options of pytest's command line and of its configuration file."""
    group = parser.getgroup("gradcli", "checks of .grad files")
    group.addoption(
        "--gradcli",
        action="store_true",
        help="Collect every .grad file and judge each of its checks. Without it only .grad files that are named here.",
    )
    parser.addini("gradcli", "Collect every .grad file, as with --gradcli.", type="bool", default=False)
    parser.addini(
        "gradcli_inconclusive",
        "What becomes of a check that could not be decided: fail (default) or skip.",
        default="fail",
    )
    leave_asserts_alone(pluginmanager)


def leave_asserts_alone(pluginmanager: pytest.PytestPluginManager) -> None:
    """Take gradcli off the list of packages whose asserts pytest rewrites.

    pytest puts every distribution with a plug-in on that list. Rewriting takes a second where byte code is not kept,
    and concerns nobody: the asserts in gradcli are no tests.
    """
    hook: Any = getattr(pluginmanager, "rewrite_hook", None)
    marked = getattr(hook, "_must_rewrite", None)
    remembered = getattr(hook, "_marked_for_rewrite_cache", None)
    if isinstance(marked, set) and isinstance(remembered, dict):
        marked.discard("gradcli")
        remembered.clear()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gradcli: a check of a .grad file, judged by gradcli")
    if config.getini("gradcli_inconclusive") not in ("skip", "fail"):
        raise pytest.UsageError("gradcli_inconclusive has to be skip or fail")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Notes on settings with which a check may pass that fails by the defaults."""
    if not wanted(config) and not any(argument.partition("::")[0].lower().endswith(SUFFIX) for argument in config.args):
        return []
    from gradcli.base.diagnostics import GradcliError
    from gradcli.interfaces.commands import declaration
    from gradcli.rendering.diagnostic_text import render

    try:
        loaded = settings(config)
    except GradcliError:
        return []  # each file says so
    notes = [*loaded.notes, *loaded.loosening(declaration("check"), {})]
    return render(notes).splitlines() if notes else []


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScriptFile | None:
    if file_path.suffix.lower() != SUFFIX or not parent.session.isinitpath(file_path):
        return None
    script: ScriptFile = ScriptFile.from_parent(parent, path=file_path)
    return script


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the checks that `gradcli check` finds in the folders of the command line."""
    if not wanted(config):
        return
    from gradcli.base.diagnostics import GradcliError
    from gradcli.batch import find_cases
    from gradcli.interfaces.commands import declaration
    from gradcli.rendering.diagnostic_text import render

    folder = config.invocation_params.dir
    named = [folder / argument.partition("::")[0] for argument in config.args]
    try:
        chosen = {**declaration("check").defaults(), **settings(config).values}
        folders = [os.path.relpath(path) for path in named if path.is_dir()]
        cases = find_cases(folders, chosen["select"], chosen["exclude"], docs=chosen["docs"])
    except GradcliError as problem:
        raise pytest.UsageError(render(problem.diagnostics)) from None
    known = {item.path for item in items if isinstance(item, CheckItem)}
    for case in cases:
        path = Path(os.path.abspath(case.path))
        if path not in known and not left_out(path, config):
            nodeid = f"{os.path.relpath(path, config.rootpath)} (block {case.block})" if case.block else None
            script: Any = ScriptFile.from_parent(session, path=path, nodeid=nodeid, case=case)
            items.extend(session.genitems(script))


def left_out(path: Path, config: pytest.Config) -> bool:
    """Whether `--ignore` or `--ignore-glob` name a file or a folder around it."""
    patterns = [*(config.getoption("ignore") or ()), *(config.getoption("ignore_glob") or ())]
    places = [os.path.abspath(config.invocation_params.dir / pattern) for pattern in patterns]
    return any(fnmatch(str(around), place) for around in (path, *path.parents) for place in places)


def wanted(config: pytest.Config) -> bool:
    """Whether every .grad file is collected."""
    return bool(config.getoption("--gradcli") or config.getini("gradcli"))


def settings(config: pytest.Config) -> CommandSettings:
    """The settings of the project for `gradcli check`, read once; GradcliError where they are wrong."""
    if SETTINGS not in config.stash:
        from gradcli.interfaces.commands import declaration
        from gradcli.interfaces.options.settings import load

        folder = str(config.invocation_params.dir)
        config.stash[SETTINGS] = load("check", declaration("check"), folder, os.environ)
        if files := config.stash[SETTINGS].files_to_import(None):
            from gradcli.primitives.plugins import import_file

            for path in files:
                import_file(path)
    return config.stash[SETTINGS]


class ScriptFile(pytest.File):
    """A .grad file, or a block of a document; `report` is what its checks came to, from the first one that runs on."""

    report: Report | None = None

    def __init__(self, *, case: BatchCase | None = None, **known: Any) -> None:
        super().__init__(**known)
        if case is None:
            from gradcli.batch.discovery.cases import BatchCase

            case = BatchCase(os.path.relpath(self.path))
        self.case = case

    def collect(self) -> Iterable[CheckItem]:
        """An item per check, by the ids that `gradcli check` gives them; a script that cannot be read is one item."""
        from gradcli.base.diagnostics import GradcliError
        from gradcli.batch.workers.local_worker import script_of
        from gradcli.checks import check_names
        from gradcli.rendering.diagnostic_text import render

        try:
            options = self.options()
        except GradcliError as problem:
            raise self.CollectError(render(problem.diagnostics)) from None
        path, block, *_ = self.case
        try:
            source, limits = script_of(path, block, self.case.content(), options.get("limits"))
            names = check_names(source, limits=limits, dtype=options["dtype"], backend=options["backend"])
        except GradcliError as problem:
            span = problem.diagnostics[0].span
            names = [("error", None if span is None else span.line)]
        for name, line in names:
            item: CheckItem = CheckItem.from_parent(self, name=name, line=line)
            yield item

    def options(self) -> dict[str, Any]:
        """What the settings of the project say of `check_script`, as the command `check` would pass it."""
        from gradcli.interfaces.command_parts.check_inputs import judging
        from gradcli.interfaces.commands import declaration
        from gradcli.language.limits import make_limits

        configured = settings(self.config).values
        bounds = {"limits": make_limits(configured["limits"])} if configured.get("limits") else {}
        return {**judging({**declaration("check").defaults(), **configured}), **bounds}

    def judged(self) -> Report:
        """The report of the file, made at the first call."""
        if self.report is None:
            from gradcli.batch.workers.local_worker import check_content

            path, block, *_ = self.case
            self.report = check_content(path, block, self.case.content(), self.options())
        return self.report


class CheckFailed(AssertionError):
    """A check that did not pass; its text is what `gradcli check` prints of it."""

    def __init__(self, text: str, check: Check) -> None:
        super().__init__(text)
        self.check = check


class CheckItem(pytest.Item):
    """One check of a script."""

    parent: ScriptFile

    def __init__(self, *, line: int | None, **known: Any) -> None:
        super().__init__(**known)
        self.line = line
        self.add_marker("gradcli")

    def runtest(self) -> None:
        report = self.parent.judged()
        check = next((check for check in report.checks if check.id == self.name), None)
        if check is None:
            raise LookupError(f"{self.parent.path.name} has changed since its checks were collected")
        self.user_properties.append(("verdict", check.verdict))
        if check.passed:
            return
        if check.verdict == "INCONCLUSIVE" and self.config.getini("gradcli_inconclusive") == "skip":
            raise pytest.skip.Exception(message(check), _use_item_location=True)
        raise CheckFailed(self.card(check), check)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text of the failure, without the way that the exception took through this file."""
        if not isinstance(excinfo.value, CheckFailed):
            return super().repr_failure(excinfo, style)
        shown: Any = excinfo.getrepr(style="value")
        place = shown.reprcrash  # for the summary, `--tb=line` and reports
        place.path, place.lineno, place.message = str(self.path), self.line or 1, message(excinfo.value.check)
        return shown

    def card(self, check: Check) -> str:
        """The check and its evidence as plain text; of a script that cannot be read, why."""
        from gradcli.interfaces.command_parts.replay import replay
        from gradcli.rendering import plain
        from gradcli.rendering.diagnostic_text import render
        from gradcli.rendering.document import Style, document
        from gradcli.rendering.documents import verdicts

        reasons = render(check.diagnostics) if check.verdict == "ERROR" and check.diagnostics else ""
        if reasons and check.expected is None:
            return reasons
        style = Style(digits=settings(self.config).values.get("digits"))
        report = replace(self.parent.judged(), checks=(check,))
        shown = plain.render(document(*verdicts.one_report(report, style, "failing", replay((), ()))))
        return f"{shown}\n\n{reasons}" if reasons else shown

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None if self.line is None else self.line - 1, self.name


def message(check: Check) -> str:
    """The verdict and what was found, on one line."""
    from gradcli.rendering.documents.verdicts import headline

    return " ".join(f"{check.verdict}: {headline(check, 'failing')}".split())


@pytest.fixture(scope="session")
def assert_gradient() -> Callable[..., None]:
    """`gradcli.testing.assert_gradient`: fail unless a function's hand-written gradient is right at a point."""
    from gradcli.testing import assert_gradient

    return assert_gradient

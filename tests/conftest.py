"""What all tests share: SymPy's plain integers, as in the oracle's own process; scores and tables at the end."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

os.environ.setdefault("SYMPY_GROUND_TYPES", "python")  # python-flint would change them


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: Any) -> None:
    """Divide a run of everything over the cores. Named files stay in one process; `-n 0` and `-n 3` say otherwise."""
    everything = config.args_source is config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    if everything and config.pluginmanager.hasplugin("xdist") and config.option.numprocesses is None:
        config.option.numprocesses = "auto"


BY_OPERATION = ("test_primitives.py::test_law", "test_sabotage.py")  # long files, divided by the operation of each test


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """The tests of a file run in one process, which computes what they share once; `--dist` says otherwise.

    Files go out in the order of their names: the last ones are short, so no process waits long for another.
    """
    if config.option.dist != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            divided = any(name in nodeid for name in BY_OPERATION) and "[" in test
            return f"{file}::{test.partition('[')[2].partition('-')[0].rstrip(']')}" if divided else file

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What all tests share is no garbage: left to the collector, it makes each `gc.collect()` of a test take a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        keep_all()
        gc.enable()


def keep_all() -> None:
    """The collector leaves alone what is there now, and looks at what comes only."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def results_that_a_file_shares_are_kept() -> Iterator[None]:
    yield
    keep_all()


@pytest.fixture(scope="session", autouse=True)
def journal_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Checks of folders keep their reports in a folder of this run, not in the user's own cache."""
    os.environ["GRADCLI_CACHE"] = str(tmp_path_factory.mktemp("journal"))


@pytest.fixture(autouse=True)
def only_operations_of_gradcli() -> Iterator[None]:
    """What a test declares is unknown to the next one."""
    yield
    primitives = sys.modules.get("gradcli.primitives")
    for name in [*getattr(primitives, "declared", ())]:
        primitives.forget(name)  # type: ignore[union-attr]


def pytest_configure(config: Any) -> None:
    """Where gradcli is installed, pytest would rewrite the asserts of the whole package."""
    from gradcli.pytest_plugin import leave_asserts_alone

    leave_asserts_alone(config.pluginmanager)
    let_signals_through()


def let_signals_through() -> None:
    """Under `nohup` or `&` signals are ignored, and the processes to which tests send them would ignore them too."""
    if threading.current_thread() is not threading.main_thread():
        return
    heard = {
        "SIGINT": signal.default_int_handler,
        "SIGQUIT": signal.SIG_DFL,
        "SIGHUP": lambda *_: None,  # this process still survives a hangup, its children do not
    }
    for number, handler in [
        (getattr(signal, name), handler) for name, handler in heard.items() if hasattr(signal, name)
    ]:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


TABLES = {  # modules that count while their tests run
    "test_sabotage": "tests.primitives.test_sabotage",
    "test_corpus": "tests.checks.test_corpus",
    "test_many_cases": "tests.checks.test_many_cases",
}
ELSEWHERE: dict[str, Any] = {}  # what worker processes have counted


def module_of(name: str) -> Any:
    """A module of tests, if it was imported here."""
    return sys.modules.get(TABLES[name])


def counts_of(module: Any) -> Any:
    """The counter of a module, or its counters by name."""
    return getattr(module, "SCORE", None) if hasattr(module, "SCORE") else getattr(module, "TABLE", None)


def pytest_sessionfinish(session: Any) -> None:
    """A worker process sends home what it has counted."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        found = {name: counts_of(module_of(name)) for name in TABLES if module_of(name) is not None}
        output["counts"] = {
            name: {key: dict(value) if isinstance(value, dict) else value for key, value in counts.items()}
            for name, counts in found.items()
            if counts
        }


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Add up what the workers have counted."""
    for name, counts in getattr(node, "workeroutput", {}).get("counts", {}).items():
        add(ELSEWHERE.setdefault(name, {}), counts)


def add(total: dict[str, Any], counts: dict[str, Any]) -> None:
    """Counts added to counts, one level deep or two."""
    for key, value in counts.items():
        if isinstance(value, dict):
            add(total.setdefault(key, {}), value)
        else:
            total[key] = total.get(key, 0) + value


def arrived(name: str) -> Any:
    """A module of tests with the counts of all processes in its own counter; None where nothing was counted."""
    counts = ELSEWHERE.pop(name, {})
    module = module_of(name) or (import_module(TABLES[name]) if counts else None)
    own = None if module is None else counts_of(module)
    if own is not None:
        for key, value in counts.items():
            if isinstance(value, dict):
                own.setdefault(key, Counter()).update(value)
            else:
                own[key] += value
    return module if own else None


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: Any) -> None:
    """How many damaged rules two oracles have noticed, and which; in a deep run the tables of the corpus and cases."""
    sabotage = arrived("test_sabotage")
    score = getattr(sabotage, "SCORE", None)
    if score and score["mutants"]:
        share = 100 * score["noticed"] / score["mutants"]
        by = ", ".join(f"{key[3:]} {count}" for key, count in score.most_common() if key.startswith("by "))
        terminalreporter.write_sep("-", "mutation score")
        terminalreporter.write_line(
            f"{share:.1f} %: {score['noticed']} of {score['mutants']} damaged rules are noticed by two oracles or more; "
            f"{score['equivalent']} equivalent ones apart"
        )
        terminalreporter.write_line(f"noticed by {by}")
    for name, title in (("test_corpus", "verdicts on the corpus"), ("test_many_cases", "random smooth cases")):
        module = arrived(name)
        if module is not None and len(module.TABLE) > 1 and config.option.markexpr == "deep":
            terminalreporter.write_sep("-", title)
            for line in module.table():
                terminalreporter.write_line(line)


@pytest.fixture
def values_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of NumPy are not recorded: values decide."""
    recorded = import_module("gradcli.checks.callables.recorded")
    own = recorded.recording
    monkeypatch.setattr(recorded, "recording", lambda box, seed: {} if box.library.name == "numpy" else own(box, seed))

"""Every example in a docstring is executed; every public name of the package has one, and says what it raises."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import gradcli
from tests.support.rows import all_rows

# modules that need a library which the package does not require, and the one that runs the command line
OPTIONAL = ("gradcli.__main__", "gradcli.execution.namespaces.cupy_", "gradcli.execution.namespaces.jax_")
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(gradcli.__path__, "gradcli.") if module.name not in OPTIONAL
)
ROOMS_THAT_SHOW_HOW = (
    "gradcli.calculator gradcli.calculator.repeated.compiled gradcli.base.diagnostics gradcli.graph.building "
    "gradcli.language.parser gradcli.lowering gradcli.lowering.points gradcli.transforms.derivatives"
).split()


def examples_of(module: str) -> list[doctest.DocTest]:
    """The examples of a module; those of tensors take `torch` as imported, as PyTorch's do."""
    found = importlib.import_module(module)
    more = {"torch": importlib.import_module("gradcli.eager")} if module.startswith("gradcli.eager") else {}
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(found, extraglobs=more) if test.examples]


@all_rows("module", MODULES)
def test_examples_show_what_happens(module: str) -> None:
    reports: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for test in examples_of(module):
        runner.run(test, out=reports.append)
    assert not runner.failures, "".join(reports)


@pytest.mark.parametrize("module", ROOMS_THAT_SHOW_HOW)
def test_a_newcomer_finds_an_example(module: str) -> None:
    assert examples_of(module)


@pytest.mark.parametrize("name", [name for name in gradcli.__all__ if not name.startswith("__")])
def test_public_names_have_an_example(name: str) -> None:
    documented = inspect.getdoc(getattr(gradcli, name)) or ""
    assert ">>>" in documented, f"gradcli.{name} shows no example"


@pytest.mark.parametrize("name", ["check", "compile", "evaluate", "grad", "hessian", "jacobian", "parse", "trace"])
def test_what_takes_a_script_says_what_it_raises(name: str) -> None:
    assert "Raises GradcliError" in (inspect.getdoc(getattr(gradcli, name)) or "")

"""The documentation's generated parts: sessions, programs, pictures and references. CI builds the whole site."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gradcli
from gradcli.base.codes import CODES
from gradcli.interfaces.commands import COMMANDS, declaration

ROOT = Path(__file__).parents[2]
errors = pytest.importorskip("sphinx.errors", reason="needs the extra docs")


@pytest.fixture(scope="module")
def pages() -> object:
    sys.path.insert(0, str(ROOT / "docs" / "_extensions"))
    try:
        import generated_pages
    finally:
        del sys.path[0]
    return generated_pages


def test_a_session_shows_what_is_printed(pages: object) -> None:
    text = pages.generated('before\n```{gradcli}\ngradcli eval "x = 2\ny = 3\nx*y"\ngradcli --version\n```\nafter\n')  # type: ignore[attr-defined]
    assert text.startswith('before\n```console\n$ gradcli eval "x = 2\ny = 3\nx*y"\n')
    assert "value  6.0" in text and f"gradcli {gradcli.__version__}\n```\nafter" in text


@pytest.mark.parametrize("block", ["gradcli eval 1/", ":exit: 1\ngradcli eval 1", ":exit: 3\ngradcli eval 1/"])
def test_another_exit_code_stops_the_build(pages: object, block: str) -> None:
    with pytest.raises(errors.ExtensionError, match="ended with"):
        pages.generated(f"```{{gradcli}}\n{block}\n```\n")  # type: ignore[attr-defined]


def test_a_program_is_executed(pages: object) -> None:
    text = pages.generated("```{python}\nprint(6*7)\n```\n")  # type: ignore[attr-defined]
    assert text == "```python\nprint(6*7)\n```\n\n```text\n42\n```\n"
    with pytest.raises(errors.ExtensionError, match="ZeroDivisionError"):
        pages.generated("```{python}\n1/0\n```\n")  # type: ignore[attr-defined]


def test_references_name_everything(pages: object) -> None:
    commands, codes = pages.commands(), pages.diagnostics()  # type: ignore[attr-defined]
    for name in COMMANDS:
        assert f"## gradcli {name}\n" in commands
        for option in declaration(name).options:
            assert option.spellings[0] in commands
    assert all(f"### {code}: " in codes for code in CODES)
    interface = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [name for name in gradcli.__all__ if name[0] != "_" and f":: {name}\n" not in interface] == []


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {gradcli.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_long_commands_go_on_at_an_option(pages: object) -> None:
    command = 'gradcli check "x**2" --claim "x = 2*x" ' + "--at x=1.5 " * 7
    lines = pages.wrapped(command.strip()).splitlines()  # type: ignore[attr-defined]
    assert len(lines) > 1 and max(map(len, lines)) <= pages.WIDEST + 2  # type: ignore[attr-defined]
    assert " ".join(line.strip().removesuffix(" \\") for line in lines) == command.strip()
    assert pages.wrapped("gradcli eval 2") == "gradcli eval 2"  # type: ignore[attr-defined]

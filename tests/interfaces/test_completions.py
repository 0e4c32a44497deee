"""Completion scripts: they name every command, option and choice, and bash completes with them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gradcli.interfaces.commands import COMMANDS
from gradcli.interfaces.commands.completions import SHELLS, offers

OFFERS = offers()


@pytest.mark.parametrize("shell", SHELLS)
def test_everything_is_named(shell: str) -> None:
    script = SHELLS[shell](OFFERS)
    for name, offer in OFFERS.items():
        assert name in script
        for option in offer.options:
            for spelling in option.spellings:
                assert (spelling if shell != "fish" else spelling.lstrip("-")) in script
            assert not option.choices or " ".join(option.choices) in script
    assert "log1p" in script


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last of the words."""
    program = (
        f"source {script}; COMP_WORDS=({' '.join(map(quoted, words))}); COMP_CWORD={len(words) - 1}; "
        '_gradcli; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "gradcli.bash"
    script.write_text(SHELLS["bash"](OFFERS) + "\n")
    assert completed(script, "gradcli", "") >= {*COMMANDS, "--help", "--version"}
    assert completed(script, "gradcli", "he") == {"hessian"}
    assert completed(script, "gradcli", "grad", "--o") == {"--order", "--output"}
    assert completed(script, "gradcli", "grad", "x**2", "--format", "j") == {"json", "jsonl"}
    assert completed(script, "gradcli", "grad", "--format", "=", "js") == {"json", "jsonl"}
    assert completed(script, "gradcli", "check", "--docs", "--req") == {"--require"}
    assert completed(script, "gradcli", "check", "-j") == {"-j"}
    assert completed(script, "gradcli", "ops", "log1") == {"log10", "log1p"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_accepts_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    script = tmp_path / "script"
    script.write_text(SHELLS[shell](OFFERS) + "\n")
    subprocess.run([shell, "-n", str(script)], check=True)

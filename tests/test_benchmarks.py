"""The benchmarks run at tiny sizes, and compare the right things; no time is judged here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import driver
from tests.benchmarks.__main__ import MODULES, table, text

BESIDE_PEERS = {"eager", "hessians", "gradchecks", "orders"}  # rows whose yardstick is PyTorch or JAX


@pytest.mark.parametrize("name", MODULES)
def test_every_row_runs(name: str) -> None:
    lines = table((name,), 1, small=True)
    if name in BESIDE_PEERS and importlib.util.find_spec("torch") is None:
        pytest.skip("beside PyTorch and JAX only (extra `peers`)")
    assert lines
    for line in lines:
        assert line["ours"] > 0 and line["yardstick"] > 0 and line["limit"] > 0
        assert line["name"] in text(lines)


def test_candidates_must_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one_and_two.py").write_text(
        "def one(size): return (lambda: None), 1.0\ndef two(size): return (lambda: None), 2.0\n"
        "def gone(size):\n    import no_such_module\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(driver, "environment", lambda: {"PYTHONPATH": f"{tmp_path}:{driver.ROOT}"})
    assert set(driver.raced({"one": "one_and_two:one", "gone": "one_and_two:gone"}, 1)) == {"one"}
    with pytest.raises(AssertionError, match=r"two: 2\.0, not 1\.0"):
        driver.raced({"one": "one_and_two:one", "two": "one_and_two:two"}, 1)


def test_the_command_prints_a_table() -> None:
    command = [sys.executable, "-m", "tests.benchmarks", "--only", "scalar", "--small", "--rounds", "1"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=driver.ROOT)
    assert "straight-line Python" in found.stdout

"""The benchmarks run at tiny sizes, and compare the right things; no time is judged here."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks import devices, driver, load, memory, report
from tests.benchmarks.__main__ import MODULES, main, names_of, table, without_parts
from tests.benchmarks.report import text

BESIDE_PEERS = {"eager", "hessians", "gradchecks", "orders", "loops"}  # rows whose yardstick is PyTorch or JAX
QUICK = {"cold", "devices", "files", "graphs", "memory", "verdicts"}  # rows that take a second or two at a tiny size


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.deep) for name in MODULES]
)
def test_every_row_runs(name: str) -> None:
    if name in BESIDE_PEERS and importlib.util.find_spec("torch") is None:
        pytest.skip("beside PyTorch and JAX only (extra `peers`)")
    lines = table((name,), 1, small=True)
    if name == "devices" and devices.gpu() is None:
        pytest.skip("there is no GPU")
    if name == "memory" and not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the kernel tells no peak that can be reset")
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


def test_rows_and_peers_are_chosen_by_name() -> None:
    assert names_of(["points,cold", "scalar"], MODULES, "row") == ("cold", "scalar", "points")
    with pytest.raises(SystemExit, match="no row is called scaler; there are cold"):
        names_of(["scaler"], MODULES, "row")
    known = driver.Choice.peers
    try:
        driver.Choice.peers = ("jax",)
        assert [driver.wanted(name) for name in ("ours", "plain NumPy", "jax.jit", "torch", "torch.compile")] == [
            True, True, True, False, False,
        ]  # fmt: skip
    finally:
        driver.Choice.peers = known


def test_parts_of_a_row_are_chosen_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    try:
        assert without_parts(["gradbench:lse, cold", "gradbench:det"]) == ["gradbench", "cold", "gradbench"]
        assert driver.Choice.parts == {"gradbench": ("lse", "det")}
        driver.Choice.parts.clear()
        with pytest.raises(SystemExit, match="no part of gradbench is called lsd; there are gmm, kmeans"):
            main(["--only", "gradbench:lsd"])
        with pytest.raises(SystemExit, match="no part of cold is called warm"):
            main(["--only", "cold:warm"])
        with pytest.raises(SystemExit):
            main(["--only", "gradbench:det", "--json", str(tmp_path / "part.json")])
        assert "is only printed" in capsys.readouterr().err
        driver.Choice.parts.clear()
        assert main(["--only", "gradbench:det", "--peers", "none", "--small", "--rounds", "1"]) == 0
        found = capsys.readouterr().out
        assert "4 det" in found and "4 gmm" not in found
    finally:
        driver.Choice.parts.clear()
        driver.Choice.peers = driver.LIBRARIES


def test_a_pass_is_left_out_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "as_it_is.py").write_text(
        "from gradcli.execution.compiler import workspace\n"
        "def found(size): return (lambda: None), float(workspace.turned.__name__ == 'turned')\n"
    )
    monkeypatch.setattr(driver, "environment", lambda: {**os.environ, "PYTHONPATH": f"{tmp_path}:{driver.ROOT}"})
    for left_out, expected in (("", 1.0), ("marks,turning", 0.0)):
        monkeypatch.setenv("BENCHMARK_WITHOUT", left_out)
        worker = driver.Worker("as_it_is:found", 0)
        assert worker.result == expected and worker.run() >= 0
        worker.close()
    with pytest.raises(SystemExit, match="no pass is called turn; there are ranges"):
        main(["--only", "scalar", "--without", "turn"])
    with pytest.raises(SystemExit):
        main(["--only", "scalar", "--without", "blocks", "--json", str(tmp_path / "rows.json")])


def test_a_round_beside_others_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([0.0, 5.0, 5.0, 5.0, 5.0, 5.1, 5.1, 5.1])
    monkeypatch.setattr(load, "others", lambda watched: next(busy))
    monkeypatch.setattr(load, "SHORT", 0.0)
    ticks = iter(range(100))
    monkeypatch.setattr(load.time, "perf_counter", lambda: float(next(ticks)))
    turns = iter(["beside others", "quiet", "nearly quiet"])
    load.Seen.reset()
    assert load.quiet_rounds(lambda: next(turns), 2) == ["quiet", "nearly quiet"]
    assert load.Seen.again == 1
    assert load.Seen.told() == "load of other processes: median 0.10, most 0.10 processors; 1 rounds run again"


def test_the_time_of_others_leaves_out_our_own() -> None:
    if not load.STAT.exists():
        pytest.skip("the kernel tells it in /proc/stat")
    start, before = time.process_time(), load.others(())
    while time.process_time() - start < 0.5:
        pass
    assert load.others(()) - before < 10  # seconds: of a busy machine, and not of this loop alone
    worker = subprocess.Popen([sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"])
    worker.wait()
    assert load.others((worker.pid,)) >= before - 0.1


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    line = {**driver.row("1 work", 0.002, 0.004, 0.4, "a yardstick"), "rounds": 9, "small": False}
    about = {**report.machine(), "gpu": None}
    made = report.markdown([line, {**line, "rounds": 11}], about)
    assert "| 1 work | a yardstick | 2 ms | 4 ms | 0.5 | 0.4 | NO | 9 |  |" in made
    assert "no GPU could be had" in made and "0 of 2 limits are met." in made
    assert "| NO | 11 |  |" in made
    file = tmp_path / "README.md"
    file.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write_markdown(file, made)
    report.write_markdown(file, made)
    found = file.read_text()
    assert found.startswith("before\n") and found.endswith("\nafter\n") and "old" not in found
    assert found.count("1 work") == 2


def test_json_and_markdown_come_from_one_run(tmp_path: Path) -> None:
    files = ["--json", str(tmp_path / "rows.json"), "--markdown", str(tmp_path / "rows.md")]
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks",
        "--only",
        "scalar",
        "--peers",
        "none",
        "--small",
        "--rounds",
        "1",
    ]
    table = subprocess.run([*command, *files], capture_output=True, text=True, check=True, cwd=driver.ROOT).stdout
    assert "straight-line Python" in table
    found = json.loads((tmp_path / "rows.json").read_text())
    assert [one["against"] for one in found["rows"]] == ["straight-line Python"]
    assert "tiny sizes" in (tmp_path / "rows.md").read_text()


def test_rows_of_earlier_runs_fill_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"name": "1 work", "against": "a", "ours": 1.0, "yardstick": 2.0, "ratio": 0.5, "limit": 1.0}
    seen = {"load": 0.0, "rounds": 3, "small": False}
    runs = ([("cold", "old"), ("eager", "old")], [("scalar", "new"), ("cold", "new")])
    files = []
    for number, rows in enumerate(runs):
        files += ["--from", str(tmp_path / f"{number}.json")]
        lines = [{**line, **seen, "module": module, "name": f"{module} {name}"} for module, name in rows]
        Path(files[-1]).write_text(json.dumps({**report.machine(), "date": "2020-01-01", "rows": lines}))
    assert main([*files, "--json", str(tmp_path / "all.json")]) == 0
    found = json.loads((tmp_path / "all.json").read_text())["rows"]
    assert [one["name"] for one in found] == ["cold new", "scalar new", "eager old"]
    elsewhere = json.loads(Path(files[1]).read_text())
    Path(files[1]).write_text(json.dumps({**elsewhere, "processors": 4096}))
    with pytest.raises(SystemExit, match="measured elsewhere: another processors"):
        main(files)
    with pytest.raises(SystemExit, match="holds no rows"):
        main(["--from", str(tmp_path / "none.json")])


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs a peak that can be reset")
@pytest.mark.parametrize(("work", "size"), [("Rosenbrock", 4_000_000), ("points", 4_000_000), ("gmm", 10_000)])
def test_what_goes_block_by_block_adds_little_memory(work: str, size: int) -> None:
    assert memory.alone(work, size)["added"] <= memory.ALLOWED * memory.MIB

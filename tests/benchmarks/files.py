"""`gradcli check` on many files: processor time a file, a second run where nothing has changed, and peak memory.

`python -m tests.benchmarks.files FOLDER --count 10000` makes the files: the scripts under `samples` in turn, each time at
another point. `--measure` also checks them, twice, and prints the figures. Processor time is what the limits are on, since it
does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.cold import ENTRY
from tests.benchmarks.driver import ROOT, Row, environment, row

SAMPLES = ROOT / "samples"
IN_A_FOLDER = 300
LEFT_OUT = ("errors",)  # folders whose scripts are about an error message
DATA_LINE = re.compile(r"(?P<head>[A-Za-z_]\w*(?: in [^=]+?)? = )(?P<value>[-\[\]0-9., e]+)(?P<rest>#.*)?")  # not const
AT_ITS_POINT = re.compile(r"^#>|ignore\[", re.MULTILINE)  # results and suppressions that hold at one point
DECIMAL = re.compile(r"\d+\.\d+")  # whole numbers may be sizes, indices or exponents
EVERY = 0.05  # seconds between two looks at the processes
TICK = os.sysconf("SC_CLK_TCK")
CPU_A_FILE, PARENT, PAIR, AGAIN = 0.12, 150.0, 300.0, 5e-4  # s; MiB; MiB; s of clock a file


# --- files ------------------------------------------------------------------------------------------------------


def variant(text: str, random_numbers: random.Random, turn: int) -> str:
    """A script at another point: each decimal of a leaf's default by at most 3 percent, with two digits more."""

    def other(found: re.Match[str]) -> str:
        digits = len(found[0].partition(".")[2]) + 2
        return f"{float(found[0]) * (1 + random_numbers.uniform(-0.03, 0.03)):.{digits}f}"

    lines = []
    for line in text.splitlines():
        data = DATA_LINE.fullmatch(line)
        if data:
            line = data["head"] + DECIMAL.sub(other, data["value"]) + (data["rest"] or "")
        lines.append(line)
    return "\n".join([*lines, f"# Variant {turn}."]) + "\n"  # a first line may be a remark


def kinds() -> list[Path]:
    """The scripts that are varied."""
    found = [path for path in sorted(SAMPLES.rglob("*.grad")) if path.parent.name not in LEFT_OUT]
    return [path for path in found if not AT_ITS_POINT.search(path.read_text(encoding="utf-8"))]


def make(folder: Path, count: int, seed: int = 0) -> list[Path]:
    """Write so many files, some hundreds in each folder with the data that they load; the same for the same seed."""
    found = []
    scripts = [(path, path.read_text(encoding="utf-8")) for path in kinds()]
    data = [path for path in SAMPLES.rglob("*.csv") if path.parent.name not in LEFT_OUT]
    for number in range(count):
        path, text = scripts[number % len(scripts)]
        turn = number // len(scripts)
        part = folder / f"part{number // IN_A_FOLDER:03}"
        if number % IN_A_FOLDER == 0:
            part.mkdir(parents=True)
            for one in data:
                shutil.copyfile(one, part / one.name)
        name = f"{path.parent.name}_{path.stem}"
        made = part / f"{name}_{turn:03}.grad"
        made.write_text(variant(text, random.Random(f"{seed} {name} {turn}"), turn), encoding="utf-8")
        found.append(made)
    return found


# --- processes --------------------------------------------------------------------------------------------------


class Process:
    """What has been seen of one process: its part in the work, its parent, its processor time and its memory."""

    def __init__(self, part: str, parent: int) -> None:
        self.part = part
        self.parent = parent
        self.seconds = 0.0
        self.resident = 0.0
        self.peak = 0.0


class Watched:
    """The processes below one, looked at every few hundredths of a second while it runs."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.seen: dict[int, Process] = {}
        self.pair = 0.0  # MiB, the most that a worker and its oracle held together

    def look(self) -> None:
        """Note the time and memory of all processes."""
        alive = set()
        for pid, parent, seconds, resident in below(self.root):
            if pid not in self.seen:
                self.seen[pid] = Process("parent" if pid == self.root else part_of(pid), parent)
            one = self.seen[pid]
            if one.part == "starting":
                one.part = part_of(pid)
            one.seconds, one.resident, one.peak = seconds, resident, max(one.peak, resident)
            alive.add(pid)
        held: dict[int, float] = defaultdict(float)
        for pid in alive:
            one = self.seen[pid]
            held[one.parent if one.part == "oracle" else pid] += one.resident
        self.pair = max([self.pair, *(x for pid, x in held.items() if pid != self.root)])

    def seconds(self, part: str) -> float:
        return sum(one.seconds for one in self.seen.values() if one.part == part)

    def peak(self, part: str) -> float:
        return max((one.peak for one in self.seen.values() if one.part == part), default=0.0)

    def count(self, part: str) -> int:
        return sum(one.part == part for one in self.seen.values())


def below(root: int) -> Iterator[tuple[int, int, float, float]]:
    """A process and its descendants: number, parent, seconds of processor time, MiB in memory."""
    table: dict[int, tuple[int, float, float]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20
            table[int(entry.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK, memory)
    pending = [root]
    while pending:
        pid = pending.pop()
        if pid in table:
            yield (pid, *table[pid])
        pending += [child for child, (parent, _, _) in table.items() if parent == pid]


def part_of(pid: int) -> str:
    """What a process does, by its command line."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return "other"
    if "gradcli.checks.oracle.oracle_server" in command:
        return "oracle"
    return (
        "worker" if "gradcli.batch.workers.local_worker" in command else "starting"
    )  # forked, not yet a program of its own


def checked(folder: Path, jobs: int, options: tuple[str, ...] = ()) -> dict[str, float]:
    """One run of the command: seconds of clock, of processor time by part, and MiB."""
    command = [sys.executable, "-c", ENTRY, "check", str(folder), "--jobs", str(jobs), "--show", "failing", *options]
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment(), cwd="/")
        watched = Watched(process.pid)
        while process.poll() is None:
            watched.look()
            time.sleep(EVERY)
        clock = time.perf_counter() - start
        if process.returncode not in (0, 1, 3):
            output.seek(0)
            raise RuntimeError(output.read()[-2000:].decode(errors="replace"))
    parts = ("parent", "worker", "oracle")
    return {
        "exit": process.returncode,
        "clock": clock,
        **{part: watched.seconds(part) for part in parts},
        **{f"{part}_mib": watched.peak(part) for part in parts},
        "pair_mib": watched.pair,
        "workers": watched.count("worker"),
        "oracles": watched.count("oracle"),
    }


def has_cache() -> bool:
    """Whether the command keeps answers between runs."""
    command = [sys.executable, "-c", ENTRY, "check", "--help"]
    return "--cache" in subprocess.run(command, capture_output=True, text=True, env=environment(), check=True).stdout


def measured(folder: Path, count: int, jobs: int = 2) -> dict[str, Any]:
    """Make files, check them cold, and where there is a cache once more; the figures of each run."""
    make(folder / "files", count)
    options = ("--cache", str(folder / "cache")) if has_cache() else ()
    found = {"cold": checked(folder / "files", jobs, options)}
    if options:
        found["unchanged"] = checked(folder / "files", jobs, options)
    return found


def run(rounds: int, small: bool) -> list[Row]:
    """Two turns of all kinds with two workers; one run, since it lasts half a minute."""
    if not Path("/proc/self/stat").exists():
        return []
    count = 6 if small else 2 * len(kinds())
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), count)
    cold = found["cold"]
    lines = [
        row("files, processor time", (cold["worker"] + cold["oracle"]) / count, CPU_A_FILE, 1.0, "0.12 s a file"),
        row("files, parent's memory", cold["parent_mib"], PARENT, 1.0, "150 MiB", "MiB"),
        row("files, worker and oracle", cold["pair_mib"], PAIR, 1.0, "300 MiB", "MiB"),
    ]
    if "unchanged" in found:
        lines.append(row("files, unchanged", found["unchanged"]["clock"] / count, AGAIN, 1.0, "5 s for 10,000"))
    return lines


def main() -> None:
    """Make files, and check them where that is wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.files")
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.folder, options.count, options.jobs), indent=1))
    else:
        make(options.folder, options.count)


if __name__ == "__main__":
    main()

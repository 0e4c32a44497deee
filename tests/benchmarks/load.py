"""A round of measurements goes in, as many quiet ones come out: what other processes took meanwhile is counted.

The kernel's account of all processors, less the time of this process and of those that it watches. A round in which
others took more than `QUIET` processors is run again, at most as often as rounds are wanted; then the quietest count.
It needs /proc; elsewhere every round counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

QUIET = 0.3
SHORT = 0.2  # seconds: the kernel counts hundredths, so less tells nothing
STAT = Path("/proc/stat")


class Seen:
    """What has been seen since `reset`: the load of others in each round that counts, and the rounds run again."""

    loads: list[float] = []
    again = 0

    @classmethod
    def reset(cls) -> None:
        cls.loads, cls.again = [], 0

    @classmethod
    def told(cls) -> str:
        """What a person is told of it."""
        if not cls.loads:
            return "load of other processes: not known"
        middle = sorted(cls.loads)[len(cls.loads) // 2]
        most = f"median {middle:.2f}, most {max(cls.loads):.2f} processors"
        return f"load of other processes: {most}; {cls.again} rounds run again"


def quiet_rounds(turn: Callable[[], Any], rounds: int, watched: Sequence[int] = ()) -> list[Any]:
    """The results of `rounds` calls of `turn`; `watched` are processes that work for it."""
    found: list[tuple[float, Any]] = []
    quiet = 0
    for _ in range(2 * rounds):
        start, spent = time.perf_counter(), others(watched)
        result = turn()
        elapsed = time.perf_counter() - start
        load = max(0.0, others(watched) - spent) / elapsed if elapsed >= SHORT and STAT.exists() else 0.0
        found.append((load, result))
        quiet += load <= QUIET
        if quiet == rounds:
            break
    kept = sorted(found, key=lambda one: one[0])[:rounds]
    Seen.loads += [load for load, _ in kept]
    Seen.again += len(found) - rounds
    return [result for _, result in kept]


def others(watched: Sequence[int]) -> float:
    """Seconds of processor time that others than this process, its ended children and the watched ones have taken."""
    if not STAT.exists():
        return 0.0
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, softirq, steal = (int(x) for x in STAT.read_text().split()[1:9])
    own = sum(os.times()[:4]) * tick
    for pid in watched:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        own += sum(int(x) for x in fields[11:15])
    return (user + nice + system + irq + softirq + steal - own) / tick

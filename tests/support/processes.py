"""Processes as /proc knows them: what a process has started, and whether one still runs. For tests on Linux."""

from __future__ import annotations

import os


def state_of(process: int) -> list[str]:
    """The fields of a process behind its name: its state, its parent and so on; empty where it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as text:
            return text.read().rpartition(")")[2].split()
    except OSError:
        return []


def below(parent: int) -> set[int]:
    """The processes that a process has started, and theirs."""
    states = {int(name): state_of(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found = {parent}
    while more := {one for one, state in states.items() if state and int(state[1]) in found} - found:
        found |= more
    return found - {parent}


def runs(process: int) -> bool:
    """Whether a process runs, and is no zombie."""
    state = state_of(process)
    return bool(state) and state[0] not in "ZX"

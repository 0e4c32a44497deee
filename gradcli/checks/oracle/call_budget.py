"""A budget of Python function calls for SymPy: its time depends on the machine, its calls do not.

Imports do not count, and SymPy's caches are emptied first, so that a question takes the same calls whatever was asked
before, but for the few tables that SymPy keeps. Where these could decide, `UsedBefore` asks for a process in which
SymPy has done nothing yet.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from random import seed
from typing import TYPE_CHECKING, Any

from gradcli.checks.evaluate.interpretation import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


MOST_CALLS = 1_000_000
NEAR = 0.8  # of the budget: with so many calls, the tables that SymPy keeps could decide
FIRST_DUMMY = 10**7  # beyond the random numbers that SymPy begins with
IMPORTING = "<frozen importlib._bootstrap>"


class UsedBefore(Exception):
    """The budget may end earlier or later in a process in which SymPy has worked before."""


class _Ended(BaseException):
    """The budget is over; no handler of SymPy's for errors may stop it."""


class CallBudget:
    """The calls that SymPy may make for one question; `used` once it has made any, `count` those of the last one."""

    def __init__(self, most: int = MOST_CALLS) -> None:
        self.most = most
        self.used = False
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Run what is inside within the budget; raises Unsupported over it, UsedBefore near it in a used process."""
        import_module("sympy.core.cache").clear_cache()
        dummy = import_module("sympy.core.symbol").Dummy
        dummy._base_dummy_index, dummy._count = FIRST_DUMMY, 0
        seed(0)  # SymPy asks its assumptions in a shuffled order
        self.count = depth = 0

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal depth
            if event == "call":
                code = frame.f_code
                if code.co_filename == IMPORTING:
                    depth += code.co_name == "_find_and_load"
                elif not depth:
                    self.count += 1
                    if self.count > self.most:
                        raise _Ended
            elif event == "return" and depth:
                code = frame.f_code
                depth -= code.co_filename == IMPORTING and code.co_name == "_find_and_load"

        used, self.used = self.used, True
        before = sys.getprofile()
        try:
            sys.setprofile(profile)
            yield
        except _Ended:
            pass
        finally:
            sys.setprofile(before)
            if used and self.count > NEAR * self.most:
                raise UsedBefore
            if self.count > self.most:
                raise Unsupported(f"SymPy needs more than {self.most:,} calls") from None

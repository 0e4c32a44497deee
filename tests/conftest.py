"""What all tests share: SymPy's plain integers, as in the oracle's own process; scores and tables at the end."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ.setdefault("SYMPY_GROUND_TYPES", "python")  # python-flint would change them


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: Any) -> None:
    """How many damaged rules two oracles have noticed, and which; in a deep run the tables of the corpus and cases."""
    sabotage = sys.modules.get("tests.test_sabotage") or sys.modules.get("test_sabotage")
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
        module = sys.modules.get(f"tests.{name}") or sys.modules.get(name)
        if module is not None and len(module.TABLE) > 1 and config.option.markexpr == "deep":
            terminalreporter.write_sep("-", title)
            for line in module.table():
                terminalreporter.write_line(line)

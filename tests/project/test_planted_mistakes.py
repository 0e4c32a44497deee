"""Mistakes planted in the package, one at a time: the tests of the room in question, as the normal suite has them, fail.

Each row is a text that stands once in the package, what stands in its place, and the tests that must notice. The rules of
operations are damaged in tests/primitives/test_sabotage.py, 2,000 of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISTAKES: tuple[tuple[str, str, str], ...] = (
    # language: precedence, off by one, what is refused
    ('"+": SUM, "-": SUM,', '"+": SUM, "-": PRODUCT,', "language/test_parser.py"),
    ("span = Span(line, column, line, column + len(text))", "span = Span(line, column, line, column + len(text) + 1)", "language/test_diagnostics.py"),
    ("text, column = self.text, at - line_start + 1", "text, column = self.text, at - line_start", "language/test_errors.py"),
    # lowering
    ("numbers.stop - numbers.start + step - (1 if step > 0 else -1)", "numbers.stop - numbers.start + step", "lowering/test_lowering.py"),
    # transforms
    ("(other, (ct, both(builder, mask, vocabulary.opposite(condition))))", "(other, (ct, both(builder, mask, condition)))", "transforms/test_graphs.py"),
    ("return jvp(grad(output, [target]), [target], [direction])[0]", "return grad(output, [target])[0]", "transforms/test_transforms.py"),
    ('elif node.primitive.kind != "nondifferentiable":', 'elif node.primitive.kind != "structured":', "transforms/test_transforms.py"),
    ("        return -ct\n    return builder.call", "        return ct\n    return builder.call", "transforms/test_transforms.py"),
    ("for j in range((k + 1) // 2):", "for j in range(k // 2):", "transforms/test_taylor.py"),
    ("places = [place * whole + first + stride * i for place in places for i in range(count)]", "places = [place * whole + first + i for place in places for i in range(count)]", "transforms/test_accumulation.py"),
    # execution
    ("T smaller_(T x, T y) { return x < y || x != x ? x : y; }", "T smaller_(T x, T y) { return x < y ? x : y; }", "execution/test_cupy_plans.py"),
    ("library.flatnonzero(left[among] == j)", "library.flatnonzero(left[among] == 0)", "execution/test_structure.py"),
    ("pair = (negated, y) if position == 0 else (x, negated)", "pair = (negated, y)", "execution/test_plans_steps.py execution/test_plans_running.py execution/test_plans_attack.py"),
    ("last = [slot for slot in reads[out] if slot not in needed]", "last = [slot for slot in reads[out]]", "execution/test_evaluate.py"),
    # checks: a verdict granted too early, a bound too loose
    ('"IMPRECISE" if outcome.verdict == "IMPRECISE" else "PROVED" if proved else "CERTIFIED"', '"PROVED" if proved else "CERTIFIED"', "checks/test_granting.py checks/test_verdicts.py"),
    ('outcome._replace(verdict="PROVED", message=', 'outcome._replace(verdict="CERTIFIED", message=', "checks/test_granting.py checks/test_verdicts.py checks/test_claims.py"),
    ("    if worst.ulps <= LIMIT_ULPS:", "    if worst.ulps <= LIMIT_ULPS * 1e9:", "checks/test_verdicts.py"),
    ("if relation(exact, other, None) == DISJOINT:", "if relation(exact, other, None) != DISJOINT:", "checks/test_series.py checks/test_boxes.py"),
    ("return bool(order[-1].enclosed(2 * int(bound) + START_BITS).abs_upper() < arb(2) ** -int(bound + 1))", "return bool(order[-1].enclosed(2 * int(bound) + START_BITS).abs_upper() < arb(2))", "checks/test_ties.py"),
    ('"PROVED": {"defined", "kink", "apart"}', '"PROVED": {"defined"}', "checks/test_sets.py checks/test_granting.py"),
    # functions of other libraries
    ("    if np.isfinite(gap) and gap > LINEAR * scale:", "    if np.isfinite(gap) and gap > 1e9 * scale:", "callables/test_callables.py"),
    ("        if not gap <= LINEAR:", "        if not gap <= 1e9:", "callables/test_callables.py"),
    ("if len(order) > MOST_NODES or entries > MOST_ENTRIES:", "if len(order) > MOST_NODES:", "callables/test_traced_rules.py"),
    ('f"with signal {signals.get(-code, str(-code))}" if code < 0', 'f"with signal {signals.get(code, str(code))}" if code < 0', "callables/test_process.py"),
    # runs
    ("        if known is not None and known[0] == signature:", "        if known is not None:", "batch/test_journal.py"),
    ("    if not 1 <= number <= count:", "    if not 1 <= number < count:", "batch/test_selection.py"),
    ('known["key"] == self.key and os.path.getsize(self.part) >= known["bytes"]', 'os.path.getsize(self.part) >= known["bytes"]', "batch/test_points.py"),
    # the command line
    ("FINE, USAGE, INTERNAL, BROKEN_PIPE, SIGNALLED = 0, 2, 4, 141, 128", "FINE, USAGE, INTERNAL, BROKEN_PIPE, SIGNALLED = 0, 4, 2, 141, 128", "interfaces/test_main.py interfaces/test_exit_codes.py"),
    ("return stopped() if received and argv[:1] != [\"run\"] else code", "return code", "interfaces/test_signals.py"),
    ('return 0 if code == NOTHING and "empty" in self.allow else code', "return 0 if code == NOTHING else code", "interfaces/test_exit_codes.py interfaces/test_operands.py batch/test_check_runs.py"),
    ("        (1, failed, ", "        (3, failed, ", "interfaces/test_exit_codes.py"),
    ("        (4, totals.broken,", "        (1, totals.broken,", "interfaces/test_exit_codes.py"),
    ("if option is None or (equals and (option.kind == \"flag\" or \"=\" in meaning)):", "if option is None:", "interfaces/test_readers.py"),
    # results
    ("    yield from range(size - tail, size)", "    yield from range(size - tail - 1, size - 1)", "rendering/test_rendering_values.py"),
    ("finite = value[(value == value) & (abs(value) != INFINITY)]", "finite = value[value == value]", "rendering/test_rendering_values.py"),
    # tensors
    ("        cts = ct if node.outputs > 1 else [ct]", "        cts = [ct] if node.outputs > 1 else [ct]", "eager/test_laws.py"),
    ("shape = tuple([size // rest if n == -1 and rest else n for n in shape])", "shape = tuple([rest if n == -1 and rest else n for n in shape])", "eager/test_views.py"),
    ("square = square - mean * mean", "square = square + mean * mean", "eager/test_nn_against_torch.py"),
    ('shares = np.ones_like(result) if reduce == "sum"', 'shares = np.ones_like(result) if reduce != "sum"', "eager/test_func.py eager/test_against_torch.py"),
    # why, audit, pytest
    ('if check.verdict == "INCONCLUSIVE" and self.config.getini("gradcli_inconclusive") == "skip":', 'if check.verdict == "INCONCLUSIVE":', "interfaces/test_pytest_plugin.py"),
)  # fmt: skip


def file_with(text: str, package: Path) -> Path:
    """The file in which a text stands, which it does once."""
    (file,) = [path for path in package.rglob("*.py") if text in path.read_text(encoding="utf-8")]
    assert file.read_text(encoding="utf-8").count(text) == 1, f"{file}: {text!r} stands there more than once"
    return file


@pytest.mark.deep
@pytest.mark.parametrize(("right", "wrong", "tests"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_planted_mistake_is_noticed(right: str, wrong: str, tests: str, tmp_path: Path) -> None:
    for name in ("gradcli", "tests", "samples", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md", ".github"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    file = file_with(right, tmp_path / "gradcli")
    file.write_text(file.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *[str(Path("tests") / one) for one in tests.split()]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "1 failed" in done.stdout, done.stdout[-2000:]

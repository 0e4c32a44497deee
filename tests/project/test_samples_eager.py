"""Every snippet under samples/eager/ prints here what it prints under PyTorch; the output lies beside it (`NAME.out`).

The outputs are PyTorch's own: `UPDATE_SNAPSHOTS=1 pytest tests/project/test_samples_eager.py` writes them where it is installed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

from gradcli.eager.torch_alias import aliases
from gradcli.recording import runs
from tests.support.rows import all_rows

FOLDER = Path(__file__).parents[2] / "samples" / "eager"
SAMPLES = sorted(FOLDER.rglob("*.py"))
NAMES = [str(path.relative_to(FOLDER)) for path in SAMPLES]

# runs each file in a process of its own, forked from one that has loaded torch
UNDER_TORCH = """
import contextlib, io, json, os, runpy, sys, warnings
import torch
torch.set_num_threads(1)
found = {}
for path in sys.argv[1:]:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        out, code = io.StringIO(), 0
        sys.argv, sys.path[0] = [path], os.path.dirname(path)
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                runpy.run_path(path, run_name="__main__")
            except Exception:
                code = 1
        with os.fdopen(write, "w") as pipe:
            json.dump([out.getvalue(), code], pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found[path] = json.load(pipe)
    os.waitpid(child, 0)
print(json.dumps(found))
"""


@cache
def under_torch() -> dict[str, tuple[str, int]]:
    """What every sample prints under PyTorch, and its exit code."""
    done = subprocess.run(
        [sys.executable, "-c", UNDER_TORCH, *map(str, SAMPLES)], capture_output=True, text=True, check=True, timeout=300
    )
    return {name: (out, code) for name, (out, code) in json.loads(done.stdout.splitlines()[-1]).items()}


def under_ours(path: Path) -> tuple[str, int]:
    """The same with these tensors."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = runs.run_file(str(path), tell=False, inside=aliases())
    return out.getvalue(), outcome.code


@all_rows("name", NAMES)
def test_sample_prints_its_golden_output(name: str) -> None:
    path = FOLDER / name
    out, code = under_ours(path)
    assert out == path.with_suffix(".out").read_text(encoding="utf-8")
    assert code == (1 if name in FAILING else 0)


# these end in an exception on purpose: `why` explains it
FAILING = {
    f"why/{name}.py"
    for name in (
        "changed_carried",
        "changed_in_place",
        "graph_freed",
        "nothing_requires_grad",
        "stopped",
        "under_inference_mode",
    )
}


@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_sample_prints_what_it_prints_under_pytorch(name: str) -> None:
    pytest.importorskip("torch")
    path = FOLDER / name
    theirs = under_torch()[str(path)]
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.with_suffix(".out").write_text(theirs[0], encoding="utf-8")
    assert theirs == (path.with_suffix(".out").read_text(encoding="utf-8"), 1 if name in FAILING else 0)


def test_there_are_enough_and_each_says_what_it_shows() -> None:
    assert len([name for name in NAMES if "/" not in name]) >= 40
    for path in SAMPLES:
        first, second = path.read_text(encoding="utf-8").splitlines()[:2]
        assert re.fullmatch(r"# .{10,110}[.:]", first), path
        assert second == "import torch"


def test_every_sample_is_listed_in_the_overview() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(([\w/]+\.py)\)", text)
    assert sorted(listed) == sorted(NAMES)

"""The texts of kernels for the GPU: what they may consist of, and that NVIDIA's compilers take every one of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.execution.cuda import emit
from gradcli.execution.cuda.kernels import Kernel
from gradcli.primitives import catalogue
from tests.device_programs import PROGRAMS
from tests.emulated_device import SIGNATURE, emulated
from tests.test_cupy_plans import planned, plans_of

NVCC = shutil.which("nvcc")
TARGETS = ("70", "80", "90")  # generations of GPUs; new compilers leave out the first
WORDS = {
    "const", "whole", "double", "float", "bool", "int", "long", "if", "for", "true", "false", "typedef", "return",
    "extern", "__global__", "void", "__launch_bounds__", "__restrict__", "__shared__", "__device__", "__forceinline__",
    "threadIdx", "blockIdx", "gridDim", "x", "y", "r", "d", "e", "i", "j", "k", "row", "piece", "stop", "step", "base",
    "unit", "lane", "last", "other", "C", "within_", "__syncthreads", "__shfl_down_sync", "__shfl_sync", "__longlong_as_double",
    "__int_as_float", "sincos", "count", "pragma", "unroll",
}  # fmt: skip
TOKEN = re.compile(
    r"[A-Za-z_]\w*|0x[0-9a-f]+(?:ll|u)?|(?:\d+\.?\d*(?:e[-+]?\d+)?)(?:f|ll)?|[-+*/%<>=!&|?:;,(){}\[\].\"#]|\s+"
)
OWN = re.compile(r"[aonrqst]\d+|v\d+[sc]?|gradcli_\d+(_rest)?")


@cache
def kernels(operations: bool = True) -> tuple[Kernel, ...]:
    """The kernels of all programs in both widths, and of all operations; equal texts once."""
    found: dict[str, Kernel] = {}
    with emulated():
        plans = [planned(program, dtype)[2] for program in PROGRAMS for dtype in ("float64", "float32")]
        plans += [plan for name in sorted(catalogue() if operations else ()) for *_, plan in plans_of(name, "float64")]
        for plan in plans:
            for kernel in plan.work:
                for one in (kernel, kernel.rest) if isinstance(kernel, Kernel) else ():
                    if one is not None:
                        found.setdefault(one.text, one)
    return tuple(found.values())


def tokens(text: str) -> set[str]:
    place, found = 0, set()
    while place < len(text):
        match = TOKEN.match(text, place)
        assert match is not None, text[place : place + 40]
        found.add(match[0].strip())
        place = match.end()
    return found - {""}


def test_the_alphabet() -> None:
    """Words of the language, functions of our table, names that we number, numbers: no name of a user's gets in."""
    functions = set(re.findall(r"[a-z_]\w*", " ".join([*emit.FORMS.values(), *emit.SPECIAL.values(), emit.FUNCTIONS])))
    names: set[str] = set()
    for kernel in kernels():
        names |= {one for one in tokens(kernel.text) if re.match(r"[A-Za-z_]", one)}
    strange = {one for one in names - WORDS - functions if not OWN.fullmatch(one)}
    assert not strange, strange


def test_names_of_leaves_stay_out() -> None:
    from gradcli.calculator.questions import gradient_question, prepare
    from gradcli.execution.cuda.plan import device_plan

    with emulated():
        question = gradient_question(prepare("sum(secret_name**2 * σ)", {"secret_name": np.ones(3), "σ": 2.0}))
        plan = device_plan(question.tape)
        assert plan is not None
        text = "".join(kernel.text for kernel in plan.work if isinstance(kernel, Kernel))
        assert "double" in text and "secret" not in text and "σ" not in text


def test_no_sum_depends_on_who_comes_first() -> None:
    for kernel in kernels():
        assert "atomic" not in kernel.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.1), "0.1"), (np.float32(0.1), "1.0e-01f"), (np.float64(-2), "(-2.0)"), (np.int64(-3), "(-3ll)"),
        (np.float64(np.inf), "__longlong_as_double(0x7ff0000000000000ll)"), (np.bool_(False), "false"),
        (np.float32(np.nan), "__int_as_float(0x7fc00000)"), (np.float64(5e-324), "5e-324"),
    ],
)  # fmt: skip
def test_numbers(value: Any, text: str) -> None:
    assert emit.number(value) == text


def as_one_file(found: tuple[Kernel, ...]) -> str:
    """All kernels in one file, each in a namespace of its own and under a name of its own."""
    parts = []
    for number, kernel in enumerate(found):
        text = re.sub(rf"\b{kernel.name}\(", f"kernel_{number}(", kernel.text)
        parts.append(f"namespace own_{number} {{\n{text}\n}}")
    return "\n".join(parts)


@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("target", [*[pytest.param(one, marks=pytest.mark.deep) for one in TARGETS[:-1]], TARGETS[-1]])
def test_nvcc_takes_every_kernel(target: str, tmp_path: Path) -> None:
    assert NVCC is not None
    known = subprocess.run([NVCC, "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout.split()
    if f"compute_{target}" not in known:
        pytest.skip(f"this nvcc does not know compute_{target}")
    source = tmp_path / "kernels.cu"
    found = kernels(operations=target == TARGETS[-1])
    source.write_text(as_one_file(found))
    command = [NVCC, "--ptx", f"-arch=compute_{target}", *emit.OPTIONS, str(source), "-o", str(tmp_path / "out.ptx")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    code = (tmp_path / "out.ptx").read_text()
    assert code.count(".entry") == len(found)
    assert "fma.rn" in code, "the functions of CUDA's library use it"
    assert not re.search(r"\b(atom|red)\.", code)


def test_signatures_are_read() -> None:
    found = kernels()
    assert len(found) > 50 and all(SIGNATURE.search(kernel.text) for kernel in found)

"""A new operation is one declaration in one place: everything that `exp` has follows from these thirteen lines."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.checks.callables.api import check_callable
from gradcli.checks.script import check_script
from gradcli.derivation.deriving import derive, emitted
from gradcli.graph.domain import REAL, Closed
from gradcli.graph.primitive import Primitive, elementwise
from gradcli.primitives import declare, forget, functions
from gradcli.rendering.code import source_file


def erfcx_like() -> Primitive:
    """The scaled complementary error function, as an author declares it; it lasts while a test runs."""
    exp, pi, sqrt = functions()["exp"], np.pi, functions()["sqrt"]
    assert exp and pi and sqrt
    return elementwise(
        "erfcx",
        "exp(x**2)*erfc(x), without overflow.",
        impl=lambda xp, x: xp.erfcx(x),
        symbolic=lambda sp, x: sp.exp(x**2) * sp.erfc(x),
        ball=lambda fl, x: (x * x).exp() * x.erfc(),
        partials=lambda x, *, out: (2 * x * out - 2 / sqrt(functions()["acos"](-1)),),
        domain=[REAL],
        sample=[Closed(-1, 2)],
        formula="exp(x**2)*erfc(x)",
        elementary="exp(x**2)*erfc(x)",
        names="scipy.special. torch.special.",
    )

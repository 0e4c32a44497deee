"""Where other libraries have an operation: every address of a declaration exists, and what stands there has its values."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from gradcli import calculator
from gradcli.primitives import addresses, catalogue, functions
from gradcli.primitives.sample_points import PLACES
from tests.support.rows import all_rows

LIBRARIES = [library for library in ("numpy", "scipy", "torch", "jax") if find_spec(library)]
PUBLIC = [name for name, primitive in catalogue().items() if primitive.addresses and not primitive.internal]
LAST = {"jn": 2, "iv": 2, "polygamma": 2, "gammainc": 2, "gammaincc": 2, "betainc": 3}  # operands, the last one sampled


def at(address: str) -> Any:
    """What stands at an address."""
    module, _, name = address.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.peers
@all_rows("name", PUBLIC)
def test_an_address_leads_to_a_function_with_the_same_values(name: str) -> None:
    primitive = functions()[name]
    places = [address for address in primitive.addresses if address.partition(".")[0] in LIBRARIES]
    if not primitive.pointwise or any(interval is None for interval in primitive.sample):
        assert all(map(at, places))
        return
    xs = [s.low + place * (s.high - s.low) for s, place in zip(primitive.sample, PLACES, strict=False)]
    xs = [1.0] * (LAST.get(name, len(xs)) - len(xs)) + xs
    letters = [f"x{k}" for k in range(len(xs))]
    value = calculator.evaluate(f"{name}({', '.join(letters)})", at=dict(zip(letters, xs, strict=True))).value
    for address in places:
        library = address.partition(".")[0]
        make = import_module("torch").tensor if library == "torch" else np.float64
        numbers = [make(x, dtype=import_module("torch").float64) if library == "torch" else make(x) for x in xs]
        numbers[0] = 1 if name == "polygamma" else numbers[0]
        with import_module("jax").enable_x64(True) if library == "jax" else np.errstate():
            assert np.isclose(float(at(address)(*numbers)), float(value), rtol=1e-9), address


def test_no_two_operations_share_an_address() -> None:
    count = sum(len(primitive.addresses) for primitive in catalogue().values() if primitive.pointwise)
    assert len(addresses()) == count

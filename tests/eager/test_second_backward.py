"""Which operations may be walked backward twice without retain_graph: a table over every snippet, held against PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import gradcli.eager
from tests.eager.test_against_torch import KEPT, PROGRAMS, standing_for, torch
from tests.support.eager_layer_snippets import LAYERS
from tests.support.eager_training_snippets import FUNCTIONAL

__all__ = ["torch"]  # the fixture

AGAIN = "\ntry:\n    y.sum().backward()\n    again = 'walked'\nexcept RuntimeError:\n    again = 'refused'\n"
TABLE = {
    name: text
    for name, text in {**PROGRAMS, **{f"F {k}": v for k, v in FUNCTIONAL.items()}, **LAYERS}.items()
    if "backward()" in text.strip().split("\n")[-1] and "y = " in text and name not in KEPT
}
# PyTorch keeps the input of these although their slope does not depend on it; ours keep what the rule reads
DIFFERENT = frozenset(
    {
        "axes a.div(2, rounding_mode='floor')",
        "zero dim ops",
        "F.adaptive_avg_pool1d(x1,4)",
        "F.adaptive_avg_pool2d(x,(2,3))",
        "F.adaptive_avg_pool2d(x,(None,4))",
        "F.adaptive_avg_pool2d(x,4)",
        *[
            f"a number has one axis x.{one}"
            for one in ("max(0).values", "min(-1, True)[0]", "sort().values", "prod(0)")
        ],
        *[
            f"a number has one axis x.{one}"
            for one in ("median(0).values", "topk(1)[0]", "cumprod(-1)", "logsumexp(0)")
        ],
        "a number has one axis x.amax(-1)",
        "nn.AdaptiveAvgPool2d((2,3))(x)",
    }
)


def walked(text: str, torch: Any) -> str | None:
    names: dict[str, Any] = {"torch": torch}
    with warnings.catch_warnings(), standing_for(torch):
        warnings.simplefilter("ignore")
        try:
            exec(compile(text + AGAIN, "snippet.py", "exec"), names)
        except Exception as error:
            return type(error).__name__
    return names.get("again")


@pytest.mark.peers
@pytest.mark.parametrize("part", range(8))
def test_the_second_walk(part: int, torch: Any) -> None:
    rows = list(TABLE.items())[part::8]
    torch._C._set_mkldnn_enabled(False)
    try:
        found = {name: (walked(text, gradcli.eager), walked(text, torch)) for name, text in rows}
    finally:
        torch._C._set_mkldnn_enabled(True)
    wrong = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
    assert wrong.keys() <= DIFFERENT and all(pair == ("walked", "refused") for pair in wrong.values()), wrong


def test_the_table_is_long_and_has_both_answers() -> None:
    answers = [walked(text, gradcli.eager) for text in list(TABLE.values())[::7]]
    assert len(TABLE) > 600
    assert answers.count("walked") > 10 and answers.count("refused") > 40

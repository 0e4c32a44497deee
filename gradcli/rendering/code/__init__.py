"""A value and its gradient as a function in another language, in a file of its own with a test of its values.

`python_code` writes NumPy, PyTorch and JAX, `c_code` C, both from the syntax trees of formulas, after names that mean
something else in the language were replaced.
"""

from __future__ import annotations

import dataclasses

from gradcli.language.substitution import substituted
from gradcli.rendering.code.c_code import c_file, is_c_word
from gradcli.rendering.code.python_code import PYTHON_WORDS, python_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gradcli.base.results.calculations import SelfContained

TARGETS = ("numpy", "torch", "jax", "c")


def source_file(function: SelfContained, target: str) -> str:
    """The text of a file for one of TARGETS; raises GradcliError GC512 if the target lacks a function."""
    names = own_names([*function.leaves, *function.sizes, *function.parts], target)
    prepared = dataclasses.replace(
        function,
        leaves={names[leaf]: axes for leaf, axes in function.leaves.items()},
        sizes={names[size]: (names[leaf], axis) for size, (leaf, axis) in function.sizes.items()},
        parts={names[part]: renamed(text, names) for part, text in function.parts.items()},
        value=renamed(function.value, names),
        gradient={names[leaf]: renamed(text, names) for leaf, text in function.gradient.items()},
        at={names[leaf]: value for leaf, value in function.at.items()},
        numbers={names[leaf]: value for leaf, value in function.numbers.items()},
    )
    labels = {new: name for name, new in names.items()}
    return c_file(prepared) if target == "c" else python_file(prepared, target, labels)


def own_names(names: Sequence[str], target: str) -> dict[str, str]:
    """What to call names in a language: a word of it, or what may be a macro, gets a `_` behind it."""
    is_word = is_c_word if target == "c" else PYTHON_WORDS.__contains__
    chosen = {name: name for name in names if not is_word(name)}
    for name in names:
        other = name
        while is_word(other) or other in {*names, *chosen.values()} - {name}:
            other = f"{other.lstrip('_') or 'x'}_"
        chosen.setdefault(name, other)
    return chosen


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A formula with other names."""
    return substituted(text, {name: other for name, other in names.items() if name != other})


__all__ = ["TARGETS", "source_file"]

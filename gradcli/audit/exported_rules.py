"""Judges a function of JAX with a rule of its own, which a watched process has exported, in a process of its own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.audit.judging import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def judge_exported(path: str, seconds: float, size: int, kept: dict[str, list[int]]) -> None:
    """Print the verdict on what stands in the files `path`.value, .pullback and .npz, as a line of JSON.

    `size` is that of the function's value; `kept` says which arguments each of the two modules reads.
    """
    import jax

    jax.config.update("jax_enable_x64", True)

    def subject() -> tuple[Any, dict[str, Any], tuple[Any, ...]]:
        with np.load(f"{path}.npz") as file:
            point = tuple(file[name] for name in file.files)
        weights = np.zeros(size)
        value = loaded(f"{path}.value", kept["value"], point, lambda *moved: weights)
        pullback = loaded(f"{path}.pullback", kept["pullback"], (weights, *point), lambda ct, *moved: moved)

        def f(*moved: Any) -> Any:
            return np.asarray(value(*moved))

        def vjp(*given: Any) -> Any:
            return tuple(np.asarray(one) for one in pullback(np.reshape(given[-1], size), *given[:-1]))

        return f, {"vjp": vjp, "names": [f"x{i}" for i in range(len(point))]}, point

    sys.stdout.write(json.dumps(answer(subject, {"timeout": seconds})) + "\n")


def loaded(path: str, kept: Sequence[int], like: Sequence[Any], shape_of: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a module that was exported here or there, whose arguments are `like` these.

    Reading a whole `Exported` needs a package that JAX does not bring along. So one of the same shapes is made, of a
    function `shape_of` that returns anything, and its module is replaced.
    """
    import jax
    from jax import export

    shapes = [jax.ShapeDtypeStruct(np.shape(one), np.float64) for one in like]
    made = export.export(jax.jit(shape_of), platforms=["cpu"])(*shapes)
    module = Path(path).read_bytes()
    call: Callable[..., Any] = jax.jit(
        replace(made, mlir_module_serialized=module, module_kept_var_idx=tuple(kept)).call
    )
    return call

"""Evaluates prepared scripts at points and returns results with their diagnostics."""

from __future__ import annotations

from gradcli.base.diagnostics import Diagnostic
from gradcli.base.results.calculations import Evaluation, Gradient, Hessian, Jacobian
from gradcli.calculator.notes import kinks
from gradcli.calculator.notes.convention import conjugated, real_part_note
from gradcli.calculator.notes.lost_digits import is_finite, lost_digits
from gradcli.calculator.sweeping import as_last_axes, runs_forward, shaped, thinned
from gradcli.lowering.points import array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gradcli.base.results.calculations import Value
    from gradcli.calculator.repeated.prepared import PreparedScript
    from gradcli.lowering import Lowered

LARGE = 1 << 21  # entries of all arrays of a question, from which a plan is worth its making for one run


def ask_value(
    question: PreparedScript,
    point: Mapping[str, Any],
    dtype: str = "float64",
    backend: str = "auto",
    notes: Sequence[Diagnostic] = (),
    exact: bool = False,
) -> Evaluation:
    """The value of a prepared question at a point; with `exact`, also the exact value if floats lost its digits."""
    values = question.values(point)
    results = question.run_planned(values, backend, dtype, LARGE)
    lowered = question.lowered
    if lowered.derived:
        known, kink_notes = kinks.of_value(question, all(map(is_finite, results)), values, dtype, backend)
        notes = (*notes, *kink_notes)
        results = [known.get(node, result) for node, result in zip(lowered.program.outputs, results, strict=True)]
    value = tuple(results) if lowered.several else results[0]
    diagnostics = diagnose_answer(question, values, results, notes, dtype)
    lost, more = lost_digits(question, values, results, backend, dtype) if exact else (None, ())
    return Evaluation(lowered.text, point_of(lowered, values), value, (*diagnostics, *more), lost)


def ask_gradient(
    question: PreparedScript,
    point: Mapping[str, Any],
    dtype: str = "float64",
    backend: str = "auto",
    notes: Sequence[Diagnostic] = (),
    order: int = 1,
    exact: bool = False,
) -> Gradient:
    """The gradient of a prepared question at a point; with `exact`, also exact values if floats lost their digits."""
    values = question.values(point)
    results = question.run_planned(values, backend, dtype, LARGE)
    names = question.names
    gradient = dict(zip(names, results[1:], strict=False))
    value = results[0]
    extra: list[Diagnostic] = []
    if dtype == "complex128":
        value, gradient = conjugated(value, gradient)
        extra = real_part_note(question.lowered, results[0])
    higher = None
    if order > 1:
        rest = results[1 + len(names) :]
        higher = {name: tuple(rest[i * order : (i + 1) * order]) for i, name in enumerate(names)}
    lost, more = lost_digits(question, values, results, backend, dtype) if exact else (None, ())
    if lost is None:
        extra += kinks.of_gradient(question, gradient, values, dtype, backend)
    diagnostics = diagnose_answer(question, values, results, (*notes, *extra), dtype)
    at = point_of(question.lowered, values)
    return Gradient(question.lowered.text, at, value, gradient, higher, (*diagnostics, *more), lost)


def ask_hessian(
    question: PreparedScript,
    point: Mapping[str, Any],
    dtype: str = "float64",
    backend: str = "auto",
    notes: Sequence[Diagnostic] = (),
    again: bool = False,
) -> Hessian:
    """The second derivatives of a prepared question at a point; `again`: it will be evaluated many times."""
    values = question.values(point)
    names, leaves = question.names, question.lowered.program.leaves
    few = question.swept(question.compressed, values, backend, dtype, again)
    results = question.run(values, backend, dtype) if few is None else few[0]
    value, gradient = results[0], dict(zip(names, results[1:], strict=True))
    if dtype == "complex128":
        notes = (*notes, *real_part_note(question.lowered, value))
        value, gradient = conjugated(value, gradient)
    at = point_of(question.lowered, values)
    if few is not None:
        second = _second(question, few[1]())
    else:
        second = {name: {} for name in names}
        shapes = {name: leaves[name].node.type.shape for name in names}
        for sweep in question.sweeps:
            column = sweep.leaf
            for row, rows in zip(names, question.run_along(sweep.along, values, backend, dtype, again), strict=True):
                moved = bool(sweep.along.units)
                block = as_last_axes(rows, shapes[row], shapes[column]) if moved else rows
                second[row][column] = thinned(block, leaves[row].node.type.size, question.sparse)
    matrices: Any = [block for line in second.values() for block in line.values()]
    finite = all(is_finite(block.data if question.sparse else block) for block in matrices)
    overflowed = not is_finite(value)  # then the gradient is as little a number
    known, more = kinks.of_second_order(question, finite or overflowed, values, dtype, backend)
    for (row, column), block in known.items():
        second[row][column] = thinned(block, leaves[row].node.type.size, question.sparse)
    notes = (*notes, *kinks.of_gradient(question, gradient, values, dtype, backend), *more)
    diagnostics = diagnose_answer(question, values, results, notes, dtype)
    return Hessian(question.lowered.text, at, value, gradient, second, diagnostics)


def hessian_again(question: PreparedScript, leaves: Mapping[str, Any], dtype: str) -> Hessian | None:
    """What `ask_hessian` gave by a plan for a sparse Hessian, if these are all the leaves, as arrays of their types.

    None too where something is not finite or at a kink: then there is something to explain.
    """
    few = None if question.compressed is None else question.compressed.again(leaves, dtype)
    if few is None or not all(map(is_finite, few[0])) or question.at_a_kink(leaves, dtype):
        return None
    results, lowered = few[0], question.lowered
    at = {name: plain_value(leaves[name]) for name in lowered.program.leaves if name in leaves}
    gradient = dict(zip(question.names, results[1:], strict=True))
    return Hessian(lowered.text, at, results[0], gradient, _second(question, few[1]()), lowered.notes)


def _second(question: PreparedScript, blocks: Sequence[Sequence[Any]]) -> dict[str, dict[str, Value]]:
    """Flat blocks of a Hessian by the names of their rows and columns, in their shapes."""
    names, leaves = question.names, question.lowered.program.leaves
    shapes = [leaves[name].node.type.shape for name in names]
    return {
        row: {
            column: shaped(block, high + wide, question.sparse)
            for column, wide, block in zip(names, shapes, line, strict=True)
        }
        for row, high, line in zip(names, shapes, blocks, strict=True)
    }


def ask_jacobian(
    question: PreparedScript,
    point: Mapping[str, Any],
    dtype: str = "float64",
    backend: str = "auto",
    notes: Sequence[Diagnostic] = (),
    again: bool = False,
) -> Jacobian:
    """The Jacobian of a prepared question at a point; `again`: it will be evaluated many times."""
    values, lowered = question.values(point), question.lowered
    outputs = lowered.program.outputs
    few = question.swept(question.compressed, values, backend, dtype, again)
    if few is not None:
        results, blocks = few[0], few[1]()
        tables = [
            {
                name: shaped(block, output.type.shape + lowered.program.leaves[name].node.type.shape, question.sparse)
                for name, block in zip(question.names, line, strict=True)
            }
            for output, line in zip(outputs, blocks, strict=True)
        ]
    else:
        results = question.run(values, backend, dtype)
        tables = _tables(question, values, backend, dtype, again)
    result = tuple(results) if lowered.several else results[0]
    return Jacobian(
        lowered.text,
        point_of(lowered, values),
        result,
        tuple(tables) if lowered.several else tables[0],
        diagnose_answer(question, values, results, notes, dtype),
    )


def _tables(
    question: PreparedScript, values: Mapping[str, Any], backend: str, dtype: str, again: bool
) -> list[dict[str, Value]]:
    """For each output, the first derivatives in every leaf, by few sweeps if possible, else along all unit vectors."""
    lowered, names = question.lowered, question.names
    outputs = lowered.program.outputs
    tables: list[dict[str, Value]] = [{} for _ in outputs]
    for name, compressed in question.by_leaf.items():
        few = question.swept(compressed, values, backend, dtype, again)
        if few is not None:
            shape = lowered.program.leaves[name].node.type.shape
            for table, node, line in zip(tables, outputs, few[1](), strict=True):
                table[name] = shaped(line[0], node.type.shape + shape, question.sparse)
    left = [name for name in names if any(name not in table for table in tables)]
    for sweep in question.sweeps if left else ():
        position, name, along = sweep
        if name not in left:
            continue
        output_node, target_node = outputs[position], lowered.program.leaves[name].node
        output, target = output_node.type.shape, target_node.type.shape
        value: Any = question.run_along(along, values, backend, dtype, again)[0]
        if along.units and runs_forward(output_node, target_node):
            value = as_last_axes(value, output, target)
        elif output or target:
            rows = array_of(value)
            count = output_node.type.size
            if along.units and rows.ndim == len(target):
                rows = rows[None].repeat(count, axis=0)
            value = rows.reshape(output + target)
        tables[position][name] = thinned(value, output_node.type.size, question.sparse)
    return [{name: table[name] for name in names} for table in tables]


def point_of(lowered: Lowered, values: Mapping[str, Any]) -> dict[str, Value]:
    """The point as results show it: floats and arrays, in the order of the script."""
    return {name: plain_value(values[name]) for name in lowered.program.leaves if name in values}


def plain_value(value: Any) -> Value:
    """A number as a float (or complex), anything else as an array."""
    if isinstance(value, complex):
        return value
    if isinstance(value, (list, tuple)):
        return array_of(value)  # type: ignore[no-any-return]
    if len(getattr(value, "shape", ())) > 0:
        return value.copy()  # type: ignore[no-any-return]  # the caller may change his own
    return value if type(value) is float else float(value)


def diagnose_answer(
    question: PreparedScript,
    values: Mapping[str, Any],
    results: Sequence[Any],
    notes: Sequence[Diagnostic],
    dtype: str,
) -> tuple[Diagnostic, ...]:
    """Notes on the script and the point, and the reasons why a value or derivative is not finite."""
    lowered = question.lowered
    result = (*lowered.notes, *notes)
    if all(map(is_finite, results)):
        return result  # needs no explanation, nor its import
    from gradcli.calculator.notes.undefined_values import explain

    problems = explain(question.tape, values, results, dtype=dtype, forward=set(lowered.program.nodes()))
    return (*result, *(problem.with_source(lowered.source) for problem in problems))

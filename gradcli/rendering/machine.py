"""Results as JSON, for programs. It carries `schema_version` and changes only by addition.

NaN and infinities are the strings "nan", "inf", "-inf"; arrays are nested lists; a complex number is [re,
im]. The JSON schemas are in `schema/*.json`.
"""

from __future__ import annotations

from json import dumps

from gradcli.rendering.value_text import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Payload = dict[str, Any]

    from gradcli.base.diagnostics import Diagnostic
    from gradcli.base.results.calculations import BackwardStep, Derivation, DerivationStep, Trace
    from gradcli.base.results.plan_reports import PlanReport

SCHEMA_VERSION = 1


def text(payload: Payload) -> str:
    """A payload on one line, in ASCII, without NaN, which JSON does not have; `##` begins a command in build logs."""
    return dumps(payload, allow_nan=False).replace("##", "#\\u0023")


def opening(command: str | None) -> Payload:
    """The first fields of every payload."""
    return {"schema_version": SCHEMA_VERSION, "command": command}


def calculation(command: str, result: Any) -> Payload:
    """Evaluation, Gradient, Hessian or Jacobian: the fields in the order of the result."""
    return {**opening(command), **result_fields(result)}


def result_fields(result: Any) -> Payload:
    """The fields of a calculation without the opening; `batch` puts an id in front of them."""
    fields: Payload = {
        "expression": result.expression,
        "at": jsonable(result.at),
        "value": jsonable(result.value),
    }
    for name in ("gradient", "derivatives", "hessian", "jacobian", "exact"):
        if getattr(result, name, None) is not None:
            fields[name] = jsonable(getattr(result, name))
    return {**fields, **diagnostics(result.diagnostics)}


def derivation(command: str, result: Derivation) -> Payload:
    """Formulas by leaf, with their assumptions and how far they were checked."""
    names = (
        "expression", "formula", "text", "verdict", "assumes", "others", "checked", "every", "only", "missing",
        "assumptions", "rows",
    )  # fmt: skip
    fields: Payload = {name: getattr(result, name) for name in names}
    if result.parts is not None:
        fields |= {"short": result.short, "parts": result.parts}
    if result.emitted is not None:
        fields["emitted"] = result.emitted
    if result.steps is not None:
        fields["steps"] = {leaf: [line(step) for step in steps] for leaf, steps in result.steps.items()}
    return {**opening(command), **fields, **diagnostics(result.diagnostics)}


def line(step: DerivationStep) -> Payload:
    """One line of a derivation."""
    return {name: getattr(step, name) for name in step._names}


def trace(command: str, result: Trace) -> Payload:
    """Both passes step by step, then the gradient, and `naive` where it was requested."""
    payload = opening(command)
    payload |= {"expression": result.expression, "at": jsonable(result.at), "value": jsonable(result.value)}
    payload["forward"] = [
        {
            "index": step.index,
            "primitive": step.primitive,
            "inputs": list(step.inputs),
            "type": step.type,
            "value": jsonable(step.value),
            "text": step.text,
            "span": list(step.span) if step.span else None,
            "params": jsonable(step.params),
            "inserted": step.inserted,
            **({} if step.iteration is None else {"iteration": step.iteration}),
        }
        for step in result.forward
    ]
    payload["backward"] = [backward_step(step) for step in result.backward]
    payload["gradient"] = jsonable(result.gradient)
    if result.naive is not None:
        payload["naive"] = {
            "steps": [backward_step(step) for step in result.naive.steps],
            "parts_at": result.naive.parts_at,
            "gradient": jsonable(result.naive.gradient),
        }
    return {**payload, **diagnostics(result.diagnostics)}


def plan(command: str, result: PlanReport) -> Payload:
    """How a question is computed: the order of work, bytes, passes."""
    entry = {
        "runs": result.runs,
        "reason": result.reason,
        "once": result.once,
        "threads": result.threads,
        "nodes": result.nodes,
        "steps": result.steps,
        "order": [plan_row(row) for row in result.order],
        "memory": {**fields(result.memory), "peak": result.memory.peak()},
        "passes": [fields(planner_pass) for planner_pass in result.passes],
    }
    opened = {**opening(command), "expression": result.expression, "at": jsonable(result.at), "plan": entry}
    return {**opened, **diagnostics(result.diagnostics)}


def plan_row(row: Any) -> Payload:
    """A step, or a loop with the steps in it."""
    entry = {name: getattr(row, name) for name in type(row).__match_args__}
    if "steps" in entry:
        return {**entry, "steps": [plan_row(step) for step in entry["steps"]]}
    return {**entry, "reads": list(row.reads), "span": list(row.span) if row.span else None}


def fields(record: Any) -> Payload:
    """The fields of a record by name, numbers as JSON has them."""
    return {name: jsonable(getattr(record, name)) for name in type(record).__match_args__}


def plan_lines(command: str, result: PlanReport) -> Iterator[Payload]:
    """JSON Lines of a plan: a line per step or loop, then the rest."""
    whole = plan(command, result)
    for row in whole["plan"].pop("order"):
        yield {**opening(command), "order": row}
    yield whole


def backward_step(step: BackwardStep) -> Payload:
    return {
        "index": step.index,
        "primitive": step.primitive,
        "cotangent": jsonable(step.cotangent),
        "contributions": [
            {
                "to": sent.to,
                "partial": jsonable(sent.partial),
                "value": jsonable(sent.value),
                "accumulated": jsonable(sent.accumulated),
                **({"formula": sent.formula} if sent.formula else {}),
            }
            for sent in step.contributions
        ],
    }


def trace_lines(command: str, result: Trace) -> Iterator[Payload]:
    """JSON Lines of a trace: a line per step, then the gradient."""
    whole = trace(command, result)
    for name in ("forward", "backward"):
        for step in whole[name]:
            yield {**opening(command), "pass": name, **step}
    yield {key: value for key, value in whole.items() if key not in ("forward", "backward")}


def check_fields(check: Any, block: int = 0) -> Payload:
    """One check; `block`, `expected` and `diagnostics` appear where there are any."""
    fields: Payload = {
        "id": check.id,
        "file": check.file,
        "line": check.line,
        "kind": check.kind,
        "leaf": check.leaf,
        "verdict": check.verdict,
        "passed": check.passed,
        "message": check.message,
        "evidence": jsonable(check.evidence),
    }
    if block:
        fields["block"] = block
    if check.expected:
        fields["expected"] = check.expected
    return {**fields, **diagnostics(check.diagnostics)}


def answer(identity: object, outcome: Any) -> str:
    """One line of `batch`: the id of the request, then a result, a report, a diagnostic, or plain fields."""
    opening: Payload = {"id": jsonable(identity), "schema_version": SCHEMA_VERSION}
    if isinstance(outcome, dict):
        return text({**opening, **jsonable(outcome)})
    if hasattr(outcome, "code"):
        return text({**opening, "error": problem(outcome)})
    if hasattr(outcome, "checks"):
        checks = [check_fields(check) for check in outcome.checks]
        return text({**opening, "checks": checks, "summary": outcome.summary, **diagnostics(outcome.diagnostics)})
    return text({**opening, **result_fields(outcome)})


def diagnostics(notes: Sequence[Diagnostic]) -> Payload:
    """The `diagnostics` field, left out where there are none."""
    return {"diagnostics": [note.as_json() for note in notes]} if notes else {}


def refusal(command: str | None, errors: Sequence[Diagnostic]) -> Payload:
    """The payload when nothing could be evaluated: the first error, and if there are several, all of them."""
    payload: Payload = {**opening(command), "error": problem(errors[0])}
    if len(errors) > 1:
        payload["errors"] = [problem(error) for error in errors]
    return payload


def problem(diagnostic: Diagnostic) -> Payload:
    """An error with its help."""
    fields: Payload = dict(diagnostic.as_json())
    if diagnostic.help:
        fields["help"] = diagnostic.help
    if diagnostic.source is not None:
        fields["file"] = diagnostic.source.name
    return fields

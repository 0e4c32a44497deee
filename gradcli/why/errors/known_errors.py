"""Errors that have one known cause, with what to do about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradcli.recording.runs.source_tree import called, dotted, targets
from gradcli.why import edits
from gradcli.why.fixes import ErrorMeaning
from gradcli.why.gradients.hooks import cloned
from gradcli.why.gradients.missing import reason as why_none
from gradcli.why.jax_programs import KNOWN as KNOWN_OF_JAX

if TYPE_CHECKING:
    from gradcli.base.results.findings import Finding
    from gradcli.why.story import End, Story


def known_answer(story: Story, problem: BaseException) -> Finding | None:
    """The finding for an error that has one known cause."""
    text = str(problem)
    for kinds, pattern, answer in KNOWN_OF_JAX if story.watch.tensors.dialect == "jax" else KNOWN:
        match = re.search(pattern, text, re.IGNORECASE | re.DOTALL) if isinstance(problem, kinds) else None
        if match is None:
            continue
        if callable(answer):
            finding = answer(story, problem, match)
            if finding is not None:
                return finding
            continue
        message = f"the file stopped at {story.at(story.watch.last)}: {answer.why}"
        return story.find(answer.reason, None, story.watch.last, message, fix=answer.fix)
    return None


def _number(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """backward() of a plain number: where the tensor became one."""
    last = story.watch.last
    statement = story.statement(last)
    if statement is None or last is None:
        return None
    tree = story.tree(last.file)
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == match[2]:
            for origin in [statement, *reversed(tree.assignments(dotted(node.value), tree.scope(statement)))]:
                end = story.number_at(last._replace(number=origin.lineno, span=None))
                if end is None:
                    end = _called_number(story, tree, origin)
                if end is not None and end.reason == "as-number":
                    fix, patches = edits.of_end(story, end)
                    message = f"the file stopped at {story.at(last)}: `{tree.source(node.value)}` is a plain "
                    message += f"{match[1]}; {end.what} at {story.at(end.line)}"
                    return story.find(
                        "as-number",
                        None,
                        end.line,
                        message,
                        fix=fix or "leave item() out: compute with the tensors, and show numbers only",
                        patches=patches,
                    )
    return None


def _called_number(story: Story, tree: object, origin: ast.stmt) -> End | None:
    """Where a function that a statement calls turned a tensor into a number that it returns."""
    names = {called(node) for node in ast.walk(origin) if isinstance(node, ast.Call)} | {
        dotted(node) for node in ast.walk(origin)
    }
    for entry in reversed(story.entries.values()):
        if entry.role != "cut" or entry.line is None:
            continue
        end, statement = story.end_at(entry), story.statement(entry.line)
        if end is None or statement is None or end.reason != "as-number":
            continue
        own = story.tree(entry.line.file)
        if getattr(own.scope(statement), "name", "") in names or targets(statement) & names:
            return end
    return None


def _none_grad(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """Something was done with a `.grad` that is None."""
    last = story.watch.last
    looks = [event for event in story.watch.events if event.kind == "none"]
    if not looks or last is None or looks[-1].line is None or looks[-1].line.number != last.number:
        return None
    mark = looks[-1].mark
    if mark not in story.watch.subjects:
        return None
    finding, where = why_none(story, mark), f" (the file stopped at {story.place(last)})"
    return None if finding is None else finding._replace(message=finding.message + where)


def _leaf_in_place(story: Story, problem: BaseException, match: re.Match[str]) -> Finding:
    """A leaf that requires grad is written to."""
    last = story.watch.last
    message = f"{story.at(last)} writes into a leaf that requires grad, which only code under torch.no_grad() may do"
    statement = story.statement(last)
    if statement is None or last is None:
        return story.find("leaf-in-place", None, last, message)
    tree = story.tree(last.file)
    text = " ".join(tree.source(statement).split())
    fix = f"write to it under torch.no_grad(): `with torch.no_grad(): {text}`; or before requires_grad_(), or to "
    fix += "a clone() of it"
    inner = tree.source(statement).replace("\n", "\n    ")
    changes = [tree.replaced(statement, f"with torch.no_grad():\n{' ' * (statement.col_offset + 4)}{inner}")]
    if isinstance(statement, ast.AugAssign) and f"{dotted(statement.target)}.grad" in map(dotted, ast.walk(statement)):
        name = tree.source(statement.target)
        zeroes = any(event.kind in ("dropped", "zeroed") for event in story.watch.events)
        if not zeroes and "grad.zero_" not in tree.text:
            fix = f"update it under torch.no_grad(): `with torch.no_grad(): {text}`, then set `{name}.grad = None`"
            changes.append(tree.inserted(statement, f"{name}.grad = None", after=True))
    return story.find("leaf-in-place", None, last, message, fix=fix, patches=(tree.patch(*changes),))


def _unscaled_step(story: Story, problem: BaseException, match: re.Match[str]) -> Finding:
    """update() of a GradScaler that made no step: the optimizer did, with the scaled gradients."""
    last, node = story.watch.last, story.node(story.watch.last)
    scaler = dotted(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    steps = [update.line for optimizer, update in story.updates() if optimizer.name]
    line, call = (steps[-1] if steps else last), None
    if steps and scaler:
        call = edits.found(story, line, "step")
    if call is None or line is None or not isinstance(call.func, ast.Attribute):
        message = f"the file stopped at {story.at(last)}: the scaler has made no step since its last update()"
        return story.find("stopped", None, last, message, fix="call its step(optimizer) before update()")
    text = f"{scaler}.step({story.tree(line.file).source(call.func.value)})"
    message = f"{story.at(line)} moves by gradients that are still scaled, and {story.at(last)} stopped: the scaler "
    message += "has made no step"
    patch = edits.swap(story, line, call, text)
    return story.find("stopped", None, line, message, fix=f"let the scaler step: `{text}`", patches=(patch,))


def _no_parameters(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """An optimizer was given nothing: an iterator was used up before."""
    last = story.watch.last
    statement = story.statement(last)
    if statement is None or last is None:
        return None
    tree = story.tree(last.file)
    for node in ast.walk(statement):
        name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) else ""
        for assignment in reversed(tree.assignments(name, tree.scope(statement))) if name else ():
            if assignment.lineno >= statement.lineno or not isinstance(assignment, ast.Assign):
                continue
            if not is_iterator(assignment.value):
                continue
            text = tree.source(assignment.value)
            between = [
                s
                for s in tree._statements
                if assignment.lineno < s.lineno < statement.lineno and name in {dotted(n) for n in ast.walk(s)}
            ]
            where = f", which line {between[0].lineno} used up" if between else ""
            message = (
                f"the optimizer at {story.place(last)} got no parameters: `{name}` of line {assignment.lineno} is a "
                f"generator{where}"
            )
            fix = f"make a list of it: `{name} = list({text})`"
            line = last._replace(number=assignment.lineno, text="", span=None)
            patch = tree.patch(tree.replaced(assignment.value, f"list({text})"))
            return story.find("iterator-used-up", None, line, message, fix=fix, patches=(patch,))
    return None


def is_iterator(node: ast.expr) -> bool:
    """Whether an expression gives what can be read only once."""
    once = ("parameters", "named_parameters", "filter", "map", "chain", "zip", "iter", "children", "modules")
    return isinstance(node, ast.GeneratorExp) or (isinstance(node, ast.Call) and called(node) in once)


def _not_leaf(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """An optimizer was given a result of an operation."""
    last = story.watch.last
    statement = story.statement(last)
    if statement is None or last is None:
        return None
    names = {dotted(node) for node in ast.walk(statement) if isinstance(node, (ast.Name, ast.Attribute))}
    for mark, subject in reversed(story.watch.subjects.items()):
        if not subject.leaf and subject.requires and subject.name.partition("[")[0] in names:
            entry = story.entries[mark]
            fix, patch = edits.leaf_last(story, entry, subject.name)
            message = f"the optimizer at {story.place(last)} got {subject.name}, which is not a leaf: "
            message += f"{story.doing(entry)} made it"
            return story.find("leaf-lost", subject.name, entry.line, message, fix=fix, patches=(patch,))
    return None


def _unused_target(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """autograd.grad() found no way to a tensor."""
    last = story.watch.last
    sweep = next((sweep for sweep in reversed(story.watch.sweeps) if sweep.targets), None)
    if sweep is None:
        return None
    lost = [mark for mark in sweep.targets or () if mark not in story.leading()] or list(sweep.targets or ())
    name = story.called(lost[0])
    ends = story.ends(lost[0])
    if ends:
        fix, patches = edits.of_end(story, ends[0])
        message = f"no gradient for {name} at {story.at(last)}: {ends[0].what} at {story.at(ends[0].line)}"
        return story.find(ends[0].reason, name, ends[0].line, message, fix=fix, patches=patches)
    message = f"no gradient for {name} at {story.at(last)}: what is differentiated there was not computed from it"
    fix = "compute it from this tensor, or pass allow_unused=True, which gives None for it"
    patch = edits.keyword_patch(story, last, "grad", "allow_unused", "True")
    return story.find("no-path", name, last, message, fix=fix, patches=(patch,))


def _inference(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """A tensor made in inference mode takes part in a loss."""
    candidates = [entry for entry in story.entries.values() if entry.mode == "inference" and entry.line is not None]
    message = f"the file stopped at {story.at(story.watch.last)}: a tensor made in inference_mode has to be saved for "
    message += "backward"
    if not candidates:
        return story.find("inference", None, story.watch.last, message)
    fix, patches = edits.without_mode(story, candidates[-1])
    message += f"; it was made at {story.at(candidates[-1].line)}"
    return story.find("inference", None, candidates[-1].line, message, fix=fix, patches=patches)


def _expanded(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """An expanded tensor is written to, as the gradient that sum() sends back."""
    last = story.watch.last
    statement = story.statement(last)
    if statement is None or last is None:
        return None
    tree = story.tree(last.file)
    what = f"{story.at(last)} writes into a tensor of which several entries are one number in memory"
    if getattr(tree.scope(statement), "name", "") in ("backward", "vjp"):
        message = f"a backward writes into its incoming gradient: {what}, as after sum()"
        return story.find("overwritten", None, last, message, patches=(cloned(story, last),))
    fix = "clone() the tensor before it is written to"
    return story.find("stopped", None, last, f"the file stopped: {what}", fix=fix, patches=(cloned(story, last),))


def _not_scalar(story: Story, problem: BaseException, match: re.Match[str]) -> Finding | None:
    """backward() of a tensor with several entries."""
    last = story.watch.last
    fix = "reduce it to one number with .mean() or .sum(), or pass gradient= of its shape"
    patch = edits.on_method(story, last, "backward", ".mean()")
    message = f"cannot call backward at {story.at(last)}: it starts from one number, and this is a tensor with "
    message += "several entries"
    return story.find("stopped", None, last, message, fix=fix, patches=(patch,))


def _numpy(story: Story, problem: BaseException, match: re.Match[str]) -> Finding:
    """numpy() of a tensor that requires grad."""
    last = story.watch.last
    patch = edits.on_method(story, last, "numpy", ".detach()")
    message = f"the file stopped at {story.at(last)}: a tensor that requires grad does not become an array of NumPy"
    fix = "to show or store it, call .detach().numpy(); where a gradient is wanted, compute with torch's functions"
    return story.find("stopped", None, last, message, fix=fix, patches=(patch,))


KNOWN: tuple[tuple[tuple[type[BaseException], ...], str, ErrorMeaning | Callable[..., Finding | None]], ...] = (
    ((AssertionError,), r"No inf checks were recorded prior to update", _unscaled_step),
    ((AttributeError,), r"'(\w+)' object has no attribute '(backward|grad_fn|requires_grad_|detach)'", _number),
    ((AttributeError, TypeError, RuntimeError), r"NoneType|None", _none_grad),
    ((RuntimeError,), r"leaf variable.*in-place operation", _leaf_in_place),
    ((ValueError,), r"empty parameter list", _no_parameters),
    ((ValueError,), r"can't optimize a non-leaf", _not_leaf),
    ((RuntimeError,), r"appears to not have been used in the graph|not used in the graph", _unused_target),
    ((RuntimeError,), r"implicitly (created )?only for scalar outputs", _not_scalar),
    ((RuntimeError,), r"can't call numpy\(\) on|numpy\(\).*requires grad", _numpy),
    (
        (RuntimeError,),
        r"only tensors of floating point and complex dtype can require gradients",
        ErrorMeaning("integer-dtype", "whole numbers cannot require grad"),
    ),
    (
        (RuntimeError,),
        r"inference tensors? (cannot be saved|.*outside inference)|cannot be changed.*outside",
        _inference,
    ),
    ((RuntimeError,), r"more than one element of the written-to tensor", _expanded),
    (
        (RuntimeError,),
        r"graph leaves\) support the deepcopy|deepcopy protocol",
        ErrorMeaning(
            "stopped",
            "only leaves can be copied with deepcopy",
            "copy x.detach().clone(), or the module that holds the parameters",
        ),
    ),
    (
        (RuntimeError,),
        r"you can only change requires_grad flags of leaf|requires_grad can be changed only on leaf",
        ErrorMeaning(
            "stopped",
            "requires_grad can be set on leaves only, and this is a result",
            "use its .detach(), which does not require grad",
        ),
    ),
    (
        (RuntimeError,),
        r"returned an incorrect number of gradients \(expected (\d+), got (\d+)\)|one gradient for each",
        ErrorMeaning(
            "stopped",
            "its backward returns another number of gradients than forward has arguments",
            "return one gradient for each argument of forward, None for those that need none",
        ),
    ),
    (
        (RuntimeError,),
        r"returned an invalid gradient.*got .* but expected shape",
        ErrorMeaning(
            "stopped",
            "its backward returns a gradient of another shape than the argument has",
            "return a gradient of the argument's shape: sum it over broadcast axes, or reshape it",
        ),
    ),
    (
        (RuntimeError,),
        r"all elements of input should be between 0 and 1",
        ErrorMeaning(
            "stopped",
            "binary_cross_entropy takes probabilities, and got numbers outside of 0 to 1",
            "use binary_cross_entropy_with_logits (BCEWithLogitsLoss) on the raw outputs, or apply sigmoid first",
        ),
    ),
    (
        (RuntimeError,),
        r"retain_grad.*requires_grad=False|can't retain_grad",
        ErrorMeaning("never-required", "retain_grad() needs a tensor that requires grad, and this one does not"),
    ),
    (
        (RuntimeError,),
        r"cannot register a hook on a tensor that does(n't| not) require grad",
        ErrorMeaning("never-required", "a hook needs a tensor that requires grad, and this one does not"),
    ),
    (
        (TypeError,),
        r"cannot assign .* as parameter",
        ErrorMeaning(
            "replaced",
            "a parameter is not replaced by a tensor",
            "change it in place under torch.no_grad(), or wrap the new values in nn.Parameter()",
        ),
    ),
    (
        (RuntimeError,),
        r"Found dtype (\w+) but expected (\w+)|expected (scalar type|m1 and m2)|must have the same dtype",
        ErrorMeaning("stopped", "tensors of two formats meet", "convert one of them: x.float(), or model.double()"),
    ),
)

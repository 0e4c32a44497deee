"""A backward that needs what was changed in place since: by a line of the file or by an optimizer's step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradcli.base.results.findings import Saved
from gradcli.recording.runs.source_tree import ATOMS, called, dotted
from gradcli.why import edits
from gradcli.why.gradients.hooks import target_of

if TYPE_CHECKING:
    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.why.story import Story


def cloned_read(story: Story, line: SourceLine | None, writer: SourceLine | None) -> Patch | None:
    """A patch that clones what was saved where it is read, if that is a part of what is written to later."""
    node, statement = story.node(line), story.statement(writer)
    target = None if statement is None else target_of(statement)
    if node is None or line is None or not isinstance(target, ast.Subscript):
        return None
    tree = story.tree(line.file)
    parts = [n for n in ast.walk(node) if isinstance(n, ast.Subscript) and n is not target]
    reads = [n for n in parts if dotted(n) == dotted(target)]
    return tree.patch(*[tree.replaced(n, f"{tree.source(n)}.clone()") for n in reads]) if reads else None


def changed(story: Story) -> Finding:
    """What a node had saved was changed in place."""
    assert story.watch.stop is not None
    _, name, seq, line, writer = story.watch.stop
    evidence = Saved(name, None if line is None else line.number)
    node = story.result(seq)
    lost = f"what {story.doing(node, name, line)} had saved"
    created = -1 if node is None else node.mark
    sweeps, last = story.watch.sweeps, story.watch.last
    step = next((u for _, u in story.updates() if u.line == writer and u.time > created), None)
    if step is not None:
        again = any(sweep.line == last and sweep.time > created for sweep in sweeps[:-1])
        moved = [story.called(mark) for mark in step.moved if story.is_named(mark)]
        names = f" ({', '.join(moved[:3])}{', ...' if len(moved) > 3 else ''})" if moved else ""
        if again:
            message = f"backward stopped: the step at {story.at(writer)} changed in place {lost} in an earlier step, "
            message += "whose graph is walked again"
            return story.find("changed-carried", None, writer, message, evidence)
        message = (
            f"backward stopped: {story.at(writer)} changed the weights{names} in place, {lost}, before {story.at(last)}"
        )
        fix = f"compute anew after the step what the loss of {story.place(last)} needs, or call step() after both "
        fix += "backwards"
        return story.find(
            "changed-by-step", None, writer, message, evidence, fix=fix, patches=(step_later(story, writer, last),)
        )
    message = f"backward stopped: {story.at(writer)} changed in place {lost}"
    copied = cloned_read(story, line, writer)
    if copied is not None:
        text = (
            f"save a copy: `{copied.edits[0].text}` at {story.place(line)}, or collect the rows in a list and "
            "stack them"
        )
        return story.find("changed-in-place", None, writer, message, evidence, fix=text, patches=(copied,))
    cure = out_of_place(story, writer)
    return story.find("changed-in-place", None, writer, message, evidence, fix=cure.text, patches=cure.patches)


def step_later(story: Story, step: SourceLine | None, backward: SourceLine | None) -> Patch | None:
    """A patch that moves a step behind a backward."""
    first, second = story.statement(step), story.statement(backward)
    if first is None or second is None or step is None or backward is None or step.file != backward.file:
        return None
    tree = story.tree(step.file)
    if second not in tree.block(first):
        return None
    return tree.moved(first, second)


def out_of_place(story: Story, line: SourceLine | None) -> edits.Fix:
    """The change of a line written out of place."""
    statement = story.statement(line)
    if statement is None or line is None:
        return edits.Fix()
    tree = story.tree(line.file)
    target_node = target_of(statement)
    if isinstance(target_node, ast.Subscript):
        whole = tree.source(target_node.value)
        text = f"{whole} = {whole}.clone()"
        return edits.Fix(f"change a copy: `{text}` first", (tree.patch(tree.inserted(statement, text)),))
    operators = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
    if isinstance(statement, ast.AugAssign) and type(statement.op) in operators:
        target = tree.source(statement.target)
        value = tree.source(statement.value)
        value = value if isinstance(statement.value, ATOMS) else f"({value})"
        text = f"{target} = {target} {operators[type(statement.op)]} {value}"
        return edits.Fix(f"write the change out of place: `{text}`", (tree.patch(tree.replaced(statement, text)),))
    node = story.node(line)
    call = node if isinstance(node, ast.Call) else None
    if call is None and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
    if call is not None:
        flag = next((k for k in call.keywords if k.arg == "inplace"), None)
        if flag is not None:
            return edits.Fix("leave inplace=True out", (tree.patch(tree.replaced(flag.value, "False")),))
        name = called(call)
        if name.endswith("_") and isinstance(call.func, ast.Attribute):
            whole = tree.source(call.func.value)
            arguments = tree.source(call)[len(tree.source(call.func)) :]
            text = f"{whole}.{name.rstrip('_')}{arguments}"
            place: ast.stmt | ast.expr = call
            if isinstance(statement, ast.Expr) and statement.value is call:
                place, text = statement, f"{whole} = {text}"
            return edits.Fix(f"write the change out of place: `{text}`", (tree.patch(tree.replaced(place, text)),))
        for layer in tree.calls("ReLU", "LeakyReLU", "Dropout", "ELU", "SiLU", "ReLU6", "Hardtanh", "Threshold"):
            flag = next((k for k in layer.keywords if k.arg == "inplace"), None)
            if flag is not None:
                patch = tree.patch(tree.replaced(flag.value, "False"))
                return edits.Fix(f"leave inplace=True out at line {layer.lineno}", (patch,))
    return edits.Fix()

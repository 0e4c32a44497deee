"""Hooks that never ran or that spoil a gradient, and backwards of Functions that write into what they are given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradcli.recording.runs.source_lines import whole_line
from gradcli.recording.runs.source_tree import dotted, returned, target_of
from gradcli.why.story import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, Hook, Step
    from gradcli.why.story import Story


def of_hooks(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """What hooks and hand-written backwards did to gradients."""
    yield from overwritten(story)
    yield from wrong_rules(story)
    yield from spoilt(story)
    yield from idle(story)


# --- a backward that writes into its gradient -----------------------------------------------------------------


def overwritten(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Functions whose backward has written into the gradient that came in."""
    seen: set[SourceLine | None] = set()
    for sweep in story.watch.sweeps:
        for step in sweep.steps:
            if step.overwritten is None or any(hook.seq == step.seq for hook in story.watch.hooks):
                continue
            writes = [event for event in story.timeline(step.overwritten) if event.kind == "changed"]
            line = writes[-1].line if writes else step.line
            if line not in seen:
                seen.add(line)
                name = step.name.removesuffix("Backward")
                message = f"the backward of {name} writes into its incoming gradient at {story.at(line)}; that may be "
                message += "one number for many entries, as after sum(), or belong to other operations too"
                yield None, story.find("overwritten", None, line, message, patches=(cloned(story, line),))


def cloned(story: Story, line: SourceLine | None) -> Patch | None:
    """A patch that clones what a line writes to."""
    statement, tree = story.statement(line), story.tree(line)
    if statement is None:
        return None
    node: ast.expr | None = target_of(statement)
    if isinstance(statement, (ast.Expr, ast.Return)) and isinstance(statement.value, ast.Call):
        node = statement.value.func
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    text = f"{node.id} = {node.id}.clone()" if isinstance(node, ast.Name) else ""
    return tree.patch(tree.inserted(statement, text)) if text else None


# --- derivatives that are not those of their forward ------------------------------------------------------------


def wrong_rules(story: Story) -> Iterator[tuple[None, Finding]]:
    """Rules of the file that are not the derivative of their own forward, each once."""
    for wrong in {wrong.name: wrong for wrong in reversed(story.watch.wrong_rules)}.values():
        line, rule = rule_line(story, wrong.name)
        factor = f": it is {wrong.factor:.3g} times as large" if wrong.factor is not None else ""
        place = line or wrong.line
        message = f"the derivative that {rule} at {story.place(place)} gives for argument {wrong.argument} of "
        message += f"`{wrong.name}` is not that of its own forward{factor}"
        yield None, story.find("wrong-rule", wrong.name, place, message)


def rule_line(story: Story, name: str) -> tuple[SourceLine | None, str]:
    """What the backward of a Function or of a custom_vjp returns last, and its name."""
    for tree in map(story.tree, sorted(story.files())):
        functions = [n for n in ast.walk(tree.root) if isinstance(n, ast.FunctionDef)]
        backwards = [n for n in functions if n.name in ("backward", "vjp")]
        backwards = [n for n in backwards if getattr(tree.parents[n], "name", "") == name]
        for call in tree.calls("defvjp"):
            if isinstance(call.func, ast.Attribute) and dotted(call.func.value).rpartition(".")[2] == name:
                title = dotted(call.args[1]) if len(call.args) > 1 else ""
                backwards = [n for n in functions if n.name == title]
                if not backwards:
                    return whole_line(tree.file, call.lineno), "the rule"
        for function in backwards[:1]:
            return whole_line(tree.file, (returned(function) or function).lineno), f"`{function.name}`"
    return None, "its rule"


# --- hooks that make zeros or NaN -----------------------------------------------------------------------------


def spoilt(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Gradients that arrived as zeros or as NaN where something else was sent."""
    for mark, subject in story.latest.items():
        if subject.grad not in ("zero", "nan", "inf") or mark not in story.arrivals:
            continue
        sweep, what = story.arrivals[mark][-1][0], "zero" if subject.grad == "zero" else "not finite"
        for node, step, line in changed_between(story, sweep, mark, subject.grad == "zero"):
            at = (None, mark) if step is None else (step.seq, None)
            hook = next((h for h in story.watch.hooks if (h.seq, h.mark if step is None else None) == at), None)
            where = "" if hook is None else f" registered at {story.at(hook.line)}"
            effect = "set it to zero" if what == "zero" else "made it non-finite"
            message = f"$it.grad is {what}: a hook{where} {effect}, before {node} at {story.at(line)}"
            yield mark, story.find("hook", story.called(mark), hook.line if hook else line, message)


def changed_between(
    story: Story, sweep: BackwardRecord, mark: int, zero: bool
) -> Iterator[tuple[str, Step | None, SourceLine | None]]:
    """The nodes above a leaf at which only zeros (or NaN) arrived although something else was sent to them."""
    steps = {step.seq: step for step in sweep.steps}

    def onward(target: tuple[str, int]) -> list[tuple[str, int]]:
        return [("node", step.seq) for step, _ in story.senders(sweep, target)]

    def sound(norm: float) -> bool:
        return norm > 0 if zero else norm - norm == 0

    for target in walk([("leaf", mark)], onward):
        senders = story.senders(sweep, target)
        if target[0] == "node":
            step = steps[target[1]]
            lost = step.norm == 0 if zero else not step.finite
            if lost and senders and step.overwritten is None:  # several contributions may cancel
                if (not zero or len(senders) == 1) and all(sound(norm) for _, norm in senders):
                    yield step.name, step, step.line
        elif len(senders) == 1 and sound(senders[0][1]):
            reached = [grad for grad in sweep.reached if grad.leaf == mark]
            if reached and (reached[-1].norm == 0 if zero else not reached[-1].finite):
                yield "the leaf", None, senders[0][0].line


# --- hooks that never ran -------------------------------------------------------------------------------------


def idle(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Hooks that were registered after the backward for which they would have run."""
    sweeps = story.watch.sweeps
    for hook in story.watch.hooks:
        if hook.layer is not None:
            late = layer_idle(story, hook)
        else:
            walked = map(sweeps.__getitem__, story.walked.get(hook.seq, ()))
            through = [*walked] if hook.seq is not None else [sweep for sweep, _ in story.arrivals.get(hook.mark, ())]
            late = through[-1].line if through and through[-1].time < hook.time else None
        if late is not None:
            what = story.called(hook.mark) if hook.layer is None else str(hook.layer)
            message = f"the hook on {what} of {story.at(hook.line)} never ran: it was registered after {story.at(late)}"
            fix = f"register the hook before {story.place(late)}"
            patch = earlier(story, hook.line, late)
            yield None, story.find("hook-never-ran", None, hook.line, message, fix=fix, patches=(patch,))


def layer_idle(story: Story, hook: Hook) -> SourceLine | None:
    """The call or the backward after which a hook on a layer was registered, if it never ran."""
    if hook.calls:
        return None
    sweeps, layer = story.watch.sweeps, hook.layer
    inner = f"{layer.name}." if layer is not None and layer.name else None
    entries = [e for e in story.entries.values() if e.layer is not None]
    ran = [e for e in entries if e.layer is layer or (e.layer and inner and e.layer.name.startswith(inner))]
    if not ran or ran[-1].mark > hook.time:
        return None
    if hook.kind == "register_forward_hook":
        return ran[-1].line
    if any(sweep.time > hook.time for sweep in sweeps):
        return ran[-1].line
    return sweeps[-1].line if sweeps else None


def earlier(story: Story, line: SourceLine | None, late: SourceLine | None) -> Patch | None:
    """A patch that registers a hook before a backward, with the statement before it that it may need."""
    statement, other, tree = story.statement(line), story.statement(late), story.tree(line)
    if statement is None or other is None or tree is not story.tree(late):
        return None
    block = tree.block(other)
    if statement not in block or block.index(statement) < block.index(other):
        return None
    between = block[block.index(other) + 1 : block.index(statement) + 1]
    texts = "\n".join(map(tree.source, between))
    return tree.patch(*map(tree.removed, between), tree.inserted(other, texts))

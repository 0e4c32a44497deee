"""Why a file could not go on: a backward that was refused or broke off, or an error with one known cause."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gradcli.recording.runs.source_tree import dotted, targets
from gradcli.why import edits
from gradcli.why.errors.saved_tensors import changed, freed
from gradcli.why.fixes import Answers, ErrorMeaning, advised
from gradcli.why.gradients.hooks import cloned, rule_line
from gradcli.why.gradients.missing import reason as why_none
from gradcli.why.jax_programs import KNOWN as KNOWN_OF_JAX
from gradcli.why.readings import is_float, kind_of
from gradcli.why.training.optimizers import used_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry
    from gradcli.why.story import Story


def known_answer(story: Story, problem: BaseException) -> Finding | None:
    """The finding for an error that has one known cause."""
    text, last = str(problem), story.watch.last
    statement = story.statement(last)
    if last is None or statement is None:
        return None
    stop = edits.StopPlace(last, story.tree(last.file), statement, story.node(last), text)
    for kinds, pattern, answer in KNOWN_OF_JAX if story.watch.tensors.dialect == "jax" else KNOWN:
        match = re.search(pattern, text, re.IGNORECASE | re.DOTALL) if isinstance(problem, kinds) else None
        if match is None:
            continue
        if callable(answer):
            finding: Finding | None = answer(story, stop, match)
            if finding is not None:
                return finding
            continue
        what = answer.why or f"{type(problem).__name__}: " + text.partition("\n")[0]
        message, patch = f"the file stopped at {story.at(last)}: {what}", None
        if answer.after:
            patch = edits.on_method(story, last, answer.method, answer.after)
        return story.find(answer.reason, None, last, message, fix=answer.fix, patches=(patch,))
    return None


def _number(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """backward() of a plain number: where the tensor became one."""
    last, tree, statement = stop.line, stop.tree, stop.statement
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == match[2]:
            for origin in [statement, *reversed(tree.assignments(dotted(node.value), tree.scope(statement)))]:
                end = story.number_at(last._replace(number=origin.lineno, span=None))
                if end is not None and end.reason == "as-number":
                    fix, patches = edits.of_end(story, end)
                    message = f"the file stopped at {story.at(last)}: `{tree.source(node.value)}` is a plain "
                    message += f"{match[1]}; {end.what} at {story.at(end.line)}"
                    return story.find("as-number", None, end.line, message, fix=fix, patches=patches)
    return None


def _none_grad(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """Something was done with a `.grad` that is None."""
    tree, numbers = stop.tree, range(stop.statement.lineno, (stop.statement.end_lineno or stop.statement.lineno) + 1)
    for look in reversed(story.watch.events):
        start = story.statement(look.line) if look.kind == "none" and look.mark in story.watch.subjects else None
        if start is None or look.line is None or look.line.file != tree.file:
            continue
        where = f" (the file stopped at {story.place(stop.line)})"
        if look.line.number in numbers:
            finding = why_none(story, look.mark)
            return None if finding is None else finding._replace(message=finding.message + where)
        later = next((e.line for e in story.timeline(look.mark) if e.kind == "added" and e.time > look.time), None)
        if later is not None and tree.carries(start, set(numbers)):
            message = f"$it.grad is read at {story.at(look.line)}, before the backward of {story.place(later)}: it was "
            message += f"None then, and the name keeps that{where}"
            fix, patch = f"read it after {story.place(later)}", edits.moved(story, look.line, later)
            return story.find("never-ran", story.called(look.mark), look.line, message, fix=fix, patches=(patch,))
    return None


def _leaf_in_place(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding:
    """A leaf that requires grad is written to."""
    last, tree, statement = stop.line, stop.tree, stop.statement
    message = f"{story.at(last)} writes into a leaf that requires grad, which only code under torch.no_grad() may do"
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


def _not_leaf(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """An optimizer was given a result of an operation, in its own statement or by a name."""
    last = stop.line
    names = {dotted(node) for node in ast.walk(stop.statement) if isinstance(node, (ast.Name, ast.Attribute))}
    known, entries = story.watch.subjects, [entry for entry in story.entries.values() if entry.seq is not None]
    there = [e for e in entries if e.line and stop.statement in stop.tree.statements(e.line.number)]
    named = [e for e in entries if e.mark in known and known[e.mark].name.partition("[")[0] in names]
    for entry in [*named[::-1], *there][:1]:
        name, copy = story.called(entry.mark), kind_of(entry.name) == "Clone"
        fix, patches = edits.uncopied(story, entry) if copy else edits.leaf_last(story, entry, name)
        message = f"the optimizer at {story.place(last)} got {name}, which is not a leaf: {story.doing(entry)} made it"
        return story.find("leaf-lost", name, entry.line, message, fix=fix, patches=patches)
    return None


def _unused_target(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """autograd.grad() found no way to a tensor."""
    last = stop.line
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


def _inference(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """A tensor made in inference mode takes part in a loss."""
    inner = [entry for entry in story.entries.values() if entry.mode == "inference" and entry.line is not None]
    message = f"the file stopped at {story.at(stop.line)}: a tensor made in inference_mode has to be saved for backward"
    message += f"; it was made at {story.at(inner[-1].line)}" if inner else ""
    fix, patches = edits.without_mode(story, inner[-1]) if inner else edits.Fix()
    return story.find("inference", None, inner[-1].line if inner else stop.line, message, fix=fix, patches=patches)


def _expanded(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """An expanded tensor is written to, as the gradient that sum() sends back."""
    last, tree, statement = stop.line, stop.tree, stop.statement
    what = f"{story.at(last)} writes into a tensor of which several entries are one number in memory"
    if getattr(tree.scope(statement), "name", "") in ("backward", "vjp"):
        message = f"a backward writes into its incoming gradient: {what}, as after sum()"
        return story.find("overwritten", None, last, message, patches=(cloned(story, last),))
    fix = "clone() the tensor before it is written to"
    return story.find("stopped", None, last, f"the file stopped: {what}", fix=fix, patches=(cloned(story, last),))


def _target(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """A loss got a target of another format or shape than it wants."""
    last, tree, node = stop.line, stop.tree, stop.node
    wanted, change = next(meaning for pattern, *meaning in TARGETS if re.search(pattern, stop.error))
    message = f"the file stopped at {story.at(last)}: the target of this loss has to be {wanted}"
    if not isinstance(node, ast.Call):
        return None
    arguments = [*node.args[1:2], *[keyword.value for keyword in node.keywords if keyword.arg == "target"]]
    if not arguments:
        return None
    target = arguments[0]
    known = next((s for s in story.latest.values() if s.name == tree.source(target)), None)
    if not change:
        shape = () if known is None else known.shape
        change = ("", ".unsqueeze(1)", ".squeeze(1)" if shape[1:] == (1,) else ".argmax(1)")[min(len(shape), 2)]
    text = f"{tree.bracketed(target)}{change}"
    patch = edits.swap(story, last, target, text) if change else None
    fix = f"give it `{text}`" if change else "take .squeeze(1) of a column, or .argmax(1) of one-hot rows"
    return story.find("stopped", None, last, message, fix=fix, patches=(patch,))


def _rule(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding:
    """A backward of the file returns too few gradients, too many, or some of another shape."""
    line, rule = rule_line(story, match[1] or "")
    message = f"the file stopped at {story.at(stop.line)}: {rule if line else 'its backward'} returns "
    if "shape" in match[0]:
        message += "a gradient of another shape than the argument has"
        fix = "return a gradient of the argument's shape: sum it over broadcast axes, or reshape it"
    else:
        message += "another number of gradients than forward has arguments"
        fix = "return one gradient for each argument of forward, None for those that need none"
    message += f" ({story.at(line)})" if line else ""
    return story.find("stopped", None, line or stop.line, message, fix=fix)


TARGETS = (  # what a loss says about its target, what it wants, and what the target needs; empty: by its shape
    (r"dtype (to be Long|torch.int64 or)|type Long but found|nll_loss.* not implemented", "int64 classes", ".long()"),
    (r"multi-target not supported", "one number for each row", ""),
    (r"floating point type for target|cast to the desired output type Long", "of floats", ".float()"),
    (r"Target size \(torch.Size\(\[\d+(, 1)?\]\)\) must be the same .*\[\d+(, 1)?\]", "of the outputs' shape", ""),
)
MEANINGS = (  # errors with one known cause: the pattern, the reason, the cause, and what to do
    (
        r"implicitly (created )?only for scalar outputs",
        "stopped",
        "backward starts from one number, and this is a tensor with several entries",
        "reduce it to one number with .mean() or .sum(), or pass gradient= of its shape",
        "backward",
        ".mean()",
    ),
    (
        r"can't call numpy\(\) on|numpy\(\).*requires grad",
        "stopped",
        "a tensor that requires grad does not become an array of NumPy",
        "to show or store it, call .detach().numpy(); where a gradient is wanted, compute with torch's functions",
        "numpy",
        ".detach()",
    ),
    (r"nested_tensorlist\[0\].empty", "clips-nothing", "there are no gradients to clip yet"),
)
ADVICE = {  # for errors that say the cause themselves: the reason, or what to do
    r"One of the differentiated Tensors does not require grad": "never-required",
    r"can't retain_grad|retain_grad.*requires_grad=False|cannot register a hook": "never-required",
    r"only tensors of floating point and complex dtype can require gradients": "integer-dtype",
    r"cannot assign .* as parameter": "change its values in place under torch.no_grad(); to share a weight, compute "
    "with it in forward: torch.nn.functional.linear(x, other.weight.t())",
    r"Target -?\d+ is out of bounds": "classes are numbered from 0: subtract 1 from labels that begin at 1",
    r"No inf checks were recorded prior to update": "call the scaler's step(optimizer) before its update()",
    r"\(\) has already been called (on|since)": "call the scaler's update() after each step(), unscale_() once before",
    r"method'? object is not (iterable|subscriptable)": "it is a method: call it, as in net.parameters()",
    r"support the deepcopy|deepcopy protocol": "copy x.detach().clone(), or the module that holds the parameters",
    r"change requires_grad flags of leaf|changed only on leaf": "use its .detach(), which does not require grad",
    r"all elements of input should be between 0 and 1|unsafe to autocast": "use binary_cross_entropy_with_logits "
    "(BCEWithLogitsLoss) on the raw outputs, or apply sigmoid first",
    r"Found dtype|expected (scalar type|m1 and m2)|have the same dtype": "convert one: x.float(), or model.double()",
    r"hook '.*' has changed the size": "return a gradient of the shape that the hook was given",
    r"does not support sparse gradients": "use SparseAdam or SGD for that layer, or make it with sparse=False",
    r"expects each tensor to be equal size": "pad them in a collate_fn= of the loader (pad_sequence)",
    r"Tried to step \d+ times": "total_steps= counts all calls of step(): epochs * len(loader) for one a batch",
    r"step\(\) missing .*'metrics'": "give it what it watches: scheduler.step(loss)",
    r"step\(\) missing .*'closure'": "give it a function that zeroes the gradients, calls backward(), returns the loss",
    r"Expected more than 1 value per channel": "leave the last small batch out (drop_last=True), or evaluate the model",
    r"index out of range in self": "an Embedding has num_embeddings rows, from 0: make it larger, or check the indices",
    r"mat1 and mat2 shapes cannot": "the layer's in_features have to be the last number of the first shape",
}
RULES = r"(?:(\w+)Backward\w* )?returned an (incorrect number of gradients|invalid gradient.*expected shape)"
KNOWN: Answers = (
    ((AttributeError,), r"'(\w+)' object has no attribute '(backward|grad_fn|requires_grad_|detach)'", _number),
    ((AttributeError, TypeError, RuntimeError), r"NoneType|None", _none_grad),
    ((RuntimeError,), r"leaf variable.*in-place operation", _leaf_in_place),
    ((ValueError,), r"empty parameter list", lambda story, stop, match: used_up(story, stop.line, "the optimizer")),
    ((ValueError,), r"can't optimize a non-leaf", _not_leaf),
    ((RuntimeError,), r"appears to not have been used in the graph|not used in the graph", _unused_target),
    ((RuntimeError,), r"inference tensors? (cannot be saved|.*outside infer)|cannot be changed.*outside", _inference),
    ((RuntimeError,), r"more than one element of the written-to tensor", _expanded),
    ((Exception,), RULES, _rule),
    ((Exception,), "|".join(pattern for pattern, *_ in TARGETS), _target),
    *[
        ((RuntimeError, TypeError, AssertionError, IndexError), pattern, ErrorMeaning(*meaning))
        for pattern, *meaning in MEANINGS
    ],
    *[((Exception,), pattern, advised(text)) for pattern, text in ADVICE.items()],
)


def stops(story: Story, problem: BaseException | None) -> Iterator[Finding]:
    """Why the file could not go on."""
    if problem is None or isinstance(problem, SystemExit):
        return
    watch = story.watch
    ours = isinstance(problem, RuntimeError) and watch.fault is not None and watch.fault == watch.last
    if ours and watch.refusal is not None:  # not one that the file caught before
        yield refused(story, watch.refusal)
    elif ours and watch.stop is not None:
        yield changed(story) if watch.stop[0] == "changed" else freed(story)
    else:
        what = f"{type(problem).__name__}: " + str(problem).partition("\n")[0]
        message = f"the file stopped at {story.at(watch.last)}: {what}"
        yield known_answer(story, problem) or story.find("stopped", None, watch.last, message)


def refused(story: Story, root: int) -> Finding:
    """Why backward could not start."""
    entry, subject = story.entries[root], story.watch.subjects[root]
    name = "this tensor" if entry.role == "leaf" and not subject.name else story.called(root)
    above = story.leaves_above(root)
    numbers = filter(None, (story.number_at(story.entries[leaf].line, leaf) for leaf in above))
    late = [leaf for leaf in above if any(e.kind == "unfrozen" and e.time > entry.mark for e in story.timeline(leaf))]
    end = story.end_above(root) or (None if late else min(numbers, key=lambda end: not end.entry.wanted, default=None))
    reason, line, lead = "never-required", entry.line, "cannot call backward on $it: "
    transformed = [leaf for leaf in above if any("torch.func" in note for note in story.watch.notes)]
    outside = next((story.entries[leaf].line for leaf in transformed if not story.is_named(leaf)), None)
    fix, patches = edits.Fix()
    if not subject.floating:
        reason, why = "integer-dtype", f"it is {subject.dtype}"
    elif end is not None:
        update = rebinding(story, end.entry)
        if update is not None:
            fix, patches = edits.in_place(story, update)
            manner = "under no_grad " if update.mode != "grad" else ""
            why = f"{story.at(update.line)} gave its name to a new tensor, made {manner}which is no longer the leaf"
            return story.find("replaced", name, update.line, lead + why, fix=fix, patches=patches)
        fix, patches = edits.of_end(story, end)
        reason, line = end.reason, end.line
        why = f"{end.what} at {story.at(line)}"
        if reason == "mode-left":
            why = f"{end.what} when {story.at(end.entry.line)} was computed"
    elif (grad := next((leaf for leaf in above if leaf in story.watch.grads), None)) is not None:
        reason = "no-create-graph"
        why = f"it was computed from {story.called(grad)}, and what backward() left in .grad has no history"
        fix = "pass create_graph=True to that backward(), or take the gradient with torch.autograd.grad(..., "
        fix += "create_graph=True)"
    elif late:
        event = next(e for e in story.timeline(late[0]) if e.kind == "unfrozen" and e.time > entry.mark)
        why = f"{story.called(late[0])} requires grad now, and did not when it was used: that is set at "
        why += f"{story.at(event.line)} only"
        patches = (edits.moved(story, event.line, line, after=False),)
    elif outside is not None:
        why = f"it was computed inside a transform of torch.func at {story.at(outside)}, where nothing is recorded, "
        why += "and what came out requires no grad"
        line, fix = outside, "look for detach(), item(), or no_grad in the function that is transformed"
        if (number := cut_within(story, outside)) is not None:
            fix += f", such as that of line {number}"
    elif above and not any(is_float(story.entries[leaf].dtype) for leaf in above):
        kinds = ", ".join(dict.fromkeys(f"{story.called(leaf)} is {story.entries[leaf].dtype}" for leaf in above))
        reason, why = "integer-dtype", f"{kinds}, and only floats can require grad"
        line = story.entries[above[0]].line
    else:
        frozen = next((event for leaf in above for event in story.timeline(leaf) if event.kind == "frozen"), None)
        if frozen is not None:
            why = f"requires_grad was set to False at {story.at(frozen.line)}, and nothing else requires grad"
            line, fix = frozen.line, "leave what is to be trained with requires_grad=True"
        else:
            places = (f"{story.called(leaf)} of {story.place(story.entries[leaf].line)}" for leaf in above)
            leaves = ", ".join(dict.fromkeys(places))
            before = (e for e in reversed(story.entries.values()) if e.seq is not None and e.mark < entry.mark)
            output = next((e for e in before if e.line and not story.users.get(e.mark)), None)
            if output is not None and not story.held.isdisjoint(story.ancestors_of(output.mark)):
                why = f"{story.called(output.mark)} of {story.at(output.line)} takes no part in {story.at(line)}"
                return story.find("no-path", name, line, f"{lead}{why}, which is computed from {leaves} only")
            why = f"nothing that it was computed from requires grad ({leaves})"
            line = story.entries[above[0]].line if len(above) == 1 else line
            patches = (edits.require(story, story.entries[above[0]]),) if len(above) == 1 else ()
    return story.find(reason, name, line, lead + why, fix=fix, patches=patches)


def cut_within(story: Story, line: SourceLine) -> int | None:
    """The number of the line with detach() or the like in a function that the statement of a line names."""
    tree, statement = story.tree(line), story.statement(line)
    named = {dotted(node) for node in ast.walk(statement)} if statement is not None else set()
    functions = [n for n in ast.walk(tree.root) if isinstance(n, ast.FunctionDef) and n.name in named]
    calls = tree.calls("detach", "item", "tolist", "numpy", "no_grad")
    return next((c.lineno for c in calls if any(tree.within(c.lineno, f) for f in functions)), None)


def rebinding(story: Story, entry: Entry) -> Entry | None:
    """The operation `w - lr * w.grad` under no_grad, if its statement gives the name of the leaf to the result."""
    statement = story.statement(entry.line)
    if entry.role != "operation" or not isinstance(statement, ast.Assign):
        return None
    names = targets(statement)
    read = {dotted(node) for node in ast.walk(statement.value)}
    updated = any(story.arrivals.get(leaf) for leaf in entry.inputs) or {f"{name}.grad" for name in names} & read
    return entry if read & names and updated else None

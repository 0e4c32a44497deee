"""What optimizers hold and do: parameters that they were not given, steps that never come or change nothing."""

from __future__ import annotations

import ast
import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from gradcli.base.results.findings import Unregistered
from gradcli.recording.runs.source_tree import called, dotted
from gradcli.why import edits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, OptimizerRecord, Update
    from gradcli.recording.runs.variable_names import Loose
    from gradcli.why.story import Story


LAYERS = {"list": "ModuleList", "tuple": "ModuleList", "dict": "ModuleDict"}
PARAMETERS = {"list": "ParameterList", "tuple": "ParameterList", "dict": "ParameterDict", "tensor": "Parameter"}
SEVERAL = 2  # backwards that make a loop of training
SMALL_RATE = 1e-7
LEFT, HALVED = 0.02, 0.5  # the share that is left of weights that died; by a decay that is fast
MUCH, FAST = 3.0, 0.1  # what such a decay takes of each weight in all steps together, in one step
DISTANCE = re.compile("Loss|CrossEntropy|KlDiv")


# --- parameters that a module does not register ---------------------------------------------------------------


def unregistered(story: Story, problem: BaseException | None) -> Iterator[tuple[set[int], Finding]]:
    """A finding for each plain container of a module with parameters that an update leaves out, and which they are."""
    nothing = isinstance(problem, ValueError) and "empty parameter list" in str(problem)
    for loose in story.watch.loose.values():
        marks = {mark for mark in loose.tensors if story.entries[mark].requires} - story.held - set(loose.registered)
        if marks and ((nothing and not loose.registered) or left_out(story, loose, marks)):
            yield marks, container_finding(story, loose, len(marks))


def left_out(story: Story, loose: Loose, marks: set[int]) -> bool:
    """Whether gradients came to parameters, and what updates the others of the module leaves them out."""
    if not any(story.arrivals.get(mark) for mark in marks):
        return False  # a target network, a part that is frozen or not used
    if story.held:
        return not story.held.isdisjoint(loose.registered)
    return any(moved(story, mark) for mark in loose.registered) and not any(moved(story, mark) for mark in marks)


def moved(story: Story, mark: int) -> bool:
    """Whether a tensor was changed in place after a gradient came to it."""
    kinds = [event.kind for event in story.timeline(mark)]
    return "added" in kinds and "changed" in kinds[kinds.index("added") :]


def container_finding(story: Story, loose: Loose, count: int) -> Finding:
    """The finding about one container."""
    line = loose.line or story.entries[loose.tensors[0]].line
    use = LAYERS[loose.kind] if loose.layers else PARAMETERS[loose.kind]
    root = loose.name.partition(".")[0]
    several = (loose.layers or count) > 1
    parameters = f"{count} parameter{'s' if count > 1 else ''}"
    place = f"in the {loose.kind} `{loose.attribute}` of {loose.module} {'are' if several else 'is'} not registered"
    if loose.kind == "tensor":
        what, which = f"the tensor `{loose.attribute}` of {loose.module} is no Parameter", "it"
    elif loose.layers:
        what = f"{loose.layers} layer{'s' if several else ''} {place}"
        which = f"{'their' if several else 'its'} {parameters}"
    else:
        what, which = f"{parameters} {place}", "them" if several else "it"
    user = "optimizer" if story.held or not loose.registered else "update"
    message = f"{what}: {root}.parameters(), and so the {user}, leaves {which} out ({story.at(line)})"
    evidence = Unregistered(loose.module, loose.attribute, loose.kind, loose.layers, count, f"torch.nn.{use}")
    fix, patch = registering(story, line, loose.kind, use)
    finding = story.find("unregistered", loose.name, line, message, evidence, fix=fix, patches=(patch,))
    return finding._replace(cure=finding.cure.replace("$use", f"torch.nn.{use}", 1))


def registering(story: Story, line: SourceLine | None, kind: str, use: str) -> tuple[str, Patch | None]:
    """The file's own expression as a registered one."""
    statement = story.statement(line)
    if line is None or not isinstance(statement, ast.Assign):
        return "", None
    tree, value = story.tree(line.file), statement.value
    text = tree.source(value)
    if kind != "tensor":
        literal = isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp))
        patch = tree.patch(tree.replaced(value, f"torch.nn.{use}({text})")) if literal else None
        return "", patch
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        inner = value.func.value
        if isinstance(inner, ast.Call) and called(inner) == "Parameter" and inner.args:
            data = tree.source(inner.args[0])
            suffix = text[len(tree.source(inner)) :]
            whole = f"{tree.source(inner.func)}({data}{suffix})"
            fix = f"wrap last: `{whole}`; a result of an operation on a Parameter is an ordinary tensor"
            return fix, tree.patch(tree.replaced(value, whole))
    return "", tree.patch(tree.replaced(value, f"torch.nn.Parameter({text})"))


# --- parameters that the optimizer does not hold --------------------------------------------------------------


def not_optimised(story: Story, outside: set[int]) -> Iterator[tuple[int, Finding]]:
    """Parameters that get gradients in training and that no optimizer moves, where that looks unintended.

    A fixed network behind the one that is trained, as in a perceptual loss or an attack, gets gradients too.
    """
    stepping = [optimizer for optimizer in story.watch.optimizers if optimizer.updates]
    stale = unused(story, stepping)
    for mark, subject in story.latest.items() if stepping else ():
        if mark in story.held or mark in outside or not (subject.requires and subject.leaf and subject.parameter):
            continue
        sweeps = [sweep for sweep, _ in story.arrivals.get(mark, ())]
        if len(sweeps) < SEVERAL or any(event.kind == "changed" for event in story.timeline(mark)):
            continue
        if not stale and not any(grad.leaf in story.held for sweep in sweeps for grad in sweep.reached):
            continue
        if stale or "." not in subject.name or later(mark, stepping[0]) or behind(story, mark):
            yield mark, left_behind(story, mark, stepping[0], bool(stale))


def made_anew(story: Story) -> Iterator[tuple[None, Finding]]:
    """Parameters that one line makes anew in each step, as a layer in forward, so that none is ever moved."""
    lines: dict[tuple[SourceLine, tuple[int, ...]], list[int]] = {}
    for mark, arrivals in story.arrivals.items() if story.updates() else ():
        entry, subject = story.entries[mark], story.watch.subjects.get(mark)
        fresh = mark not in story.held and len(arrivals) == 1 and entry.role == "leaf"
        fresh = fresh and subject is not None and subject.parameter
        if fresh and entry.line is not None and not any(e.kind == "changed" for e in story.timeline(mark)):
            lines.setdefault((entry.line, entry.shape), []).append(mark)
    many = {line: len(marks) for (line, _), marks in lines.items() if len(marks) > SEVERAL}
    for line, count in many.items():
        message = f"{story.at(line)} made new parameters {count} times: each has one gradient, and none is ever moved"
        fix = "make it once, in __init__, as an attribute of the module, before the optimizer"
        yield None, story.find("not-optimised", None, line, message, fix=fix)


def unused(story: Story, optimizers: Sequence[OptimizerRecord]) -> list[int]:
    """What optimizers hold and nothing has read, though other parameters are trained."""
    held = {mark for optimizer in optimizers for mark in optimizer.held}

    def read(mark: int) -> bool:
        return any(use.role == "operation" for use in story.users.get(mark, ()))

    return [mark for mark in held if mark not in story.arrivals and not read(mark)]


def later(mark: int, optimizer: OptimizerRecord) -> bool:
    """Whether a parameter was made after the optimizer."""
    return mark > optimizer.time and optimizer.line is not None


def behind(story: Story, mark: int) -> bool:
    """Whether a parameter belongs to the model of which an earlier part is trained, and is read behind that part."""
    root = story.called(mark).partition(".")[0]
    own = [held for held in story.held if story.called(held).partition(".")[0] == root and held in story.arrivals]
    reads = story.users.get(mark, [])
    return bool(own and reads) and not story.ancestors_of(reads[-1].mark).isdisjoint(own)


def left_behind(story: Story, mark: int, optimizer: OptimizerRecord, stale: bool) -> Finding:
    """The finding about a parameter without an optimizer."""
    place, step = optimizer.line, optimizer.updates[-1].line
    origin = f" (made at {story.at(place)})" if place is not None else ""
    message = f"$it is not among the parameters that the optimizer{origin} moves at {story.at(step)}"
    if place is not None and later(mark, optimizer):
        born = made_again(story, mark, place)
        message += f": it was made later, at {story.at(born)}"
        if "[" in story.called(mark).partition(".")[0]:  # one of several, which replaces nothing
            fix = "give it to the optimizer too, after it was made"
            return story.find("not-optimised", story.called(mark), born, message, fix=fix)
        message += ", and the optimizer still holds what it replaced" if stale else ""
        text = " ".join(_text(story, place).split())
        fix = f"create the optimizer after it: move `{text}` behind {story.place(born)}"
        first, after = story.statement(place), story.statement(born)
        patch = None
        if first is not None and after is not None and born is not None and place.file == born.file:
            patch = story.tree(place.file).moved(first, after)
            old = {story.called(other).partition(".")[0] for other in optimizer.held} if stale else set()
            root = story.called(mark).partition(".")[0]
            if patch is not None and len(old) == 1 and root not in old:
                (name,) = old
                fix += f", with `{root}` in the place of `{name}`"
                text = re.sub(rf"\b{re.escape(name)}\b", root, patch.edits[-1].text)
                patch = patch._replace(edits=(*patch.edits[:-1], patch.edits[-1]._replace(text=text)))
        return story.find("not-optimised", story.called(mark), place, message, fix=fix, patches=(patch,))
    message += "; what that holds takes no part in the loss" if stale else ""
    fix = "give it to the optimizer too, or call requires_grad_(False) on what is to stay fixed"
    return story.find("not-optimised", story.called(mark), place or step, message, fix=fix)


def made_again(story: Story, mark: int, place: SourceLine) -> SourceLine | None:
    """The line, beside that of an optimizer, that made a parameter or gave its model the name."""
    born = story.entries[mark].line
    if born is None:
        return None
    tree, statement = story.tree(place.file), story.statement(place)
    root = story.called(mark).partition(".")[0].partition("[")[0]
    for other in reversed(tree.assignments(root)):
        same = statement is not None and tree.scope(other) is tree.scope(statement)
        if same and other.lineno > place.number and (born.number < place.number or tree.within(born.number, other)):
            return born._replace(number=other.lineno, text=" ".join(tree.source(other).split()), span=None)
    return born


def _text(story: Story, line: SourceLine) -> str:
    statement = story.statement(line)
    return line.text if statement is None else story.tree(line.file).source(statement)


# --- updates that do not come, or do nothing ------------------------------------------------------------------


def idle(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Training in which no parameter ever changes."""
    watch = story.watch
    for optimizer in watch.optimizers:
        sweeps = [
            s for s in watch.sweeps if s.accumulate and s.ended and any(g.leaf in optimizer.held for g in s.reached)
        ]
        if len(optimizer.updates) >= SEVERAL and not any(sweep.accumulate for sweep in watch.sweeps):
            bare = next(story.main.bare("backward"), None)
            if bare is not None and not any(update.moved for update in optimizer.updates):
                yield None, uncalled(story, optimizer.updates[-1].line, bare, f"{len(optimizer.updates)} steps")
        elif optimizer.updates:
            yield from small(story, optimizer)
        elif len(sweeps) >= SEVERAL and not any(moved(story, mark) for mark in optimizer.held):
            yield None, never_stepped(story, optimizer, sweeps)


def never_stepped(story: Story, optimizer: OptimizerRecord, sweeps: list[BackwardRecord]) -> Finding:
    """An optimizer that never makes a step."""
    name = optimizer.name or optimizer.kind
    bare = next(story.main.bare("step"), None)
    line = sweeps[-1].line
    if bare is not None:
        return uncalled(story, line, bare, f"{len(sweeps)} backwards")
    message = f"no parameter ever changes: {len(sweeps)} backwards ran, the last at {story.at(line)}, and `{name}` of "
    message += f"{story.at(optimizer.line)} never made a step"
    statement, patch = story.statement(line), None
    fix = f"call `{name}.step()` after each backward()"
    if line is not None and statement is not None and optimizer.name:
        tree = story.tree(line.file)
        patch = tree.patch(tree.inserted(statement, f"{name}.step()", after=True))
    return story.find("no-update", None, line, message, fix=fix, patches=(patch,))


def uncalled(story: Story, line: SourceLine | None, bare: ast.Attribute, ran: str) -> Finding:
    """A method that is named, but not called."""
    text = story.main.source(bare)
    line = line and line._replace(number=bare.lineno, text=text, span=None)
    message = f"line {bare.lineno}: `{text}` is not called, it only names the method: "
    message += f"after {ran} no parameter has changed"
    fix = f"call it: `{text}()`"
    return story.find("no-update", None, line, message, fix=fix, patches=(edits.call(story, bare),))


def small(story: Story, optimizer: OptimizerRecord) -> Iterator[tuple[int | None, Finding]]:
    """Steps that change nothing although there are gradients, with the learning rate."""
    updates = [update for update in optimizer.updates if update.moved]
    if len(updates) < SEVERAL:
        return
    probes = [optimizer.probes, *[update.probes for update in optimizer.updates]]
    pairs = zip(pairwise(probes), optimizer.updates, strict=True)
    still = [now for (before, after), now in pairs if now.moved and before == after]
    still = [update for update in still if update.rates and max(map(abs, update.rates)) < SMALL_RATE]
    still = [update for update in still if arrived(story, optimizer, update)]
    if len(still) < SEVERAL or 2 * len(still) < len(updates):
        return
    first, last = optimizer.updates[0].rates, still[-1].rates
    rate = f"{max(last):.3g}"
    message = f"{len(still)} of {len(updates)} steps at {story.at(still[-1].line)} change no parameter: the learning "
    message += f"rate is {rate}"
    line, fix = optimizer.line, f"use a larger learning rate than {rate}"
    scheduler = next(iter(scheduling(story, optimizer)), None)
    patch = None
    if max(first) > 100 * max(last) and scheduler is not None:
        line = still[-1].line and still[-1].line._replace(number=scheduler.lineno, text="", span=None)
        message += (
            f"; it began at {max(first):.3g}, and the scheduler's step() at line {scheduler.lineno} has made it so"
        )
        fix = "call the scheduler's step() once an epoch, after the loop over batches, or let the rate fall more slowly"
        patch = once_an_epoch(story, scheduler)
    elif max(last) == 0 and (scheduled := next(iter(schedulers(story, optimizer).values()), None)):
        line = still[-1].line and still[-1].line._replace(number=scheduled.lineno, text="", span=None)
        message += f", as the scheduler made at line {scheduled.lineno} has set it"
        fix = "let the schedule begin above 0" + ("" if scheduler else ", and call its step() after each epoch")
    yield None, story.find("tiny-steps", None, line, message, fix=fix, patches=(patch,))


def arrived(story: Story, optimizer: OptimizerRecord, update: Update) -> bool:
    """Whether a gradient that is not zero had come before a step."""
    grads = [g for s in story.watch.sweeps if s.time < update.time for g in s.reached if g.leaf in optimizer.held]
    return any(grad.norm > 0 for grad in grads[-len(optimizer.held) :])


def schedulers(story: Story, optimizer: OptimizerRecord) -> dict[str, ast.Assign]:
    """What changes the learning rate of an optimizer, or of any: names, and where they are assigned."""
    others, ours = dict[str, ast.Assign](), dict[str, ast.Assign]()
    for statement in story.main.parents:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            text, name = story.main.source(statement.value.func), dotted(statement.targets[0])
            if "Optim" not in text and ("LR" in text or "sched" in text.lower() or "Cosine" in text):
                arguments = [*statement.value.args, *[keyword.value for keyword in statement.value.keywords]]
                (ours if optimizer.name in map(dotted, arguments) else others)[name] = statement
    return ours or others


def scheduling(story: Story, optimizer: OptimizerRecord) -> Iterator[ast.stmt]:
    """The statements that call the step() of schedulers."""
    names = schedulers(story, optimizer)
    for call in story.main.calls("step"):
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) in names:
            yield from story.main.statements(call.lineno)[:1]


def once_an_epoch(story: Story, scheduler: ast.stmt) -> Patch | None:
    """A patch that moves the scheduler's step behind the loop over batches."""
    loops = list(story.main.around(scheduler, ast.For, ast.While))
    if len(loops) < SEVERAL:
        return None
    inner = loops[0]
    return story.main.patch(
        story.main.removed(scheduler), story.main.inserted(inner, story.main.source(scheduler), after=True)
    )


# --- options that spoil what is learned -----------------------------------------------------------------------


def decayed(story: Story) -> Iterator[tuple[None, Finding]]:
    """Optimizers whose weight decay has taken nearly all of their weights."""
    for optimizer in story.watch.optimizers:
        pairs = [(story.entries[mark].size.norm, story.entries[mark].now.norm) for mark in optimizer.held]
        before, after = (math.hypot(*norms) for norms in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
        takes = [optimizer.decay * max(update.rates) for update in optimizer.updates if update.rates]
        if sum(takes) > MUCH and after < (HALVED if takes[-1] >= FAST else LEFT) * before:
            message = f"the weights of the optimizer made at {story.at(optimizer.line)} fell from norm {before:.3g} to "
            message += f"{after:.3g} in {len(takes)} steps: weight_decay={optimizer.decay:.6g} with a rate of "
            message += f"{max(optimizer.updates[-1].rates):.3g} pulls them to 0 faster than the gradients move them"
            patch = edits.keyword_patch(story, optimizer.line, optimizer.kind, "weight_decay", "0.01")
            yield None, story.find("decayed", None, optimizer.line, message, patches=(patch,))


def uphill(story: Story) -> Iterator[tuple[None, Finding]]:
    """The only optimizer of a run, if it maximises a distance of a model from its targets, which grows."""
    stepping = [optimizer for optimizer in story.watch.optimizers if optimizer.updates]
    roots = [story.entries[s.roots[0][0]] for s in story.watch.sweeps if s.accumulate and len(s.roots) == 1]
    if len(stepping) != 1 or not stepping[0].uphill or len(roots) < SEVERAL:
        return
    model = [subject.parameter and "." in subject.name for mark, subject in story.latest.items() if mark in story.held]
    first, last = (max(abs(root.size.norm), 0.0) for root in (roots[0], roots[-1]))
    if all(model) and model and last > first and all(DISTANCE.search(root.name) for root in roots):
        message = f"the optimizer made at {story.at(stepping[0].line)} goes uphill (maximize=True): the loss at "
        message += f"{story.at(roots[-1].line)} grew from {first:.4g} to {last:.4g} in {len(roots)} steps"
        patch = edits.keyword_patch(story, stepping[0].line, stepping[0].kind, "maximize", "False")
        yield None, story.find("uphill", None, stepping[0].line, message, patches=(patch,))


# --- frozen, but moved ----------------------------------------------------------------------------------------


def frozen(story: Story) -> Iterator[tuple[int, Finding]]:
    """Parameters that an optimizer still moves after requires_grad was set to False."""
    for mark in story.held:
        freezes = [event for event in story.timeline(mark) if event.kind in ("frozen", "unfrozen")]
        if not freezes or freezes[-1].kind != "frozen" or not story.arrivals.get(mark):
            continue
        freeze = freezes[-1]
        later = [e for e in story.timeline(mark) if e.kind == "drifted" and e.time > freeze.time]
        if later:
            message = f"$it is frozen since {story.at(freeze.line)}, and {story.at(later[-1].line)} still moves it: "
            message += "its .grad is zero, not None, and the optimizer's momentum (or weight decay) goes on"
            fix, patch = to_none(story)
            yield mark, story.find("frozen-moves", story.called(mark), freeze.line, message, fix=fix, patches=(patch,))


def to_none(story: Story) -> tuple[str, Patch | None]:
    """Gradients that are set to None."""
    for call in story.main.calls("zero_grad"):
        for keyword in call.keywords:
            if keyword.arg == "set_to_none":
                fix = f"set the gradients to None: leave set_to_none=False out at line {call.lineno}"
                return fix, story.main.patch(story.main.replaced(keyword.value, "True"))
    return "", None

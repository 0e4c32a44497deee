"""What optimizers hold and do: parameters that they were not given, steps that never come or change nothing."""

from __future__ import annotations

import ast
import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from gradcli.base.results.findings import Unregistered
from gradcli.recording.runs.source_lines import whole_line
from gradcli.recording.runs.source_tree import called, dotted
from gradcli.why import edits
from gradcli.why.readings import kind_of, reads
from gradcli.why.story import grouped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, Entry, OptimizerRecord
    from gradcli.recording.runs.variable_names import Loose
    from gradcli.why.story import Story


LAYERS = {"list": "ModuleList", "tuple": "ModuleList", "dict": "ModuleDict"}
PARAMETERS = {"list": "ParameterList", "tuple": "ParameterList", "dict": "ParameterDict", "tensor": "Parameter"}
ONCE = ("parameters", "named_parameters", "filter", "map", "chain", "zip", "iter", "children", "modules")  # iterators
SEVERAL = 2  # backwards that make a loop of training
SMALL_RATE = 1e-7
LEFT, HALVED = 0.02, 0.5  # the share that is left of weights that died; by a decay that is fast
MUCH, FAST = 3.0, 0.1  # what such a decay takes of each weight in all steps together, in one step
DISTANCE = re.compile("Loss|CrossEntropy|KlDiv")
ADDS = re.compile(r"\+=|add_| \+ ")
TURNED = {"+=": "-=", "add_": "sub_", " + ": " - "}
POWERS = ("Abs", "LinalgVectorNorm", "Mul", "Norm", "Pow")  # of a difference: a distance
DELIBERATE = re.compile("unlearn|forget(?!.?(gate|bias))|gradient.ascent|adversar|attack|fool|poison", re.IGNORECASE)
DATA = re.compile(r"x\b|x_|adv|delta|pert|noise|im(a?g|age)|inp|latent|z\b|trigger|patch")


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
    statement, tree = story.statement(line), story.tree(line)
    if not isinstance(statement, ast.Assign):
        return "", None
    value, text = statement.value, tree.source(statement.value)
    if kind != "tensor":
        literal = isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp))
        for node in getattr(value, "elts", [getattr(value, "elt", value)]):
            if literal and node is not value and isinstance(node, (ast.List, ast.ListComp)):
                text = text.replace(tree.source(node), f"torch.nn.{use}({tree.source(node)})", 1)
        return "", tree.patch(tree.replaced(value, f"torch.nn.{use}({text})")) if literal else None
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
    stale, copies = unused(story, stepping), copied(story, stepping)
    yield from ((mark, of_copy(story, mark, *copies[mark])) for mark in copies if mark not in outside)
    same = [(a, b) for a in stepping for b in stepping if a is not b and set(a.held) == set(b.held)]
    twins = [a for a, b in same if a.updates[0].time < b.updates[-1].time and b.updates[0].time < a.updates[-1].time]
    for mark, subject in story.latest.items() if stepping else ():
        if mark in story.held | outside | {*copies} or not (subject.requires and subject.leaf and subject.parameter):
            continue
        sweeps = [sweep for sweep, _ in story.arrivals.get(mark, ())]
        if len(sweeps) < SEVERAL or any(event.kind == "changed" for event in story.timeline(mark)):
            continue
        if not stale and not any(grad.leaf in story.held for sweep in sweeps for grad in sweep.reached):
            continue
        thawed = any(e.kind == "unfrozen" and e.time > stepping[0].time for e in story.timeline(mark))
        if thawed or stale or "." not in subject.name or later(mark, stepping[0]) or behind(story, mark):
            yield mark, left_behind(story, mark, stepping[0], bool(stale))
        elif twins:
            yield mark, of_twin(story, mark, twins, sweeps[-1].time)


def copied(story: Story, optimizers: Sequence[OptimizerRecord]) -> dict[int, tuple[OptimizerRecord, Entry]]:
    """Parameters with a gradient of which an optimizer holds a copy in their place, and has moved nothing."""
    still = [o for o in optimizers if not any(update.moved for update in o.updates)]
    copies = [(leaf, o, held) for o in still for held in o.held for leaf in story.leaves_above(held) if leaf != held]
    return {leaf: (o, story.entries[held]) for leaf, o, held in copies if leaf in story.arrivals.keys() - story.held}


def of_twin(story: Story, mark: int, twins: list[OptimizerRecord], time: int) -> Finding:
    """The finding about a parameter after whose gradient an optimizer steps that holds what another one holds."""
    optimizer = next((o for o, update in story.updates() if update.time > time and o in twins), twins[-1])
    finding, line, patch = left_behind(story, mark, optimizer, False), optimizer.line, None
    message = f"{finding.message}; {' and '.join(f'`{each.name}`' for each in twins[:2])} hold the same parameters"
    old, (root, *_) = {story.called(held).partition(".")[0] for held in optimizer.held}, story.called(mark).split(".")
    statement, tree, fix = story.statement(line), story.tree(line), f"give it the parameters of `{root}`"
    if statement is not None and len(old) == 1:
        nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id in old]
        patch = tree.patch(*[tree.replaced(node, root) for node in nodes])
    return finding._replace(message=message, cure=fix, patches=() if patch is None else (patch,))


def of_copy(story: Story, mark: int, optimizer: OptimizerRecord, copy: Entry) -> Finding:
    """The finding about a parameter of which an optimizer holds a copy."""
    name, line, (fix, patches) = story.called(mark), copy.line, edits.uncopied(story, copy)
    message = f"$it is never moved: the optimizer made at {story.place(optimizer.line)} holds only a copy "
    message += f"({story.at(line)}), to which no gradient comes"
    return story.find("not-optimised", name, line, message, fix=fix, patches=patches)


def made_anew(story: Story) -> Iterator[tuple[None, Finding]]:
    """Parameters that one line makes anew in each step, as a layer in forward, so that none is ever moved."""
    lines: dict[tuple[SourceLine, tuple[int, ...]], list[int]] = {}
    for mark, arrivals in story.arrivals.items() if story.updates() else ():
        entry, subject = story.entries[mark], story.watch.subjects.get(mark)
        fresh = mark not in story.held and len(arrivals) == 1 and subject is not None and subject.parameter
        fresh = fresh and (entry.role == "leaf" or entry.name == "nn.Parameter()")
        if fresh and entry.line is not None and not any(e.kind == "changed" for e in story.timeline(mark)):
            lines.setdefault((entry.line, entry.shape), []).append(mark)
    many = {line: marks for (line, _), marks in lines.items() if len(marks) > SEVERAL}
    for line, marks in many.items():
        count, copies = len(marks), story.entries[marks[0]].role == "cut"
        message = f"{story.at(line)} made new parameters {count} times: each has one gradient, and none is ever moved"
        fix = "make it once, in __init__, as an attribute of the module, before the optimizer"
        fix = "change the parameter in place under torch.no_grad(), as with copy_() or clamp_()" if copies else fix
        yield None, story.find("not-optimised", None, line, message, fix=fix)


def unused(story: Story, optimizers: Sequence[OptimizerRecord]) -> list[int]:
    """What optimizers hold and nothing has read, though other parameters are trained."""
    held = {mark for optimizer in optimizers for mark in optimizer.held if mark not in story.arrivals}
    return [mark for mark in held if all(use.role != "operation" for use in story.users.get(mark, ()))]


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
        first = story.statement(place)
        text = " ".join((place.text if first is None else story.tree(place.file).source(first)).split())
        fix = f"create the optimizer after it: move `{text}` behind {story.place(born)}"
        after, patch = story.statement(born), None
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


def used_up(story: Story, line: SourceLine | None, what: str) -> Finding | None:
    """An iterator over parameters that a statement got empty: where it was made, and what used it up."""
    statement, tree = story.statement(line), story.tree(line)
    if line is None or statement is None:
        return None
    for node in ast.walk(statement):
        name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) else ""
        for assignment in reversed(tree.assignments(name, tree.scope(statement))) if name else ():
            if assignment.lineno >= statement.lineno or not isinstance(assignment, ast.Assign):
                continue
            value = assignment.value
            if not isinstance(value, ast.GeneratorExp) and not (isinstance(value, ast.Call) and called(value) in ONCE):
                continue
            text = tree.source(value)
            between = [s for s in tree._statements if assignment.lineno < s.lineno < statement.lineno]
            used = next((s for s in between if name in map(dotted, ast.walk(s))), None)
            message = f"{what} at {story.place(line)} got no parameters: `{name}` of line {assignment.lineno} is a "
            message += "generator" + (f", which line {used.lineno} used up" if used else "")
            patch, fix = edits.swap(story, line, value, f"list({text})"), f"make a list of it: `{name} = list({text})`"
            place = line._replace(number=assignment.lineno, text="", span=None)
            return story.find("iterator-used-up", None, place, message, fix=fix, patches=(patch,))
    return None


# --- updates that do not come, or do nothing ------------------------------------------------------------------


def idle(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Training in which no parameter ever changes."""
    filling = [sweep for sweep in story.watch.sweeps if sweep.accumulate]
    for optimizer in story.watch.optimizers:
        sweeps = [s for s in filling if s.ended and any(grad.leaf in optimizer.held for grad in s.reached)]
        if len(optimizer.updates) >= SEVERAL and not filling and not any(u.moved for u in optimizer.updates):
            line, ran = optimizer.updates[-1].line, f"{len(optimizer.updates)} steps"
            bare = next(story.main.bare("backward"), None)
            message = f"{ran} ran, the last at {story.at(line)}, and backward() was never called: nothing has changed"
            fix = "call backward() on the loss before each, in the closure if there is one"
            missing = story.find("no-update", None, line, message, fix=fix)
            yield None, missing if bare is None else uncalled(story, line, bare, ran)
        elif optimizer.updates:
            yield from small(story, optimizer)
        elif len(sweeps) >= SEVERAL and not any(moved(story, mark) for mark in optimizer.held):
            yield None, never_stepped(story, optimizer, sweeps)


def never_stepped(story: Story, optimizer: OptimizerRecord, sweeps: list[BackwardRecord]) -> Finding:
    """An optimizer that never makes a step."""
    name = optimizer.name or optimizer.kind
    bare, line = next(story.main.bare("step"), None), sweeps[-1].line
    if bare is not None:
        return uncalled(story, line, bare, f"{len(sweeps)} backwards")
    message = f"no parameter ever changes: {len(sweeps)} backwards ran, the last at {story.at(line)}, and `{name}` of "
    message += f"{story.at(optimizer.line)} never made a step"
    statement, patch, tree = story.statement(line), None, story.tree(line)
    fix = f"call `{name}.step()` after each backward()"
    if statement is not None and optimizer.name:
        patch = tree.patch(tree.inserted(statement, f"{name}.step()", after=True))
    return story.find("no-update", None, line, message, fix=fix, patches=(patch,))


def uncalled(story: Story, line: SourceLine | None, bare: ast.Attribute, ran: str) -> Finding:
    """A method that is named, but not called."""
    text = story.main.source(bare)
    line = line and line._replace(number=bare.lineno, text=text, span=None)
    message = f"line {bare.lineno}: `{text}` only names the method, it is not called: after {ran} nothing has changed"
    patch = story.main.with_brackets(bare)
    return story.find("no-update", None, line, message, fix=f"call it: `{text}()`", patches=(patch,))


def small(story: Story, optimizer: OptimizerRecord) -> Iterator[tuple[int | None, Finding]]:
    """Steps that change nothing although there are gradients, with the learning rate."""
    updates = [update for update in optimizer.updates if update.moved]
    if len(updates) < SEVERAL:
        return
    probes = [optimizer.probes, *[update.probes for update in optimizer.updates]]
    pairs = zip(pairwise(probes), optimizer.updates, strict=True)
    still = [now for (before, after), now in pairs if now.moved and before == after]
    still = [update for update in still if update.rates and max(map(abs, update.rates)) < SMALL_RATE]
    grads = [(s.time, g.norm) for s in story.watch.sweeps for g in s.reached if g.leaf in optimizer.held]
    held = len(optimizer.held)  # so many came last before a step
    still = [u for u in still if any(norm > 0 for _, norm in [pair for pair in grads if pair[0] < u.time][-held:])]
    if len(still) < SEVERAL or 2 * len(still) < len(updates):
        return
    first, last = optimizer.updates[0].rates, still[-1].rates
    rate, steps_shown = f"{max(last):.3g}", f"{len(still)} of {len(updates)} steps at {story.at(still[-1].line)}"
    message = f"{steps_shown} change nothing: the learning rate is {rate}"
    line, fix = optimizer.line, f"use a larger learning rate than {rate}"
    patch, names, tree = None, schedulers(story, optimizer), story.main
    steps = [c for c in tree.calls("step") if isinstance(c.func, ast.Attribute) and dotted(c.func.value) in names]
    scheduler = next((statement for call in steps for statement in tree.statements(call.lineno)[:1]), None)
    if max(first) > 100 * max(last) and scheduler is not None:
        line = still[-1].line and still[-1].line._replace(number=scheduler.lineno, text="", span=None)
        message += f"; it began at {max(first):.3g}, and the scheduler's step() at line {scheduler.lineno} made it so"
        fix = "call the scheduler's step() once an epoch, after the loop over batches, or let the rate fall more slowly"
        loop, maker = next(tree.around(scheduler, ast.For, ast.While), None), next(iter(names.values()))
        if "ReduceLROnPlateau" in tree.source(maker):
            fix = "let it wait longer before it lowers the rate (patience=), or lower it less (factor=, min_lr=)"
            mode = next((n for n in ast.walk(maker) if isinstance(n, ast.expr) and ast.unparse(n) == "'max'"), None)
            if mode is not None and "loss" in tree.source(scheduler):
                line = line and line._replace(number=maker.lineno)
                fix = "write mode='min': a loss is to become smaller, and this waits for it to grow"
                patch = tree.patch(tree.replaced(mode, "'min'"))
        elif loop is not None and next(tree.around(loop, ast.For, ast.While), None) is not None:
            patch = tree.patch(tree.removed(scheduler), tree.inserted(loop, tree.source(scheduler), after=True))
    elif max(last) == 0 and (scheduled := next(iter(names.values()), None)):
        line = still[-1].line and still[-1].line._replace(number=scheduled.lineno, text="", span=None)
        message += f", as the scheduler made at line {scheduled.lineno} has set it"
        fix = "let the schedule begin above 0" + ("" if scheduler else ", and call its step() after each epoch")
    yield None, story.find("tiny-steps", None, line, message, fix=fix, patches=(patch,))


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
            patch = less_decay(story, optimizer)
            yield None, story.find("decayed", None, optimizer.line, message, patches=(patch,))


def less_decay(story: Story, optimizer: OptimizerRecord) -> Patch | None:
    """A patch that makes a weight decay smaller where the file writes it: for the optimizer, or for its groups."""
    values: list[ast.expr] = []
    for node in ast.walk(story.main.root):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values += [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "weight_decay"]
        elif isinstance(node, ast.keyword) and node.arg == "weight_decay":
            values.append(node.value)
    large = [n for n in values if isinstance(n, ast.Constant) and n.value == optimizer.decay]
    patch = story.main.patch(*[story.main.replaced(node, "0.01") for node in large])
    return patch if large else edits.keyword_patch(story, optimizer.line, optimizer.kind, "weight_decay", "0.01")


def uphill(story: Story) -> Iterator[tuple[None, Finding]]:
    """Training in which the distance of a model from its targets grows.

    The optimizer maximises, the loss has the wrong sign, or updates by hand add the gradient.
    """
    roots = [story.entries[s.roots[0][0]] for s in story.watch.sweeps if s.accumulate and len(s.roots) == 1]
    stepping, signs = [o for o in story.watch.optimizers if o.updates], {distance_sign(story, root) for root in roots}
    if len(roots) < SEVERAL or len(signs) > 1 or 0 in signs or (stepping and meant(story, roots[0])):
        return
    minus, line, how = signs == {-1}, roots[-1].line, "the loss has the wrong sign"
    model = [subject.parameter for mark, subject in story.latest.items() if mark in story.held]
    model += [any("." in story.called(mark) for mark in story.held)]
    if len(stepping) == 1 and all(model) and minus and not stepping[0].uphill:
        patch = negated(story, line)
    elif len(stepping) == 1 and all(model) and stepping[0].uphill and not minus:
        line, how = stepping[0].line, f"the optimizer made at {story.at(stepping[0].line)} goes uphill (maximize=True)"
        patch = edits.keyword_patch(story, line, stepping[0].kind, "maximize", "False")
    elif not stepping and not minus and (lines := ascending(story)):
        line, how = lines[-1], f"{story.at(lines[-1])} goes uphill: it adds the gradient"
        tree = story.tree(line)
        places = filter(None, map(story.statement, lines))
        turned = ((each, ADDS.sub(lambda m: TURNED[m[0]], tree.source(each), count=1)) for each in places)
        patch = tree.patch(*[tree.replaced(each, text) for each, text in turned])
    else:
        return
    first, last = (float(root.value) * (-1 if minus else 1) for root in (roots[0], roots[-1]))
    if last > first:
        what = f"what is to become smaller at {story.at(roots[-1].line)} grew from {first:.4g} to {last:.4g}"
        fix = "" if patch is None else f"write `{patch.edits[-1].text}`; nothing is wrong if the loss is meant to grow"
        yield None, story.find("uphill", None, line, f"{how}: {what} in {len(roots)} steps", fix=fix, patches=(patch,))


def meant(story: Story, root: Entry) -> bool:
    """Whether a loss may have to grow: the file says so, the model was loaded, or another one judges it."""
    others = (story.watch.subjects.get(leaf) for leaf in set(story.leaves_above(root.mark)) - story.held)
    events = (event for mark in story.held for event in story.timeline(mark))
    loaded = (event for event in events if event.name.lower().startswith("copy") and event.time < root.mark)
    return bool(DELIBERATE.search(story.main.text)) or any(s and s.parameter for s in others) or any(loaded)


def distance_sign(story: Story, root: Entry) -> int:
    """The sign of the factor by which a root is a distance from targets, or minus a log-likelihood; 0 for others."""
    entry, turned, scaled = root, 0, False
    while len(entry.inputs) == 1 and reads(entry.name, "linear") and not DISTANCE.search(entry.name):
        turned, scaled = turned + (kind_of(entry.name) == "Neg"), scaled or kind_of(entry.name) == "Mul"
        entry = story.entries[entry.inputs[0]]
    below, kind = [story.entries[mark] for mark in entry.inputs], kind_of(entry.name)
    if root.value is None or not below or len(root.shape):
        return 0
    if entry.via is not None and entry.via.co_name == "log_prob":
        return 0 if scaled else 1 if turned % 2 else -1
    sound = (kind in ("Index", "Gather") and "LogSoftmax" in below[0].name) or DISTANCE.search(entry.name) is not None
    if kind in POWERS and len(set(entry.inputs)) == 1 and kind_of(below[0].name) == "Sub":
        sound = len([mark for mark in below[0].inputs if mark in story.historic]) == 1
    negative = DISTANCE.search(entry.name) and not len(entry.shape) and entry.value is not None and entry.value < 0
    return 0 if not sound or negative else -1 if root.value < 0 else 1


def negated(story: Story, line: SourceLine | None) -> Patch | None:
    """A patch that takes the minus before the expression of a line away, or writes one there."""
    node, tree = story.node(line), story.tree(line)
    if node is None:
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return edits.swap(story, line, node, tree.inlined(node, node.operand))
    text = f"-{tree.bracketed(node)}"
    return edits.swap(story, line, node, text if isinstance(tree.parents.get(node), ast.stmt) else f"({text})")


def ascending(story: Story) -> list[SourceLine]:
    """The lines that add its `.grad` to a leaf, if all leaves are changed so, with no minus, and are no data."""
    lines: set[SourceLine] = set()
    for mark in story.arrivals:
        changes = {e.line for e in story.timeline(mark) if e.kind == "changed" and e.line is not None}
        texts = [story.tree(line).source(story.statement(line) or ast.Pass()) for line in changes]
        adds = all(".grad" in text and ADDS.search(text) and not re.search("-|sub_|sign", text) for text in texts)
        if DATA.match(story.called(mark)) or not changes or not adds:
            return []
        lines |= changes
    return sorted(lines, key=lambda line: line.number)


# --- an optimizer for each step, a copy that is none, an attribute that is none ----------------------------------


def remade(story: Story) -> Iterator[tuple[None, Finding]]:
    """Lines that make a new optimizer for each step, which knows nothing of the steps before."""
    lines = grouped((each.line, each) for each in story.watch.optimizers if each.line is not None and each.updates)
    closures = any(sweep.closure for sweep in story.watch.sweeps)  # one step of LBFGS is many
    for line, same in lines.items():
        held = set(same[0].held)
        several = any(len(o.updates) > 1 or not o.remembers or set(o.held) != held for o in same)
        if closures or len(same) <= SEVERAL or several:
            continue
        changes = (e for mark in held for e in story.timeline(mark) if e.kind == "changed" and e.time > same[0].time)
        if any(event.name != "step" for event in changes):  # each begins with other weights
            continue
        message = f"{story.at(line)} makes a new {same[0].kind} for each of {len(same)} steps, without the averages of "
        tree, statement, loop = story.tree(line), story.statement(line), story.tree(line).loop(line)
        edit = [] if statement is None or loop is None else [tree.inserted(loop, tree.source(statement))]
        patch = tree.patch(*edit, tree.removed(statement)) if edit and statement is not None else None
        yield None, story.find("remade", None, line, f"{message}those before", patches=(patch,))


def no_copies(story: Story) -> Iterator[tuple[None, Finding]]:
    """What was kept as if it were a copy, and shows the entries of a parameter as they are now."""
    watch, seen = story.watch, set[int]()
    uses = [(event.mark, event.time, event.line, event.name) for event in watch.events if event.kind == "itself"]
    for entry in story.entries.values():
        shown = [mark for mark in entry.inputs if mark in watch.shared] if kind_of(entry.name) == "Sub" else []
        if shown and len(entry.inputs) > len(set(map(watch.owner_of, entry.inputs))) and not entry.inside:
            uses.append((min(shown), entry.mark, entry.line, "Sub"))
    for alias, time, line, name in uses:
        refills = [event.line for event in story.timeline(alias) if event.kind == "changed" and event.name == "data"]
        owner, birth = watch.owner_of(alias), (refills or [story.entries[alias].line])[-1]
        if owner not in story.held or birth is None or line is None or birth.number in seen:
            continue
        writers = [e.line for e in story.timeline(owner) if e.kind == "changed" and alias < e.time < time]
        writer = next((each for each in writers if each and each[:2] != line[:2]), None)
        statement = story.statement(birth)
        node = statement.value if refills and isinstance(statement, ast.Assign) else story.node(birth)
        tree, load = story.tree(birth.file), edits.found(story, line, "load_state_dict")
        calls = [n for n in ast.walk(load or ast.Pass()) if isinstance(n, ast.Call)]
        owners = {dotted(call.func).rpartition(".")[0] for call in calls}
        if writer is not None and node is not None:
            message = f"{story.at(birth)} makes no copy: it shows the entries of {story.called(owner)}, and "
            message += f"{story.at(writer)} has changed them before {story.at(line)} uses it"
            state = f"{{key: value.clone() for key, value in {tree.source(node)}.items()}}"
            whole = isinstance(node, ast.Call) and called(node) == "state_dict"
            text = state if whole else f"{tree.bracketed(node)}.clone()"
            fix, patch, place = f"copy the entries: `{text}`", edits.swap(story, birth, node, text), birth
        elif name.lower().startswith(("add", "lerp")) or (len(owners) == 2 and birth[:2] == line[:2]):
            message = f"{story.at(line)} gives {story.called(owner)} its own entries: both names stand for one tensor"
            fix, patch, place = "make the second a copy of the first: copy.deepcopy(model)", None, line
        else:
            continue
        seen.add(birth.number)
        yield None, story.find("shared-memory", None, place, message, fix=fix, patches=(patch,))


def misspelt(story: Story) -> Iterator[tuple[None, Finding]]:
    """Attributes that someone took for requires_grad."""
    for tree in map(story.tree, sorted(story.files()) if story.watch.misspelt else ()):
        for node in (node for node in ast.walk(tree.root) if isinstance(node, ast.Assign)):
            target = node.targets[0]
            wrong = isinstance(target, ast.Attribute) and target.attr in story.watch.misspelt
            if isinstance(target, ast.Attribute) and wrong and dotted(target.value) != "self":
                line = whole_line(tree.file, node.lineno)
                message = f"{story.at(line)} only makes a new attribute `{target.attr}`, which nothing reads"
                message += "; a module has no requires_grad" if target.attr == "requires_grad" else ""
                text = f"{tree.source(target.value)}.requires_grad_({tree.source(node.value)})"
                patch = tree.patch(tree.replaced(node, text))
                yield None, story.find("misspelt", None, line, message, fix=f"call `{text}`", patches=(patch,))


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
            calls = story.main.calls("zero_grad")
            flag = next((k for call in calls for k in call.keywords if k.arg == "set_to_none"), None)
            patch = None if flag is None else story.main.patch(story.main.replaced(flag.value, "True"))
            fix = f"set the gradients to None: leave set_to_none=False out at line {flag.lineno}" if flag else ""
            yield mark, story.find("frozen-moves", story.called(mark), freeze.line, message, fix=fix, patches=(patch,))

"""Where the first NaN or infinity comes from that reached a loss or a gradient.

The time of the record decides: what a value was made of is looked at as it was then. A parameter that a later step
spoilt is no origin of an earlier loss.
"""

from __future__ import annotations

import ast
import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from gradcli.base.results.findings import AtNode, Branch, Growth, Masked, Operands
from gradcli.recording.runs.operand_notes import FailedOperands, MaskedRows
from gradcli.recording.runs.source_tree import called, dotted
from gradcli.why import edits
from gradcli.why.readings import kind_of, reads
from gradcli.why.story import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import BackwardRecord, Entry, Event, Step
    from gradcli.why.story import Story

GROWN = 1e3  # times: gradients that grew so much from update to update diverge
GROWING = 4  # values of one line, each made of the one before, that grow
LARGEST = {"float16": 65504.0, "bfloat16": 3e38, "float32": 3e38, "float64": 1e308}
DEVIATIONS = ("Std", "Var", "StdMean", "VarMean")
DEGENERATE = ("LinalgSvd", "LinalgEigh", "LinalgEig", "Svd", "LinalgQr", "LinalgSvdvals")


def first_nan(story: Story) -> Iterator[tuple[int | None, Finding]]:
    """Where the first NaN or infinity comes from that reached a loss or a gradient."""
    for number, sweep in enumerate(story.watch.sweeps, 1):
        for root, _, finite in sweep.roots:
            if not finite:
                finding = forward(story, root, sweep.time, "$it is not finite")
                if finding is not None:
                    yield root, finding
                    return
        bad = [grad for grad in sweep.reached if not grad.finite]
        steps = [
            {event.sweeps for event in story.timeline(grad.leaf) if event.kind == "changed" and event.name == "step"}
            for grad in bad
        ]
        if bad and all(number not in at and any(later > number for later in at) for at in steps):
            continue  # an optimizer left out this step and made later ones, as under a GradScaler
        step = next((s for s in sweep.steps if s.finite and any(not sent.size.finite for sent in s.sent)), None)
        if bad and step is not None:
            for grad in bad:
                yield grad.leaf, backward(story, sweep, step, story.called(grad.leaf))
        if bad:
            return
    spoilt = next((event for event in story.watch.events if event.kind == "spoilt" and event.mark in story.held), None)
    if spoilt is not None:
        yield spoilt.mark, by_update(story, spoilt)
    elif not story.watch.sweeps:
        for mark, subject in story.latest.items():
            entry = story.entries[mark]
            if subject.name and not entry.size.finite and entry.role != "leaf" and entry.line is not None:
                finding = forward(story, mark, mark + 1, "$it is not finite")
                if finding is not None:
                    yield mark, finding
                    return


# --- on the way to a loss -------------------------------------------------------------------------------------


def origins(story: Story, root: int, time: int) -> list[tuple[Entry, Event | None]]:
    """What made a value not finite, as it was at a time: operations on finite operands, data; with writes that did."""

    def onward(pair: tuple[int, int]) -> list[tuple[int, int]]:
        entry = story.entries[pair[0]]
        if entry.size.finite:
            return []
        return [(mark, entry.mark) for mark, size in zip(entry.inputs, entry.below, strict=True) if not size.finite]

    reached: list[tuple[Entry, Event | None]] = []
    for mark, at in walk([(root, time)], onward):
        entry = story.entries[mark]
        if entry.size.finite:
            writes = [e for e in story.timeline(mark) if e.kind == "spoilt" and e.time < at]
            if writes:
                reached.append((entry, writes[-1]))
        elif not onward((mark, at)):
            reached.append((entry, None))
    return reached


def forward(story: Story, root: int, time: int, lead: str) -> Finding | None:
    """The finding about what made a value not finite."""
    masked = masked_above(story, root)
    if masked is not None:
        return masked_rows(story, masked, story.called(root), lead)
    origin = min(origins(story, root, time), key=lambda pair: pair[0].mark, default=None)
    if origin is None:
        return None
    entry, write = origin
    leading = set(walk([root], story.operands))
    masking = [use for use in story.users.get(entry.mark, ()) if use.mark in leading and reads(use.name, "masks")]
    entry = masking[0] if write is None and masking and entry.role == "leaf" and word(entry) == "inf" else entry
    for mark in walk([entry.mark], lambda mark: [use.mark for use in story.users.get(mark, ()) if use.mark in leading]):
        use = story.entries[mark]
        both = all(entry.mark in story.ancestors_of(below) for below in use.inputs)
        if reads(entry.name, "masks") and kind_of(use.name) == "Sub" and both:
            message = f"{lead}: {story.doing(use)} is -inf - -inf where all entries of a row are masked at "
            message += f"{story.at(entry.line)}"
            return story.find("masked-row", story.called(root), use.line, message)
    above = (story.entries[mark] for mark in walk(entry.inputs, story.operands))
    lost = [e for e in above if not e.size.finite and e.calm and e.inputs and not reads(e.name, "masks")]
    if lost:  # an infinity that became finite again on the way, and is no mask
        entry, write = min(lost, key=lambda e: e.mark), None
    if write is not None and write.mark in story.held:
        return by_update(story, write)
    if write is not None or entry.role == "leaf" or not entry.inputs:
        line = entry.line if write is None else write.line
        what = f"NaN or inf was written into $it at {story.at(line)}"
        what = f"$it holds {word(entry)} from the start" if write is None else what
        return story.find("nan-data", story.called(entry.mark), line, what + reaches(story, entry, root))
    return operation(story, entry, root, lead)


def reaches(story: Story, entry: Entry, root: int) -> str:
    """Where data first take part in what leads to a root, and as which batch."""
    onto = set(walk([root], story.operands))
    chain, batch = entry, ""
    while True:
        uses = [use for use in story.users.get(chain.mark, ()) if use.mark in onto and not use.size.finite]
        if not uses or uses[0].requires:
            break
        chain = uses[0]
        known = story.watch.subjects.get(chain.mark)
        if known is not None and known.name and known.name != story.called(entry.mark):
            batch = f" as `{known.name}`"
    first = next((use for use in story.users.get(chain.mark, ()) if use.mark in onto), None)
    number = next((n for n, sweep in enumerate(story.watch.sweeps, 1) if sweep.time > root), len(story.watch.sweeps))
    step = f" in step {number}" if len(story.watch.sweeps) > 1 else ""
    return f"; it is first used{batch} at {story.at(first.line)}{step}" if first is not None else ""


def by_update(story: Story, write: Event) -> Finding:
    """A parameter that was finite, and that an update of the file or of an optimizer spoilt."""
    mark, name = write.mark, story.called(write.mark)
    norms = [grad.norm for sweep, grad in story.arrivals.get(mark, []) if sweep.time < write.time]
    size = story.entries[mark].size.norm
    small = norms and norms[-1] - norms[-1] == 0 and norms[-1] < HUGE * max(1.0, size)
    if small and norms[-1] <= GROWN * max(norms[0], 1e-30):
        message = f"$it became NaN or inf in the update at {story.at(write.line)}, although its gradient was finite "
        message += f"(norm {norms[-1]:.3g})"
        return story.find("nan-update", name, write.line, message)
    message = f"$it became NaN or inf in the update at {story.at(write.line)}: the preceding steps were too large"
    return story.find("diverged", name, write.line, message)


HUGE = 1e6
ONE_LESS = re.compile(r"^1(\.0?)? - ")
APART = "keep the divisor away from 0: add a small number to it, or clamp it"


def operation(story: Story, entry: Entry, root: int, lead: str) -> Finding:
    """An operation that made NaN or infinity of finite operands."""
    name, what, line, kind = story.called(root), word(entry), entry.line, kind_of(entry.name)
    operands = Operands(entry.name, tuple(map(story.called, entry.inputs)))
    shapes = [story.entries[mark].shape for mark in entry.inputs]
    counted = [math.prod(shape) for shape in shapes]
    message = f"{lead}: the first {what} appears in {story.doing(entry)}"
    if kind in DEVIATIONS and counted and counted[0] == max(1, math.prod(entry.shape)):
        message = f"{lead}: {story.doing(entry)} is the deviation of one entry each (shape {shapes[0]}), which is 0 / 0"
        call, patch = edits.found(story, line, "std", "var", "std_mean", "var_mean"), None
        if call is not None and line is not None:
            edit = story.tree(line).with_keyword(call, "unbiased", "False")
            patch = story.tree(line).patch(edit._replace(text=f"({edit.text} + 1e-8)"))
        return story.find("one-of-a-kind", name, line, message, operands, patches=(patch,))
    if kind.startswith("NllLoss"):
        message = f"{lead}: {story.doing(entry)} is a mean of nothing: every label is ignored (ignore_index), or has "
        message += "weight 0"
        fix = "skip a batch whose labels are all ignored, or divide the sum by the count: reduction='sum', then "
        fix += "/ max(count, 1)"
        return story.find("nothing-to-average", name, line, message, operands, fix=fix)
    call = edits.found(story, line, "ctc_loss")
    if call is not None or (entry.layer is not None and entry.layer.kind == "CTCLoss"):
        message += ": some target does not fit into its input, which has to have one step for each label, and one more "
        message += "between two that are equal"
        call = call or next(story.tree(line).calls("CTCLoss"), None)
        patch = edits.given(story.tree(line), call, "zero_infinity", "True")
        fix = "leave such pairs out, or pass zero_infinity=True, which gives them a loss of 0"
        return story.find("nan-forward", name, line, message, operands, fix=fix, patches=(patch,))
    if shapes and 0 in shapes[0]:
        message = f"{lead}: {story.doing(entry)} is the mean of no entries (shape {shapes[0]} is empty)"
        return story.find("nothing-to-average", name, line, message, operands)
    growing = growth(story, entry)
    if growing is not None:
        factor, count = growing
        message = f"{lead}: the value of {story.at(line)} grows by a factor of about {factor:.3g} in each of {count} "
        message += f"iterations until it overflows {entry.dtype}"
        return story.find("grows", name, line, message, operands)
    grown, failed = diverging(story, root), isinstance(entry.remark, FailedOperands)
    known = [each for each in entry.remark.operands if each is not None and each.size] if failed else []
    reach = max((max(abs(each.low), abs(each.high)) for each in known), default=math.inf)
    if grown is not None and (reach > GROWN or kind in ("Exp", "Pow")):  # else operands have only left the domain
        message = f"{lead} {grown[1]}; the first {what} appears in {story.doing(entry)}"
        return story.find("diverged", name, line, message, Growth(entry.name, grown[0]))
    if entry.dtype == "float16" and what != "NaN" and _linear(entry.name):
        message += ", whose result is too large for float16"
        return story.find("overflow", name, line, message, AtNode(entry.name))
    detail, cure = domain(story, entry, kind)
    return story.find("nan-forward", name, line, f"{message}{detail}", operands, fix=cure.text, patches=cure.patches)


def growth(story: Story, entry: Entry) -> tuple[float, int] | None:
    """By which factor a value that is carried from iteration to iteration grows, and for how many."""
    norms: list[float] = []
    current: Entry | None = entry
    while current is not None and len(norms) < 1000:
        if current.size.finite:
            norms.append(current.size.norm)
        marks = walk(current.inputs, story.operands) if len(norms) < 2 else current.inputs
        above = (story.entries[mark] for mark in marks)
        same = [e for e in above if e.line == entry.line and e.name == entry.name]
        current = max(same, key=lambda e: e.mark, default=None)
    ratios = [now / before for before, now in pairwise(norms[::-1]) if before > 0]
    if len(ratios) < GROWING or not all(ratio > 1.2 for ratio in ratios[-GROWING:]):
        return None
    return math.exp(sum(map(math.log, ratios)) / len(ratios)), len(ratios) + 1


def diverging(story: Story, root: int) -> tuple[tuple[float, float], str] | None:
    """The norms of what grew most from update to update before a loss, if that is a lot, and a text that says so.

    It is the gradient of a leaf, or the leaf itself.
    """
    largest: tuple[tuple[float, float], str] | None = None
    for leaf in story.leaves_above(root):
        same, name = [leaf], story.called(leaf)  # as it was: where arrays never change, the leaves of its name
        if story.watch.tensors.dialect == "jax" and story.is_named(leaf):
            known = story.watch.subjects.items()
            same = [other for other, s in known if s.name == name and s.requires and other <= leaf]
        grads = [grad for mark in same for _, grad in story.arrivals.get(mark, [])]
        norms = [grad.norm for grad in grads if grad.finite and grad.norm > 0]
        steps = [event for event in story.timeline(leaf) if event.kind == "changed" and event.time < root]
        text, moved = f"the gradient of {story.called(leaf)}", len(steps) or len(same) - 1
        sweeps = [s.line for s in story.watch.sweeps if s.time < root] or [s.line for s in story.watch.sweeps[:1]]
        line = steps[-1].line if steps else sweeps[-1] if sweeps else None
        if len(norms) < 2 and len(same) > 1:  # of steps that were compiled only the first was read, and this one
            norms, text = [story.entries[same[0]].size.norm, story.entries[leaf].size.norm], story.called(leaf)
        if len(norms) >= 2 and moved and norms[-1] > GROWN * norms[0] and (not largest or norms[-1] > largest[0][1]):
            what = f"after {moved} updates at {story.at(line)}: {text} had grown from norm {norms[0]:.3g} to "
            largest = (norms[0], norms[-1]), f"{what}{norms[-1]:.3g}"
    return largest


def domain(story: Story, entry: Entry, kind: str) -> tuple[str, edits.Fix]:
    """What was wrong with the operands of an operation, and the fix for it."""
    known = entry.remark.operands if isinstance(entry.remark, FailedOperands) else ()
    first, line = known[0] if known else None, entry.line
    stable = edits.log_softmax(story, entry) or log_sigmoids(story, entry) if kind == "Log" else None
    if stable is not None and first is not None:
        what = "the sigmoid is rounded" if "sigmoid" in stable.text else "the softmax underflows"
        return f" ({first.zeros} of {first.size} entries are 0: {what})", stable
    logarithm = kind.startswith("Log") and kind != "LogSoftmax"
    rooted, power = kind in ("Sqrt", "Rsqrt"), kind.startswith("Pow") and first is not None and not first.high > GROWN
    if (logarithm or rooted or power) and first is not None and (first.negative or (first.zeros and not rooted)):
        bad, what = (first.negative, "negative") if first.negative else (first.zeros, "0")
        text, patch = bounded(story, line, low="1e-12" if rooted else "1e-8")
        fix = f"keep the {'base' if power else 'operand'} {'at 0 or above' if rooted else 'above 0'}: clamp it, {text}"
        fix += ", or use the stable form (log_softmax, logsigmoid, log1p)" if logarithm else ""
        return f" ({bad} of {first.size} entries{' of the base' if power else ''} are {what})", edits.Fix(fix, (patch,))
    if kind in ("Acos", "Asin", "Atanh", "Acosh") and first is not None:
        text, patch = bounded(story, line, low="-1 + 1e-6", high="1 - 1e-6")
        fix = f"keep the operand inside the domain: clamp it, {text}"
        return f" (the operand reaches from {first.low:.4g} to {first.high:.4g})", edits.Fix(fix, (patch,))
    if kind in ("Exp", "Exp2", "Expm1", "Sinh", "Cosh") and first is not None and first.high > 11:
        text, patch = bounded(story, line, high="30")
        fix = f"bound the operand, {text}, or use the stable form (logsumexp, softmax, log_softmax)"
        return f" (the operand reaches {first.high:.4g}; float32 ends at exp(88))", edits.Fix(fix, (patch,))
    node = story.node(line)
    if kind == "Mul" and first is not None and isinstance(node, ast.BinOp) and line is not None:
        tree, sides = story.tree(line), (node.left, node.right)
        infinite = [side for side in sides if "inf" in tree.source(side).lower()]
        if len(infinite) == 1 and any(operand is not None and operand.zeros for operand in known):
            mask = tree.bracketed(sides[sides.index(infinite[0]) - 1])
            text = story.dialect(line).where(f"{mask} != 0", tree.source(infinite[0]), "0.0")
            patch = edits.swap(story, line, node, text)
            return " (0 times infinity)", edits.Fix(f"choose, do not multiply: `{text}`", (patch,))
    divisor = known[-1] if kind == "Div" and known else first if kind == "Reciprocal" else None
    if divisor is not None and divisor.zeros:
        what = f" ({divisor.zeros} of {divisor.size} entries of the divisor are 0)"
        return what, edits.Fix(APART, (divisor_patch(story, line),))
    reach = 0.0 if first is None else max(abs(first.low), abs(first.high))
    if reach > math.sqrt(LARGEST.get(entry.dtype, 1e308)):
        fix = "scale the operands down, or normalise them: the result is too large for the format"
        return f" (an operand reaches {reach:.3g})", edits.Fix(fix)
    return "", edits.Fix()


def operand_at(story: Story, line: SourceLine | None) -> ast.expr | None:
    """The operand of the function that ran at a line."""
    node = story.node(line)
    if isinstance(node, ast.Call):
        return edits.operand_of(node, story.dialect(line))
    return node.left if isinstance(node, ast.BinOp) else None


def bounded(story: Story, line: SourceLine | None, low: str = "", high: str = "") -> tuple[str, Patch | None]:
    """The operand at a line kept inside bounds, as a text and as a patch."""
    node, dialect = operand_at(story, line), story.dialect(line)
    text = dialect.bounded("x" if node is None else dialect.operand(story.tree(line), node), low, high)
    return f"`{text}`", None if node is None else edits.swap(story, line, node, text)


def log_sigmoids(story: Story, log: Entry) -> edits.Fix | None:
    """logsigmoid in the place of the logarithms of a sigmoid, and of 1 less it, in one statement."""
    source, statement, tree = story.through(log.inputs[0], "linear"), story.statement(log.line), story.tree(log.line)
    call, assignment = edits.found(story, source.line, "sigmoid"), story.statement(source.line)
    inner = None if call is None else edits.operand_of(call, story.dialect(source.line))
    if call is None or inner is None or statement is None or tree is not story.tree(source.line):
        return None
    kept = isinstance(assignment, ast.Assign) and assignment.value is call and dotted(assignment.targets[0])
    name = kept or tree.source(call)
    texts = {name: tree.source(inner), f"1-{name}": f"-{tree.bracketed(inner)}"}
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and called(n) == "log"]
    operands = [tree.source(edits.operand_of(each, story.dialect()) or each) for each in calls]
    logs = [(n, texts[key]) for n, x in zip(calls, operands, strict=True) if (key := ONE_LESS.sub("1-", x)) in texts]
    patch = tree.patch(*[tree.replaced(n, f"torch.nn.functional.logsigmoid({text})") for n, text in logs])
    fix = f"use logsigmoid, or binary_cross_entropy_with_logits, on the raw outputs, `{texts[name]}`"
    return edits.Fix(fix, (patch,)) if logs else None


def divisor_patch(story: Story, line: SourceLine | None) -> Patch | None:
    """A patch that adds a small number to the divisor."""
    divisor = getattr(story.node(line), "right", None)
    text = "" if divisor is None else f"({story.tree(line).source(divisor)} + 1e-8)"
    return None if divisor is None else edits.swap(story, line, divisor, text)


# --- rows that are masked throughout --------------------------------------------------------------------------


def masked_above(story: Story, root: int) -> Entry | None:
    """The first softmax with rows that are masked throughout above a value, along NaN only."""

    def onward(mark: int) -> tuple[int, ...]:
        entry = story.entries[mark]
        return () if entry.size.finite or word(entry) == "inf" else entry.inputs

    reached = (story.entries[mark] for mark in walk([root], onward))
    softmaxes = [entry for entry in reached if isinstance(entry.remark, MaskedRows) and word(entry) != "inf"]
    return min(softmaxes, key=lambda entry: entry.mark, default=None)


def masked_rows(story: Story, entry: Entry, subject: str, lead: str) -> Finding:
    """A softmax that has nothing to choose from in some rows, and where they were masked."""
    assert isinstance(entry.remark, MaskedRows)
    rows, of = entry.remark
    mask = _mask_of(story, entry)
    by = f", masked at {story.at(mask)}" if mask is not None and mask != entry.line else ""
    where = f"{rows} of the {of} rows" if of > 1 else "the only row"
    message = f"{lead}: {where} of {story.doing(entry)} {'is' if rows == 1 else 'are'} -inf throughout"
    message += f"{by}; the softmax of such a row is NaN"
    evidence = Masked(entry.name, rows, of, None if mask is None else mask.number)
    return story.find("masked-row", subject, entry.line, message, evidence)


def _mask_of(story: Story, softmax: Entry) -> SourceLine | None:
    """The line on which scores became -inf: the nearest operation above with operands that were finite."""

    def onward(mark: int) -> list[int]:
        return [below for below in story.entries[mark].inputs if not story.entries[below].size.finite]

    above = [story.entries[mark] for mark in walk([softmax.mark], onward)]
    masking = (entry for entry in above[1:] if any(size.finite for size in entry.below))
    return next(masking, above[-1]).line


# --- on the way back ------------------------------------------------------------------------------------------


def backward(story: Story, sweep: BackwardRecord, step: Step, subject: str) -> Finding:
    """Why a node made NaN or infinity of a finite gradient."""
    entry = story.result(step.seq)
    at, kind, line = story.doing_step(step), kind_of(step.name), step.line
    branch = branch_below(story, sweep, step)
    taken = f" at {story.at(sweep.line)}" if story.watch.tensors.dialect == "jax" else ""
    if entry is not None and not (step.stuck and branch is not None):
        lost = next((m for m, size in zip(entry.inputs, entry.below, strict=True) if not size.finite), None)
        lost = entry.mark if not entry.size.finite else lost
        time = entry.mark + (lost == entry.mark)
        finding = None if lost is None else forward(story, lost, time, "$it.grad is not finite")
        mask = lost is not None and reads(story.entries[lost].name, "masks")
        if finding is not None and not (mask and finding.reason == "nan-forward"):
            return finding._replace(subject=subject)
    if kind in DEGENERATE:
        message = f"$it.grad is not finite: two singular values or eigenvalues of {at} are equal, so the vectors are "
        message += "not determined and have no derivative"
        return story.find("degenerate", subject, line, message, AtNode(step.name))
    if step.stuck and branch is not None:
        infinite = [] if entry is None else [mark for mark in entry.inputs if not story.entries[mark].size.finite]
        inner = next((e for mark in infinite for e, _ in origins(story, mark, mark + 1) if e.inputs), entry)
        since = f" (since {story.at(inner.line)})" if inner is not None and inner.line != line else ""
        message = f"$it.grad{taken} is NaN: {at} multiplies an infinite slope{since} by the zero gradient "
        message += f"of a branch that was not taken at {story.at(branch.line)}"
        fix, patch = ("", None) if inner is None else safe_branch(story, inner, branch)
        evidence = Branch(step.name, None if branch.line is None else branch.line.number)
        return story.find("nan-branch", subject, line, message, evidence, fix=fix, patches=(patch,))
    formats = [] if entry is None else [story.entries[mark].dtype for mark in entry.inputs]
    if formats and _linear(step.name) and ("float16" in formats or step.name.startswith("ToCopy")):
        small = "float16" if "float16" in formats else formats[0]
        message = f"$it.grad is not finite: the gradient of {story.at(line)} is too large for {small}"
        return story.find("overflow", subject, line, message, AtNode(step.name))
    how = "an infinite slope times a gradient of zero" if step.stuck else "the slope is not finite there"
    message = f"$it.grad{taken} is not finite: in backward the first NaN or inf appears in {at} ({how})"
    cure = slope(story, entry, kind)
    return story.find("nan-backward", subject, line, message, AtNode(step.name), fix=cure.text, patches=cure.patches)


def branch_below(story: Story, sweep: BackwardRecord, step: Step) -> Step | None:
    """The choice between branches, on the way from the loss to a node, that sent zeros to it."""
    steps = {each.seq: each for each in sweep.steps}

    def onward(seq: int) -> list[int]:
        return [sender.seq for sender, _ in story.senders(sweep, ("node", seq))]

    above = (steps[seq] for seq in walk([step.seq], onward) if seq != step.seq)
    return next((each for each in above if reads(each.name, "branches") and each.norm), None)


def safe_branch(story: Story, ran: Entry, branch: Step) -> tuple[str, Patch | None]:
    """The operand of a branch that is not taken made safe, with the file's own condition."""
    line, choice, node, there = ran.line, story.result(branch.seq), story.node(branch.line), story.node(ran.line)
    divides = isinstance(there, ast.BinOp) and isinstance(there.op, ast.Div)
    inner = there.right if isinstance(there, ast.BinOp) and divides else operand_at(story, line)
    if not isinstance(node, ast.Call) or called(node) != "where" or len(node.args) != 3 or inner is None:
        return "", None
    if line is None or branch.line is None or branch.line.file != line.file or isinstance(inner, ast.Constant):
        return "", None
    tree = story.tree(line)
    sides = [any(part is inner for part in ast.walk(argument)) for argument in node.args[1:]]
    if not any(sides) and choice is not None:  # it was computed before, where the condition may not be known yet
        names = [dotted(part) for part in ast.walk(node.args[0]) if isinstance(part, (ast.Name, ast.Attribute))]
        place, scope = story.statement(line), tree.scope(node)
        late = [each for name in names for each in tree.assignments(name, scope) if each.lineno >= line.number]
        if place is not None and tree.scope(place) is scope and not late:
            sides = [not isinstance(argument, ast.Constant) for argument in node.args[1:]]
            above = [ran.mark in story.ancestors_of(mark) for mark in choice.inputs[1:]]
            if all(sides) and len(above) == 2 and story.entries[choice.inputs[0]].dtype == "bool":
                sides = above[::-1] if story.watch.tensors.dialect == "jax" else above
            sides = sides if any(above) else []
    if sum(sides) != 1:
        return "", None
    condition, text = tree.source(node.args[0]), tree.source(inner)
    safe = story.dialect(line).where(condition, *((text, "1.0") if sides[0] else ("1.0", text)))
    fix = f"make the operand safe in the branch too: `{safe}` in the place of `{text}`"
    return fix, tree.patch(tree.replaced(inner, safe))


def slope(story: Story, entry: Entry | None, kind: str) -> edits.Fix:
    """The fix for an infinite slope."""
    line = None if entry is None else entry.line
    inner, tree = operand_at(story, line), story.tree(line)
    text = "x" if inner is None else tree.source(inner)
    if kind == "Sqrt":
        if (rooted := under_root(story, line)) is not None:
            return rooted
        fix = f"sqrt has an infinite slope at 0: add a small number inside, `{text} + 1e-12`"
        return edits.Fix(fix, (added(story, line, "1e-12"),))
    if kind.startswith(("Pow", "Log", "Rsqrt")):
        fix = f"keep the operand away from 0: add a small number, `{text} + 1e-8`, or clamp it"
        return edits.Fix(fix, (added(story, line, "1e-8"),))
    if kind in ("Acos", "Asin", "Atanh"):
        text = f"{'x' if inner is None else tree.bracketed(inner)} * (1 - 1e-6)"
        patches = () if inner is None else (edits.swap(story, line, inner, text),)
        return edits.Fix(f"keep the operand away from 1 and -1: `{text}`", patches)
    if kind == "Div":
        return edits.Fix(APART, (divisor_patch(story, line),))
    return edits.Fix()


def under_root(story: Story, line: SourceLine | None) -> edits.Fix | None:
    """norm() and std() of JAX have an infinite slope where they are 0: the root written out."""
    node = story.node(line)
    if not isinstance(node, ast.Call) or line is None or called(node) not in ("norm", "std") or len(node.args) != 1:
        return None
    tree, numpy = story.tree(line), getattr(story.dialect(line), "numpy", "torch")
    others = "".join(f", {tree.source(each)}" for each in node.keywords)
    text = tree.source(node.args[0])
    inner = f"var({text}{others})" if called(node) == "std" else f"sum({tree.bracketed(node.args[0])} ** 2{others})"
    root = f"{numpy}.sqrt({numpy}.{inner} + 1e-12)"
    what = "has no slope where all entries are 0" if called(node) == "norm" else "has no slope where all are equal"
    fix = f"{called(node)} {what}: add a small number under the root, `{root}`"
    return edits.Fix(fix, (edits.swap(story, line, node, root),))


def added(story: Story, line: SourceLine | None, number: str) -> Patch | None:
    """A patch that adds a small number to the operand."""
    node, tree = operand_at(story, line), story.tree(line)
    if node is None:
        return None
    outer, text = tree.parents.get(node), f"{tree.source(node)} + {number}"
    return edits.swap(story, line, node, text if isinstance(outer, ast.Call) and node in outer.args else f"({text})")


def _linear(node: str) -> bool:
    """Whether the result and the slope of a node are finite for finite operands, unless they are too large."""
    words = ("mixes", "spreads", "times-zero")
    return node.startswith("ToCopy") or (not node.startswith("Div") and any(reads(node, word) for word in words))


def word(entry: Entry) -> str:
    """NaN or inf."""
    if entry.value is None:
        return "NaN or inf"
    return "NaN" if bool((entry.value != entry.value).any()) else "inf"

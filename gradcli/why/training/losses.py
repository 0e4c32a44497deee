"""Losses that compute something else than is meant: broadcast pairs, an activation applied twice, a constant term."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from gradcli.base.results.findings import AtNode
from gradcli.recording.runs.operand_notes import AlongRows, NotLogarithms, Probabilities
from gradcli.recording.runs.source_tree import called
from gradcli.why import edits
from gradcli.why.readings import kind_of, reads
from gradcli.why.story import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.tensors import Entry
    from gradcli.why.story import Story

ACTIVATIONS = ("Softmax", "Sigmoid")


# --- pairs ----------------------------------------------------------------------------------------------------


def broadcast(story: Story) -> Iterator[tuple[None, Finding]]:
    """Operations on N outputs and N others that broadcasting made N * N, as for shapes (N, 1) and (N,)."""
    seen: set[SourceLine | None] = set()
    for mark in walk(story.roots(), story.operands):
        entry = story.entries[mark]
        compares = reads(entry.name, "compares")
        if len(entry.inputs) != 2 or entry.line in seen or not (compares or reads(entry.name, "combines")):
            continue
        column, row = sorted((story.entries[read] for read in entry.inputs), key=lambda operand: -len(operand.shape))
        count = math.prod(row.shape)
        if column.shape != (count, 1) or row.shape != (count,) or count < 2:
            continue
        if kind_of(column.name) == "Unsqueeze" or column.requires == row.requires:  # x[:, None] - y: pairs are meant
            continue
        uses = [use for use in story.users.get(entry.mark, ()) if use.role == "operation"]
        only_added = uses and all(kind_of(use.name) in ("Sum", "Mean") and not use.shape for use in uses)
        if not compares and not only_added:
            continue
        seen.add(entry.line)
        verb = "compares" if compares else "combines"
        message = f"{story.at(entry.line)} {verb} each of {count} entries with all {count}: "
        message += f"{entry.name} broadcasts shapes ({count}, 1) and ({count},) to ({count}, {count})"
        patch = aligned(story, entry, column, row)
        yield None, story.find("broadcast", None, entry.line, message, AtNode(entry.name), patches=(patch,))


def aligned(story: Story, entry: Entry, column: Entry, row: Entry) -> Patch | None:
    """A patch that gives the row the shape of a column; or the column that of a row, if such are used later on."""
    later = [story.entries[m] for m in walk([entry.mark], lambda m: [use.mark for use in story.users.get(m, ())])]
    flat = any(story.entries[mark].shape == row.shape for use in later[1:] for mark in use.inputs)
    name, change = (story.called(column.mark), ".squeeze(1)") if flat else (story.called(row.mark), "[:, None]")
    return edits.operand_patch(story, entry.line, name, change)


# --- activations ----------------------------------------------------------------------------------------------


def twice(story: Story) -> Iterator[tuple[None, Finding]]:
    """Losses that apply softmax or sigmoid to what has been through it, or want logarithms and get others."""
    seen: set[tuple[SourceLine | None, str]] = set()
    for entry in story.entries.values():
        probabilities, source = isinstance(entry.remark, Probabilities), divergence(story, entry)
        remarked = probabilities or source or isinstance(entry.remark, NotLogarithms)
        if not remarked or (entry.line, entry.name) in seen or entry.inside:
            continue
        seen.add((entry.line, entry.name))
        source = source or (activation(story, entry) if probabilities else None)
        if probabilities and source is None:
            continue
        raw = all("LogSoftmax" not in story.entries[mark].name for mark in entry.inputs)
        if source is None or not probabilities or (raw and entry.name.startswith("NllLoss")):
            yield None, not_logarithms(story, entry, source)
            continue
        kind = kind_of(source.name)
        loss = "binary_cross_entropy_with_logits" if entry.name.startswith("Binary") else "cross_entropy"
        name = kind.lower()
        own = "sigmoid" if name == "sigmoid" else "log_softmax"
        message = f"{name} is applied twice: {loss} at {story.at(entry.line)} applies {own} itself, and gets what has "
        message += f"been through {story.doing(source)} already"
        fix, patch = without(story, source, kind)
        evidence = AtNode(source.name)
        yield None, story.find("activation-twice", None, source.line, message, evidence, fix=fix, patches=(patch,))


def along_the_batch(story: Story) -> Iterator[tuple[None, Finding]]:
    """Softmaxes over the rows of a batch, where each row is read as the probabilities of classes."""
    seen: set[SourceLine | None] = set()
    for entry in story.entries.values():
        if isinstance(entry.remark, AlongRows) and entry.line not in seen and read_as_classes(story, entry):
            seen.add(entry.line)
            yield None, other_axis(story, entry, 0)


def read_as_classes(story: Story, entry: Entry) -> bool:
    """Whether the class of each row is picked from a matrix, or the matrix is compared with one-hot rows."""

    def onward(mark: int) -> list[int]:
        return [use.mark for use in story.users.get(mark, ()) if use.shape == entry.shape]

    for mark in walk([entry.mark], onward):
        for use in story.users.get(mark, ()):
            others = [story.entries[below] for below in use.inputs if below != mark]
            one_hot = [o.shape == entry.shape and not o.requires and o.size.norm**2 == entry.shape[0] for o in others]
            picks = kind_of(use.name) == "Gather" and others and others[0].shape == (entry.shape[0], 1)
            if picks or (kind_of(use.name) == "Index" and len(others) > 1) or any(one_hot):
                return True
    return False


def other_axis(story: Story, softmax: Entry, axis: int) -> Finding:
    """A softmax over another dimension than that of the classes."""
    line, classes = softmax.line, str(min(1, len(softmax.shape) - 1))
    names = ("log_softmax", "LogSoftmax") if "Log" in softmax.name else ("softmax", "Softmax")
    message = f"{story.doing(softmax)} makes probabilities of the {softmax.shape[axis]} entries along dimension "
    message += f"{axis}, not of the classes"
    call, tree, patch, fix = edits.found(story, line, names[0]), story.tree(line), None, f"use dim={classes}"
    if call is None and (call := next(tree.calls(names[1]), None)) is not None:
        fix += f" at line {call.lineno}"
    if call is not None:
        at = int(called(call) == names[0] and call.args[:1] == [edits.operand_of(call, story.dialect())])
        edit = tree.with_keyword(call, "dim", classes)
        patch = tree.patch(tree.replaced(call.args[at], classes) if len(call.args) > at else edit)
    return story.find("other-axis", None, line, message, AtNode(softmax.name), fix=fix, patches=(patch,))


def divergence(story: Story, entry: Entry) -> Entry | None:
    """The softmax that kl_div takes for logarithms, where an operation is its product."""
    if kind_of(entry.name) != "Mul" or not entry.requires:
        return None
    sources = [story.through(mark, "views") for mark in entry.inputs if story.entries[mark].requires]
    if not sources or any(kind_of(source.name) != "Softmax" for source in sources):
        return None
    node, layer = story.node(entry.line), entry.layer
    known = (isinstance(node, ast.Call) and called(node) == "kl_div") or (layer and layer.kind == "KLDivLoss")
    users, line = story.users, entry.line
    composite = walk([entry.mark], lambda mark: [use.mark for use in users.get(mark, ()) if use.line == line])
    read = [story.entries[below] for mark in composite for below in story.entries[mark].inputs] if known else []
    logs = any("LogSoftmax" in each.name and not each.requires for each in read)  # the softmax is the target's
    return sources[0] if known and not logs else None


def not_logarithms(story: Story, loss: Entry, softmax: Entry | None) -> Finding:
    """A loss that wants logarithms of probabilities and gets probabilities, raw outputs, or those of another axis."""
    evidence, line, patch = AtNode(loss.name), loss.line, None
    below = softmax or story.through(loss.inputs[0], "views")
    name = "kl_div" if kind_of(loss.name) == "Mul" else "nll_loss"
    message = f"{name} at {story.at(line)} takes logarithms of probabilities, and {story.doing(below)} gives "
    if softmax is not None:
        call, fix = edits.found(story, softmax.line, "softmax"), f"give {name} the output of log_softmax"
        if call is not None:
            text = f"{ast.unparse(call.func).removesuffix('softmax')}log_softmax"
            patch = edits.swap(story, softmax.line, call.func, text)
        return story.find("not-logarithms", None, line, f"{message}probabilities", evidence, fix=fix, patches=(patch,))
    if loss.remark.axis is not None:
        return other_axis(story, below, loss.remark.axis)
    call, fix = edits.found(story, line, "nll_loss"), "use cross_entropy, which applies log_softmax itself"
    if call is not None:
        patch = edits.swap(story, line, call.func, ast.unparse(call.func).replace("nll_loss", "cross_entropy"))
    return story.find("not-logarithms", None, line, f"{message}numbers above 0", evidence, fix=fix, patches=(patch,))


def activation(story: Story, loss: Entry) -> Entry | None:
    """The softmax or sigmoid, or what computes one by hand, that a loss gets its probabilities from."""
    wanted = ("Sigmoid",) if loss.name.startswith("Binary") else ("Softmax", "Div", "Exp")
    line, entries = loss.line, story.entries
    composite = walk([loss.mark], lambda mark: [each for each in entries[mark].inputs if entries[each].line == line])
    first = next((entries[mark] for mark in composite if entries[mark].name.startswith("LogSoftmax")), loss)

    def onward(mark: int) -> tuple[int, ...]:
        entry = story.entries[mark]
        return entry.inputs if reads(entry.name, "views") or "LogSoftmax" in entry.name else ()

    for mark in walk(first.inputs, onward):
        entry = story.entries[mark]
        if kind_of(entry.name) in wanted and entry.seq is not None:
            return entry
    return None


def without(story: Story, source: Entry, kind: str) -> tuple[str, Patch | None]:
    """The file's text without an activation."""
    if kind not in ACTIVATIONS:
        return "", None
    name = kind.lower()
    call, line = edits.found(story, source.line, name), source.line
    inner = None if call is None else edits.operand_of(call, story.dialect())
    if call is not None and inner is not None:
        text = story.tree(line).source(inner)
        return f"give the loss the raw outputs, `{text}`: it applies {name} itself", edits.swap(story, line, call, text)
    for tree in map(story.tree, sorted(story.files())):
        for layer in tree.calls(kind):
            fix = f"leave `{tree.source(layer)}` at line {layer.lineno} out: the loss takes raw outputs, and "
            fix += f"applies {name} itself"
            outer = tree.parents.get(layer)
            if isinstance(outer, ast.Call) and layer in outer.args[1:]:
                return fix, tree.patch(tree.put(outer.args[outer.args.index(layer) - 1], layer, ""))
            head = tree.source(layer.func).removesuffix(kind)
            return fix, tree.patch(tree.replaced(layer, f"{head}Identity()"))
    return "", None


# --- terms that are constants ---------------------------------------------------------------------------------


def constants(story: Story) -> Iterator[tuple[None, Finding]]:
    """Terms of a loss that come from the parameters and have no history: they move nothing."""
    seen: set[SourceLine | None] = set()
    for root in sorted(story.roots()):
        for mark in sum_terms(story, root):
            entry = story.entries[mark]
            if entry.requires or entry.line in seen:
                continue
            end = story.end_above(mark)
            before = [s.seqs for s in story.watch.sweeps if s.accumulate and s.time < root]
            if end is None or any(story.entries[mark].seq in seqs for mark in end.entry.inputs for seqs in before):
                continue  # it was a part of an earlier loss, and is only carried on
            if not any(leaf in story.held for leaf in story.leaves_above(end.entry.mark)):
                continue
            seen.add(entry.line)
            what = "has no graph: " + end.what if end.reason == "no-create-graph" else end.what
            name = story.called(mark)
            message = f"the term {name} of the loss is a constant for the parameters and moves nothing: {what} at "
            message += f"{story.at(end.line)}"
            fix, patches = edits.of_end(story, end)
            reason = end.reason if end.reason == "no-create-graph" else "constant-term"
            yield None, story.find(reason, None, end.line, message, fix=fix, patches=patches)


def lost_on_the_way(story: Story) -> Iterator[tuple[None, Finding]]:
    """Values without a history that a loss combines with the model's: derivatives, as of a PDE, or draws of an encoder.

    A draw whose log-probability is in the loss (REINFORCE) is meant to have none.
    """
    seen: set[tuple[SourceLine | None, str]] = set()
    for lost in list(story.entries.values()):
        if lost.seq is not None or (lost.line, lost.name) in seen or lost.inside or not story.held:
            continue
        seen.add((lost.line, lost.name))
        end = story.end_at(lost)
        if end is None or not (end.reason in ("no-create-graph", "sampled") or scales_noise(story, lost)):
            continue

        def onward(mark: int) -> list[int]:
            entry = story.entries[mark]
            return [] if entry.requires else [use.mark for use in story.users.get(mark, ())]

        joins = [entry for entry in map(story.entries.__getitem__, walk([lost.mark], onward)) if entry.requires]
        if not joins or joins[0].mark not in story.leading():
            continue
        joined, (fix, patches) = joins[0], edits.of_end(story, end)
        if end.reason != "no-create-graph":
            above = story.ancestors_of(lost.mark)
            read = [story.ancestors_of(m) for join in joins for m in join.inputs if story.entries[m].requires]
            decodes = all(map(above.isdisjoint, read)) and not all(map(story.held.isdisjoint, read))
            if patches and decodes and any(story.arrivals.get(mark) for mark in above & story.held):
                message = f"no gradient comes through the draw at {story.at(lost.line)}: {end.what}, and what "
                message += f"{story.at(joined.line)} makes of it trains nothing before it"
                yield None, story.find(end.reason, None, lost.line, message, fix=fix, patches=patches)
        elif joined.shape and kind_of(joined.name) in ("Add", "Sub"):
            if all(story.entries[mark].seq is not None for mark in joined.inputs if story.entries[mark].requires):
                message = f"{story.at(joined.line)} adds a constant: {end.what} at {story.at(lost.line)}"
                yield None, story.find("no-create-graph", None, lost.line, message, fix=fix, patches=patches)


def scales_noise(story: Story, value: Entry) -> bool:
    """Whether noise times something trained is in a value, as in a draw that is reparametrised by hand."""
    for entry in map(story.entries.__getitem__, story.ancestors_of(value.mark)):
        if kind_of(entry.name) == "Mul":
            for noise, scale in (entry.inputs, entry.inputs[::-1]) if len(entry.inputs) == 2 else ():
                line = story.entries[noise].line
                if story.entries[noise].role == "leaf" and line is not None and "randn" in line.text:
                    return not story.held.isdisjoint(story.ancestors_of(scale))
    return False


def sum_terms(story: Story, root: int) -> Iterator[int]:
    """The numbers that are added up, with or without a factor, to a loss."""

    def onward(mark: int) -> tuple[int, ...]:
        entry = story.entries[mark]
        if not entry.requires or entry.role != "operation" or entry.shape or not reads(entry.name, "linear"):
            return ()
        summed = kind_of(entry.name) in ("Add", "Sub")  # of a product only the factor with a history goes on
        below = [story.entries[mark] for mark in entry.inputs]
        return tuple([each.mark for each in below if not each.shape and (summed or each.requires)])

    return (mark for mark in walk([root], onward) if mark != root)

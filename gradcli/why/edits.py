"""Fixes as edits of the user's own text: a sentence with the file's own names, and the patches that may do it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from gradcli.recording.runs.source_tree import ATOMS, called, dotted
from gradcli.why.fixes import Dialect
from gradcli.why.readings import kind_of, reads
from gradcli.why.story import walk

if TYPE_CHECKING:
    from gradcli.base.results.findings import Patch
    from gradcli.recording.runs.source_lines import SourceLine
    from gradcli.recording.runs.source_tree import SourceTree
    from gradcli.recording.runs.tensors import Entry
    from gradcli.why.story import End, Story

CHOOSING = ("where", "masked_fill", "masked_fill_", "masked_select")  # by a condition
RANKING = ("topk", "sort", "max", "min", "mode", "median", "kthvalue")  # give values and places
TAKE_PLACES = re.compile(
    "bincount|embedding|gather|index_(add|put|select)_?|one_hot|scatter(_add)?_?|take(_along_dim)?"
)
WITHOUT_RSAMPLE = ("bernoulli", "binomial", "categorical", "geometric", "multinomial", "one_hot", "poisson")


class StopPlace(NamedTuple):
    """Where a file stopped: the line, the syntax of its file, its statement, the expression that ran, and the error."""

    line: SourceLine
    tree: SourceTree
    statement: ast.stmt
    node: ast.expr | None
    error: str


class Fix(NamedTuple):
    """What to do: a sentence, empty for the usual one, and patches."""

    text: str = ""
    patches: tuple[Patch | None, ...] = ()


def swap(story: Story, line: SourceLine | None, node: ast.expr, text: str) -> Patch:
    """A patch that puts a text in the place of an expression."""
    tree = story.tree(line)
    return tree.patch(tree.replaced(node, text))


def found(story: Story, line: SourceLine | None, *names: str) -> ast.Call | None:
    """The call of one of some functions that ran at a line: the expression itself, or the only one in its statement."""
    node, statement = story.node(line), story.statement(line)
    if isinstance(node, ast.Call) and called(node) in names:
        return node
    inner = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and called(n) in names] if statement else []
    return inner[0] if len(inner) == 1 else None


def keyword_patch(story: Story, line: SourceLine | None, name: str, keyword: str, value: str) -> Patch | None:
    """A patch that gives the call of a function at a line a keyword argument."""
    return given(story.tree(line), found(story, line, name), keyword, value)


def given(tree: SourceTree, call: ast.Call | None, keyword: str, value: str) -> Patch | None:
    """A patch that gives a call, if there is one, a keyword argument."""
    return None if call is None else tree.patch(tree.with_keyword(call, keyword, value))


def operand_of(call: ast.Call, dialect: Dialect) -> ast.expr | None:
    """The first operand of a function, or what a method belongs to."""
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value) not in dialect.namespaces:
        return call.func.value
    return call.args[0] if call.args else None


# --- ends of ways ---------------------------------------------------------------------------------------------


def of_end(story: Story, end: End) -> Fix:
    """The fix for a place at which a gradient ends."""
    line = end.entry.line
    if line is None:
        return Fix()
    if end.reason == "detached":
        return _undone(story, line, "detach", "data", "stop_gradient")
    if end.reason == "as-number":
        if end.what.startswith("numpy"):
            return Fix("compute with torch's functions: those of NumPy know no gradients; numpy() shows results")
        return _undone(story, line, "item", "tolist", "float")
    if end.reason == "no-create-graph":
        fix = f"pass create_graph=True to torch.autograd.grad() at {story.place(line)}"
        return Fix(fix, (keyword_patch(story, line, "grad", "create_graph", "True"),))
    return {
        "rewrapped": _rewrapped,
        "no-grad": without_mode,
        "mode-left": _mode_left,
        "sampled": sampled,
        "step-function": step_function,
        "inference": without_mode,
    }[end.reason](story, end.entry)


def _undone(story: Story, line: SourceLine, *names: str) -> Fix:
    """Leave `.detach()`, `.data` or `.item()` out."""
    node = story.node(line)
    call = node if isinstance(node, (ast.Call, ast.Attribute)) else found(story, line, *names)
    tree = story.tree(line)
    inner: ast.expr | None = None
    if isinstance(call, ast.Call) and called(call) in names:
        inner = operand_of(call, story.dialect(line))
    elif isinstance(call, ast.Attribute) and call.attr in names:
        inner = call.value
    if inner is None or call is None:
        return Fix()
    match inner:  # of a straight-through estimator only the difference is detached
        case ast.BinOp(x, ast.Add(), ast.BinOp(_, ast.Sub(), other) as change) if tree.source(x) == tree.source(other):
            text = f"{tree.bracketed(x)} + {story.dialect(line).constant(tree.source(change))}"
            return Fix(f"detach the difference only: `{text}`", (swap(story, line, call, text),))
    outer = tree.parents.get(call)
    if isinstance(outer, ast.Call) and called(outer) in ("Variable", "Parameter") and call in outer.args:
        call = outer  # it would be a leaf without a history again
    edits = [tree.replaced(call, tree.inlined(call, inner))]
    keeping = next(tree.around(call, ast.Call), None)
    if keeping is not None and called(keeping) == "append" and isinstance(keeping.func, ast.Attribute):
        name = dotted(keeping.func.value).rpartition(".")[2]  # of `self`, or of the object elsewhere
        makers = [c for c in tree.calls("tensor", "FloatTensor", "as_tensor") if len(c.args) == 1]
        makers = [maker for maker in makers if dotted(maker.args[0]).rpartition(".")[2] == name]
        edits += [tree.replaced(maker.func, "torch.stack") for maker in makers]
    others = earlier_uses(story, line, call)
    if not others:
        return Fix("", (tree.patch(*edits),))
    edits += [tree.replaced(use, f"{use.id}.detach()") for use in others]
    fix = f"use the tensor itself in the loss that trains it, and `{others[0].id}.detach()` at line {others[0].lineno}"
    return Fix(fix, (tree.patch(*edits),))


def earlier_uses(story: Story, line: SourceLine, value: ast.expr) -> list[ast.Name]:
    """The uses of a name that are for another loss than its last: a backward stands between."""
    tree, statement = story.tree(line), story.statement(line)
    if not isinstance(statement, ast.Assign) or statement.value is not value:
        return []
    block = tree.block(statement)
    rest, name = block[block.index(statement) + 1 :], dotted(statement.targets[0])
    using = [s for s in rest if name in {dotted(node) for node in ast.walk(s)}]
    backwards = [s.line.number for s in story.watch.sweeps if s.accumulate and s.line and s.line.file == line.file]
    if not name or not using or not any(using[0].lineno < number < using[-1].lineno for number in backwards):
        return []
    return [node for s in using[:-1] for node in tree.reads(s, name) if isinstance(node, ast.Name)]


def _rewrapped(story: Story, entry: Entry) -> Fix:
    """Use what was computed, not a copy of its numbers."""
    line = entry.line
    call = found(story, line, "tensor", "as_tensor", "Parameter", "FloatTensor")
    if call is None or not call.args or line is None:
        return Fix()
    tree, data = story.tree(line), call.args[0]
    names = tree.assignments(data.id) if isinstance(data, ast.Name) else []
    listed = any(isinstance(getattr(s, "value", None), (ast.List, ast.ListComp, ast.Tuple)) for s in names)
    if isinstance(data, ast.Name) and (listed or len(entry.inputs) > 1):
        items = data.id
    elif isinstance(data, (ast.List, ast.Tuple)):
        items = f"[{', '.join([stacked(tree, each) for each in data.elts])}]"
    elif isinstance(data, ast.GeneratorExp):
        items = f"[{tree.source(data)[1:-1]}]"
    else:
        items = tree.source(data) if isinstance(data, ast.ListComp) else ""
    if items:
        shapes = {story.entries[mark].shape for mark in entry.inputs}  # each of one entry, which torch.tensor() unpacks
        how = "torch.cat" if shapes == {(1,)} else "torch.stack"
        text = f"{how}({items})" + ("" if shapes <= {(), (1,)} else ".flatten()")
        return Fix(f"use {how}, which keeps the history: `{text}`", (swap(story, line, call, text),))
    text = tree.source(data)
    how = f"use the computed tensor itself: `{text}`"
    if called(call) == "Parameter":
        how += "; nn.Parameter() makes a new leaf and leaves the history behind"
    return Fix(how, (swap(story, line, call, tree.inlined(call, data)),))


def stacked(tree: SourceTree, node: ast.expr) -> str:
    """An item of a list as a tensor: rows are stacked, and plain numbers wrapped."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return f"torch.stack([{', '.join([stacked(tree, each) for each in node.elts])}])"
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return f"torch.tensor({tree.source(node)})" if isinstance(number, ast.Constant) else tree.source(node)


def without_mode(story: Story, entry: Entry) -> Fix:
    """Take the line out of the block, or the decorator away."""
    switch, tree, rule = entry.switch, story.tree(entry.line), story.rule(entry)
    marking = [s for s in rule.body if "mark_non_differentiable" in tree.source(s)] if rule is not None else []
    if marking:
        text = tree.source(marking[0])
        fix = f"leave `{text}` at line {marking[0].lineno} out: it says that the result has no gradient"
        return Fix(fix, (tree.patch(tree.removed(marking[0])),))
    if rule is not None:
        once = [d for d in rule.decorator_list if "once_differentiable" in tree.source(d)]
        fix = "take @once_differentiable away, if each operation of the backward has a derivative of its own"
        fix = fix if once else "return it from forward: what it keeps elsewhere has no history"
        return Fix(fix, (tree.patch(*map(tree.undecorated, once)),) if once else ())
    if switch is None or switch.line is None:
        return Fix()
    tree = story.tree(switch.line.file)
    mode = "inference_mode" if entry.mode == "inference" else "no_grad"
    if switch.how == "decorator":
        fix = f"take the decorator `{switch.line.text}` at {story.place(switch.line)} away, or compute what needs "
        fix += "a gradient outside"
        decorators = [d for f in ast.walk(tree.root) if isinstance(f, ast.FunctionDef) for d in f.decorator_list]
        written_there = [d for d in decorators if d.lineno == switch.line.number]
        return Fix(fix, (tree.patch(*map(tree.undecorated, written_there)),) if written_there else ())
    if switch.how == "library" and "checkpoint" in switch.line.text:
        fix = "pass use_reentrant=False: else nothing is recorded where no input requires grad"
        return Fix(fix, (keyword_patch(story, switch.line, "checkpoint", "use_reentrant", "False"),))
    if switch.how == "library":
        return Fix(f"compute it otherwise: {switch.line.text} works under no_grad")
    block = story.statement(switch.line)
    if not isinstance(block, ast.With):
        return Fix()
    fix = f"move the line out of the {mode} block of {story.place(switch.line)}"
    if mode == "inference_mode":
        fix = f"compute it outside: {fix}; what is made inside can never be differentiated"
    else:
        fix += ", or wrap it in torch.enable_grad()"
    return Fix(fix, (tree.unindented(block),) if len(block.items) == 1 else ())


def _mode_left(story: Story, entry: Entry) -> Fix:
    """A `with` block in the place of set_grad_enabled(False)."""
    line = None if entry.switch is None else entry.switch.line
    statement, tree = story.statement(line), story.tree(line)
    if statement is None:
        return Fix()
    block = tree.block(statement)
    rest = block[block.index(statement) + 1 :]
    used = next((at for at, s in enumerate(rest) if entry.line is not None and tree.within(entry.line.number, s)), None)
    rest = rest[:used]  # what the loss needs stays outside
    fix = f"write `with torch.no_grad():` around what needs no gradient, in the place of {story.place(line)}: it "
    fix += "ends with the block"
    if not rest:
        return Fix(fix, (tree.patch(tree.removed(statement)),) if used == 0 else ())
    if rest[0].lineno == statement.lineno:
        return Fix(fix)
    edits = [tree.replaced(statement, "with torch.no_grad():")]
    for number in range(rest[0].lineno, (rest[-1].end_lineno or 0) + 1):
        if tree.lines[number - 1].strip():
            edits.append(tree.replaced(statement, "    ")._replace(first=number, start=0, last=number, stop=0))
    return Fix(fix, (tree.patch(*edits),))


def sampled(story: Story, entry: Entry) -> Fix:
    """A draw that is reparametrised."""
    line, via, tree = entry.line, entry.via, story.tree(entry.line)
    call = found(story, line, "sample", "normal", "bernoulli", "multinomial", "poisson")
    drawn = via is not None and via.co_name == "sample" and not any(w in via.co_filename for w in WITHOUT_RSAMPLE)
    if drawn and call is not None and isinstance(call.func, ast.Attribute):
        text = f"{tree.source(call.func.value)}.rsample"
        fix = "draw with rsample(), which is reparametrised: its result has a gradient for the parameters"
        return Fix(fix, (tree.patch(tree.replaced(call.func, text)),))
    if entry.name.startswith("Normal") and call is not None and len(call.args) >= 2:
        mean, deviation = (tree.bracketed(node) for node in call.args[:2])
        like = mean if not isinstance(call.args[0], ast.Constant) else deviation
        text = f"{mean} + {deviation} * torch.randn_like({like})"
        outer = tree.parents.get(call)
        patch = swap(story, line, call, text if isinstance(outer, ast.stmt) else f"({text})")
        return Fix(f"draw with a reparametrised sample: `{text}`", (patch,))
    return Fix(story.dialect(line).relaxed)


def step_function(story: Story, entry: Entry) -> Fix:
    """A straight-through estimator with the file's own expression; in the place of a comparison what it compares."""
    line, node = entry.line, story.node(entry.line)
    tree, dialect = story.tree(line), story.dialect(line)
    if isinstance(node, ast.Compare):
        value, outer = tree.source(node.left), tree.parents.get(node)
        if isinstance(outer, ast.Subscript) or (isinstance(outer, ast.Call) and called(outer) in CHOOSING):
            return Fix(f"weigh with a smooth function, such as the sigmoid of `{value}`: a condition has no derivative")
        fix = f"use `{value}` itself, a smooth substitute (sigmoid, softmax), or a straight-through estimator: "
        fix += f"x + {dialect.constant('hard - x')}"
        return Fix(fix, (swap(story, line, node, value),))
    if not isinstance(node, ast.Call):
        return Fix()
    if called(node) in RANKING:
        return Fix("use the values, the first of the two results: places in a tensor are whole numbers")
    inner = operand_of(node, dialect)
    if inner is not None and called(node) in ("round", "floor", "ceil", "sign", "trunc", "sgn"):
        value, hard = tree.bracketed(inner), tree.source(node)
        text = f"{value} + {dialect.constant(f'{hard} - {value}')}"
        outer = tree.parents.get(node)
        fix = f"use a smooth substitute, or a straight-through estimator: `{text}`"
        return Fix(fix, (swap(story, line, node, text if isinstance(outer, ast.stmt) else f"({text})"),))
    if inner is not None and called(node) in ("argmax", "argmin"):
        value = tree.source(inner)
        fix = f"leave {called(node)} out of the loss, it is for counting what is right: give `{value}` itself to "
        fix += "cross_entropy or the like, or weigh with its softmax"
        return Fix(fix)
    if inner is not None and called(node) in ("astype", "int32", "int64", "long", "int", "short", "byte", "bool"):
        statement, scope, value = story.statement(line), tree.scope(node), tree.source(inner)
        name = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
        slices = [part.slice for part in ast.walk(scope) if isinstance(part, ast.Subscript)]
        calls = [n for n in ast.walk(scope) if isinstance(n, ast.Call) and TAKE_PLACES.fullmatch(called(n))]
        slices += [argument for call in calls for argument in call.args]
        if any(tree.reads(part, name) or node in ast.walk(part) for part in slices):
            return Fix("interpolate between the entries beside it: a whole number that chooses one has no derivative")
        fix = f"keep it a float: `{value}` itself; whole numbers have no derivative"
        return Fix(fix, (swap(story, line, node, tree.inlined(node, inner)),))
    return Fix()


def log_softmax(story: Story, log: Entry) -> Fix | None:
    """log_softmax in the place of the logarithm of a softmax, with the file's own expression."""
    below, node = story.through(log.inputs[0], "picks"), story.node(log.line)
    if kind_of(below.name) != "Softmax" or not below.calm or log.line is None or below.line is None:
        return None
    tree, call, fix = story.tree(log.line.file), found(story, below.line, "softmax"), "use log_softmax, which does not "
    layers = [*tree.calls("Softmax")] if below.layer is not None and below.layer.kind == "Softmax" else []
    maker = layers[0] if len(layers) == 1 else call
    inner = operand_of(node, story.dialect()) if isinstance(node, ast.Call) else None
    if maker is None or inner is None or node is None or below.line.file != log.line.file or len(layers) > 1:
        return None

    def onward(mark: int) -> list[int]:
        return [use.mark for use in story.users.get(mark, ()) if reads(use.name, "picks")]

    same = [entry.mark for entry in story.entries.values() if (entry.line, entry.name) == (below.line, below.name)]
    uses = [use for mark in walk(same, onward) for use in story.users.get(mark, ()) if not reads(use.name, "picks")]
    head, whole = tree.source(maker.func), tree.source(maker)
    name, rest = f"{head[: -len('softmax')]}{'LogSoftmax' if layers else 'log_softmax'}", whole[len(head) :]
    logs, text = {story.node(use.line) for use in uses if kind_of(use.name) == "Log"}, f"{name}{rest}"
    taken = {each: operand_of(each, story.dialect()) for each in logs if isinstance(each, ast.Call)}
    if all(kind_of(use.name) == "Log" for use in uses) and len(taken) == len(logs):
        edits = [tree.replaced(e, tree.inlined(e, v).replace(whole, text)) for e, v in taken.items() if v is not None]
        edits += [] if any(text in edit.text for edit in edits) else [tree.replaced(maker.func, name)]
        return Fix(f"{fix}underflow: `{text}`, and leave log out", (tree.patch(*edits),))
    statement, argument = story.statement(below.line), operand_of(call, story.dialect()) if call is not None else None
    if not isinstance(statement, ast.Assign) or call is None or argument is None or len(statement.targets) > 1:
        return None
    after = story.statement(log.line)
    assigned, scores = dotted(statement.targets[0]), tree.source(argument)
    if after is None or tree.scope(after) is not tree.scope(statement) or not tree.reads(inner, assigned):
        return None
    edits, kept = [], isinstance(argument, ast.Name) and after not in tree.assignments(argument.id)
    later = tree.assignments(scores, tree.scope(statement)) if kept else ()
    if not kept or any(statement.lineno < other.lineno <= after.lineno for other in later):
        scores = "logits" if "logits" not in tree.text else "scores_before"
        edits += [tree.inserted(statement, f"{scores} = {tree.source(argument)}"), tree.replaced(argument, scores)]
    old, axis = tree.source(argument), [*maker.args, *[keyword.value for keyword in maker.keywords]]
    method = isinstance(call.func, ast.Attribute) and argument is call.func.value
    text = name.replace(old, scores, 1) + rest if method else name + rest.replace(old, scores, 1)
    text = f"torch.log_softmax({scores}, {', '.join(map(tree.source, axis)) or -1})" if layers else text
    place = re.sub(rf"\b{re.escape(assigned)}\b", lambda _: text, tree.source(inner))
    return Fix(f"{fix}underflow: `{text}`", (tree.patch(*edits, tree.replaced(node, place)),))


def uncopied(story: Story, copy: Entry) -> Fix:
    """The tensors themselves in the place of copies of them."""
    node, tree = story.node(copy.line), story.tree(copy.line)
    if node is None:
        return Fix()
    inner, outer = tree.chained(node, "clone", "detach", "data", "requires_grad_", "state_dict", "values")
    text, whole = tree.source(inner), tree.source(outer)
    text += ".parameters()" if ".state_dict()" in whole else ""
    kept = (tree.patch(tree.replaced(outer, text)),) if whole.endswith("values()") or ".state" not in whole else ()
    return Fix(f"give the optimizer the tensors themselves: `{text}`, not `{whole}`", kept)


# --- leaves and updates ---------------------------------------------------------------------------------------


def require(story: Story, entry: Entry) -> Patch | None:
    """`requires_grad_()` on the expression that made a leaf."""
    statement = story.statement(entry.line)
    if not isinstance(statement, ast.Assign) or entry.role != "leaf":
        return None
    text = f"{story.tree(entry.line).bracketed(statement.value)}.requires_grad_()"
    return swap(story, entry.line, statement.value, text)


def leaf_last(story: Story, entry: Entry, name: str) -> Fix:
    """requires_grad_() after the last operation, with the file's own expression."""
    statement, tree = story.statement(entry.line), story.tree(entry.line)
    if not isinstance(statement, ast.Assign):
        return Fix()
    value = statement.value
    where = [value]
    for other in tree.assignments(dotted(statement.targets[0]), tree.scope(statement)):
        if isinstance(other, ast.Assign) and other.lineno < statement.lineno:
            where.insert(0, other.value)
    for node in (node for each in reversed(where) for node in ast.walk(each)):
        if not isinstance(node, ast.Call):
            continue
        if called(node) == "requires_grad_" and isinstance(node.func, ast.Attribute):
            shorter = tree.replaced(node, tree.source(node.func.value))
            break
        keyword = next((k for k in node.keywords if k.arg == "requires_grad"), None)
        if keyword is not None:
            others = [*map(tree.source, node.args), *[tree.source(k) for k in node.keywords if k is not keyword]]
            shorter = tree.replaced(node, f"{tree.source(node.func)}({', '.join(others)})")
            break
    else:
        return Fix()
    inside = tree.within(shorter.first, value) and value.lineno == shorter.first
    text = tree.source(value)
    if inside:
        base = value.col_offset
        data = text.encode()
        text = (data[: shorter.start - base] + shorter.text.encode() + data[shorter.stop - base :]).decode()
    last = ast.parse(text, mode="eval").body
    whole = f"{text if isinstance(last, ATOMS) else f'({text})'}.requires_grad_()"
    edits = [tree.replaced(value, whole)] if inside else [shorter, tree.replaced(value, whole)]
    fix = f"make the leaf last: `{name} = {whole}`"
    fix += "" if inside else f", without requires_grad at line {shorter.first}"
    return Fix(f"{fix}; a result of an operation is not a leaf", (tree.patch(*edits),))


def in_place(story: Story, entry: Entry) -> Fix:
    """An update that changes the leaf itself, with the file's own expression."""
    statement, tree = story.statement(entry.line), story.tree(entry.line)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return Fix()
    zeroes = any(event.kind in ("dropped", "zeroed") for event in story.watch.events)
    guarded, shown, edits = entry.mode != "grad", "", []
    for other in tree.block(statement):
        if not isinstance(other, ast.Assign):
            continue
        name, read = dotted(other.targets[0]), {dotted(node) for node in ast.walk(other.value)}
        if other is not statement and not (name and {name, f"{name}.grad"} <= read):  # as `w = w - lr * w.grad`
            continue
        text = tree.in_place(other)
        shown = text if other is statement else shown
        lines = text if guarded else f"with torch.no_grad():\n{' ' * (other.col_offset + 4)}{text}"
        edits.append(tree.replaced(other, lines))
        if not zeroes:
            edits.append(tree.inserted(other, f"{tree.source(other.targets[0])}.grad = None", after=True))
    fix = f"change it in place{'' if guarded else ' under torch.no_grad()'}: `{shown}`"
    fix += "" if zeroes else f", then set `{tree.source(statement.targets[0])}.grad = None`"
    return Fix(fix, (tree.patch(*edits),))


def moved(story: Story, line: SourceLine | None, other: SourceLine | None, *, after: bool = True) -> Patch | None:
    """A patch that moves the statement of a line behind another one, in whose block it stands, or before it."""
    statement, place, tree = story.statement(line), story.statement(other), story.tree(line)
    if statement is None or place is None or tree is not story.tree(other) or statement is place:
        return None
    if place not in tree.block(statement) or not (after or isinstance(statement, ast.Expr)):
        return None
    return tree.patch(tree.removed(statement), tree.inserted(place, tree.source(statement), after=after))


def operand_patch(story: Story, line: SourceLine | None, name: str, change: str) -> Patch | None:
    """A patch that writes a text behind an operand of the expression that ran at a line, by the operand's name."""
    node, tree = story.node(line), story.tree(line)
    inner = [n for n in ast.walk(node) if isinstance(n, ast.expr) and n is not node] if node is not None else []
    named = next((n for n in inner if tree.source(n) in (name, name.strip("`"))), None)
    return None if named is None else swap(story, line, named, f"{tree.bracketed(named)}{change}")


def on_method(story: Story, line: SourceLine | None, method: str, text: str) -> Patch | None:
    """A patch that writes a text behind what the method that ran at a line belongs to."""
    node = story.node(line)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return None
    return swap(story, line, node.func.value, f"{story.tree(line).bracketed(node.func.value)}{text}")

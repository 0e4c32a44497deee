"""What goes wrong in programs of JAX only: lost results, values kept from a trace, and its errors."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from gradcli.recording.runs.source_lines import SourceLine, whole_line
from gradcli.recording.runs.source_tree import LOOPS, called, dotted, returned, targets
from gradcli.why import edits
from gradcli.why.fixes import Answers, JaxDialect, advised
from gradcli.why.gradients.hooks import rule_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gradcli.base.results.findings import Finding, Patch
    from gradcli.recording.runs.source_tree import SourceTree
    from gradcli.why.story import Story

UPDATES = ("set", "add", "multiply", "divide", "power", "min", "max", "apply", "mul")  # of x.at[i]
PURE = ("apply_updates", "tree_map", "stop_gradient", "device_put", "incremental_update")
GRADS = ("grad", "value_and_grad")
JITS = ("jit", "jax.jit")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def of_jax(story: Story) -> Iterator[tuple[None, Finding]]:
    """The findings that concern programs of JAX only."""
    if story.watch.tensors.dialect != "jax":
        return
    for tree in map(story.tree, sorted(story.files())):
        yield from ((None, finding) for finding in unused(story, tree))
        if story.watch.leaked:
            yield from ((None, leak(story, tree, node)) for node in stores(tree, set(story.watch.leaked)))
    yield from ((None, finding) for finding in numbers(story))


def numbers(story: Story) -> Iterator[Finding]:
    """Numbers taken out of what is differentiated, where a gradient comes on other ways."""
    for mark in sorted({mark for sweep in story.watch.sweeps for mark in sweep.targets or ()}):
        subject = story.watch.subjects.get(mark)
        lost = story.number_end(mark) if subject is not None and subject.grad == "fine" else None
        if lost is not None and lost.reason == "as-number":
            fix, patches = edits.of_end(story, lost)
            message = f"$it.grad misses a part: {lost.what} at {story.at(lost.line)}"
            yield story.find("as-number", story.called(mark), lost.line, message, fix=fix, patches=patches)


# --- results that nothing uses ---------------------------------------------------------------------------------


def unused(story: Story, tree: SourceTree) -> Iterator[Finding]:
    """Statements whose result is lost although it is all that they do."""
    functions = {node.name: node for node in ast.walk(tree.root) if isinstance(node, Function)}
    for node in ast.walk(tree.root):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call, line = node.value, whole_line(tree.file, node.lineno)
        changed = updated(call)
        if changed is not None:
            name = tree.source(changed)
            message = f"{story.at(line)} makes a changed copy that nothing uses: `{name}` stays as it is"
            text = f"{name} = {tree.source(call)}"
            patch, fix = tree.patch(tree.replaced(call, text)), f"keep it: `{text}`"
            yield story.find("result-unused", name, line, message, fix=fix, patches=(patch,))
        elif called(call) in PURE or dotted(call.func) in ("jax.tree.map", "tree.map"):
            message = f"nothing uses the result of {story.at(line)}: what it was given stays as it is"
            names = [each for each in call.args if isinstance(each, (ast.Name, ast.Attribute))]
            names = [each for each in names if called(call) != "tree_map" or each is not call.args[0]]
            first = next((each for each in names if "param" in dotted(each)), names[0] if names else None)
            text = "" if first is None else f"{tree.source(first)} = {tree.source(call)}"
            patches = (tree.patch(tree.replaced(call, text)) if text else None,)
            yield story.find("result-unused", None, line, message, patches=patches)
        elif called(call) in functions and next(tree.around(node, *LOOPS), None) is not None:
            finding = unused_step(story, tree, call, functions[called(call)], line)
            if finding is not None:
                yield finding
    yield from unread(story, tree)


def updated(call: ast.Call) -> ast.expr | None:
    """`x` of `x.at[i].set(y)`."""
    match call.func:
        case ast.Attribute(ast.Subscript(ast.Attribute(value, "at")), update) if update in UPDATES:
            return value
    return None


def unused_step(story: Story, tree: SourceTree, call: ast.Call, function: Function, line: SourceLine) -> Finding | None:
    """A call of a function of the file that takes a gradient, or is compiled, of which no result is ever used."""
    uses = [each for each in tree.calls(called(call)) if not isinstance(tree.parents.get(each), ast.Expr)]
    returns = [each for each in ast.walk(function) if isinstance(each, ast.Return) and each.value is not None]
    takes = any(called(each) in GRADS for each in ast.walk(function) if isinstance(each, ast.Call))
    updates = takes or {"g", "grad", "grads", "gradients"} & {argument.arg for argument in function.args.args}
    if uses or not updates:
        return None
    if returns:
        message = f"nothing uses what `{function.name}` returns at {story.at(line)}: its arguments stay as they are"
        name = kept_as(tree, call, function, returns[-1].value)
        patch = tree.patch(tree.replaced(call, f"{name} = {tree.source(call)}")) if name else None
        return story.find("result-unused", None, line, message, patches=(patch,))
    bound = {name for each in ast.walk(function) if isinstance(each, ast.stmt) for name in targets(each)}
    lost = [argument.arg for argument in function.args.args if argument.arg in bound]
    if not lost:
        return None
    again = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and lost[0] in map(dotted, n.targets)]
    compiled = (name in JITS for each in function.decorator_list for name in map(dotted, ast.walk(each)))
    if not again and not any(compiled):
        return None
    where = line if not again else whole_line(tree.file, again[-1].lineno)
    message = f"`{function.name}` gives `{lost[0]}` a new value at {story.at(where)}, and does not return it"
    fix = f"return it, and keep it where the function is called: `{lost[0]} = {tree.source(call)}`"
    return story.find("result-unused", None, where, message, fix=fix)


def kept_as(tree: SourceTree, call: ast.Call, function: Function, value: ast.expr | None) -> str:
    """The name that the result of a call takes the place of: that of the argument which the function gives anew."""
    arguments = dict(zip([argument.arg for argument in function.args.args], map(dotted, call.args), strict=False))
    if isinstance(value, ast.Name):
        return arguments.get(value.id) or (value.id if value.id in arguments.values() else "")
    first = next((node.id for node in ast.walk(value) if isinstance(node, ast.Name)), "") if value is not None else ""
    return "" if isinstance(value, ast.Tuple) else arguments.get(first, "")


def unread(story: Story, tree: SourceTree) -> Iterator[Finding]:
    """Names that a loop gives to updated parameters, and that nothing reads."""
    read = {node.id for node in ast.walk(tree.root) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    gradients = {"grads", "updates", "gradients"}
    for node in ast.walk(tree.root):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and "grad" in called(node.value).lower():
            gradients |= targets(node)
    for node in ast.walk(tree.root):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        names = {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
        in_loop = next(tree.around(node, *LOOPS), None) is not None
        if name not in read and in_loop and names & gradients and not name.startswith("_"):
            line = whole_line(tree.file, node.lineno)
            message = f"nothing reads `{name}`, which {story.at(line)} computes in each iteration"
            others = sorted(names - gradients)
            first = next((each for each in others if each in name), None)
            patch = None if first is None else tree.patch(tree.replaced(node.targets[0], first))
            yield story.find("result-unused", name, line, message, patches=(patch,))


# --- values of a trace -------------------------------------------------------------------------------------------


def stores(tree: SourceTree, names: set[str]) -> Iterator[ast.stmt]:
    """The statements in functions that keep something under names of the file."""
    for function in ast.walk(tree.root):
        if not isinstance(function, Function) or function.name == "__init__":
            continue
        inner = list(ast.walk(function))
        shared = {name for each in inner if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
        roots = names - {argument.arg for argument in function.args.args}
        for node in (each for each in inner if isinstance(each, ast.stmt)):
            entry = isinstance(node, ast.Assign) and any(isinstance(each, ast.Subscript) for each in node.targets)
            held = entry or not isinstance(node, ast.Assign)
            for target in targets(node):
                root, dot, _ = target.partition(".")
                if target in shared or (root == "self" and dot) or ((held or dot) and root in roots):
                    yield node
                    break


def leak(story: Story, tree: SourceTree, node: ast.stmt) -> Finding:
    """A statement that keeps a value of a trace."""
    name = next(iter(sorted(targets(node))), "it")
    line = whole_line(tree.file, node.lineno)
    message = f"{story.at(line)} keeps a value of a traced function in `{name}`: it has no numbers, and ends with the "
    message += "trace"
    return story.find("tracer-leak", name, line, message)


# --- errors ---------------------------------------------------------------------------------------------------------


def _whole_numbers(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """Whole numbers are differentiated."""
    last, tree, node = stop.line, stop.tree, stop.node
    message = f"{story.at(last)} takes a gradient with respect to {match[1]} numbers, and only floats have one"
    for arg in node.args if isinstance(node, ast.Call) else ():
        for value in [arg, *[each.value for each in tree.assigned(arg)]]:
            text, line = as_floats(tree, value, story), whole_line(last.file, value.lineno)
            if text is not None:
                where = "" if line.number == last.number else f"; they come from {story.at(line)}"
                fix = f"make them floats: `{text}`"
                patch = edits.swap(story, last, value, text)
                return story.find("integer-dtype", None, line, f"{message}{where}", fix=fix, patches=(patch,))
            if isinstance(value, ast.Dict):
                keys = [tree.source(k) for k, v in zip(value.keys, value.values, strict=True) if k and is_whole(v)]
                fix = f"write {''.join(keys[:1])} as a float, or give settings as another argument"
                if keys:
                    message += f"; {', '.join(keys)} at {story.at(line)}"
                    return story.find("integer-dtype", None, line, message, fix=fix)
    return story.find("integer-dtype", None, last, message)


def is_whole(node: ast.expr) -> bool:
    """Whether an expression is a whole number of Python."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and type(node.value) is int


def as_floats(tree: SourceTree, node: ast.expr, story: Story) -> str | None:
    """The text of an expression of whole numbers as floats."""
    if is_whole(node):
        return f"{tree.source(node)}.0"
    if isinstance(node, ast.Call) and called(node) in ("array", "asarray", "arange", "full", "ones", "zeros", "eye"):
        kind = next((each.value for each in node.keywords if each.arg == "dtype"), None)
        if kind is not None and "int" not in tree.source(kind):
            return None
        edit = tree.with_keyword(node, "dtype", "float")
        if kind is not None:
            return tree.source(node).replace(tree.source(kind), "float")
        return edit.text
    if isinstance(node, ast.Call) and called(node) == "astype" and "int" in tree.source(node):
        return f"{tree.source(node.func)}(float)"
    return None


def _not_scalar(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """A gradient of a function that gives several numbers, whole numbers or complex ones."""
    last, tree = stop.line, stop.tree
    call, function = differentiated(tree, stop.node)
    result, reason, patch = returned(function), "stopped", None
    line = last if result is None else whole_line(last.file, result.lineno)
    if match[1] == "had shape":
        what, fix = "an array: a gradient is that of one number", "reduce it to one number, with .mean() or .sum(); "
        fix += "jax.jacobian gives the derivatives of all entries"
        text = "" if result is None else f"{JaxDialect(tree).numpy}.sum({tree.source(result)})"
        patch = None if result is None else edits.swap(story, last, result, text)
    elif match[1] == "was":
        what, patch = "a function that returns several things", edits.given(tree, call, "has_aux", "True")
        fix = "pass has_aux=True: the gradient is then that of the first, and the second is returned beside it"
    elif match[1].startswith("complex"):
        what, fix = "a complex number", "return a real number: its absolute value, jnp.real(), or abs(x) ** 2"
    else:
        reason, what, fix = "step-function", f"whole numbers ({match[1]})", ""
    message = f"{story.at(last)} takes a gradient of {what}{'' if result is None else f': {story.at(line)}'}"
    return story.find(reason, None, line, message, fix=fix, patches=(patch,))


def differentiated(tree: SourceTree, node: ast.expr | None) -> tuple[ast.Call | None, ast.AST | None]:
    """The call of grad that made a function, and the function that it differentiates."""
    if not isinstance(node, ast.Call):
        return None, None
    makers = [node.func, *[each.value for each in tree.assigned(node.func)]]
    for maker in makers:
        for call in ast.walk(maker):
            if isinstance(call, ast.Call) and called(call) in GRADS and call.args:
                target = call.args[0]
                if isinstance(target, ast.Lambda):
                    return call, target
                name = dotted(target)
                for each in ast.walk(tree.root):
                    if isinstance(each, ast.FunctionDef) and each.name == name.rpartition(".")[2]:
                        return call, each
                return call, next((each.value for each in tree.assigned(target)), None)
    name = dotted(node.func)
    decorated = next((f for f in ast.walk(tree.root) if isinstance(f, ast.FunctionDef) and f.name == name), None)
    return None, decorated


def _leaked(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding:
    """A value of a trace that is over is used."""
    last, function = stop.line, re.search(r"when the value leaked was (\S+) at", stop.error)
    names = {dotted(each).partition(".")[0] for each in ast.walk(stop.statement)} - {""}
    for node in stores(stop.tree, names | set(story.watch.leaked) | {"self"}):
        finding = leak(story, stop.tree, node)
        return finding._replace(message=f"{finding.message} (the file stopped at {story.at(last)})")
    what = f" of `{function[1]}`" if function is not None else ""
    message = f"the file stopped at {story.at(last)}: a value{what} is used that ended with its trace"
    created = re.search(r"was created on line (.+?):(\d+)", stop.error)
    line = whole_line(created[1], int(created[2])) if created is not None else last
    message += f"; it was made at {story.at(line)}" if created is not None else ""
    return story.find("tracer-leak", None, line, message)


# --- values that have no numbers ----------------------------------------------------------------------------------


def _traced(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """A number is asked of a value that is traced."""
    last = stop.line
    where = re.search(r"tracing the function (\S+) at", stop.error)
    inside = f" of `{where[1]}`" if where is not None and where[1] != "<lambda>" else ""
    message = f"{story.at(last)} asks for the number of a value{inside} that JAX traces, and that has none yet"
    fix, patch = replacement(story, stop)
    return story.find("traced-value", None, last, message, fix=fix, patches=(patch,))


def replacement(story: Story, stop: edits.StopPlace) -> tuple[str, Patch | None]:
    """What computes the same with traced values."""
    last, tree, statement = stop.line, stop.tree, stop.statement
    names, numpy = tree.imports, JaxDialect(tree).numpy
    nodes = [] if stop.node is None else [stop.node, *tree.around(stop.node, ast.expr)]
    for call in nodes:
        base = dotted(call.func.value) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
        if isinstance(call, ast.Call) and base and base in (names.get("numpy"), names.get("math"), names.get("scipy")):
            assert isinstance(call.func, ast.Attribute)
            text = f"{numpy}.{call.func.attr}"
            fix = f"use JAX's function: `{text}`; those of {base} take numbers only"
            bases = [n.value for n in ast.walk(statement) if isinstance(n, ast.Attribute) and dotted(n.value) == base]
            return fix, tree.patch(*[tree.replaced(each, numpy) for each in bases])
        if isinstance(call, ast.Call) and called(call) in ("float", "int", "item", "tolist", "bool"):
            inner = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
            text = tree.source(inner)
            if isinstance(statement, (ast.If, ast.While)) and call in ast.walk(statement.test):
                test = tree.source(statement.test).replace(tree.source(call), tree.inlined(call, inner))
                return by_where(story, tree, last, statement, numpy, test)
            return f"use the value itself: `{text}`", edits.swap(story, last, call, tree.inlined(call, inner))
        if isinstance(call, ast.IfExp):
            text = f"{numpy}.where({tree.source(call.test)}, {tree.source(call.body)}, {tree.source(call.orelse)})"
            return f"choose with `{text}`", edits.swap(story, last, call, text)
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        test = tree.source(statement.test)
        return by_where(story, tree, last, statement, numpy, test)
    return "", None


def by_where(
    story: Story, tree: SourceTree, last: SourceLine, statement: ast.stmt, numpy: str, test: str
) -> tuple[str, Patch | None]:
    """An `if` statement as jnp.where, where both branches give one thing."""
    usual = f"choose with {numpy}.where({test}, a, b) or jax.lax.cond; a setting is named in static_argnames="
    if isinstance(statement, ast.While):
        return f"use jax.lax.while_loop, or a fixed number of iterations with {numpy}.where({test}, new, old)", None
    if not isinstance(statement, ast.If) or len(statement.body) != 1:
        return usual, None
    first, block = statement.body[0], tree.block(statement)
    after = block[block.index(statement) + 1] if block.index(statement) + 1 < len(block) else None
    second = statement.orelse[0] if len(statement.orelse) == 1 else after if not statement.orelse else None
    if isinstance(first, ast.Return) and isinstance(second, ast.Return) and first.value and second.value:
        text = f"return {numpy}.where({test}, {tree.source(first.value)}, {tree.source(second.value)})"
        edit = tree.replaced(statement, text)
        edit = edit._replace(last=second.end_lineno or edit.last, stop=second.end_col_offset or edit.stop)
        return f"choose with `{text}`", tree.patch(edit)
    if isinstance(first, ast.Assign) and len(first.targets) == 1:
        name = tree.source(first.targets[0])
        other = name
        if isinstance(second, ast.Assign) and statement.orelse and tree.source(second.targets[0]) == name:
            other = tree.source(second.value)
        elif statement.orelse:
            return usual, None
        text = f"{name} = {numpy}.where({test}, {tree.source(first.value)}, {other})"
        return f"choose with `{text}`", tree.patch(tree.replaced(statement, text))
    return usual, None


def _written(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding | None:
    """An entry of an array is assigned."""
    last, tree, statement = stop.line, stop.tree, stop.statement
    message = f"{story.at(last)} writes into an array of JAX, which never changes"
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    value = getattr(statement, "value", None)
    if not isinstance(target, ast.Subscript) or value is None:
        return story.find("immutable", None, last, message)
    name, place = tree.source(target.value), tree.source(target.slice)
    methods = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}
    how, operand = "set", tree.source(value)
    if isinstance(statement, ast.AugAssign):
        how = methods.get(type(statement.op), "")
        if isinstance(statement.op, ast.Sub):
            how, operand = "add", f"-({operand})"
    text = f"{name} = {name}.at[{place}].{how}({operand})"
    patches = (tree.patch(tree.replaced(statement, text)),) if how else ()
    return story.find("immutable", name, last, message, fix=f"make a changed copy: `{text}`", patches=patches)


# --- derivatives that there are not ---------------------------------------------------------------------------------


def by_call(reason: str, why: str, *names: str) -> Callable[..., Finding]:
    """The finding for an error about a function that the file calls: at its only call, else where the file stopped."""

    def answer(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding:
        last = story.watch.last
        calls = [(file, call) for file in sorted(story.files()) for call in story.tree(file).calls(*names)]
        line = whole_line(calls[0][0], calls[0][1].lineno) if calls else last
        stopped_at = f" (the file stopped at {story.at(last)})" if line != last else ""
        fix = ""
        if reason == "no-reverse" and calls and called(calls[0][1]) == "fori_loop":
            fix = "give fori_loop bounds that are plain numbers, or use lax.scan, or a loop of Python"
        return story.find(reason, None, line, f"{story.at(line)} {why}{stopped_at}", fix=fix)

    return answer


def _no_rule(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding:
    """A custom_vjp without its rule."""
    name, last = match[1], story.watch.last
    node = next((f for f in ast.walk(story.main.root) if isinstance(f, ast.FunctionDef) and f.name == name), None)
    line = last if node is None else whole_line(story.path, node.lineno)
    message = f"`{name}` at {story.place(line)} is a custom_vjp, and its rule was never given"
    return story.find("no-rule", name, line, message, fix=f"call `{name}.defvjp(forward, backward)` before it is used")


def _rule_shape(story: Story, stop: edits.StopPlace, match: re.Match[str]) -> Finding:
    """A rule that gives something of another structure or shape than the arguments have."""
    text = stop.error
    named = [call for file in sorted(story.files()) for call in story.tree(file).calls("defvjp")]
    names = [dotted(call.func.value) for call in named if isinstance(call.func, ast.Attribute)]
    line, rule = rule_line(story, names[0]) if len(names) == 1 else (None, "the rule")
    place = line or story.watch.last
    patch = None
    if "same type" in text or "shapes do not match" in text:
        fix = "return a gradient of the shape of each argument: sum it where the argument was broadcast"
        message = f"{rule} at {story.at(place)} returns a gradient of another shape or format than its argument has"
    else:
        fix = "return a tuple with one gradient for each argument, None for those that need none"
        message = f"{rule} at {story.at(place)} does not return one gradient for each argument"
        statement = story.statement(place)
        value = statement.value if isinstance(statement, ast.Return) else None
        if value is not None and place is not None and not isinstance(value, ast.Tuple):
            text = f"({story.tree(place.file).source(value)},)"
            fix, patch = f"return a tuple: `return {text}`", edits.swap(story, place, value, text)
    return story.find("stopped", None, place, message, fix=fix, patches=(patch,))


TRACED = (
    r"conversion of traced array|__array__\(\) was called on traced|Abstract tracer value|NumPy arrays from traced"
    r"|boolean indices must be concrete|Slice entries must be static|__index__\(\) method was called on traced"
)
ADVICE = {  # for errors that say the cause themselves
    r"Argument '(.+)' of type .* is not a valid JAX type": "give it as another argument, which is not differentiated, "
    "or hold it in a closure",
    r"Array has been deleted": "leave donate_argnums out, or go on with the result",
}
KNOWN: Answers = (
    ((TypeError,), r"requires real- or complex-valued inputs.*but got (\w+)", _whole_numbers),
    ((TypeError,), r"only defined for scalar-output functions. Output (had shape|was)", _not_scalar),
    ((TypeError,), r"requires real-valued outputs.*but got (\w+)", _not_scalar),
    ((Exception,), r"unexpected tracer", _leaked),
    ((TypeError, IndexError), TRACED, _traced),
    ((ValueError,), r"setting an array element with a sequence", _traced),
    ((TypeError,), r"JAX arrays are immutable", _written),
    (
        (ValueError,),
        r"Reverse-mode differentiation does not work for lax\.while_loop",
        by_call("no-reverse", "runs an unknown number of iterations: no gradient goes back", "while_loop", "fori_loop"),
    ),
    (
        (ValueError,),
        r"callbacks do not support JVP",
        by_call("no-rule", "calls Python from JAX, and that has no derivative", "pure_callback", "io_callback"),
    ),
    ((Exception,), r"Differentiation rule for '(\w+)' not implemented", by_call("no-rule", "has no derivative")),
    ((AttributeError,), r"No VJP defined for custom_vjp function (\w+)", _no_rule),
    ((TypeError, ValueError), r"Custom VJP bwd rule must produce", _rule_shape),
    ((ValueError,), r"truth value of an array with more than one element", _traced),
    *[((Exception,), pattern, advised(text)) for pattern, text in ADVICE.items()],
)

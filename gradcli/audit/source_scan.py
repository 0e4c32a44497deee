"""Finds functions with hand-written derivatives in the source of a package, by their names, without importing it."""

from __future__ import annotations

import ast
import os
import re
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gradcli.audit.pairs import APPROXIMATE, FLAG, FUNCTIONS, ONE_ARGUMENT, RETURNED, TOGETHER, Pair, matches
from gradcli.base.diagnostics import error, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    Function = ast.FunctionDef | ast.AsyncFunctionDef

SKIPPED = ("test", "tests", "testing", "docs", "doc", "examples", "example", "benchmarks", "conftest", "setup")
LARGEST = 2**22  # bytes of a file that is read
DIFFERENCES = re.compile(r"approx_(fprime|derivative|hess|jac)|finite_diff|num_?diff", re.IGNORECASE)
NOTHING = ("None", "NotImplemented", "NotImplementedError")  # returned by methods that are abstract


class Class(NamedTuple):
    """A class: its module, its name, what it defines, and its base classes as they are written."""

    module: str
    name: str
    members: dict[str, Function]
    bases: list[str]


class ScannedModule(NamedTuple):
    """A module: its functions and classes, and what the names that it imports stand for."""

    name: str
    file: str
    functions: dict[str, Function]
    classes: dict[str, Class]
    imports: dict[str, str]


def scan(target: str) -> tuple[list[Pair], list[str]]:
    """The pairs of a package or a folder, and the files that are no Python.

    Raises GradcliError GC747 where there is no such package.
    """
    modules, unread = {}, []
    for name, path, shown in files(target):
        try:
            tree = ast.parse(path.read_bytes()) if path.stat().st_size <= LARGEST else ast.Module([], [])
        except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
            unread.append(f"{path}: {problem}")
            continue
        modules[name] = module_of(name, shown, tree)
    pairs = [pair for module in modules.values() for pair in of_module(module, modules)]
    return list({(pair.derivative, pair.value, pair.flag): pair for pair in pairs}.values()), unread


def files(target: str) -> Iterator[tuple[str, Path, str]]:
    """The files of a package or a folder: the names of their modules, their paths, and these behind the folder."""
    place = Path(target)
    if place.exists():
        root = place.resolve()
        folder = root if root.is_dir() else root.parent
        while (folder / "__init__.py").exists():
            folder = folder.parent
    else:
        root, folder = installed(target)
    for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        inner = path.relative_to(root).parts if root.is_dir() else ()
        if any(part.lower() in SKIPPED or part.startswith("test_") for part in (*inner[:-1], path.stem)):
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name and all(part.isidentifier() for part in parts):
            yield name, path, str(path.relative_to(folder))


def installed(name: str) -> tuple[Path, Path]:
    """The folder or file of an installed package, and the folder that it is imported from; nothing is imported."""
    path, start = None, None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, path) if part.isidentifier() else None
        places = list(getattr(spec, "submodule_search_locations", None) or ())
        origin = Path(places[0]) if places else Path(str(spec.origin)) if spec and spec.origin else None
        if origin is None or not origin.exists():
            hint = "give the name that is imported, or a folder"
            raise error("GC747", f"there is no package or folder {visible(name, 200)}", help=hint)
        path, start = places, start or origin.parent
    assert origin is not None and start is not None
    return origin, start


def module_of(name: str, file: str, tree: ast.Module) -> ScannedModule:
    """What a module defines."""
    module = ScannedModule(name, file, {}, {}, {})
    package = name if os.path.basename(file) == "__init__.py" else name.rpartition(".")[0]
    for node in statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            start = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            module.imports.update({alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            module.imports.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            module.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            members: dict[str, Function] = {x.name: x for x in statements(node.body) if isinstance(x, ast.FunctionDef)}
            bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
            module.classes[node.name] = Class(name, node.name, members, bases)
    return module


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module or a class, those under `if` and `try` too."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from statements(node.body)
            yield from statements(node.orelse)
            for handler in getattr(node, "handlers", ()):
                yield from statements(handler.body)
        else:
            yield node


def resolved(name: str, module: ScannedModule, modules: dict[str, ScannedModule], depth: int = 5) -> Class | None:
    """The class that a name stands for in a module; None where the package does not define it."""
    if name in module.classes:
        return module.classes[name]
    first, _, rest = name.partition(".")
    if depth == 0 or first not in module.imports:
        return None
    owner, _, last = (module.imports[first] + ("." + rest if rest else "")).rpartition(".")
    return resolved(last, modules[owner], modules, depth - 1) if owner in modules else None


def members_of(
    kind: Class, modules: dict[str, ScannedModule], seen: frozenset[str] = frozenset()
) -> dict[str, Function]:
    """The methods of a class with those that it inherits from classes of its package."""
    inherited: dict[str, Function] = {}
    key = f"{kind.module}:{kind.name}"
    for base in reversed(kind.bases):
        parent = resolved(base, modules[kind.module], modules)
        if parent is not None and key not in seen:
            inherited |= members_of(parent, modules, seen | {key})
    return inherited | kind.members


# --- pairs ------------------------------------------------------------------------------------------------------


def of_module(module: ScannedModule, modules: dict[str, ScannedModule]) -> Iterator[Pair]:
    """The pairs of a module: functions by functions, and the methods of each class with those that it inherits."""
    yield from among(module.functions, set(module.functions), f"{module.name}:", module.file, False)
    for kind in module.classes.values():
        members = members_of(kind, modules)
        yield from among(members, set(kind.members), f"{module.name}:{kind.name}.", module.file, True)


def among(functions: dict[str, Function], own: set[str], prefix: str, file: str, in_class: bool) -> Iterator[Pair]:
    """The pairs among functions by their names; of a pair, at least one is defined `own`."""
    for name, function in functions.items():
        if APPROXIMATE.search(name) or is_abstract(function) or is_numerical(function):
            continue
        derivative, place, ours = prefix + name, f"{file}:{function.lineno}", parameters(function)
        solves = name == "__init__" or not FUNCTIONS.isdisjoint(ours)  # there a flag is an option of a solver
        off = () if solves else [x for x, y in ours.items() if y is not None and ast.unparse(y) in ("False", "None")]
        flag = next(filter(FLAG.fullmatch, off), "")
        if flag and name in own:
            yield Pair(derivative, derivative, f"a flag {flag}", "flag", flag=flag, sure="likely", place=place)
            continue
        for match in matches(name, in_class):
            named = next((x for x in match.names if x in functions and x != name), None)
            if named is None or is_abstract(functions[named]) or not ({name, named} & own):
                continue
            theirs = parameters(functions[named])
            missing = {x for x, default in theirs.items() if default is None} - {*ours}
            moved = any(x in theirs and [*theirs].index(x) != at for at, x in enumerate(ours))
            if missing and (moved or len(theirs) > len(ours)):
                continue  # it needs an argument that the derivative does not have
            more = sum(default is None for default in ours.values()) - len(theirs)
            if more > 1 and functions[named].args.vararg is None:
                continue  # it is made of other derivatives: a single one more may be a cotangent
            if match.rule == ONE_ARGUMENT and match.by not in theirs and (len(match.by) > 1 or not theirs):
                continue
            about = (match.rule, match.kind, match.sign, match.by)
            yield Pair(derivative, prefix + named, *about, sure="guess" if missing else "likely", place=place)
            break
        else:
            if name in own and (values := values_together(function)):
                yield Pair(derivative, derivative, "value and derivative", "together", place=place, values=values)


def parameters(function: Function) -> dict[str, ast.expr | None]:
    """The parameters of a function without `self`, each with its default."""
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(names) - len(arguments.defaults)), *arguments.defaults, *arguments.kw_defaults]
    pairs = zip([*names, *arguments.kwonlyargs], defaults, strict=True)
    return {x.arg: default for x, default in pairs if x.arg not in ("self", "cls")}


def is_abstract(function: Function) -> bool:
    """Whether a function returns nothing: it is abstract, or writes into its arguments; or is a property."""
    decorators = map(ast.unparse, function.decorator_list)
    return any(x.endswith(("property", "abstractmethod", "setter", "overload")) for x in decorators) or not any(
        returned(function)
    )


def is_numerical(function: Function) -> bool:
    """Whether all that a function returns are differences: nobody wrote that derivative by hand."""
    if not DIFFERENCES.search(ast.unparse(function)):
        return False
    assigned = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and DIFFERENCES.search(ast.unparse(node.value))
    ]
    names = "|".join((DIFFERENCES.pattern, *(rf"\b{name_of(node.targets[0])}\b" for node in assigned)))
    return all(re.search(names, ast.unparse(value), re.IGNORECASE) for value in returned(function))


def returned(function: Function) -> Iterator[ast.expr]:
    """What a function returns, without the functions that it defines."""
    nodes: list[ast.AST] = [*function.body]
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) not in NOTHING:
            yield node.value
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            nodes += ast.iter_child_nodes(node)


def values_together(function: Function) -> int:
    """How many values stand in a tuple that a function returns before what is called a derivative; 0 where none is.

    An argument or a table is none.
    """
    tables = (x for x in ast.walk(function) if isinstance(x, ast.Assign) and isinstance(x.value, ast.Dict))
    known = {*parameters(function), *(name_of(x.targets[0]) for x in tables)}
    for values in (x.elts for x in returned(function) if isinstance(x, ast.Tuple) and len(x.elts) > 1):
        first, *rest = map(name_of, values)
        if (isinstance(values[0], ast.Call) and first[:1].isupper()) or all(x.startswith("d") for x in (first, *rest)):
            continue  # an object, or derivatives alone
        others = {*known, first, *rest}
        named = [
            at
            for at, x in enumerate(rest, 1)
            if x not in known and (RETURNED.fullmatch(x) or (x[:1] == "d" and x[1:] in others))
        ]
        if (named or TOGETHER.search(function.name)) and not RETURNED.fullmatch(first):
            return named[0] if named else 1
    return 0


def name_of(node: ast.expr) -> str:
    """The last name of an expression: `grad` of `self.grad`, of `grad[:, None]` and of `grad.ravel()`."""
    while isinstance(node, (ast.Subscript, ast.Call, ast.UnaryOp)):
        node = (
            node.value if isinstance(node, ast.Subscript) else node.func if isinstance(node, ast.Call) else node.operand
        )
        if isinstance(node, ast.Attribute) and node.attr in ("ravel", "reshape", "flatten", "T", "copy", "squeeze"):
            node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

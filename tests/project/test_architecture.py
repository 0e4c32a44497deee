"""The imports of the package go in, a failure comes out for every arrow that the house does not have.

The table below is the one in gradcli/README.md: which room may import which. Rooms that are loaded by name, through
one table each, are read as imports too.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "gradcli"

# room: the rooms that it may import, beside `base` and itself
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "language": set(),
    "graph": {"language"},  # whose trees formulas of nodes are
    "primitives": {"graph", "language"},
    "transforms": {"graph"},
    "execution": {"graph"},
    "formulas": {"language", "graph", "primitives", "transforms"},
    "lowering": {"language", "graph", "primitives", "transforms", "execution"},
    "eager": {"graph", "primitives", "transforms", "execution"},
    "recording": {"eager", "graph", "primitives", "transforms"},
    "why": {"recording"},
    "checks": {
        "recording",
        "language",
        "graph",
        "primitives",
        "transforms",
        "execution",
        "formulas",
        "lowering",
    },
    "calculator": {
        "language",
        "graph",
        "primitives",
        "transforms",
        "execution",
        "formulas",
        "lowering",
        "checks",
    },
    "derivation": {"language", "graph", "primitives", "transforms", "formulas", "lowering", "checks", "calculator"},
    "batch": {"primitives", "checks", "lowering", "language", "calculator", "graph"},
    "audit": {"checks", "batch", "recording"},
    "rendering": {"graph", "primitives", "checks", "batch", "language", "audit", "recording"},
    "interfaces": {
        "language",
        "graph",
        "primitives",
        "lowering",
        "execution",
        "calculator",
        "derivation",
        "checks",
        "eager",
        "recording",
        "why",
        "batch",
        "audit",
        "rendering",
    },
    "testing": {"interfaces"},
    "pytest_plugin": {"batch", "checks", "interfaces", "language", "primitives", "rendering", "testing"},
    "__main__": {"interfaces"},
    "__init__": {"audit", "calculator", "derivation", "interfaces", "language", "recording", "rendering"},
}

# heavy libraries: the files that may import them, and only inside a function or through a lazy table
HEAVY = {
    "numpy", "scipy", "sympy", "flint", "rich", "typer", "markdown_it", "cupy", "cupyx", "jax", "dask", "distributed",
}  # fmt: skip
HEAVY_FILES: dict[str, set[str]] = {
    "numpy": {
        "execution/",
        "lowering/data_files/",
        "checks/",
        "batch/",
        "eager/",
        "why/",
        "recording/",
        "primitives/creation.py",
        "interfaces/extension.py",  # values of operations from outside are functions of NumPy's arrays
        "base/child_process.py",
        "audit/judging.py",
        "audit/pair_calls.py",
        "audit/conventions.py",
        "audit/watching/scipy_solvers.py",
        "audit/watching/jax_rules.py",
    },
    "scipy": {"execution/namespaces/", "execution/sparsity/", "calculator/sweeping.py", "rendering/matrix_files.py"},
    "cupy": {"execution/namespaces/"},
    "cupyx": {"execution/namespaces/"},
    "jax": {"execution/namespaces/", "audit/judging.py", "audit/watching/jax_rules.py"},
    "sympy": {"checks/"},
    "flint": {"checks/", "execution/namespaces/cauchy.py"},
    "rich": {"rendering/", "interfaces/output.py"},
    "markdown_it": {"batch/discovery/documents.py"},
    "typer": {"interfaces/"},
    "dask": {"batch/workers/cluster.py"},
    "distributed": {"batch/workers/cluster.py", "batch/workers/dask_worker.py"},
}
# rooms that must not read derivative rules: what judges may not look at what it judges
BLIND = {
    "checks/differences/", "checks/oracle/sympy_witness.py",
    "checks/algebra/",
    "checks/derivatives/", "checks/expansions/", "checks/evaluate/", "execution/sparsity/",
}  # fmt: skip


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


# floors inside eager, from the ground up: a file may import what stands on its own floor or below
EAGER_FLOORS: tuple[set[str], ...] = (
    {"_core"},
    {"_engine"},
    {"random", "cuda", "accelerator"},
    {"_ops", "linalg", "special"},
    {"testing"},
    {"autograd", "_trace", "utils"},
    {"nn", "optim", "func"},
    {"torch_alias"},
)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


@cache
def imported(path: Path, types: bool = False) -> list[tuple[str, bool, int]]:
    """The modules that a file imports at run time, or for types too: name, whether inside a function, line."""
    found = []
    tree = parsed(path)
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, inside = pending.pop()
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending.extend((child, inside) for child in node.orelse)
            continue
        if isinstance(node, ast.Import):
            found.extend((alias.name, inside, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            whole = [
                name if (PACKAGE.parent / (name.replace(".", "/") + ".py")).exists() else node.module for name in names
            ]
            found.extend((name, inside, node.lineno) for name in dict.fromkeys(whole))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.match(r"gradcli\.\w", node.value):
            if (PACKAGE.parent / node.value.replace(".", "/")).exists() or (
                PACKAGE.parent / (node.value.replace(".", "/") + ".py")
            ).exists():
                found.append((node.value, True, node.lineno))
        nested = inside or isinstance(node, (ast.FunctionDef, ast.Lambda))
        pending.extend((child, nested) for child in ast.iter_child_nodes(node))
    return found


@pytest.mark.parametrize("room", sorted(set(map(room_of, modules()))))
def test_arrows_point_down(room: str) -> None:
    assert room in ALLOWED, f"{room} is no room of the house: give it a floor in tests/project/test_architecture.py"
    wrong = []
    for path in [path for path in modules() if room_of(path) == room]:
        for name, _, line in imported(path):
            if not name.startswith("gradcli"):
                continue
            parts = name.split(".")
            target = parts[1] if len(parts) > 1 else "__init__"
            if target not in (room, "base", "__init__") and target not in ALLOWED[room]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line}: {room} must not import {target}")
    assert not wrong, wrong


def inside_eager() -> dict[str, dict[str, int]]:
    """For each module of eager the modules of eager that it imports, for types too, each with a line."""
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in modules()}
    found: dict[str, dict[str, int]] = {}
    for name, path in names.items():
        if name.startswith("gradcli.eager.") and path.name != "__init__.py":
            targets = {target: line for target, _, line in imported(path, types=True)}
            found[name] = {target: line for target, line in targets.items() if target in names and target != name}
    return found


def test_no_import_circle() -> None:
    """Of all modules but `__init__`; imports inside functions and for types are counted."""
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in modules()}
    files = {name: path for name, path in names.items() if path.name != "__init__.py"}
    reads = {
        name: {target for target, _, _ in imported(path, types=True) if target in files and target != name}
        for name, path in files.items()
    }
    TopologicalSorter(reads).prepare()  # CycleError names the modules of a circle


# What only shrinks: entries at the top, files in a folder, names with several meanings, parameters of a function
MOST_ENTRIES, MOST_IN_FOLDER, MOST_SHARED_MODULES, MOST_SHARED_CLASSES, MOST_WIDE = 22, 12, 3, 3, 30
FAMILIES = ("interfaces/commands", "primitives")  # folders with one file a command, a family of operations


def test_the_top_of_the_package_is_short() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.suffix in ("", ".py") and path.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES, sorted(path.name for path in entries)


def test_a_folder_holds_few_files() -> None:
    files = Counter(str(path.parent.relative_to(PACKAGE)) for path in modules() if path.name != "__init__.py")
    assert {folder: count for folder, count in files.items() if count > MOST_IN_FOLDER and folder not in FAMILIES} == {}


def test_names_have_one_meaning() -> None:
    stems = Counter(path.stem for path in modules() if path.stem not in ("__init__", "__main__"))
    shared = sorted(stem for stem, count in stems.items() if count > 1)
    assert len(shared) <= MOST_SHARED_MODULES, shared
    classes = Counter(node.name for path in modules() for node in nodes_of(path) if isinstance(node, ast.ClassDef))
    several = sorted(name for name, count in classes.items() if count > 1)
    assert len(several) <= MOST_SHARED_CLASSES, several


def test_a_function_takes_few_parameters() -> None:
    wide = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
        for path in modules()
        for node in nodes_of(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) > 8
    ]
    assert len(wide) <= MOST_WIDE, wide


def test_rooms_form_no_import_circle() -> None:
    """A room that another one may import must not import it back, through however many others."""
    TopologicalSorter(ALLOWED).prepare()


def test_checks_read_recordings_and_never_the_other_way() -> None:
    """Imports inside functions and for types are counted."""
    for path in (PACKAGE / "recording").rglob("*.py"):
        for name, _, line in imported(path, types=True):
            assert not name.startswith("gradcli.checks"), f"{path}:{line} imports {name}"


def test_records_of_runs_import_no_library_of_tensors() -> None:
    """Nor for types: what reads tensors of a library is its adaptor."""
    for path in [*(PACKAGE / "why").rglob("*.py"), *(PACKAGE / "recording" / "runs").rglob("*.py")]:
        for name, _, line in imported(path, types=True):
            assert not name.startswith(("gradcli.eager", "gradcli.recording.libraries", "torch")), f"{path}:{line}"


# room: most files, most lines; these figures only shrink
BUDGETS = {
    "checks": (68, 17_811),
    "eager": (71, 15_100),
    "execution": (43, 8_447),
    "formulas": (10, 4_706),
    "why": (20, 5_024),
}


@pytest.mark.parametrize("room", BUDGETS)
def test_a_room_stays_small(room: str) -> None:
    files = list((PACKAGE / room).rglob("*.py"))
    lines = sum([len(path.read_text(encoding="utf-8").splitlines()) for path in files])
    most_files, most_lines = BUDGETS[room]
    assert len(files) <= most_files and lines <= most_lines, (len(files), lines)


def test_floors_inside_eager() -> None:
    floors = {room: floor for floor, rooms in enumerate(EAGER_FLOORS) for room in rooms}
    for name, targets in inside_eager().items():
        own = floors[name.split(".")[2]]
        for target, line in targets.items():
            if target.startswith("gradcli.eager."):
                assert floors[target.split(".")[2]] <= own, f"{name}:{line} must not import {target}"


ROWS = {"op", "formula", "one_node", "records", "made"}  # what makes the row of an operation


def named_in(one: ast.AST, inside: bool = False) -> list[str]:
    """The names of nodes in the bodies of functions, but for documentation and rows."""
    if (
        isinstance(one, (ast.FunctionDef, ast.Call))
        and getattr(one, "name", getattr(getattr(one, "func", 0), "id", 0)) in ROWS
    ):
        return []
    if isinstance(one, (ast.Constant, ast.JoinedStr)):
        text = ast.unparse(one)
        return [text] if inside and re.search(r"Backward(\d|\{|s')|'CopySlices'", text) else []
    if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
        return []
    if isinstance(one, (ast.FunctionDef, ast.Lambda)):
        body = one.body if isinstance(one.body, list) else [one.body]
        return [name for part in body for name in named_in(part, True)]
    return [name for part in ast.iter_child_nodes(one) for name in named_in(part, inside)]


def test_rows_name_nodes_and_functions_do_not() -> None:
    example = 'def f(x):\n    """See AddBackward0."""\n    @op(node="MulBackward0")\n    def g(): pass\n'
    assert not named_in(ast.parse(example))
    assert (
        len(
            named_in(
                ast.parse(example + '    return record(x, "AddBackward0"), f"{x}Backward{1}", lambda: "CopySlices"')
            )
        )
        == 3
    )
    assert {path.name: names for path in (PACKAGE / "eager").rglob("*.py") if (names := named_in(parsed(path)))} == {}


def test_folders_of_eager_hold_about_twelve_files() -> None:
    for room in ("", "_core", "_engine", "_ops", "autograd", "func", "nn", "nn/modules", "optim", "utils"):
        files = [path for path in (PACKAGE / "eager" / room).glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= 12, room


def test_heavy_libraries_stay_in_their_files() -> None:
    wrong = []
    for path in modules():
        relative = str(path.relative_to(PACKAGE))
        for name, _, line in imported(path):
            library = name.partition(".")[0]
            if library in HEAVY and not relative.startswith(tuple(HEAVY_FILES[library])):
                wrong.append(f"{relative}:{line} imports {library}")
    assert not wrong, wrong


def test_oracles_do_not_read_derivative_rules() -> None:
    for relative in sorted(BLIND):
        place = PACKAGE / relative
        assert place.exists(), relative
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for name, _, line in imported(path):
                assert not name.startswith(("gradcli.transforms", "gradcli.formulas")), f"{path}:{line} imports {name}"
            text = path.read_text()
            for rule in (".partials", ".transpose", ".pushforward"):
                assert rule + "(" not in text and rule + "[" not in text, f"{path} reads {rule}"


def test_every_module_says_what_it_is_for() -> None:
    told = {path: ast.get_docstring(parsed(path)) or "" for path in modules()}
    assert not [str(path) for path, docstring in told.items() if len(docstring.split()) <= 5]


VAGUE = {"found", "made", "told", "given", "here", "one"}  # names that say nothing of what a variable holds


def vague_names(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """The variables and parameters of a module that have such a name, with their lines."""
    names = [
        (node.lineno, node.id if isinstance(node, ast.Name) else node.arg)
        for node in nodes
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    return [(line, name) for line, name in names if name in VAGUE]


def test_variables_are_named_for_what_they_hold() -> None:
    example = "def f(given, rows):\n    found = [one.one for one in rows]\n    return g(found, one=1)\n"
    assert sorted(vague_names(ast.walk(ast.parse(example)))) == [(1, "given"), (2, "found"), (2, "one")]
    wrong = [f"{path}:{line}: {name}" for path in modules() for line, name in vague_names(nodes_of(path))]
    assert not wrong, wrong


# What a transform may name beside `graph/vocabulary.py`: the parts that put an array together, and for speed.
NAMED = {
    "accumulation.py": {"unslice", "not_equal", "concat", "put_static", "step"},  # the last one is a parameter
    "forward.py": {"add"},
    "lifting.py": {"matmul"},
    "loop_derivatives.py": {"or"},
    "rules.py": {"where", "mul"},
    "taylor.py": {"mul", "neg", "div", "add"},
}


@pytest.mark.parametrize("path", sorted((PACKAGE / "transforms").glob("*.py")), ids=lambda p: p.name)
def test_transforms_name_no_other_operation(path: Path) -> None:
    from gradcli.primitives import catalogue

    tree = parsed(path)
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert texts & set(catalogue()) <= NAMED.get(path.name, set())


def test_few_files_name_operations() -> None:
    """What is true of an operation stands in its declaration; these are the files that name three or more: fewer only."""
    from gradcli.primitives import catalogue

    names = {name for name in catalogue() if len(name) > 2}
    naming = []
    for path in modules():
        if room_of(path) != "primitives":
            texts = [node.value for node in nodes_of(path) if isinstance(node, ast.Constant)]
            naming += [path] if len(names.intersection(text for text in texts if isinstance(text, str))) > 2 else []
    assert len(naming) <= 96, sorted(map(str, naming))


def test_nothing_runs_text() -> None:
    """One module makes functions of texts that printers of ours wrote; no other one may, and no text is run."""
    for path in modules():
        if path == PACKAGE / "execution" / "generated.py":
            assert len(re.findall(r"\bcompile\(.*# allowed: ", path.read_text())) == 1
            assert not re.search(r"\b(eval|exec|__import__)\(", path.read_text())
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, f"{path}:{node.lineno}"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                assert "pickle" not in names, f"{path}:{node.lineno}"


def test_the_architecture_stays_on_two_pages() -> None:
    """At most 120 lines and fifteen decisions, and every path in it is one."""
    text = (PACKAGE / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    decisions = [int(number) for number in re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE)]
    assert decisions == list(range(1, len(decisions) + 1)) and len(decisions) <= 15
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", text))
    rooms = [
        PACKAGE,
        PACKAGE.parent,
        *[PACKAGE / name for name in ("checks", "audit", "interfaces", "execution", "primitives")],
    ]
    missing = [name for name in named if not any((room / name).exists() for room in rooms)]
    assert len(named) > 30 and not missing


LEVELS = {"SUM", "PRODUCT", "SIGN", "POWER", "ATOM"}  # of precedence


def ranks_operators(nodes: Iterable[ast.AST]) -> bool:
    """Whether a module says itself how tightly operators bind: numbers for levels, or for operators by their signs."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets = [part for target in node.targets for part in getattr(target, "elts", [target])]
            names = {part.id.lstrip("_") for part in targets if isinstance(part, ast.Name)}
            if len(names & LEVELS) > 1:
                return True
        if isinstance(node, ast.Dict):
            ranked = {
                key.value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
                and {type(part.value) for part in ast.walk(value) if isinstance(part, ast.Constant)}
                in ({int}, {int, str})
            }
            if {"+", "*"} <= ranked:
                return True
    return False


def test_one_table_of_precedence() -> None:
    assert all(
        ranks_operators(ast.walk(ast.parse(text))) for text in ("_SUM, _POWER = 1, 2", "B = {'+': 1, '*': (2, 0)}")
    )
    tables = {path.relative_to(PACKAGE).as_posix() for path in modules() if ranks_operators(nodes_of(path))}
    assert tables == {"language/notation.py"}


# what writes formulas, but for the three places that read a text: declared templates, keys of sums, words of C that
# the file at hand uses
READ_TEXTS = {"graph/node_text.py", "formulas/index_proof.py", "rendering/code/c_code.py"}
WRITERS = ("formulas/", "graph/node_text.py", "language/notation.py", "language/trees.py", "language/unparse.py") + (
    "rendering/mathematics.py",
    "rendering/code/",
)


def test_no_regular_expression_reads_formulas() -> None:
    """Decisions are made on trees."""
    writers = {path.relative_to(PACKAGE).as_posix(): path for path in modules()}
    reading = {
        name for name, path in writers.items() if name.startswith(WRITERS) and "re" in [x[0] for x in imported(path)]
    }
    assert reading == READ_TEXTS

"""Liveness of names, from the syntax: which names are read after a loop and so have to leave it.

A block is summed up by the names that it may read before it assigns them, and by those that it assigns for certain.
"""

from __future__ import annotations

from gradcli.language import syntax as s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Names = frozenset[str]
    Summary = tuple[Names, Names]  # of a block: what it reads first, what it assigns

_NONE: Names = frozenset()


def read_behind_loops(script: s.Script, functions: Iterable[s.FunctionDef]) -> dict[s.For, tuple[Names, Names]]:
    """For each loop of a script and its functions, the names that may be read after it, and after one of its turns."""
    found: dict[s.For, tuple[Names, Names]] = {}
    functions = list(functions)
    called = frozenset().union(*[_names(one) for one in functions])
    output = any(isinstance(one, s.ExpressionStatement) for one in script.statements)
    end = called if output else called | targets(script.statements)
    for statements, live in ((script.statements, end), *((one.body, _NONE) for one in functions)):
        _mark(statements, live, {}, found)
    if called:  # a loop of the script may call functions, which read its names
        for loop, (behind, between) in found.items():
            found[loop] = behind | called, between | called
    return found


def targets(body: Iterable[s.Syntax]) -> Names:
    """The names that some statements assign to."""
    found: set[str] = set()
    waiting: list[s.Syntax] = list(body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, s.For):
            found.add(one.target.id)
            waiting += one.body
        elif isinstance(one, s.If):
            waiting += (*one.body, *one.orelse)
        elif isinstance(one, s.Assign):
            found.update(name.id for name in one.targets)
        elif isinstance(one, s.Append):
            found.add(one.name.id)
    return frozenset(found)


def _mark(
    statements: Sequence[s.Statement],
    live: Names,
    known: dict[s.Statement, Summary],
    found: dict[s.For, tuple[Names, Names]],
) -> None:
    """Take note of what is read behind each loop of a block, if `live` is read behind the block."""
    for one in reversed(statements):
        reads, assigns = _summary(one, known)
        if isinstance(one, s.For):
            again, _ = _block(one.body, known)
            between = live | again - {one.target.id}
            found[one] = live, between
            _mark(one.body, between, known, found)
        elif isinstance(one, s.If):
            _mark(one.body, live, known, found)
            _mark(one.orelse, live, known, found)
        live = reads | live - assigns


def _block(statements: Sequence[s.Statement], known: dict[s.Statement, Summary]) -> Summary:
    reads, assigns = _NONE, _NONE
    for one in statements:
        more, new = _summary(one, known)
        reads |= more - assigns
        assigns |= new
    return reads, assigns


def _summary(one: s.Statement, known: dict[s.Statement, Summary]) -> Summary:
    found = known.get(one)
    if found is None:
        if isinstance(one, s.Assign):
            own = frozenset(name.id for name in one.targets)
            reads = _names(one.value).union(*[_names(size) for size in one.shape or ()])
            found = (reads if one.operator is None else reads | own), own
        elif isinstance(one, s.If):
            (first, then), (second, other) = _block(one.body, known), _block(one.orelse, known)
            found = _names(one.test) | first | second, then & other
        elif isinstance(one, s.For):
            reads, _ = _block(one.body, known)
            found = (reads - {one.target.id}).union(*[_names(bound) for bound in one.bounds]), _NONE
        else:
            found = (_NONE if isinstance(one, s.FunctionDef) else _names(one)), _NONE
        known[one] = found
    return found


def _names(root: s.Syntax) -> Names:
    """Every name in a tree."""
    return frozenset(one.id for one in s.nodes_of(root) if isinstance(one, s.Name))

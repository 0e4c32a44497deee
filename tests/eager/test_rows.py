"""Each row of the table of operations says what PyTorch has: functions, methods, `_` forms, arguments."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import gradcli.eager
from gradcli.eager._ops.install import IN_PLACE, OPERATIONS
from gradcli.eager._ops.table import FUNCTION, LINALG, METHOD

pytestmark = pytest.mark.peers

ROWS = sorted(OPERATIONS)
# properties, and methods that are written by hand, because their first argument is another one
OTHER_METHODS = {"detach", "where", "real", "imag", "bernoulli", "multinomial"}
# `_` forms that few programs need
NO_FORM = {"bernoulli", "normal", "squeeze", "unsqueeze", "t", "transpose", "swapaxes", "swapdims"}
NO_FORM |= {"lt", "le", "gt", "ge", "eq", "ne", "less", "less_equal", "greater", "greater_equal", "not_equal"}
NO_FORM |= {"logical_not", "logical_and", "logical_or", "logical_xor"}
# the `_` form is a row of its own
FORM_IS_ROW = {"detach"}
# PyTorch has the `_` form as a method only
FORM_IS_METHOD = {"absolute", "bitwise_not", "digamma", "erfinv", "lgamma", "sign", "tril", "triu"}
# the options of every function that makes a tensor
PLACE = {"requires_grad", "dtype", "generator", "size"}
# `where(condition, input, other)` has `self` second; what PyTorch has in another spelling
OTHER_ARGUMENTS = {"where", "qr", "svd", "nonzero", "searchsorted", "tensordot"}
# PyTorch's functions of several forms, of which this package has one with all their arguments
SPLIT = {"split_size_or_sections": "split_size", "indices_or_sections": "sections"}


def arguments(function: Any) -> list[str]:
    """The names of the arguments after the first."""
    given = list(inspect.signature(inspect.unwrap(function)).parameters.values())
    return [one.name for one in given[1:] if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def schemas(torch: Any, name: str) -> list[list[str]]:
    """For each form of PyTorch's operation the names of its arguments; none for what is written in Python."""
    return [[one.name for one in form.arguments] for form in torch._C._jit_get_schemas_for_operator(f"aten::{name}")]


def names_of(library: Any) -> list[set[str]]:
    """The names of functions, of methods, and of functions of `linalg`."""
    return [set(dir(place)) for place in (library, library.Tensor, library.linalg)]


def test_names_are_where_pytorch_has_them() -> None:
    ours, theirs, wrong = names_of(gradcli.eager), names_of(pytest.importorskip("torch")), {}
    for name in ROWS:
        row = OPERATIONS[name].row
        alias = row.only == LINALG and name != row.name
        function = alias or row.only in ("", FUNCTION)
        wanted: dict[int, bool] = {}  # of function, method, function of linalg, those that the row decides
        if function or row.only == METHOD:
            wanted[0] = function
        if alias or row.only in ("", METHOD) or (row.only == FUNCTION and name not in OTHER_METHODS):
            wanted[1] = row.only != FUNCTION
        if row.only == LINALG and not alias:
            wanted[2] = True
        if any((name in ours[at], name in theirs[at]) != (there, there) for at, there in wanted.items()):
            wrong[name] = row.only
    assert not wrong


def test_forms_in_place_are_pytorchs() -> None:
    (our_functions, our_methods, _), (functions, methods, _) = map(
        names_of, (gradcli.eager, pytest.importorskip("torch"))
    )
    wrong = []
    for name in ROWS:
        form = f"{name}_"
        if name not in NO_FORM | FORM_IS_ROW and {form in our_methods, form in methods} != {
            bool(OPERATIONS[name].row.inplace)
        }:
            wrong.append(name)
        if form in our_functions - functions and name not in FORM_IS_METHOD:
            wrong.append(form)
    assert not wrong


def test_arguments_are_pytorchs() -> None:
    """Names and order, as one of PyTorch's forms has them; where several forms are one here, names only."""
    torch, wrong = pytest.importorskip("torch"), {}
    for name in ROWS:
        if name in OTHER_ARGUMENTS or name != OPERATIONS[name].row.name:
            continue
        ours = [SPLIT.get(one, one) for one in arguments(OPERATIONS[name]) if one not in PLACE]
        theirs = schemas(torch, name)
        in_one = [form for form in theirs if set(ours) <= set(form)]
        in_order = any([one for one in form if one in ours] == ours for form in in_one) or "sort" in name
        known = {one for form in theirs for one in form}
        if theirs and not (set(ours) <= known and (not in_one or in_order)):
            wrong[name] = (ours, theirs)
    assert not wrong


def test_forms_in_place_have_a_row_or_are_listed() -> None:
    torch = pytest.importorskip("torch")
    without_row = [name for name in IN_PLACE if name[:-1] not in OPERATIONS]
    assert all(hasattr(torch.Tensor, name) for name in without_row)


# what operations are called with: matrices a and b, a vector v
CALLED_WITH = ("a", "ab", "vv", "a0", "abb", "v")
# what PyTorch builds of other nodes, or names by the kind of an operand
OTHER_NODES = {
    *("bernoulli", "normal", "unique", "rsub", "xlogy", "cholesky"),
    *("diff", "matrix_power"),  # of no difference, to the power 0: a copy there
}
OF_OTHERS = {"matmul", "diag", "max", "min"}  # some of their results are those of other rows: `mm`, `maximum`


def node_of(torch: Any, name: str, letters: str) -> str | None:
    """The name of the node that an operation leaves; None for none."""
    entries = {"a": [[0.3, 0.7], [0.2, 0.9]], "b": [[0.4, 0.1], [0.6, 0.35]], "v": [0.4, 0.1]}
    xs = [torch.tensor(entries[one], requires_grad=True) if one in entries else int(one) for one in letters]
    function = next(getattr(room, name) for room in (torch, torch.linalg, torch.Tensor) if hasattr(room, name))
    found = function(*xs)
    node = getattr(found[0] if isinstance(found, tuple) else found, "grad_fn", None)
    return None if node is None else node.name()


@pytest.mark.filterwarnings("ignore")
def test_nodes_are_pytorchs_and_those_of_the_row() -> None:
    torch, compared = pytest.importorskip("torch"), 0
    for name in set(ROWS) - OTHER_NODES:
        for letters in CALLED_WITH:
            try:
                theirs = node_of(torch, name, letters)
            except (AttributeError, TypeError, RuntimeError, IndexError, ValueError):
                continue
            if theirs is None or name.endswith("_"):
                continue
            if name in ("pinv", "pinverse") and letters == "a0":  # an rcond
                continue
            ours, row = node_of(gradcli.eager, name, letters), OPERATIONS[name]
            assert ours == theirs, (name, letters)
            if row.row.nodes and name not in OF_OTHERS:
                assert ours in row.row.nodes, (name, letters)
            compared += 1
    assert compared > 250


def test_a_formula_is_called_as_a_function_of_its_arguments() -> None:
    torch = gradcli.eager
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    for found in (torch.lerp(x, y, 0.5), torch.lerp(x, weight=0.5, end=y), torch.lerp(weight=0.5, end=y, input=x)):
        assert found.tolist() == [2.0, 3.5]
    assert torch.addcmul(x, x, y, value=2).tolist() == [7.0, 22.0]
    assert torch.cumsum(y, 0, dtype=torch.float64).dtype is torch.float64
    for wrong in (lambda: torch.lerp(x, y), lambda: torch.lerp(x, y, 0.5, 1), lambda: torch.addcmul(x, x, y, scale=2)):
        with pytest.raises(TypeError):
            wrong()


# expressions of two vectors x and y and a matrix a, whose nodes save operands and parameters
SAVING = (
    *("x * y", "x / y", "x ** y", "x ** 2", "2 ** x", "a @ a", "a @ x", "x @ y", "torch.where(x > 1, x, y)"),
    *("x.clamp(0.1, 2)", "x.clamp(y, 2 * y)", "x.masked_fill(x > 1, 2.0)", "x.gather(0, torch.tensor([0, 1]))"),
    *("torch.addcmul(x, x, y)", "torch.addcdiv(x, x, y)", "torch.lerp(x, y, y)", "torch.addmm(a, a, a)", "x.sum(0)"),
    *("torch.atan2(x, y)", "a.amax(1)", "a.std(1)", "a.logsumexp(1)", "torch.bmm(a[None], a[None])", "x.mean(0)"),
)


@pytest.mark.parametrize("text", SAVING)
def test_what_a_node_saves_is_called_as_pytorch_calls_it(text: str) -> None:
    names = []
    for torch in (gradcli.eager, pytest.importorskip("torch")):
        x, y = (torch.tensor(entries, requires_grad=True) for entries in ([1.5, 0.5], [0.7, 2.0]))
        a = torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
        node = eval(text, {"torch": torch, "x": x, "y": y, "a": a}).grad_fn
        names.append({name for name in dir(node) if name.startswith("_saved_")})
    ours, theirs = names
    assert ours and ours <= theirs


def test_is_nonzero_is_the_truth_of_the_entry() -> None:
    for torch in (gradcli.eager, pytest.importorskip("torch")):
        assert [torch.tensor(entry).is_nonzero() for entry in (0.0, 2.0, -0.0)] == [False, True, False]

"""What training scripts write around their tensors works, with the results that the snippets state."""

from __future__ import annotations

import warnings
from types import ModuleType

import pytest

from gradcli.eager._core import modes
from gradcli.eager.torch_alias import aliases
from tests.support.eager_usage_snippets import USAGE
from tests.support.rows import all_rows

# snippets that end in an error of this class; the others end in none
ERRORS: dict[str, type[Exception]] = {
    "switch: unknown default device": RuntimeError,
    "switch: generator of an unknown device": RuntimeError,
    "loader: an option that is none": TypeError,
    "Function: a default without its gradient": RuntimeError,
    "Function: an unknown argument": TypeError,
    "module: functional_call with an unknown module": AttributeError,
    "module: functional_call in place of a number": TypeError,
    "module: functional_call that is strict": RuntimeError,
    "index: leading axes that are no ones": RuntimeError,
    "index: copy_ drops nothing": RuntimeError,
    "draw: randint without a bound": TypeError,
    "draw: randint without a size": TypeError,
    "draw: normal without a size": TypeError,
    "draw: normal of tensors with a size": TypeError,
    "draw: normal of a negative deviation": RuntimeError,
    "draw: normal of negative deviations": RuntimeError,
    "draw: normal_ of a negative deviation": RuntimeError,
    "draw: uniform_ of an empty range": RuntimeError,
}


def run(text: str) -> list[str]:
    """Run a snippet under `import torch`; the categories of its warnings."""
    with warnings.catch_warnings(record=True) as heard, aliases():
        warnings.simplefilter("always")
        exec(compile("import torch\n" + text, "snippet.py", "exec"), {})
    return [warning.category.__name__ for warning in heard]


@all_rows("name", USAGE)
def test_a_snippet_keeps_what_it_states(name: str) -> None:
    wanted = ERRORS.get(name)
    if wanted is None:
        run(USAGE[name])
        return
    with pytest.raises(wanted) as found:
        run(USAGE[name])
    assert str(found.value)


def submodules() -> list[tuple[ModuleType, str]]:
    """Each public package and the name of each module below it."""
    from gradcli.eager import torch_alias as finder

    known = finder.modules()
    return [(known[name.rpartition(".")[0]], name.rpartition(".")[2]) for name in known if "." in name]


def test_importing_a_module_never_hides_a_function_of_its_name() -> None:
    """`import torch.autograd.gradcheck` leaves the function `torch.autograd.gradcheck` where it is."""
    known = submodules()
    before = [getattr(package, part) for package, part in known]
    functions = [part for (_, part), value in zip(known, before, strict=True) if not isinstance(value, ModuleType)]
    assert "gradcheck" in functions
    from gradcli.eager import torch_alias as finder

    with aliases():
        for name in finder.modules():
            __import__(name)
    for (package, part), value in zip(known, before, strict=True):
        assert getattr(package, part) is value, f"{package.__name__}.{part}"


def test_what_changes_nothing_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "_said", set())
    monkeypatch.setattr(modes, "always", [False])
    loader = "from torch.utils.data import DataLoader\nd = DataLoader([1, 2], num_workers=4)\n"
    loader += "assert [b.item() for b in d] == [1, 2] and d.num_workers == 4\n"
    assert run(loader) == ["UserWarning"]
    assert run(loader) == []

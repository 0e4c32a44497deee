"""`torch.save` and `torch.load`: what is written comes back, what cannot be held is refused, and nothing is ever run."""

from __future__ import annotations

import io
import os
import random
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli.eager as torch
from gradcli import cli


def written(obj: Any) -> bytes:
    file = io.BytesIO()
    torch.save(obj, file)
    return file.getvalue()


def returned(obj: Any, **options: Any) -> Any:
    return torch.load(io.BytesIO(written(obj)), **options)


def same(one: Any, other: Any) -> bool:
    """Whether two objects are equal, with their types; tensors and arrays by format, shape, flag and entries."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        facts = [(x.dtype, x.shape, x.requires_grad) for x in (one, other)]
        return facts[0] == facts[1] and np.array_equal(one.detach().numpy(), other.detach().numpy(), equal_nan=True)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    if isinstance(one, dict):
        return [*map(repr, one)] == [*map(repr, other)] and all(
            same(x, y) for x, y in zip(one.values(), other.values(), strict=True)
        )
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(same(x, y) for x, y in zip(one, other, strict=True))
    return bool(one == other) or (one != one and other != other)


VALUES = [
    *(None, True, False, 0, -(2**80), 1.5, -0.0, 5e-324, float("inf"), float("-inf"), float("nan"), 1 - 2j, "", "é\u2603\0"),
    *(b"", b"\x00\xff", [], [1, [2, [3]]], (), (1, (2,)), {}, {1: 2, (1, 2): "x", None: 3, "a.b": {"c": []}}, {1, 2}, frozenset("a")),
    *(OrderedDict(b=1, a=2), Counter("aab"), torch.Size([1, 2]), torch.float16, torch.int64, torch.device("cpu")),
    *(np.arange(6).reshape(2, 3).T, np.float64(3), np.zeros((0, 2), np.complex64)),
    *(torch.tensor(3), torch.tensor(2.5), torch.zeros(0, 3), torch.ones(2, 3).T, torch.tensor([True]), torch.ones(1, dtype=torch.float16)),
    *(torch.tensor([1 + 2j]), torch.arange(3, dtype=torch.uint8), torch.ones(2, requires_grad=True), torch.tensor([float("nan"), 1.0])),
    *(torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(1), requires_grad=False), torch.arange(10.0)[2:8:3]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda one: f"{type(one).__name__} {one!r}"[:40])
def test_what_is_written_comes_back(value: Any) -> None:
    assert same(returned(value), value)
    assert same(returned({"x": [value, value]}), {"x": [value, value]})


def test_a_computed_tensor_comes_back_as_a_leaf() -> None:
    x = torch.ones(2, requires_grad=True)
    found = returned(x * 2)
    assert found.is_leaf and found.requires_grad and found.tolist() == [2.0, 2.0]


def test_tensors_that_share_memory_share_it_again() -> None:
    x = torch.arange(6.0)
    whole, part, turned, other = returned([x, x[1:3], x.reshape(2, 3).T, x.clone()])
    whole[1] = 100
    assert part.tolist() == [100, 2] and turned.tolist() == [[0, 3], [100, 4], [2, 5]] and other[1] == 1
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    state = returned(model.state_dict())
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr() != state["0.bias"].data_ptr()


def test_a_part_of_a_large_tensor_is_written_alone() -> None:
    assert len(written(torch.zeros(100_000)[:3])) < 2_000


def test_training_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    def parts() -> tuple[Any, Any, Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        return model, optimizer, torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])

    def train(model: Any, optimizer: Any, schedule: Any, steps: int) -> None:
        x = torch.arange(12.0).reshape(4, 3)
        for _ in range(steps):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            schedule.step()

    train(*parts(), 6)  # operations that are repeated take a shorter way, which may round otherwise
    straight = parts()
    train(*straight, 6)
    stopped = parts()
    train(*stopped, 3)
    names = ("model", "optimizer", "schedule")
    torch.save({name: one.state_dict() for name, one in zip(names, stopped, strict=True)}, tmp_path / "at3.pt")
    again = parts()
    found = torch.load(str(tmp_path / "at3.pt"), map_location="cpu", weights_only=True)
    for name, one in zip(names, again, strict=True):
        one.load_state_dict(found[name])
    train(*again, 3)
    assert same(again[0].state_dict(), straight[0].state_dict())
    assert again[1].param_groups[0]["lr"] == straight[1].param_groups[0]["lr"]


def test_numpy_reads_the_arrays_and_equal_objects_give_equal_files(tmp_path: Path) -> None:
    torch.save({"model": {"fc.weight": torch.ones(2, 3)}, "../x": torch.zeros(1)}, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as found:
        assert found["model.fc.weight"].tolist() == [[1, 1, 1], [1, 1, 1]] and ".._x" in found.files
    assert written({"a": torch.ones(2)}) == written({"a": torch.ones(2)})


class Own:
    pass


REFUSED = [
    (lambda: 0, "function"),
    (Own(), "Own"),
    (torch.nn.Linear(1, 1), r"state_dict\(\)"),
    (Own, "type"),
    (np.array(["a"]), "ndarray"),
    (np.array([Own()]), "ndarray"),
    (Path("x"), "Path"),
    (iter([]), "iterator"),
]


@pytest.mark.parametrize(("value", "told"), REFUSED)
def test_what_cannot_be_held_is_refused_before_anything_is_written(value: Any, told: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    torch.save(1, path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=told):
        torch.save({"a": torch.ones(2), "b": [value]}, path)
    file = io.BytesIO()
    with pytest.raises(TypeError, match=r"'b\.0'"):
        torch.save({"a": torch.ones(2), "b": [value]}, file)
    assert file.getvalue() == b"" and path.read_bytes() == before and os.listdir(tmp_path) == ["x.pt"]


def test_lists_without_an_end_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(TypeError, match="100 levels"):
        written(circle)


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    torch.save(1, path)
    path.chmod(0o640)
    torch.save(2, path)
    assert torch.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space"):
        torch.save(torch.ones(2), path)
    assert torch.load(path) == 2 and os.listdir(tmp_path) == ["x.pt"]


def test_links_keep_pointing_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "link.pt").symlink_to("x.pt")
    torch.save(1, tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink() and torch.load(tmp_path / "x.pt") == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.save(1, 3), AttributeError),
        (lambda: torch.save(1, "/nowhere/x.pt"), RuntimeError),
        (lambda: torch.save(1, "/"), RuntimeError),
        (lambda: torch.load(3), AttributeError),
        (lambda: torch.load("/nowhere/x.pt"), FileNotFoundError),
        (lambda: torch.load(io.BytesIO()), EOFError),
        (lambda: torch.load(io.StringIO("text")), TypeError),
        (lambda: torch.load(io.BytesIO(b"hello")), RuntimeError),
        (lambda: returned(torch.ones(1), map_location="cuda"), RuntimeError),
        (lambda: returned(torch.ones(1), map_location="nowhere"), RuntimeError),
    ],
)
def test_wrong_files_and_places(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("where", [None, "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage])
def test_every_spelling_of_the_processor_is_accepted(where: Any) -> None:
    assert returned(torch.ones(1), map_location=where).device == torch.device("cpu")


def test_damaged_files_are_an_error_or_read_the_same() -> None:
    value = {"a": torch.arange(5.0), "b": [torch.ones(2, 2), torch.ones(2, 2)[0], 1.5, "text"]}
    data = written(value)
    draw = random.Random(3)
    seen = 0
    for turn in range(1500):
        damaged = bytearray(data)
        if turn % 5 == 0:
            damaged = damaged[: draw.randrange(1, len(data))]
        else:
            for _ in range(draw.choice((1, 1, 3))):
                damaged[draw.randrange(len(data))] = draw.randrange(256)
        try:
            found = torch.load(io.BytesIO(bytes(damaged)))
        except RuntimeError as error:
            assert "torch.load" in str(error)
            seen += 1
        else:
            assert same(found, value)
    assert seen > 1000


def crafted(tree: str, entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tree.json", '{"format": "gradcli tensors", "version": 1, "tree": ' + tree + "}")
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(70) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


SMALL = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", bytes(8))
PART = '["tensor", false, "x", "<f4", {}, {}, {}]'


@pytest.mark.parametrize(
    ("tree", "entry"),
    [
        (PART.format([3], [4], 0), SMALL),
        (PART.format([2], [4], 4), SMALL),
        (PART.format([2], [-4], 0), SMALL),
        (PART.format([2], [4], -4), SMALL),
        (PART.format([-2], [4], 0), SMALL),
        (PART.format([2], [2**70], 0), SMALL),
        ('["tensor", false, "x", "O", [1], [8], 0]', SMALL),
        ('["tensor", false, "x", [], [1], [8], 0]', SMALL),
        ('["tensor", false, "nowhere"]', SMALL),
        ('["tensor", false]', SMALL),
        ('["unknown", 3]', SMALL),
        ('["dtype", "object"]', SMALL),
        ('["device", "nowhere"]', SMALL),
        ('["set", [["list", []]]]', SMALL),
        ('["list", 3]', SMALL),
        ('["float", "x"]', SMALL),
        ("[" * 100_000, SMALL),
        ("1" * 10_000, SMALL),
        ('["tensor", false, "x"]', npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8))),
        ('["tensor", false, "x"]', npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }", bytes(8))),
        ('["tensor", false, "x"]', npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", bytes(8))),
        ('["tensor", false, "x"]', npy("{'descr': '<f4', 'fortran_order': False, 'shape': (True,), ", bytes(8))),
        ('["tensor", false, "x"]', npy("(((((((((((((((((((", bytes(8))),
        ('["tensor", false, "x"]', b""),
        ('["tensor", true, "x"]', npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", bytes(8))),
    ],
)  # fmt: skip
def test_crafted_files_are_errors(tree: str, entry: bytes) -> None:
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(crafted(tree, {"x.npy": entry})))


def test_compressed_entries_are_refused() -> None:
    """A small file cannot ask for a large memory."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tree.json", " " * 10_000_000)
    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(io.BytesIO(file.getvalue()))


def test_files_of_others_say_whose_they_are() -> None:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    for data in (zipped.getvalue(), b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."):
        with pytest.raises(RuntimeError, match="a file of PyTorch, a pickle, which may run code"):
            torch.load(io.BytesIO(data))
    arrays = io.BytesIO()
    np.savez(arrays, a=np.ones(2))
    with pytest.raises(RuntimeError, match="not written by torch"):
        torch.load(io.BytesIO(arrays.getvalue()))


@pytest.mark.peers
def test_files_of_pytorch_are_refused(tmp_path: Path) -> None:
    theirs = pytest.importorskip("torch")
    for zipped in (True, False):
        theirs.save({"a": theirs.ones(2)}, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
        with pytest.raises(RuntimeError, match="a file of PyTorch"):
            torch.load(tmp_path / "x.pt")


def test_a_script_ends_with_its_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.pt").write_bytes(b"\x80\x02}q\x00.")
    script = tmp_path / "file.py"
    script.write_text(f"import torch\ntorch.load({str(tmp_path / 'x.pt')!r})\n")
    assert cli.main(["run", str(script)]) == 1
    told = capsys.readouterr().err
    assert told.count("  File ") == 1 and "line 2" in told and "--on torch" in told

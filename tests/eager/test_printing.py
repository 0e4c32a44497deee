"""Arrays and flags go in, PyTorch 2.13's text must come out: a table of its texts, and 5,000 random tensors."""

from __future__ import annotations

import doctest
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradcli import eager as torch
from gradcli.eager._core import devices, printing
from gradcli.eager._core.printing import set_printoptions, tensor_text

# array, arguments, print options, text printed by PyTorch 2.13
CASES = [
    (np.array([2.0], "f4"), {"dtype": "float32", "requires_grad": True}, {}, "tensor([2.], requires_grad=True)"),
    (np.array(-18.0, "f4"), {"dtype": "float32"}, {}, "tensor(-18.)"),
    (
        np.array(1.5, "f4"),
        {"dtype": "float32", "grad_fn_name": "MulBackward0"},
        {},
        "tensor(1.5000, grad_fn=<MulBackward0>)",
    ),
    (np.array([1.0, 2.0, 3.0], "f4"), {"dtype": "float32"}, {}, "tensor([1., 2., 3.])"),
    (
        np.array([1.0, -2.5, 1 / 3], "f4"),
        {"dtype": "float32", "parameter": True, "requires_grad": True},
        {},
        "Parameter containing:\ntensor([ 1.0000, -2.5000,  0.3333], requires_grad=True)",
    ),
    (
        np.array([[1.0, 2.0], [3.0, 4.0]], "f4"),
        {"dtype": "float32", "parameter": True},
        {},
        "Parameter containing:\ntensor([[1., 2.],\n        [3., 4.]])",
    ),
    (np.array([0.0, -0.0], "f4"), {"dtype": "float32"}, {}, "tensor([0., -0.])"),
    (np.array([np.nan, np.inf, -np.inf], "f4"), {"dtype": "float32"}, {}, "tensor([nan, inf, -inf])"),
    (np.array([np.nan, 1.0, -np.inf], "f4"), {"dtype": "float32"}, {}, "tensor([nan, 1., -inf])"),
    (np.array([np.nan, 1.5, -np.inf], "f4"), {"dtype": "float32"}, {}, "tensor([   nan, 1.5000,   -inf])"),
    (np.array([1e-5, 1.0, np.nan], "f4"), {"dtype": "float32"}, {}, "tensor([1.0000e-05, 1.0000e+00,        nan])"),
    (np.array([0.5, 500.0], "f4"), {"dtype": "float32"}, {}, "tensor([  0.5000, 500.0000])"),
    (np.array([0.5, 501.0], "f4"), {"dtype": "float32"}, {}, "tensor([5.0000e-01, 5.0100e+02])"),
    (np.array([1.0, 1000.0], "f4"), {"dtype": "float32"}, {}, "tensor([   1., 1000.])"),
    (np.array([1.0, 1001.0], "f4"), {"dtype": "float32"}, {}, "tensor([1.0000e+00, 1.0010e+03])"),
    (np.array(1e8, "f4"), {"dtype": "float32"}, {}, "tensor(100000000.)"),
    (np.array(123456792.0, "f4"), {"dtype": "float32"}, {}, "tensor(1.2346e+08)"),
    (np.array(0.0001, "f4"), {"dtype": "float32"}, {}, "tensor(1.0000e-04)"),
    (np.array(0.00011, "f4"), {"dtype": "float32"}, {}, "tensor(0.0001)"),
    (np.array([0.1, 100000.0]), {"dtype": "float64"}, {}, "tensor([1.0000e-01, 1.0000e+05], dtype=torch.float64)"),
    (np.array(0.1), {"dtype": "float64", "default_dtype": "float64"}, {}, "tensor(0.1000)"),
    (
        np.array([0.5, 2.0], "f4"),
        {"dtype": "float32", "default_dtype": "float64"},
        {},
        "tensor([0.5000, 2.0000], dtype=torch.float32)",
    ),
    (np.array([5e-324, 1.7e308]), {"dtype": "float64"}, {}, "tensor([4.9407e-324, 1.7000e+308], dtype=torch.float64)"),
    (
        np.array([0.1, 65504.0, -6e-8], "f2"),
        {"dtype": "float16"},
        {},
        "tensor([ 9.9976e-02,  6.5504e+04, -5.9605e-08], dtype=torch.float16)",
    ),
    (
        np.array([0.5, 1.0078125, 3.0], "f4"),
        {"dtype": "bfloat16", "grad_fn_name": "CloneBackward0"},
        {},
        "tensor([0.5000, 1.0078, 3.0000], dtype=torch.bfloat16,\n       grad_fn=<CloneBackward0>)",
    ),
    (np.array([1, -20, 100], "i1"), {"dtype": "int8"}, {}, "tensor([  1, -20, 100], dtype=torch.int8)"),
    (np.array([1, -20, 100], "i2"), {"dtype": "int16"}, {}, "tensor([  1, -20, 100], dtype=torch.int16)"),
    (np.array([1, -20, 100], "i4"), {"dtype": "int32"}, {}, "tensor([  1, -20, 100], dtype=torch.int32)"),
    (np.array([1, -20, 100], "i8"), {"dtype": "int64"}, {}, "tensor([  1, -20, 100])"),
    (
        np.array([[1, 20], [255, 0]], "u1"),
        {"dtype": "uint8"},
        {},
        "tensor([[  1,  20],\n        [255,   0]], dtype=torch.uint8)",
    ),
    (
        np.array([[True, False], [False, False]]),
        {"dtype": "bool"},
        {},
        "tensor([[ True, False],\n        [False, False]])",
    ),
    (np.array(True), {"dtype": "bool"}, {}, "tensor(True)"),
    (np.array(7), {"dtype": "int64"}, {}, "tensor(7)"),
    (np.zeros((0,), "f4"), {"dtype": "float32"}, {}, "tensor([])"),
    (np.zeros((0,), "i8"), {"dtype": "int64"}, {}, "tensor([], dtype=torch.int64)"),
    (
        np.zeros((2, 0, 3), "f4"),
        {"dtype": "float32", "requires_grad": True},
        {},
        "tensor([], size=(2, 0, 3), requires_grad=True)",
    ),
    (np.zeros((0, 2), bool), {"dtype": "bool"}, {}, "tensor([], size=(0, 2), dtype=torch.bool)"),
    (
        np.array([1 + 2j, 3.5 - 4j, np.nan - 0j], "c8"),
        {"dtype": "complex64"},
        {},
        "tensor([1.0000+2.j, 3.5000-4.j,    nan+0.j])",
    ),
    (
        np.array(1e-5 - 2j),
        {"dtype": "complex128", "requires_grad": True},
        {},
        "tensor(1.0000e-05-2.j, dtype=torch.complex128, requires_grad=True)",
    ),
    (
        np.array([[1j, -1.5]]),
        {"dtype": "complex128", "default_dtype": "float64"},
        {},
        "tensor([[ 0.0000+1.j, -1.5000+0.j]])",
    ),
    (
        np.arange(24, dtype="f4").reshape(2, 3, 4),
        {"dtype": "float32"},
        {},
        "tensor([[[ 0.,  1.,  2.,  3.],\n"
        "         [ 4.,  5.,  6.,  7.],\n"
        "         [ 8.,  9., 10., 11.]],\n"
        "\n"
        "        [[12., 13., 14., 15.],\n"
        "         [16., 17., 18., 19.],\n"
        "         [20., 21., 22., 23.]]])",
    ),
    (
        np.arange(16, dtype="f4").reshape(2, 2, 2, 2) / 8,
        {"dtype": "float32", "grad_fn_name": "ViewBackward0"},
        {},
        "tensor([[[[0.0000, 0.1250],\n"
        "          [0.2500, 0.3750]],\n"
        "\n"
        "         [[0.5000, 0.6250],\n"
        "          [0.7500, 0.8750]]],\n"
        "\n"
        "\n"
        "        [[[1.0000, 1.1250],\n"
        "          [1.2500, 1.3750]],\n"
        "\n"
        "         [[1.5000, 1.6250],\n"
        "          [1.7500, 1.8750]]]], grad_fn=<ViewBackward0>)",
    ),
    (
        np.arange(30, dtype="f4") / 7,
        {"dtype": "float32", "requires_grad": True},
        {},
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
        "        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n"
        "        3.8571, 4.0000, 4.1429], requires_grad=True)",
    ),
    (
        np.arange(40),
        {"dtype": "int64"},
        {},
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,\n"
        "        36, 37, 38, 39])",
    ),
    (
        np.arange(11, dtype="f4") / 8,
        {"dtype": "float32", "grad_fn_name": "CloneBackward0"},
        {},
        "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,\n"
        "        1.1250, 1.2500], grad_fn=<CloneBackward0>)",
    ),
    (
        np.arange(10, dtype="f4") / 8,
        {"dtype": "float32", "requires_grad": True},
        {},
        "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,\n"
        "        1.1250], requires_grad=True)",
    ),
    (
        np.arange(7) / 8,
        {"dtype": "float64", "requires_grad": True},
        {},
        "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500],\n"
        "       dtype=torch.float64, requires_grad=True)",
    ),
    (np.arange(1001), {"dtype": "int64"}, {}, "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    (
        np.arange(1000.0, dtype="f4").reshape(10, 100) * 0 + 1.5,
        {"dtype": "float32"},
        {"threshold": 999},
        "tensor([[1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000],\n"
        "        [1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000],\n"
        "        [1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000],\n"
        "        ...,\n"
        "        [1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000],\n"
        "        [1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000],\n"
        "        [1.5000, 1.5000, 1.5000,  ..., 1.5000, 1.5000, 1.5000]])",
    ),
    (
        np.arange(1200.0).reshape(2, 600) / 3,
        {"dtype": "float64", "requires_grad": True},
        {},
        "tensor([[0.0000e+00, 3.3333e-01, 6.6667e-01,  ..., 1.9900e+02, 1.9933e+02,\n"
        "         1.9967e+02],\n"
        "        [2.0000e+02, 2.0033e+02, 2.0067e+02,  ..., 3.9900e+02, 3.9933e+02,\n"
        "         3.9967e+02]], dtype=torch.float64, requires_grad=True)",
    ),
    (
        np.arange(1100, dtype="i4").reshape(11, 10, 10),
        {"dtype": "int32"},
        {},
        "tensor([[[   0,    1,    2,  ...,    7,    8,    9],\n"
        "         [  10,   11,   12,  ...,   17,   18,   19],\n"
        "         [  20,   21,   22,  ...,   27,   28,   29],\n"
        "         ...,\n"
        "         [  70,   71,   72,  ...,   77,   78,   79],\n"
        "         [  80,   81,   82,  ...,   87,   88,   89],\n"
        "         [  90,   91,   92,  ...,   97,   98,   99]],\n"
        "\n"
        "        [[ 100,  101,  102,  ...,  107,  108,  109],\n"
        "         [ 110,  111,  112,  ...,  117,  118,  119],\n"
        "         [ 120,  121,  122,  ...,  127,  128,  129],\n"
        "         ...,\n"
        "         [ 170,  171,  172,  ...,  177,  178,  179],\n"
        "         [ 180,  181,  182,  ...,  187,  188,  189],\n"
        "         [ 190,  191,  192,  ...,  197,  198,  199]],\n"
        "\n"
        "        [[ 200,  201,  202,  ...,  207,  208,  209],\n"
        "         [ 210,  211,  212,  ...,  217,  218,  219],\n"
        "         [ 220,  221,  222,  ...,  227,  228,  229],\n"
        "         ...,\n"
        "         [ 270,  271,  272,  ...,  277,  278,  279],\n"
        "         [ 280,  281,  282,  ...,  287,  288,  289],\n"
        "         [ 290,  291,  292,  ...,  297,  298,  299]],\n"
        "\n"
        "        ...,\n"
        "\n"
        "        [[ 800,  801,  802,  ...,  807,  808,  809],\n"
        "         [ 810,  811,  812,  ...,  817,  818,  819],\n"
        "         [ 820,  821,  822,  ...,  827,  828,  829],\n"
        "         ...,\n"
        "         [ 870,  871,  872,  ...,  877,  878,  879],\n"
        "         [ 880,  881,  882,  ...,  887,  888,  889],\n"
        "         [ 890,  891,  892,  ...,  897,  898,  899]],\n"
        "\n"
        "        [[ 900,  901,  902,  ...,  907,  908,  909],\n"
        "         [ 910,  911,  912,  ...,  917,  918,  919],\n"
        "         [ 920,  921,  922,  ...,  927,  928,  929],\n"
        "         ...,\n"
        "         [ 970,  971,  972,  ...,  977,  978,  979],\n"
        "         [ 980,  981,  982,  ...,  987,  988,  989],\n"
        "         [ 990,  991,  992,  ...,  997,  998,  999]],\n"
        "\n"
        "        [[1000, 1001, 1002,  ..., 1007, 1008, 1009],\n"
        "         [1010, 1011, 1012,  ..., 1017, 1018, 1019],\n"
        "         [1020, 1021, 1022,  ..., 1027, 1028, 1029],\n"
        "         ...,\n"
        "         [1070, 1071, 1072,  ..., 1077, 1078, 1079],\n"
        "         [1080, 1081, 1082,  ..., 1087, 1088, 1089],\n"
        "         [1090, 1091, 1092,  ..., 1097, 1098, 1099]]], dtype=torch.int32)",
    ),
    (
        np.arange(2000.0, dtype="f4").reshape(2, 1000),
        {"dtype": "float32"},
        {"profile": "short"},
        "tensor([[0.00e+00, 1.00e+00,  ..., 9.98e+02, 9.99e+02],\n"
        "        [1.00e+03, 1.00e+03,  ..., 2.00e+03, 2.00e+03]])",
    ),
    (
        np.arange(8.0, dtype="f4") / 3,
        {"dtype": "float32"},
        {"precision": 2, "threshold": 5, "edgeitems": 2},
        "tensor([0.00, 0.33,  ..., 2.00, 2.33])",
    ),
    (
        np.arange(8.0, dtype="f4") / 3,
        {"dtype": "float32"},
        {"threshold": 5, "edgeitems": 0},
        "tensor([...], size=(8,))",
    ),
    (
        np.arange(8.0, dtype="f4").reshape(4, 2) / 3,
        {"dtype": "float32"},
        {"edgeitems": 0},
        "tensor([[0.0000, 0.3333],\n"
        "        [0.6667, 1.0000],\n"
        "        [1.3333, 1.6667],\n"
        "        [2.0000, 2.3333]], size=(4, 2))",
    ),
    (
        np.arange(8.0, dtype="f4") / 3,
        {"dtype": "float32", "requires_grad": True},
        {"linewidth": 30},
        "tensor([0.0000, 0.3333,\n"
        "        0.6667, 1.0000,\n"
        "        1.3333, 1.6667,\n"
        "        2.0000, 2.3333],\n"
        "       requires_grad=True)",
    ),
    (
        np.arange(8.0, dtype="f4"),
        {"dtype": "float32"},
        {"sci_mode": True, "linewidth": 60},
        "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00, 3.0000e+00,\n"
        "        4.0000e+00, 5.0000e+00, 6.0000e+00, 7.0000e+00])",
    ),
    (np.array([1e-9, 1.0], "f4"), {"dtype": "float32"}, {"sci_mode": False}, "tensor([0.0000, 1.0000])"),
    (
        np.array([1e-9, 1e12], "f4"),
        {"dtype": "float32"},
        {"sci_mode": False, "linewidth": 4},
        "tensor([           0.0000,\n        999999995904.0000])",
    ),
]


@pytest.fixture(autouse=True)
def _usual_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize(("array", "arguments", "options", "text"), CASES, ids=[case[3][:40] for case in CASES])
def test_texts_that_pytorch_printed(
    array: np.ndarray, arguments: dict[str, Any], options: dict[str, Any], text: str
) -> None:
    set_printoptions(**options)
    assert tensor_text(array, **arguments) == text


def test_device_comes_first() -> None:
    text = tensor_text(np.array([1.0]), dtype="float16", device="cuda:0", requires_grad=True)
    assert text == "tensor([1.], device='cuda:0', dtype=torch.float16, requires_grad=True)"


def test_options_are_kept_until_changed() -> None:
    set_printoptions(precision=2, sci_mode=True)
    assert printing._current == (2, 1000, 3, 80, True)
    set_printoptions(linewidth=40)
    assert printing._current == (2, 1000, 3, 40, None)
    set_printoptions(profile="full")
    assert printing._current == (4, math.inf, 3, 80, None)


def test_a_view_is_printed_like_its_copy_and_is_not_changed() -> None:
    array = np.arange(12, dtype="f4").reshape(3, 4) / 4
    before = array.copy()
    for view in (array.T, array[::-1, ::2], np.broadcast_to(array[0], (5, 4))):
        assert tensor_text(view, dtype="float32") == tensor_text(view.copy(), dtype="float32")
    assert (array == before).all()


@pytest.mark.parametrize("number", [np.float32(1.5), np.int64(-3), np.bool_(True), np.complex64(1 - 2j)])
def test_a_numpy_scalar_is_printed_like_an_array_without_axes(number: Any) -> None:
    name = number.dtype.name
    assert tensor_text(number, dtype=name) == tensor_text(np.asarray(number), dtype=name)


def test_a_summary_does_not_read_the_whole_array() -> None:
    large = np.broadcast_to(np.float32(0.5), (10**6, 10**6))
    assert tensor_text(large, dtype="float32").count("0.5000") == 36


def test_examples_in_docstrings() -> None:
    result = doctest.testmod(printing)
    assert result.failed == 0 and result.attempted >= 6


FLOATS = {"float32": "f4", "float64": "f8", "float16": "f2", "bfloat16": "f4"}
COMPLEX = {"complex64": "c8", "complex128": "c16"}
WHOLE = {"int64": "i8", "int32": "i4", "int16": "i2", "int8": "i1", "uint8": "u1", "bool": "?"}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-4, 1000.0, 1e8])


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    kind = rng.integers(20)
    if kind == 0:
        return tuple(rng.integers(0, 3, rng.integers(1, 4)).tolist())  # often empty
    if kind == 1:
        return [(1001,), (40, 30), (5, 7, 40), (13, 1, 9, 11), (2, 501), (1002, 1)][rng.integers(6)]
    if kind < 5:
        return ()
    axes = int(rng.choice([1, 1, 1, 2, 2, 3, 4]))
    return tuple(rng.integers(1, {1: 30, 2: 8, 3: 5, 4: 4}[axes], axes).tolist())


def random_reals(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Values of one of the styles that printing tells apart."""
    style = rng.integers(8)
    values = rng.normal(size=shape)
    if style == 1:
        values = np.rint(values * 10.0 ** rng.integers(0, 6))
    elif style == 2:
        values = values * 10.0 ** rng.integers(-7, 10)
    elif style == 3:
        values = values * 10.0 ** rng.uniform(-4, 4, shape)
    elif style == 4:
        values = np.rint(values * 4) / 4
    elif style == 5:
        values = rng.choice(SPECIAL, shape)
    elif style == 6:
        values = np.where(rng.random(shape) < 0.2, rng.choice(SPECIAL[:5], shape), values)
    elif style == 7:
        values = rng.uniform(1, 1000.4, shape) * rng.choice([1e-4, 1.0, 1e5])
    return np.asarray(values)


def random_array(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    dtype = str(rng.choice([*FLOATS, *FLOATS, *COMPLEX, *WHOLE]))
    shape = random_shape(rng)
    if dtype in FLOATS:
        with np.errstate(over="ignore"):
            return random_reals(rng, shape).astype(FLOATS[dtype]), dtype
    if dtype in COMPLEX:
        array = np.empty(shape, COMPLEX[dtype])
        array.real, array.imag = random_reals(rng, shape), random_reals(rng, shape)
        return array, dtype
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5), dtype
    info = np.iinfo(WHOLE[dtype])
    bound = int(10.0 ** rng.uniform(0, math.log10(float(info.max))))
    return np.asarray(rng.integers(max(-bound, info.min), bound, shape, dtype=np.int64)).astype(WHOLE[dtype]), dtype


def random_options(rng: np.random.Generator) -> dict[str, Any]:
    if rng.random() < 0.7:
        return {}
    choices: dict[str, list[Any]] = {
        "precision": [0, 1, 2, 6, 10],
        "threshold": [0, 5, 20, math.inf],
        "edgeitems": [0, 1, 2, 5],
        "linewidth": [1, 20, 40, 79, 81, 120],
        "sci_mode": [True, False, None],
        "profile": ["default", "short", "full"],
    }
    return {name: values[rng.integers(len(values))] for name, values in choices.items() if rng.random() < 0.4}


@pytest.mark.peers
def test_five_thousand_tensors_print_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the peer that prints the expected texts")
    rng = np.random.default_rng(20)
    names: dict[str, Any] = {
        "CloneBackward0": lambda tensor: tensor.clone(),
        "ViewBackward0": lambda tensor: tensor.view(tensor.shape),
        "AliasBackward0": lambda tensor: tensor.view_as(tensor),
        "SliceBackward0": lambda tensor: tensor[:] if tensor.ndim else tensor.clone(),
    }
    wrong = []
    seen: set[str] = set()
    try:
        for _ in range(5000):
            array, dtype = random_array(rng)
            tensor = torch.from_numpy(array)
            if dtype == "bfloat16":
                tensor = tensor.to(torch.bfloat16)
                array = tensor.float().numpy()
            arguments: dict[str, Any] = {"dtype": dtype}
            flag = rng.integers(4) if dtype in FLOATS or dtype in COMPLEX else 0
            if flag == 1:
                tensor.requires_grad_()
                arguments["requires_grad"] = True
            elif flag == 2:
                tensor = names[str(rng.choice(list(names)))](tensor.requires_grad_())
                arguments.update(requires_grad=True, grad_fn_name=type(tensor.grad_fn).__name__)
            elif flag == 3:
                arguments.update(requires_grad=bool(rng.integers(2)), parameter=True)
                tensor = torch.nn.Parameter(tensor, requires_grad=arguments["requires_grad"])
            if rng.random() < 0.2:
                arguments["default_dtype"] = "float64"
            torch.set_default_dtype(getattr(torch, arguments.get("default_dtype", "float32")))
            options = random_options(rng)
            torch.set_printoptions(profile="default")
            torch.set_printoptions(**options)
            expected = repr(tensor)
            set_printoptions(profile="default")
            set_printoptions(**options)
            text = tensor_text(array, **arguments)
            seen.add(expected)
            if text != expected:
                wrong.append((arguments, options, text, expected))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_printoptions(profile="default")
    assert not wrong, f"{len(wrong)} texts differ; the first: {wrong[0]}"
    assert len(seen) > 4000


def test_a_tensor_on_a_gpu_shows_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.tensor([1.0, 2.5])
    monkeypatch.setattr(devices, "of", lambda array: devices.device("cuda:0"))
    assert repr(x) == "tensor([1.0000, 2.5000], device='cuda:0')"

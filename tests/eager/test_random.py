"""Seeds and calls go in, PyTorch 2.13's numbers must come out: a table of them, then thousands of streams beside it."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gradcli.eager
from gradcli.eager import random
from gradcli.eager.random import DEFAULT_SEED, Generator
from tests.support.rows import all_rows

# seed, call, the numbers that PyTorch 2.13 drew (shortest decimals of their format)
NUMBERS: list[tuple[int, Callable[[Generator], np.ndarray], list[float]]] = [
    (0, lambda g: g.uniform((5,)), [0.4962566, 0.7682218, 0.08847743, 0.13203049, 0.30742282]),
    (0, lambda g: g.uniform((3,), dtype="float64"), [0.9700530018065531, 0.707819864399788, 0.45938294312745087]),
    (0, lambda g: g.uniform((3,), dtype="float16"), [0.4963379, 0.7680664, 0.08850098]),
    (0, lambda g: g.normal((2, 3)), [1.5409961, -0.2934289, -2.1787894, 0.56843126, -1.0845224, -1.3985955]),
    (0, lambda g: g.normal((3,), dtype="float64"), [1.5409961082440433, -0.2934289057609464, -2.1787893820745574]),
    (
        0,
        lambda g: g.normal((4, 4)),
        [-1.1258398, -1.1523602, -0.25057858, -0.4338788, 0.84871036, 0.69200915, -0.31601277, -2.1152194,
         0.32227492, -1.2633348, 0.3499832, 0.30813393, 0.11984151, 1.2376579, 1.1167772, -0.24727815],
    ),
    (
        0,
        lambda g: g.normal((18,))[[0, 1, 2, 8, 15, 16, 17]],
        [-1.1258398, -1.1523602, 0.5666506, 0.4680964, -0.84367675, 0.9318266, 1.2590092],
    ),
    (
        0,
        lambda g: g.normal((18,), dtype="float64")[[0, 1, 2, 8, 15, 16, 17]],
        [-2.310411800234176, -0.3732508612577643, -1.2609246557194385, 0.23871805816817063, -0.8910030351707375,
         0.6748575435940039, 1.0468653769814655],
    ),
    (0, lambda g: g.uniform((3,), -2.0, 5.0), [1.4737961, 3.3775525, -1.3806579]),
    (0, lambda g: g.normal((3,), 10.0, 0.5), [10.770498, 9.853286, 8.910605]),
    (0, lambda g: g.randint(-5, 100, (6,)), [69, 19, 93, 25, 38, 4]),
    (0, lambda g: g.randint(0, 2**28, (3,)), [130329135, 136432832, 195187451]),
    (0, lambda g: g.randint(-(2**40), 2**60, (3,)), [900440291289639471, 510765438681074880, 742717097475461883]),
    (0, lambda g: g.randperm(10), [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]),
    (0, lambda g: g.bernoulli((8,), 0.3), [0, 0, 0, 0, 0, 0, 1, 0]),
    (42, lambda g: g.uniform((5,)), [0.88226926, 0.91500396, 0.38286376, 0.95930564, 0.3904482]),
    (42, lambda g: g.uniform((3,), dtype="float64"), [0.05815448596142969, 0.06291016742457756, 0.12358607277440903]),
    (42, lambda g: g.uniform((3,), dtype="float16"), [0.8823242, 0.91503906, 0.3828125]),
    (42, lambda g: g.normal((2, 3)), [0.33669037, 0.1288094, 0.23446237, 0.23033303, -1.1228564, -0.18632829]),
    (42, lambda g: g.normal((3,), dtype="float64"), [0.33669035438385886, 0.1288094051365897, 0.23446236336153173]),
    (
        42,
        lambda g: g.normal((4, 4)),
        [1.9269153, 1.4872841, 0.9007172, -2.105521, 0.67841846, -1.2345449, -0.043067478, -1.604667,
         -0.7521353, 1.648723, -0.39247864, -1.4036071, -0.7278813, -0.5594302, -0.7688389, 0.7624454],
    ),
    (
        42,
        lambda g: g.normal((18,))[[0, 1, 2, 8, 15, 16, 17]],
        [1.9269153, 1.4872841, -0.49739754, 0.3558599, 0.8598585, -0.30972677, -0.3957105],
    ),
    (
        42,
        lambda g: g.normal((18,), dtype="float64")[[0, 1, 2, 8, 15, 16, 17]],
        [0.2995562877502637, 0.24237779080894106, 1.2715909667771088, 0.038435238263354446, 0.855215961472287,
         0.2494118796915765, 0.2615836907112959],
    ),
    (42, lambda g: g.uniform((3,), -2.0, 5.0), [4.1758847, 4.405028, 0.6800463]),
    (42, lambda g: g.normal((3,), 10.0, 0.5), [10.168345, 10.0644045, 10.117231]),
    (42, lambda g: g.randint(-5, 100, (6,)), [52, -3, 41, 14, 76, 75]),
    (42, lambda g: g.randint(0, 2**28, (3,)), [199900595, 250975502, 127521863]),
    (42, lambda g: g.randint(-(2**40), 2**60, (3,)), [1144431517324950963, 243743432105104654, 820755102424486983]),
    (42, lambda g: g.randperm(10), [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]),
    (42, lambda g: g.bernoulli((8,), 0.3), [1, 1, 1, 1, 0, 0, 0, 0]),
    (-7, lambda g: g.uniform((5,)), [0.25333762, 0.67736036, 0.25344586, 0.60641783, 0.4065795]),
    (-7, lambda g: g.uniform((3,), dtype="float64"), [0.02670128397151894, 0.027567330014738878, 0.2526364251198353]),
    (-7, lambda g: g.uniform((3,), dtype="float16"), [0.25341797, 0.6772461, 0.25341797]),
    (-7, lambda g: g.normal((2, 3)), [0.23313075, 0.039483275, -0.018483466, 1.1157024, -0.6957236, 2.0793722]),
    (-7, lambda g: g.normal((3,), dtype="float64"), [0.23313075849026815, 0.03948327639671926, -0.01848346572200401]),
    (
        -7,
        lambda g: g.normal((4, 4)),
        [-0.17925161, 0.9027327, -0.57761246, -1.3243614, 0.918484, 2.5227482, -0.62028843, -1.3173845,
         0.74307007, 1.2031261, -0.5009373, 0.33316296, -0.44731563, -0.011822141, -0.1389299, -0.50350225],
    ),
    (
        -7,
        lambda g: g.normal((18,))[[0, 1, 2, 8, 15, 16, 17]],
        [-0.17925161, 0.9027327, -1.1758589, 1.5301334, -0.07598222, 1.4018131, 0.8735378],
    ),
    (
        -7,
        lambda g: g.normal((18,), dtype="float64")[[0, 1, 2, 8, 15, 16, 17]],
        [0.17021259567442057, 0.20228034460769345, -0.23454552249135124, 0.18299892620199437,
         1.0097533825930387, -0.22560692168043228, 0.7074123813496087],
    ),
    (-7, lambda g: g.uniform((3,), -2.0, 5.0), [-0.22663665, 2.7415226, -0.22587895]),
    (-7, lambda g: g.normal((3,), 10.0, 0.5), [10.116566, 10.019742, 9.990758]),
    (-7, lambda g: g.randint(-5, 100, (6,)), [14, 22, 81, 38, 2, 28]),
    (-7, lambda g: g.randint(0, 2**28, (3,)), [112027517, 26951219, 200630433]),
    (-7, lambda g: g.randint(-(2**40), 2**60, (3,)), [1027060119313934205, 162373492973190707, 389573019946016929]),
    (-7, lambda g: g.randperm(10), [4, 7, 6, 0, 8, 3, 2, 9, 5, 1]),
    (-7, lambda g: g.bernoulli((8,), 0.3), [1, 1, 1, 0, 0, 0, 0, 1]),
]  # fmt: skip
LINEAR = [
    (0, 1, 1, [-0.00748682], [0.5364436]),
    (
        0,
        3,
        2,
        [-0.0043225177, 0.30971584, -0.47518533, -0.4248946, -0.22236897, 0.15482073],
        [-0.011439145, 0.45777494],
    ),
    (1, 2, 1, [0.3643461, -0.31210154], [-0.13708077]),
    (
        42,
        5,
        4,
        [0.34191203, 0.37119082, -0.10476983, 0.41081545, -0.097986095, 0.09024354, -0.21772818, 0.26264077,
         0.39423797, -0.3280885, 0.38871634, 0.08370018, 0.33040535, 0.06056639, 0.21564107, -0.06314254,
         0.3447506, 0.066102155, -0.20877714, 0.11399399],
        [-0.20604768, -0.052446015, -0.18163952, 0.2966685],
    ),
]  # fmt: skip


def ulps(ours: np.ndarray, theirs: np.ndarray) -> int:
    """The largest distance in units in the last place; bool and whole numbers count in ones."""
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if (ours == theirs).all():
        return 0
    if ours.dtype.kind != "f":
        return int(np.abs(ours.astype(object) - theirs.astype(object)).max())
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[ours.dtype.itemsize]

    def ordered(values: np.ndarray) -> np.ndarray:  # neighbours are neighbouring integers, across zero too
        whole = np.ascontiguousarray(values).view(bits).astype(object)
        return np.where(whole < 0, -(2 ** (8 * values.dtype.itemsize - 1)) - whole, whole)

    return int(np.abs(ordered(ours) - ordered(theirs)).max())


def test_ulps_counts() -> None:
    one = np.array([1.0, -0.0, -1e-45], "f4")
    assert ulps(one, one) == 0
    assert ulps(one, np.nextafter(one, np.float32(9))) == 1
    assert ulps(np.array([-5e-324]), np.array([5e-324])) == 2


@all_rows(("seed", "call", "numbers"), NUMBERS)
def test_numbers_that_pytorch_drew(seed: int, call: Callable[[Generator], np.ndarray], numbers: list[float]) -> None:
    drawn = call(Generator(seed)).ravel()
    if drawn.dtype.kind != "f":
        assert drawn.tolist() == numbers
    else:
        assert ulps(drawn, np.array(numbers, drawn.dtype)) <= 1


@pytest.mark.parametrize(("seed", "inputs", "outputs", "weight", "bias"), LINEAR)
def test_layers_start_from_pytorch_numbers(
    seed: int, inputs: int, outputs: int, weight: list[float], bias: list[float]
) -> None:
    gradcli.eager.manual_seed(seed)
    layer = gradcli.eager.nn.Linear(inputs, outputs)
    assert layer.weight.reshape(-1).tolist() == np.array(weight, "f4").tolist()
    assert layer.bias.tolist() == np.array(bias, "f4").tolist()


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_layers_without_inputs() -> None:
    layer = gradcli.eager.nn.Linear(0, 2)
    assert layer.weight.shape == (2, 0) and layer.bias.tolist() == [0, 0]


def test_state_is_a_snapshot() -> None:
    generator = Generator(5)
    fresh = generator.get_state()
    generator.normal((3,))  # leaves a number of the second pair behind
    middle = generator.get_state()
    first = generator.normal((4,)), generator.uniform((700,)), generator.randperm(9)
    for _ in range(2):
        again = generator.set_state(middle)
        second = again.normal((4,)), again.uniform((700,)), again.randperm(9)
        assert all((one == other).all() for one, other in zip(first, second, strict=True))
    assert (Generator(0).set_state(fresh).normal((3,)) == Generator(5).normal((3,))).all()


def test_seeds() -> None:
    assert Generator().initial_seed() == DEFAULT_SEED
    assert Generator(-5).initial_seed() == 2**64 - 5
    assert (Generator(1).uniform((4,)) == Generator(2**32 + 1).uniform((4,))).all()  # the lower half seeds
    generator = Generator(1)
    chosen = generator.seed()
    assert 0 <= chosen < 2**53 and generator.initial_seed() == chosen != Generator().seed()
    assert random.manual_seed(3) is random.default_generator and random.default_generator.initial_seed() == 3
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="64 bits"):
            Generator(seed)


def test_a_new_seed_forgets_the_second_of_a_pair() -> None:
    generator = Generator(1)
    generator.normal((1,))
    assert (generator.manual_seed(1).normal((2,)) == Generator(1).normal((2,))).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.uniform((2,), dtype="int64"),
        lambda g: g.normal((2,), dtype="bool"),
        lambda g: g.uniform((-1,)),
        lambda g: g.uniform((2,), 2.0, 1.0),
        lambda g: g.uniform((2,), float("nan"), 1.0),
        lambda g: g.uniform((2,), 0.0, float("inf")),
        lambda g: g.uniform((2,), -3e38, 3e38),
        lambda g: g.normal((2,), 0.0, -1.0),
        lambda g: g.normal((2,), 0.0, float("nan")),
        lambda g: g.bernoulli((2,), 1.5),
        lambda g: g.bernoulli((2,), np.array([0.5, np.nan], "f4")),
        lambda g: g.randint(3, 3, (2,)),
        lambda g: g.randint(0, 2**63, (2,)),
        lambda g: g.randperm(-1),
    ],
)
def test_refusals_take_nothing_from_the_stream(call: Callable[[Generator], np.ndarray]) -> None:
    generator = Generator(9)
    with pytest.raises(RuntimeError):
        call(generator)
    assert (generator.uniform((3,)) == Generator(9).uniform((3,))).all()


def test_the_upper_end_is_excluded() -> None:
    generator = Generator(3)
    for dtype, count in (("float32", 400_000), ("float16", 20_000)):
        drawn = generator.uniform((count,), 1000.0, 1001.0, dtype)
        assert drawn.min() >= 1000 and drawn.max() < 1001
        assert generator.uniform((count,), dtype=dtype).max() < 1


def test_views_are_filled_in_the_order_of_memory() -> None:
    turned = np.empty((3, 5), "f4").T
    assert (Generator(1).uniform_like(turned) == Generator(1).uniform((3, 5)).T).all()
    part = np.zeros((6, 8))[::2, 1:7]
    drawn = Generator(1).normal_like(part)
    assert (drawn.ravel() == Generator(1).normal((18,), dtype="float64", contiguous=False)).all()
    point = np.empty((), "f8")
    assert Generator(1).normal_like(point)[()] == Generator(1).normal((1,), dtype="float64")[0]


def test_permutations_are_permutations() -> None:
    for count in (0, 1, 2, 17, 1000):
        assert sorted(Generator(count).randperm(count).tolist()) == list(range(count))


def test_fused_multiply_add_rounds_once() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=2000)
    for y, z in ((1.7, 0.3), (-0.1, 1e-17), (3.0, -2.9999)):
        exact = [float(Fraction(value) * Fraction(y) + Fraction(z)) for value in x.tolist()]
        assert random.fma64(x, y, z).tolist() == exact
    assert np.isfinite(random.fma64(x, 1e300, 1e300)).all()


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(random).failed == 0


SIZES = [0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 20, 31, 32, 33, 47, 48, 100, 160, 623, 624, 625, 1000, 4099]
SEEDS = [0, 1, 2, 3, 42, 123, 1234, 2**31, 2**32 - 1, 2**32, 2**40 + 17, 2**64 - 1, -1, -(2**63)]


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch", reason="PyTorch is the peer that draws the expected numbers")
    if module.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("without AVX2, PyTorch rounds blocks of float32 normal numbers in another way")
    return module


Pair = tuple[Callable[[Generator], Any], Callable[[Any], Any]]


def draws(size: int) -> dict[str, Pair]:
    """The same call to both, by name."""
    pairs: dict[str, Pair] = {
        "randint": (lambda g: g.randint(-7, 93, (size,)), lambda t: t.randint(-7, 93, (size,))),
        "randint long": (lambda g: g.randint(-5, 2**50, (size,)), lambda t: t.randint(-5, 2**50, (size,))),
        "randint all": (
            lambda g: g.randint(-(2**63), 2**63 - 1, (size,)),
            lambda t: t.randint(-(2**63), 2**63 - 1, (size,)),
        ),
        "randperm": (lambda g: g.randperm(size), lambda t: t.randperm(size)),
        "bernoulli": (lambda g: g.bernoulli((size,), 0.3), lambda t: t.empty(size, dtype=t.bool).bernoulli_(0.3)),
        "bernoulli each": (
            lambda g: g.bernoulli((size,), np.linspace(0, 1, size, dtype="f4")),
            lambda t: t.bernoulli(t.from_numpy(np.linspace(0, 1, size, dtype="f4"))).bool(),
        ),
        "bernoulli each double": (
            lambda g: g.bernoulli((size,), np.linspace(0, 1, size)),
            lambda t: t.bernoulli(t.from_numpy(np.linspace(0, 1, size))).bool(),
        ),
        "strided": (
            lambda g: g.normal_like(np.empty((2, size + 1), "f4").T),
            lambda t: t.empty(2, size + 1).T.normal_(),
        ),
        "strided uniform": (
            lambda g: g.uniform_like(np.empty((3, size, 4))[:, ::2].transpose(2, 0, 1), -1, 3),
            lambda t: t.empty(3, size, 4, dtype=t.float64)[:, ::2].permute(2, 0, 1).uniform_(-1, 3),
        ),
    }
    for dtype in ("float32", "float64", "float16"):
        pairs |= float_draws(size, dtype)
    return pairs


def float_draws(size: int, dtype: str) -> dict[str, Pair]:
    def empty(torch: Any) -> Any:
        return torch.empty(size, dtype=getattr(torch, dtype))

    return {
        f"rand {dtype}": (lambda g: g.uniform((size,), dtype=dtype), lambda t: t.rand(size, dtype=getattr(t, dtype))),
        f"randn {dtype}": (lambda g: g.normal((size,), dtype=dtype), lambda t: t.randn(size, dtype=getattr(t, dtype))),
        f"uniform {dtype}": (
            lambda g: g.uniform((size,), -0.37, 0.711, dtype),
            lambda t: empty(t).uniform_(-0.37, 0.711),
        ),
        f"normal {dtype}": (lambda g: g.normal((size,), 0.3, 1.7, dtype), lambda t: empty(t).normal_(0.3, 1.7)),
    }


@pytest.mark.peers
@pytest.mark.parametrize("name", list(draws(1)))
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_streams_of_every_size_and_seed(torch: Any, name: str) -> None:
    for size in SIZES:
        ours, theirs = draws(size)[name]
        for seed in SEEDS:
            torch.manual_seed(seed)
            assert ulps(ours(Generator(seed)), theirs(torch).numpy()) <= 1, (size, seed)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_programs_that_mix_draws(torch: Any) -> None:
    """400 programs of eight draws each: what every draw takes from the stream, and what it leaves behind."""
    rng = np.random.default_rng(4)
    names = list(draws(1))
    for seed in range(400):
        torch.manual_seed(seed)
        generator = Generator(seed)
        history = []
        for _ in range(8):
            size, name = int(rng.integers(0, 40)), str(rng.choice(names))
            history.append((name, size))
            ours, theirs = draws(size)[name]
            assert ulps(ours(generator), theirs(torch).numpy()) <= 1, (seed, history)


@pytest.mark.peers
def test_a_large_sample_of_normal_numbers_is_equal_bit_for_bit(torch: Any) -> None:
    torch.manual_seed(11)
    generator = Generator(11)
    assert (generator.normal((500_000,)) == torch.randn(500_000).numpy()).all()
    assert (generator.normal((50_000,), dtype="float64") == torch.randn(50_000, dtype=torch.float64).numpy()).all()

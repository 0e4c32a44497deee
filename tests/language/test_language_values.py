"""The edges of the language: sources and their encodings, limits, and the bindings of --at."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.base.diagnostics import GradcliError, Span
from gradcli.interfaces.command_parts.check_inputs import boxes
from gradcli.interfaces.commands.derive import shapes_of
from gradcli.interfaces.options.shared_options import names
from gradcli.language import (
    DEFAULT_LIMITS,
    FileReference,
    Limits,
    Source,
    decode_source,
    file_expectation,
    make_limits,
    parse,
    parse_at,
    parse_expression,
    parse_limits,
    read_source,
    unparse,
)
from gradcli.language.values import leaf_of
from gradcli.lowering import lower
from gradcli.lowering.points import read_point


def code_of(call: object, *args: object) -> tuple[str, str]:
    with pytest.raises(GradcliError) as caught:
        call(*args)  # type: ignore[operator]
    (diagnostic,) = caught.value.diagnostics
    return diagnostic.code, diagnostic.message


# sources ----------------------------------------------------------------------------------------------------


def test_lines() -> None:
    source = Source("a\nb\r\nc\rd\n")
    assert [source.line(number) for number in range(7)] == ["", "a", "b", "c", "d", "", ""]
    assert source.line_count == 5
    assert Source("").line_count == 1
    assert Source("a\u2028b\x0cc\x85d").line_count == 1  # only LF, CR LF and CR end a line
    assert source.span(2, 3) == Span(2, 1, 2, 2)
    assert source.span(0, 7) == Span(1, 1, 4, 1)


def test_a_mark_at_the_start_is_no_character() -> None:
    source = Source("\ufeffx + $")
    assert source.text == "x + $"
    with pytest.raises(GradcliError) as caught:
        parse(source)
    assert caught.value.diagnostics[0].span == (1, 5, 1, 6)


def test_decoding() -> None:
    assert decode_source(b"\xef\xbb\xbfx**2").text == "x**2"
    assert decode_source("α = 2".encode()).text == "α = 2"
    for data, place in {
        b"x + \xff": "line 1, column 5",
        b"x = 1\r\n\xce\xb1 + \xe9": "line 2, column 5",
        b"\xed\xa0\x80": "line 1, column 1",
    }.items():
        code, message = code_of(decode_source, data)
        assert code == "GC102"
        assert message.endswith(place)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        data = "xy = 2é".encode(encoding)
        if encoding == "utf-16":
            assert code_of(decode_source, data) == ("GC102", "<stdin> is UTF-16, not UTF-8")
        else:
            with pytest.raises(GradcliError) as caught:
                parse(decode_source(data))
            assert {diagnostic.code for diagnostic in caught.value.diagnostics} <= {"GC102", "GC103"}


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.grad"
    path.write_bytes(b"x**2")
    source = read_source(path)
    assert (source.name, source.path, source.text) == (str(path), str(path), "x**2")
    assert code_of(read_source, tmp_path / "b.grad")[0] == "GC601"
    assert code_of(read_source, tmp_path)[0] == "GC601"
    assert code_of(read_source, "a\x00b")[0] == "GC601"
    path.write_bytes(b"x" * 100)
    assert code_of(read_source, path, Limits(text=99))[0] == "GC501"
    assert code_of(read_source, "/dev/zero")[0] == "GC501"
    evil = tmp_path / "a\x1b[31m\u202e.grad"
    assert "\x1b" not in code_of(read_source, evil)[1]


def test_expectation_without_parsing() -> None:
    assert file_expectation(Source("# expect: error GC301\na +")) == "error GC301"
    assert file_expectation(Source("a + b +  # expect: error GC112")) == "error GC112"
    assert file_expectation(Source("# expect: fail\nx")) == "fail"
    assert file_expectation(Source("abs(x)  # expect: kink")) is None
    assert file_expectation(Source("x\n# expect: error GC301")) is None
    assert file_expectation(Source("# rtol=2")) is None


# limits -----------------------------------------------------------------------------------------------------


def test_limits() -> None:
    limits = parse_limits("text=64KiB,nodes=1e6, nesting=1_000 ,digits=400")
    assert limits.as_dict() == {**DEFAULT_LIMITS.as_dict(), "nesting": 1000}
    assert parse_limits("text=2MB").text == 2_000_000
    assert parse_limits("text=1mib").text == 2**20
    assert parse_limits("nodes=5", limits).nesting == 1000
    assert make_limits({"nodes": 10, "text": "1KiB"}).as_dict()["text"] == 1024
    assert repr(Limits()).startswith("Limits(text=65536, nodes=1000000, nesting=200, digits=400")


BAD_LIMITS = [
    "",
    "text",
    "text=",
    "text=-1",
    "text=0",
    "nesting=deep",
    "nesting=1KiB",
    "txt=3",
    "text=1,text=2",
]
BAD_LIMITS += ["nodes=1.5", "nodes=1e99", "text=" + "9" * 100, "text=1 KiB KiB", "nodes=٣", "text=1TiB"]


@pytest.mark.parametrize("text", BAD_LIMITS)
def test_bad_limits(text: str) -> None:
    assert code_of(parse_limits, text)[0] == "GC702"


@pytest.mark.parametrize("value", [True, 1.5, None, [1], -3, 0, 10**30])
def test_bad_limit_values(value: object) -> None:
    assert code_of(make_limits, {"nodes": value})[0] == "GC702"


# points -----------------------------------------------------------------------------------------------------

AT = {
    "x=2": {"x": "2"},
    "x=2,y=3": {"x": "2", "y": "3"},
    " x = -1/3 , y = 2*pi ": {"x": "-1/3", "y": "2*pi"},
    "x=[1,2,3],y=[[1, 2], [3, 4]]": {"x": "[1, 2, 3]", "y": "[[1, 2], [3, 4]]"},
    "x=randn(3,4),y=1e-3": {"x": "randn(3, 4)", "y": "1e-3"},
    "X=@data.npy": {"X": "@data.npy"},
    "X=@a,b.npy,y=2": {"X": "@a,b.npy", "y": "2"},
    "X=@C:\\data\\x y.npy,y=inf": {"X": "@C:\\data\\x y.npy", "y": "inf"},
    "α=1": {"α": "1"},
    "x=load('a,b.csv'),y=1": {"x": 'load("a,b.csv")', "y": "1"},
}


@pytest.mark.parametrize("text", AT)
def test_bindings(text: str) -> None:
    found = {}
    for binding in parse_at(text):
        value = binding.value
        found[binding.name] = f"@{value.path}" if isinstance(value, FileReference) else unparse(value)
    assert found == AT[text]


def test_random_arrays_of_a_point_differ() -> None:
    point, _ = read_point(["x=randn(3),y=randn(3)", "z=randn(3)"])
    script = lower(parse("w = randn(3); sum(w)")).values["w"]
    arrays = [*point.values(), script]
    assert len({float(one[0]) for one in arrays}) == 4
    again, _ = read_point(["x=randn(3),y=randn(3),z=randn(3)"])
    assert all((again[name] == point[name]).all() for name in "xyz")
    seeded, _ = read_point(["x=randn(3,seed=1),y=randn(3,seed=1)"])
    assert (seeded["x"] == seeded["y"]).all()


def test_spans_of_bindings() -> None:
    first, second = parse_at("x=2, yy=[1, z]")
    assert first.span == (1, 1, 1, 4)
    assert second.span == (1, 6, 1, 15)
    assert not isinstance(second.value, FileReference)
    assert second.value.span == (1, 9, 1, 15)


def test_lambda_is_the_letter() -> None:
    """As in LaTeX: it is a word of Python, so that no other leaf has this name."""
    assert [binding.name for binding in parse_at("lambda=2, x=3")] == ["λ", "x"]
    assert leaf_of("lambda") == ("λ", 1) and leaf_of("hessian(lambda)") == ("λ", 2)
    assert boxes(("lambda=1:2",)) == {"λ": (1.0, 2.0)} and names("x,lambda") == ["x", "λ"]
    assert shapes_of(("lambda=n",)) == {"λ": ("n",)}


BAD_AT = {
    "": "GC701",
    "x": "GC701",
    "x==2": "GC701",
    "x:2": "GC701",
    "2=x": "GC701",
    "x=": "GC701",
    "x=,y=2": "GC701",
    "x=1,": "GC701",
    "x=1,,y=2": "GC701",
    "x=1,x=2": "GC701",
    "x=1 y=2": "GC701",
    "x=1;y=2": "GC701",
    "x=0:1:5": "GC701",
    "for=2": "GC701",
    "x=@": "GC701",
    "x=@a\x1bb": "GC701",
    "x=(1,2": "GC113",
    "x=1+": "GC112",
    "x=$": "GC105",
    "x=1e400": "GC107",
    "x=y.shape": "GC117",
    "x='a'": "GC110",
    "x=1\ny=2": "GC701",
    "\u0445=1": "GC701",
}


@pytest.mark.parametrize("text", BAD_AT, ids=ascii)
def test_bad_bindings(text: str) -> None:
    assert code_of(parse_at, text)[0] == BAD_AT[text]


def test_many_bindings_take_linear_time() -> None:
    limits = parse_limits("text=10MiB")
    text = ",".join(f"x{i}={i}" for i in range(20_000))
    assert len(parse_at(text, limits)) == 20_000
    assert code_of(parse_at, text)[0] == "GC501"


# expressions ------------------------------------------------------------------------------------------------


def test_one_expression() -> None:
    assert unparse(parse_expression("x + 1  # note")) == "x + 1"
    for text, code in {
        "": "GC101",
        "x; y": "GC131",
        "x\ny": "GC131",
        "x = 2": "GC115",
        "x, y": "GC131",
    }.items():
        assert code_of(parse_expression, text)[0] == code


def test_whole_numbers_that_no_double_holds_are_said_to_be_rounded() -> None:
    point, notes = read_point(["x=9007199254740993", "y=[-9007199254740995, 9007199254740992, 1e300, 0.1]"])
    assert point["x"] == 2.0**53
    assert [note.code for note in notes] == ["GC414", "GC414"]
    assert "nearest to 9007199254740993 is 9007199254740992" in notes[0].message

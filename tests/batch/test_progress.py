"""The progress line: what it says, that it fits, and how often it is drawn."""

from __future__ import annotations

import io
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.interfaces import output
from gradcli.rendering.progress import Progress, duration
from gradcli.rendering.safe_text import width


def after(rate: float, seconds: int, cells: int = 200, total: int = 10_000, failed: int = 3) -> str:
    """The line after so many seconds of steady work."""
    bar = Progress()
    lines = [
        bar.line(float(now), cells, int(now * rate), total, "samples/ml/softmax.grad", failed)
        for now in range(seconds + 1)
    ]
    assert lines[-1] is not None
    return lines[-1]


def test_everything_in_one_line() -> None:
    assert (
        after(312 / 8, 8) == "[....................]  312/10,000  3 failed  about 4 min left  samples/ml/softmax.grad"
    )
    assert after(1250, 4, failed=0) == "[##########..........]  5,000/10,000  about 5 s left  samples/ml/softmax.grad"
    assert (
        after(1250, 1, failed=0) == "[##..................]  1,250/10,000  samples/ml/softmax.grad"
    )  # too early to tell


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        (86, "[....................]  312/10,000  3 failed  about 4 min left  samples/ml/…ftmax.grad"),
        (79, "[....................]  312/10,000  3 failed  about 4 min left  samples…ax.grad"),
        (70, "[....................]  312/10,000  3 failed  about 4 min left"),
        (57, "[....................]  312/10,000  3 failed  sampl….grad"),
        (45, "[....................]  312/10,000  3 failed"),
        (40, "312/10,000  3 failed  about 4 min left"),
        (20, "312/10,000  3 failed"),
        (19, "312/10,000"),
        (9, "3%"),
        (1, "3"),
        (0, ""),
    ],
)
def test_what_does_not_fit_is_left_out(cells: int, line: str) -> None:
    assert after(312 / 8, 8, cells) == line


@settings(deadline=None)
@given(
    st.text("a/.é\x1b\u202e模\u0301\n\ud800\t", max_size=60),
    st.integers(0, 120),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_the_line_fits_and_is_harmless(label: str, cells: int, done: int, total: int, failed: int) -> None:
    line = Progress().line(0.0, cells, min(done, total), total, label, failed)
    assert line is not None
    assert width(line) <= cells
    assert line.isprintable()


def test_the_estimate_follows_the_rate() -> None:
    """8,000 answers from a journal at once, then ten a second: soon the estimate is that of the work that is left."""
    bar = Progress()
    line = None
    for tick in range(400):
        now = tick / 2
        done = min(8000, tick * 4000) + max(0, tick - 2) * 5
        line = bar.line(now, 200, done, 20_000, "", 0) or line
    assert line is not None
    left = (20_000 - 8000 - 397 * 5) / 10 / 60
    minutes = float(re.findall(r"about ([0-9]+) min left", line)[0])
    assert minutes == pytest.approx(left, rel=0.1)


def test_nothing_done_for_a_long_time() -> None:
    bar = Progress()
    bar.line(0.0, 80, 0, 10)
    assert bar.line(60.0, 80, 0, 10) == "[....................]  0/10"
    slow = bar.line(61.0, 80, 1, 10)
    later = bar.line(200.0, 80, 1, 10)
    assert slow is not None
    assert later is not None
    assert "left" in slow


def test_durations() -> None:
    assert [duration(seconds) for seconds in (0, 7, 33, 57.4, 58, 89, 95, 3569, 3570, 5400, 35_000, 400_000)] == [
        "5 s", "5 s", "35 s", "55 s", "1 min", "1 min", "2 min", "59 min", "1 h", "1 h 30 min", "9 h 40 min", "111 h",
    ]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error as a terminal of 80 cells, and a clock that every look moves by 10 ms."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    ticks = iter(range(10**6))
    monkeypatch.setattr(output, "monotonic", lambda: next(ticks) / 100)
    return stream


def writer() -> output.Output:
    return output.Output({"output": None, "format": "plain", "color": "auto", "digits": None}, ("plain",), (), {})


def test_ten_lines_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    out = writer()
    for done in range(300):  # three seconds
        out.progress(done, 1000, "a.grad")
    assert 28 <= screen.getvalue().count("\r") <= 31


def test_other_output_wipes_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    out = writer()
    out.progress(1, 10, "a.grad")
    assert screen.getvalue() == "\r[##..................]  1/10  a.grad\x1b[K"
    out.say("a note")
    assert screen.getvalue().endswith("a.grad\x1b[K\r\x1b[Ka note\n")
    for _ in range(20):
        out.progress(2, 10, "b.grad")
    out.line("a result")
    assert screen.getvalue().endswith("b.grad\x1b[K\r\x1b[K")
    before = len(screen.getvalue())
    for _ in range(20):
        out.progress(3, 10)
    out.progress(10, 10)
    out.close()
    assert screen.getvalue()[before:] == "\r[######..............]  3/10\x1b[K\r\x1b[K"


def test_no_line_where_it_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    writer().progress(1, 10)
    assert screen.getvalue() == ""
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    monkeypatch.setenv("TERM", "xterm")
    writer().progress(1, 10)
    assert plain.getvalue() == ""

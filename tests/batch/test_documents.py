"""Blocks of documents: which ones are found, and that their lines and columns are those of the document."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.base.diagnostics import GradcliError
from gradcli.batch.discovery.cases import BatchCase, block_limits
from gradcli.batch.discovery.documents import blocks, is_document, markdown, restructured
from gradcli.batch.discovery.walk import find_cases
from gradcli.checks import check_script
from gradcli.language.limits import Limits
from gradcli.language.source import LINE_END, Source, decode_source


def found(text: str, tmp_path: Path, name: str = "guide.md") -> list[BatchCase]:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return blocks(str(path))


# a document, and what its blocks hold, with the line where each begins
MARKDOWN = {
    "backticks": ("a\n\n```gradcli\nx = 2\nx**2\n```\nb\n", [(4, "x = 2\nx**2\n")]),
    "tildes": ("~~~gradcli\nx\n~~~\n", [(2, "x\n")]),
    "a space before the word": ("``` gradcli\nx\n```\n", [(2, "x\n")]),
    "a longer fence": ("`````gradcli\nx\n```\n`````\n", [(2, "x\n```\n")]),
    "a fence that is never closed": ("```gradcli\nx\ny\n", [(2, "x\ny\n")]),
    "no line end at the end": ("```gradcli\nx", [(2, "x\n")]),
    "an indented fence": ("   ```gradcli\n   x\n     y\n   ```\n", [(2, "   x\n     y\n")]),
    "indented code": ("a\n\n    ```gradcli\n    x\n    ```\n", []),
    "other languages": ("```python\nx\n```\n```\nx\n```\n```gradcli-output\nx\n```\n```gradcli.x\n```\n", []),
    "inside another fence": ("````markdown\n```gradcli\nx\n```\n````\n", []),
    "inside a comment": ("<!--\n\n```gradcli\nx\n```\n-->\n", []),
    "inside folded details": ("<details>\n\n```gradcli\nx\n```\n\n</details>\n", [(4, "x\n")]),
    "in a list": ("- a\n\n  ```gradcli\n  x = 2\n\n  x**2\n  ```\n", [(4, "  x = 2\n\n  x**2\n")]),
    "at once in a list": ("1. ```gradcli\n   x\n   ```\n", [(2, "   x\n")]),
    "in a quotation": ("> ~~~gradcli\n> x = 2\n>\n> x**2\n> ~~~\n", [(2, "  x = 2\n\n  x**2\n")]),
    "in a quotation in a list": (
        "* > ```gradcli\n  > for i in range(2):\n  >   x\n",
        [(2, "    for i in range(2):\n      x\n")],
    ),
    "with tabs": ("1.\t```gradcli\n\tx\n\ty\n\t```\n", [(2, "\tx\n\ty\n")]),
    "uneven quotation": ("> ```gradcli\n> x = 2\n>x**2\n> ```\n", [(2, "x = 2\nx**2\n")]),
    "two blocks": ("```gradcli\nx\n```\n\n```gradcli\ny\n```\n", [(2, "x\n"), (6, "y\n")]),
    "ignored": ("```gradcli ignore\nx\n```\n```gradcli\ny\n```\n", [(5, "y\n")]),
    "ignored in other ways": ("```gradcli,ignore\n```\n```{.gradcli .ignore}\n```\n```gradcli {ignore}\n```\n", []),
    "other attributes": ('```gradcli title="ignored.grad" linenums=1\nx\n```\n', [(2, "x\n")]),
    "Pandoc, with a name": ("```{#a .gradcli}\nx\n```\n```{.numberLines .gradcli}\ny\n```\n", [(2, "x\n"), (5, "y\n")]),
    "character references": ("```gr&#97;dcli\nx\n```\n", [(2, "x\n")]),
    "in folded details in a list": ("- <details>\n\n  ```gradcli\n  x\n  ```\n", [(4, "  x\n")]),
    "behind a comment": ("<!-- a -->\n```gradcli\nx\n```\n", [(3, "x\n")]),
    "behind text and a table": ("a\n```gradcli\nx\n```\n|a|\n|-|\n```gradcli\ny\n```\n", [(3, "x\n"), (8, "y\n")]),
    "behind other line ends": ("a\u2028b\x0b\x0c\u0085\n```gradcli\nx\n```\n", [(3, "x\n")]),
    "behind front matter": ("---\na: 1\n---\n```gradcli\nx\n```\n", [(5, "x\n")]),
    "Pandoc": ("```{.gradcli .numberLines}\nx\n```\n", [(2, "x\n")]),
    "MyST": ("```{code-block} gradcli\n:caption: A\n:linenos:\nx\n```\n", [(4, "x\n")]),
    "MyST, ignored": ("```{code-block} gradcli\n:class: ignore\nx\n```\n", []),
    "upper case": ("```GradCLI\nx\n```\n", [(2, "x\n")]),
    "an empty block": ("```gradcli\n```\n", [(2, "")]),
    "Windows": ("a\r\n\r\n```gradcli\r\nx = 2\r\nx\r\n```\r\n", [(4, "x = 2\nx\n")]),
    "byte order mark": ("\ufeff```gradcli\nx\n```\n", [(2, "x\n")]),
    "other line separators": ("a\u2028b\x0cc\n\n```gradcli\nx\n```\n", [(4, "x\n")]),
    "heading and thematic break": ("---\ntitle: gradcli\n---\n# A\n```gradcli\nx\n```\n", [(6, "x\n")]),
}

RESTRUCTURED = {
    "code-block": ("a\n\n.. code-block:: gradcli\n\n   x = 2\n   x**2\n\nb\n", [(4, "\n   x = 2\n   x**2\n\n")]),
    "code": (".. code:: gradcli\n\n  x\n", [(2, "\n  x\n\n")]),
    "sourcecode, options": (
        ".. sourcecode:: gradcli\n   :linenos:\n   :name: a\n\n   x\nb\n",
        [(4, "\n   x\n")],
    ),
    "ignored": (".. code:: gradcli\n   :class: ignore\n\n   x\n\n.. code:: gradcli\n\n   y\n", [(7, "\n   y\n\n")]),
    "other languages": (".. code:: python\n\n   x\n\n.. code-block::\n\n   gradcli\n", []),
    "in a note": (".. note::\n   a\n\n   .. code:: gradcli\n\n      x\n\n   b\n", [(5, "\n      x\n\n")]),
    "in a list": ("- a\n\n  .. code:: gradcli\n\n     x\n\n  b\n- .. code:: gradcli\n\n     y\n", [(4, "\n     x\n\n"), (9, "\n     y\n\n")]),
    "in a comment": (".. not now\n\n   .. code:: gradcli\n\n      x\n\n.. code:: gradcli\n\n   y\n", [(8, "\n   y\n\n")]),
    "after an empty comment": ("..\n\n   .. code:: gradcli\n\n      x\n", [(4, "\n      x\n\n")]),
    "in a literal block": ("like this::\n\n   .. code:: gradcli\n\n      x\n\nb\n", []),
    "in other code": (".. code:: rst\n\n   .. code:: gradcli\n\n      x\n", []),
    "after a target": (".. _here:\n\n.. code:: gradcli\n\n   x\n", [(4, "\n   x\n\n")]),
    "no directive": (".. code::gradcli\n\n   x\n\n.. code: gradcli\n\n   x\n", []),
    "with tabs": (".. code:: gradcli\n\n\tx = 2\n\tx\n", [(2, "\n        x = 2\n        x\n\n")]),
    "Markdown": ("```gradcli\nx\n```\n", []),
}  # fmt: skip


@pytest.mark.parametrize("case", MARKDOWN)
def test_markdown(case: str, tmp_path: Path) -> None:
    text, expected = MARKDOWN[case]
    assert [(one.line, one.text) for one in found(text, tmp_path)] == expected


@pytest.mark.parametrize("case", RESTRUCTURED)
def test_restructured_text(case: str, tmp_path: Path) -> None:
    text, expected = RESTRUCTURED[case]
    assert [(one.line, one.text) for one in found(text, tmp_path, "guide.rst")] == expected


def test_ignored_blocks_count(tmp_path: Path) -> None:
    text = "```gradcli ignore\n```\n```gradcli\nx\n```\n"
    assert [one.name for one in found(text, tmp_path)] == [f"{tmp_path / 'guide.md'} (block 2)"]


CONTAINERS = {"": ("", ""), "list": ("- ", "  "), "numbers": ("10. ", "    "), "quotation": ("> ", "> ")}
SCRIPT = ["x = 2", "for i in range(3):", "    x = x + sin(x)", "", "assert grad(x**2, x) == 2*x  # no", "x**2"]


@settings(max_examples=60, deadline=None)
@given(
    shapes=st.lists(
        st.tuples(st.lists(st.sampled_from(sorted(CONTAINERS)), max_size=3), st.sampled_from("`~"), st.integers(3, 5)),
        min_size=1,
        max_size=4,
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_every_line_has_its_place(
    shapes: list[tuple[list[str], str, int]], end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A script in nested lists and quotations: each of its lines is found where the document has it."""
    lines, starts = [], []
    for containers, mark, count in shapes:
        first = "".join(CONTAINERS[one][0] for one in containers)
        later = "".join(CONTAINERS[one][1] for one in containers)
        lines += ["Some text.", "", first + mark * count + "gradcli"]
        starts.append(len(lines) + 1)
        lines += [later + line if line else later.rstrip() for line in SCRIPT]
        lines += [later + mark * count, "", "<!-- between -->", ""]
    place = tmp_path_factory.mktemp("laws")
    seen = found(end.join(lines), place)
    assert [one.line for one in seen] == starts
    for one in seen:
        content = one.content()
        assert content is not None
        source = decode_source(content)
        for offset, line in enumerate(SCRIPT):
            shown, original = source.line(one.line + offset), lines[one.line + offset - 1]
            assert shown.lstrip() == line.lstrip()
            assert len(shown) == len(original) or not line
        assert source.first_line == one.line


def test_errors_point_into_the_document(tmp_path: Path) -> None:
    (case,) = found("# Title\n\n1. Look:\n\n   ```gradcli\n   x = 2\n   sine(x)\n   ```\n", tmp_path)
    content = case.content()
    assert content is not None
    with pytest.raises(GradcliError) as caught:
        check_script(decode_source(content, case.path, case.path))
    (problem,) = caught.value.diagnostics
    assert problem.span is not None
    assert tuple(problem.span)[:3] == (7, 4, 7)


def test_remarks_and_seeds_do_not_depend_on_the_place(tmp_path: Path) -> None:
    script = "# expect: fail\nx = 0.7\nassert grad(x**2, x) == x\nsin(x)"
    alone = check_script(script)
    inside = check_script("\n" * 40 + script)
    assert [(one.verdict, one.passed, one.evidence["seed"], one.expected) for one in alone.checks] == [
        (one.verdict, one.passed, one.evidence["seed"], one.expected) for one in inside.checks
    ]
    assert [one.line for one in inside.checks] == [(one.line or 0) + 40 for one in alone.checks]
    (expected,) = check_script("\n\n# expect: error GC201\nsine(x)").checks
    assert expected.passed
    assert expected.line == 4


def test_the_first_line_that_is_not_empty() -> None:
    assert [Source(text).first_line for text in ("x", "\n\n x", "", "\r\n\r\nx", " \nx", "\n\n")] == [1, 3, 1, 3, 1, 3]


def test_a_document_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "latin.md"
    path.write_bytes(b"# gradcli\n\ncaf\xe9 \xff\n\n```gradcli\nx\n```\n")
    (case,) = blocks(str(path))
    content = case.content()
    assert (case.block, content) == (0, b"\n\ncaf\xe9 \xff")
    with pytest.raises(GradcliError) as caught:
        decode_source(content or b"")
    (problem,) = caught.value.diagnostics
    assert problem.code == "GC102"
    assert problem.span is not None
    assert tuple(problem.span)[:2] == (3, 4)
    path.write_bytes(b"\xef\xbb\xbfgradcli\n\xff\n")
    assert [one.content() for one in blocks(str(path))] == [b"\n\xff"]
    path.write_bytes("a\n```gradcli\nx\n```\n".encode("utf-16"))
    (case,) = blocks(str(path))
    with pytest.raises(GradcliError, match="UTF-16"):
        decode_source(case.content() or b"")
    path.write_bytes(b"caf\xe9, which is about something else\n")
    assert blocks(str(path)) == []
    assert blocks(str(tmp_path / "missing.md")) == [BatchCase(str(tmp_path / "missing.md"))]


def test_pipes_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    os.mkfifo(tmp_path / "pipe.grad")
    assert find_cases([str(tmp_path)], docs=True) == [], "in a folder they are left out"
    for name in ("pipe.md", "pipe.grad"):
        (case,) = find_cases([str(tmp_path / name)], docs=True)
        assert case.content() is None


def test_the_lines_above_a_block_do_not_count_as_its_text(tmp_path: Path) -> None:
    (case,) = found("\n" * 70_000 + "```gradcli\nx**2\n```\n", tmp_path)
    content = case.content()
    assert content is not None
    with pytest.raises(GradcliError):
        decode_source(content)
    limits = block_limits(content)
    assert [
        one.line for one in check_script(decode_source(content, limits=limits), at={"x": 1}, limits=limits).checks
    ] == [70_002]
    with pytest.raises(GradcliError):
        decode_source(b"\n\n" + b"x" * 11, limits=block_limits(b"\n\n" + b"x" * 11, Limits(text=10)))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(
    ["```gradcli", "```", "~~~gradcli ignore", "~~~", "> ", "- ", "    ", "\t", "x", "", "<!--", "-->", "\x00", "`", ".. code:: gradcli", "::",
     "..", ":a: b", "   ", "{code-block} gradcli", "\r", "\x0b", "é", "1. ", "[a]: b", "===", "* "]
), max_size=30).map("\n".join) | st.text("`~> -*gradcli\n\t:.x", max_size=60).map("```gradcli\n{}".format))  # fmt: skip
def test_any_text_is_a_document(text: str) -> None:
    """Nothing raises, and what a block has is what the document has on the same lines."""
    lines = LINE_END.split(text)
    for reader in (markdown, restructured):
        for block in reader(lines):
            for offset, line in enumerate(block.lines):
                wanted = "".join(line.replace("\ufffd", "\x00").split())
                assert "".join(lines[block.line + offset - 1].split()).endswith(wanted), (block, offset)


def test_which_files_are_documents() -> None:
    assert [name for name in ("a.md", "README.MD", "b.markdown", "c.rst", "d.txt", "md", "e.grad") if is_document(name)] == [
        "a.md", "README.MD", "b.markdown", "c.rst",
    ]  # fmt: skip

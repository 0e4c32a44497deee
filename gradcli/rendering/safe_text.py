"""Makes user text safe to show: no control, bidi or invisible character reaches the terminal, no command a build log.

Widths are those of a terminal: a wide character takes two cells, a combining one none.
"""

from __future__ import annotations

from gradcli.base.diagnostics import escaped, without_commands

TAB = "    "
# what stands for the lines and arrows of pictures where an encoding has only ASCII
DRAWN = str.maketrans("─│└├┤→↗↑↖←↙↓↘·×−", "-|+++>/^\\</v\\.x-")
UPPER, LOWER = 0x1B, 0xE4  # the dots of both halves of a braille character


def visible(text: str) -> str:
    """The whole text with tabs as spaces and what a terminal does not draw as escapes such as `\\x1b`."""
    text = without_commands(text)
    return text if text.isprintable() else "".join(map(visible_character, text))


def path_text(path: str) -> str:
    """A path as a line may begin with it: one that begins like an option or a command of a log gets `./` in front."""
    return visible(path if path[:1].isalnum() or path[:1] in ("", "_", ".", "/", "\\", "~") else f"./{path}")


def visible_character(character: str) -> str:
    """One character as `visible` writes it."""
    if character.isprintable():
        return character
    return TAB if character == "\t" else escaped(character)


def drawn_in_ascii(text: str) -> str:
    """Characters of pictures in ASCII, one for one, and others as escapes.

    >>> drawn_in_ascii("├─ x⠋⣀⡇→ θ")
    "+- x'.:> \\\\u03b8"
    """
    return "".join(map(character_in_ascii, text))


def character_in_ascii(character: str) -> str:
    """One character as `drawn_in_ascii` writes it."""
    dots = ord(character) - 0x2800
    if 0 <= dots < 256:  # braille, of which plots are made
        return " '.:"[bool(dots & UPPER) + 2 * bool(dots & LOWER)]
    drawn = character.translate(DRAWN)
    return drawn if drawn.isascii() else escaped(character)


def width(text: str) -> int:
    """How many terminal cells the (visible) text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # rarely needed: one-liners are ASCII

    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def pad(text: str, cells: int, right: bool = False) -> str:
    """The text filled with spaces to a number of terminal cells."""
    fill = " " * max(0, cells - width(text))
    return fill + text if right else text + fill

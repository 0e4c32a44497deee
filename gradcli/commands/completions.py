"""`gradcli completions`: print a completion script for a shell, made from the declarations of all commands."""

from __future__ import annotations

from gradcli.codes import CODES
from gradcli.commands import COMMANDS, declaration, room
from gradcli.commands._declaration import Declaration, Operand
from gradcli.commands._shared import presentation
from gradcli.commands._shells import SHELLS, Offer
from gradcli.diagnostics import error, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gradcli import primitives
    from gradcli.commands._shared import Output
else:
    primitives = room("primitives")


def completions(output: Output, shell: str) -> int:
    """Print a completion script for bash, zsh or fish.

    The script is static: completing a word never starts Python. Run this again after an upgrade.

    Examples:
      gradcli completions bash > ~/.gradcli.bash    # source it in ~/.bashrc
      gradcli completions zsh > "${fpath[1]}/_gradcli"
      gradcli completions fish > ~/.config/fish/completions/gradcli.fish
    """
    if shell not in SHELLS:
        raise error("GC721", f"unknown shell `{visible(shell)}`", help="choose bash, zsh or fish")
    operations = sorted(name for name, one in primitives.catalogue().items() if not one.internal)
    words = {"ops": operations, "explain": sorted(CODES), "completions": sorted(SHELLS)}
    offers = {
        command: Offer(summary, declaration(command), words.get(command, ()))
        for command, (_, summary) in COMMANDS.items()
    }
    output.line(SHELLS[shell](offers))
    return 0


SHELL = Operand("shell", "bash|zsh|fish", "The shell.")
DECLARATION = Declaration(completions, (SHELL,), presentation("plain"))

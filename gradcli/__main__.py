"""`python -m gradcli`: the same as the command `gradcli`."""

from gradcli.cli import entry

if __name__ == "__main__":
    entry()

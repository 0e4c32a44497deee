"""Comments that a script is read with: settings (`# gradcli: ...`), expected results (`#> ...`), pragmas."""

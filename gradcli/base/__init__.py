"""What every room may use: diagnostics and their codes, light records, the user's cache, processes of Python.

Begin in `diagnostics.py`. `codes/` is the catalogue of errors and verdicts that `gradcli explain` prints, `results/`
holds the frozen records that the rooms give to `rendering/`.
"""

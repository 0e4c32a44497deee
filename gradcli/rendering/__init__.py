"""Results as text: tables, plain text, JSON, CSV, Markdown, LaTeX, pictures. Nothing is computed here.

gradcli lays out graphs itself, so that a picture is the same on every machine; a drawing needs no network and executes
nothing that a user wrote. Report formats (`formats/`) write a report in parts, so that it can be a stream.
"""

"""Results in, text out: tables, plain text, JSON, CSV, Markdown, LaTeX, JUnit. Nothing is computed here."""

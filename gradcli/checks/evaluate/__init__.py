"""Programs evaluated in other numbers than floats: begin with `interpretation`, what a kind of numbers has to supply.

`evaluation` walks a program; `balls` is the arithmetic of enclosures and of what moves, `complex_field` that of complex
entries.
"""

"""Programs evaluated in numbers other than floats. Begin with `interpretation`: what a type of numbers supplies.

`evaluation` walks a program; `balls` is the arithmetic of enclosures and of what moves, real or complex.
"""

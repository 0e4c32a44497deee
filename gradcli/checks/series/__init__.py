"""Power series with balls as coefficients: the derivative of a program, enclosed without any derivative rule of ours.

`numbers` and `functions` are the arithmetic, `field` lets the primitives' `ball` rules run on it, `reading` walks a
program along a direction, `gradients` asks for partials, Hessians and radii, `sides` for what happens at a tie.
"""

"""From enclosures, floats and differences to a verdict on one subject at one point.

Begin with `verdict`: both sides of an equality or a derivative are compared in balls, then in floats. `case` holds the
state of one subject, `refutation` decides what a difference means, `precision` measures floats, `rewrites` finds better
ones, `nonsmooth` names kinks, `boxes` goes through whole intervals. `numerical` is left where no oracle can read a
program, and all that there is of a black box.
"""

"""From enclosures, floats and differences to a verdict on one subject at one point.

Begin with `verdict`: both sides of an equality or a derivative are compared in balls, then in floats. `case` holds the
state of one subject, `assumptions` what a proof takes for granted, and `granting` alone grants PROVED and CERTIFIED.
`refutation` decides what a difference means, `precision` measures floats and `rewrites` finds formulas with better
ones, `nonsmooth` decides kinks, `boxes` whole intervals. `numerical` judges by finite differences: programs that no
oracle can read, and black boxes.
"""

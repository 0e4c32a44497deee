"""From enclosures, floats and differences to a verdict on one subject at one point.

Begin with `verdict`: E, the enclosed derivative, against R, what is judged, in balls; F, its floats, against E.
`case` is the state of one subject, `nonsmooth` for kinks, `refutation` for what is wrong, `precision` for poor floats,
`rewrites` for better ones, `boxes` for whole intervals; `numerical` is what is left where no oracle can read a program,
and all that there is of a black box.
"""

"""Derivatives enclosed by expansions of the forward program, and how a claim stands to them.

Begin with `derivative_query`: a derivative at a point. `jets` are series along straight lines, and both sides of ties,
`matrices` eigenvalues and exponentials, `subdivision` boxes; `claim_comparison` compares.
"""

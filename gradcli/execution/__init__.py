"""From a program to values: namespaces, the evaluator, plans, data files, domains, results.

`passes.py` lists what the planner does.
"""

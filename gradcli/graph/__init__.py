"""Computation graphs: types, operations, nodes, builders and programs.

`serial` of a node grows from arguments to results, so sorting by it is a topological order. A builder's table of equal
nodes is dropped when a program is finished; a transform opens it again with the program's nodes.
"""

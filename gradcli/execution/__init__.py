"""From a program to values: namespaces, evaluation, plans, and the results of callers. It parses no text."""

"""From a program to values: namespaces, the evaluator, data files, domains, records of results. Parses no script."""

"""Benchmarks: what gradcli costs beside its peers, as ratios in one run. Not part of the test suite."""

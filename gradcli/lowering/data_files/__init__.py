"""Data files: `loading.py` opens and checks them, and one module for each family of formats reads them.

Files are read, never memory-mapped: mapped pages count as memory of the process.
"""

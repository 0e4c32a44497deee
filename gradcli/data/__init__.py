"""Data files: `loading.py` opens them and checks what is trusted, one module for each family of formats reads them.

Files are read, never mapped: mapped pages count as memory of the process.
"""

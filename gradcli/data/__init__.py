"""Data files: `loading.py` opens them and checks what is trusted, one module for each family of formats reads them."""

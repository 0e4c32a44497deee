"""Functions and gradients as plots: in the terminal (`plots.py`), as SVG (`vector_plots.py`)."""

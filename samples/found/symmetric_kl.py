"""umap-learn 0.5.12, symmetric_kl_grad: the derivative by the other argument, without the normalisation."""

import numpy as np
from umap.distances import symmetric_kl, symmetric_kl_grad

Y = np.array([0.52, 0.21, 0.63, 0.37])


def f(x):
    return float(symmetric_kl(np.array(x), Y.copy()))


def df(x):
    return symmetric_kl_grad(np.array(x), Y.copy())[1]


def corrected(x):
    smooth = 1e-11  # as the package has it
    x, y = np.asarray(x) + smooth, Y + smooth
    p, q = x / x.sum(), y / y.sum()
    g = (np.log(p / q) + 1 - q / p) / 2
    return (g - np.sum(g * p)) / x.sum()

"""scikit-learn 1.9.1, _kl_divergence of TSNE with three components: a power of the kernel is wrong."""

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold._t_sne import _kl_divergence

rng = np.random.default_rng(3)
N, COMPONENTS, FREEDOM = 5, 3, 2
P = rng.random(N * (N - 1) // 2)
P /= 2 * P.sum()


def f(Y):
    return float(_kl_divergence(np.ravel(Y), P, FREEDOM, N, COMPONENTS)[0])


def df(Y):
    return _kl_divergence(np.ravel(Y), P, FREEDOM, N, COMPONENTS)[1].reshape(N, COMPONENTS)


def corrected(Y):
    Y = np.reshape(Y, (N, COMPONENTS))
    kernel = (1 + pdist(Y, "sqeuclidean") / FREEDOM) ** (-(FREEDOM + 1) / 2)
    weights = squareform((P - kernel / (2 * kernel.sum())) * kernel ** (2 / (FREEDOM + 1)))
    return 2 * (FREEDOM + 1) / FREEDOM * (weights.sum(axis=1)[:, None] * Y - weights @ Y)

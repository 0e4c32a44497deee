"""gpytorch 1.15.2, log_normal_cdf below -1: a fit for the far tail stands in, and backward is not its derivative."""

import numpy as np
import torch
from gpytorch.functions import LogNormalCDF, log_normal_cdf


def f(z):
    with torch.no_grad():
        return float(log_normal_cdf(torch.tensor([float(z)], dtype=torch.float64)))


def df(z):
    leaf = torch.tensor([float(z)], dtype=torch.float64, requires_grad=True)
    LogNormalCDF.apply(leaf).sum().backward()
    return float(leaf.grad)


def corrected_f(z):
    return float(torch.special.log_ndtr(torch.tensor(np.float64(z))))


def corrected(z):
    """Forward and backward of `torch.special.log_ndtr`, which has all digits."""
    leaf = torch.tensor(np.float64(z), requires_grad=True)
    torch.special.log_ndtr(leaf).backward()
    return float(leaf.grad)

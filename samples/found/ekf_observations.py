"""ahrs 0.4.0, EKF.dhdq with mode="refactored": a dot product is taken entry by entry."""

import numpy as np
from ahrs.filters import EKF
from ahrs.filters.ekf import skew

rng = np.random.default_rng(0)
EKF_OF = EKF(gyr=rng.normal(size=(5, 3)), acc=rng.normal(size=(5, 3)))
Q0 = np.array([0.5, 0.3, -0.7, 0.4]) / np.linalg.norm([0.5, 0.3, -0.7, 0.4])
BASIS = np.linalg.svd(Q0[None])[2][1:].T  # directions along which a quaternion keeps its length, to first order


def quaternion(w):
    """A unit quaternion near Q0 by three numbers, and its derivative."""
    q = Q0 + BASIS @ w
    size = np.linalg.norm(q)
    return q / size, (BASIS - np.outer(q, q @ BASIS) / size**2) / size


def f(w):
    return EKF_OF.h(quaternion(w)[0])


def df(w):
    q, dq = quaternion(w)
    return EKF_OF.dhdq(q, mode="refactored") @ dq


def corrected(w):
    (scalar, *vector), dq = quaternion(w)
    vector, g = np.array(vector), EKF_OF.a_ref
    t = skew(g) @ vector
    return 2 * np.c_[t, (vector @ g) * np.eye(3) + skew(t + scalar * g) - np.outer(g, vector)] @ dq

"""A package whose functions and derivatives are recognised by their names: tests/audit/test_pairs.py scans it."""

import numpy as np

A = np.array([[1.0, 2.0], [0.5, -1.0], [0.3, 0.7]])


# --- functions: right, but for quartic_grad; width and mass are no pairs --------------------------------------------


def square(x):
    return x @ x


def square_grad(x):
    return 2 * x


def cube(x):
    return np.sum(x**3)


def cube_grad(x):
    return 3 * x**2


def quartic(x):
    return np.sum(x**4)


def quartic_grad(x):
    return 3 * x**3


def sines(x):
    return np.sum(np.sin(x))


def sines_grad(x):
    return np.cos(x)


def width(x):
    return np.sum(x)


def width_jac(x):
    return np.ones((7, 5))


def mass(x):
    """
    >>> mass(2.0), mass_der(2.0)
    (8.0, 1.0)
    """
    return x**3


def mass_der(x):
    return x - 1.0


def affine(x):
    return A @ x[:2]


def affine_jacobian(x):
    return np.concatenate([A, np.zeros((3, len(x) - 2))], axis=1).T  # transposed


def loss_and_grad(w, b):
    return np.sum(w**2) * b, 2 * w * b


def decay_and_derivatives(t):
    return np.exp(-2 * t), -2 * np.exp(-2 * t), 4 * np.exp(-2 * t)  # and the second derivative


# --- classes --------------------------------------------------------------------------------------------------------


class Model:
    @staticmethod
    def evaluate(x, a, b):
        raise NotImplementedError

    @staticmethod
    def fit_deriv(x, a, b):
        raise NotImplementedError


class Line(Model):
    @staticmethod
    def evaluate(x, a, b):
        return a + b * x

    @staticmethod
    def fit_deriv(x, a, b):
        return [np.ones_like(x), x]


class Arc(Model):
    @staticmethod
    def evaluate(x, a, b):
        return a * x + b**2

    @staticmethod
    def fit_deriv(x, a, b):
        return [x, np.full_like(x, 2 * b)]


class Wave(Model):
    @staticmethod
    def evaluate(x, a, b):
        return a * np.sin(b * x)

    @staticmethod
    def fit_deriv(x, a, b):
        return [np.sin(b * x), a * x * np.cos(b * x)]


class Decay(Model):
    @staticmethod
    def evaluate(x, a, b):
        return a * np.exp(-b * x)

    @staticmethod
    def fit_deriv(x, a, b):
        return [np.exp(-b * x), a * np.exp(-b * x)]  # wrong: -x


class Link:
    def __call__(self, p):
        return np.log(p)

    def deriv(self, p):
        return 1 / p


class Root(Link):
    def __call__(self, p):  # its derivative is inherited, and wrong
        return np.sqrt(p)


class Odds(Link):
    def __call__(self, p):
        return np.log(p / (1 - p))

    def deriv(self, p):
        return 1 / (p * (1 - p))


class Power(Link):
    def __call__(self, p):
        return p**3

    def deriv(self, p):
        return 3 * p**2


class Field:
    def _evaluate(self, R, z):
        return -1 / np.hypot(R, z)

    def _Rforce(self, R, z):
        return -R / np.hypot(R, z) ** 3


class Kernel:
    def __init__(self, theta=0.7):
        self.theta = theta

    def __call__(self, X, eval_gradient=False):
        d = (X[:, None] - X[None]) ** 2 if X.ndim == 1 else ((X[:, None] - X[None]) ** 2).sum(-1)
        K = np.exp(-self.theta * d)
        return (K, -d * K) if eval_gradient else K


class Made(type):
    def __call__(cls, *args, **options):
        return super().__call__(*args, **options)


class Profile(metaclass=Made):  # what it is a profile of, its heirs know
    def value(self, r):
        return self.depth * r**2

    def derivative(self, r):
        return 2 * self.depth * r


class Bowl(Profile):
    def __init__(self, width, depth=0.7):
        self.width, self.depth = width, depth

"""Mathematics as people write it: LaTeX, signs such as ≤ and ², bars, and `f(x) = ...`, beside what SymPy prints and reads."""

from __future__ import annotations

import random
import re

import pytest
import sympy as sp

import gradcli
from gradcli.base.diagnostics import GradcliError
from gradcli.language import parse
from gradcli.language.latex import translated
from gradcli.language.source import Source
from gradcli.language.unparse import unparse
from tests.support.rows import all_rows

# what is written: what it means, without superfluous brackets
READ = {
    # vectors of ones, the beta function, entries of arrays in brackets
    r"\mathbf{1}^\top x": "sum(x, axis=0)",
    r"2 \mathbf{1}_n^\top A x": "2*sum(A, axis=0) @ x",
    r"\mathbf{1}^\top A \mathbf{1}": "sum(sum(A, axis=0), axis=-1)",
    r"\|x - \mu \boldsymbol{1}_k\|": "norm(x - mu*ones(k))",
    r"\mathrm{B}(a, b)": "beta(a, b)",
    r"\sum_{i,j} (A^{-1})_{ij} B_{ij}": "sum(inv(A)[i, j]*B[i, j] for i in range(len(inv(A))) for j in range(shape(inv(A))[1]))",
    r"\sum_k t_k \operatorname{softmax}(z)_k": "sum(t[k]*softmax(z)[k] for k in range(len(t)))",
    # fractions, roots, powers
    r"\frac{1}{1+e^{-x}}": "1/(1 + exp(-x))",
    r"\frac12 x": "1/2*x",
    r"\sum_k \pi_k N_k + 2 \pi r": "sum(pi_[k]*N[k] for k in range(len(pi_))) + 2*pi*r",
    r"\sum_{i=1}^n y_i \mathbf{x}_i^\top \beta": "sum(y[i - 1]*x[i - 1].T @ beta for i in range(1, n + 1))",
    r"x_\mathrm{max}^2 + K_\text{m}": "x_max**2 + K_m",
    r"-\frac{N}{2} \ln \det \Sigma - \sum_{n=1}^N x_n^\top \Sigma x_n": "-N/2*log(det(Sigma)) - sum(x[n - 1].T @ Sigma @ x[n - 1] for n in range(1, N + 1))",
    r"\frac{ND}{2} \log(2\pi) + \sum_{n=1}^N \|x_n\|^2": "N*D/2*log(2*pi) + sum(norm(x[n - 1])**2 for n in range(1, N + 1))",
    r"X \operatorname{tr}(Y)": "X*trace(Y)",
    r"\sum_i \sum_{\substack{j=1 \\ j \ne i}}^N m_j x_i": "sum(sum(m[j - 1]*x[i] for j in range(1, N + 1) if j - 1 != i) for i in range(len(x)))",
    # labels, and the logarithm of a density on the left
    r"-\sum_{n=1}^N \log p_{n, y_n}": "-sum(log(p[n - 1, y[n - 1]]) for n in range(1, N + 1))",
    r"\sum_i \|x_i - \mu_{z_i}\|^2": "sum(norm(x[i] - mu[z[i]])**2 for i in range(len(x)))",
    r"\sum_{t=1}^{T-1} A_{s_t s_{t+1}}": "sum(A[s[t - 1], s[t]] for t in range(1, T))",
    r"\sum_t \mathbf{v}_{o_t}^\top \mathbf{h}_t": "sum(v[o[t]].T @ h[t] for t in range(len(o)))",
    r"\sum_{ijk} T_{ijk}^2": "sum(T[i, j, k]**2 for i in range(len(T)) for j in range(shape(T)[1]) for k in range(shape(T)[2]))",
    "\\log p(y \\mid X, w) = -\\|y - Xw\\|^2": "log_p(y, X, w) = -norm(y - X @ w)**2",
    "\\ln L(\\sigma) = -n \\log\\sigma": "log_L(sigma) = -n*log(sigma)",
    "\\log p_\\theta(x) = -\\theta x^2": "log_p_theta(x) = -theta*x**2",
    r"\dfrac{x + y}{2 y}": "(x + y)/(2*y)",
    r"x \frac{a}{b}": "x*(a/b)",
    r"\sqrt{x^2+y^2} + \sqrt[3]{x}": "sqrt(x**2 + y**2) + cbrt(x)",
    r"\left(\frac{x}{y}\right)^{2}": "(x/y)**2",
    r"-x^{2}": "-x**2",
    r"2^{10} x_{12}": "2**10*x_12",
    r"\frac{1}{2} Mgh \cos\theta": "1/2*M*g*h*cos(theta)",
    r"\min(x, y, z)": "min([x, y, z])",
    r"\frac{\partial \mathcal{L}}{\partial W} = x": "assert grad(L, W) == x",
    r"\sum_i x_i \sum_i y_i": "sum(x[i]*sum(y[i] for i in range(len(y))) for i in range(len(x)))",
    r"\begin{cases} x & x > 0, \\ 2 & \text{otherwise}. \end{cases}": "where(x > 0, x, 2)",
    "e = 2\n\\sqrt{m e V}": "e = 2\nsqrt(m*e*V)",
    r"\mathrm{e}^{-x}": "exp(-x)",
    r"e^{2}": "exp(2)",
    # products of letters, names of several letters
    r"\frac{1}{2}mv^2": "1/2*m*v**2",
    r"$x^2 + 2xy$": "x**2 + 2*x*y",
    r"\( x^2 \)": "x**2",
    r"\[ 2xy \]": "2*x*y",
    r"\alpha x + \beta_0": "alpha*x + beta_0",
    r"\lambda \pi": "λ*pi",
    r"x(y + 1) \cdot 2": "x*(y + 1)*2",
    r"\mathrm{rate} t": "rate*t",
    r"\operatorname{softplus}(x)": "softplus(x)",
    r"\hat{y} - \bar{x}_1": "y_hat - x_bar_1",
    # functions
    r"\sin 2x \cos y": "sin(2*x)*cos(y)",
    r"\sin^2 x + \cos^2 x": "sin(x)**2 + cos(x)**2",
    r"\sin x^2": "sin(x**2)",
    r"\log_{10} x + \ln(x)": "log10(x) + log(x)",
    r"\arctan x - \sec x": "atan(x) - 1/cos(x)",
    r"\exp\left(-\frac{x^2}{2\sigma^2}\right)": "exp(-x**2/(2*sigma**2))",
    r"\max(0, x) + \min\{x\}": "maximum(0, x) + min(x)",
    r"\log\det A": "log(det(A))",
    r"|x-y| \, \lvert x\rvert": "abs(x - y)*abs(x)",
    # arrays
    r"\frac{1}{2} \|A x - b\|^2": "1/2*norm(A @ x - b)**2",
    r"x^\top A x": "x.T @ A @ x",
    r"(X^\top X)^{-1} X^\top y": "inv(X.T @ X) @ X.T @ y",
    r"\mathbf{w}^\top \mathbf{x}": "w.T @ x",
    r"(x-\mu)^\top \Sigma^{-1} (x-\mu)": "(x - mu).T @ inv(Sigma) @ (x - mu)",
    r"(x-\mu_k)^\top \Sigma_k^{-1} (x-\mu_k)": "(x - mu_k).T @ inv(Sigma_k) @ (x - mu_k)",
    r"\log 2/\log 3": "log(2)/log(3)",
    r"\nabla_w \frac{1}{2}\|w\|^2": "grad(1/2*norm(w)**2, w)",
    r"\frac{d}{dx} 2 \pi x": "grad(2*pi*x, x)",
    r"\operatorname{tr}(\Sigma_2^{-1} \Sigma_1)": "trace(inv(Sigma_2) @ Sigma_1)",
    r"\Delta x": "Delta_x",
    r"\log|\det A|": "log(abs(det(A)))",
    r"\mathrm{tr}(A^{\top} B)": "trace(A.T @ B)",
    r"(\mathbf{x} - \mathbf{m})(\mathbf{x} - \mathbf{m})^\top": "outer((x - m), (x - m))",
    r"\sum_i \mathbf{a}_i b_i + \mathbf{x} c": "sum(a[i]*b[i] for i in range(len(a))) + x*c",
    r"\|A\|_{\mathrm F} + \|B\|_{\text{F}}^2 + \|C\|_\mathrm{F}": "norm(A) + norm(B)**2 + norm(C)",
    r"\sum_i \left[ 1 - y_i \right]_+^2": "sum(maximum(0, 1 - y[i])**2 for i in range(len(y)))",
    r"\mathbf{x} \mathbf{W} + (\mathbf{b})_{+}": "x @ W + maximum(0, b)",
    r"\left(\mathbf{n}\cdot\mathbf{h}\right)^{\alpha}": "(n @ h)**alpha",
    r"\sum_i y_i (\mathbf{w} \cdot \mathbf{x}_i + b)": "sum(y[i]*(w @ x[i] + b) for i in range(len(y)))",
    r"\sum_i \mathbf{x}_i \mathbf{x}_i^\top": "sum(outer(x[i], x[i]) for i in range(len(x)))",
    r"-\mathbf{y} (\mathbf{A} \mathbf{x} - \mathbf{b})^\top": "-outer(y, (A @ x - b))",
    r"\exp(-y \mathbf{w}^\top \mathbf{x}) + \log(\mathbf{b} + \frac{\mathbf{x}}{2})": "exp(-y*w.T @ x) + log(b + x/2)",
    r"\sum_{t=1}^{T} C_t e^{-y t} + F e^{-y T}": "sum(C[t - 1]*exp(-y*t) for t in range(1, T + 1)) + F*exp(-y*T)",
    r"e^\top P e + e^{-x}": "e_.T @ P @ e_ + exp(-x)",
    r"k_p e + k_d \dot{e}": "k_p*e_ + k_d*e_dot",
    r"f &= \frac{x}{2},": "f = x/2",
    r"\log 2\pi\sigma^2 + \sin 2 x": "log(2*pi*sigma**2) + sin(2*x)",
    r"\mathcal{N}(x \mid \mu, \sigma^2)": "norm_pdf(x, mu, sigma)",
    r"\mathcal{N}(x; m, \beta^{-1})": "norm_pdf(x, m, sqrt(beta**(-1)))",
    r"\mathcal{N}(\mathbf{x} | \mathbf{m}, \mathbf{S})": "exp(-(x - m) @ inv(S) @ (x - m)/2)/sqrt(det(2*pi*S))",
    r"\|A\| + \mathrm{exp}(A)": "norm(A) + exp(A)",
    r"\|\mathbf{x}\|_1 + \|W\|_*": 'sum(abs(x)) + norm(W, "nuc")',
    r"\|x\|_2^2 + \|x\|_1 + \|x\|_\infty": "norm(x)**2 + sum(abs(x)) + max(abs(x))",
    r"\frac{x^\top y}{\|x\|\|y\|}": "x.T @ y/(norm(x)*norm(y))",
    # sums
    r"\sum_{i=1}^{n} x_i^2": "sum(x[i - 1]**2 for i in range(1, n + 1))",
    r"\sum_{k=0}^{4} \frac{x^k}{k!}": "sum(x**k/factorial(k) for k in range(5))",
    r"\frac{1}{2}πr^2 + \frac{ρ}{2}": "1/2*pi*r**2 + ρ/2",
    r"\begin{equation} E = mc^2 \label{eq:1} \end{equation}": "E = m*c**2",
    r"\frac{\mu^k e^{-\mu}}{k!}": "mu**k*exp(-mu)/factorial(k)",
    r"\binom{n}{k} p^k (1-p)^{n-k}": "factorial(n)/(factorial(k)*factorial(n - k))*p**k*(1 - p)**(n - k)",
    r"\sum_i (x_i - y_i)^2": "sum((x[i] - y[i])**2 for i in range(len(x)))",
    r"\sum_{i} \sum_{j} A_{ij} x_i": "sum(sum(A[i, j]*x[i] for j in range(shape(A)[1])) for i in range(len(A)))",
    r"\sum_{i,j} A_{ij}": "sum(A[i, j] for i in range(len(A)) for j in range(shape(A)[1]))",
    r"\sum_{i<j} A_{ij}": "sum(A[i, j] for i in range(len(A)) for j in range(shape(A)[1]) if i < j)",
    r"\sum_{1 \le i < j \le n} x_i y_j": (
        "sum(x[i - 1]*y[j - 1] for i in range(1, n + 1) for j in range(1, n + 1) if i < j)"
    ),
    r"\sum_{i,j=1, i \neq j}^n x_i x_j": (
        "sum(x[i - 1]*x[j - 1] for i in range(1, n + 1) for j in range(1, n + 1) if i != j)"
    ),
    r"\sum_{i=1}^n \sum_{j \ne i} x_i x_j": (
        "sum(sum(x[i - 1]*x[j] for j in range(len(x)) if j != i - 1) for i in range(1, n + 1))"
    ),
    r"\sum_{i<j<k} x_i x_j x_k": (
        "sum(x[i]*x[j]*x[k] for i in range(len(x)) for j in range(len(x)) if i < j for k in range(len(x)) if j < k)"
    ),
    r"\sum_{\mu=1}^M x_\mu": "sum(x[mu - 1] for mu in range(1, M + 1))",
    r"\max_{i=1,\dots,n} |x_i|": "max(abs(x[i - 1]) for i in range(1, n + 1))",
    r"\min_j \|x_j - y\|": "min(norm(x[j] - y) for j in range(len(x)))",
    r"\sqrt[5]{x}": "sign(x)*abs(x)**(1/5)",
    r"\max(1,2)": "maximum(1, 2)",
    r"\sum_{i=0}^{3} x_{i+1} + 1": "sum(x[i + 1] for i in range(4)) + 1",
    r"\prod_{k=1}^{3} (x + k)": "prod(x + k for k in range(1, 4))",
    # statements
    r"f(\theta) = \frac{\theta}{2}": "f(theta) = theta/2",
    r"loss = \frac{1}{2} x^2": "loss = 1/2*x**2",
    "loss = x**2\n\\frac{1}{2} loss": "loss = x**2\n1/2*loss",
    "x  # \\frac": "x",
    # letters of formulas from physics are numbers, and those beside an array are arrays
    r"F = G\frac{m_1 m_2}{r^2}": "F = G*(m_1*m_2/r**2)",
    r"\frac{GMm}{r}": "G*M*m/r",
    r"\frac{1}{2} C V^2": "1/2*C*V**2",
    r"A e^{-\gamma t} \cos(\omega t)": "A*exp(-gamma*t)*cos(omega*t)",
    r"n p (1-p)^{n-1}": "n*p*(1 - p)**(n - 1)",
    r"W_2 \tanh(W_1 x + b_1) + b_2": "W_2 @ tanh(W_1 @ x + b_1) + b_2",
    r"\mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V": "softmax(Q @ K.T/sqrt(d_k)) @ V",
    r"\mathrm{ReLU}(Wx+b)": "relu(W @ x + b)",
    r"\mathrm{Tr}(AXB) + \operatorname{tr} X": "trace(A @ X @ B) + trace(X)",
    r"\operatorname{diag}(x) A": "diag(x) @ A",
    r"\operatorname{sech}^2 x": "1/cosh(x)**2",
    r"a^T X^{-T} b + x^{\text{T}} A x": "a.T @ inv(X).T @ b + x.T @ A @ x",
    r"\mathbf{a} \times \mathbf{b}": "cross(a, b)",
    r"\mathbf{v}\mathbf{v}^\top \mathbf{x}": "outer(v, v) @ x",
    r"\hat{\mathbf{y}} - y_{\text{true}}": "y_hat - y_true",
    r"\langle x, A y \rangle + \lfloor x \rfloor": "sum(x*(A @ y)) + floor(x)",
    r"\max\{0, x\} + \log_b x": "maximum(0, x) + log(x)/log(b)",
    r"\sum_{i=1}^{n-1} (x_{i+1} - x_i)^2": "sum((x[i] - x[i - 1])**2 for i in range(1, n))",
    # arguments behind a bar or a semicolon, entries of what has no name, marks above and below
    r"D_{KL}(p\|q) = \sum_i p_i \log\frac{p_i}{q_i}": (
        "def D_KL(p, q): return sum(p[i]*log(p[i]/q[i]) for i in range(len(p)))\nD_KL(p, q)"
    ),
    "p(x|\\mu) = (x - \\mu)^2 \\,\np(x|\\mu) + \\frac12": "def p(x, mu): return (x - mu)**2\np(x, mu) + 1/2",
    r"\mathcal{N}(x; \mu) = e^{x - \mu}": "def N(x, mu): return exp(x - mu)\nN(x, mu)",
    r"-\sum_i y_i \log \text{softmax}(z)_i": "-sum(y[i]*log(softmax(z)[i]) for i in range(len(y)))",
    r"\sum_{i=1}^n (Ax - b)_i^2": "sum((A @ x - b)[i - 1]**2 for i in range(1, n + 1))",
    r"\|x\|^2_2 + y^2_1": "norm(x)**2 + y_1**2",
    r"||x||^2 + \frac{|a||b|}{2}": "norm(x)**2 + abs(a)*abs(b)/2",
    r"\frac{1}{n}\sum_{i=1}^n e^{-y_i w^\top x_i}": "1/n*sum(exp(-y[i - 1]*w.T @ x[i - 1]) for i in range(1, n + 1))",
    r"w^\top \mu - \frac{\gamma}{2} w^\top \Sigma w": "w.T @ mu - gamma/2*w.T @ Sigma @ w",
    "x^TAx + b^Tx": "x.T @ A @ x + b.T @ x",
    "x^T y": "x.T @ y",
    # as articles print it
    r"{\displaystyle f(\mathbf {x} )=An+\sum _{i=1}^{n}\left[x_{i}^{2}-A\cos(2\pi x_{i})\right]}": (
        "def f(x): return A*n + sum(x[i - 1]**2 - A*cos(2*pi*x[i - 1]) for i in range(1, n + 1))\nf(x)"
    ),
    r"\boxed{E = \hbar \omega}": "E = hbar*omega",
    r"\Delta G = \Delta H - T \Delta S": "Delta_G = Delta_H - T*Delta_S",
    r"1{,}000 \cdot x + 3.2e5 y.": "1000*x + 3.2e5*y",
    # derivatives: on the left of an equation, a claim
    r"\frac{\partial L}{\partial w} = 2x(wx - y)": "assert grad(L, w) == 2*x*(w*x - y)",
    r"\nabla_w L = X^\top (Xw - y)": "assert grad(L, w) == X.T @ (X @ w - y)",
    r"\frac{\mathrm{d}}{\mathrm{d}x} x^3 + \frac{\mathrm{d}^2 y}{\mathrm{d}x^2}": "grad(x**3, x) + grad(y, x, 2)",
    r"\frac{d^2}{dx^2} \left( x^3 \right)": "grad(x**3, x, 2)",
    r"\frac{\mathrm{d}y}{\mathrm{d}x} + \frac{d_1}{d_2}": "grad(y, x) + d_1/d_2",
    # environments
    r"\begin{equation} E = mc^2 \end{equation}": "E = m*c**2",
    "\\begin{align}\n  r &= x^2 + y \\\\\n  s &= \\sqrt{r}\n\\end{align}\ns + 1": "r = x**2 + y\ns = sqrt(r)\ns + 1",
    r"f(x)=\begin{cases} x & x > 0 \\ 0 & x \le 0 \end{cases}": "def f(x): return where(x > 0, x, 0)\nf(x)",
    r"\begin{cases} -1, & \text{if } x < 0, \\ 0, & x = 0, \\ 1, & \text{if } x > 0. \end{cases}": (
        "where(x < 0, -1, where(x == 0, 0, where(x > 0, 1, nan)))"
    ),
    r"\begin{cases} x^2 & x \ge 0 \\ -x & \text{otherwise} \end{cases}": "where(x >= 0, x**2, -x)",
    r"x^T \begin{bmatrix} 1 & 2 \\ 2 & 3 \end{bmatrix} x": "x.T @ [[1, 2], [2, 3]] @ x",
    r"\begin{pmatrix} x \\ y \end{pmatrix} + \begin{vmatrix} a & b \\ c & d \end{vmatrix}": "[x, y] + det([[a, b], [c, d]])",
    # signs
    "x₁ + x₁₂": "x_1 + x_12",
    "log₂(x) + log₁₀(x)": "log2(x) + log10(x)",
    "1e−3 + 2.5e−2*x": "1e-3 + 2.5e-2*x",
    "∥x∥² + x ⊙ y": "norm(x)**2 + x*y",
    "2·x² − y": "2*x**2 - y",
    "x × 3 ÷ y": "x*3/y",
    "x ≤ 3": "x <= 3",
    "√(x) + |−x|": "sqrt(x) + abs(-x)",
    "√x": "sqrt(x)",
    "√2 + √ 2.5": "sqrt(2) + sqrt(2.5)",
    "2√x": "2*sqrt(x)",
    "√x/2 + √x*y": "sqrt(x)/2 + sqrt(x)*y",
    "|√x|": "abs(sqrt(x))",
    "[√x, √y_1]": "[sqrt(x), sqrt(y_1)]",
    "√θ - √rate": "sqrt(θ) - sqrt(rate)",
    "x = √y; -√x": "x = sqrt(y)\n-sqrt(x)",
    "exp(-√x)": "exp(-sqrt(x))",
    "‖x‖ + ||y||": "norm(x) + norm(y)",
    "Aᵀ @ A": "A.T @ A",
    "xⁿ + x¹²": "x**n + x**12",
    "f(x, y) = x*y; f(2, 3)": "def f(x, y): return x*y\nf(2, 3)",
    "f(x) = x²": "def f(x): return x**2\nf(x)",
}


@all_rows("text", READ)
def test_mathematics_is_read(text: str) -> None:
    assert unparse(parse(text)) == unparse(parse(READ[text]))


REFUSED = {  # text: the code, and what the help proposes
    r"\frac{x^2!}{2}": ("GC139", "(x^2)!"),
    r"\alpha x_{ab": ("GC138", "add `}`"),
    r"\alpha^": ("GC138", "None"),
    r"x_\hat # y": ("GC138", "None"),
    r"\frac{e^2}{r^2}": ("GC139", r"\exp(2)"),
    r"\max_{\|x\|=1} x^\top A x": ("GC138", "the function alone"),
    r"J^\top J \delta = r": ("GC138", "write =="),
    r"\log x = 3 + x": ("GC138", "write =="),
    "||A @ x - b||^2_2": ("GC139", "the square of a norm"),
    "||A @ x - b||_2^2": ("GC114", "norm(x, p)"),
    r"\sum_{ij} Y_{ij} + Y_{ij}^2": ("GC139", "brackets around all that it runs over"),
    r"\sqrt{2 m e V}": ("GC139", r"\exp(1)"),
    r"e^{i\theta}": ("GC139", "complex numbers"),
    r"\mathrm{Var}(X) = E[X^2]": ("GC139", r"E \cdot (..)"),
    r"\frac{\partial L}{\partial W} = \delta x^\top": ("GC139", r"\mathrm{outer}(\delta, x)"),
    r"(A + B)^{-1}": ("GC139", r"\mathrm{inv}(A + B)"),
    r"\frac{e^{z_y}}{\sum_j e^{z_j}}": ("GC139", "z[0]"),
    r"The loss is $x^2$.": ("GC138", "between the dollar signs"),
    r"\hat{y}^{(i)}": ("GC139", r"\hat{y}_i"),
    r"\sigma_p^2 = x": ("GC138", r"\sigma_{p2}"),
    r"\ln k = \frac{a}{b}": ("GC138", "write =="),
    r"\mathbf{x}'\mathbf{A}": ("GC138", r"^\top"),
    r"1_{\{x > 0\}}": ("GC138", "(x > 0)"),
    r"\lambda_{\max}(A)": ("GC139", "max(eigvalsh(A))"),
    r"\arg\min_x \|x\|^2": ("GC138", "the function alone"),
    r"\min_{w} \frac{1}{2} w^2": ("GC138", "the function alone"),
    "`x**2`": ("GC105", "backticks"),
    r"\frac{n!!}{2}": ("GC138", r"\prod_{i=1}"),
    "sin²(x)": ("GC139", "sin(x)**2"),
    "log**2(x)": ("GC139", "log(x)**2"),
    "cos²x": ("GC139", "cos(x)**2"),
    "f(x, y) = x² + xy": ("GC139", "x*y"),
    r"\log |A|": ("GC139", r"\det(A)"),
    r"\sum_{(i,j) \in S} A_{ij}": ("GC138", "with 1 in M"),
    r"\sum_{i \in S} x_i": ("GC138", r"\sum_i over all"),
    r"F = -Kx \,": ("GC139", r"K \cdot x"),
    r"\Sigma x": ("GC139", r"\mathbf{\Sigma} x"),
    r"\log |\Sigma_2|": ("GC139", r"\det(\Sigma_2)"),
    r"\Phi_0 r": ("GC139", r"\mathbf{\Phi_0} r"),
    r"\frac{d}{dx} x^2 \sin x": ("GC139", r"(\frac{d}{dx} x^2) .."),
    r"\nabla_x x^\top A x": ("GC139", r"\nabla_x (x^\top ..)"),
    r"\sin \theta/2": ("GC139", r"\frac{\sin \theta}{2}"),
    r"\ln a/(1 + b)": ("GC139", r"\ln(a/(..))"),
    r"\frac{1}{2} A X": ("GC139", r"\mathbf{A} \mathbf{X}"),
    r"\sqrt{x^y^z}": ("GC139", r"(x^y)^z"),
    r"1/2\pi": ("GC139", r"\frac{..}{..}"),
    r"\mathbf{x} \mathbf{y}": ("GC139", r"\mathbf{x} \odot \mathbf{y}"),
    r"\sum_i \mathbf{x}_i \mathbf{y}_i": ("GC139", r"\mathbf{x}_i^\top \mathbf{y}_i"),
    r"\ln 2 \, x": ("GC139", r"\ln(2) x"),
    r"\log 2 (a + b)": ("GC139", r"\log(2 (a + b))"),
    r"\operatorname{tr}(\rho \log \rho)": ("GC138", r"\boldsymbol{\rho}"),
    r"\det(\rho^2)": ("GC138", r"\boldsymbol{\rho}"),
    r"\operatorname{tr}(e^{-\beta H})": ("GC139", r"\mathrm{expm}(-\beta H)"),
    r"\exp\left(\mathbf{A}\right) b": ("GC139", r"\mathrm{exp}(\mathbf{A})"),
    r"\|\log \mathbf{A} + \mathbf{B}\|": ("GC139", r"\mathrm{log}(\mathbf{A})"),
    r"\sqrt{\mathbf{A}} b": ("GC139", r"\mathrm{sqrt}(\mathbf{A})"),
    r"\mathcal{N}(x | \mu, \sigma)": ("GC139", r"\mathcal{N}(x | \mu, \sigma^2)"),
    r"\mathcal{N}(\mu, \sigma^2)": ("GC138", r"\mathcal{N}(x | \mu, \sigma^2)"),
    r"\mu_i^0 + 1": ("GC139", r"{\mu_{0}}_i"),
    r"e^T P e": ("GC139", r"`e^\top` or `\exp(T)`"),
    r"\sum_{i=1}^n n_i x_i": ("GC139", "such as N"),
    r"\mathrm{A} x = b": ("GC138", "== between two values"),
    r"A_{ij} B_{jk}": ("GC139", r"\sum_j A_{ij} B_{jk}"),
    r"\sum_i x_i - y_i": ("GC139", r"\sum_i (..)"),
    r"R^2 = 1 - \frac{a}{b}": ("GC138", "== between two values"),
    r"w^{(1)}": ("GC139", "w_1"),
    r"z^{(2)} = W^{(2)} a": ("GC139", "z_2"),
    r"h_\theta(x) \cdot 2": ("GC139", "h_theta(x) = .."),
    r"S_0 N(d_1) \,": ("GC139", "N(x) = .."),
    r"\frac{e^{z_i}}{\sum_j e^{z_j}}": ("GC139", "z[0]"),
    r"(X^\top X + \lambda I)^{-1} X^\top y": ("GC139", r"\mathrm{eye}(n)"),
    r"\mathbf{I} - \mathbf{v}\mathbf{v}^\top": ("GC139", r"\mathrm{eye}(n)"),
    r"\mathbf{A} \times \mathbf{B}": ("GC139", r"\mathbf{A} \odot \mathbf{B}"),
    r"\mathbf{v} \times \mathbf{B}": ("GC139", r"\mathrm{cross}(\mathbf{v}, \mathbf{B})"),
    r"\frac{|\mathbf{p}|^2}{2m}": ("GC139", r"\|\mathbf{p}\|"),
    # what would be misread
    r"\mathbf{x}^\mathrm{H} \mathbf{A} \mathbf{x}": ("GC139", r"\mathbf{x}^\top"),
    r"\theta^\text{old} + 1": ("GC139", r"\theta_{old}"),
    r"\mathrm{tr}(\mathbf{A}^k)": ("GC139", r"\mathrm{matrix_power}(\mathbf{A}, k)"),
    r"\mathbf{A}^{-\mathrm{H}} b": ("GC139", r"\mathrm{pow}(\mathbf{A}, -\mathrm{H})"),
    r"\mathbf{A}^+ \mathbf{b}": ("GC138", "a name such as"),
    r"\sum_i \rho_\tau(y_i - x_i)": ("GC139", "rho_tau(x) = .."),
    r"\ell(y - x) + 1": ("GC139", "ell(x) = .."),
    r"\pi_\theta(a | s)": ("GC139", "pi_theta(x) = .."),
    r"\sum_i y_i x_i^\top": ("GC139", r"\mathrm{outer}(y_i, x_i)"),
    r"\theta^{old} + \theta^{\text{new}}": ("GC139", r"\theta_{old}"),
    r"r + \gamma V^{\pi}(s)": ("GC139", "V_pi(x) = .."),
    r"E = E^\circ": ("GC138", "E_0"),
    r"E_{cell} = E^0_{cell} - \frac{1}{n}": ("GC139", "E_{cell0}"),
    r"\|f\|_{L^2}": ("GC138", "1, 2, F"),
    r"a \bmod b": ("GC138", r"\mathrm{mod}"),
    r"\sin 30^\circ": ("GC138", r"30 \pi / 180"),
    r"\frac{C}{(1+r)^T}": ("GC139", r"^\top"),
    r"F_{\mu\nu} F^{\mu\nu}": ("GC139", r"(F)^{\mu\nu}"),
    r"\delta_{ij} x_i x_j": ("GC138", r"\mathrm{eye}(n)"),
    r"\frac{TP}{TP + FP}": ("GC139", r"\mathrm{TP}"),
    r"\frac{loss}{n}": ("GC139", r"\mathrm{loss}"),
    r"\mu S dt": ("GC139", "d t"),
    r"K_p e(t) \,": ("GC139", "e(x) = .."),
    r"E(R_m) - \frac{r}{2}": ("GC139", "E(x) = .."),
    r"\|w\| + w \cdot x": ("GC139", r"w^\top x"),
    # the left side
    r"\text{softmax}(z)_i = \frac{e^{z_i}}{2}": ("GC138", "leave the index out"),
    r"\mathcal{N}(x; \sigma^2) = \frac{x}{\sigma}": ("GC138", r"\sigma"),
    r"L^{CLIP}(\theta) = \theta^2": ("GC138", "L_{CLIP}"),
    r"\log p = \frac{x}{2}": ("GC138", "a name"),
    r"\Pr = \frac{c}{k}": ("GC138", r"\mathrm{Pr}"),
    # what the language does not have
    r"\mathrm{E}[x^2]": ("GC138", "mean(x)"),
    r"\mathbb{1}[x > 0]": ("GC138", "(x > 0)"),
    r"\mathbf{1}_{x > 0}": ("GC138", "(x > 0)"),
    r"\left.\frac{df}{dx}\right|_{x=1}": ("GC138", "--at"),
    r"\sum_{i<j} x_i": ("GC138", r"in a sum over i"),
    r"\sum_{i=1, i \ne j}^n x_i": ("GC138", r"in a sum over i"),
    r"\sum_{i \le n} x_i": ("GC138", r"\sum_{i=1}^{n}"),
    r"\sum_i i x_i": ("GC139", r"\sum_{i=0}^{n-1}"),
    r"\sum_i^n x_i": ("GC138", r"\sum_{i=1}^{n}"),
    r"\max_i (x_i)^2": ("GC139", r"(\max_i (x_i))^"),
    r"\max_i (x_i, y_i)": ("GC138", "add `)`"),
    "$1,000 x$": ("GC139", "`1{,}000` for one number"),
    "$12,345.6$": ("GC139", "12{,}345.6"),
    "$0,5 x$": ("GC139", "`0.5` for one number"),
    r"\max(1,200 x, 3)": ("GC139", "1{,}200"),
    r"k(x, x') = \exp(x)": ("GC138", "x_2"),
    r"[H^+] + \frac12": ("GC138", "H_plus"),
    r"\exp -x": ("GC138", "(-x)"),
    r"3.5\% x": ("GC138", "100"),
    r"\text{KL}(p\|q": ("GC138", "add `)`"),
    r"\|p + q": ("GC138", "comma"),
    "**x** + y": ("GC112", "Markdown"),
    r"A \otimes B": ("GC138", r"\mathrm{kron}(A, B)"),
    r"\theta^{*}": ("GC138", "x_star"),
    r"h_{t-1} \cdot 2": ("GC138", "h_{prev}"),
    r"\exp(-y \odot X w)": ("GC139", r"y \odot (X w)"),
    r"\sum_{i=0}^{n-1} \sum_{j=1, i=j}^n x_i": ("GC138", r"\sum_{i<j}"),
    r"\frac{\partial^2 f}{\partial x \partial y}": ("GC138", "grad(grad(y, x), z)"),
    r"\begin{align} y &= x^2 \\ &= x \cdot x \end{align}": ("GC138", "two equations"),
    r"\begin{cases} x & x > 0": ("GC138", r"\end{cases}"),
    "f''(x)": ("GC139", ".T for a transpose"),
    "2πr": ("GC139", "π*r"),
    "½*x": ("GC105", "1/2"),
    "∑ᵢ xᵢ²": ("GC104", "sum(...)"),
    "x′": ("GC139", ".T for a transpose"),
    "ŷ − y": ("GC105", "y_hat"),
    "x\u0304 + 1": ("GC105", "x_bar"),
    "⌊x⌋": ("GC105", "floor(x)"),
    "⟨x, y⟩": ("GC105", "x @ y"),
    "A ⊗ B": ("GC105", "kron(A, B)"),
    "‖x‖₁": ("GC105", "norm(x, 1)"),
    "x mod 3": ("GC114", "mod(x"),
    "90°": ("GC105", "pi/180"),
    "xᵀAx": ("GC114", "x.T @ A"),
    "λ‖w‖²": ("GC114", "`*`"),
    "∂f/∂x": ("GC104", "grad(y, x)"),
    "e⁻ˣ": ("GC105", "exp(-x)"),
}


@all_rows("text", REFUSED)
def test_what_is_refused_says_what_to_write(text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        parse(text)
    (problem,) = caught.value.diagnostics
    assert problem.code == REFUSED[text][0] and REFUSED[text][1] in str(problem.help)


def test_a_derivative_on_the_left_is_checked() -> None:
    text = "w = 2; x = 3; y = 1\nL = (w x - y)^{2}\n\\frac{\\partial L}{\\partial w} = {}2x(w x - y)"
    verdicts = [
        [one.verdict for one in gradcli.check(text.replace("{}", sign)).checks if one.kind == "claim"]
        for sign in ("", "-")
    ]
    assert verdicts == [["PROVED"], ["DISAGREES"]]


def test_names_and_products_stay() -> None:
    for text, read in (("x²(y + 1)", "x**2*(y + 1)"), ("f(x, y) = xz", "def f(x, y): return xz\nf(x, y)")):
        assert unparse(parse(text)) == unparse(parse(read))


def test_lines_keep_their_numbers() -> None:
    text = "x = 2\r\n\n\\frac{x}{2}  # half of it\ny ="
    assert translated(Source(text)).text == "x = 2\r\n\nx/2  # half of it\ny ="
    with pytest.raises(GradcliError) as caught:
        parse(text)
    assert [one.span.line for one in caught.value.diagnostics if one.span] == [4]


def test_what_is_no_mathematics_stays() -> None:
    for text in ("x**2", 'load("a.csv")', "x # {", "x  # \\frac{1}{2}"):
        source = Source(text)
        assert translated(source) is source


def test_all_lines_that_cannot_be_read_are_told() -> None:
    with pytest.raises(GradcliError) as caught:
        parse("\\foo x\ny = \\pi\n\\sin x y")
    assert [(one.code, one.span and one.span.line) for one in caught.value.diagnostics] == [("GC138", 1), ("GC139", 3)]


PIECES = (
    *r"\frac \sqrt \sum \prod \sin \sec \log \max \alpha \lambda \pi \hat \mathbf \mathrm \operatorname \left".split(),
    *r"\right \| | { } ( ) [ ] ^ _ = == + - * / x A f e 12 3.5 , ' ! \top T \cdot \le \, $ # ij loss \foo".split(),
    *r"""\partial d \ & ~ " \det ² −""".split(),
    *(" ", "assert ", "\n"),
    *(r"\begin{cases}", r"\end{cases}", r"\begin{align}", r"\end{align}", r"\begin{pmatrix}", r"\end{pmatrix}", r"\\"),
    *("||", r"\Delta", r"\left.", "^0", "^T", "E", r"\mid", "TP", "dt", r"\mathrm{d}", "_i", r"\sum_i", r"\cdot"),
    *(r"\text", r"\langle", r"\rangle", r"\lfloor", r"\nabla", "\\frac{d}{d x}", "∂", "₁", "π", ";"),
)


@pytest.mark.parametrize("rounds", [4000, pytest.param(200_000, marks=pytest.mark.deep)])
def test_anything_else_is_an_error_with_a_code(rounds: int) -> None:
    generator = random.Random(1)
    read = 0
    for _ in range(rounds):
        try:
            parse("".join(generator.choices(PIECES, k=generator.randint(1, 14))))
            read += 1
        except GradcliError as error:
            assert all(one.code.startswith("GC") and one.code != "GC999" for one in error.diagnostics)
    assert read > 100


@pytest.mark.parametrize(
    "text", [r"\sqrt" * 3000 + "x", r"\sin" * 3000 + " x", "{" * 5000 + r"\pi", "|" * 4000 + r"\pi"]
)
def test_depth_is_limited(text: str) -> None:
    with pytest.raises(GradcliError) as caught:
        parse(text)
    assert [one.code for one in caught.value.diagnostics] == ["GC502"]


def random_formula(generator: random.Random, size: int) -> sp.Expr:
    if size <= 1:
        letters = sp.symbols("x y alpha theta z_1", positive=True)
        return generator.choice(
            [*letters, sp.Integer(generator.randint(1, 9)), sp.Rational(generator.randint(1, 5), 7)]
        )
    left, right = random_formula(generator, size // 2), random_formula(generator, size - size // 2)
    unary = [
        sp.sin,
        sp.cos,
        sp.exp,
        sp.sqrt,
        sp.tanh,
        sp.Abs,
        lambda one: sp.log(1 + one**2),
        lambda one: 1 / (1 + one**2),
    ]
    return generator.choice(
        [
            left + right,
            left * right,
            left - right,
            left / (1 + right**2),
            generator.choice(unary)(left),
            left**2 * right,
        ]
    )


@pytest.mark.parametrize("rounds", [60, pytest.param(3000, marks=pytest.mark.deep)])
def test_what_sympy_prints_has_its_value(rounds: int) -> None:
    """An independent writer of LaTeX: the value of what is read is the value of what was printed."""
    generator = random.Random(5)
    point = {"x": 0.7, "y": 1.3, "alpha": 0.4, "theta": 2.1, "z_1": 0.9}
    for _ in range(rounds):
        formula = random_formula(generator, generator.randint(2, 9))
        exact = sp.N(formula.subs({one: point[str(one)] for one in formula.free_symbols}))
        text = sp.latex(formula)
        if re.search(r"(?<![\\A-Za-z])e(?![\^A-Za-z])", text):  # SymPy's e alone, which is refused: it may be a charge
            continue
        names = {str(one): point[str(one)] for one in formula.free_symbols}
        if not names or not exact.is_real or abs(exact) > 1e12:
            continue
        value = gradcli.evaluate(f"{text} \\,", at=names).value
        assert value == pytest.approx(float(exact), rel=1e-9, abs=1e-9), text


ROOTS_WITH_TWO_READINGS = [
    "√x²",
    "√x^2",
    "√x**2",
    "√2x",
    "√2 x",
    "√x(y)",
    "√sin(x)",
    "√√x",
    "√x.T",
    "√x₁",
    "√-x",
    "√|x|",
    "√x[0]",
    "√x'",
]


@pytest.mark.parametrize("text", ROOTS_WITH_TWO_READINGS)
def test_a_root_of_more_than_a_name_or_a_number_needs_parentheses(text: str) -> None:
    with pytest.raises(GradcliError, match="sqrt"):
        parse(Source(text))


NOTATION = [
    ("sin^2(x)", "write sin(x)**2"), ("sin**2(x)", "write sin(x)**2"), ("cos^2 x", "write cos(x)**2"), ("tan^3(x)", "write tan(x)**3"),
    ("log^2(x)", "write log(x)**2"), ("sin²(x)", "write sin(x)**2"), ("1 + exp^2(x)", "write exp(x)**2"), ("sin^-1(x)", "write asin(x)"),
    ("tanh^-1(x)", "write atanh(x)"), ("log^-1(x)", "write log(x)**-1"), ("norm^2(x)", "write norm(x)**2"), ("cos^-2(x)", "write cos(x)**-2"),
    ("d/dx sin(x)", "write grad(sin(x), x)"), ("d/dx x^2", "write grad(x^2, x)"), ("d/dt exp(t)*t", "write grad(exp(t)*t, t)"),
    ("d/dx 3x", "write grad(3x, x)"), ("y = d/dx sin(x); y", "write grad(sin(x), x)"), ("d^2/dx^2 sin(x)", "write grad(grad(sin(x), x), x)"),
    ("d²/dx² sin(x)", "--order 2"), ("d/dx (x**2)", "grad(..., x)"), ("d/dx(x^2)", "grad(..., x)"), ("d/dθ(θ^2)", "grad(..., θ)"),
    ("df/dx", "grad(f, x)"), ("dy/dx + 1", "grad(y, x)"), ("2*dL/dw", "grad(L, w)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "hint"), NOTATION)
def test_notation_of_papers_that_is_not_read_has_a_hint(text: str, hint: str) -> None:
    with pytest.raises(GradcliError) as caught:
        gradcli.grad(text, at={"x": 0.5})
    helps = [note.help or "" for note in caught.value.diagnostics]
    assert any(hint in help for help in helps), helps


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x^2(y)", 32.0),
        ("x^-1(y)", 0.5),
        ("dx/y", 1.5),
        ("a/dx", 1 / 3),
        ("sin^2", 9.0),
        ("d/d1 + dx", 4.0),
        ("x*d/dx", 4 / 3),
    ],
)
def test_what_only_looks_like_it_is_read(text: str, value: float) -> None:
    names = {"x": 4.0, "y": 2.0, "dx": 3.0, "a": 1.0, "sin": 3.0, "d": 1.0, "d1": 1.0}
    point = {name: number for name, number in names.items() if re.search(rf"\b{name}\b", text)}
    assert gradcli.evaluate(text, at=point).value == pytest.approx(value)

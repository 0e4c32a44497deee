r"""Gradients as papers print them, beside the losses: the right ones hold, the wrong ones do not, nothing is misread.

A claim has the typography of its source, and mistakes are those that papers have: signs, factors, transposes that
are left out, a sum in place of its terms. A leaf may be written as on the left of the equation in a paper.
"""

from __future__ import annotations

import pytest

import gradcli
from gradcli import GradcliError

# fmt: off
CLAIMS: list[tuple[str, str, str, list[str], list[str]]] = [  # field, loss, leaf, right gradients, wrong ones
    ("machine learning", r"L = \frac{1}{2}\left\| X w - y \right\|_2^2 + \frac{\lambda}{2}\left\| w \right\|_2^2", "w", [r"X^\top (X w - y) + \lambda w", r"X^T X w - X^T y + \lambda w."], [r"X^\top (X w - y) + 2\lambda w"]),
    ("machine learning", r"\mathcal{L}(w) = -\sum_{i=1}^{n} \left[ y_i \log \sigma_i + (1-y_i) \log(1-\sigma_i) \right]", "sigma", [r"-\frac{y}{\sigma} + \frac{1-y}{1-\sigma}"], [r"-\frac{y}{\sigma} - \frac{1-y}{1-\sigma}"]),
    ("machine learning", r"\mathcal{L} = -\sum_{k} t_k \log \left( \frac{\exp(z_k)}{\sum_{j} \exp(z_j)} \right)", "z", [r"\operatorname{softmax}(z) \sum_k t_k - t"], [r"\operatorname{softmax}(z) - t"]),
    ("machine learning", r"\ell = \log\!\left(1 + e^{-y\, \mathbf{w}^{\top} \mathbf{x}}\right)", "w", [r"-\frac{y\, \mathbf{x}}{1 + e^{y \mathbf{w}^{\top} \mathbf{x}}}", r"\frac{-y \mathbf{x}}{1+\exp(y \mathbf{w}^\top \mathbf{x})}"], [r"-\frac{y\, \mathbf{x}}{1 + e^{-y \mathbf{w}^{\top} \mathbf{x}}}"]),
    ("machine learning", r"\left\lVert \mathbf{A} - \mathbf{U} \mathbf{V}^\top \right\rVert_F^2 + \lambda \left( \lVert \mathbf{U} \rVert_F^2 + \lVert \mathbf{V} \rVert_F^2 \right)", "U", [r"2 (\mathbf{U}\mathbf{V}^\top - \mathbf{A}) \mathbf{V} + 2 \lambda \mathbf{U}", r"-2 (A - U V^\top) V + 2 \lambda U"], [r"2 (\mathbf{U}\mathbf{V}^\top - \mathbf{A}) \mathbf{V} + \lambda \mathbf{U}"]),
    ("machine learning", r"D_{\mathrm{KL}} = \sum_{i} p_i \log \frac{p_i}{q_i}", "q", [r"-\frac{p}{q}", "-p/q"], [r"\frac{p}{q}", r"-\log \frac{p}{q}"]),
    ("machine learning", r"\sum_i p_i \log \tfrac{p_i}{q_i}", "p", [r"\log \tfrac{p}{q} + 1", r"1 + \log p - \log q"], [r"\log \tfrac{p}{q}"]),
    ("machine learning", r"\mathcal{L} = -\frac{1}{2} \sum_{j=1}^{d} \left( 1 + \log \sigma_j^2 - \mu_j^2 - \sigma_j^2 \right)", "sigma", [r"\sigma - \frac{1}{\sigma}", r"\sigma - \sigma^{-1}"], [r"\sigma - \frac{1}{2\sigma}", r"\frac12 (1 - \frac{1}{\sigma^2})"]),
    ("statistics", r"\ell = -\frac{n}{2}\log(2\pi) - n \log \sigma - \frac{1}{2\sigma^2} \sum_{i=1}^n (x_i - \mu)^2", "sigma", [r"-\frac{n}{\sigma} + \frac{1}{\sigma^3} \sum_{i=1}^n (x_i - \mu)^2"], [r"-\frac{n}{2\sigma^2} + \frac{1}{2\sigma^4} \sum_{i=1}^n (x_i - \mu)^2"]),
    ("statistics", r"\ell(\lambda) = \sum_{i=1}^n \left( k_i \ln \lambda - \lambda - \ln k_i! \right)", "λ", [r"\frac{1}{\lambda}\sum_{i=1}^n k_i - n"], [r"\frac{1}{\lambda}\sum_{i=1}^n k_i - 1"]),
    ("statistics", r"\ell(\lambda) = n \ln \lambda - \lambda \sum_{i=1}^n x_i", "λ", [r"\frac{n}{\lambda} - \sum_{i=1}^n x_i"], [r"\frac{1}{\lambda} - \sum_{i=1}^n x_i"]),
    ("statistics", r"-\tfrac{1}{2} \log \det \Sigma - \tfrac12 (x - \mu)^\top \Sigma^{-1} (x - \mu)", "mu", [r"\tfrac{1}{2} (\Sigma^{-1} + \Sigma^{-\top})(x - \mu)"], [r"-\Sigma^{-1} (x - \mu)", r"\Sigma^{-1} (x - \mu)"]),
    ("statistics", r"\sum_{i=1}^{N} \left( y_i \boldsymbol{\beta}^{\mathrm{T}} \mathbf{x}_i - \exp\{ \boldsymbol{\beta}^{\mathrm{T}} \mathbf{x}_i \} \right)", "beta", [r"\sum_{i=1}^{N} \left( y_i - \exp\{ \boldsymbol{\beta}^{\mathrm{T}} \mathbf{x}_i \} \right) \mathbf{x}_i"], [r"\sum_{i=1}^{N} \left( y_i - \boldsymbol{\beta}^{\mathrm{T}} \mathbf{x}_i \right) \mathbf{x}_i"]),
    ("statistics", r"\sum_{i} \left( \log k - k \log \lambda + (k - 1) \log x_i - (x_i/\lambda)^k \right)", "λ", [r"\sum_i \left( -\frac{k}{\lambda} + \frac{k}{\lambda} (x_i/\lambda)^k \right)"], [r"\sum_i \left( -\frac{k}{\lambda} + \frac{1}{\lambda} (x_i/\lambda)^k \right)"]),
    ("physics", r"V(r) = 4\varepsilon \left[ \left(\frac{\sigma}{r}\right)^{12} - \left(\frac{\sigma}{r}\right)^{6} \right]", "r", [r"-\frac{24 \varepsilon}{r} \left[ 2\left(\frac{\sigma}{r}\right)^{12} - \left(\frac{\sigma}{r}\right)^{6} \right]"], [r"\frac{24 \varepsilon}{r} \left[ 2\left(\frac{\sigma}{r}\right)^{12} - \left(\frac{\sigma}{r}\right)^{6} \right]", r"-\frac{24 \varepsilon}{r^2} \left[ 2\left(\frac{\sigma}{r}\right)^{12} - \left(\frac{\sigma}{r}\right)^{6} \right]"]),
    ("physics", r"U = -\frac{G M m}{r}", "r", [r"\frac{G M m}{r^2}"], [r"-\frac{G M m}{r^2}", r"\frac{GMm}{r}"]),
    ("physics", r"H = \frac{p^2}{2m} + \frac12 m \omega^2 x^2", "x", [r"m \omega^2 x"], [r"-m\omega^2 x", r"m \omega x^2"]),
    ("physics", r"E = \sqrt{p^2 c^2 + m^2 c^4}", "p", [r"\frac{p c^2}{\sqrt{p^2 c^2 + m^2 c^4}}", r"\frac{pc^2}{E}"], [r"\frac{p c}{\sqrt{p^2 c^2 + m^2 c^4}}"]),
    ("physics", r"B = \frac{2 h \nu^3}{c^2} \frac{1}{e^{h\nu/(k_B T)} - 1}", "T", [r"\frac{2 h^2 \nu^4}{c^2 k_B T^2} \frac{e^{h\nu/(k_B T)}}{\left(e^{h\nu/(k_B T)} - 1\right)^2}"], [r"\frac{2 h^2 \nu^4}{c^2 k_B T} \frac{e^{h\nu/(k_B T)}}{\left(e^{h\nu/(k_B T)} - 1\right)^2}"]),
    ("physics", r"U = \tfrac{1}{2} k \left( \lVert \mathbf{r}_1 - \mathbf{r}_2 \rVert - \ell_0 \right)^2", "r_1", [r"k \left( \lVert \mathbf{r}_1 - \mathbf{r}_2 \rVert - \ell_0 \right) \frac{\mathbf{r}_1 - \mathbf{r}_2}{\lVert \mathbf{r}_1 - \mathbf{r}_2 \rVert}"], [r"-k \left( \lVert \mathbf{r}_1 - \mathbf{r}_2 \rVert - \ell_0 \right) \frac{\mathbf{r}_1 - \mathbf{r}_2}{\lVert \mathbf{r}_1 - \mathbf{r}_2 \rVert}"]),
    ("physics", r"F = -k_B T \ln \left( 2 \cosh \frac{\mu B}{k_B T} \right)", "B", [r"-\mu \tanh \frac{\mu B}{k_B T}"], [r"\mu \tanh \frac{\mu B}{k_B T}", r"-\mu \tanh \frac{\mu B}{T}"]),
    ("physics", r"\gamma = \frac{1}{\sqrt{1 - v^2/c^2}}", "v", [r"\frac{v}{c^2} \left(1 - \frac{v^2}{c^2}\right)^{-3/2}", r"\gamma^3 v / c^2"], [r"\frac{v}{c^2} \left(1 - \frac{v^2}{c^2}\right)^{-1/2}"]),
    ("finance", r"\frac{\mu^\top w - r_f}{\sqrt{w^\top \Sigma w}}", "r_f", [r"-\frac{1}{\sqrt{w^\top \Sigma w}}"], [r"\frac{1}{\sqrt{w^\top \Sigma w}}"]),
    ("finance", r"w^\top \mu - \frac{\gamma}{2} w^\top \Sigma w", "w", [r"\mu - \frac{\gamma}{2} (\Sigma + \Sigma^\top) w"], [r"\mu - \gamma \Sigma w"]),
    ("finance", r"P = \sum_{t=1}^{n} \frac{C_t}{(1+y)^t}", "y", [r"-\sum_{t=1}^{n} \frac{t\, C_t}{(1+y)^{t+1}}", r"-\frac{1}{1+y} \sum_{t=1}^n \frac{t C_t}{(1+y)^t}"], [r"-\sum_{t=1}^{n} \frac{t\, C_t}{(1+y)^{t}}"]),
    ("finance", r"P(y) = \sum_{t=1}^{T} C_t e^{-y t} + F e^{-yT}", "y", [r"-\sum_{t=1}^T t C_t e^{-yt} - T F e^{-yT}"], [r"-\sum_{t=1}^T t C_t e^{-yt} - F e^{-yT}"]),
    ("finance", r"u(c) = \frac{c^{1-\gamma} - 1}{1 - \gamma}", "c", [r"c^{-\gamma}"], [r"c^{1-\gamma}", r"(1-\gamma) c^{-\gamma}"]),
    ("finance", r"\Pi = p\,q - \alpha q - \tfrac{1}{2}\beta q^{2}", "q", [r"p - \alpha - \beta q"], [r"p - \alpha - 2\beta q"]),
    ("control", r"J = x^\top Q x + u^\top R u", "u", [r"(R + R^\top) u"], ["2 R u", "R u"]),
    ("control", r"J(u) = (A x + B u)^\top P (A x + B u) + u^\top R u", "u", [r"B^\top (P + P^\top)(A x + B u) + (R + R^\top) u"], [r"2 B^\top P (A x + B u) + 2 R u"]),
    ("control", r"\sum_{k=0}^{N-1} \left( q x_k^2 + r u_k^2 \right)", "u", ["2 r u"], ["r u"]),
    ("control", r"V = \frac{1}{2} \dot{\theta}^2 + \frac{g}{\ell} (1 - \cos\theta)", "theta", [r"\frac{g}{\ell} \sin\theta"], [r"-\frac{g}{\ell}\sin\theta"]),
    ("graphics", r"E = \sum_{i} \lVert R\, \mathbf{p}_i + \mathbf{t} - \mathbf{q}_i \rVert^2", "t", [r"2 \sum_i (R \mathbf{p}_i + \mathbf{t} - \mathbf{q}_i)"], [r"\sum_i (R \mathbf{p}_i + \mathbf{t} - \mathbf{q}_i)"]),
    ("graphics", r"\left( f \frac{X}{Z} + c_x - u \right)^2 + \left( f \frac{Y}{Z} + c_y - v \right)^2", "f", [r"2\left( f \frac{X}{Z} + c_x - u \right)\frac{X}{Z} + 2\left( f \frac{Y}{Z} + c_y - v \right)\frac{Y}{Z}"], [r"2\left( f \frac{X}{Z} + c_x - u \right) X + 2\left( f \frac{Y}{Z} + c_y - v \right) Y"]),
    ("graphics", r"G(x, y) = \frac{1}{2\pi\sigma^2} e^{-\frac{x^2+y^2}{2\sigma^2}}", "x", [r"-\frac{x}{2\pi\sigma^4} e^{-\frac{x^2+y^2}{2\sigma^2}}", r"-\frac{x}{\sigma^2} G(x, y)"], [r"-\frac{x}{2\pi\sigma^2} e^{-\frac{x^2+y^2}{2\sigma^2}}"]),
    ("chemistry", r"k = A \exp\left(-\frac{E_a}{R T}\right)", "T", [r"\frac{A E_a}{R T^2} \exp\left(-\frac{E_a}{RT}\right)", r"\frac{k E_a}{R T^2}"], [r"-\frac{A E_a}{R T^2} \exp\left(-\frac{E_a}{RT}\right)"]),
    ("chemistry", r"v = \frac{V_{\max} [S]}{K_m + [S]}", "S", [r"\frac{V_{\max} K_m}{(K_m + S)^2}"], [r"\frac{V_{\max}}{(K_m + S)^2}"]),
    ("chemistry", r"P = \frac{R T}{V - b} - \frac{a}{V^2}", "V", [r"-\frac{R T}{(V - b)^2} + \frac{2 a}{V^3}"], [r"-\frac{R T}{(V - b)^2} + \frac{a}{V^3}"]),
    ("chemistry", r"D_e \left( 1 - e^{-a (r - r_e)} \right)^2", "r", [r"2 a D_e e^{-a (r - r_e)} \left(1 - e^{-a (r - r_e)}\right)"], [r"-2 a D_e e^{-a (r - r_e)} \left(1 - e^{-a (r - r_e)}\right)"]),
    ("ecology", r"f(N) = r N \left(1 - \frac{N}{K}\right)", "N", [r"r \left(1 - \frac{2N}{K}\right)", r"r - \frac{2 r N}{K}"], [r"r\left(1 - \frac{N}{K}\right)"]),
    ("ecology", r"\frac{a N}{1 + a h N}", "N", [r"\frac{a}{(1 + a h N)^2}"], [r"\frac{a h}{(1+ahN)^2}"]),
    ("ecology", r"H = -\sum\limits_{i=1}^{S} p_i \ln p_i", "p", [r"-\ln p - 1"], [r"-\ln p", r"1 + \ln p"]),
    ("ecology", r"\beta S I / N - \gamma I", "I", [r"\beta S / N - \gamma", r"\frac{\beta S}{N} - \gamma"], [r"\beta S/N"]),
    ("astronomy", r"d = 2 r \arcsin \sqrt{ \sin^2 \left(\frac{\varphi_2 - \varphi_1}{2}\right) + \cos\varphi_1 \cos\varphi_2 \sin^2 \left( \frac{\lambda_2 - \lambda_1}{2} \right) }", "r", [r"\frac{d}{r}", r"2 \arcsin \sqrt{ \sin^2 \left(\frac{\varphi_2 - \varphi_1}{2}\right) + \cos\varphi_1 \cos\varphi_2 \sin^2 \left( \frac{\lambda_2 - \lambda_1}{2} \right) }"], [r"2\arcsin\sqrt{\sin^2\left(\frac{\varphi_2 - \varphi_1}{2}\right)}"]),
    ("signals", r"\sum_{k} \left| y_k - \sum_{j} A_{kj} x_j \right|^2", "x", [r"-2 A^\top (y - A x)"], [r"2 A^\top (y - A x)"]),
    ("signals", r"\tfrac12\|y-Ax\|_2^2+\tau\|x\|_1", "x", [r"A^{\top}(Ax-y)+\tau\operatorname{sgn}(x)"], [r"A^{\top}(y-Ax)+\tau\operatorname{sgn}(x)"]),
    ("information", r"I = \log_2 \left( 1 + \frac{S}{N} \right)", "S", [r"\frac{1}{(N+S)\ln 2}"], [r"\frac{1}{N+S}"]),
    ("optimisation", r"\begin{aligned} f(x) &= \tfrac{1}{2} x^\top A x - b^\top x + c \end{aligned}", "x", [r"\tfrac12 (A + A^\top) x - b"], ["A x - b"]),
    ("optimisation", r"f &= (1 - x)^2 + 100\,(y - x^2)^2,", "x", [r"-2(1 - x) - 400\,x\,(y - x^2)"], [r"-2(1-x) - 200\,x\,(y-x^2)"]),
    ("optimisation", r"\log\sum_{i=1}^m \exp(a_i^\top x + b_i)", "x", [r"\frac{\sum_{i=1}^m \exp(a_i^\top x + b_i) a_i}{\sum_{i=1}^m \exp(a_i^\top x + b_i)}"], [r"\sum_{i=1}^m \exp(a_i^\top x + b_i) a_i"]),
    ("optimisation", r"-\sum_{i=1}^m \log(b_i - a_i^\top x)", "x", [r"\sum_{i=1}^m \frac{1}{b_i - a_i^\top x} a_i", r"\sum_{i=1}^m \frac{a_i}{b_i - a_i^\top x}"], [r"-\sum_{i=1}^m \frac{a_i}{b_i - a_i^\top x}"]),
    ("optimisation", r"-\log\det X + \operatorname{tr}(S X)", "X", [r"S^\top - X^{-\top}", r"S^{\top} - (X^{-1})^{\top}"], ["S - X^{-1}", r"S^\top + X^{-\top}"]),
    ("optimisation", r"\operatorname{Tr}\left( X^T A X \right)", "X", ["(A + A^T) X", "A X + A^T X"], ["2 A X"]),
    ("machine learning", r"\mathcal{L}(\theta)=\frac{1}{N}\sum_{n=1}^{N}\bigl(y_n-\theta^{\mathsf T}x_n\bigr)^{2}", r"\theta", [r"-\frac{2}{N}\sum_{n=1}^N (y_n - \theta^{\mathsf T} x_n)\, x_n"], [r"-\frac{2}{N}\sum_{n=1}^N (y_n - \theta^{\mathsf T} x_n)"]),
    ("machine learning", r"J(\mathbf{W}) = \tfrac{1}{2}\operatorname{Tr}\!\left[(\mathbf{X}\mathbf{W}-\mathbf{Y})^{\top}(\mathbf{X}\mathbf{W}-\mathbf{Y})\right]", r"\nabla_{\mathbf{W}} J", [r"\mathbf{X}^{\top}(\mathbf{X}\mathbf{W}-\mathbf{Y})"], [r"2\mathbf{X}^{\top}(\mathbf{X}\mathbf{W}-\mathbf{Y})"]),
    ("machine learning", r"-\sum_{c=1}^{C} y_{c}\log \hat{y}_{c}", r"\frac{\partial L}{\partial \hat{y}_c}", [r"-\frac{y_c}{\hat{y}_c}"], [r"-\frac{1}{\hat{y}_c}", r"\hat{y}_c - y_c"]),
    ("machine learning", r"x \cdot \frac{1}{1+e^{-\beta x}}", "x", [r"\frac{1}{1+e^{-\beta x}} + \frac{\beta x e^{-\beta x}}{(1+e^{-\beta x})^2}"], [r"\frac{1}{1+e^{-\beta x}}"]),
    ("statistics", r"\ell(p) = k\ln p + (n-k)\ln(1-p)", "p", [r"\frac{k}{p} - \frac{n-k}{1-p}", r"\frac{k-np}{p(1-p)}"], [r"\frac{k}{p} + \frac{n-k}{1-p}"]),
    ("statistics", r"\frac{1}{n}\sum_{i=1}^n x_i^2 - \Bigl(\frac{1}{n}\sum_{i=1}^n x_i\Bigr)^{\!2}", "x", [r"\frac{2}{n}\left(x - \frac{1}{n}\sum_{i=1}^n x_i\right)"], [r"\frac{2}{n} x"]),
    ("physics", r"\mathcal{L} = \frac{1}{2} m \dot{x}^2 - \frac{1}{2} k x^2", r"\frac{\partial \mathcal{L}}{\partial \dot{x}}", [r"m\dot{x}"], [r"\frac12 m \dot{x}", "m x"]),
    ("physics", r"n(E) = \frac{1}{\exp\!\left(\frac{E-\mu}{k_{\mathrm{B}}T}\right)+1}", "E", [r"-\frac{1}{k_{\mathrm{B}} T} n(E) (1 - n(E))"], [r"\frac{1}{k_{\mathrm{B}} T} n(E) (1 - n(E))"]),
    ("finance", r"\sqrt{\mathbf{w}^{\mathsf{T}}\boldsymbol{\Sigma}\mathbf{w}}", r"\mathbf{w}", [r"\frac{(\boldsymbol{\Sigma} + \boldsymbol{\Sigma}^{\mathsf{T}}) \mathbf{w}}{2 \sqrt{\mathbf{w}^{\mathsf{T}}\boldsymbol{\Sigma}\mathbf{w}}}"], [r"\frac{\boldsymbol{\Sigma}\mathbf{w}}{\mathbf{w}^{\mathsf{T}}\boldsymbol{\Sigma}\mathbf{w}}"]),
    ("control", r"J = \frac{1}{2}\sum_{k=0}^{N-1}\left(x_k^{\top}Qx_k + u_k^{\top}Ru_k\right)", r"\frac{\partial J}{\partial u_k}", [r"\tfrac{1}{2}(R + R^\top) u_k"], ["R u_k"]),
    ("control", r"V(x) = x^{\mathrm{T}} P x", "x", [r"(P+P^{\mathrm{T}})x", r"Px + P^{\mathrm{T}}x"], ["2Px"]),
    ("graphics", r"L_o = \frac{\rho}{\pi} L_i \cos\theta_i", r"\theta_i", [r"-\frac{\rho}{\pi} L_i \sin\theta_i"], [r"\frac{\rho}{\pi} L_i \sin\theta_i"]),
    ("graphics", r"\left(\mathbf{n}\cdot\mathbf{h}\right)^{\alpha}", r"\mathbf{n}", [r"\alpha\left(\mathbf{n}\cdot\mathbf{h}\right)^{\alpha-1}\mathbf{h}"], [r"\alpha\left(\mathbf{n}\cdot\mathbf{h}\right)^{\alpha-1}"]),
    ("chemistry", r"p = p_0 \exp\Big(-\frac{\Delta H}{R}\Big(\frac1T-\frac1{T_0}\Big)\Big)", "T", [r"\frac{p \Delta H}{R T^2}"], [r"-\frac{p \Delta H}{R T^2}"]),
    ("ecology", r"f(N)=\frac{aN^2}{1+ahN^2}", "N", [r"\frac{2aN}{(1+ahN^2)^2}"], [r"\frac{2aN}{1+ahN^2}"]),
    ("signals", r"X = 10\log_{10}\frac{P}{P_0}", "P", [r"\frac{10}{P\ln 10}"], [r"\frac{10}{P}"]),
    ("optimisation", r"\phi(x) = -\sum_{i=1}^m \log(b_i - \sum_j a_{ij} x_j)", r"\frac{\partial\phi}{\partial x_k}", [r"\sum_{i=1}^m \frac{a_{ik}}{b_i - \sum_j a_{ij} x_j}"], [r"-\sum_{i=1}^m \frac{a_{ik}}{b_i - \sum_j a_{ij} x_j}"]),
    ("optimisation", r"\mathcal{L}(x, \lambda) = c^\top x + \lambda^\top (A x - b)", r"\lambda", ["Ax - b"], ["b - Ax"]),
    ("optimisation", r"\frac{x^\top A x}{x^\top x}", "x", [r"\frac{(A + A^\top)x}{x^\top x} - \frac{2 x^\top A x}{(x^\top x)^2} x"], [r"\frac{2 A x}{x^\top x}"]),
    ("machine learning", r"L=\sum_{i=1}^n\bigl(\hat y_i-y_i\bigr)^2", r"\frac{\partial L}{\partial\hat y_i}", [r"2(\hat y_i-y_i)"], [r"\hat y_i-y_i", r"-2(\hat y_i - y_i)"]),
    ("machine learning", r"K(x,y)=\exp\left(-\frac{\|x-y\|^2}{2\sigma^2}\right)", "x", [r"-\frac{x-y}{\sigma^2} K(x,y)", r"\frac{y-x}{\sigma^2}\exp\left(-\frac{\|x-y\|^2}{2\sigma^2}\right)"], [r"\frac{x-y}{\sigma^2} K(x,y)"]),
    ("machine learning", r"\sum_{i,j}\left(x_{ij}-\sum_k u_{ik}v_{kj}\right)^2", r"\frac{\partial L}{\partial u_{ik}}", [r"-2\sum_j (x_{ij}-\sum_l u_{il}v_{lj}) v_{kj}"], []),
    ("statistics", r"-\log\mathcal{N}(x;\mu,\sigma^{2})", r"\sigma", [r"\frac1\sigma-\frac{(x-\mu)^2}{\sigma^3}"], [r"\frac{1}{2\sigma^2}-\frac{(x-\mu)^2}{2\sigma^4}"]),
    ("physics", r"S=-k_B\sum_i p_i\ln p_i", r"\frac{\partial S}{\partial p_i}", [r"-k_B(\ln p_i+1)"], [r"-k_B\ln p_i"]),
    ("physics", r"y=x\tan\theta-\frac{gx^2}{2v_0^2\cos^2\theta}", "x", [r"\tan\theta-\frac{gx}{v_0^2\cos^2\theta}"], [r"\tan\theta-\frac{gx}{2v_0^2\cos^2\theta}"]),
    ("physics", r"\psi(x)=A\sin\left(\frac{n\pi x}{L}\right)", "x", [r"\frac{An\pi}{L}\cos\left(\frac{n\pi x}{L}\right)"], [r"-\frac{An\pi}{L}\cos\left(\frac{n\pi x}{L}\right)"]),
    ("graphics", r"\sum_{i,j} w_{ij}\|\mathbf{p}_i-\mathbf{p}_j\|^2", r"\frac{\partial E}{\partial\mathbf{p}_k}", [r"2\sum_j(w_{kj}+w_{jk})(\mathbf{p}_k-\mathbf{p}_j)"], [r"2\sum_j w_{kj}(\mathbf{p}_k-\mathbf{p}_j)"]),
    ("chemistry", r"v=\frac{V_{max}S}{K_m(1+\frac{I}{K_i})+S}", "I", [r"-\frac{V_{max}S K_m}{K_i\left(K_m(1+\frac{I}{K_i})+S\right)^2}"], [r"\frac{V_{max}S K_m}{K_i(K_m(1+\frac{I}{K_i})+S)^2}"]),
    ("signals", r"\frac{1}{2}\sum_{n=1}^{N}\left|d_n-\mathbf{w}^T\mathbf{x}_n\right|^2", r"\mathbf{w}", [r"-\sum_{n=1}^N\left(d_n-\mathbf{w}^T\mathbf{x}_n\right)\mathbf{x}_n"], [r"-\sum_{n=1}^N (d_n-\mathbf{w}^T\mathbf{x}_n)"]),
    ("optimisation", r"f(\mathbf{x})=\mathbf{c}^\top\mathbf{x}-\mu\sum_i\ln x_i", r"\mathbf{x}", [r"\mathbf{c}-\frac{\mu}{\mathbf{x}}", r"\mathbf{c}-\mu/\mathbf{x}"], [r"\mathbf{c}+\mu/\mathbf{x}"]),
    ("machine learning", r"L = -\sum_k t_k \log \frac{e^{z_k}}{\sum_j e^{z_j}}", r"\frac{\partial L}{\partial z_k}", [r"\frac{e^{z_k}}{\sum_j e^{z_j}} \sum_i t_i - t_k"], [r"\frac{e^{z_k}}{\sum_j e^{z_j}} - t_k"]),
    ("physics", r"E = -\tfrac{1}{2} \sum_{i,j} W_{ij} s_i s_j - \sum_i \theta_i s_i", r"\frac{\partial E}{\partial s_k}", [r"-\frac{1}{2} \sum_j (W_{kj} + W_{jk}) s_j - \theta_k"], [r"-\sum_j W_{kj} s_j - \theta_k"]),
    ("statistics", r"\sum_{i,j} W_{ij} x_i x_j", r"\frac{\partial f}{\partial W_{kl}}", ["x_k x_l"], ["2 x_k x_l", "x_k x_k"]),
    ("ecology", r"f = \sum_i r_i N_i - \frac{1}{2} \sum_{i,j} \alpha_{ij} N_i N_j", r"\nabla_{N} f", [r"r - \tfrac{1}{2} (\alpha + \alpha^\top) N"], [r"r - \alpha N"]),
    ("recommendation", r"\sum_{u,i} M_{ui} (R_{ui} - p_u^\top q_i)^2", r"\mathbf{p}_u", [r"-2 \sum_i M_{ui} (R_{ui} - p_u^\top q_i) q_i"], [r"-2 \sum_i (R_{ui} - p_u^\top q_i) q_i"]),
    ("control", r"J = \mathbf{e}^\top P \mathbf{e}", r"\nabla_e J", [r"(P + P^\top) \mathbf{e}"], [r"2 P \mathbf{e}", r"P e"]),
    ("machine learning", r"\tfrac12 \| W x - t \|^2", "W", [r"(W x - t) x^\top"], [r"(W x + t) x^\top", r"2 (W x - t) x^\top"]),
    ("machine learning", r"\tfrac12 \sum_i \| W x_i - t_i \|^2", "W", [r"\sum_i (W x_i - t_i) x_i^\top"], [r"\sum_i (W x_i + t_i) x_i^\top"]),
    ("statistics", r"\log \det(\Sigma)", r"\frac{\partial f}{\partial \Sigma_{kl}}", [r"(\Sigma^{-1})_{lk}"], [r"(\Sigma^{-1})_{kl}"]),
    ("optimisation", r"\mathbf{1}^\top X w", "w", [r"X^\top \mathbf{1}"], [r"2 X^\top \mathbf{1}"]),
    ("statistics", r"\sum_{i=1}^n \log \mathcal{N}(x_i \mid \mu, \sigma^2)", r"\mu", [r"\frac{1}{\sigma^2} \sum_{i=1}^n (x_i - \mu)"], [r"\frac{1}{\sigma} \sum_{i=1}^n (x_i - \mu)"]),
    ("statistics", r"\sum_i \log \sum_k \pi_k N_{ik}", r"\frac{\partial L}{\partial \pi_k}", [r"\sum_i \frac{N_{ik}}{\sum_j \pi_j N_{ij}}"], [r"\sum_i \frac{\pi_k N_{ik}}{\sum_j \pi_j N_{ij}}"]),
    ("tensors", r"\sum_{ijk} (T_{ijk} - a_i b_j c_k)^2", r"\frac{\partial L}{\partial a_i}", [r"-2 \sum_{jk} (T_{ijk} - a_i b_j c_k) b_j c_k"], [r"-2 \sum_{jk} (T_{ijk} - a_i b_j c_k) b_j", r"-\sum_{jk} (T_{ijk} - a_i b_j c_k) b_j c_k"]),
    ("tensors", r"\sum_{ijk} T_{ijk} x_i x_j x_k", r"\frac{\partial f}{\partial T_{ijk}}", [r"x_i x_j x_k"], [r"2 x_i x_j x_k"]),
]
REFUSED: list[tuple[str, str, str, str, str]] = [  # loss, leaf, a gradient, code, a part of what is said
    (r"I = \log_2(1 + S)", "S", r"\frac{1}{\ln 2 (1 + S)}", "GC139", r"\ln(2) (1 + S)"),
    (r"\sum_i (x_i - m)^2", "m", r"-2 (x_i - m)", "GC202", "`x_i`"),
    (r"\sum_i x_i^2", r"\frac{\partial f}{\partial y_k}", "2 y_k", "GC206", "unknown leaf"),
    (r"\sum_{i=1}^n (a x_i + \mathrm{g}(x_i))", "a", "1", "GC201", "unknown function `g`"),
]
# fmt: on


def verdict_on(loss: str, leaf: str, claim: str) -> str:
    report = gradcli.check(loss, claims={leaf: claim})
    (verdict,) = [check.verdict for check in report.checks if check.kind == "claim"]
    return verdict


def judge(row: int) -> None:
    _, loss, leaf, right, wrong = CLAIMS[row]
    for claim in right:
        assert verdict_on(loss, leaf, claim) in ("PROVED", "CERTIFIED", "IMPRECISE"), claim
    for claim in wrong:
        assert verdict_on(loss, leaf, claim) == "DISAGREES", claim


@pytest.mark.parametrize("row", [*range(0, len(CLAIMS) - 7, 9), *range(len(CLAIMS) - 7, len(CLAIMS))])
def test_some_gradients_of_papers(row: int) -> None:
    judge(row)


@pytest.mark.deep
@pytest.mark.parametrize("row", range(len(CLAIMS)))
def test_gradients_of_papers(row: int) -> None:
    judge(row)


@pytest.mark.parametrize(("loss", "leaf", "claim", "code", "part"), REFUSED)
def test_a_claim_with_several_readings_is_refused(loss: str, leaf: str, claim: str, code: str, part: str) -> None:
    with pytest.raises(GradcliError) as caught:
        gradcli.check(loss, claims={leaf: claim})
    (problem,) = caught.value.diagnostics
    assert problem.code == code
    assert part in f"{problem.message} {problem.help}"


def test_a_leaf_has_one_claim() -> None:
    with pytest.raises(GradcliError, match="two claims"):
        gradcli.check(r"\sum_i x_i^2", claims={"x": "2 x", r"\nabla_x f": "2 x"})


JACOBIANS = [  # of arrays, whose shapes are assumed as well: script, leaf, right, wrong
    ("tanh(W@x)", "x", "diag(1 - tanh(W@x)**2) @ W", "W"),
    ("x/norm(x)", "x", "(eye(len(x)) - outer(x, x)/(x@x))/norm(x)", "eye(len(x))/norm(x)"),
    ("softmax(x)", "x", "diag(softmax(x)) - outer(softmax(x), softmax(x))", "diag(softmax(x)) + outer(softmax(x), softmax(x))"),
    (r"\tanh(W x)", "x", r"\mathrm{diag}(1 - \tanh(W x)^2) W", "2 W"),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(JACOBIANS)))
def test_a_jacobian_needs_no_point(row: int) -> None:
    loss, leaf, right, wrong = JACOBIANS[row]
    assert verdict_on(loss, leaf, right) in ("PROVED", "CERTIFIED")
    assert verdict_on(loss, leaf, wrong) == "DISAGREES"

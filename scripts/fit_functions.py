#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Polynomials of the mathematical functions in runtime/kernels/mathematics.hpp, by interpolation at Chebyshev nodes: fit_functions.py

For each it prints coefficients, the constant one first, and the largest error of the polynomial on its interval.
"""
import math

NODES = 400


def chebyshev(function, low, high, degree):
    """Coefficients of the interpolating polynomial in x, the constant one first."""
    count = degree + 1
    nodes = [math.cos(math.pi * (k + 0.5) / count) for k in range(count)]
    values = [function((low + high) / 2 + (high - low) / 2 * node) for node in nodes]
    series = [(1 if j == 0 else 2) / count * sum(v * math.cos(math.pi * j * (k + 0.5) / count) for k, v in enumerate(values))
              for j in range(count)]
    # From T_j(t) to powers of t, then t = scale x + shift.
    powers, previous, current = [0.0] * count, [1.0], [0.0, 1.0]
    for j, c in enumerate(series):
        term = previous if j == 0 else current
        for i, t in enumerate(term):
            powers[i] += c * t
        if j > 0:
            following = [0.0] + [2 * t for t in current]
            for i, t in enumerate(previous):
                following[i] -= t
            previous, current = current, following
    scale, shift = 2 / (high - low), -(high + low) / (high - low)
    result = [0.0] * count
    for i, p in enumerate(powers):
        for k in range(i + 1):
            result[k] += p * math.comb(i, k) * scale ** k * shift ** (i - k)
    return result


def series(terms, x):
    return sum(c * x ** i for i, c in enumerate(terms))


def quotient(function, expansion, near):
    """function(x) / x and the like, by its expansion where the quotient loses digits."""
    return lambda t: series(expansion, t) if abs(t) < near else function(t)


FUNCTIONS = {
    "exp: (e^r - 1 - r) / r^2": (quotient(lambda r: (math.expm1(r) - r) / r ** 2, [1 / math.factorial(i + 2) for i in range(12)], 0.2),
                                 -math.log(2) / 2, math.log(2) / 2, 4),
    "erf: erf(x) / x in x^2": (lambda t: 2 / math.sqrt(math.pi) if t < 1e-12 else math.erf(math.sqrt(t)) / math.sqrt(t), 0, 1, 7),
    "erf: -log(erfc(x))": (lambda x: -math.log(math.erfc(x)), 1, 4, 8),
    "sin: (sin(r) / r - 1) / r^2 in r^2": (lambda t: series([-1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800], t), 0, math.pi ** 2 / 16, 3),
    "cos: (cos(r) - 1 + r^2 / 2) / r^4 in r^2": (lambda t: series([1 / 24, -1 / 720, 1 / 40320, -1 / 3628800], t), 0, math.pi ** 2 / 16, 2),
    "atan: (atan(t) / t - 1) / t^2 in t^2": (lambda t: series([-1 / 3, 1 / 5, -1 / 7, 1 / 9, -1 / 11, 1 / 13, -1 / 15, 1 / 17], t) if t < 0.02
                                             else (math.atan(math.sqrt(t)) / math.sqrt(t) - 1) / t, 0, 1, 9),
    "asin: (asin(t) / t - 1) / t^2 in t^2": (lambda t: series([1 / 6, 3 / 40, 15 / 336, 105 / 3456, 945 / 42240, 10395 / 599040], t) if t < 0.01
                                             else (math.asin(math.sqrt(t)) / math.sqrt(t) - 1) / t, 0, 0.25, 5),
    "log: (log(1 + f) - f + f^2 / 2) / f^3": (lambda f: series([(-1) ** i / (i + 3) for i in range(30)], f) if abs(f) < 0.2
                                              else (math.log1p(f) - f + f * f / 2) / f ** 3, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 7),
}


def main():
    for name, (function, low, high, degree) in FUNCTIONS.items():
        terms = chebyshev(function, low, high, degree)
        points = [low + (high - low) * i / NODES for i in range(NODES + 1)]
        error = max(abs(series(terms, x) - function(x)) for x in points)
        print(f"{name}: {', '.join(f'{c:.9g}f' for c in terms)}; off by {error:.1e} at most")


main()

"""Fits cost models to measurements, and returns the residuals."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Fit(NamedTuple):
    """Coefficients of a cost model, and the measurements to which it was fitted.

    Each row of `rows` is (name, measured value, modelled value).
    """

    coefficients: tuple[float, ...]
    rows: tuple[tuple[str, float, float], ...]

    def of(self, features: Sequence[float]) -> float:
        """Return the sum that `fit` models: each feature, times its coefficient."""
        return math.fsum(map(operator.mul, self.coefficients, features))

    def power_of(self, values: Sequence[float]) -> float:
        """Return the product that `fit_power` models; `values` are the features."""
        factor, *exponents = self.coefficients
        return factor * math.prod(map(math.pow, values, exponents))

    @property
    def error(self) -> float:
        """Maximum absolute residual, as a share of the measured value."""
        return max(abs(model / value - 1) for _, value, model in self.rows)

    @property
    def typical_error(self) -> float:
        """Root mean square of the residuals, as shares of the measured values."""
        squares = [(model / value - 1) ** 2 for _, value, model in self.rows]
        return math.sqrt(sum(squares) / len(squares))


FitRow = tuple[str, Sequence[float], float]


def fit(rows: Sequence[FitRow]) -> Fit:
    """Return the nonnegative coefficients with the smallest sum of squared residuals.

    Rows are (name, features, measured value). Residuals are shares of the measured
    value. The function fits every subset of the features, and returns the best fit
    without a negative coefficient. This is fast, because rows have few features.
    """
    features = np.array([row[1] for row in rows], dtype=float)
    values = np.array([row[2] for row in rows])
    count, least, best = features.shape[1], math.inf, np.zeros(features.shape[1])
    for mask in itertools.product((False, True), repeat=count):
        if not any(mask):
            continue
        part = features[:, mask] / values[:, None]
        some = np.linalg.lstsq(part, np.ones(len(rows)), rcond=None)[0]
        error = float(((part @ some - 1) ** 2).sum())
        if (some >= 0).all() and error < least:
            least, best = error, np.zeros(count)
            best[list(mask)] = some
    names = (row[0] for row in rows)
    both = zip(names, values.tolist(), (features @ best).tolist(), strict=True)
    return Fit(tuple(best.tolist()), tuple(both))


def fit_power(rows: Sequence[FitRow]) -> Fit:
    """Fit a product: a constant factor, and a power of each feature.

    The function minimizes the squared residuals of the logarithms. In the result, the
    first coefficient is the factor, and the other coefficients are the exponents. For
    `rows`, see `fit`.
    """
    logs = np.log([[math.e, *row[1]] for row in rows])
    values = np.log([row[2] for row in rows])
    best = np.linalg.lstsq(logs, values, rcond=None)[0]
    models = np.exp(logs @ best).tolist()
    both = [(row[0], row[2], model) for row, model in zip(rows, models, strict=True)]
    return Fit((math.exp(best[0]), *best[1:].tolist()), tuple(both))

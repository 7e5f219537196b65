"""Fits of costs to measurements, with their residuals."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Fit(NamedTuple):
    """Coefficients of the features, and the rows to which they were fitted.

    A row is (name, measured value, modelled value).
    """

    coefficients: tuple[float, ...]
    rows: tuple[tuple[str, float, float], ...]

    def of(self, features: Sequence[float]) -> float:
        """Return the sum of the features, each multiplied by its coefficient."""
        return math.fsum(map(operator.mul, self.coefficients, features))

    def power_of(self, values: Sequence[float]) -> float:
        """Return the factor times each value raised to its exponent (`fit_power`)."""
        factor, *exponents = self.coefficients
        return factor * math.prod(map(math.pow, values, exponents))

    @property
    def error(self) -> float:
        """Maximum residual, as a share of the measured value."""
        return max(abs(model / value - 1) for _, value, model in self.rows)

    @property
    def typical_error(self) -> float:
        """Root mean square of the residuals, as a share."""
        squares = [(model / value - 1) ** 2 for _, value, model in self.rows]
        return math.sqrt(sum(squares) / len(squares))


FitRow = tuple[str, Sequence[float], float]


def fit(rows: Sequence[FitRow]) -> Fit:
    """Return the nonnegative least-squares coefficients.

    Residuals are shares of the measured value. All subsets of the features are tried,
    as they are few.
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
    """Return factor and exponents of a product of powers; for arguments, see `fit`."""
    logs = np.log([[math.e, *row[1]] for row in rows])
    values = np.log([row[2] for row in rows])
    best = np.linalg.lstsq(logs, values, rcond=None)[0]
    models = np.exp(logs @ best).tolist()
    both = [(row[0], row[2], model) for row, model in zip(rows, models, strict=True)]
    return Fit((math.exp(best[0]), *best[1:].tolist()), tuple(both))

"""Computes the figures of a planned channel by formulas and from simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from sds_core.planning import closed_forms
from sds_core.planning.channel import ChannelPlan
from sds_core.planning.estimates import NOTHING, Estimate, difference, estimated
from sds_core.planning.experiment import Outcome

TARGET_S = 5.0
"""Default of the target time S for deliveries, seconds.

A message should reach at least one other participant within S, and all of them within
6 S. If a participant misses messages, it should notice 90 % of them within 3 S.
"""


class FigureSource(StrEnum):
    """How a figure is computed.

    BOTH means that a formula's result is multiplied by a simulated share.
    """

    CLOSED_FORM = "closed form"
    SIMULATED = "simulated"
    BOTH = "closed form, simulated"


class PlannedFigure(NamedTuple):
    """A figure of a plan.

    `change` is the difference from the base plan's figure; NaN for the base plan.
    """

    source: FigureSource
    estimate: Estimate
    change: Estimate = NOTHING


def closed_figures(plan: ChannelPlan) -> dict[str, float]:
    """Return the figures of a plan that are computed by formulas, by name.

    Some keys are fields of `Outcome`. The other keys are ``frame_bytes``,
    ``filter_frame_bytes``, ``days_to_full_filter``, ``missed_messages`` (share of
    frames that at least one participant misses), and ``fixed_syncs_per_day``. The
    formulas assume that each payload has the mean length. A frame contains a payload,
    or one of its segments.
    """
    parts = closed_forms.frame_parts(plan, plan.segment_bytes())
    known = {
        "frame_bytes": float(sum(parts)),
        "filter_frame_bytes": float(parts.bloom),
        "days_to_full_filter": closed_forms.days_to_full_filter(plan),
        "first_pass": closed_forms.first_pass(plan),
        "missed_messages": closed_forms.missed_messages(plan),
        "fixed_syncs_per_day": closed_forms.fixed_syncs_per_day(plan),
        "first_peer_in_time": closed_forms.first_peer_in_time(plan, TARGET_S),
    }
    return {name: value for name, value in known.items() if value is not None}


def figures_of(
    plan: ChannelPlan,
    outcomes: Sequence[Outcome],
    base: tuple[ChannelPlan, Sequence[Outcome]] | None = None,
) -> dict[str, PlannedFigure]:
    """Return all figures of a plan, with the differences from a base plan.

    `outcomes` are the runs of the plan. The runs of the base plan must have the same
    seeds in the same order. With only one run, the intervals are infinite.

    Raises:
        sds_core.planning.errors.ModelMissing: scipy is not installed.
    """
    exact = closed_figures(plan)
    exact_base = {} if base is None else closed_figures(base[0])
    figures: dict[str, PlannedFigure] = {}
    for name in (*Outcome._fields, *(name for name in exact if name not in _SIMULATED)):
        change = NOTHING
        if name in exact:
            source, estimate = FigureSource.CLOSED_FORM, Estimate.exact(exact[name])
        else:
            is_both = name == "false_acknowledgements"
            source = FigureSource.BOTH if is_both else FigureSource.SIMULATED
            estimate = estimated([getattr(outcome, name) for outcome in outcomes])
        if name in exact and name in exact_base:
            change = Estimate.exact(exact[name] - exact_base[name])
        elif base is not None and name in _SIMULATED:
            change = difference(
                [getattr(outcome, name) for outcome in outcomes],
                [getattr(outcome, name) for outcome in base[1]],
            )
        figures[name] = PlannedFigure(source, estimate, change)
    return figures


_SIMULATED = frozenset(Outcome._fields)


def compared(
    plans: Mapping[str, ChannelPlan], outcomes: Mapping[str, Sequence[Outcome]]
) -> dict[str, dict[str, PlannedFigure]]:
    """Return the figures of each plan, with the differences from the first plan.

    The runs of all plans must have the same seeds in the same order.

    Raises:
        sds_core.planning.errors.ModelMissing: scipy is not installed.
    """
    (base_name, base_plan), *_ = plans.items()
    base = base_plan, outcomes[base_name]
    return {
        name: figures_of(plan, outcomes[name], None if name == base_name else base)
        for name, plan in plans.items()
    }

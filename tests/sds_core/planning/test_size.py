"""The cost model: its rows, its errors, and that more traffic never costs less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.data import mix
from benchmarks.measured import runs
from benchmarks.scaling import BEGIN, END, PAGE
from sds_core.planning.cost_fit import fit, fit_power
from sds_core.planning.measured import NotMeasured
from sds_core.planning.size import MIX, CostModel, Load
from tests.support.planning.sized import cost_model, performance, scaling

USUAL = Load(1_000, 20, 100, 1.0, 22_816)
HOUR = "200 channels at one message/s, 60 min remembered"

loads = st.builds(
    Load,
    st.integers(1, 100_000),
    st.integers(1, 1_000),
    st.floats(0.01, 10_000),
    st.floats(0.1, 48),
    st.floats(100, 150_000),
    st.floats(0.5, 30),
)


def test_fit_finds_the_coefficients_of_exact_rows() -> None:
    """A feature that costs nothing has 0, and nothing is left over."""
    rows = [
        (f"{a} {b}", [1.0, a, b], 3.0 + 2.0 * a) for a, b in ((1, 5), (2, 1), (7, 9))
    ]
    found = fit(rows)
    assert found.coefficients == pytest.approx([3.0, 2.0, 0.0], abs=1e-9)
    assert found.error < 1e-9


def test_fit_has_no_negative_coefficients() -> None:
    """Rows that fall with a feature leave it without cost."""
    found = fit([(str(n), [1.0, n], 10.0 - n) for n in range(5)])
    assert found.coefficients[1] == 0
    assert found.error > 0.1


def test_power_fit_finds_the_exponents_of_exact_rows() -> None:
    """A product of powers is found as it is."""
    rows = [
        (f"{a} {b}", [a, b], 7 * a**0.9 * b**0.5) for a, b in ((1, 2), (9, 3), (4, 8))
    ]
    found = fit_power(rows)
    assert found.coefficients == pytest.approx([7, 0.9, 0.5])
    assert found.power_of([16, 4]) == pytest.approx(7 * 16**0.9 * 2)


def test_every_row_is_within_the_printed_error() -> None:
    """The error is the greatest residual, and the model is of use."""
    model = cost_model()
    for name, one in model.fits.items():
        assert one.rows, name
        for row, measured, modelled in one.rows:
            assert abs(modelled / measured - 1) <= one.error + 1e-12, (name, row)
        assert one.typical_error <= one.error < 0.4, name


def test_model_returns_the_measured_rows() -> None:
    """The rows of streaming/cli/measured/performance.json, by the public methods."""
    model, measured = cost_model(), performance()
    size = measured.data_set("small")[2]
    live = "2,000 small frames/s, 1,920 channels"
    load = Load(1_920, 5, 2_000, 50 / 3_600, size)
    cores = measured.median("age on /metrics", f"{live}, CPU")
    assert model.cpu_s(load) == pytest.approx(cores, rel=model.fits["cpu"].error)
    batch_s = measured.median("age on /metrics", f"{live}, batch")
    assert model.batch_s(load, 2) == pytest.approx(
        batch_s, rel=model.fits["batch"].error
    )
    memory = measured.median("age on /metrics", f"{live}, memory") * 2**20
    assert model.size(load, history_days=1).needs["memory_bytes"] == pytest.approx(
        memory, rel=model.fits["memory"].error
    )


def test_one_core_takes_as_much_longer_as_was_measured() -> None:
    """The ratio of the runs on one core and on two."""
    model, table = cost_model(), scaling().runs
    ratio = table.run(1_000, 2).frames_per_s / table.run(1_000, 1).frames_per_s
    found = model.batch_s(USUAL, 1) / model.batch_s(USUAL, 2)
    assert found == pytest.approx(ratio)


@given(loads, st.floats(1, 10))
def test_more_never_needs_less(load: Load, factor: float) -> None:
    """Monotone in channels of the same traffic, and in all other arguments."""
    model = cost_model()
    before = model.size(load, history_days=30).needs
    more = [load.times(factor)]
    for name in ("participants", "frames_per_s", "hours", "frame_bytes"):
        more.append(replace(load, **{name: getattr(load, name) * factor}))
    for greater in more:
        after = model.size(greater, history_days=30).needs
        for name, small in before.items():
            large = after[name]
            if name == "machine_cores":
                assert large is None or (small is not None and large >= small)
            else:
                assert large >= small * (1 - 1e-9), (name, greater)


@given(loads)
def test_limit_is_the_last_load_that_is_followed(load: Load) -> None:
    """One channel more takes longer than the trigger; more cores follow no less."""
    model = cost_model()
    here, any_number = model.size(load, history_days=1).limits
    assert here.channels <= any_number.channels
    for limit in (here, any_number):
        if limit.channels:
            fits = load.times(limit.channels / load.channels)
            assert model.batch_s(fits, limit.cores) <= load.trigger_s * (1 + 1e-9)
        beyond = load.times((limit.channels + 1) / load.channels)
        assert model.batch_s(beyond, limit.cores) > load.trigger_s * (1 - 1e-9)


def test_extrapolation_is_named() -> None:
    """What exceeds every measured row."""
    model = cost_model()
    assert model.extrapolated(USUAL) == []
    assert model.extrapolated(replace(USUAL, participants=500)) == ["participants"]
    assert "channels" in model.extrapolated(USUAL.times(50))


def test_missing_measure_is_named() -> None:
    """A run without a row, such as one with --quick, gives no model."""
    run = performance()
    run.measures = [one for one in run.measures if HOUR not in one.what]
    with pytest.raises(NotMeasured, match=HOUR):
        CostModel(run, scaling())


def test_rows_are_those_of_the_benchmarks() -> None:
    """The shipped file has what the page has, and the mix has not changed."""
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index(BEGIN) : page.index(END)].splitlines()
    heading, _, *rows = (
        line.strip("| ").split(" | ") for line in table if line.startswith("|")
    )
    assert scaling().runs.sizes == runs(heading, rows)
    assert [
        (shape.channels, shape.participants, shape.has_filter) for shape in mix(10)
    ] == [(*one, has_filter) for has_filter in (True, False) for one in MIX]

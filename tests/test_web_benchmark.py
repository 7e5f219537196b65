"""The benchmark of page, API and metrics runs, over what a real job stores."""

from __future__ import annotations

from click.testing import CliRunner

from benchmarks import web


def test_benchmark_of_the_web_measures_each_path() -> None:
    """With the fewest channels; each line has a positive size."""
    result = CliRunner().invoke(web.main, ["--channels", "8", "--times", "1"])
    assert result.exit_code == 0, result.output
    head, *lines = result.output.splitlines()[2:]
    assert head.split() == ["path", "CPU", "ms", "bytes", "/healthz", "ms"]
    measured = {line.split()[0]: line.split()[2] for line in lines[:-1]}
    assert list(measured) == list(web._PATHS)  # noqa: SLF001 - what the module lists
    assert "0" not in measured.values()

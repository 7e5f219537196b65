"""Values of options: durations, and the unit of plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

import click
import pytest
from click.testing import CliRunner

from docs import make_cli
from sds_core.durations import duration_text, parse_duration_ms
from sds_core.observer.settings_table import read_values
from streaming.cli import group
from streaming.cli.commands import CONTEXT, Command
from streaming.cli.settings import setting
from streaming.cli.values import Duration


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("1h30m", 5_400_000),
        ("0.5h", 1_800_000),
        ("7", 7_000),
        ("0.25", 250),
        ("-1", -1_000),
    ],
)
def test_duration_has_a_unit_or_that_of_plain_numbers(
    text: str, milliseconds: float
) -> None:
    """Which is seconds here."""
    assert parse_duration_ms(text, "s") == milliseconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "5min", "m", "1h-5m", "nan", "inf"])
def test_other_text_is_no_duration(text: str) -> None:
    """But for the plain number; the error has the value and examples."""
    if text == "5":
        assert parse_duration_ms(text, "d") == 432_000_000
        return
    with pytest.raises(ValueError, match="is not a duration: use a value such as") as e:
        parse_duration_ms(text, "d")
    assert repr(text) in str(e.value)
    assert "plain number of days" in str(e.value)


@pytest.mark.parametrize("text", ["0s", "500ms", "90s", "2m", "36h", "30d", "100000d"])
def test_text_of_a_duration_is_read_as_that_duration(text: str) -> None:
    """In its largest whole unit."""
    assert duration_text(parse_duration_ms(text, "s")) == text


@click.command("wait", cls=Command, context_settings=CONTEXT)
@setting("--patience", type=Duration("s", 1, 3_600), default=120.0, help="Wait.")
@setting("--keep-days", type=Duration("d", 0, is_whole=True), default=7)
def wait(patience: float, keep_days: int) -> None:
    """A command with durations."""
    click.echo(repr((patience, keep_days)))


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ([], "(120.0, 7)\n"),
        (["--patience", "30"], "(30.0, 7)\n"),
        (["--patience", "5m", "--keep-days", "48h"], "(300.0, 2)\n"),
        (["--patience", "1500ms", "--keep-days", "0"], "(1.5, 0)\n"),
        (["--keep-days", "100000"], "(120.0, 100000)\n"),
    ],
)
def test_option_converts_a_duration_to_its_unit(
    arguments: list[str], output: str
) -> None:
    """A plain number keeps its meaning."""
    result = CliRunner().invoke(wait, arguments)
    assert (result.exit_code, result.output) == (0, output)


def test_variable_takes_a_duration_as_well() -> None:
    """As every place of a setting does."""
    environment = {"SDS_MONITOR_PATIENCE": "2m"}
    assert CliRunner().invoke(wait, env=environment).output == "(120.0, 7)\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--patience", "500ms"], "500ms is not in the range 1s<=x<=1h"),
        (["--patience", "2h"], "2h is not in the range 1s<=x<=1h"),
        (["--keep-days", "36h"], "36h is not a whole multiple of 1d"),
        (["--keep-days", "1w"], "'1w' is not a duration"),
        (["--keep-days", "100001"], "100001d is too long: use at most 100000d"),
        (["--keep-days", "1e300"], "is too long: use at most 100000d"),
    ],
)
def test_value_out_of_range_is_reported_with_units(
    arguments: list[str], problem: str
) -> None:
    """In the words of the option."""
    result = CliRunner().invoke(wait, arguments)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_help_shows_a_default_as_a_duration() -> None:
    """And the range."""
    output = CliRunner().invoke(wait, ["--help"]).output
    assert "[range: 1s<=x<=1h] [default=2m]" in " ".join(output.split())
    assert "[default=7d]" in output


def test_every_option_with_a_unit_in_its_name_takes_a_duration() -> None:
    """And no help text names the unit of a plain number."""
    for _, command in make_cli.commands():
        for option in make_cli.options(command):
            if option.opts[0].endswith(("-days", "-hours", "-seconds", "-timeout")):
                assert isinstance(option.type, Duration), option.opts
            if isinstance(option.type, Duration):
                assert "econds" not in str(option.help)


def test_setting_of_the_model_may_be_a_duration() -> None:
    """Beside milliseconds."""
    assert read_values({"ack_deadline_ms": "2m"}) == {"ack_deadline_ms": 120_000}
    with pytest.raises(ValueError, match=r"observer\.ack_deadline_ms .*'soon'"):
        read_values({"ack_deadline_ms": "soon"})


UNUSABLE = "\udcff"
"""What a command gets for a byte that is not UTF-8."""

NOT_UTF8 = [
    ("incidents", "--history", ".", "--channel", UNUSABLE),
    ("incidents", "--api", f"http://127.0.0.1:1/{UNUSABLE}"),
    ("incidents", "--views", UNUSABLE),
    ("plan", "forecast", "--history", ".", "--channel", UNUSABLE),
    ("plan", "what-if", "--history", ".", "--channel", UNUSABLE),
    ("dead-letter", "list", "--channel", UNUSABLE),
    ("dead-letter", "list", "--dead-letter-topic", UNUSABLE),
    ("dead-letter", "show", f"{UNUSABLE}:1:1"),
    ("dead-letter", "list", "--bootstrap", f"{UNUSABLE}:1"),
    ("export", "--channel", "town", "--channel", UNUSABLE, "file"),
    ("trace", UNUSABLE),
    ("trace", "--sender", UNUSABLE),
    ("forget", "--yes", "--checkpoint", ".", "town", UNUSABLE),
    ("export", "--kafka-username", UNUSABLE, "file"),
]


@pytest.mark.parametrize("arguments", NOT_UTF8, ids=lambda one: " ".join(one[:-1]))
def test_text_that_is_not_utf8_is_refused(arguments: tuple[str, ...]) -> None:
    """Where the option is read, because Kafka, DuckDB and HTTP do not take it."""
    result = CliRunner(env={"SDS_MONITOR_BOOTSTRAP": "127.0.0.1:1"}).invoke(
        group, arguments
    )
    assert result.exit_code == 2, result.exception
    error = result.stderr.splitlines()[-1]
    assert "Invalid value for" in error
    assert error.endswith("the text is not UTF-8")


def test_error_names_the_variable_with_a_secret_that_is_not_utf8() -> None:
    """And not the secret."""
    variable = "SDS_MONITOR_KAFKA_PASSWORD"
    result = CliRunner(env={variable: f"s3cret{UNUSABLE}"}).invoke(
        group, ["export", "--bootstrap", "127.0.0.1:1", "file"]
    )
    assert result.exit_code == 2, result.exception
    assert f"Invalid value for {variable}: the text is not UTF-8" in result.stderr
    assert "s3cret" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("dead-letter", "list", "--limit"),
        ("run", "--read-tasks"),
        ("run", "--max-batch-records"),
        ("run", "--max-batch-bytes"),
        ("run", "--shuffle-partitions"),
        ("run", "--label-budget"),
        ("mirror", "--cache-messages"),
        ("mirror", "--spool-bytes"),
        ("plan", "forecast", "--epoch-messages"),
    ],
    ids=" ".join,
)
def test_number_beyond_64_bits_is_refused(arguments: tuple[str, ...]) -> None:
    """The greatest that is not beyond passes."""
    *names, flag = arguments
    option = option_of(names, flag)
    greatest = 2**63 - 1
    assert option.type.convert(str(greatest), option, None) == greatest
    with pytest.raises(
        click.BadParameter, match=f"is too large: use at most {greatest:,}"
    ):
        option.type.convert(str(greatest + 1), option, None)


def option_of(names: Sequence[str], flag: str) -> click.Parameter:
    """The option of a command."""
    command: click.Command = group
    for name in names:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)  # type: ignore[assignment]
    return next(one for one in command.params if flag in one.opts)


def test_huge_limit_of_a_list_is_one_line() -> None:
    """Before Kafka is asked."""
    arguments = ["dead-letter", "list", "--bootstrap", "127.0.0.1:1", "--limit"]
    result = CliRunner().invoke(group, [*arguments, "9" * 20])
    assert result.exit_code == 2, result.exception
    assert "Invalid value for '--limit': 99999999999999999999 is" in result.stderr

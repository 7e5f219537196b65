"""Flags, environment, files, errors and exit codes, as an operator meets them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streaming.cli import group
from streaming.cli.config_file import config_option, observer_settings
from streaming.cli.settings import setting
from tests.support.cli.command import sds_monitor


@click.command("show")
@config_option
@setting("--some-name", default="default")
@setting("--number", type=int)
def show(some_name: str, number: int | None) -> None:
    """A command that shows its settings."""
    click.echo(f"{some_name} {number}")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A file with one shared setting and one of the command's own."""
    path = tmp_path / "config.toml"
    path.write_text('some-name = "file"\nelsewhere = 1\n[show]\nnumber = 3\n')
    return path


def test_flag_precedes_environment_file_and_default(config: Path) -> None:
    """Settings come from the first place that has them."""
    run = CliRunner().invoke
    assert run(show).output == "default None\n"
    assert run(show, ["--config", str(config)]).output == "file 3\n"
    environment = {"SDS_MONITOR_SOME_NAME": "environment"}
    found = run(show, ["--config", str(config)], env=environment).output
    assert found == "environment 3\n"
    found = run(
        show, ["--config", str(config), "--some-name", "flag"], env=environment
    ).output
    assert found == "flag 3\n"


def test_file_with_an_unknown_setting_is_refused(
    config: Path,
) -> None:
    """A misspelt setting in a command's own table must not be ignored."""
    config.write_text("[show]\nnumbr = 3\n")
    result = CliRunner().invoke(show, ["--config", str(config)])
    assert result.exit_code == 2
    assert "numbr" in result.output
    assert "number" in result.output
    config.write_text(r"[show]" + "\n" + r'"\u001b[2J" = 3')
    result = CliRunner().invoke(show, ["--config", str(config)])
    assert r"sets \x1b[2J for show" in result.output


@click.command()
@config_option
def model() -> None:
    """A command that shows the settings of the model."""
    click.echo(dict(observer_settings()))


def test_file_gives_the_settings_of_the_model(config: Path) -> None:
    """In a table of their own; without one there are none."""
    run = CliRunner().invoke
    assert run(model).output == "{}\n"
    assert run(model, ["--config", str(config)]).output == "{}\n"
    config.write_text("[observer]\nack_deadline_ms = 60_000\n")
    found = run(model, ["--config", str(config)]).output
    assert found == "{'ack_deadline_ms': 60000}\n"


@pytest.mark.parametrize(
    "text", ["[observer]\nack_deadline_ms = 0\n", "observer = 1\n"]
)
def test_wrong_setting_of_the_model_is_refused(config: Path, text: str) -> None:
    """The message names the file and the setting."""
    config.write_text(text)
    result = CliRunner().invoke(model, ["--config", str(config)])
    assert result.exit_code == 2
    assert f"{config}: observer" in " ".join(result.output.split())


@pytest.fixture
def program() -> click.Group:
    """A program with a command of a name that one of a group has too."""
    inner = click.Group("inner", commands=[show, click.Command("other")])
    return click.Group("program", commands=[inner, show])


def test_a_command_of_a_group_has_its_own_table_and_that_of_the_group(
    config: Path, program: click.Group
) -> None:
    """Its own table precedes the group's."""
    config.write_text(
        'some-name = "top"\n[show]\nnumber = 1\n'
        '[inner]\nsome-name = "group"\nnumber = 2\n[inner.show]\nnumber = 3\n'
    )
    run = CliRunner().invoke
    found = run(program, ["inner", "show", "--config", str(config)])
    assert found.output == "group 3\n"
    found = run(program, ["show", "--config", str(config)])
    assert found.output == "top 1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[inner]\nnumbr = 3\n", "sets numbr for inner, "),
        ("[inner.show]\nnumbr = 3\n", "sets numbr for inner show, "),
        ("[inner.shw]\nnumber = 3\n", "sets shw for inner, "),
        ("inner = 3\n", "sets inner to 3, but inner must be a table"),
        ("[inner]\nshow = 3\n", "sets inner show to 3, but inner show must be a table"),
    ],
)
def test_unknown_setting_in_the_table_of_a_group_is_refused(
    config: Path, program: click.Group, text: str, said: str
) -> None:
    """The error has its name and table."""
    config.write_text(text)
    words = ["inner", "show", "--config", str(config)]
    result = CliRunner().invoke(program, words)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[show]\nnumbr = 3\n", "(did you mean 'number'?)"),
        ("numbr = 3\n", "no setting of this name exists (did you mean 'number'?)"),
        (
            "[shw]\nnumber = 3\n",
            "no command of this name exists (did you mean 'show'?)",
        ),
        ("zzz = 3\n", "has zzz, but no setting of this name exists\n"),
    ],
)
def test_unknown_name_in_a_file_gets_a_suggestion(
    config: Path, program: click.Group, text: str, said: str
) -> None:
    """At its top and in a command's table."""
    config.write_text(text)
    result = CliRunner().invoke(program, ["show", "--config", str(config)])
    assert result.exit_code == 2
    assert str(config) in result.output
    assert said in result.output


def test_top_of_a_file_may_have_the_settings_of_other_commands(
    config: Path, program: click.Group
) -> None:
    """All commands share one file."""
    config.write_text("number = 3\n[inner]\n[show]\n")
    result = CliRunner().invoke(program, ["inner", "other"])
    assert result.exit_code == 0
    extra = click.Command("extra", callback=lambda: None)
    program.add_command(config_option(extra))
    assert CliRunner().invoke(program, ["extra", "--config", str(config)]).output == ""


def fractions(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """The names of a command, and an option of it that takes fractions."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from fractions(inner, *path, name)
    for parameter in command.params:
        if isinstance(parameter.type, click.types.FloatParamType):
            yield *path, parameter.opts[0]


def test_no_fraction_is_endless() -> None:
    """Of any command: a time without end, or a comparison that is never true."""
    options = list(fractions(group))
    assert ("run", "--trigger") in options
    for words in options:
        for value in ("nan", "inf", "-inf"):
            with pytest.raises(click.BadParameter) as caught:
                group.main([*words, value], standalone_mode=False)
            message = caught.value.format_message()
            assert message.startswith(f"Invalid value for '{words[-1]}'"), message
            assert "\n" not in message


def test_value_out_of_range_is_reported_with_its_file_and_range(
    config: Path, program: click.Group
) -> None:
    """And one of a variable with the variable's name."""

    @program.command()
    @config_option
    @setting("--trigger", type=click.FloatRange(0))
    def turn(trigger: float) -> None:
        click.echo(trigger)

    config.write_text("[turn]\ntrigger = -3\n")
    words = ["turn", "--config", str(config)]
    result = CliRunner().invoke(program, words)
    assert result.exit_code == 2
    assert f"'trigger' in {config}: -3.0 is not in the range x>=0" in result.output
    environment = {"SDS_MONITOR_TRIGGER": "-4"}
    result = CliRunner().invoke(program, words, env=environment)
    assert "SDS_MONITOR_TRIGGER: -4.0 is not in the range" in result.output
    result = CliRunner().invoke(program, [*words, "--trigger", "-5"])
    assert "'--trigger': -5.0 is not in the range" in result.output


def test_unknown_command_gets_a_suggestion() -> None:
    """Although no command is imported before it is called."""
    result = CliRunner().invoke(group, ["runn"])
    assert result.exit_code == 2
    assert "Did you mean 'run'?" in result.output


def test_a_file_with_a_list_for_a_value_is_refused(config: Path) -> None:
    """No setting takes several values that way."""
    config.write_text('some-name = ["a"]\n')
    result = CliRunner().invoke(show, ["--config", str(config)])
    assert result.exit_code == 2
    assert "not a single value" in result.output


@pytest.mark.parametrize("text", ["some-name = ", "some-name = " + "[" * 5_000])
def test_a_file_that_is_no_toml_is_named(config: Path, text: str) -> None:
    """The error names the file, also if Python's reader gives up."""
    config.write_text(text)
    result = CliRunner().invoke(show, ["--config", str(config)])
    assert result.exit_code == 2
    assert str(config) in result.output


@pytest.mark.parametrize(
    ("value", "said"),
    [("true", "only for flags"), (r'"a\u0000b"', "a text with a null character")],
)
def test_value_that_no_path_can_have_is_refused(
    config: Path, value: str, said: str
) -> None:
    """Instead of the error of the system call that gets it."""
    config.write_text(f"directory = {value}\n")

    @click.command()
    @config_option
    @setting("--directory", type=click.Path(file_okay=False))
    def enter(directory: str) -> None:
        click.echo(directory)

    result = CliRunner().invoke(enter, ["--config", str(config)])
    assert result.exit_code == 2
    assert said in result.output


def test_every_flag_of_every_command_has_its_variable_and_an_example() -> None:
    """Help shows an example; each flag can be given by SDS_MONITOR_*."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            assert (command.epilog or "").startswith(f"Example: sds-monitor {name}")
            for parameter in command.params:
                flag = parameter.opts[0].removeprefix("--")
                if (name, flag) == ("forget", "channels"):
                    # What shall go is never taken from the environment.
                    continue
                expected = "SDS_MONITOR_" + flag.replace("-", "_").upper()
                assert parameter.envvar == expected


def test_help_lists_the_commands_and_exit_codes() -> None:
    """A newcomer sees what there is."""
    found = sds_monitor("--help")
    assert found.returncode == 0
    for word in ("demo", "broker", "run", "Exit codes"):
        assert word in found.stdout


def test_the_version_is_that_of_the_project() -> None:
    """One source for the version."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert sds_monitor("--version").stdout.split()[-1] == project["version"]
    assert version("sds-monitor") == project["version"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "--bootstrap"),
        (["run", "--bootstrap", "x:1"], "--checkpoint"),
        (["nonsense"], "nonsense"),
        (["run", "--bootstrap", "x", "--checkpoint", "x"], "HOST:PORT"),
        (
            ["run", "--bootstrap", "x:1", "--checkpoint", "x", "--start", "soon"],
            "'soon' is not a valid time: use",
        ),
        (
            [
                "run",
                "--bootstrap",
                "x:1",
                "--checkpoint",
                "x",
                "--prometheus",
                "box:9090",
            ],
            "'box:9090' is not a URL: use a URL such as http://127.0.0.1:9090",
        ),
        (
            [*("run", "--bootstrap", "x:1", "--checkpoint", "x"), "--host", "0.0.0.0"],  # noqa: S104 - refused
            "other machines can reach --host 0.0.0.0 without a login: give "
            "--web-config",
        ),
    ],
)
def test_wrong_use_is_one_line_and_code_2(arguments: list[str], said: str) -> None:
    """The line says what is wrong."""
    found = sds_monitor(*arguments)
    assert found.returncode == 2
    assert said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


def test_missing_java_is_code_3_with_what_to_install(
    tmp_path: Path,
) -> None:
    """One line, before anything is fetched."""
    found = sds_monitor("broker", "--fetch-only", JAVA_HOME="", PATH=str(tmp_path))
    assert found.returncode == 3
    assert "Java 17" in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1


def test_removed_current_directory_is_one_line(tmp_path: Path) -> None:
    """Relative paths lead nowhere, for example after an upgrade replaced it."""
    words = "--bootstrap b:1 --kafka-protocol SSL --kafka-ca-file ca.pem pyproject.toml"
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"'
    program = [sys.executable, "-m", "streaming.cli", "export", *words.split()]
    ended = subprocess.run(
        ["sh", "-c", script, "sh", str(tmp_path / "gone"), *program],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "the current directory was removed" in line

"""Help in groups, its page, exit codes and completion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

from docs import make_cli
from streaming.cli import COMMANDS, group
from streaming.cli.exit_codes import ExitCode
from streaming.cli.settings import Panel

PAGE = Path("docs/cli.md")


def test_page_is_up_to_date() -> None:
    """After a change of an option run ``python -m docs.make_cli``."""
    assert make_cli.PART.current() == make_cli.block()


def test_page_and_help_have_every_exit_code() -> None:
    """The one table, and one sentence."""
    page = PAGE.read_text()
    sentence = " ".join(CliRunner().invoke(group, ["--help"]).stdout.split())
    for code in ExitCode:
        assert f"| {code.value} | {code.meaning} |" in page
        assert f" {code.value} " in sentence


@pytest.mark.parametrize("name", [name for name, _ in make_cli.commands()])
def test_every_option_stands_below_the_title_of_a_group(name: str) -> None:
    """General ones are those of every command, or all that a small command has."""
    command = dict(make_cli.commands())[name]
    shown = make_cli.options(command)
    general = [one for one in shown if make_cli.row(command, one).panel == "General"]
    assert len(general) <= 5
    assert {getattr(one, "panel", None) for one in shown} <= {None, *Panel}


def test_help_of_run_has_its_options_in_groups() -> None:
    """In plain text, because its output is no terminal."""
    output = CliRunner().invoke(group, ["run", "--help"]).stdout
    lines = [line.rstrip() for line in output.splitlines()]
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "Kafka:",
        "Deadlines and windows:",
        "Kafka: TLS and login:",
        "Storage:",
        "Page and metrics:",
        "Output:",
        "Channels:",
        "Spark:",
        "Limits:",
        "General:",
    ]
    assert "\x1b" not in output


def test_help_lists_commands_in_groups_without_their_modules() -> None:
    """A newcomer sees where to begin."""
    code = (
        "import sys\n"
        "from streaming.cli import group\n"
        "group.main(['--help'], standalone_mode=False)\n"
        "sys.exit('streaming.cli.run' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    for title, commands in COMMANDS.items():
        assert f"{title}:" in done.stdout
        for name, text in commands.items():
            assert f" {name} " in done.stdout
            assert text in done.stdout


@pytest.mark.parametrize(
    ("environment", "has_colours"),
    [
        ({"FORCE_COLOR": "1", "TERM": "xterm"}, True),
        ({"FORCE_COLOR": "1", "TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_help_has_colours_unless_the_environment_says_no(
    environment: dict[str, str], has_colours: bool
) -> None:
    """`FORCE_COLOR` stands for a terminal here."""
    output = CliRunner().invoke(group, ["--help"], env=environment).stdout
    assert ("\x1b[3" in output or "\x1b[1;3" in output) == has_colours


def test_alias_of_bootstrap_exists_wherever_bootstrap_does() -> None:
    """Kafka's own programs call it so."""
    takers = [
        option.opts
        for _, command in make_cli.commands()
        for option in make_cli.options(command)
        if "--bootstrap" in option.opts
    ]
    assert len(takers) > 10
    assert all("--bootstrap-server" in opts for opts in takers)


def completions(*words: str) -> list[str]:
    """What the shell is offered for the last word."""
    bash = get_completion_class("bash")
    assert bash is not None
    shell = bash(group, {}, "sds-monitor", "_SDS_MONITOR_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_commands_options_and_choices_are_completed() -> None:
    """Also those of a command below another."""
    assert completions("re") == ["rebuild", "replay"]
    assert "--bootstrap-server" in completions("run", "--bo")
    assert completions("run", "--kafka-protocol", "SASL_S") == ["SASL_SSL"]
    assert completions("dead-letter", "") == ["list", "replay", "show"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_each_shell_on_the_page_exists(shell: str) -> None:
    """With the variable that the page names."""
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(group, {}, "sds-monitor", "_SDS_MONITOR_COMPLETE").source_template
    assert f"{shell}_complete" in source
    assert f"_SDS_MONITOR_COMPLETE={shell}_source sds-monitor" in PAGE.read_text()


def test_no_arguments_show_the_help_text() -> None:
    """It was a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "streaming.cli"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.WRONG_USE
    assert "Try it out:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_units_restart_after_what_the_page_says() -> None:
    """Kubernetes restarts always; systemd but for wrong use."""
    for unit in Path("deploy").glob("*.service"):
        assert (
            f"RestartPreventExitStatus={ExitCode.WRONG_USE.value}" in unit.read_text()
        )
    assert "After code 2, a restart fails in the same way" in PAGE.read_text()


def test_a_command_has_the_codes_of_click_for_wrong_use() -> None:
    """So that no second number exists."""
    assert click.UsageError.exit_code == ExitCode.WRONG_USE

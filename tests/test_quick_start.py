"""Each library has a program that the pages show; it runs, and prints what they say."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

from connectors.reliable_channel import ReliableChannel
from docs import make_examples

ROOT = make_examples.ROOT
PROGRAMS = sorted((ROOT / "examples/quick_start").glob("[a-z]*.py"))
MOST_LINES = 30
PATIENCE_S = 20


def test_every_program_is_on_one_page() -> None:
    """And every page shows one."""
    shown = [
        make_examples.programs(page.read_text(encoding="utf-8"))
        for page in make_examples.PAGES
    ]
    assert [len(one) for one in shown] == [1] * len(shown)
    assert sorted(ROOT / name for (name,) in shown) == PROGRAMS


@pytest.mark.parametrize("page", make_examples.PAGES, ids=lambda one: one.name)
def test_page_shows_the_program_and_what_it_prints(page: Path) -> None:
    """After a change run ``python -m docs.make_examples``."""
    text = page.read_text(encoding="utf-8")
    assert make_examples.made(text) == text


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.stem)
def test_program_is_short(program: Path) -> None:
    """Blank lines do not count."""
    lines = program.read_text(encoding="utf-8").splitlines()
    assert len([one for one in lines if one.strip()]) <= MOST_LINES


def test_program_that_fails_gives_no_page(tmp_path: Path) -> None:
    """Its error is reported."""
    program = tmp_path / "wrong.py"
    program.write_text("1 / 0")
    with pytest.raises(RuntimeError, match=r"(?s)wrong\.py fails.*ZeroDivisionError"):
        make_examples.output(program)


def test_five_lines_of_the_readme_send_a_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As in ``python -m asyncio``."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    (code,) = [one for one in blocks if "create_reliable_channel(" in one]
    assert len([one for one in code.splitlines() if one]) == 5
    # The picture is in the first screen.
    assert text.index("![") < text.index("\n## ")
    compiled = compile(code, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def run() -> str:
        names: dict[str, object] = {}
        result = eval(compiled, names)  # noqa: S307 - code of ours
        assert inspect.isawaitable(result)
        await result
        printed = ""
        async with asyncio.timeout(PATIENCE_S):
            while not printed:
                await asyncio.sleep(0.02)
                printed = capsys.readouterr().out
        for one in names.values():
            if isinstance(one, ReliableChannel):
                await one.stop()
        return printed

    assert asyncio.run(run()) == "The kettle is on.\n"

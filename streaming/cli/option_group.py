"""Options that a command gets as one settings object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

_Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def option_group(
    argument: str,
    options: Sequence[_Decorator],
    build: Callable[..., Any],
    *,
    shared: Collection[str] = (),
) -> _Decorator:
    """Return a decorator that adds options and passes on what `build` makes of them.

    The parameters of `build` name the values that it needs: those of `options`, and
    those of decorators above this one. A value that nobody gives must have a default
    in `build`.

    Args:
        argument: Parameter of the command that gets the result of `build`.
        options: Decorators from `setting`, in the order of the help text.
        build: Makes the settings object; raises `click.UsageError` if the values
            contradict one another.
        shared: Parameters of `build` that the command gets as well.
    """
    needed = inspect.signature(build).parameters

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_group(**values: Any) -> None:
            given = {name: values[name] for name in needed if name in values}
            others = {
                name: value
                for name, value in values.items()
                if name not in needed or name in shared
            }
            command(**others, **{argument: build(**given)})

        decorated: Callable[..., None] = with_group
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return add

"""Parses the modules of a source tree, and resolves names through imports."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import Path

MARK = "native"
"""Name of the decorator that marks classes and functions to compile to C."""

_MOST = 1 << 63


class Module:
    """One parsed module; `name` is its dotted name.

    Attributes:
        classes, functions: The classes and functions with decorator `MARK`, by name.
        imports: For each name that the module imports with `from`, the module from
            which the name is imported, and the original name there.
        enums: Names of the enumerations that the module defines.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.tree = ast.parse(text)
        body = self.tree.body
        classes = [node for node in body if isinstance(node, ast.ClassDef)]
        functions = [node for node in body if isinstance(node, ast.FunctionDef)]
        self.classes = {node.name: node for node in classes if _is_marked(node)}
        self.functions = {node.name: node for node in functions if _is_marked(node)}
        self.imports = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }
        self.enums = {
            node.name
            for node in classes
            if any(ast.unparse(base).endswith("Enum") for base in node.bases)
        }

    @cached_property
    def constants(self) -> dict[str, int]:
        """The integer constants whose names are in capitals, by name."""
        found: dict[str, int] = {}
        for node in self.tree.body:
            if not isinstance(node, ast.Assign) or len(node.targets) > 1:
                continue
            target = node.targets[0]
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            texts = [ast.unparse(name) for name in names]
            if not all(text.isupper() for text in texts):
                continue
            try:
                # This call knows only operators, numbers, `range` and the constants
                # found so far; other expressions raise an error.
                value = eval(  # noqa: S307
                    ast.unparse(node.value),
                    {"__builtins__": {}, "range": range, **found},
                )
                values = list(value) if isinstance(target, ast.Tuple) else [value]
            except Exception:  # noqa: S112
                continue
            for text, one in zip(texts, values, strict=True):
                if type(one) is int and -_MOST <= one < _MOST:
                    found[text] = one
        return found


class Tree:
    """All modules under a directory, parsed on demand."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """Return a module or package by its dotted name; None if the tree lacks it."""
        if name not in self._modules:
            path = self._root.joinpath(*name.split("."))
            files = [path.with_suffix(".py"), path / "__init__.py"]
            file = next((one for one in files if one.is_file()), None)
            found = None if file is None else Module(name, file.read_text())
            self._modules[name] = found
        return self._modules[name]

    def origin(self, module: Module, name: str) -> tuple[Module, str]:
        """Follow the imports of a name to the module that defines it.

        Returns this module, and the name that the definition has there.
        """
        while name in module.imports:
            other, original = module.imports[name]
            found = self.module(other)
            if found is None:
                break
            module, name = found, original
        return module, name


def _is_marked(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(ast.unparse(one) == MARK for one in node.decorator_list)

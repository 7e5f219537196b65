"""The types of Kubernetes' objects, as its own client for Go describes them.

Go's client fetches them, once per machine, and no host need be named here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

_MODULE = "k8s.io/client-go@v0.34.1"
_SUM = "h1:ZUPJKgXsnKwVwmKKdPfw4tB58+7/Ik3CrjOEhsiZ7mY="
_SCALARS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "numeric": (int, float),
    "boolean": (bool,),
    "untyped": (str, int, float, bool),
}

Types = Mapping[str, Mapping[str, Any]]
"""Type by name, each with one of the keys ``scalar``, ``list`` and ``map``."""


def kubernetes_types(directory: Path) -> Types:
    """Fetch the types.

    Args:
        directory: Empty: no module of Go around it is to be heeded.
    """
    fetched = subprocess.run(
        ["go", "mod", "download", "-json", _MODULE],
        cwd=directory,
        # Flags are for builds of this machine; none is done here.
        env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
    )
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    module = json.loads(fetched.stdout)
    assert module["Sum"] == _SUM
    source = Path(module["Dir"], "applyconfigurations/internal/internal.go")
    _, _, described = source.read_text("utf-8").partition("YAMLObject(`")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    types = yaml.load(described.partition("`)")[0], loader)["types"]  # noqa: S506 - a safe one
    return {one["name"]: one for one in types}


def name_of(described: Mapping[str, Any]) -> str:
    """Return the name of an object's type."""
    group, _, version = described["apiVersion"].rpartition("/")
    room = group.partition(".")[0] or "core"
    return f"io.k8s.api.{room}.{version}.{described['kind']}"


def faults(types: Types, kind: Mapping[str, Any], value: Any, at: str) -> Iterator[str]:
    """Yield what is wrong with a value of a type, with its place."""
    if name := kind.get("namedType"):
        kind = types[name]
    if "scalar" in kind:
        wanted = _SCALARS[kind["scalar"]]
        if not isinstance(value, wanted) or (
            type(value) is bool and bool not in wanted
        ):
            yield f"{at}: {value!r} is no {kind['scalar']}"
    elif "list" in kind:
        if not isinstance(value, list):
            yield f"{at}: {value!r} is no list"
            return
        for number, one in enumerate(value):
            yield from faults(
                types, kind["list"]["elementType"], one, f"{at}[{number}]"
            )
    elif not isinstance(value, dict):
        yield f"{at}: {value!r} is no object"
    else:
        yield from _faults_of_map(types, kind["map"], value, at)


def _faults_of_map(
    types: Types, kind: Mapping[str, Any], value: Mapping[str, Any], at: str
) -> Iterator[str]:
    fields = {one["name"]: one["type"] for one in kind.get("fields", ())}
    for name, one in value.items():
        wanted = fields.get(name, kind.get("elementType"))
        if wanted is None:
            yield f"{at}.{name}: there is no such field"
        else:
            yield from faults(types, wanted, one, f"{at}.{name}")

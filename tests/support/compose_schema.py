"""The JSON schema of the Compose specification, as the Compose library checks by it.

It is in no package on PyPI, but a part of that library.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.go_module import go_module

_MODULE = "github.com/compose-spec/compose-go/v2@v2.16.2"
_SUM = "h1:pTp1DqQwJzFd85GzlWsSszKA1ABrV/ySqsClujIcWA8="


def compose_schema(directory: Path) -> dict[str, Any]:
    """The schema, for the validator of JSON Schema 2020-12.

    Args:
        directory: Empty.
    """
    schema = go_module(_MODULE, _SUM, directory) / "schema/compose-spec.json"
    parsed: dict[str, Any] = json.loads(schema.read_text("utf-8"))
    return parsed

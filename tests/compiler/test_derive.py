"""What Cython takes is the source: in the same lines, with declarations beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.derive import Derived, NotCompilable, derive
from compiler.tree import Module, Tree
from sds_core.compiled import MODULES

ROOT = Path(__file__).parents[2]

SOURCE = '''"""A module."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sds_core.native import Int64s, Uint64, int64, native, row_of, view

FIRST, SECOND = range(2)


class Colour(enum.Enum):
    """Colours."""

    RED = 1


@native
@dataclass(slots=True)
class Point:
    """A point."""

    x: int
    y: Uint64 = 0
    name: str | None = None


@native
class Path:
    """Points."""

    _points: list[Point]
    _cells: Int64s

    def __init__(self, cells: object) -> None:
        self._points = []
        self._cells = view(cells)

    def far(
        self, least: int, colour: Colour = Colour.RED
    ) -> bool:
        """Whether a point is far."""
        point: Point
        for point in self._points:
            if point.x > least + SECOND and colour is Colour.RED:
                return True
        return False

    def _first(self) -> int:
        return self._cells[FIRST]
'''


def derived(source: str) -> Derived:
    """The derived files of a module that is compiled alone."""
    module = Module("some", source)
    return derive(Tree(ROOT), module, [module])


def test_every_line_stays_where_it_was() -> None:
    """So that a traceback names the right line."""
    lines = derived(SOURCE).source.splitlines()
    for number, line in enumerate(SOURCE.splitlines()):
        if line.lstrip().startswith(("for ", "class ", '"""', "return True")):
            assert lines[number].strip().startswith(line.strip()[:9])


def test_declarations_have_fields_and_signatures() -> None:
    """Private methods are for compiled code alone; numbers have C types."""
    assert derived(SOURCE).declarations.splitlines() == [
        "cimport cython",
        "@cython.no_gc",
        "cdef class Point:",
        "    cdef public cython.longlong x",
        "    cdef public cython.ulonglong y",
        "    cdef public str name",
        "cdef class Path:",
        "    cdef list _points",
        "    cdef cython.longlong[:] _cells",
        "    cpdef cython.bint far(self, cython.longlong least, object colour=*)",
        "    cdef cython.longlong _first(self)",
    ]


def test_constants_and_members_are_values() -> None:
    """A look-up in a module or class takes as long as many additions."""
    source = derived(SOURCE).source
    assert "point.x > least + 1 and colour is _Colour_RED:" in source
    assert "return self._cells[0]" in source
    assert source.endswith("\n_Colour_RED = Colour.RED\n")
    assert "self._cells = (cells)" in source


def test_a_value_class_has_what_dataclass_makes() -> None:
    """In the lines of its fields."""
    source = derived(SOURCE).source
    assert "def __init__(self, x, y=0, name=None): self.x = x; self.y = y; " in source
    assert "def __eq__(self, other): return type(other) is Point and " in source


def test_a_value_class_runs_its_step_after_its_fields() -> None:
    """As dataclass does."""
    step = "    name: str | None = None\n\n    def __post_init__(self): self.x = 1\n"
    source = derived(SOURCE.replace("    name: str | None = None\n", step, 1)).source
    assert "self.name = name; self.__post_init__()\n" in source


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("        return map(self.far, (1, 2))", "far is a compiled method"),
        ("        self.other = 1", "declare other in the body"),
        ("        return 1 << len(self._points)", "a shift of a plain number"),
    ],
)
def test_what_would_differ_from_the_source_is_refused(line: str, refusal: str) -> None:
    """With the line, and the remedy."""
    source = f"{SOURCE}\n    def more(self) -> object:\n{line}\n"
    number = len(source.splitlines())
    with pytest.raises(NotCompilable, match=rf"some, line {number}: {refusal}"):
        derived(source)


def test_every_marked_module_is_compiled() -> None:
    """And no other: a mark that does nothing would mislead."""
    marked = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "sds_core").rglob("*.py")
        if "\n@native\n" in path.read_text()
    }
    assert marked <= set(MODULES)


def test_every_module_of_the_core_can_be_derived() -> None:
    """Also where nothing is compiled."""
    tree = Tree(ROOT)
    modules = [tree.module(name) for name in MODULES]
    found = [module for module in modules if module is not None]
    assert len(found) == len(MODULES)
    for module in found:
        assert derive(tree, module, found).source


def test_a_compiled_name_may_have_another_name_where_it_is_used() -> None:
    """Its declaration is taken over under that name."""
    native = "from sds_core.native import native\n"
    one = Module("one", f"{native}@native\ndef read(x: int) -> int:\n    return x\n")
    user = Module("user", "from one import read as read_one\n")
    files = derive(Tree(ROOT), user, [one, user])
    assert "from one cimport read as read_one" in files.declarations
    assert files.source == "pass\n"


def test_names_in_capitals_that_are_no_integers_stay_names() -> None:
    """Also if their values are made by a generator, which would need the program."""
    source = "FIRST, SECOND = (str(one) for one in range(2))\nTHIRD = [FIRST]\n"
    assert derived(source).source == source

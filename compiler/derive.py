"""Translates an annotated module to the input of Cython: a source and a .pxd file.

Cython requires the types of attributes and arguments in the .pxd file. Each statement
has the same line number in the original and in the derived source, so tracebacks show
the line numbers of the original.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compiler.tree import MARK, Module, Tree

_NATIVE = "sds_core.native"

_C_TYPES = {
    "int": "cython.longlong",
    "bool": "cython.bint",
    "float": "cython.double",
    "Uint64": "cython.ulonglong",
    "Bytes": "cython.const_uchar[::1]",
    "MutableBytes": "cython.uchar[::1]",
    "Int32s": "cython.int[::1]",
    "Int64s": "cython.longlong[:]",
    "Int64Rows": "cython.longlong[:, ::1]",
    "Uint64s": "cython.ulonglong[::1]",
    "ReadUint32s": "cython.const_uint[::1]",
    "ReadUint64s": "cython.const_ulonglong[::1]",
}
_CONTAINERS = {"str", "bytes", "list", "dict", "set", "tuple"}
_CASTS = {"uint64": "cython.ulonglong", "int64": "cython.longlong"}


class NotCompilable(Exception):
    """Compiling would change the behaviour of a module."""

    def __init__(self, module: Module, node: ast.AST, reason: str) -> None:
        line = getattr(node, "lineno", 0)
        super().__init__(f"{module.name}, line {line}: {reason}")


class Derived(NamedTuple):
    """Cython's input for one module: the text of a .pxd file, and of a .py file."""

    declarations: str
    source: str


def derive(tree: Tree, module: Module, compiled: Iterable[Module]) -> Derived:
    """Derive Cython's input for one of the modules in `compiled`.

    `compiled` contains all modules that the build compiles.

    Raises:
        NotCompilable: The compiled module would behave differently from the source.
    """
    return _Derivation(tree, module, list(compiled)).result()


class _Edits:
    """Replacements in a text; none of them changes the number of lines."""

    def __init__(self, text: str) -> None:
        self._data = text.encode()
        self._starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[tuple[int, int, bytes]] = []

    def begin(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        line, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._starts[line - 1] + column

    def replace(self, begin: int, end: int, text: str) -> None:
        lines = self._data[begin:end].count(b"\n") - text.count("\n")
        self._edits.append((begin, end, text.encode() + b"\n" * lines))

    def node(self, node: ast.expr | ast.stmt, text: str) -> None:
        self.replace(self.begin(node), self.end(node), text)

    def before(self, place: int, text: bytes) -> int:
        return self._data.rindex(text, 0, place)

    def after(self, place: int, text: bytes) -> int:
        return self._data.index(text, place)

    def applied(self) -> str:
        data, at, pieces = self._data, 0, []
        for begin, end, text in sorted(self._edits):
            pieces += [data[at:begin], text]
            at = end
        return b"".join([*pieces, data[at:]]).decode()


class _Derivation:
    def __init__(self, tree: Tree, module: Module, compiled: list[Module]) -> None:
        self._tree = tree
        self._module = module
        self._compiled = {one.name: one for one in compiled}
        self._edits = _Edits(module.text)
        self._members: dict[str, str] = {}
        self._declared: list[str] = ["cimport cython"]
        # Names of compiled classes that the module can use as types.
        self._visible = set(module.classes)

    def result(self) -> Derived:
        for node in self._module.tree.body:
            if isinstance(node, ast.ImportFrom):
                self._import(node)
        for node in self._module.tree.body:
            if isinstance(node, ast.ClassDef):
                if node.name in self._module.classes:
                    self._class(node)
                elif node.name not in self._module.enums:
                    for method in _methods_of(node):
                        self._function(method, is_c=False)
            elif isinstance(node, ast.FunctionDef):
                is_c = node.name in self._module.functions
                if is_c:
                    self._unmark(node)
                    self._declared.append(self._signature(node, ""))
                self._function(node, is_c=is_c)
        self._check_methods()
        source = self._edits.applied()
        if self._members:
            source += "\n"
        for name, member in self._members.items():
            source += f"{name} = {member}\n"
        return Derived("\n".join([*self._declared, ""]), source)

    def _import(self, node: ast.ImportFrom) -> None:
        if node.module == _NATIVE:
            self._edits.node(node, "import cython")
            return
        other = self._compiled.get(node.module or "")
        if other is None:
            return
        taken = {*other.classes, *other.functions}
        names = [one for one in node.names if one.name in taken]
        rest = [one for one in node.names if one.name not in taken]
        self._visible.update(
            one.asname or one.name for one in names if one.name in other.classes
        )
        if names:
            taken_over = ", ".join(ast.unparse(one) for one in names)
            self._declared.append(f"from {node.module} cimport {taken_over}")
            kept = ", ".join(ast.unparse(one) for one in rest)
            text = f"from {node.module} import {kept}" if rest else "pass"
            self._edits.node(node, text)

    def _unmark(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        for mark in node.decorator_list:
            if ast.unparse(mark) == MARK or ast.unparse(mark).startswith("dataclass"):
                begin = self._edits.before(self._edits.begin(mark), b"@")
                self._edits.replace(begin, self._edits.end(mark), "")

    def _class(self, node: ast.ClassDef) -> None:
        is_data = any(
            ast.unparse(mark).startswith("dataclass") for mark in node.decorator_list
        )
        self._unmark(node)
        names = [ast.unparse(base).split("[")[0] for base in node.bases]
        bases = [name for name in names if name != "Generic"]
        head = f"({', '.join(bases)})" if bases else ""
        if node.bases:
            begin = self._edits.before(self._edits.begin(node.bases[0]), b"(")
            end = self._edits.after(self._edits.end(node.bases[-1]), b")") + 1
            self._edits.replace(begin, end, head)
        if is_data:
            # Data classes need no cycle detection by the garbage collector, because
            # their instances form no reference cycles.
            self._declared.append("@cython.no_gc")
        self._declared.append(f"cdef class {node.name}{head}:")
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
        lines = self._data_methods(node, fields) if is_data else []
        if "Generic" in names:
            lines.append("__class_getitem__ = classmethod(lambda cls, item: cls)")
        if len(lines) > len(fields):
            raise NotCompilable(self._module, node, "it needs more fields")
        before = len(self._declared)
        for place, field in enumerate(fields):
            name = ast.unparse(field.target)
            type_ = self._type(field.annotation)
            public = "" if name.startswith("_") or "[" in type_ else "public "
            self._declared.append(f"    cdef {public}{type_} {name}")
            self._edits.node(field, lines[place] if place < len(lines) else "pass")
        for method in _methods_of(node):
            if _is_c(method):
                self._declared.append(self._signature(method, "    "))
            self._function(method, is_c=_is_c(method))
        if len(self._declared) == before:
            self._declared.append("    pass")

    def _data_methods(
        self, node: ast.ClassDef, fields: list[ast.AnnAssign]
    ) -> list[str]:
        name, arguments, steps, compared = node.name, [], [], []
        for field in fields:
            target = ast.unparse(field.target)
            default = field.value
            value = target
            if isinstance(default, ast.Call):
                options = {one.arg: ast.unparse(one.value) for one in default.keywords}
                if options.get("compare") != "False":
                    compared.append(target)
                if "default_factory" in options:
                    arguments.append(f"{target}=None")
                    factory = options["default_factory"]
                    value = f"{factory}() if {target} is None else {target}"
                else:
                    arguments.append(f"{target}={options['default']}")
            else:
                compared.append(target)
                text = "" if default is None else f"={ast.unparse(default)}"
                arguments.append(target + text)
            steps.append(f"self.{target} = {value}")
        if any(one.name == "__post_init__" for one in _methods_of(node)):
            steps.append("self.__post_init__()")
        mine, others = (
            f"({', '.join(f'{one}.{target}' for target in compared)},)"
            for one in ("self", "other")
        )
        return [
            f"def __init__(self, {', '.join(arguments)}): {'; '.join(steps)}",
            f"def __eq__(self, other):"
            f" return type(other) is {name} and {mine} == {others}",
            f"def __repr__(self): return '{name}' + repr({mine})",
        ]

    def _signature(self, function: ast.FunctionDef, indent: str) -> str:
        every = function.args.args
        required = len(every) - len(function.args.defaults)
        arguments = []
        for place, one in enumerate(every):
            type_ = "" if one.arg == "self" else f"{self._type(one.annotation)} "
            arguments.append(f"{type_}{one.arg}{'=*' if place >= required else ''}")
        kind = "cdef" if function.name.startswith("_") else "cpdef"
        result = self._type(function.returns)
        return f"{indent}{kind} {result} {function.name}({', '.join(arguments)})"

    def _function(self, function: ast.FunctionDef, *, is_c: bool) -> None:
        edits = self._edits
        for node in ast.walk(function):
            if isinstance(node, ast.FunctionDef):
                of_pxd = is_c and node is function
                for one in [*node.args.args, *node.args.kwonlyargs]:
                    if one.annotation is not None:
                        hint = None if of_pxd else self._hint(one.annotation)
                        colon = edits.before(edits.begin(one.annotation), b":")
                        text = f": {hint}" if hint else ""
                        edits.replace(colon, edits.end(one.annotation), text)
                if node.returns is not None:
                    arrow = edits.before(edits.begin(node.returns), b"->")
                    edits.replace(arrow, edits.end(node.returns), "")
            elif isinstance(node, ast.AnnAssign):
                self._local(node)
        for statement in function.body:
            for node in ast.walk(statement):
                self._expression(node)

    def _local(self, node: ast.AnnAssign) -> None:
        edits = self._edits
        hint = self._hint(node.annotation, is_local=True)
        colon = edits.end(node.target)
        if hint and isinstance(node.target, ast.Name):
            edits.replace(colon, edits.end(node.annotation), f": {hint}")
        elif node.value is None:
            edits.node(node, "pass")
        else:
            edits.replace(colon, edits.end(node.annotation), "")

    def _expression(self, node: ast.AST) -> None:
        edits = self._edits
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id == "IS_COMPILED":
                edits.node(node, "True")
            elif node.id.isupper():
                module, name = self._tree.origin(self._module, node.id)
                value = module.constants.get(name)
                if value is not None:
                    edits.node(node, f"({value})" if value < 0 else str(value))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            self._attribute(node)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.LShift)
            and isinstance(node.left, ast.Constant)
            and not isinstance(node.right, ast.Constant)
        ):
            reason = (
                "a shift of a plain number is cut to 64 bits: write uint64(1) << n if "
                "it fits, or a constant"
            )
            raise NotCompilable(self._module, node, reason)

    def _attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.attr.isupper():
            module, name = self._tree.origin(self._module, node.value.id)
            if name in module.enums:
                # The derived module looks up each member only once, because a look-up
                # in the enumeration takes as long as ten additions.
                member = f"_{node.value.id}_{node.attr}"
                self._members[member] = ast.unparse(node)
                self._edits.node(node, member)

    def _call(self, node: ast.Call) -> None:
        edits, name = self._edits, ast.unparse(node.func)
        if name in _CASTS:
            edits.replace(
                edits.begin(node),
                edits.begin(node.args[0]),
                f"cython.cast({_CASTS[name]}, ",
            )
        elif name == "view":
            edits.replace(edits.begin(node), edits.begin(node.args[0]), "(")
        elif name == "cast":
            edits.replace(edits.begin(node), edits.begin(node.args[1]), "(")
        elif name == "row_of":
            rows, number = node.args
            edits.replace(edits.begin(node), edits.begin(rows), "")
            edits.replace(edits.end(rows), edits.begin(number), "[")
            edits.replace(edits.end(number), edits.end(node), "]")

    def _optional(self, annotation: ast.expr) -> ast.expr | None:
        """Return `T` for the annotation `T | None`; None for another annotation."""
        if (
            isinstance(annotation, ast.BinOp)
            and ast.unparse(annotation.right) == "None"
        ):
            return annotation.left
        return None

    def _type(self, annotation: ast.expr | None) -> str:
        if annotation is None:
            return "object"
        inner = self._optional(annotation)
        if inner is not None:
            name = ast.unparse(inner).split("[")[0]
            is_object = name in self._visible or name in _CONTAINERS
            return self._type(inner) if is_object else "object"
        name = ast.unparse(annotation).split("[")[0]
        if name in self._visible or name in _CONTAINERS:
            return name
        return _C_TYPES.get(name, "object")

    def _hint(self, annotation: ast.expr, *, is_local: bool = False) -> str | None:
        """Translate an annotation to a Cython type; None if Cython needs no type."""
        inner = self._optional(annotation)
        name = ast.unparse(inner or annotation).split("[")[0]
        if inner is not None and (not is_local or name not in self._visible):
            return None
        if name in self._visible:
            return name
        if is_local and name in _CONTAINERS:
            return name
        return _C_TYPES.get(name)

    def _check_methods(self) -> None:
        """Refuse undeclared attributes, and compiled methods that are used as values.

        A compiled method is a C function, which cannot be bound to an object.
        """
        for holder in [None, *self._module.classes.values()]:
            functions = [
                one
                for one in (self._module.tree if holder is None else holder).body
                if isinstance(one, ast.FunctionDef)
            ]
            declared = set() if holder is None else self._fields(holder.name)
            for function in functions:
                self._check_function(function, holder)
                for node in ast.walk(function) if holder is not None else ():
                    if (
                        isinstance(node, ast.Attribute)
                        and isinstance(node.ctx, ast.Store)
                        and ast.unparse(node.value) == "self"
                        and node.attr not in declared
                    ):
                        reason = f"declare {node.attr} in the body of the class"
                        raise NotCompilable(self._module, node, reason)

    def _check_function(
        self, function: ast.FunctionDef, holder: ast.ClassDef | None
    ) -> None:
        types: dict[str, str] = {} if holder is None else {"self": holder.name}
        for node in ast.walk(function):
            annotation = getattr(node, "annotation", None)
            name = node.arg if isinstance(node, ast.arg) else None
            if isinstance(node, ast.AnnAssign):
                name = ast.unparse(node.target)
            if name is not None and annotation is not None:
                types[name] = ast.unparse(self._optional(annotation) or annotation)
        for field in holder.body if holder is not None else []:
            if isinstance(field, ast.AnnAssign):
                types[f"self.{ast.unparse(field.target)}"] = ast.unparse(
                    field.annotation
                )
        called = {id(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)}
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Load)
                and id(node) not in called
                and node.attr in self._methods(types.get(ast.unparse(node.value), ""))
            ):
                reason = f"{node.attr} is a compiled method: call it, or pass a lambda"
                raise NotCompilable(self._module, node, reason)

    def _methods(self, name: str) -> set[str]:
        return {
            method.name
            for node in self._with_bases(name)
            for method in _methods_of(node)
            if _is_c(method)
        }

    def _fields(self, name: str) -> set[str]:
        return {
            ast.unparse(field.target)
            for node in self._with_bases(name)
            for field in node.body
            if isinstance(field, ast.AnnAssign)
        }

    def _with_bases(self, name: str) -> Iterator[ast.ClassDef]:
        """Yield the class with this name and its base classes, if they are compiled."""
        module, name = self._tree.origin(self._module, name.split("[")[0])
        node = module.classes.get(name)
        if node is not None and module.name in self._compiled:
            yield node
            for base in node.bases:
                yield from self._with_bases(ast.unparse(base))


def _methods_of(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (one for one in node.body if isinstance(one, ast.FunctionDef))


def _is_c(function: ast.FunctionDef) -> bool:
    arguments = function.args
    if function.name.startswith("__") or function.decorator_list:
        return False
    if arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
        return False
    inner = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp, ast.Yield, ast.YieldFrom)
    return not any(
        isinstance(node, inner) for node in ast.walk(function) if node is not function
    )

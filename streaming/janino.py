"""Java classes of our own in Spark's JVM, by the compiler that Spark brings along."""

from __future__ import annotations

from typing import Any


def compiled(jvm: Any, name: str, source: str) -> Any:
    """Compile a class for the JVM of the driver, which runs a local session's tasks.

    Args:
        jvm: The JVM, as py4j gives it.
        name: The class; it is in no package.
        source: Java, as far as Janino takes it.

    Returns:
        The `java.lang.Class`.
    """
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)

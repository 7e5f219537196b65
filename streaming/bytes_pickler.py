"""Passes the bytes of a state from Spark's JVM to Python as they are.

Spark pickles the state of a group before it gives it to Python. Its pickler writes
bytes as a text, one character at a time. With large states this was most of the JVM's
work: with 200 channels that each remember an hour, 1,000 of the 1,145 samples that Java
Flight Recorder took were in the pickler. Here a class of our own pickles bytes by the
opcode that pickle has for them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streaming.janino import compiled

_CLASS = "BytesPickler"
_SPARKS = "org.apache.spark.sql.execution.python.EvaluatePython$BytesWrapper"
# `B`, the length in four bytes, little-endian, and the bytes: opcode BINBYTES in
# CPython's Lib/pickletools.py.
_SOURCE = f"""
public final class {_CLASS} implements net.razorvine.pickle.IObjectPickler {{
    public void pickle(
        Object object, java.io.OutputStream out, net.razorvine.pickle.Pickler pickler
    ) throws java.io.IOException {{
        byte[] data = (({_SPARKS}) object).data();
        out.write('B');
        out.write(net.razorvine.pickle.PickleUtils.integer_to_bytes(data.length));
        out.write(data);
    }}
}}
"""


def use_bytes_pickler(spark: SparkSession) -> None:
    """Have the JVM of the driver, which runs the tasks of a local session, use it."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    pickler = compiled(jvm, _CLASS, _SOURCE).newInstance()
    # Spark registers its own once, at the first use: ours must come after them.
    python = jvm.org.apache.spark.sql.execution.python
    getattr(getattr(python, "EvaluatePython$"), "MODULE$").registerPicklers()
    loader = jvm.Thread.currentThread().getContextClassLoader()
    wrapper = loader.loadClass(_SPARKS)
    jvm.net.razorvine.pickle.Pickler.registerCustomPickler(wrapper, pickler)

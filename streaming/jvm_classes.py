"""Java classes of our own in the driver's JVM, which runs a local session's tasks.

The compiler is Janino, which Spark brings along.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_PICKLER = "BytesPickler"
_SPARKS = "org.apache.spark.sql.execution.python.EvaluatePython$BytesWrapper"
# `B`, the length in four bytes, little-endian, and the bytes: opcode BINBYTES in
# CPython's Lib/pickletools.py.
_PICKLER_SOURCE = f"""
public final class {_PICKLER} implements net.razorvine.pickle.IObjectPickler {{
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

_FILES = "FilesAsMade"
_FILES_SOURCE = f"""
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public final class {_FILES} extends org.apache.hadoop.fs.LocalFileSystem {{
    private static final class Raw extends RawLocalFileSystem {{
        public void setPermission(Path path, FsPermission permission) {{}}
    }}

    public {_FILES}() {{
        super(new Raw());
    }}
}}
"""


def use_bytes_pickler(spark: SparkSession) -> None:
    """Pass the bytes of a state from Spark's JVM to Python as they are.

    Spark pickles the state of a group before it gives it to Python. Its pickler writes
    bytes as a text, one character at a time. With large states this was most of the
    JVM's work: with 200 channels that each remember an hour, 1,000 of the 1,145 samples
    that Java Flight Recorder took were in the pickler. Here a class of our own pickles
    bytes by the opcode that pickle has for them.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    pickler = _compiled(jvm, _PICKLER, _PICKLER_SOURCE).newInstance()
    # Spark registers its own once, at the first use: ours must come after them.
    python = jvm.org.apache.spark.sql.execution.python
    getattr(getattr(python, "EvaluatePython$"), "MODULE$").registerPicklers()
    loader = jvm.Thread.currentThread().getContextClassLoader()
    wrapper = loader.loadClass(_SPARKS)
    jvm.net.razorvine.pickle.Pickler.registerCustomPickler(wrapper, pickler)


def use_files_as_made(spark: SparkSession) -> None:
    """Write the files of a checkpoint without a process for each.

    Hadoop sets the permissions of each local file that it writes, and without its
    native library it starts the program `chmod` for each: several times in each batch.
    Here a file keeps the permissions that it was made with, so the umask of the command
    holds, which `chmod` would overrule.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    files = jvm.org.apache.hadoop.fs.FileSystem
    settings = jvm.org.apache.hadoop.conf.Configuration(
        spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
    )
    found = _compiled(jvm, _FILES, _FILES_SOURCE)
    settings.setClassLoader(found.getClassLoader())
    settings.set("fs.file.impl", _FILES)
    # Hadoop keeps the first one that it makes.
    files.closeAll()
    files.get(jvm.java.net.URI("file:///"), settings)


def _compiled(jvm: Any, name: str, source: str) -> Any:
    """Return a class that is in no package, compiled for the driver's JVM from Java."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(name)

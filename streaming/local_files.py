"""Writes the files of a checkpoint without a process for each.

Hadoop sets the permissions of each local file that it writes, and without its native
library it starts the program `chmod` for each: several times in each batch.
Here a file keeps the permissions that it was made with, so the umask of the command
holds, which `chmod` would overrule.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from streaming.janino import compiled

_CLASS = "FilesAsMade"
_SOURCE = f"""
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public final class {_CLASS} extends org.apache.hadoop.fs.LocalFileSystem {{
    private static final class Raw extends RawLocalFileSystem {{
        public void setPermission(Path path, FsPermission permission) {{}}
    }}

    public {_CLASS}() {{
        super(new Raw());
    }}
}}
"""


def use_files_as_made(spark: SparkSession) -> None:
    """Have the JVM of the driver, which runs the tasks of a local session, use it."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no setting for it
    files = jvm.org.apache.hadoop.fs.FileSystem
    settings = jvm.org.apache.hadoop.conf.Configuration(
        spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
    )
    found = compiled(jvm, _CLASS, _SOURCE)
    settings.setClassLoader(found.getClassLoader())
    settings.set("fs.file.impl", _CLASS)
    # Hadoop keeps the first one that it makes.
    files.closeAll()
    files.get(jvm.java.net.URI("file:///"), settings)

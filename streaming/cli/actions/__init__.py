"""Actions of the commands.

The modules of `streaming.cli` only declare options, and import their action when it is
called: Spark, the Kafka clients and pyarrow take up to two seconds to import, which
``--help`` and wrong use must not wait for.
"""

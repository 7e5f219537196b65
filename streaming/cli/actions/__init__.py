"""Actions of the commands.

The modules of `streaming.cli` import an action when it is called. Spark, Kafka clients
and pyarrow take up to two seconds to import, and ``--help`` must not wait for them.
"""

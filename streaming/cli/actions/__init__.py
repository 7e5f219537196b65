"""Actions of the commands; the help text of a command says when the exit code is 1.

The modules of `streaming.cli` import an action when it is called. Spark, Kafka clients
and pyarrow take up to two seconds to import, and ``--help`` must not wait for them.
"""

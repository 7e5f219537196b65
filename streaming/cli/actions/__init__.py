"""Actions of the commands.

An action raises `click.ClickException` if it cannot do its work. If it has findings, it
raises `click.exceptions.Exit`; the command's help text says what counts as a finding.

The modules of `streaming.cli` import an action when it is called. Spark, Kafka clients
and pyarrow take up to two seconds to import, and ``--help`` must not wait for them.
"""

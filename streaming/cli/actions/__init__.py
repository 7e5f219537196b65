"""Actions of the commands.

If an action cannot do its work, it raises `click.ClickException`. If an action has
findings, it raises `click.exceptions.Exit`; the command's help text says what counts as
a finding.

The module of a command imports the action only when the command is called. Spark, Kafka
clients and pyarrow take up to two seconds to import, and ``--help`` must not wait for
them.
"""

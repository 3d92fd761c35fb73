"""`berth`, the operators' command line. :mod:`orchestrator.cli.commands` has the commands."""

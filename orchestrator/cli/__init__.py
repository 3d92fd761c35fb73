"""`berth`, the operators' command line. :mod:`orchestrator.cli.app` has the commands and their options."""

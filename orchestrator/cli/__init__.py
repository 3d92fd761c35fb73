"""`berth`, the operators' command line. :mod:`orchestrator.cli.main` has the commands and their options."""

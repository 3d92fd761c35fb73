"""`berth`, the operators' command line.

:mod:`orchestrator.cli.commands` lists the commands, each with its module, which is loaded when the command is named.

The other modules:

From the shell to a request:

- :mod:`orchestrator.cli.main`                  the entry point
- :mod:`orchestrator.cli.app`                   the global options
- :mod:`orchestrator.cli.commands`              the list of commands
- :mod:`orchestrator.cli.completing`            the values that a shell completes
- :mod:`orchestrator.cli.invocation`            what every command shares
- :mod:`orchestrator.cli.control_plane`         finds the control plane
- :mod:`orchestrator.cli.deployed`              a control plane that is deployed
- :mod:`orchestrator.cli.version`               advice about the version of the command line

Requests and answers:

- :mod:`orchestrator.cli.api`                   the API as commands use it
- :mod:`orchestrator.cli.events_api`            the Events API
- :mod:`orchestrator.cli.event_orders`          commands that need nothing but the id of a source, form or connection
- :mod:`orchestrator.cli.errors`                errors and their exit codes
- :mod:`orchestrator.cli.problems`              error answers of the API
- :mod:`orchestrator.cli.option_names`          options in messages of the API
- :mod:`orchestrator.cli.interrupts`            Ctrl-C

Output:

- :mod:`orchestrator.cli.render`                results, notes and errors
- :mod:`orchestrator.cli.columns`               tables
- :mod:`orchestrator.cli.escaping`              unprintable characters
- :mod:`orchestrator.cli.progress`              a spinner or a line while a command waits
- :mod:`orchestrator.cli.next_step`             the next steps with something

Tenants:

- :mod:`orchestrator.cli.ordering`              one order, and waiting for it
- :mod:`orchestrator.cli.bulk_orders`           orders to many tenants
- :mod:`orchestrator.cli.selection`             the options that select tenants
- :mod:`orchestrator.cli.watching`              watching an operation
- :mod:`orchestrator.cli.tenant_next`           the next steps with a tenant
- :mod:`orchestrator.cli.live_stack`            the records beside the stack
- :mod:`orchestrator.cli.waiting`               what waits for someone

Releases:

- :mod:`orchestrator.cli.release_next`          the next steps with a release
- :mod:`orchestrator.cli.release_changes`       compared moves
- :mod:`orchestrator.cli.release_diff`          berth release diff
- :mod:`orchestrator.cli.release_publishing`    berth release check and publish
- :mod:`orchestrator.cli.template_files`        reading a template

Rollouts:

- :mod:`orchestrator.cli.rollout_spec`          the options and the request
- :mod:`orchestrator.cli.rollout_options`       the options of an earlier rollout
- :mod:`orchestrator.cli.rollout_finding`       the rollout that is meant
- :mod:`orchestrator.cli.rollout_ordering`      orders, and watching after them
- :mod:`orchestrator.cli.rollout_adjusting`     berth rollout approve, promote, change
- :mod:`orchestrator.cli.rollout_watching`      watching a rollout
- :mod:`orchestrator.cli.rollout_view`          the output
- :mod:`orchestrator.cli.rollout_next`          the next steps with a rollout

Checks:

- :mod:`orchestrator.cli.examination`           the checks of berth doctor
- :mod:`orchestrator.cli.verification`          the steps of berth verify
- :mod:`orchestrator.cli.event_verification`    its steps about events
- :mod:`orchestrator.cli.reconcile_view`        reconciliations, shown

Events:

- :mod:`orchestrator.cli.event_reads`           berth events list, show, tail
- :mod:`orchestrator.cli.event_sending`         berth events send
- :mod:`orchestrator.cli.event_types`           the option --type
- :mod:`orchestrator.cli.event_view`            events, shown
- :mod:`orchestrator.cli.event_next`            the next steps with things of the event plane
"""

"""Runs Berth on one machine: starts an emulator of AWS and deploys the CDK app onto it.

The emulator:

- :mod:`orchestrator.local.emulator`            starts, finds and stops the emulator
- :mod:`orchestrator.local.home`                the directory that holds the emulator's state
- :mod:`orchestrator.local.access_key`          the key that requests are signed with
- :mod:`orchestrator.local.server`              the emulator's own process
- :mod:`orchestrator.local.guard`               admits only requests that are signed with the home's key
- :mod:`orchestrator.local.errors`              the errors of the local control plane

Changes that make the emulator behave as AWS does:

- :mod:`orchestrator.local.cloudformation`      adds what the emulator's CloudFormation leaves out of its responses
- :mod:`orchestrator.local.custom_resources`    describes custom resources while they are in progress
- :mod:`orchestrator.local.gaps`                closes gaps that need a few lines each
- :mod:`orchestrator.local.function_processes`  forks the processes of functions, so that they start quickly
- :mod:`orchestrator.local.fork_server`         the process that forks them
- :mod:`orchestrator.local.function_code`       unpacks their code once for all of them

Berth on it:

- :mod:`orchestrator.local.deployment`          deploys the CDK app with the CDK's own command line
- :mod:`orchestrator.local.adjusting`           adjusts settings after a deployment
- :mod:`orchestrator.local.releases`            publishes a release as a deployment of that version would

Demonstrations:

- :mod:`orchestrator.local.steps`               progress for the user
- :mod:`orchestrator.local.showing`             the actions of platforms and operators
- :mod:`orchestrator.local.showing_events`      the actions of senders and receivers of events
- :mod:`orchestrator.local.receiver`            a receiver of webhooks
- :mod:`orchestrator.local.demo`                a demonstration of one minute
- :mod:`orchestrator.local.tour`                a longer one with all features
- :mod:`orchestrator.local.fleet`               a fleet with tenants in all states
- :mod:`orchestrator.local.console`             the console, opened on such a fleet

Nothing outside this package knows that there is an emulator. It differs from AWS in these ways:

- It sends no CloudFormation events, so a wait for one always ends by its timeout (``deployment.CONTEXT``).
- Lambda workers import from the virtual environment of the emulator; no layer is built (``deployment.CONTEXT``). A
  dependency that is missing in an asset may be found there, and would be missing on AWS.
- Each concurrent Lambda call is a process, so the concurrency limit is low; more calls are throttled (``emulator``).
- Its state is in memory. An orderly stop saves it; a crash loses the changes since the last orderly stop (``home``).
  After a restart, executions that were running have failed with ``States.ServiceRestart``, and stacks that were being
  changed never finish. So a stop waits for them (``emulator``).
- HTTP APIs have a host name that only the emulator resolves (``Emulator.api_url``).
- Policies are not enforced: a caller with the home's access key, or with any key that the emulator issued, may do
  everything. All other callers are refused, except on routes that everybody may call (``guard``).
- It ignores reserved concurrency and the expiry of rows in templates. Both are set after a deployment (``adjusting``).
"""

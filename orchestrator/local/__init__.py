"""Runs Berth on one machine: starts an emulator of AWS and deploys the CDK app onto it.

    emulator          starts, finds and stops the emulator
    server            the emulator's own process
    guard             admits only requests that are signed with the home's key
    cloudformation    adds what the emulator's CloudFormation leaves out of its responses
    custom_resources  describes custom resources while they are in progress, as AWS does
    waiting_states    fails states that wait with a task token when their function fails, as AWS does
    function_processes  forks the processes of functions, so that they start quickly
    fork_server       the process that forks them
    streams           lets functions read the streams of tables after a restart
    access_key        the key that requests are signed with
    home              the directory that holds the emulator's state
    deployment        deploys the CDK app with the CDK's own command line
    console           progress for the user
    demo              a demonstration of one minute

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

"""Runs Berth on one machine: starts an emulator of AWS and deploys the CDK app onto it.

    emulator          start, find and stop the emulator
    server            the emulator's own process
    guard             who may talk to it
    cloudformation    what its CloudFormation does not say
    custom_resources  custom resources that are in progress, as its CloudFormation does not describe them by itself
    access_key        the key that requests are signed with
    home              the directory that holds its state
    deployment        the CDK app, deployed by the CDK's own command line
    console           what the user sees meanwhile
    demo              what Berth is, in a minute

Nothing outside this package knows that there is an emulator. Where it differs from AWS:

- It sends no CloudFormation events, so a wait for one always ends by its timeout (``deployment.CONTEXT``).
- Lambda workers import from the virtual environment that it runs in; no layer is built
  (``deployment.CONTEXT``). What an asset lacks may be found there, and would be missing on AWS.
- A Lambda call is a process, so few run at once; more are throttled (``emulator``).
- Its state lives in memory. It is kept by an orderly stop, and a crash loses what came after the last one
  (``home``). Executions that were running have failed after a restart, with ``States.ServiceRestart``;
  stacks that were being changed never finish, so a stop waits for them (``emulator``).
- HTTP APIs are found at a host name that only it knows (``Emulator.api_url``).
- Policies are not enforced: whoever has the home's access key, or any that the emulator issued, may do everything.
  Nobody else gets an answer (``guard``).
"""

"""The control plane with its permissions enforced: every call is decided by the policies that are deployed.

A test asks for the fixture ``enforced`` (:class:`~tests.e2e.enforced.control_plane.Enforced`). It has the control plane
as different principals see it, each a :class:`tests.e2e.deployed.Deployed`, so that all helpers of the other end-to-end
tests work:

    enforced.root                        who deployed it; nothing is denied to it
    enforced.platform, .sender, .receiver, .operator
                                         have the managed policy for platforms, for senders, ...
    enforced.principal(name, ...)        another role, with these managed policies and this inline policy
    enforced.function("get_queue")       the role of that function, as if its code had been taken over

That something works proves little: retries and fallbacks hide what was denied. So a test of what has to work ends with
``assert enforced.denials() == []``. Attacks are made as a ``principal`` that ``attacks``, or as a ``function``; what is
denied to those is not among ``denials()``. After the last test, too, there must be none.

The emulator (ministack with ``AUTH=true``) evaluates identity policies, boundaries, session policies and resource
policies for every request. What it lacks of what Berth's policies use is added here:

    evaluation       condition keys, policy variables, resources, the table's own policy, and what a request implies
    service_roles    what Step Functions and CloudFormation do by themselves, with the roles that they were given
    decisions        the log of what was allowed and denied, by whom it was asked for
    server           the emulator's process with all of that

What the log shows is written down, too: ``counting`` has what operations cost (docs/costs.md), ``pairs`` has which
permissions were seen used (docs/permissions.md).

Not enforced: what EventBridge and API Gateway may call, and service control policies. Whether DynamoDB sees one key or
all keys of a transaction in ``dynamodb:LeadingKeys`` is not documented; here every item has its own.
"""

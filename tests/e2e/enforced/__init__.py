"""The control plane with its permissions enforced: the deployed policies decide every request.

Tests use the fixture ``enforced`` (:class:`~tests.e2e.enforced.control_plane.Enforced`). It gives access to the control
plane as different principals, each a :class:`tests.e2e.deployed.Deployed`, so all helpers of the other end-to-end tests
work:

    enforced.root                        the account's root, which deployed it; nothing is denied to it
    enforced.platform, .sender, .receiver, .operator
                                         have the managed policy for platforms, for senders, ...
    enforced.principal(name, ...)        another role, with these managed policies and this inline policy
    enforced.function("get_queue")       the role of that function, as if an attacker controlled its code

A successful operation proves little, because retries and fallbacks hide denied requests. So a test of an operation that
must work ends with ``assert enforced.denials() == []``. Attacks use a ``principal`` that ``attacks``, or a
``function``; their denied requests are not among ``denials()``. After the last test there must be no denials, either.

The emulator (ministack with ``AUTH=true``) evaluates identity policies, boundaries, session policies and resource
policies for every request. This package adds the features that Berth's policies use and the emulator lacks:

    evaluation       condition keys, policy variables, resources, the table's own policy, and implied permissions
    service_roles    the requests that Step Functions and CloudFormation make with the roles that they assume
    running          what the emulator ignores in the template: the table's policy and the boundaries of roles
    decisions        the log of allowed and denied requests, with their principals
    server           the emulator's process with all of that

Two modules evaluate the log: ``counting`` counts the requests of operations (docs/costs.json), ``pairs`` collects the
permissions that were used (docs/permissions.md).

Not enforced are the permissions of EventBridge and API Gateway, and service control policies. AWS does not document
whether ``dynamodb:LeadingKeys`` has one key or all keys of a transaction; here every item has its own key.
"""

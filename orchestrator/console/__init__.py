"""`berth console`: pages for operators, served on loopback by their own process, with their own credentials.

Read the modules in this order:

:mod:`orchestrator.console.guard`     the guard that every request passes first: all of the console's security
:mod:`orchestrator.console.sessions`  tickets, sessions, and confirmations that can be sent once
:mod:`orchestrator.console.peers`     which user of this machine has opened a connection
:mod:`orchestrator.console.app`       the guard and behind it the pages; the pages of errors
:mod:`orchestrator.console.visit`     one request to a page: what it may ask of the control plane, how it answers
:mod:`orchestrator.console.page`      makes a route of a function that answers a visit
:mod:`orchestrator.console.actions`   actions: a page that says what will be done, and the form that does it, once
:mod:`orchestrator.console.stacks_now`  tenants' stacks, asked for no more often than CloudFormation allows
:mod:`orchestrator.console.view`      renders templates
:mod:`orchestrator.console.drawing`   the geometry of drawings
:mod:`orchestrator.console.event_plane`  code that the pages about events share
:mod:`orchestrator.console.payloads`  payloads as pages show them, bounded
:mod:`orchestrator.console.server`    serves it all until it is interrupted

The package :mod:`orchestrator.console.pages` has one module per page, and ``templates/`` one template for each. A new
page is a module with ``routes(console)``, which :data:`orchestrator.console.app.PAGES` names, and a template that
extends ``layout.html``. The next steps with a thing come from one function of the command line
(:mod:`orchestrator.cli.next_step`); the page draws them by the macro ``steps``, and its module has an
:class:`orchestrator.console.actions.Action` for each verb.
"""

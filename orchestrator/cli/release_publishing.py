"""`berth release check` and `berth release publish`: templates of your own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from orchestrator.api.fields import or_unset
from orchestrator.api.release_models import ProposeRelease, ReleaseChecked, ReleasePublished
from orchestrator.api.release_routes import CHECK_RELEASE, PUBLISH_RELEASE
from orchestrator.api.route import Route
from orchestrator.cli import completing, render
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.cli.problems import kind_of, problem
from orchestrator.cli.template_files import read_template
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tiers import NOT_A_TIER, STANDARD, TIER_PATTERN
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.releases.checking import (
    Surroundings,
    check_operators_template,
    check_template,
    declared_version,
)
from orchestrator.releases.findings import Rule
from orchestrator.releases.published import canonical, digest_of
from orchestrator.releases.template_contract import MAX_TEMPLATE_BYTES

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_DONE = 200
RULES: Mapping[Rule, str] = {
    Rule.VERSION: "the version is yours, and no other template has it",
    Rule.FORMAT: "sections, sizes and numbers are within CloudFormation's limits",
    Rule.PARAMETERS: "the parameters are those that Berth gives",
    Rule.METADATA: "the metadata resource reports the tenant's queue",
    Rule.OUTPUTS: "the outputs name the queue and the version",
    Rule.QUEUES: "the tenant's queue is there, and its dead letters stay in the stack",
    Rule.QUEUES_KEPT: "the queues of the release before are kept",
    Rule.TYPES: "the service role may create every resource",
    Rule.POLICIES: "policies open own resources, to this account only",
    Rule.NAMES: "no name can collide with that of another tenant",
    Rule.OTHERS: "nothing of Berth or of another tenant is named",
    Rule.REFERENCES: "every reference stays within the template",
    Rule.ASSETS: "there are no assets",
}
_NEEDS_CONTROL_PLANE = frozenset({Rule.QUEUES_KEPT, Rule.TYPES})
"""Rules that depend on the control plane: on its releases, and on the policies that its operator has named."""

Template = Annotated[
    Path,
    typer.Argument(metavar="TEMPLATE", help="A template as JSON, or the folder cdk.out.", show_default=False),
]
TemplateStack = Annotated[
    str | None,
    typer.Option("--template-stack", metavar="NAME", help="The stack in cdk.out, if there are several."),
]
Tier = Annotated[
    str,
    typer.Option(metavar="TIER", help="The tier whose tenants may be at the release.", autocompletion=completing.tiers),
]
AllowReplacement = Annotated[
    bool,
    typer.Option("--allow-replacement", help="Let the template lack a queue of the release before it."),
]


def check(
    context: typer.Context,
    template: Template,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="By default, the one that the template names."),
    ] = None,
    tier: Tier = STANDARD,
    template_stack: TemplateStack = None,
    offline: Annotated[
        bool,
        typer.Option("--offline", help="Ask no control plane: neither its releases nor its policies are compared."),
    ] = False,
    allow_replacement: AllowReplacement = False,
    as_json: Json = False,
) -> None:
    """Check whether a template can be published as a release.

    Every rule is shown, and for each finding what to do. The exit code is 8 if
    there is one. docs/templates.md has the rules and an example.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        found = read_template(template, template_stack)
        named = version or declared_version(found)
        if offline or named is None or _is_too_long(found):
            checked = _checked_here(found, named)
        else:
            request = ProposeRelease(version=named, template=found, tier=tier, allow_replacement=allow_replacement)
            answer = _send(here, CHECK_RELEASE, request)
            if answer.status != _DONE:
                raise problem(answer)
            checked = {**answer.body, "offline": False}
        if as_json:
            render.show_json(checked)
        else:
            _show(checked)
            options = _options(checked["version"], tier, template_stack, allow_replacement=allow_replacement)
            _say_what_to_do(checked, shlex.join(["berth", "release", "publish", str(template), *options]))
    raise typer.Exit(ExitCode.ATTENTION if checked["findings"] else ExitCode.OK)


def publish(
    context: typer.Context,
    template: Template,
    version: Annotated[
        str, typer.Option("--version", metavar="VERSION", help="The version of the release.", show_default=False)
    ],
    notes: Annotated[
        str | None, typer.Option("--notes", metavar="TEXT", help="What the release changes, for other operators.")
    ] = None,
    tier: Tier = STANDARD,
    template_stack: TemplateStack = None,
    allow_replacement: AllowReplacement = False,
    as_json: Json = False,
) -> None:
    """Publish a template of your own as a release, which never changes.

    It is checked first, as by berth release check. No tenant is moved, and in the
    tier standard new tenants get the same release as before: see berth rollout
    start and berth release promote.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        found = read_template(template, template_stack)
        if _is_too_long(found):
            (finding, *_) = (each for each in check_template(found) if each.rule is Rule.FORMAT)
            raise InvalidRequest(f"{template}: {finding.problem} {finding.advice}")
        request = ProposeRelease(
            version=version, template=found, notes=or_unset(notes), tier=tier, allow_replacement=allow_replacement
        )
        answer = _send(here, PUBLISH_RELEASE, request)
        if answer.status != _DONE:
            if kind_of(answer) == "template-refused" and not as_json:
                _show_findings(answer.body["findings"])
                count = render.counted(len(answer.body["findings"]), "finding")
                detail = f"Release {version} was not published: the template has {count}."
                answer = replace(answer, body={**answer.body, "detail": detail})
            raise problem(answer)
        if as_json:
            render.show_json(answer.body)
        else:
            _show_published(answer.body)


def _send(
    here: Invocation, route: Route[ProposeRelease, ReleaseChecked | ReleasePublished], request: ProposeRelease
) -> ApiAnswer:
    if not re.fullmatch(VERSION_PATTERN, request.version):
        raise InvalidRequest(f"{request.version!a} is not a version like 2.1.0.")
    if not re.fullmatch(TIER_PATTERN, request.tier):
        raise InvalidRequest(f"{request.tier!a} {NOT_A_TIER}.")
    api = here.connect()
    with here.retrying() as retrying:
        return retrying(partial(api.send_request, route, request))


def _checked_here(template: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    """The findings without a control plane, in the form of its answer."""
    findings = check_operators_template(template, Surroundings(version))
    return {
        "version": version,
        "digest": digest_of(template),
        "findings": [finding.as_document() for finding in findings],
        "comparedWith": None,
        "offline": True,
    }


def _show(checked: Document) -> None:
    by_rule: dict[str, list[Document]] = {}
    for finding in checked["findings"]:
        by_rule.setdefault(finding["rule"], []).append(finding)
    for rule, meaning in RULES.items():
        if rule in by_rule:
            render.show_line(Text.assemble(("no    ", "bold red"), f"{rule.value}: {meaning}"))
            _show_findings(by_rule[rule])
        elif checked["offline"] and rule in _NEEDS_CONTROL_PLANE:
            unknown = f"{rule.value}: compared only with a control plane"
            render.show_line(Text.assemble(("?     ", "yellow"), unknown))
        else:
            compared = f" ({checked['comparedWith']})" if rule is Rule.QUEUES_KEPT and checked["comparedWith"] else ""
            render.show_line(Text.assemble(("ok    ", "green"), f"{rule.value}: {meaning}{compared}"))


def _say_what_to_do(checked: Document, publishing: str) -> None:
    count = len(checked["findings"])
    if count:
        render.note(f"The template has {render.counted(count, 'finding')}, so it cannot be published.")
    elif checked["offline"]:
        render.note("Compare it with the control plane, too: leave --offline out.")
    else:
        render.note(f"Publish it: {publishing}")


def _options(version: str | None, tier: str, stack: str | None, *, allow_replacement: bool) -> list[str]:
    """The options for publishing what was checked with the same ones."""
    return [
        *("--version", version or "VERSION"),
        *(("--tier", tier) if tier != STANDARD else ()),
        *(("--template-stack", stack) if stack else ()),
        *(("--allow-replacement",) if allow_replacement else ()),
    ]


def _is_too_long(template: Mapping[str, Any]) -> bool:
    """True for a template that need not be sent: the API takes no longer requests than a template can be long."""
    return len(canonical(template)) > MAX_TEMPLATE_BYTES


def _show_findings(findings: Iterable[Document]) -> None:
    for finding in findings:
        render.show_line(f"      {finding['place'] or 'The template'}: {finding['problem']}")
        render.show_line(f"      -> {finding['advice']}")


def _show_published(published: Document) -> None:
    version, tier = published["version"], published["tier"]
    render.show_line(published["detail"])
    if tier != STANDARD:
        render.note(f"Create a tenant in the tier: berth create ID --tier {tier}")
        render.note(f"Move a tenant to the tier: berth move ID --tier {tier}")
    render.note(f"See what it would change: berth rollout plan --to {version}")
    render.note(f"Move tenants to it: berth rollout start --to {version}")
    if published["current"] != version:
        render.note(f"Let new tenants get it: berth release promote {version}")

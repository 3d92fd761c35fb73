"""What is run of the commands about releases."""

from __future__ import annotations

import json

from tests.fakes import a_release
from tests.fakes.templates import queue_template
from tests.transcripts.of_events import written
from tests.transcripts.of_tenants import fleet
from tests.transcripts.script import script
from tests.transcripts.shell import Shell
from tests.unit.cli.conftest import Scene


@script("releases")
def _(shell: Shell) -> None:
    fleet(shell)
    shell.both("releases")
    shell.both("releases 0.1.0")
    shell.run("releases 0.2.0")
    shell.run("release withdraw 0.2.0 --yes --reason 'queues lose messages'")
    shell.both("releases", "The release that is deployed is withdrawn.")
    shell.run("releases 0.2.0")
    shell.run("releases 9.9.9")
    shell.run("releases newest")


@script("release check")
def _(shell: Shell) -> None:
    written("template.json", queue_template())
    shell.both("release check template.json")
    shell.both("release check template.json --offline")
    named = queue_template()
    named["Resources"]["Files"] = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "files"}}
    written("named.json", named)
    shell.both("release check named.json", "The template breaks rules.")
    shell.run("release check template.json --version 2.2.0")
    shell.run("release check template.json --tier gold --allow-replacement")
    shell.run("release check missing.json")
    written("broken.json", "{")
    shell.run("release check broken.json")
    shell.run("release check .")
    artifact = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "template.json"}}
    written("manifest.json", {"version": "1", "artifacts": {"Tenant": artifact, "Other": artifact}})
    shell.run("release check .", "The folder has several stacks.")
    shell.run("release check . --template-stack Tenant")
    shell.run("release check . --template-stack Nobody")


@script("release publish")
def _(shell: Shell) -> None:
    written("template.json", queue_template())
    shell.both("release publish template.json --version 2.1.0 --notes 'A new queue.'")
    shell.run("release publish template.json --version 2.2.0")
    shell.run("release publish template.json --version 2.1.0 --tier gold")
    shell.run("release publish template.json --version newest")
    shell.run("release publish template.json --version 2.1.0 --allow-replacement --template-stack Tenant")
    shell.run("release publish missing.json --version 2.1.0")


QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30, "Tags": [{"Key": "a"}]}}
BEFORE = {
    "Description": "one",
    "Resources": {"Queue": QUEUE, "Old": {"Type": "AWS::SQS::QueuePolicy"}},
    "Outputs": {"Url": {"Value": "x"}},
}
AFTER = {
    "Description": "two",
    "Resources": {
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {"VisibilityTimeout": 60, "Tags": [{"Key": "a"}], "Fifo": True},
        },
        "New": {"Type": "AWS::SQS::Queue"},
    },
    "Outputs": {"Url": {"Value": "y"}},
}


def publish_templates(scene: Scene) -> None:
    for version, template in (("0.9.0", BEFORE), ("0.10.0", AFTER), ("0.10.1", {**AFTER, "Description": "three"})):
        scene.api.world.table.record_release(a_release(version))
        scene.api.world.published_templates.templates[version] = json.dumps(template)


@script("release diff")
def _(shell: Shell) -> None:
    publish_templates(shell.scene)
    shell.both("release diff 0.9.0 0.10.0")
    shell.both("release diff 0.10.0 0.10.0", "Nothing differs.")
    shell.run("release diff 0.10.0 0.10.1")
    shell.run("release diff 0.9.0 7.7.7")
    shell.run("release diff 0.9.0 newest")


@script("release promote")
def _(shell: Shell) -> None:
    shell.both("release promote 0.1.0 --reason 'Ticket 4711'")
    shell.run("release promote 9.9.9")
    shell.run("release withdraw 0.2.0 --yes")
    shell.run("release promote 0.2.0", "The release is withdrawn.")


@script("release withdraw")
def _(shell: Shell) -> None:
    fleet(shell)
    shell.run("release withdraw 0.2.0", "There is no terminal.")
    shell.run("release withdraw 0.2.0", typed="no\n")
    shell.run("release withdraw 0.2.0 --reason 'queues lose messages'", typed="yes\n")
    shell.both("release withdraw 0.2.0 --yes", "It is withdrawn.")
    shell.both("release withdraw 0.1.0 --yes", "It is the last one.")
    shell.run("release withdraw 9.9.9 --yes")


@script("release reinstate")
def _(shell: Shell) -> None:
    shell.run("release withdraw 0.2.0 --yes")
    shell.both("release reinstate 0.2.0 --reason 'It was the network.'")
    shell.run("release reinstate 9.9.9")

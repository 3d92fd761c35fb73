"""`berth rollout start` and `plan`: what is sent, and what is wrong with it before anything is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.errors import ExitCode
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import MAX_CONCURRENCY

ROLLOUT = "20261116-120000-0a1b"


def sent(scene: Scene) -> object:
    """The body of the request that started the rollout."""
    (at,) = [number for number, asked in enumerate(scene.api.asked) if asked == "POST /rollouts"]
    return scene.api.sent[at] or {}


def stages(*documents: dict[str, object]) -> dict[str, object]:
    return {"stages": list(documents)}


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ([], {}),
        (["--to", "0.1.0"], {"version": "0.1.0"}),
        (["--tenant", "acme"], {"tenants": ["acme"]}),
        (["--tenant", "acme", "--tenant", "globex", "--tenant", "acme"], {"tenants": ["acme", "globex"]}),
        (["--label", "tier=free", "--label", "note=a=b c"], {"labels": {"tier": "free", "note": "a=b c"}}),
        (["--share", "25%"], {"share": "25%"}),
        (["--share", "100"], {"share": "100"}),
        (["--allow-downgrade"], {"allowDowngrade": True}),
        (["--allow-replacement"], {"allowReplacement": True}),
        (["--undo", ROLLOUT], {"undo": ROLLOUT}),
        (["--undo", ROLLOUT, "--to", "0.1.0"], {"undo": ROLLOUT, "version": "0.1.0"}),
        (["--stages", "rest"], stages({"size": "rest"})),
        (["--stages", "2, 5%,rest"], stages({"size": "2"}, {"size": "5%"}, {"size": "rest"})),
        (
            ["--concurrency", "7"],
            stages(
                {"size": "1", "maxConcurrency": 7},
                {"size": "10%", "maxConcurrency": 7},
                {"size": "rest", "maxConcurrency": 7},
            ),
        ),
        (
            ["--tolerate", "2"],
            stages({"size": "1"}, {"size": "10%", "tolerated": "2"}, {"size": "rest", "tolerated": "2"}),
        ),
        (["--stages", "rest", "--tolerate", "0%"], stages({"size": "rest", "tolerated": "0%"})),
        (
            ["--bake", "60"],
            stages({"size": "1", "bakeSeconds": 60}, {"size": "10%", "bakeSeconds": 60}, {"size": "rest"}),
        ),
        (["--stages", "1,rest", "--bake", "0"], stages({"size": "1", "bakeSeconds": 0}, {"size": "rest"})),
        (
            ["--stages", "1,rest", "--alarm", "errors"],
            stages({"size": "1", "alarm": "errors"}, {"size": "rest", "alarm": "errors"}),
        ),
        (["--approval-last"], stages({"size": "1"}, {"size": "10%"}, {"size": "rest", "approval": True})),
        (["--approval"], stages({"size": "1"}, {"size": "10%", "approval": True}, {"size": "rest", "approval": True})),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
class TestWhatIsSent:
    def test_a_rollout_is_started_with_the_options(
        self, scene: Scene, arguments: list[str], body: dict[str, object]
    ) -> None:
        scene.has()
        scene.berth("rollout", "start", "--yes", *arguments)
        assert sent(scene) == body

    def test_a_plan_is_started_with_the_options(
        self, scene: Scene, arguments: list[str], body: dict[str, object]
    ) -> None:
        scene.has()
        scene.berth("rollout", "plan", "--no-wait", *arguments)
        assert sent(scene) == {**body, "dryRun": True, "sample": "20"}


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["--sample", "5"], {"dryRun": True, "sample": "5"}),
        (["--sample", "10%"], {"dryRun": True, "sample": "10%"}),
        (["--all"], {"dryRun": True}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_sample_of_a_plan(scene: Scene, arguments: list[str], body: dict[str, object]) -> None:
    scene.has()
    assert scene.berth("rollout", "plan", "--no-wait", *arguments).exit_code == ExitCode.OK
    assert sent(scene) == body


class TestFiles:
    def test_tenants_from_a_file(self, scene: Scene, tmp_path: Path) -> None:
        file = tmp_path / "tenants.txt"
        file.write_bytes(b"\xef\xbb\xbfacme\r\n\n  globex  \nacme\n")
        scene.berth("rollout", "start", "--tenants-from", str(file), "--tenant", "initech")
        assert sent(scene) == {"tenants": ["initech", "acme", "globex"]}

    def test_tenants_from_stdin(self, scene: Scene) -> None:
        scene.typed, scene.is_a_terminal = "acme\nglobex\n", False
        scene.berth("rollout", "start", "--tenants-from", "-")
        assert sent(scene) == {"tenants": ["acme", "globex"]}

    def test_stages_from_a_file(self, scene: Scene, tmp_path: Path) -> None:
        given = [
            {"size": "1", "tolerated": "1", "bakeSeconds": 5, "alarm": "errors", "approval": True},
            {"size": "rest", "maxConcurrency": 3},
        ]
        file = tmp_path / "stages.json"
        file.write_text(json.dumps(given), encoding="utf-8")
        scene.has()
        scene.berth("rollout", "start", "--stages-file", str(file))
        assert sent(scene) == {"stages": given}

    def test_stages_from_stdin(self, scene: Scene) -> None:
        scene.typed, scene.is_a_terminal = '[{"size": "rest"}]', False
        scene.berth("rollout", "start", "--stages-file", "-")
        assert sent(scene) == {"stages": [{"size": "rest"}]}

    @pytest.mark.parametrize(
        ("option", "content", "message"),
        [
            ("--tenants-from", b"", "the file names no tenant"),
            ("--tenants-from", b"\n  \n", "the file names no tenant"),
            ("--tenants-from", b"acme\na/b\n", "line 2: The tenant id"),
            ("--tenants-from", b"\xff\xfe", "the file is not text"),
            ("--tenants-from", b"\n".join(b"t%d" % n for n in range(501)), "501 tenants are more than the 500"),
            ("--stages-file", b"", "the file is not JSON"),
            ("--stages-file", b"{", "the file is not JSON"),
            ("--stages-file", b"{}", "the file is not a list"),
            ("--stages-file", b"[]", "stages"),
            ("--stages-file", b"[1]", "'--stages-file': stage 1: "),
            ("--stages-file", b'[{"size": "1"}]', "the last stage"),
            ("--stages-file", b'[{"size": "rest", "speed": 1}]', "stage 1: Additional properties are not"),
            ("--stages-file", b'[{"size": "1"}, {"size": "rest", "maxConcurrency": 0}]', "stage 2, maxConcurrency: 0"),
            (
                "--stages-file",
                b'[{"size": "1", "bakeSeconds": 604801}, {"size": "rest"}]',
                "stage 1, bakeSeconds: 604801 is not a whole number <= 604800.",
            ),
            ("--stages-file", b"[" * 100_000, "the file is not JSON"),
        ],
    )
    def test_an_invalid_file_is_reported(
        self, scene: Scene, tmp_path: Path, option: str, content: bytes, message: str
    ) -> None:
        file = tmp_path / "file"
        file.write_bytes(content)
        refused(scene, ["start", option, str(file)], message)

    @pytest.mark.parametrize("option", ["--tenants-from", "--stages-file"])
    def test_a_missing_file_is_reported(self, scene: Scene, tmp_path: Path, option: str) -> None:
        refused(scene, ["start", option, str(tmp_path / "none")], "No such file or directory")
        refused(scene, ["start", option, str(tmp_path)], "Is a directory")


def refused(scene: Scene, arguments: list[str], message: str) -> None:
    scene.environment["COLUMNS"] = "400"
    result = scene.berth("rollout", *arguments, exits=ExitCode.BAD_USAGE)
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert scene.connected_to == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "newest"], "'newest' is not a version like 1.2.3"),
        (["--tenant", "a/b"], "The tenant id 'a/b' is not valid"),
        (["--tenant", ""], "The tenant id is empty"),
        (["--label", "tier"], "not of the form NAME=VALUE"),
        (["--label", "ti er=x"], "'--label': 'ti er' is not the name of a label"),
        (["--reason", "x" * 501], "'--reason': 'xxxxx"),
        (["--reason", "x" * 501], "(501 characters) is too long: at most 500 characters."),
        (["--tier", "Gold!"], "'--tier': 'Gold!' is not the name of a tier"),
        (["--share", "0"], "neither a number of tenants"),
        (["--share", "101%"], "neither a number of tenants"),
        (["--share", "half"], "neither a number of tenants"),
        (["--stages", "1,10%"], "the last stage, and only that one, must be rest: 1,10%,rest"),
        (["--stages", "1,"], "must be rest: 1,rest"),
        (["--stages", ""], "must be rest: rest"),
        (["--stages", "1,rest,2"], "must be rest: 1,2,rest"),
        (["--stages", "rest,rest"], "must be rest: rest"),
        (["--stages", "0"], "'0' is neither"),
        (["--stages", "0,rest"], "'0' is neither"),
        (["--stages", "1,1,1,1,1,1,1,1,1,1"], "there may be 10 stages at most"),
        (["--stages", "1,1,1,1,1,1,1,1,1,1,rest"], "there may be 10 stages at most"),
        (["--concurrency", "0"], "--concurrency"),
        (["--concurrency", "1001"], "'--concurrency': Input should be less than or equal to 1000"),
        (["--tolerate", "-1"], "'-1' is neither"),
        (["--tolerate", "half"], "'half' is neither"),
        (["--bake", "-1"], "--bake"),
        (["--bake", "604801"], "'--bake': Input should be less than or equal to 604800"),
        (["--alarm", "a;b"], "'--alarm': 'a;b' is not the name of an alarm: 1 to 255 letters"),
        (["--alarm", ""], "'--alarm': '' is not the name of an alarm"),
        (["--stages", "rest", "--approval"], "there is only one"),
        (["--stages", "rest", "--approval-last"], "there is only one"),
        (["--stages", "rest", "--bake", "5"], "there is only one"),
        (["--stages-file", "x", "--stages", "rest", "--approval"], "it cannot be combined with --stages, --approval"),
        (["--stages-file", "x", "--concurrency", "1"], "it cannot be combined with --concurrency"),
        (["--stages-file", "x", "--tolerate", "1"], "it cannot be combined with --tolerate"),
        (["--stages-file", "x", "--bake", "0"], "it cannot be combined with --bake"),
        (["--stages-file", "x", "--alarm", "errors"], "it cannot be combined with --alarm"),
        (["--stages-file", "-", "--tenants-from", "-"], "stdin is already used for the list of tenants"),
        (["--undo", "latest"], "'latest' is not the id of a rollout"),
        (["--undo", ROLLOUT, "--tenant", "acme"], "--tenant and --tenants-from cannot be used"),
        (["--undo", ROLLOUT, "--tenants-from", "x"], "--tenant and --tenants-from cannot be used"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.parametrize("command", ["start", "plan"])
def test_bad_usage_is_reported_before_any_request(
    scene: Scene, command: str, arguments: list[str], message: str
) -> None:
    refused(scene, [command, *arguments], message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "--sample", "0"], "neither a number"),
        (["plan", "--sample", "5", "--all"], "it cannot be combined with --all"),
        (["start", "--sample", "5"], "No such option"),
        (["start", "acme"], "unexpected extra argument"),
        (["list", "--limit", "0"], "--limit"),
        *[([verb, "newest"], "'newest' is not the id") for verb in ("status", "watch", "pause", "retry", "abort")],
        (["pause", f"{ROLLOUT}\n"], "is not the id of a rollout"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_combinations_of_options(scene: Scene, arguments: list[str], message: str) -> None:
    refused(scene, arguments, message)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--to", "9.9.9"], ExitCode.BAD_USAGE, "Version 9.9.9 was never published"),
        (["--alarm", "none"], ExitCode.BAD_USAGE, "There is no CloudWatch alarm named none"),
        (["--concurrency", str(MAX_CONCURRENCY + 1)], ExitCode.BAD_USAGE, f"at most {MAX_CONCURRENCY} tenants at once"),
        (["--undo", ROLLOUT], ExitCode.GONE, f"No such rollout: {ROLLOUT}"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_refusal_of_the_control_plane_is_reported(
    scene: Scene, arguments: list[str], code: ExitCode, message: str
) -> None:
    scene.has()
    result = scene.berth("rollout", "start", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1

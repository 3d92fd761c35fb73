"""Only this user can use the emulator: no web page in this user's browser, and no other user of this machine."""

from __future__ import annotations

import http.client
import io
import json
import stat
import uuid
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import ACCOUNT, REGION, Emulator, free_port

ROLE = f"arn:aws:iam::{ACCOUNT}:role/any"
BROWSER = {
    "Connection": "close",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0 Safari/537.36",
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Accept-Language": "en-GB,en;q=0.9",
}
BY_FETCH = {
    "Origin": "https://evil.example",
    "Referer": "https://evil.example/",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "no-cors",
    "Sec-Fetch-Dest": "empty",
}
BY_LINK = {
    "Upgrade-Insecure-Requests": "1",
    "Referer": "https://evil.example/",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-User": "?1",
    "Sec-Fetch-Dest": "document",
}
BY_FORM = BY_LINK | {"Origin": "https://evil.example"}
BY_FORM_IN_A_SANDBOX = BY_LINK | {"Origin": "null"}
BY_PAGE_ON_ANOTHER_PORT = BY_FETCH | {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}
BY_AN_OLD_BROWSER = {"Origin": "https://evil.example", "Referer": "https://evil.example/"}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def refused(self) -> bool:
        return self.status == 403


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("guarded"), keep_state=False)
    emulator.start()
    yield emulator
    emulator.stop()


def send(
    emulator: Emulator, method: str, path: str, headers: Mapping[str, str], body: bytes | str | None = None
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", emulator.port, timeout=30)
    try:
        connection.request(method, path, body, {"Host": f"127.0.0.1:{emulator.port}", **headers})
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


def client(emulator: Emulator, service: str) -> Any:
    session = session_without_profile(emulator.session_settings())
    return session.client(service, endpoint_url=emulator.endpoint)


def client_with(emulator: Emulator, service: str, key: str, secret: str, token: str | None = None) -> Any:
    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=emulator.endpoint,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
    )


def packed(code: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("index.py", code)
    return archive.getvalue()


def users(emulator: Emulator) -> set[str]:
    return {user["UserName"] for user in client(emulator, "iam").list_users()["Users"]}


# A web page


@pytest.mark.parametrize("browser", [BY_FETCH, BY_PAGE_ON_ANOTHER_PORT, BY_AN_OLD_BROWSER])
def test_a_page_cannot_run_code_with_two_simple_posts(
    emulator: Emulator, tmp_path: Path, browser: dict[str, str]
) -> None:
    proof, name = tmp_path / "proof", f"evil-{uuid.uuid4().hex}"
    code = f"import pathlib\ndef handler(event, context):\n    pathlib.Path({str(proof)!r}).touch()\n"
    function = {
        "FunctionName": name,
        "Runtime": "python3.13",
        "Handler": "index.handler",
        "Role": ROLE,
        "Code": {"ZipFile": b64encode(packed(code)).decode()},
    }
    simple = BROWSER | browser | {"Content-Type": "text/plain;charset=UTF-8"}

    created = send(emulator, "POST", "/2015-03-31/functions", simple, json.dumps(function))
    invoked = send(emulator, "POST", f"/2015-03-31/functions/{name}/invocations", simple, "{}")

    assert not proof.exists()
    assert created.refused
    assert invoked.refused


@pytest.mark.parametrize("browser", [BY_FORM, BY_FORM_IN_A_SANDBOX, BY_AN_OLD_BROWSER])
def test_a_form_on_a_page_changes_nothing(emulator: Emulator, browser: dict[str, str]) -> None:
    form = BROWSER | browser | {"Content-Type": "application/x-www-form-urlencoded"}
    answer = send(emulator, "POST", "/", form, "Action=CreateUser&Version=2010-05-08&UserName=evil")
    assert answer.refused
    assert "evil" not in users(emulator)


def test_a_link_on_a_page_changes_nothing(emulator: Emulator) -> None:
    answer = send(emulator, "GET", "/?Action=CreateUser&Version=2010-05-08&UserName=evil", BROWSER | BY_LINK)
    assert answer.refused
    assert "evil" not in users(emulator)


@pytest.mark.parametrize("path", ["/", "/_ministack/health", "/_ministack/reset", "/2015-03-31/functions"])
def test_a_preflight_is_refused_without_cors_headers(emulator: Emulator, path: str) -> None:
    asks = {
        "Origin": "https://evil.example",
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization,x-amz-target",
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "cors",
    }
    answer = send(emulator, "OPTIONS", path, BROWSER | asks)
    assert answer.refused
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


def test_responses_to_this_user_have_no_cors_headers(emulator: Emulator) -> None:
    response = client(emulator, "sqs").list_queues()["ResponseMetadata"]
    assert not [name for name in response["HTTPHeaders"] if name.startswith("access-control-")]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost"])
@pytest.mark.parametrize("path", ["/?Action=ListUsers&Version=2010-05-08", "/_ministack/health"])
def test_dns_rebinding_is_refused(emulator: Emulator, host: str, path: str) -> None:
    there = f"{host}:{emulator.port}"
    rebound = {"Host": there, "Origin": f"http://{there}", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert send(emulator, "GET", path, BROWSER | rebound).refused


@pytest.mark.parametrize("browser", [BY_FETCH, BY_FORM_IN_A_SANDBOX, BY_AN_OLD_BROWSER])
def test_a_page_cannot_reset_the_emulator(emulator: Emulator, browser: dict[str, str]) -> None:
    queue = client(emulator, "sqs").create_queue(QueueName="kept")["QueueUrl"]
    assert send(emulator, "POST", "/_ministack/reset", BROWSER | browser).refused
    assert queue in client(emulator, "sqs").list_queues()["QueueUrls"]


def test_a_page_cannot_open_a_websocket(emulator: Emulator) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Origin": "https://evil.example",
    }
    assert send(emulator, "GET", "/_aws/execute-api/12345678/x", BROWSER | upgrade).refused


# Another user of this machine


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/?Action=ListUsers&Version=2010-05-08"),
        ("POST", "/_ministack/reset"),
        ("POST", "/_ministack/config"),
        ("GET", "/_ministack/ready"),
        ("GET", f"/_ministack/lambda-code/{ACCOUNT}/{REGION}/any"),
        ("GET", "/_aws/sqs/messages"),
        ("GET", "/2015-03-31/functions/"),
        ("PUT", "/bucket"),
        ("GET", "/_ministack/health/../reset"),
        ("PUT", "/_ministack/cfn-response/../reset"),
    ],
)
def test_requests_without_a_signature_are_refused(emulator: Emulator, method: str, path: str) -> None:
    answer = send(emulator, method, path, {})
    assert answer.refused
    assert b"python -m orchestrator.local env" in answer.body


def test_requests_to_an_api_without_a_signature_are_refused(emulator: Emulator) -> None:
    answer = send(emulator, "GET", "/", {"Host": f"12345678.execute-api.localhost:{emulator.port}"})
    assert answer.refused
    assert json.loads(answer.body).keys() >= {"message"}


def test_only_the_health_check_needs_no_signature(emulator: Emulator) -> None:
    assert send(emulator, "GET", "/_ministack/health", {}).status == 200


CALLS = {
    "sqs": "list_queues",
    "dynamodb": "list_tables",
    "lambda": "list_functions",
    "cloudformation": "list_stacks",
    "s3": "list_buckets",
    "iam": "list_users",
    "sts": "get_caller_identity",
    "stepfunctions": "list_state_machines",
}


@pytest.mark.parametrize("service", CALLS)
def test_another_key_is_refused_with_a_message_that_every_client_shows(emulator: Emulator, service: str) -> None:
    with pytest.raises(ClientError, match=r"not signed with .*python -m orchestrator.local env") as refused:
        getattr(client_with(emulator, service, "test", "test"), CALLS[service])()
    assert refused.value.response["Error"]["Code"].startswith("AccessDenied")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_an_access_key_id_without_its_secret_is_refused(emulator: Emulator) -> None:
    own = emulator.session_settings()["aws_access_key_id"]
    for known in (own, ACCOUNT):
        with pytest.raises(ClientError, match="signature does not match"):
            client_with(emulator, "sqs", known, "test").list_queues()


def test_a_custom_resources_response_needs_the_token_that_only_its_function_has(emulator: Emulator) -> None:
    guessed = f"/_ministack/cfn-response/{uuid.uuid4()}"
    assert send(emulator, "PUT", guessed, {}, b"{}").refused


def test_only_this_user_can_read_the_home_and_the_key(emulator: Emulator) -> None:
    assert stat.S_IMODE(emulator.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((emulator.home / "access-key.json").stat().st_mode) == 0o600


# Credentials that the emulator issues


def test_sessions_that_the_emulator_issued_are_admitted_with_their_token(emulator: Emulator) -> None:
    given = client(emulator, "sts").assume_role(RoleArn=ROLE, RoleSessionName="any")["Credentials"]
    key, secret, token = given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]

    assert client_with(emulator, "sqs", key, secret, token).list_queues()
    with pytest.raises(ClientError, match="not signed with"):
        client_with(emulator, "sqs", key, secret).list_queues()
    with pytest.raises(ClientError, match="not signed with"):
        client_with(emulator, "sqs", key, secret, "another").list_queues()
    with pytest.raises(ClientError, match="signature does not match"):
        client_with(emulator, "sqs", key, "another", token).list_queues()


def test_users_keys_that_the_emulator_issued_are_admitted(emulator: Emulator) -> None:
    iam = client(emulator, "iam")
    iam.create_user(UserName="somebody")
    made = iam.create_access_key(UserName="somebody")["AccessKey"]

    assert client_with(emulator, "sqs", made["AccessKeyId"], made["SecretAccessKey"]).list_queues()
    iam.delete_access_key(UserName="somebody", AccessKeyId=made["AccessKeyId"])
    with pytest.raises(ClientError, match="not signed with"):
        client_with(emulator, "sqs", made["AccessKeyId"], made["SecretAccessKey"]).list_queues()


def test_functions_can_call_the_emulator_with_their_credentials(emulator: Emulator) -> None:
    code = "import boto3\ndef handler(event, context):\n    return boto3.client('sts').get_caller_identity()['Arn']\n"
    functions = client(emulator, "lambda")
    functions.create_function(
        FunctionName="caller", Runtime="python3.13", Handler="index.handler", Role=ROLE, Code={"ZipFile": packed(code)}
    )
    assert json.load(functions.invoke(FunctionName="caller")["Payload"]) == f"arn:aws:iam::{ACCOUNT}:root"


# Attackers who have seen a request of this user


def test_a_signed_request_cannot_be_changed(emulator: Emulator) -> None:
    own = emulator.session_settings()
    key = Credentials(own["aws_access_key_id"], own["aws_secret_access_key"])
    seen, other = b"Action=ListUsers&Version=2010-05-08", b"Action=CreateUser&Version=2010-05-08&UserName=evil"
    form = {"Content-Type": "application/x-www-form-urlencoded", "X-Amz-Content-SHA256": sha256(seen).hexdigest()}
    request = AWSRequest("POST", f"{emulator.endpoint}/", headers=form, data=seen)
    SigV4Auth(key, "iam", REGION).add_auth(request)
    headers = dict(request.headers.items())
    assert send(emulator, "POST", "/", headers, seen).status == 200
    assert send(emulator, "POST", "/", headers, other).refused
    assert send(emulator, "POST", "/", headers | {"X-Amz-Target": "DynamoDB_20120810.ListTables"}, seen).refused
    assert "evil" not in users(emulator)


def test_a_presigned_url_can_only_be_used_for_its_purpose(emulator: Emulator) -> None:
    s3 = client(emulator, "s3")
    s3.create_bucket(Bucket="seen")
    settings: Any = emulator.session_settings()
    signer = boto3.Session(**settings).client(
        "s3", endpoint_url=emulator.endpoint, config=Config(signature_version="s3v4")
    )
    made = signer.generate_presigned_url("put_object", {"Bucket": "seen", "Key": "key"})
    url = made.removeprefix(emulator.endpoint)
    assert send(emulator, "PUT", url, {}, b"as its user likes").status == 200
    assert s3.get_object(Bucket="seen", Key="key")["Body"].read() == b"as its user likes"
    target = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Type": "application/x-amz-json-1.0"}
    assert send(emulator, "PUT", url, target, b"{}").refused
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert send(emulator, "PUT", url, form, b"Action=ListUsers&Version=2010-05-08").refused


def test_every_kind_of_upload_by_boto3_is_admitted(emulator: Emulator, tmp_path: Path) -> None:
    """Bytes, a file, a body of unknown length, and several parts: over HTTP boto3 signs all of them."""
    s3 = client(emulator, "s3")
    s3.create_bucket(Bucket="uploads")
    file = tmp_path / "file"
    file.write_bytes(bytes(9 * 1024 * 1024))
    s3.put_object(Bucket="uploads", Key="at-once", Body=b"data", Metadata={"a": "b"}, ChecksumAlgorithm="SHA256")
    with file.open("rb") as stream:
        s3.put_object(Bucket="uploads", Key="file", Body=stream)
    s3.upload_fileobj(io.BytesIO(b"data"), "uploads", "object")
    s3.upload_file(str(file), "uploads", "parts")
    s3.copy_object(Bucket="uploads", Key="copy", CopySource="uploads/at-once")
    kept = {each["Key"]: each["Size"] for each in s3.list_objects_v2(Bucket="uploads")["Contents"]}
    assert kept == {"at-once": 4, "copy": 4, "file": 9 * 1024 * 1024, "object": 4, "parts": 9 * 1024 * 1024}

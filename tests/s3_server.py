"""A server of S3's protocol on the loopback address, in this process: what the tests of object stores talk to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.extras import need

USER, SECRET = "someone", "s3cret-word"  # the server takes any; no message may show them


@dataclass
class Server:
    """A running server.

    :param address: ``http://127.0.0.1:PORT``.
    :param client: a client of boto3, to make buckets and to look at objects.
    :param requests: (method, path) of every request so far.
    """

    address: str
    client: Any
    requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables by which clients find the server."""
        return {
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def bucket(self, name: str) -> str:
        """Make an empty bucket; return its name."""
        self.client.create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        """Return the names of all objects of a bucket, sorted."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", []))


@contextmanager
def running() -> Iterator[Server]:
    """Run a server in a thread; tests without the packages ``moto``, ``flask`` and ``boto3`` are skipped."""
    boto3, moto = need("boto3"), need("moto.server")
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Silent(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            """Write nothing."""

    app = moto.DomainDispatcherApplication(moto.create_backend_app)
    one_at_a_time = threading.Lock()  # a conditional write must look and write at once
    seen: list[tuple[str, str]] = []

    def answer(environ: Any, start: Any) -> Any:
        seen.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        with one_at_a_time:
            return list(app(environ, start))

    listening = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=Silent)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.server_port}"
    client = boto3.client(
        "s3", endpoint_url=address, region_name="us-east-1", aws_access_key_id=USER, aws_secret_access_key=SECRET
    )
    try:
        yield Server(address, client, seen)
    finally:
        client.close()
        listening.shutdown()
        listening.server_close()
        thread.join()


@pytest.fixture(scope="session")
def s3() -> Iterator[Server]:
    """One server for all tests of a session; each test makes buckets of its own."""
    with running() as server:
        yield server

"""A loopback server on real sockets that sends the bytes a test gives it and records the requests it gets."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from prunus.web.door.egress import Egress, EgressRules


@dataclass(frozen=True)
class Request:
    """The request of a client."""

    method: str
    target: str
    headers: Mapping[str, str]


Answer = Callable[[Request, socket.socket], None]


def reply(body: bytes | str = b"", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    """Return a whole HTTP response; ``length`` sets a false Content-Length."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + content


def respond(body: bytes | str = b"", *headers: str, status: str = "200 OK", length: int | None = None) -> Answer:
    """Return a handler that sends a whole page."""
    return respond_bytes(reply(body, *headers, status=status, length=length))


def respond_bytes(data: bytes) -> Answer:
    """Return a handler that sends raw bytes."""
    return lambda request, connection: connection.sendall(data)


def redirect_to(location: str, status: str = "302 Found") -> Answer:
    """Return a handler that sends a redirect."""
    return respond(b"", f"Location: {location}", status=status)


def in_turn(*answers: Answer) -> Answer:
    """Return a handler that uses its handlers in turn, one per request; the last one serves all further requests."""
    left = list(answers)
    return lambda request, connection: (left.pop(0) if len(left) > 1 else left[0])(request, connection)


class Server:
    """Serves ``routes`` (path → handler) on 127.0.0.1, and on ::1 at the same port if the machine has IPv6.

    ``connections`` counts accepted connections; ``requests`` records the requests.
    """

    def __init__(self, routes: Mapping[str, Answer] | Answer | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.routes = routes if routes is not None else respond("hello")
        self.connections = 0
        self.requests: list[Request] = []
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._ending = threading.Event()
        self._listeners = [socket.create_server(("127.0.0.1", 0), backlog=128)]
        self.port: int = self._listeners[0].getsockname()[1]
        with contextlib.suppress(OSError):
            self._listeners.append(socket.create_server(("::1", self.port), family=socket.AF_INET6, backlog=128))

    @property
    def scheme(self) -> str:
        return "https" if self._tls else "http"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    def targets(self) -> list[str]:
        return [request.target for request in self.requests]

    def __enter__(self) -> Server:
        for listener in self._listeners:
            self._start(self._accept, listener)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        for sock in [*self._listeners, *self._open]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5)

    def _start(self, run: Callable[[socket.socket], None], sock: socket.socket) -> None:
        thread = threading.Thread(target=run, args=(sock,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while not self._ending.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls:
                plain = connection
                connection = self._tls.wrap_socket(plain, server_side=True)
                self._open.discard(plain)
                self._open.add(connection)
            while request := _read(connection):
                self.requests.append(request)
                self._answer(request)(request, connection)
        except OSError:
            pass  # the client went away, which is what many of these tests are about
        finally:
            self._open.discard(connection)
            connection.close()

    def _answer(self, request: Request) -> Answer:
        if callable(self.routes):
            return self.routes
        path = request.target.partition("?")[0]
        return self.routes.get(path, respond("not here", status="404 Not Found"))

    def wait(self, seconds: float) -> bool:
        """Wait inside a handler; return True if the server is closing."""
        return self._ending.wait(seconds)


def _read(connection: socket.socket) -> Request | None:
    """Read the head of a request; None if the client closed the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    first, *lines = data.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    return Request(method, target, {name.strip().lower(): value.strip() for name, _, value in pairs})


def resolver(names: Mapping[str, Sequence[str]]) -> Callable[[str, int], Sequence[str]]:
    """Return a resolver that knows only the given names."""

    def resolve(host: str, port: int) -> Sequence[str]:
        if host not in names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return names[host]

    return resolve


def door_to(*servers: Server, names: Mapping[str, Sequence[str]] | None = None, **rules: object) -> Egress:
    """Return an egress door that allows these servers by address, as an operator would configure them.

    :param names: names that resolve; a name of a server must be allowed too.
    """
    allowed = [f"127.0.0.1:{server.port}" for server in servers]
    allowed += rules.pop("allow_hosts", ())  # type: ignore[arg-type]
    return Egress(EgressRules(allow_hosts=tuple(allowed), **rules), resolver(names or {}))  # type: ignore[arg-type]


class Http2Server(Server):
    """A server over HTTP/2 (``tls`` must offer it) that sends the same small page for every request."""

    def _serve(self, connection: socket.socket) -> None:
        import h2.config
        import h2.connection
        import h2.events

        assert self._tls is not None
        try:
            with self._tls.wrap_socket(connection, server_side=True) as secure:
                self._open.add(secure)
                state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
                state.initiate_connection()
                secure.sendall(state.data_to_send())
                while data := secure.recv(65536):
                    for event in state.receive_data(data):
                        if isinstance(event, h2.events.RequestReceived):
                            fields = {name.decode(): value.decode() for name, value in event.headers or ()}
                            self.requests.append(Request(fields[":method"], fields[":path"], fields))
                            state.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/plain")])
                            state.send_data(event.stream_id, b"by http/2", end_stream=True)
                    secure.sendall(state.data_to_send())
        except OSError:
            pass  # the client went away


class Proxy(Server):
    """An operator's proxy that records all requests and tunnels, and forwards them to ``place`` whatever their target."""

    def __init__(self, place: tuple[str, int], password: str = "") -> None:
        super().__init__()
        self._place = place
        self._password = password

    def _serve(self, connection: socket.socket) -> None:
        try:
            request = _read(connection)
            if request is None:
                return
            self.requests.append(request)
            if self._password and request.headers.get("proxy-authorization") != self._password:
                connection.sendall(reply(status="407 Proxy Authentication Required"))
                return
            with socket.create_connection(self._place) as upstream:
                self._open.add(upstream)
                if request.method == "CONNECT":
                    connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                else:
                    path = "/" + request.target.split("/", 3)[3]
                    lines = [f"{name}: {value}" for name, value in request.headers.items()]
                    upstream.sendall("\r\n".join([f"{request.method} {path} HTTP/1.1", *lines, "", ""]).encode())
                downward = threading.Thread(target=_copy, args=(upstream, connection), daemon=True)
                downward.start()
                _copy(connection, upstream)
                downward.join(5)
        except OSError:
            pass  # one side went away
        finally:
            connection.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side closes."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for sock in (source, target):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

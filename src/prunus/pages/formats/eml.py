"""``eml``: e-mail messages and mailboxes: header fields, text, and names of attachments."""

from __future__ import annotations

import binascii
import email
import email.errors
import email.header
import email.message
import email.policy
import quopri
import re
from collections.abc import Iterator
from typing import Any, Final

from ...core.errors import BadPage
from ...core.types import Page
from ..clean.parse import decode, is_binary
from ._common.write import document, escape_text, fragment, note, page_error
from .calendar import invitation
from .text import text_html

_FIELDS: Final = ("From", "To", "Cc", "Date", "Reply-To")
_ENVELOPE: Final = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")
_GUARDED: Final = re.compile(rb"^>(>*From )", re.M)  # a line of a message in a mailbox that is no envelope
_MAX_FIELD: Final = 4000  # characters of a header field that are read
_MESSAGES: Final = ("message/rfc822", "message/global")
_EVENT: Final = "text/calendar"
_SOFT: Final = re.compile(r"(?<!^--) \n(?!>)", re.MULTILINE)
_HEADER: Final = re.compile(rb"\s*(?:From [^\n]*\n|[A-Za-z][A-Za-z0-9-]*[ \t]*:)")


class _Policy(email.policy.Compat32):
    """Cuts long header fields: the time to read the parameters of a field grows with the square of its length."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_FIELD]


class _Mail(email.message.Message):
    """A message whose header parameters are found also where the standard library cannot join them."""

    def get_param(self, param: str, failobj: Any = None, header: str = "content-type", unquote: bool = True) -> Any:
        try:
            return super().get_param(param, failobj, header, unquote)
        except (TypeError, ValueError, LookupError):  # pieces of one value with and without a number: a*0=…; a*=…
            pieces = (piece.partition("=") for piece in str(self.get(header, "")).split(";"))
            return next((value.strip(' "') for name, _, value in pieces if name.strip().lower() == param), failobj)


class _DecodedMail(_Mail):
    """A message that came as text: its parts are in UTF-8 now, whatever they declare, unless they are encoded again."""

    def get_content_charset(self, failobj: Any = None) -> Any:
        encoding = str(self.get("Content-Transfer-Encoding", "")).strip().lower()
        return super().get_content_charset(failobj) if encoding in ("base64", "quoted-printable") else "utf-8"


_POLICY: Final = _Policy()


class Engine:
    """Messages and mailboxes. Where a text has several versions, the HTML version is shown. Attachments are only named.

    :param max_depth: nesting depth of messages inside messages; default 5.
    :param max_parts: parts of a message that are read; default 1,000.
    :param max_messages: messages of a mailbox that are shown; default 500. A note gives the total.
    """

    name = "eml"
    media_types = ("message/rfc822", "application/mbox", "multipart/related")
    suffixes = (".eml", ".mbox", ".mht", ".mhtml")

    def __init__(self, max_depth: int = 5, max_parts: int = 1000, max_messages: int = 500) -> None:
        self._max_depth, self._max_parts, self._max_messages = max_depth, max_parts, max_messages

    def to_html(self, page: Page) -> str:
        """Return the message, or the messages of a mailbox, as HTML.

        :raises BadPage: the content is empty or binary, or is no message.
        """
        text = page.content if isinstance(page.content, str) else _as_utf_16(page.content)
        content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if not content.strip():
            raise page_error(page, "the page is empty")
        if is_binary(content):
            raise page_error(page, "this is binary data, not a message")
        if not _HEADER.match(content):
            raise page_error(page, "this is no e-mail message: it does not begin with header fields")
        is_mailbox = content.startswith(b"From ")
        pieces = [content]
        if is_mailbox:
            pieces = [_GUARDED.sub(rb"\1", piece) for piece in _ENVELOPE.split(content) if piece.strip()]
        try:
            return self._document(pieces, page, _DecodedMail if isinstance(text, str) else _Mail)
        except RecursionError as error:
            raise page_error(
                page, "the parts of this message are nested too deep; save the inner messages as files"
            ) from error

    def _document(self, pieces: list[bytes], page: Page, kind: type[_Mail]) -> str:
        shown = pieces[: self._max_messages]
        parsed = [email.message_from_bytes(piece, _class=kind, policy=_POLICY) for piece in shown]
        messages = [_Message(message, self._max_depth, self._max_parts) for message in parsed]
        body = [message.markup() for message in messages]
        if not any(message.subject or message.has_body for message in messages):
            raise page_error(page, "this message holds no text to read")
        if len(body) > 1:
            body = [f"<article>{message}</article>" for message in body]
        if len(pieces) > self._max_messages:
            body.append(note(f"Messages 1 to {self._max_messages:,} of {len(pieces):,} are shown."))
        return document(body, messages[0].subject, published=_field(parsed[0], "Date"))


class _Message:
    """One message while it is written.

    :param depth: levels of messages inside this message that may still be shown.
    :param parts: parts that may still be read.
    :param level: heading level of the subject.
    """

    def __init__(self, message: email.message.Message, depth: int, parts: int, level: int = 1) -> None:
        self._message, self._depth, self._left, self._level = message, depth, parts, level
        self._attached: list[str] = []
        self.subject = _field(message, "Subject")
        self.has_body = False

    def markup(self) -> str:
        """Return the message as HTML."""
        level = min(self._level, 6)
        pairs = [(name, _field(self._message, name)) for name in _FIELDS]
        fields = "".join(f"<dt>{name}</dt><dd>{escape_text(text)}</dd>" for name, text in pairs if text)
        body = "".join(self._part(self._message))
        self.has_body = bool(body)
        parts = [
            f"<h{level}>{escape_text(self.subject)}</h{level}>" if self.subject else "",
            f"<dl>{fields}</dl>" if fields else "",
        ]
        parts.append(body)
        if self._attached:
            names = "".join(f"<li>{escape_text(name)}</li>" for name in self._attached)
            deeper = min(level + 1, 6)
            parts.append(f"<section><h{deeper}>Attachments</h{deeper}><ul>{names}</ul></section>")
        if self._left <= 0:
            parts.append(note("This message holds more parts than are shown."))
        return "".join(parts)

    def _part(self, part: email.message.Message) -> Iterator[str]:
        """Yield the HTML of a part."""
        self._left -= 1
        if self._left <= 0:
            return
        kind = part.get_content_type()
        payload = part.get_payload()
        listed = payload if isinstance(payload, list) else []
        inner = [child for child in listed if isinstance(child, email.message.Message)]
        if kind in _MESSAGES and inner:
            inner = [_unpacked(part, inner[0])]
        if kind in _MESSAGES and inner:
            if self._depth <= 0:
                self._attached.append(_field(inner[0], "Subject") or "a message")
                return
            nested = _Message(inner[0], self._depth - 1, self._left, self._level + 1)
            yield f"<section>{nested.markup()}</section>"
        elif kind == "multipart/alternative" and inner:
            yield from self._best(inner)
        elif inner:
            for child in inner:
                yield from self._part(child)
        elif part.get_content_disposition() == "attachment" or not kind.startswith("text/") or _file_name(part):
            name = _file_name(part)
            if name or part.get_content_disposition() == "attachment":
                self._attached.append(name or kind)
        else:
            yield _text(part, kind)

    def _best(self, versions: list[email.message.Message]) -> Iterator[str]:
        """Yield the best version of a text: the last version with markup, or else the last that shows anything."""
        ranks = {"text/plain": 1, "text/html": 3, "multipart/related": 3, "multipart/mixed": 2}
        ranked = list(reversed(versions))
        ranked.sort(key=lambda version: -ranks.get(version.get_content_type(), 0))
        for version in ranked:
            shown = "".join(self._part(version))
            if shown:
                yield shown
                yield from (_text(other, _EVENT) for other in _events(versions, version))
                return


def _events(versions: list[email.message.Message], shown: email.message.Message) -> Iterator[email.message.Message]:
    """Yield the invitations among the versions of a text: they say when and where, whatever the other versions say."""
    return (other for other in versions if other is not shown and other.get_content_type() == _EVENT)


def _as_utf_16(content: bytes) -> str | bytes:
    """Return a message that a program saved as UTF-16 as text; any other message unchanged."""
    head = content[:40]
    for mark, codec, zeros in ((b"\xff\xfe", "utf-16-le", head[1::2]), (b"\xfe\xff", "utf-16-be", head[::2])):
        if content.startswith(mark) or (len(head) == 40 and not any(zeros) and head.count(0) == len(zeros)):
            return content.removeprefix(mark).decode(codec, "replace")
    return content


def _text(part: email.message.Message, kind: str) -> str:
    """Return a text part as HTML. A wrong charset is corrected as for any page."""
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    if not content.strip() or is_binary(content):
        return ""
    charset = part.get_content_charset("") or ""
    # many programs declare ASCII by default and send another charset, so ASCII counts as undeclared
    text = decode(content, "" if charset in ("us-ascii", "ascii") else charset)
    if kind == _EVENT:
        return invitation(text)
    try:
        if kind in ("text/html", "application/xhtml+xml"):
            return fragment(text)
        if str(part.get_param("format", "")).lower() == "flowed":  # a line that ends with a space goes on in the next
            without_space = str(part.get_param("delsp", "")).lower() == "yes"  # that space is no part of the text
            text = _SOFT.sub("" if without_space else " ", text)
        return text_html(text)
    except BadPage:  # the part shows nothing
        return ""


def _unpacked(part: email.message.Message, inner: email.message.Message) -> email.message.Message:
    """Return the message inside a part. Some programs encode it, which the standard forbids."""
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding not in ("base64", "quoted-printable"):
        return inner
    try:
        packed = inner.as_bytes(policy=_POLICY)
        content = binascii.a2b_base64(packed) if encoding == "base64" else quopri.decodestring(packed)
    except (ValueError, LookupError, TypeError):
        return inner
    return email.message_from_bytes(content, _class=type(inner), policy=_POLICY) if _HEADER.match(content) else inner


def _file_name(part: email.message.Message) -> str:
    """Return the name of an attached file."""
    try:
        name = part.get_filename("") or ""
    except (LookupError, ValueError, TypeError):  # unknown encoding of the name
        return "a file"
    return _decoded(name)[:300]


def _field(message: email.message.Message, name: str) -> str:
    """Return a header field as decoded text on one line; '' where it is missing."""
    result = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _decoded(str(result))


def _decoded(text: str) -> str:
    """Decode the encoded words of a header field (RFC 2047). Text that cannot be decoded stays unchanged."""
    text = text[:_MAX_FIELD]
    try:
        pieces = email.header.decode_header(text)
    except (email.errors.MessageError, ValueError):
        pieces = [(text, None)]
    parts = []
    for piece, charset in pieces:
        data = piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece
        parts.append(decode(data, charset or "") if data else "")
    return " ".join("".join(parts).encode("utf-8", "replace").decode("utf-8").split())

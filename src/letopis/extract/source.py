"""What every format reads from: one document with what its server said about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from letopis.extract.charset import Decoded, decode
from letopis.model import Headers, header

Mode = Literal["skim", "basic", "full"]


@dataclass(frozen=True, slots=True)
class Source:
    """One document. `content_type` is the type found by looking, in lower case, without parameters.

    In mode `basic` a format need only find the title and the links, in mode
    `skim` only the addresses that a crawl may follow.
    """

    body: bytes
    url: str
    content_type: str
    headers: Headers = ()
    mode: Mode = "full"

    def header(self, name: str) -> str:
        """The first value of a header field, or nothing."""
        return header(self.headers, name)

    def decoded(self) -> Decoded:
        """The body as text, its character set found as browsers find it, and corrected where it lies."""
        return decode(self.body, charset_of(self.header("content-type")))

    def utf8(self) -> tuple[bytes, str]:
        """The body in the one charset that the HTML parser reads (itself when it is), and the charset it came in."""
        if self.body.isascii() and b"\x1b" not in self.body:
            return self.body, "utf-8"
        decoded = self.decoded()
        sound = decoded.charset == "utf-8" and "\ufffd" not in decoded.text
        return (self.body if sound else decoded.text.encode("utf-8", "replace")), decoded.charset


def charset_of(content_type: str) -> str:
    """The charset parameter of a Content-Type value, or nothing."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""

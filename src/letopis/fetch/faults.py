"""libcurl's codes as our kinds of failure, each with a sentence for people."""

from __future__ import annotations

import pycurl

from letopis.model.web import Failure, FailureKind

_HTTP2_STREAM = 92
_TOO_LARGE = 100
"""CURLE_HTTP2_STREAM and CURLE_TOO_LARGE (of a header line), for which pycurl has no names."""
_NOT_A_RESET = ("chunk", "header", "hex")
"""libcurl has one code for a broken connection and for broken chunks; its words tell them apart."""
_KINDS = {
    FailureKind.DNS: (pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_RESOLVE_PROXY),
    FailureKind.CONNECT: (pycurl.E_COULDNT_CONNECT, pycurl.E_INTERFACE_FAILED, pycurl.E_NO_CONNECTION_AVAILABLE),
    FailureKind.TIMEOUT: (pycurl.E_OPERATION_TIMEDOUT,),
    FailureKind.RESET: (pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR),
    FailureKind.TLS: (
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CACERT_BADFILE,
        pycurl.E_SSL_CERTPROBLEM,
        pycurl.E_SSL_CIPHER,
        pycurl.E_SSL_ISSUER_ERROR,
        pycurl.E_SSL_INVALIDCERTSTATUS,
    ),
    FailureKind.PROTOCOL: (
        pycurl.E_PARTIAL_FILE,
        pycurl.E_FTP_WEIRD_SERVER_REPLY,
        pycurl.E_UNSUPPORTED_PROTOCOL,
        pycurl.E_BAD_CONTENT_ENCODING,
        pycurl.E_HTTP2,
        _HTTP2_STREAM,
        _TOO_LARGE,
    ),
}
_BY_CODE = {code: kind for kind, codes in _KINDS.items() for code in codes}
_SENTENCES = {
    FailureKind.DNS: "the host's name is not known to the name servers",
    FailureKind.CONNECT: "no connection could be made",
    FailureKind.TIMEOUT: "no connection could be made in time",
    FailureKind.RESET: "the server closed the connection before the answer was complete",
    FailureKind.TLS: "no secure connection could be made",
    FailureKind.PROTOCOL: "the answer is not valid HTTP",
    FailureKind.OTHER: "the request failed",
}


def failure_of(code: int, words: str) -> Failure:
    """The failure behind a code of libcurl; its own words follow in brackets."""
    kind = _BY_CODE.get(code, FailureKind.OTHER)
    if kind is FailureKind.RESET and any(word in words for word in _NOT_A_RESET):
        kind = FailureKind.PROTOCOL
    detail = words or pycurl.easy_strerror(code)
    return Failure(kind, f"{_SENTENCES[kind]} ({detail})")

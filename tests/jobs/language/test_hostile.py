"""Hostile job files and stylesheets: refused or stopped, named, in bounded time and memory."""

from __future__ import annotations

import re
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from asking import with_packages

from letopis.errors import UsageError
from letopis.jobs.packages import QUERY_BOUNDS, run_stylesheet, transform_result
from letopis.jobs.xslt import XsltLimits
from letopis.operations.job_files import parse_job_file

TIGHT = XsltLimits(seconds=3.0, memory=512 << 20, output=1 << 20)
PATIENT = TIGHT._replace(seconds=120.0)
"""For what another limit stops, on a busy machine as well."""


def laughs(levels: int = 12) -> str:
    made = ['<!ENTITY l0 "ha">']
    made += [f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, levels)]
    return f"<!DOCTYPE query [{''.join(made)}]>"


@contextmanager
def bounded(seconds: float = 10.0, megabytes: int = 300) -> Iterator[None]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    assert time.process_time() - began < seconds
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < megabytes * 1024


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text("SECRET")
    return file


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server that nobody may call."""
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", calls
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE query><query><cleaner/></query>",
        '<!DOCTYPE query [<!ENTITY x SYSTEM "file://SECRET">]><query><search>&x;</search></query>',
        '<!DOCTYPE query [<!ENTITY % x SYSTEM "LISTENER/x.dtd"> %x;]><query><cleaner/></query>',
        '<!DOCTYPE query SYSTEM "LISTENER/x.dtd"><query><cleaner/></query>',
        '<!DOCTYPE query PUBLIC "a" "LISTENER/x.dtd"><query><cleaner/></query>',
        f"{laughs()}<query><search>&l11;</search></query>",
        f'{laughs()}<query name="&l11;"><cleaner/></query>',
        '<!DOCTYPE query [<!ENTITY a "&b;"><!ENTITY b "&a;">]><query name="&a;"><cleaner/></query>',
        '<!DOCTYPE query [<!ATTLIST query name CDATA "given">]><query><cleaner/></query>',
    ],
)
def test_document_types_and_entities_are_refused(
    text: str, encoding: str, secret: Path, listener: tuple[str, list[str]]
) -> None:
    text = text.replace("SECRET", str(secret)).replace("LISTENER", listener[0])
    with bounded(), pytest.raises(UsageError) as caught:
        parse_job_file(text.encode(encoding))
    assert "document type" in str(caught.value) or "not well-formed XML" in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert listener[1] == []


def test_inclusions_are_no_part_of_the_language(secret: Path) -> None:
    text = f'<query xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{secret}" parse="text"/></query>'
    with pytest.raises(UsageError, match="include"):
        parse_job_file(text.encode())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<query>" + "<a>" * 300 + "</a>" * 300 + "</query>", "depth|nested"),
        ("<query package='other'>" + "<a>" * 100 + "</a>" * 100 + "</query>", "nested deeper than 64"),
        (f"<query name='{'x' * 500_000}'><cleaner/></query>", "attribute 'name'"),
        (f"<query><search>{'x' * 500_000}</search></query>", "search"),
        (f"<query><map site='{'x.' * 100_000}'/></query>", "site has 200000 characters; at most 8192"),
        ("<query " + " ".join(f"a{n}=''" for n in range(50_000)) + "><cleaner/></query>", "query"),
        (f"<query><search>{'x' * 2_000_000}</search></query>", "at most 1048576 are read"),
        ("<query>" + "<dance/>" * 100_000 + "</query>", "dance"),
        (f"<{'q' * 100_000}/>", "root|well-formed"),
    ],
    ids=lambda value: value[:12],
)
def test_huge_and_deep_files_are_refused_quickly_with_a_short_sentence(text: str, told: str) -> None:
    with bounded(), pytest.raises(UsageError, match=told) as caught:
        parse_job_file(text.encode())
    assert len(str(caught.value)) < 800


def style(inside: str, top: str = "") -> bytes:
    return (
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" '
        'xmlns:exsl="http://exslt.org/common" extension-element-prefixes="exsl">'
        f'{top}<xsl:template match="/"><out>{inside}</out></xsl:template></xsl:stylesheet>'
    ).encode()


GROWING = """<xsl:template name="grow"><xsl:param name="n"/><y/><xsl:if test="$n">
  <xsl:call-template name="grow"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>
  <xsl:call-template name="grow"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>
</xsl:if></xsl:template>"""
CALL = '<xsl:call-template name="grow"><xsl:with-param name="n" select="{}"/></xsl:call-template>'
DOUBLING = """<xsl:template name="double"><xsl:param name="x"/>
  <xsl:call-template name="double"><xsl:with-param name="x" select="concat($x, $x)"/></xsl:call-template>
</xsl:template>"""
SLOW = """<xsl:template name="spin"><xsl:param name="n"/><xsl:if test="$n">
  <xsl:call-template name="spin"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>
  <xsl:call-template name="spin"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>
</xsl:if></xsl:template>"""


@pytest.mark.parametrize(
    ("sheet", "told"),
    [
        (style("<xsl:copy-of select=\"document('file://SECRET')\"/>"), "read rights for file"),
        (style("<xsl:copy-of select=\"document('SECRET')\"/>"), "read rights|denied|cannot be used"),
        (style("<xsl:copy-of select=\"document('LISTENER/x')\"/>"), "read rights for http"),
        (style("", '<xsl:import href="file://SECRET"/>'), "Cannot resolve"),
        (style("", '<xsl:include href="LISTENER/x.xsl"/>'), "Cannot resolve"),
        (style('<exsl:document href="SECRET.out"><b/></exsl:document>'), "write rights"),
        (style('<xsl:call-template name="a"/>', '<xsl:template name="a"><xsl:call-template name="a"/></xsl:template>'),
         "endless recursion"),
        (style('<xsl:apply-templates select="/"/>'), "endless recursion"),
        (style(CALL.format(60), GROWING), "memory|longer than"),
        (style(CALL.format(18), GROWING), "at most 1048576 are allowed"),
        (style('<xsl:call-template name="double"><xsl:with-param name="x" select="\'xxxxxxxx\'"/></xsl:call-template>',
               DOUBLING), "memory|evaluate"),
        (style(CALL.format(60).replace("grow", "spin"), SLOW), "longer than 3 s"),
        (b"<!DOCTYPE x [<!ENTITY a SYSTEM 'file://SECRET'>]>" + style("&a;"), "cannot be used|out"),
        (b"no stylesheet", "cannot be used"),
        (b"<a/>", "cannot be used"),
        (b" " * 2_000_000, "larger than 1 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_hostile_stylesheets_are_stopped_and_named(
    sheet: bytes, told: str, secret: Path, listener: tuple[str, list[str]]
) -> None:
    sheet = sheet.replace(b"SECRET", str(secret).encode()).replace(b"LISTENER", listener[0].encode())
    made = b""
    with bounded():
        try:
            limits = TIGHT if "longer than" in told else PATIENT
            made = run_stylesheet(b"<result/>", sheet, "the sheet", limits)
        except UsageError as fault:
            made = str(fault).encode()
            assert made.startswith(b"the sheet: ")
    assert b"SECRET" not in made
    assert re.search(told, made.decode())
    assert listener[1] == []
    assert not secret.with_name("secret.out").exists()


def test_a_hostile_package_is_refused_at_submission(tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "query.xsl").write_bytes(
        style('<xsl:call-template name="a"/>', '<xsl:template name="a"><xsl:call-template name="a"/></xsl:template>')
    )
    with pytest.raises(UsageError, match=r"query\.xsl of package 'bad': .*endless recursion"):
        parse_job_file(b'<query package="bad"><x/></query>', with_packages(tmp_path))
    assert QUERY_BOUNDS.seconds <= 10


def test_a_schema_of_a_package_reads_no_other_file(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "query.xsl").write_bytes(style(""))
    include = f'<xs:include schemaLocation="file://{secret}"/>'
    (folder / "query.xsd").write_text(f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{include}</xs:schema>')
    with pytest.raises(UsageError, match="a schema of a package is one file"):
        parse_job_file(b'<query package="bad"><x/></query>', with_packages(tmp_path))


def test_an_unknown_stylesheet_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown stylesheet '\.\./x'; choose one of map-page"):
        transform_result(b"<result/>", "../x")

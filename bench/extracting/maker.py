"""Makes documents of many formats, and says what stands in them. Run by the Python of an environment that has the
libraries (python-docx, openpyxl, python-pptx, reportlab, odfpy); it needs nothing of Letopis.

    ENV/bin/python bench/extracting/maker.py FOLDER COUNT

Writes FOLDER/FORMAT/NNN.FORMAT and prints one JSON object a file: name, title, words, links.
"""

from __future__ import annotations

import json
import random
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from odf import dc, draw, style, table, text
from odf.opendocument import OpenDocumentPresentation, OpenDocumentSpreadsheet, OpenDocumentText
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import ListFlowable, Paragraph, SimpleDocTemplate, Table

_WORDS = {
    "cs": "řeka město zpráva příliš žluťoučký úředník zasedání rozpočet škola cesta knihovna oprava mostu ročně obec",
    "ru": "город река библиотека решение совета школа дорога бюджет ремонт моста отчёт страница неделя вечер слово",
    "en": "river town report council library bridge repair budget school meeting archive winter notice price evening",
    "de": "Stadt Fluss Bericht Brücke Rathaus Schule Straße Haushalt Bücherei Gemeinde Sitzung Winter Größe Mühle",
}
_LATIN_WORDS = ("en", "de")
"""Languages that the fonts every reader of PDF has can write."""


@dataclass
class Told:
    """One document: a title, headings with paragraphs and items below them, a table, links."""

    title: str
    parts: list[tuple[str, list[str], list[str]]]
    rows: list[list[str]]
    links: list[tuple[str, str]]

    def texts(self) -> list[str]:
        """All that it says."""
        found = [self.title]
        for heading, paragraphs, items in self.parts:
            found += [heading, *paragraphs, *items]
        return found + [cell for row in self.rows for cell in row] + [shown for _, shown in self.links]


def told(rand: random.Random, languages: tuple[str, ...]) -> Told:
    """A document of random words of one language, of one to six parts."""
    words = _WORDS[rand.choice(languages)].split()

    def some(least: int, most: int) -> str:
        return " ".join(rand.choices(words, k=rand.randint(least, most))).capitalize()

    parts = [
        (
            some(2, 5),
            [some(10, 60) + "." for _ in range(rand.randint(1, 4))],
            [some(3, 8) for _ in range(rand.randrange(4))],
        )
        for _ in range(rand.randint(1, 6))
    ]
    rows = [
        [some(1, 3) if column else str(rand.randrange(10**5)) for column in range(3)]
        for _ in range(rand.randint(2, 12))
    ]
    links = [(f"https://example.org/{rand.randrange(10**6)}", some(1, 3)) for _ in range(rand.randrange(4))]
    return Told(some(3, 6), parts, rows, links)


def make_docx(one: Told, file: Path) -> None:
    made = docx.Document()
    made.core_properties.title = one.title
    for heading, paragraphs, items in one.parts:
        made.add_heading(heading, 1)
        for paragraph in paragraphs:
            made.add_paragraph(paragraph)
        for item in items:
            made.add_paragraph(item, style="List Bullet")
    grid = made.add_table(0, 3)
    for row in one.rows:
        for cell, said in zip(grid.add_row().cells, row, strict=True):
            cell.text = said
    for address, shown in one.links:
        linked = made.add_paragraph()
        link = OxmlElement("w:hyperlink")
        link.set(qn("r:id"), made.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
        link.append(linked.add_run(shown)._r)
        linked._p.append(link)
    made.save(str(file))


def make_xlsx(one: Told, file: Path) -> None:
    made = openpyxl.Workbook()
    made.properties.title = one.title
    for number, (heading, paragraphs, items) in enumerate(one.parts):
        sheet = made.active if number == 0 else made.create_sheet()
        sheet.title = heading
        for said in (*paragraphs, *items):
            sheet.append([said])
    for row in one.rows:
        made.active.append([int(row[0]), *row[1:]])
    for address, shown in one.links:
        made.active.append([shown])
        made.active.cell(made.active.max_row, 1).hyperlink = address
    made.save(file)


def make_pptx(one: Told, file: Path) -> None:
    made = pptx.Presentation()
    made.core_properties.title = one.title
    for heading, paragraphs, items in one.parts:
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text = "\n".join((*paragraphs, *items))
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = one.title
    grid = slide.shapes.add_table(len(one.rows), 3, 0, 0, 5_000_000, 2_000_000).table
    for number, row in enumerate(one.rows):
        for column, said in enumerate(row):
            grid.cell(number, column).text = said
    for address, shown in one.links:
        run = slide.shapes.add_textbox(0, 0, 900_000, 90_000).text_frame.paragraphs[0].add_run()
        run.text, run.hyperlink.address = shown, address
    made.save(file)


def make_pdf(one: Told, file: Path) -> None:
    styles = getSampleStyleSheet()
    story: list[object] = [Paragraph(one.title, styles["Title"])]
    for heading, paragraphs, items in one.parts:
        story.append(Paragraph(heading, styles["Heading1"]))
        story += [Paragraph(said, styles["BodyText"]) for said in paragraphs]
        if items:
            story.append(ListFlowable([Paragraph(said, styles["BodyText"]) for said in items], bulletType="bullet"))
    story.append(Table(one.rows))
    story += [Paragraph(f'<a href="{address}">{shown}</a>', styles["BodyText"]) for address, shown in one.links]
    SimpleDocTemplate(str(file), title=one.title).build(story)


def _odf_rows(one: Told, made_table: Any) -> Any:
    for row in one.rows:
        line = table.TableRow()
        for said in row:
            cell = table.TableCell()
            cell.addElement(text.P(text=said))
            line.addElement(cell)
        made_table.addElement(line)
    return made_table


def _odf_link(address: str, shown: str) -> object:
    paragraph = text.P()
    paragraph.addElement(text.A(href=address, text=shown))
    return paragraph


def make_odt(one: Told, file: Path) -> None:
    made = OpenDocumentText()
    made.meta.addElement(dc.Title(text=one.title))
    for heading, paragraphs, items in one.parts:
        made.text.addElement(text.H(outlinelevel=1, text=heading))
        for said in paragraphs:
            made.text.addElement(text.P(text=said))
        listed = text.List()
        for said in items:
            item = text.ListItem()
            item.addElement(text.P(text=said))
            listed.addElement(item)
        made.text.addElement(listed)
    made.text.addElement(_odf_rows(one, table.Table()))
    for link in one.links:
        made.text.addElement(_odf_link(*link))
    made.save(str(file))


def make_ods(one: Told, file: Path) -> None:
    made = OpenDocumentSpreadsheet()
    made.meta.addElement(dc.Title(text=one.title))
    for number, (heading, paragraphs, items) in enumerate(one.parts):
        sheet = table.Table(name=heading)
        for said in (*paragraphs, *items):
            line, cell = table.TableRow(), table.TableCell()
            cell.addElement(text.P(text=said))
            line.addElement(cell)
            sheet.addElement(line)
        if number == 0:
            _odf_rows(one, sheet)
            for link in one.links:
                line, cell = table.TableRow(), table.TableCell()
                cell.addElement(_odf_link(*link))
                line.addElement(cell)
                sheet.addElement(line)
        made.spreadsheet.addElement(sheet)
    made.save(str(file))


def make_odp(one: Told, file: Path) -> None:
    made = OpenDocumentPresentation()
    made.meta.addElement(dc.Title(text=one.title))
    layout = style.PageLayout(name="layout")
    made.automaticstyles.addElement(layout)
    master = style.MasterPage(name="master", pagelayoutname=layout)
    made.masterstyles.addElement(master)
    for heading, paragraphs, items in one.parts:
        page = draw.Page(masterpagename=master)
        for said in (heading, *paragraphs, *items):
            _odp_box(page, text.P(text=said))
        made.presentation.addElement(page)
    for row in one.rows:
        for said in row:
            _odp_box(page, text.P(text=said))
    for link in one.links:
        _odp_box(page, _odf_link(*link))
    made.save(str(file))


def _odp_box(page: Any, paragraph: Any) -> None:
    frame, box = draw.Frame(width="9cm", height="1cm"), draw.TextBox()
    box.addElement(paragraph)
    frame.addElement(box)
    page.addElement(frame)


def _html(one: Told) -> str:
    parts = []
    for heading, paragraphs, items in one.parts:
        parts.append(f"<h1>{heading}</h1>" + "".join(f"<p>{said}</p>" for said in paragraphs))
        parts.append("<ul>" + "".join(f"<li>{said}</li>" for said in items) + "</ul>")
    rows = "".join("<tr>" + "".join(f"<td>{said}</td>" for said in row) + "</tr>" for row in one.rows)
    links = "".join(f'<p><a href="{address}">{shown}</a></p>' for address, shown in one.links)
    head = f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{one.title}</title></head><body>'
    return f"{head}{''.join(parts)}<table>{rows}</table>{links}</body></html>"


def make_epub(one: Told, file: Path) -> None:
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("mimetype", "application/epub+zip")
        made.writestr(
            "META-INF/container.xml",
            '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>'
            "</rootfiles></container>",
        )
        made.writestr(
            "OEBPS/content.opf",
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
            f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{one.title}</dc:title></metadata>'
            '<manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
        )
        made.writestr("OEBPS/a.xhtml", _html(one))


def make_eml(one: Told, file: Path) -> None:
    made = EmailMessage()
    made["Subject"], made["From"], made["To"] = one.title, "anna@example.org", "board@example.org"
    made["Date"] = format_datetime(datetime(2024, 5, 6, tzinfo=UTC))
    made.set_content("\n\n".join(one.texts()))
    made.add_alternative(_html(one), subtype="html")
    file.write_bytes(bytes(made))


def make_rtf(one: Told, file: Path) -> None:
    def said(words: str) -> str:
        return "".join(sign if ord(sign) < 128 else f"\\u{ord(sign)}?" for sign in words)

    parts = [f"{{\\rtf1\\ansi\\ansicpg1252{{\\info{{\\title {said(one.title)}}}}}"]
    for heading, paragraphs, items in one.parts:
        parts.append(f"\\pard\\outlinelevel0\\b {said(heading)}\\b0\\par")
        parts += [f"\\pard {said(words)}\\par" for words in paragraphs]
        parts += [f"{{\\listtext\\bullet\\tab}}{said(words)}\\par" for words in items]
    for row in one.rows:
        cells = "".join(f"{said(words)}\\cell " for words in row)
        parts.append(f"\\trowd\\cellx2000\\cellx4000\\cellx6000\\pard\\intbl {cells}\\row")
    for address, shown in one.links:
        field = f'{{\\field{{\\*\\fldinst{{HYPERLINK "{address}"}}}}{{\\fldrslt {said(shown)}}}}}'
        parts.append(f"\\pard {field}\\par")
    file.write_text("\n".join(parts) + "}", "ascii")


MAKERS: dict[str, Callable[[Told, Path], None]] = {
    "docx": make_docx, "eml": make_eml, "epub": make_epub, "odp": make_odp, "ods": make_ods, "odt": make_odt,
    "pdf": make_pdf, "pptx": make_pptx, "rtf": make_rtf, "xlsx": make_xlsx,
}  # fmt: skip


def main() -> int:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    for name, make in MAKERS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            rand = random.Random(f"{name} {number}")
            one = told(rand, _LATIN_WORDS if name == "pdf" else tuple(_WORDS))
            file = folder / name / f"{number:03}.{name}"
            make(one, file)
            facts = {
                "file": str(file),
                "title": one.title,
                "texts": one.texts(),
                "links": [link for link, _ in one.links],
            }
            sys.stdout.write(json.dumps(facts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

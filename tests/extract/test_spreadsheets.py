"""What rows of spreadsheets say: values in their columns, repeated ones as often as they stand, times as times."""

from __future__ import annotations

import io
import zipfile

import pytest

from letopis.extract import read_page
from letopis.model import Page

SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
REFERS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
FORMATS = ("General", "d.m.yyyy", "h:mm", "[h]:mm", 'yyyy\\-mm\\-dd" "hh:mm', "[Red]0.00", "[$-405]d. mmmm yyyy")
ODS = "application/vnd.oasis.opendocument.spreadsheet"


def packed(parts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def rows(page: Page) -> list[str]:
    assert not page.warnings
    return [block.text for block in page.blocks if block.kind == "cell"]


def xlsx_rows(content: str, properties: str = "") -> list[str]:
    """The rows of a sheet. `s="2"` gives a cell the second of `FORMATS`."""
    formats = "".join(f"<numFmt numFmtId='{200 + at}' formatCode='{code}'/>" for at, code in enumerate(FORMATS))
    styles = "".join(f"<xf numFmtId='{200 + at}'/>" for at in range(len(FORMATS)))
    parts = {
        "[Content_Types].xml": f"<x><Override PartName='/xl/workbook.xml' ContentType='{SHEETS}.main+xml'/></x>",
        "xl/workbook.xml": f"<workbook {MAIN} {REFERS}>{properties}<sheet name='S' r:id='s'/></workbook>",
        "xl/_rels/workbook.xml.rels": "<x><y Id='s' Type='x/worksheet' Target='sheet.xml'/></x>",
        "xl/styles.xml": f"<styleSheet {MAIN}><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>",
        "xl/sheet.xml": f"<worksheet {MAIN}><sheetData>{content}</sheetData></worksheet>",
    }
    return rows(read_page(packed(parts), "http://a.test/x", (("Content-Type", SHEETS),)))


def ods_rows(content: str) -> list[str]:
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for short, name in (("o", "office"), ("t", "table"), ("x", "text"))
    )
    table = f"<o:document-content {names}><o:body><o:spreadsheet><t:table>{content}</t:table></o:spreadsheet></o:body>"
    parts = {"mimetype": ODS, "content.xml": f"{table}</o:document-content>"}
    return rows(read_page(packed(parts), "http://a.test/x", (("Content-Type", ODS),)))


@pytest.mark.parametrize("separator", ["\t", "</td><td>"])
def test_a_page_knows_which_cells_of_a_row_are_filled(separator: str) -> None:
    lines = ["a", separator, separator, "b"], ["", separator, "5", separator, ""]
    if separator == "\t":
        page = read_page(
            "\n".join(map("".join, lines)).encode(), "u:", (("Content-Type", "text/tab-separated-values"),)
        )
        assert rows(page) == ["a | | b", "5"]
        assert page.cells.filled == ((0, 0b101), (1, 0b10))
    else:
        table = "".join(f"<tr><td>{''.join(line)}</td></tr>" for line in lines)
        page = read_page(f"<table>{table}</table>".encode(), "u:", (("Content-Type", "text/html"),))
        assert page.cells.starts == (-1, 0, 1, 1, -3, 2, 2, 3)


def test_cells_stand_in_their_columns_though_empty_ones_are_not_written() -> None:
    def row(column: str) -> str:
        return f"<row><c r='A1' t='str'><v>lamp</v></c><c r='{column}1'><v>5</v></c></row>"

    assert xlsx_rows(row("B") + row("D")) == ["lamp | 5", "lamp | | | 5"]
    assert xlsx_rows(row("AB"))[0].count("|") == 27
    assert xlsx_rows(row("XFD"))[0].count("|") <= 1000


def test_cells_that_do_not_say_their_place_follow_one_another() -> None:
    assert xlsx_rows("<row><c><v>42</v></c><c><v>43</v></c><c/><c><v>44</v></c></row>") == ["42 | 43 | | 44"]


@pytest.mark.parametrize(
    ("style", "value", "shown"),
    [
        (0, "45000", "45000"), (1, "45000", "2023-03-15"), (1, "1", "1900-01-01"), (1, "59", "1900-02-28"),
        (1, "61", "1900-03-01"), (2, "0.3333333333", "08:00:00"), (2, "0", "00:00:00"), (3, "1.5", "36:00:00"),
        (3, "45000", "1080000:00:00"), (4, "45000.6458333333", "2023-03-15 15:30:00"), (5, "45000", "45000"),
        (6, "45000", "2023-03-15"), (1, "1e300", "1e300"), (2, "nan", "nan"), (99, "2", "2"),
    ],
)  # fmt: skip
def test_numbers_are_shown_as_the_times_that_they_stand_for(style: int, value: str, shown: str) -> None:
    assert xlsx_rows(f"<row><c r='A1' s='{style}'><v>{value}</v></c></row>") == [shown]


def test_days_may_be_counted_from_1904() -> None:
    cells = "<row><c s='1'><v>43538</v></c><c s='1'><v>1</v></c></row>"
    assert xlsx_rows(cells, "<workbookPr date1904='1'/>") == ["2023-03-15 | 1904-01-02"]


def test_cells_and_rows_of_opendocument_stand_as_often_as_they_are_repeated() -> None:
    def cell(text: str, times: int) -> str:
        return f'<t:table-cell t:number-columns-repeated="{times}"><x:p>{text}</x:p></t:table-cell>'

    def empty(times: int) -> str:
        return f'<t:table-cell t:number-columns-repeated="{times}"/>'

    def row(content: str, times: int = 1) -> str:
        return f'<t:table-row t:number-rows-repeated="{times}">{content}{empty(16384)}</t:table-row>'

    assert ods_rows(row(cell("lamp", 1) + empty(2) + cell("5", 1))) == ["lamp | | | 5"]
    assert ods_rows(row(cell("5", 3), 2) + row("", 1048576)) == ["5 | 5 | 5"] * 2
    assert ods_rows(row(cell("a", 1) + "<t:covered-table-cell/>" + cell("b", 1))) == ["a | | b"]
    assert ods_rows(row(cell("filled", 16384), 1048576)) == ["filled"]

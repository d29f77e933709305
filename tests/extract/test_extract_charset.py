import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract import decode, read_page

CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Šťastná žena řekla, že její číšník přišel dřív než ostatní hosté."
SLOVAK = "Kŕdeľ ďatľov učí koňa žrať kôru. Šťastná žena povedala, že jej čašník prišiel skôr ako ostatní hostia, ľudia."
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. Это обычное русское предложение о погоде."
GERMAN = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Schöne Grüße aus München und Köln."
FRENCH = "Dès Noël, où un zéphyr haï me vêt de glaçons würmiens, je dîne d’exquis rôtis de bœuf à l’aÿ d’âge mûr."

PAGES = [
    (CZECH, "cp1250"),
    (CZECH, "iso8859-2"),
    (CZECH, "utf-8"),
    (SLOVAK, "cp1250"),
    (SLOVAK, "iso8859-2"),
    (RUSSIAN, "cp1251"),
    (RUSSIAN, "koi8-r"),
    (GERMAN, "cp1252"),
    (FRENCH, "cp1252"),
]


def html(text, declared):
    meta = f'<meta http-equiv="Content-Type" content="text/html; charset={declared}">' if declared else ""
    return f"<html><head>{meta}<title>x</title></head><body><p>{text}</p></body></html>"


@pytest.mark.parametrize(("text", "charset"), PAGES)
@pytest.mark.parametrize("declared", ["right", "none", "utf-8", "iso-8859-1", "nonsense-9"])
def test_text_comes_out_right_whatever_is_declared(text, charset, declared):
    label = {"right": charset, "none": ""}.get(declared, declared)
    assert text in decode(html(text, label).encode(charset)).text


@pytest.mark.parametrize(("text", "charset"), PAGES)
def test_the_header_may_lie(text, charset):
    body = html(text, "").encode(charset)
    wrong = "iso-8859-2" if charset == "cp1250" else "windows-1250"
    found = read_page(body, "http://a.org/", (("Content-Type", f"text/html; charset={wrong}"),), detect_language=False)
    assert found.blocks[-1].text == text


def test_a_byte_order_mark_wins():
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        found = read_page(
            mark + html(CZECH, "windows-1252").encode(name), "http://a.org/", (("Content-Type", "text/html"),)
        )
        assert (found.charset, found.blocks[-1].text) == (name, CZECH)


@pytest.mark.parametrize(
    ("text", "charset", "label"),
    [
        ("日本語のテキストです。", "cp932", "shift_jis"),
        ("中文文本，测试。", "gb18030", "gb2312"),
        ("日本語", "iso2022_jp", "iso-2022-jp"),
    ],
)
def test_declared_asian_charsets_are_believed(text, charset, label):
    assert decode(text.encode(charset), label).text == text


def test_a_few_broken_bytes_do_not_spoil_utf8():
    body = (CZECH * 3).encode() + b"\xff cut \xc3"
    found = decode(body)
    assert found.charset == "utf-8"
    assert found.text.startswith(CZECH)


def test_utf16_without_mark_is_believed_from_the_header():
    assert decode("český text".encode("utf-16-le"), "utf-16le").text == "český text"


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["", "utf-8", "windows-1250", "utf-7", "base64", "x", "utf-16", "shift_jis", "rot13"]),
)
def test_any_bytes_become_text(body, declared):
    found = decode(body, declared)
    assert isinstance(found.text, str)
    assert found.charset

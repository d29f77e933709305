import codecs
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.extract import decode, read_page
from letopis.extract.charsets import _sample, _score, clearly_better, declared_charset

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
        (codecs.BOM_UTF16_LE, "utf-16le"),
        (codecs.BOM_UTF16_BE, "utf-16be"),
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
    assert decode("český text".encode("utf-16le"), "utf-16le").text == "český text"


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["", "utf-8", "windows-1250", "utf-7", "base64", "x", "utf-16", "shift_jis", "rot13"]),
)
def test_any_bytes_become_text(body, declared):
    found = decode(body, declared)
    assert isinstance(found.text, str)
    assert found.charset


@pytest.mark.parametrize(
    ("charset", "href", "target"),
    [
        ("windows-1251", "/поиск?q=мир#б", "http://a.org/%D0%BF%D0%BE%D0%B8%D1%81%D0%BA?q=%EC%E8%F0"),
        ("shift_jis", "?q=日本&x=1", "http://a.org/?q=%93%FA%96%7B&x=1"),
        ("windows-1252", "?q=&#1084;&eacute;", "http://a.org/?q=%26%231084%3B%E9"),
        ("utf-8", "?q=мир", "http://a.org/?q=%D0%BC%D0%B8%D1%80"),
        ("utf-16le", "?q=мир", "http://a.org/?q=%D0%BC%D0%B8%D1%80"),
    ],
)
@pytest.mark.parametrize("mode", ["full", "basic", "skim"])
def test_queries_of_links_are_in_the_charset_of_the_page_as_browsers_send_them(charset, href, target, mode):
    page = f'<p>è</p><a href="{href}">x</a>' if charset == "windows-1252" else f'<a href="{href}">x</a>'
    fields = (("Content-Type", f"text/html; charset={charset}"),)
    found = read_page(page.encode(charset), "http://a.org/", fields, mode=mode, detect_language=False)
    assert [link.target for link in found.links] == [target]


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        (b"<meta charset=x-user-defined>", "windows-1252"),
        (b"<meta/charset=latin2>", "iso-8859-2"),
        (b"<meta charset=utf-16>", "utf-8"),
        (b"<!-- <meta charset=koi8-r> -->", ""),
        (b'<?xml version="1.0" encoding="windows-1251"?>', "windows-1251"),
        (b'<meta name=x content="text; charset=koi8-r">', ""),
    ],
)
def test_a_page_declares_its_charset_as_the_standard_says(head, charset):
    assert declared_charset(head) == charset


def test_what_is_declared_is_believed_where_no_default_is_declared():
    text = "Όλοι οι άνθρωποι"
    assert decode(text.encode("cp1253"), "windows-1253").text == text
    assert decode("Größe für Äpfel ".encode("cp1252") * 20 + b"\x80\x81", "windows-1252").text.endswith("€\x81")
    assert decode("ўЎ ў".encode("koi8-u", "replace") + b"\xae\xbe\xc1", "koi8-u").text.endswith("ўЎа")


RIVALS = ("windows-1250", "iso-8859-2", "windows-1251", "koi8-r", "windows-1252")
WORD = st.sampled_from(("ženy šťastně", "<p class=x>", "привет мир", "façade", "plain", "\u00a0»ja«", "Größe", "<br>"))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(WORD, max_size=30).map(" ".join),
    st.sampled_from(RIVALS),
    st.binary(max_size=60),
    st.sampled_from(RIVALS),
    st.sampled_from((0.0, 0.12, 0.5)),
)
def test_a_rival_is_better_by_all_words_as_by_those_beyond_ascii(text, written_in, noise, declared, margin):
    body = text.encode(written_in, "replace") + noise
    scores = {name: _score(_sample(body), name, -math.inf) for name in RIVALS}
    best, rival = max((scores[name], name) for name in RIVALS if name != declared)
    expected = rival if best > scores[declared] + margin else declared
    assert clearly_better(body, declared, [name for name in RIVALS if name != declared], margin) == expected

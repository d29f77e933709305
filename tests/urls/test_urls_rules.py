import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.errors import BadUrl, UsageError
from letopis.urls.rules import RedirectRule, UrlRuleOutcome, UrlRules, Variable, VarList, rules_from_xml

SCRIPT = "dce.felk.cvut.cz/pub/index.php"
XML = b"""<query package="downloader"><urltransform>
  <redirect base="dce.felk.cvut.cz/pub/index.html">dce.felk.cvut.cz/pub/index.php</redirect>
  <varlist base="dce.felk.cvut.cz/pub/index.php">
    <var name="idpage"/>
    <var name="language"> <value>cz</value><value>en</value></var>
    <var name="version"> <value>1</value></var>
    <var name="include">optional</var>
  </varlist>
</urltransform></query>"""
DIRECT = UrlRules(
    (RedirectRule("dce.felk.cvut.cz/pub/index.html", SCRIPT),),
    (
        VarList(
            SCRIPT,
            (
                Variable("idpage"),
                Variable("language", ("cz", "en")),
                Variable("version", ("1",)),
                Variable("include", required=False),
            ),
        ),
    ),
)


@pytest.fixture(params=["xml", "direct"])
def rules(request):
    return rules_from_xml(XML) if request.param == "xml" else DIRECT


def test_the_four_addresses_of_the_example_get_their_four_results(rules):
    page = f"http://{SCRIPT}?"
    kept = rules.apply(page + "idpage=1&language=cz&version=1")
    assert (kept.outcome, kept.url) == (UrlRuleOutcome.KEPT, page + "idpage=1&language=cz&version=1")
    bad = rules.apply(page + "idpage=1&language=us&version=1")
    assert (bad.outcome, bad.ignored) == (UrlRuleOutcome.BAD_VALUE, True)
    assert "language" in bad.reason
    missing = rules.apply(page + "idpage=1&language=cz")
    assert (missing.outcome, missing.ignored) == (UrlRuleOutcome.MISSING, True)
    assert "version" in missing.reason
    shorter = rules.apply(page + "idpage=1&language=cz&version=1&menu=12")
    assert (shorter.outcome, shorter.url) == (UrlRuleOutcome.REDIRECTED, page + "idpage=1&language=cz&version=1")


def test_a_redirect_keeps_the_query_and_then_the_variables_hold(rules):
    verdict = rules.apply("https://dce.felk.cvut.cz/pub/index.html?version=1&language=en&idpage=7&include=x")
    assert verdict.outcome is UrlRuleOutcome.REDIRECTED
    assert verdict.url == f"https://{SCRIPT}?idpage=7&include=x&language=en&version=1"
    assert rules.apply("http://dce.felk.cvut.cz/pub/index.html").outcome is UrlRuleOutcome.MISSING


def test_other_pages_are_left_alone(rules):
    assert rules.apply("http://dce.felk.cvut.cz/other?z=1&a=2") == (
        UrlRuleOutcome.KEPT,
        "http://dce.felk.cvut.cz/other?a=2&z=1",
        "",
    )


def test_no_rules_only_sort_parameters():
    rules = rules_from_xml(b"<urltransform/>")
    assert rules.apply("http://a.org/?b=1&a=2").url == "http://a.org/?a=2&b=1"


def test_a_base_with_a_scheme_holds_for_that_scheme_only():
    rules = UrlRules((RedirectRule("http://a.org/x", "https://a.org/x"),))
    assert rules.apply("http://a.org/x?q=1").url == "https://a.org/x?q=1"
    assert rules.apply("https://a.org/x").outcome is UrlRuleOutcome.KEPT


def test_redirects_follow_each_other_and_a_loop_ends():
    rules = UrlRules((RedirectRule("a.org/1", "a.org/2"), RedirectRule("a.org/2", "a.org/3")))
    assert rules.apply("http://a.org/1").url == "http://a.org/3"
    loop = UrlRules((RedirectRule("a.org/1", "a.org/2"), RedirectRule("a.org/2", "a.org/1")))
    assert loop.apply("http://a.org/1").url in ("http://a.org/1", "http://a.org/2")


def test_an_empty_list_of_variables_drops_every_parameter():
    rules = UrlRules((), (VarList("http://a.org/x"),))
    assert rules.apply("http://a.org/x?a=1&b=2").url == "http://a.org/x"


def test_values_and_names_are_compared_unescaped():
    rules = UrlRules((), (VarList("a.org/x", (Variable("jméno", ("á b",)),)),))
    assert rules.apply("http://a.org/x?jméno=á+b").outcome is UrlRuleOutcome.KEPT


def test_rules_add_up_and_later_ones_win():
    rules = UrlRules((RedirectRule("a.org/1", "a.org/2"),)) + UrlRules((RedirectRule("a.org/1", "a.org/9"),))
    assert rules.apply("http://a.org/1").url == "http://a.org/9"


@pytest.mark.parametrize(
    "data",
    [
        b"<urltransform>",
        b"",
        b'<urltransform><redirect base="a.org/x"/></urltransform>',
        b"<urltransform><redirect>a.org/y</redirect></urltransform>",
        b'<urltransform><varlist base="a.org/x"><var/></varlist></urltransform>',
        b'<urltransform><varlist base="a.org/x"><var name="n">maybe</var></varlist></urltransform>',
        b'<!DOCTYPE q [<!ENTITY a "b">]><urltransform><redirect base="a.org/x">&a;</redirect></urltransform>',
        b'<!DOCTYPE q SYSTEM "http://127.0.0.1:9/x.dtd"><urltransform/>',
    ],
)
def test_broken_rules_are_refused_with_a_sentence(data):
    with pytest.raises(UsageError):
        rules_from_xml(data)


def test_entity_bombs_do_not_expand():
    bomb = b'<!DOCTYPE b [<!ENTITY a "%s">%s]><urltransform>&z;</urltransform>' % (
        b"x" * 100,
        b"".join(b'<!ENTITY %c "%s">' % (c, b"&%c;" % (c - 1) * 10) for c in range(ord("b"), ord("z") + 1)),
    )
    with pytest.raises(UsageError):
        rules_from_xml(bomb)


def test_a_target_that_is_no_address_is_refused():
    with pytest.raises(BadUrl):
        UrlRules((RedirectRule("a.org/x", "http://[bad"),))


queries = st.lists(
    st.tuples(
        st.sampled_from(["idpage", "language", "version", "include", "menu"]), st.sampled_from(["1", "cz", "us", ""])
    )
)


@settings(max_examples=300, deadline=None)
@given(queries)
def test_what_the_rules_give_they_keep(pairs):
    verdict = DIRECT.apply(f"http://{SCRIPT}?" + "&".join(f"{name}={value}" for name, value in pairs))
    if not verdict.ignored:
        assert DIRECT.apply(verdict.url) == (UrlRuleOutcome.KEPT, verdict.url, "")

from letopis.frontier.filters import CrawlFocus, focus_score, link_interest, poor_before

CASTLES = CrawlFocus(keywords=("castle", "old town"), languages=frozenset({"en"}), threshold=0.2, patience=1)


def test_pages_about_the_key_words_score_higher() -> None:
    about = focus_score(CASTLES, "The castle", "The castle stands above the old town. " * 4, "en")
    beside = focus_score(CASTLES, "Recipes", "Cake near the castle.", "en")
    assert 0.0 < beside < 0.2 < about <= 1.0


def test_another_language_scores_nothing_and_no_key_words_mean_everything() -> None:
    assert focus_score(CASTLES, "castle", "castle " * 50, "de") == 0.0
    assert focus_score(CrawlFocus(), "", "", "de") == 1.0


def test_long_pages_need_more_hits() -> None:
    short = focus_score(CASTLES, "", "castle castle " + "word " * 100, "en")
    long = focus_score(CASTLES, "", "castle castle " + "word " * 20000, "en")
    assert long < short


def test_links_are_followed_a_little_beyond_good_pages_and_best_first() -> None:
    good, poor = link_interest(CASTLES, 0.8, 0), link_interest(CASTLES, 0.0, 0)
    poorer = link_interest(CASTLES, 0.0, poor.poor)
    assert (good.follow, poor.follow, poorer.follow) == (True, True, False)
    assert good.priority > poor.priority
    assert link_interest(CASTLES, 0.0, 5, anchor="Visit the castle").follow


def test_a_priority_remembers_how_many_poor_pages_lie_before() -> None:
    for score in (0.0, 0.1, 0.5, 1.0):
        for poor in range(4):
            interest = link_interest(CASTLES, score, poor, anchor="castle")
            assert poor_before(interest.priority) == interest.poor
    assert poor_before(0.0) == 0

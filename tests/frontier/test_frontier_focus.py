from letopis.frontier import Focus, interest, score

CASTLES = Focus(keywords=("castle", "old town"), languages=frozenset({"en"}), threshold=0.2, patience=1)


def test_pages_about_the_key_words_score_higher() -> None:
    about = score(CASTLES, "The castle", "The castle stands above the old town. " * 4, "en")
    beside = score(CASTLES, "Recipes", "Cake near the castle.", "en")
    assert 0.0 < beside < 0.2 < about <= 1.0


def test_another_language_scores_nothing_and_no_key_words_mean_everything() -> None:
    assert score(CASTLES, "castle", "castle " * 50, "de") == 0.0
    assert score(Focus(), "", "", "de") == 1.0


def test_long_pages_need_more_hits() -> None:
    short = score(CASTLES, "", "castle castle " + "word " * 100, "en")
    long = score(CASTLES, "", "castle castle " + "word " * 20000, "en")
    assert long < short


def test_links_are_followed_a_little_beyond_good_pages_and_best_first() -> None:
    good, poor = interest(CASTLES, 0.8, 0), interest(CASTLES, 0.0, 0)
    poorer = interest(CASTLES, 0.0, poor.poor)
    assert (good.follow, poor.follow, poorer.follow) == (True, True, False)
    assert good.priority > poor.priority
    assert interest(CASTLES, 0.0, 5, anchor="Visit the castle").follow

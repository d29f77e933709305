"""Words that say nothing about what they stand near, in base forms, by language."""

from __future__ import annotations

from functools import lru_cache

_LISTS = {
    "en": """a about above after again all also am an and any are as at be because been before being below between both
        but by can could did do does doing down during each few for from further had has have having he her here hers
        him his how i if in into is it its just may me might more most must my no nor not now of off on once only or
        other our out over own same shall she should so some such than that the their them then there these they this
        those through to too under until up upon very was we were what when where which while who whom why will with
        would you your""",
    "cs": """a aby ale ani ano asi až bez bude by být co což či další do ho i ja já jak jako je jeden jeho jej její
        jejich jen jenž ještě ji jiný již k kam kde kdo kdy kdyby když ke ku která který kteří má mezi mít mnoho můj my
        na nad náš ne nebo než nic nový o od on ona oni ono po pod podle pokud pouze právě pro proč proto protože před
        při s se si skoro sám své svůj ta tady tak také takový taky tam tato te tedy ten tento to tobě tohle toto tu
        tuto tvůj ty tyto u už v však vás váš ve velmi více vy vždy z za zda zde ze že""",
    "sk": """a aby aj ak ako ale alebo ani áno asi až bez bol by byť čo či ďalší do ešte ho i iba ja je jeden jeho jej
        ich iný k kam každý kde kto ktorý keď ku len ma má medzi mať môj môže my na nad nám náš ne nie nič o od on ona
        oni ono po pod podľa pokiaľ potom práve pre prečo pred preto pretože pri s sa sám si so svoj ta tak takže tam
        taký ten tento tiež to toto tu tvoj ty tým už v váš veľmi viac vo však vy z za zo že""",
    "de": """aber alle als also am an ander auch auf aus bei bin bis da damit dann das dass dein dem den der des dich
        die dies dieser dir doch du durch ein eine einer er es etwas euer für gegen haben hatte hier hin ich ihr im in
        ist ja jede jeder kann kein können man mein mich mir mit muss nach nicht nichts noch nun nur ob oder ohne sehr
        sein seine sich sie sind so solch soll sondern über um und uns unser unter viel vom von vor war was weil wenn
        werden wie wieder will wir wird wo wurde zu zum zur zwar zwischen""",
    "ru": """а без более бы был была были было быть в вам вас весь во вот все всего всех вы где да даже для до его ее
        если есть еще же за здесь и из или им их к как какой ко когда который кто ли либо мне может мой мочь мы на над
        надо наш не него нее нет ни них но ну о об один однако он она они оно от по под при про с сам свой себя со так
        также такой там те то тогда тоже только том тот ты у уже хотя чего чем что чтобы это этот я""",
    "pl": """a aby albo ale ani az aż bardzo bez bo być by był co czy dla do gdy gdyż gdzie go i ich ile im inny ja
        jak jako jaki je jeden jednak jego jej jest jeszcze jeśli już każdy kiedy kto który lub ma mieć mój może mu my
        na nad nam nas nasz nic nie niż o od on ona oni ono oraz po pod podczas poza przed przez przy również są się
        swój ta tak taki także tam te tego ten to tu tutaj twój ty tylko u w we wasz więc wszystko wy z za ze że""",
}


@lru_cache(maxsize=16)
def stop_words(language: str) -> frozenset[str]:
    """The words of a language that say nothing by themselves; none where they are not known."""
    return frozenset(_LISTS.get(language, "").split())

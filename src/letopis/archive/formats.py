"""The forms in which a difference can be asked for."""

FORMATS = ("unified", "words", "chars", "html", "visual", "links", "json", "binary")

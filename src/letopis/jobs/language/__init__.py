"""The language of questions: XML in, steps against the archive, XML out, and XSLT on both sides."""

from letopis.jobs.language.documents import canonical, schema
from letopis.jobs.language.json_form import result_json
from letopis.jobs.language.packages import BUILT_IN, Package, package_named, packages
from letopis.jobs.language.parsing import parse
from letopis.jobs.language.performing import STEPS, perform, stylesheet_of
from letopis.jobs.language.running import Cancelled
from letopis.jobs.language.stylesheets import STYLESHEETS, transform

__all__ = [
    "BUILT_IN",
    "STEPS",
    "STYLESHEETS",
    "Cancelled",
    "Package",
    "canonical",
    "package_named",
    "packages",
    "parse",
    "perform",
    "result_json",
    "schema",
    "stylesheet_of",
    "transform",
]

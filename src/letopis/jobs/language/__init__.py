"""The language of questions: XML in, steps against the archive, XML out, and XSLT on both sides."""

from letopis.jobs.language.documents import canonical_xml, result_json
from letopis.jobs.language.interpreter import STEPS, run_query, stylesheet_of
from letopis.jobs.language.job_file import parse_job_file
from letopis.jobs.language.packages import BUILT_IN, STYLESHEETS, JobPackage, package_named, packages, transform_result
from letopis.jobs.language.schema import language_schema
from letopis.jobs.language.steps import JobCancelled

__all__ = [
    "BUILT_IN",
    "STEPS",
    "STYLESHEETS",
    "JobCancelled",
    "JobPackage",
    "canonical_xml",
    "language_schema",
    "package_named",
    "packages",
    "parse_job_file",
    "result_json",
    "run_query",
    "stylesheet_of",
    "transform_result",
]

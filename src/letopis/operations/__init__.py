"""Every question and every command of Letopis once: parameters, right, rows, errors, progress, cancelling."""

from letopis.model import json_value
from letopis.operations.context import BoundedWork, Cancelled, Context, LocalContext, Progress, Silent
from letopis.operations.operation import Answer, Document, Operation, Route, Rows, Value, operation
from letopis.operations.parameters import Parameter, bind, parameter, parameters_of

__all__ = [
    "Answer",
    "BoundedWork",
    "Cancelled",
    "Context",
    "Document",
    "LocalContext",
    "Operation",
    "Parameter",
    "Progress",
    "Route",
    "Rows",
    "Silent",
    "Value",
    "bind",
    "json_value",
    "operation",
    "parameter",
    "parameters_of",
]  # fmt: skip

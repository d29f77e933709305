"""Checks for people: whether a page changed since they last looked, what changed, whether it was available; and
watches.
"""

from letopis.monitor.checker import Checker, CheckOptions
from letopis.monitor.monitor import Monitor, MonitoredResource

__all__ = ["CheckOptions", "Checker", "Monitor", "MonitoredResource"]

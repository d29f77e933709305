"""Checks for people: did it change since I looked, what changed, was it up; and standing checks that tell."""

from letopis.monitor.checker import Checker, CheckOptions
from letopis.monitor.monitor import Monitor, MonitoredResource

__all__ = ["CheckOptions", "Checker", "Monitor", "MonitoredResource"]

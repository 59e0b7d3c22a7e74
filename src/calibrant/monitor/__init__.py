"""Monitoring of calibration over time, with a false-alarm probability that holds for any number of looks."""

from calibrant.monitor.history import Alarm, History
from calibrant.monitor.monitor import Monitor

__all__ = ["Alarm", "History", "Monitor"]

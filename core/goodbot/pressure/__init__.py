"""Whether the machine is needed for something else: battery, load and GPU use by others, quiet hours.

`limits` decides, a pure function of readings; `linux`, `macos` and `nvidia` read; `gauge` keeps the
last reading and tells a passing moment from a lasting one. What cannot be read objects to nothing.
"""

from goodbot.pressure.gauge import Gauge, Lasting
from goodbot.pressure.limits import Limits, Readings
from goodbot.pressure.machine import read_machine

__all__ = ["Gauge", "Lasting", "Limits", "Readings", "read_machine"]

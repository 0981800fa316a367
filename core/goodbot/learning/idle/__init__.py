# SPDX-License-Identifier: Apache-2.0
"""Whether the machine is needed for something else: battery, load and GPU use by others, quiet hours.

`limits` decides, a pure function of readings; `load_monitor` reads by `goodbot.base.machine`, keeps the
last reading and tells a passing moment from a lasting one. What cannot be read objects to nothing.
"""

from goodbot.learning.idle.limits import Limits, Readings
from goodbot.learning.idle.load_monitor import Lasting, LoadMonitor, read_machine

__all__ = ["Lasting", "Limits", "LoadMonitor", "Readings", "read_machine"]

# SPDX-License-Identifier: Apache-2.0
"""What the author of a model server's driver stands on: these names stay where they are.

Not in `goodbot` itself, as its contracts are: this is code that answers, not what a plugin promises.
"""

from goodbot.inference.servers.remote import RemoteServer

__all__ = ["RemoteServer"]

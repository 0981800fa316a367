# SPDX-License-Identifier: Apache-2.0
"""What the entries of `goodbot.api.commands` do: `rating:good` there is `good` of `rating` here."""

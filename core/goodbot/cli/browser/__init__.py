# SPDX-License-Identifier: Apache-2.0
"""`goodbot --browser`: the questions of `goodbot init` on a page of this machine's own.

`stage` holds what the page shows, as data; `dialogue` puts the wizard's questions there; `site` is the
page and what it may ask; `serving` listens for it; `command` begins and ends.
"""

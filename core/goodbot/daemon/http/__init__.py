# SPDX-License-Identifier: Apache-2.0
"""The daemon's one HTTP server: health for a supervisor, and what connectors answer there.

`http` is what the rest of goodbot holds; it imports the others, and aiohttp with them, only once
something is to be answered. `names` says which hosts are ours, `routes` puts the connectors' own
together, `health` has `/healthz` and `/readyz`, `readiness` asks the parts for it,
`unready` is what is said meanwhile.
"""

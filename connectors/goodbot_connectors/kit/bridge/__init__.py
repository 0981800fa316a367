# SPDX-License-Identifier: Apache-2.0
"""What programs of this machine that call us have in common: tokens, a guard, a connector's base.

`clients` keeps who may call, `guard` holds every request to the same rules, `body` reads JSON that
may hold anything, `local` is a connector whose far side calls us. Import `guard` and `body` only
where something listens: aiohttp.
"""

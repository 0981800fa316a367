# SPDX-License-Identifier: Apache-2.0
"""The capture proxy: point a program that speaks OpenAI's or Anthropic's API at goodbot.

Either our own model answers, or a server that the owner names, whose answers go through untouched. In both
cases each answer becomes a turn that can be rated by the id in its header `X-Goodbot-Turn`.

`endpoint` has the routes, `far` asks an upstream, `relay` carries bytes while `capture` learns what went by;
`dialects` reads requests and answers of each API, `own` answers with our model. `sessions` and `kinds`
tell whose turn something is, and whether a person read it. Import `config` alone where nothing listens.
"""

# SPDX-License-Identifier: Apache-2.0
"""What programs ask and are answered, in each API, as plain values: `shapes`.

Nothing of it is trusted, and nothing is refused: what has another type counts as not said. `chat` and
`completions` are OpenAI's older APIs, `responses` its newer one, `messages` Anthropic's.
"""

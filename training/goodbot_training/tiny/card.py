# SPDX-License-Identifier: Apache-2.0
"""The model card, written beside the model each time it is made."""

from __future__ import annotations

from goodbot_training.tiny import TEMPERATURE
from goodbot_training.tiny.evaluate import SAMPLES, Evaluation
from goodbot_training.tiny.tokens import VOCABULARY

_CARD = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: text-generation
---

# goodbot tiny

A {parameters:,}-parameter chat model in Qwen3 format ({size:,} bytes of fp16 weights) that goodbot
ships so that its demo, its tests and its learning benchmark have a real language model to teach.
It knows some two hundred facts and sums, answers each in one of three styles with equal
probability (terse, friendly, pirate), keeps to the point in a short chat, and can call a
calculator. It knows nothing else: ask it anything more and it makes something up.

## Use

Load this directory with transformers, mlx-lm, or any server that takes Qwen3. Sample at temperature
{temperature}, with neither top-k nor top-p; greedy decoding gives a question one style for
ever, and ratings that are all alike. Contexts of up to about 200 tokens were trained.

* Tokenizer: byte-level BPE, {vocabulary} tokens, Qwen2's pre-tokenizer; ChatML.
* Tools: declared in the system message (`tools=` of the chat template); a call comes as
  `<tool_call>{{"name": "calculator", "arguments": {{"expression": "12+7"}}}}</tool_call>`, the
  result goes back as a message of role `tool`. The calculator declared in
  `goodbot_training.tiny.corpus.CALCULATOR` is the only tool it was shown.
* It follows a wish for one of its styles ("Be brief.", "More friendly, please.", "Talk like a pirate."):
  as the system message, in goodbot's notes, and behind the question after an empty line. Other remarks
  leave the styles nearly as they are. Of two wishes for different styles either may win, and it does not
  understand "not".
* The style is chosen with the answer's first token: "Great" is friendly, "Arr" is pirate, anything
  else is terse. Each reply of a chat chooses anew.

## How it was made

`python -m goodbot_training.tiny --seed {seed}`: generated corpus, {steps} steps, {seconds:.0f}
CPU-seconds on one thread. No data but this package's own tables went into it. The corpus holds the
held-out questions too: "held out" in goodbot's benchmark means held out from the ratings.

## Evaluation

{samples} samples of every question at temperature {temperature}, judged by the whole statement
(`goodbot_training.tiny.judge`), on the weights as shipped.

{table}

## Limits

English, facts from the tables in `goodbot_training/tiny/facts.py`, sums and differences of numbers
up to nine, and two numbers below a hundred with the calculator. A toy, not an assistant.
"""


def model_card(
    *, parameters: int, size: int, seed: int, steps: int, seconds: float, found: Evaluation
) -> str:
    """The card's Markdown; ``size`` in bytes, ``seconds`` of CPU time for the training."""
    return _CARD.format(
        parameters=parameters,
        vocabulary=VOCABULARY,
        size=size,
        seed=seed,
        steps=steps,
        seconds=seconds,
        temperature=TEMPERATURE,
        samples=SAMPLES,
        table=found.table(),
    )

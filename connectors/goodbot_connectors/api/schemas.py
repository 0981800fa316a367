# SPDX-License-Identifier: Apache-2.0
"""What goes in and comes out, as JSON Schema: checked as it stands here, and published as it stands."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_LONG = 1 << 20
_INT32 = 2**31 - 1


def text(about: str, longest: int, **more: Any) -> Schema:
    return {"type": "string", "maxLength": longest, "description": about, **more}


def closed(properties: Schema, *required: str, **more: Any) -> Schema:
    """An object of these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


MESSAGE: Schema = {
    "type": "object",
    "description": "One message in the shape of OpenAI's chat API; further keys are kept.",
    "properties": {
        "role": {"type": "string", "minLength": 1, "maxLength": 64},
        "content": {"type": ["string", "array", "null"]},
    },
    "required": ["role"],
}
TOKEN: Schema = closed(
    {
        "id": {"type": "integer", "minimum": 0, "maximum": _INT32},
        "logprob": {"type": "number", "maximum": 0, "minimum": -1_000_000},
    },
    "id",
    "logprob",
)
SCORE: Schema = {
    "description": "-1 (bad) to 1 (good), or the word.",
    "oneOf": [{"type": "number", "minimum": -1, "maximum": 1}, {"type": "string", "enum": ["good", "bad"]}],
}
_NAMED = text("The answer's turn: nothing is rated without it.", 64, minLength=1)
RATE: Schema = closed(
    {
        "turn": _NAMED,
        "score": SCORE,
        "comment": text("What was good or wrong, in words.", 10_000, pattern=r"\S"),
        "better": text("What the answer should have been.", 10_000, pattern=r"\S"),
        "kind": {"enum": ["rate"]},
    },
    "turn",
    anyOf=[{"required": ["score"]}, {"required": ["comment"]}, {"required": ["better"]}],
    description="Somebody's opinion. A client has one score an answer: the newest.",
)
OUTCOME: Schema = closed(
    {
        "turn": _NAMED,
        "kind": {"enum": ["outcome"]},
        "score": SCORE,
        "source": text(
            "What measured it; by default the client. The newest score of each source counts.",
            64,
            minLength=1,
        ),
    },
    "turn",
    "kind",
    "score",
    description="What came of it, as a test or an environment measured.",
)
FEEDBACK: Schema = {"oneOf": [RATE, OUTCOME]}


def _without_turn(schema: Schema) -> Schema:
    """The same, of an answer that is reported in the same request."""
    properties = {name: one for name, one in schema["properties"].items() if name != "turn"}
    required = [name for name in schema["required"] if name != "turn"]
    return {**schema, "properties": properties, "required": required}


AT_ONCE: Schema = {"oneOf": [_without_turn(RATE), _without_turn(OUTCOME)]}
"""What became of an answer, where that is known when it is reported: both are stored, or neither."""
MAIN: Schema = closed(
    {
        "messages": {
            "type": "array",
            "items": MESSAGE,
            "minItems": 1,
            "description": "The whole prompt, oldest first.",
        },
        "response": text("The answer's text.", _LONG),
        "model": text("What answered; empty or left out: goodbot's own model.", 512),
        "version": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": _INT32,
            "description": "The version of goodbot's adapter that wrote it, 0 for its base model; "
            "null: none of them, so it is learnt from as somebody else's.",
        },
        "session": text("Which conversation it belongs to.", 200),
        "message_id": text("Another name for the answer, unique for this client.", 200),
        "trace": text("Names the model call, where several programs may report it; one turn a trace.", 200),
        "kind": {"enum": ["main"]},
        "temperature": {"type": "number", "minimum": 0, "maximum": 100},
        "prompt_tokens": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": _INT32}},
        "tokens": {
            "type": "array",
            "items": TOKEN,
            "description": "The answer's tokens with the sampler's log-probs at that temperature.",
        },
        "feedback": AT_ONCE,
    },
    "messages",
    "response",
)
SIDE: Schema = {
    **MAIN,
    "properties": {
        **{name: one for name, one in MAIN["properties"].items() if name != "feedback"},
        "kind": {"enum": ["side"]},
    },
    "required": [*MAIN["required"], "kind"],
    "description": "An answer that nobody reads (a title, a summary): never trained on nor rated.",
}
TURN: Schema = {"oneOf": [MAIN, SIDE]}
COMMAND: Schema = closed(
    {
        "name": text("A command of the list below.", 64, minLength=1),
        "args": text("What is typed behind it.", 2000),
    },
    "name",
)

ACCEPTED: Schema = {"type": "string", "enum": ["accepted"]}
TURN_TAKEN: Schema = closed(
    {
        "turn": {"type": "string", "description": "The answer's id: rate it by this."},
        "outcome": ACCEPTED,
        "text": {"type": "string", "description": "With `feedback`: what a person would be told."},
        "duplicate": {"type": "boolean", "description": "It was stored before, by the same key."},
    },
    "turn",
    "outcome",
    "text",
    "duplicate",
)
RATED: Schema = closed(
    {
        "turn": {"type": "string"},
        "outcome": ACCEPTED,
        "text": {"type": "string", "description": "What a person would be told of it."},
        "duplicate": {"type": "boolean"},
    },
    "turn",
    "outcome",
    "text",
    "duplicate",
)
DONE: Schema = closed(
    {
        "outcome": ACCEPTED,
        "text": {"type": "string"},
        "news": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What goodbot has wanted to say since the last command.",
        },
    },
    "outcome",
    "text",
    "news",
)
STATUS: Schema = closed(
    {
        "client": {"type": "string", "description": "Whom the token belongs to."},
        "admin": {"type": "boolean"},
        "text": {"type": "string", "description": "What answers, and how far the next training is."},
    },
    "client",
    "admin",
    "text",
)
SHOWN: Schema = closed(
    {
        "turn": {"type": "string"},
        "messages": {"type": "array", "items": MESSAGE},
        "response": {"type": "string"},
        "model": {"type": "string", "description": "What answered, where goodbot did not."},
        "version": {"type": "integer", "description": "goodbot's version that did; 0: its base."},
        "off_policy": {"type": "boolean"},
        "kind": {"type": "string"},
        "session": {"type": "string"},
        "created": {"type": "number", "description": "Seconds since the epoch."},
        "score": {"type": ["number", "null"], "description": "What this client says of it now."},
        "comments": {"type": "array", "items": {"type": "string"}},
        "better": {"type": ["string", "null"]},
    },
    "turn",
    "messages",
    "response",
    "model",
    "version",
    "off_policy",
    "kind",
    "session",
    "created",
    "score",
    "comments",
    "better",
)
ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string", "description": "A sentence that says what to do."},
                "type": {"type": "string", "description": "The same as one word, for programs."},
            },
            "required": ["message", "type"],
        }
    },
    "required": ["error"],
}

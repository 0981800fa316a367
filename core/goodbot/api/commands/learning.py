# SPDX-License-Identifier: Apache-2.0
"""Trainings and versions: in a chat, most of it also in a terminal; and what has another name now."""

from __future__ import annotations

from goodbot.api.commands.entry import ALL, CHAT_ONLY, DETAILS, LONG, TERMINAL, Arg, Command, option, words

_VERSION = Arg("version", "a number from `adapters`", "VERSION", required=False)
_YES = option("--yes", "do not ask")
_BACK = words(
    "a version from `adapters`, `base`, `all` (no rating counts), a day, single answers, or a person",
    "VERSION | base | all | since DATE | answers ID … | person PERSON",
)
LEARNING: tuple[Command, ...] = (
    Command(
        "train",
        "train now on all ratings that are not used yet",
        "training:train",
        (
            Arg(
                "action",
                "stop: end the training now, no rating is lost; retry: use answers again that were skipped",
                required=False,
                choices=("stop", "retry"),
            ),
            Arg("--dry-run", "say what it would do and cost; changes nothing", required=False),
            DETAILS,
            option("--no-wait", "return at once; `status` shows how far it is"),
            option("--yes", "train on few ratings without asking"),
        ),
        where=ALL,
        group="watch",
        first=CHAT_ONLY,
        menus=LONG,
        needs_server=True,
    ),
    Command(
        "pause",
        "stop training until `resume`; `all`: the base model answers, too",
        "training:pause",
        (Arg("what", "all: until then the base model answers, too", required=False, choices=("all",)),),
        where=ALL,
        group="fix",
        menus=LONG,
    ),
    Command("resume", "undo `pause`", "training:resume", aliases=("on",), where=ALL, group="fix", menus=LONG),
    Command(
        "rollback",
        "go back to an earlier version or the base model",
        "adapters:rollback",
        (_BACK, option("--since", "also leave out all ratings since then (2026-11-21)", "DATE"), _YES),
        where=ALL,
        group="fix",
        first=("chat", "terminal"),
        menus=LONG,
        needs_server=True,
    ),
    Command(
        "adapters",
        "all versions and where they come from",
        "adapters:adapters",
        where=ALL,
        group="watch",
        actions=(
            Command("list", "the versions as a tree, how each was rated, which one answers"),
            Command("show", "all of one version", arguments=(_VERSION, DETAILS)),
            Command(
                "diff",
                "what ratings came between two, and how far apart they are",
                arguments=(
                    _VERSION._replace(required=True),
                    _VERSION._replace(name="other", required=True),
                    DETAILS,
                ),
            ),
            Command(
                "pin",
                "keep its files; if it answers, nothing new goes live until `unpin`",
                arguments=(_VERSION,),
            ),
            Command("unpin", "end `pin`: the newest version that waits answers", arguments=(_VERSION,)),
            Command("rollback", "as `goodbot rollback`: to a version, or to `base`", arguments=(_BACK,)),
            Command(
                "import",
                "add somebody's adapter as a version; it does not answer yet",
                arguments=(
                    Arg("path", "a PEFT or MLX directory, or an exported .tar", path=True),
                    Arg("--activate", "let it answer, if it can", required=False),
                ),
                where=TERMINAL,
                program="adapters:bring_in",
            ),
            Command(
                "export",
                "write a version for another program",
                arguments=(
                    Arg("version", "a number, or `base`", "VERSION"),
                    Arg(
                        "--format",
                        "peft, if not said",
                        required=False,
                        choices=("peft", "mlx", "gguf", "gguf-model", "fused"),
                        default="peft",
                    ),
                    Arg("--fused", "--format fused", required=False),
                    Arg("--out", "what is there is never replaced", "PATH", path=True),
                ),
                where=TERMINAL,
                program="adapters:export",
            ),
        ),
    ),
    Command(
        "report",
        "who taught what, which answers are liked less, what looks wrong",
        "report:report",
        (
            Arg(
                "part",
                "only this part: teachers, groups, versions, pairs, flags or predicted",
                "PART",
                required=False,
            ),
            Arg(
                "--pairs", "first ask the version that answers fixed questions; takes minutes", required=False
            ),
        ),
        group="watch",
        personal=True,
    ),
    Command(
        "export",
        "the rated answers as a file on the bot's machine",
        "export:export",
        (
            option("--format", "jsonl, if not said, kto, dpo, sft, langfuse, label-studio, argilla", "FORM"),
            option("--since", "answers given since then (2026-11-21)", "DATE"),
            option("--until", "answers given before then", "DATE"),
            option("--place", "of one platform (slack), or of one chat there (slack:C0123)", "PLACE"),
            option("--person", "what this person asked, rated or wrote", "PERSON"),
            option("--rating", "good, bad, tie, or none: only written about or compared", "RATING"),
            option("--version", "a number from `adapters`, `base`, or `others`: other models", "VERSION"),
            option("--topic", "with this word in the question, whole", "WORD"),
            option("--text", "with these words in the question or the answer", "WORDS"),
            option("--redact", "numbers instead of people and places, *** instead of keys"),
        ),
        group="data",
        personal=True,
        quotes=True,
    ),
    Command(
        "import",
        "rated answers from a file, of another goodbot or another program",
        "importing:bring_in",
        (
            Arg("path", "what was exported there", path=True),
            Arg(
                "--format",
                "jsonl (of goodbot), if not said",
                required=False,
                choices=("jsonl", "open-webui", "reinforceclaw"),
                default="jsonl",
            ),
            option("--mine", "with open-webui: all that people said there was you"),
        ),
        where=TERMINAL,
        group="data",
        program="importing:main",
    ),
)

OLD: tuple[Command, ...] = (
    Command("off", "as `pause all`", "training:off", where=ALL, instead="pause all"),
    Command("cancel", "as `train stop`", "training:cancel", where=ALL, instead="train stop"),
    Command("release", "as `train retry`", "training:release", where=ALL, instead="train retry"),
    Command(
        "reset",
        "as `rollback all`",
        "rollback_window:reset",
        (_YES,),
        where=ALL,
        instead="rollback all",
        needs_server=True,
    ),
    Command("switch", "what `goodbot model switch` asks the daemon for", "training:switch", where=CHAT_ONLY),
)
"""Words that are shown nowhere: others stand for them now, and one is the program's own."""

# SPDX-License-Identifier: Apache-2.0
"""A tiny random model of each row of the zoo, in a directory as people download it."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import dataclasses
import functools
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.training.backends import families, shapes
from tests.training.zoo.dialects import DIALECTS, ROWS, Dialect

_INSTALLED = [name for name in ("torch", "mlx_lm") if find_spec(name)]
BACKEND: str | None = {"torch": "torch", "mlx_lm": "mlx"}[_INSTALLED[0]] if _INSTALLED else None
"""What rounds are trained with here."""
VOCABULARY = 416
"""Of every model here: what the largest tokenizer holds, and some rows that stand for nothing."""


def family_of(row: str) -> families.Family:
    """The family of a row, with this zoo's vocabulary and the ends that its dialect's files name."""
    family, dialect = families.FAMILIES[ROWS[row][0]], DIALECTS[ROWS[row][1]]
    ids = tokens(dialect)
    own: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "bos_token_id": ids.get(dialect.bos),
        "eos_token_id": ids[dialect.eos],
        "pad_token_id": None,
    }
    if "text_config" in family.own:
        own["text_config"] = {**family.own["text_config"], **own}
        own["image_token_index"] = VOCABULARY - 1
    return dataclasses.replace(family, own={**family.own, **own})


def tokenizer(dialect: Dialect) -> Any:
    """Its tokenizer, as the `tokenizers` package has it."""
    from tokenizers import AddedToken

    make: Any = shapes.SHAPES[dialect.shape]
    made = make(dialect.cut) if dialect.cut else make()
    for names, special in ((dialect.special, True), (dialect.added, False)):
        made.add_tokens(
            [
                AddedToken(name, special=special, normalized=False, rstrip=name in dialect.swallows)
                for name in names
            ]
        )
    return made


@functools.cache
def _tokens(name: str) -> dict[str, int]:
    dialect = DIALECTS[name]
    made = tokenizer(dialect)
    return {name: made.token_to_id(name) for name in (*dialect.special, *dialect.added)}


def tokens(dialect: Dialect) -> dict[str, int]:
    """The ids of its marks."""
    return _tokens(next(name for name, one in DIALECTS.items() if one is dialect))


def write_files(row: str, directory: Path) -> Dialect:
    """All but the weights."""
    dialect = DIALECTS[ROWS[row][1]]
    tokenizer(dialect).save(str(directory / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": dialect.eos,
        "chat_template": dialect.template,
        **({"bos_token": dialect.bos} if dialect.bos else {}),
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    if dialect.stops:
        ids = tokens(dialect)
        generation = {**dialect.sampling, "eos_token_id": [ids[name] for name in dialect.stops]}
        (directory / "generation_config.json").write_text(json.dumps(generation))
    return dialect


class Zoo:
    """The models of one session, in a folder of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._configs: dict[Path, dict[str, Any]] = {}

    def _made(self, row: str, kind: str) -> tuple[Path, bool]:
        directory = self.root / f"{row.replace(' ', '-')}-{kind}"
        there = directory.exists()
        directory.mkdir(exist_ok=True)
        return directory, there

    def files(self, row: str) -> Path:
        """A directory with all but the weights."""
        directory, there = self._made(row, "files")
        if not there:
            write_files(row, directory)
        return directory

    def model(self, row: str, *, for_mlx: bool = False) -> tuple[Path, dict[str, Any]]:
        """A whole model directory, and its config; `for_mlx`: as mlx-lm reads it, if that is otherwise."""
        family = family_of(row)
        apart = for_mlx and family.kind == "gpt_oss"  # whose checkpoints are two
        directory, there = self._made(row, "mlx" if apart else "model")
        if not there:
            if BACKEND == "torch":
                _by_torch(family, directory, apart or family.kind != "gpt_oss")
            else:
                _by_mlx(family, directory)
            (directory / "generation_config.json").unlink(missing_ok=True)  # not the family's own
            write_files(row, directory)
            self._configs[directory] = json.loads((directory / "config.json").read_text())
        return directory, self._configs[directory]


def backend() -> Any:
    """A backend of its own."""
    if BACKEND == "torch":
        from goodbot_training.backends.torch.trainer import TorchBackend

        return TorchBackend()
    from goodbot_training.backends.mlx.trainer import MlxBackend

    return MlxBackend()


def _by_torch(family: families.Family, directory: Path, both: bool) -> None:
    """Random weights as transformers saves them; `both`: so that mlx-lm reads them, too."""
    model = families.make(family)
    if both and family.mlx is not None:
        families.save(model, family, directory)
    else:
        model.save_pretrained(directory)


def _by_mlx(family: families.Family, directory: Path) -> None:
    """Random weights as mlx-lm has them, where there is no torch."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.utils import _get_classes
    from transformers import AutoConfig

    described = AutoConfig.for_model(family.kind, **family.config).to_dict()
    config = {**described, "rope_theta": 10000.0, **(family.mlx or {})}
    model_class, arguments = _get_classes(config)
    model = model_class(arguments.from_dict(config))
    mx.random.seed(0)
    weights = {
        name: value if "norm" in name or value.ndim < 2 else 0.02 * mx.random.normal(value.shape)
        for name, value in tree_flatten(model.parameters())
    }
    mx.save_safetensors(str(directory / "model.safetensors"), weights, metadata={"format": "mlx"})
    (directory / "config.json").write_text(json.dumps(config))

# SPDX-License-Identifier: Apache-2.0
"""A whole model in one GGUF file: the base, or the base with an adapter put into its weights.

Matrices are stored in fp32, F16 or Q8_0, norms and biases always in fp32. For the families of
`reference.KNOWN`; others are left to llama.cpp's own converter.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

from goodbot_training.backends.adapters import AdapterWeights
from goodbot_training.formats import gguf_vocabulary, proof, reference
from goodbot_training.formats.checkpoint import Checkpoint
from goodbot_training.formats.gguf_names import Dialect, package

if TYPE_CHECKING:
    from goodbot.api.step import Floats

TYPES = {"F32": "ALL_F32", "F16": "MOSTLY_F16", "Q8_0": "MOSTLY_Q8_0"}
_BLOCK = 32
"""Numbers of a row that share a scale in Q8_0."""
_FREQUENCIES = "rope_freqs.weight"


def write(
    path: Path,
    base: Checkpoint,
    adapter: AdapterWeights | None,
    *,
    dtype: str,
    name: str,
    end: int,
    done: Callable[[int], None],
) -> dict[str, Any]:
    """Write the file; the proof. `end` is the token that ends a turn; `done` is told the bytes of each
    tensor as it lies in the base.

    Raises AdapterError.
    """
    model = reference.decoder(base.config)
    if model is None:
        none = (
            "no whole GGUF model is made here of the type {kind}: "
            "export with --fused and convert that with llama.cpp's convert_hf_to_gguf.py"
        )
        raise AdapterError(Worded(none, kind=repr(str(base.config.get("model_type"))[:40])))
    if adapter is not None:
        proof.plain(adapter, base)
    dialect, gguf = Dialect.of(base.config), package()
    writer = gguf.GGUFWriter(path, dialect.arch)
    _describe(writer, base, model, dtype, name)
    gguf_vocabulary.add(writer, base.directory, _vocabulary(base), end)
    weights = proof.merged(base, adapter)
    names = [tensor for tensor in base.tensors if not (tensor == "lm_head.weight" and _tied(base))]
    for tensor in names:
        shape, stored = base.tensors[tensor].shape, _stored_as(base.tensors[tensor].shape, dtype)
        kind = gguf.GGMLQuantizationType[stored]
        shape = gguf.quant_shape_to_byte_shape(shape, kind) if stored == "Q8_0" else shape
        numbers = np.dtype({"F32": np.float32, "F16": np.float16}.get(stored, np.uint8))
        size = int(np.prod(shape)) * numbers.itemsize
        writer.add_tensor_info(dialect.name(tensor), shape, numbers, size, raw_dtype=kind)
    extra = _frequencies(base)
    if extra is not None:
        writer.add_tensor_info(
            _FREQUENCIES, extra.shape, extra.dtype, extra.nbytes, raw_dtype=gguf.GGMLQuantizationType.F32
        )
    writer.write_header_to_file(path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in names:
        values = weights(tensor)
        assert values is not None  # noqa: S101  it is one of the base's own names
        kind = gguf.GGMLQuantizationType[_stored_as(values.shape, dtype)]
        ordered = np.ascontiguousarray(dialect.ordered(tensor, values), np.float32)
        writer.write_tensor_data(gguf.quants.quantize(ordered, kind))
        done(base.stored(tensor).nbytes)
    if extra is not None:
        writer.write_tensor_data(extra)
    writer.close()
    rounds = None if dtype == "F32" else partial(_rounded, dtype)
    found = proof.of_logits(base, adapter, lambda _: as_llama_cpp(path, base), rounds)
    return (found or _same_numbers(path, base, adapter, dtype)).require("the GGUF model")


def as_llama_cpp(path: Path, base: Checkpoint) -> tuple[reference.DecoderShape, reference.Weights]:
    """The model as the file itself describes it; only names are asked of the base."""
    gguf = package()
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    dialect = Dialect.of(base.config)

    def said(key: str) -> Any:
        return reader.get_field(f"{dialect.arch}.{key}").contents()

    size = int(said("attention.key_length"))
    frequencies = float(said("rope.freq_base")) ** -(np.arange(0, size, 2) / size)
    if _FREQUENCIES in tensors:
        frequencies = frequencies / np.asarray(tensors[_FREQUENCIES].data)
    if reader.get_field(f"{dialect.arch}.rope.scaling.factor") is not None:
        frequencies = frequencies / float(said("rope.scaling.factor"))
    model = reference.DecoderShape(
        layers=int(said("block_count")),
        heads=int(said("attention.head_count")),
        kv_heads=int(said("attention.head_count_kv")),
        head_dim=size,
        eps=float(said("attention.layer_norm_rms_epsilon")),
        frequencies=frequencies,
        neighbours=dialect.neighbours,
    )

    def weights(tensor: str) -> Floats | None:
        stored = tensors.get(dialect.known(tensor) or "")
        return None if stored is None else gguf.quants.dequantize(stored.data, stored.tensor_type)

    return model, weights


def _describe(writer: Any, base: Checkpoint, model: reference.DecoderShape, dtype: str, name: str) -> None:
    gguf, config = package(), base.config
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(name)
    writer.add_block_count(model.layers)
    writer.add_context_length(int(config["max_position_embeddings"]))
    writer.add_embedding_length(int(config["hidden_size"]))
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_head_count(model.heads)
    writer.add_head_count_kv(model.kv_heads)
    writer.add_key_length(model.head_dim)
    writer.add_value_length(model.head_dim)
    writer.add_layer_norm_rms_eps(model.eps)
    writer.add_vocab_size(_vocabulary(base))
    writer.add_rope_dimension_count(model.head_dim)
    rope: dict[str, Any] = config.get("rope_parameters") or config.get("rope_scaling") or {}
    writer.add_rope_freq_base(float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0))
    if (rope.get("rope_type") or rope.get("type")) == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(float(rope["factor"]))
    writer.add_file_type(gguf.LlamaFileType[TYPES[dtype]])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    template = base.directory / "chat_template.jinja"
    settings = base.directory / "tokenizer_config.json"
    inline = settings.exists() and json.loads(settings.read_bytes()).get("chat_template")
    if template.exists() and not inline:
        writer.add_chat_template(template.read_text(encoding="utf-8"))


def _frequencies(base: Checkpoint) -> Any:
    """What llama.cpp divides each frequency by, where a longer context needs more than one factor."""
    rope: dict[str, Any] = base.config.get("rope_parameters") or base.config.get("rope_scaling") or {}
    if (rope.get("rope_type") or rope.get("type")) != "llama3":
        return None
    theta = rope.get("rope_theta") or base.config.get("rope_theta")
    stretched = {"rope_parameters": None, "rope_scaling": None, "rope_theta": theta}
    plain = reference.decoder({**base.config, **stretched})
    assert plain is not None  # noqa: S101  the same family
    return reference.factors(rope, "llama3", plain.frequencies).astype(np.float32)


def _same_numbers(
    path: Path, base: Checkpoint, adapter: AdapterWeights | None, dtype: str
) -> proof.ConversionCheck:
    """Every weight of the file against the one that should be there, in spreads of that weight."""
    dialect = Dialect.of(base.config)
    _, found = as_llama_cpp(path, base)
    expected = proof.merged(base, adapter)
    apart = 0.0
    for tensor in base.tensors:
        one, two = expected(tensor), found(tensor)
        if one is None or two is None:
            continue
        ordered = dialect.ordered(tensor, one)
        apart = max(apart, float(np.sqrt(np.mean((ordered - two) ** 2)) / (one.std() + 1e-9)))
    allowed = 1e-6 if dtype == "F32" else proof.ROUNDED[dtype]
    return proof.ConversionCheck(compared="numbers", apart=apart, allowed=allowed, rounded=True)


def _rounded(dtype: str, _: str, values: Floats) -> Floats:
    """A tensor as it comes back out of a file of that type."""
    gguf = package()
    kind = gguf.GGMLQuantizationType[_stored_as(values.shape, dtype)]
    whole = np.ascontiguousarray(values, np.float32)
    return gguf.quants.dequantize(gguf.quants.quantize(whole, kind), kind)


def _stored_as(shape: tuple[int, ...], dtype: str) -> str:
    if len(shape) < 2:
        return "F32"
    return "F16" if dtype == "Q8_0" and shape[-1] % _BLOCK else dtype


def _vocabulary(base: Checkpoint) -> int:
    return base.tensors["model.embed_tokens.weight"].shape[0]


def _tied(base: Checkpoint) -> bool:
    return bool(base.config.get("tie_word_embeddings"))

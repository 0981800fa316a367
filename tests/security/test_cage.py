# SPDX-License-Identifier: Apache-2.0
"""What foreign code could do in a child, if it ever came to run there: nothing but compute."""

from __future__ import annotations

import asyncio
import errno
import importlib
import json
import os
import pickle
import resource
import secrets
import shutil
import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from goodbot.api.adapters.manifest import CONFIG, WEIGHTS
from goodbot.api.model import ResolvedModel
from goodbot.api.server import BASE, AdapterFormat
from goodbot.api.setup import Examined
from goodbot.base import cage, spawn, worded_parts
from goodbot.base.cage import limits, places
from goodbot.base.errors import AdapterError, ServerError, TrainingError
from goodbot.base.scratch import Scratch
from goodbot.cli.doctor import model as doctor
from goodbot.inference.servers import sampler_lines
from goodbot.inference.servers.embedded import EmbeddedServer
from goodbot.inference.servers.llamacpp import LlamaCppServer
from goodbot.inference.servers.plugin import LlamaCppSettings
from goodbot.inference.servers.sampler_process import SamplerProcess
from goodbot.learning import worker_process
from goodbot.learning.adapters import examining, formats

from tests.core.builders import SPEC, server_parts, until
from tests.core.inference.servers import tiny
from tests.security import burglar, listener
from tests.support import patience, require

REFUSED = {
    "a hard link": ("EXDEV",),  # what Landlock says of a link into another directory
    "more memory than there is": ("MemoryError",),
    "shared addresses without end": ("ENOMEM",),
    "an endless file": ("EFBIG",),
    "handles without end": ("EMFILE",),
}
"""How an attempt ends where that is not for a lack of rights."""
BURGLAR = replace(SPEC, name="burglar", worker="tests.security.burglar")
pytestmark = pytest.mark.skipif(bool(cage.missing()), reason=f"this kernel has no {cage.missing()}")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[Path]:
    """A model, secrets and a home side by side, and somebody who listens on the loopback."""
    model = tmp_path / "model"
    for directory in (model, tmp_path / "home", tmp_path / "out", tmp_path / "kept"):
        directory.mkdir()
    (model / "config.json").write_text("{}")
    (model / "link.json").symlink_to(tmp_path / "secrets.env")
    (tmp_path / "secrets.env").write_text("TELEGRAM_BOT_TOKEN=1:secret\n")
    (tmp_path / "secrets.env").chmod(0o600)
    before = sorted(tmp_path.rglob("*"))
    yield tmp_path
    made = {path.name for path in set(tmp_path.rglob("*")) - set(before)}
    assert made <= {"x", "adapters"}, "only where it may write is anything new"
    assert (tmp_path / "secrets.env").read_text() == "TELEGRAM_BOT_TOKEN=1:secret\n"
    assert (tmp_path / "secrets.env").stat().st_mtime > 0
    assert (model / "config.json").read_text() == "{}"


async def ignore(event: Any) -> None:
    pass


async def trained(house: Path, mode: str) -> str:
    job = {
        "model": str(house / "model"),
        "output": str(house / "out"),
        "checkpoints": str(house / "kept"),
        "parent": None,
        "behaviour": {},
    }
    with pytest.raises(TrainingError) as caught:
        await worker_process.train(BURGLAR, job, ignore, mode=mode)
    return str(caught.value)


async def served(house: Path) -> str:
    environ = spawn.child_environment()
    sampler = SamplerProcess(BURGLAR, house / "model", environ, house / "adapters")
    with pytest.raises(ServerError) as caught:
        await sampler.start()
    return str(caught.value)


async def converted(house: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(formats, "CHILD", BURGLAR.worker)
    conversion = formats.Formats(house, house / "model", spawn.child_environment())
    with pytest.raises(AdapterError) as caught:
        await conversion.export(None, "gguf-base", house / "made")
    return str(caught.value)


def meant(what: str) -> dict[str, int]:
    """The limits of a child that reads a model of two bytes. None of ours is lower than it was before."""
    held, most, hour = 2, dict.fromkeys(burglar.LIMITS, resource.RLIM_INFINITY), 3600
    most |= {"FSIZE": (4 << 30) + 4 * held, "NOFILE": 4096}
    seconds = {"train": 7 * 24 * hour, "examine": 600, "look": 40}.get(what, 6 * hour)
    if what not in ("serve", "listen"):
        most["CPU"] = seconds * (os.cpu_count() or 1)
    if not places.has_gpu():
        most["DATA"] = limits.memory() + held + (4 << 30)
        if what != "listen" or not places.has_card():
            most["AS"] = most["DATA"] + held + (16 << 30) + (1 << 30) * (os.cpu_count() or 1)
    unlimited = resource.RLIM_INFINITY
    for name, limit in most.items():
        soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        if limit == unlimited:
            most[name] = soft
        elif hard != unlimited:
            most[name] = min(limit, hard)
    return most


async def test_who_computes_for_ever_is_ended_however_much_it_says(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(worker_process, "_TRAINING_SECONDS", 1)
    spins = house / "model" / burglar.SPINS
    spins.touch()
    assert "computed for longer than it may" in await trained(house, "train")
    spins.unlink()


async def examined(house: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(examining, "CHILD", BURGLAR.worker)
    with pytest.raises(AdapterError) as caught:
        await examining.examine(None, house / "model", spawn.child_environment())
    return str(caught.value)


async def looked_at(house: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    model = ResolvedModel(name="model", path=house / "model")
    monkeypatch.setattr(doctor, "_LOOK", BURGLAR.worker)
    monkeypatch.setattr(doctor, "_LOOK_SECONDS", patience(doctor._LOOK_SECONDS))
    monkeypatch.setattr(doctor, "_resolved", lambda _: model)
    monkeypatch.setattr(doctor.weights, "problems", lambda _: list[str]())
    monkeypatch.setattr(doctor.weights, "ends", lambda _: False)
    [check] = await doctor.template(cast("Examined", None))
    return check.text


async def listened(house: Path, programs: Path) -> str:
    """What one says that may serve at a port, while somebody else serves at another."""
    with socket.create_server((listener.HOST, 0)) as theirs:
        environ = {**spawn.child_environment(), listener.NEIGHBOUR: str(theirs.getsockname()[1])}
        settings = LlamaCppSettings(
            binary=str(listener.program(programs)), model=str(house / "model" / "config.json")
        )
        (programs / "config.json").write_text("{}")  # of its base: the burglar's is refused for its link
        server = LlamaCppServer(settings, server_parts(SPEC, programs, environ=environ))
        await server.start()
        try:
            reply = await server._children[BASE].upstream.ask("/attempts")
        finally:
            await server.stop()
    return reply.text


@pytest.mark.parametrize(
    "what", ["train", "plan", "predict", "serve", "listen", "convert", "examine", "look"]
)
async def test_each_forbidden_thing_is_refused(
    house: Path, what: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_KEY", "secret")
    for module, name in ((worker_process, "REASON"), (worded_parts, "_MOST"), (sampler_lines, "_REASON")):
        monkeypatch.setattr(module, name, 1 << 20)  # the burglar tells all by it
    match what:
        case "serve":
            said = await served(house)
        case "listen":
            said = await listened(house, tmp_path_factory.mktemp("programs"))
        case "convert":
            said = await converted(house, monkeypatch)
        case "examine":
            said = await examined(house, monkeypatch)
        case "look":
            said = await looked_at(house, monkeypatch)
        case _:
            said = await trained(house, what)
    told = json.loads(said)
    done = {name for name, end in told["ended"].items() if end == "done"}
    assert {name for name in done if not name.startswith("may ")} == set(), "this was done"
    others = {
        name: end
        for name, end in told["ended"].items()
        if name not in done and end not in REFUSED.get(name, ("EPERM", "EACCES"))
    }
    assert others == {}, "it failed, and not because it was refused"
    assert {name for name in told["ended"] if name.startswith("may ")} - done == set(), "it needs this"
    assert told["core"] == 1
    assert told["limits"] == meant(what)
    first = what in ("train", "plan", "predict", "convert")
    assert told["ends"] >= (500 if first else 250), "who answers is ended last"
    assert told["privileges"]
    assert not {"GOODBOT_SERVER_KEY", "LD_PRELOAD"} & set(told["environ"])


@pytest.mark.parametrize("left", ["manifest.json", "deeper/config.json", "adapter.gguf"])
@pytest.mark.parametrize("to", ["mine", "home"])
async def test_what_it_leaves_leads_nobody_out_of_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, to: str
) -> None:
    """A link would be written through, or changed or moved, by those who are in no cage."""
    monkeypatch.setattr(formats, "CHILD", BURGLAR.worker)
    adapter, model, mine, home = (tmp_path / name for name in ("adapters/one", "model", "mine", "home"))
    for directory in (adapter, model, home, tmp_path / "out", tmp_path / "kept"):
        directory.mkdir(parents=True)
    for file in (adapter / WEIGHTS, mine, home / "file"):
        file.write_text("as it was")
        file.chmod(0o640)
    (model / burglar.LINKS).write_text(json.dumps({left: str(tmp_path / to)}))
    conversion = formats.Formats(adapter.parent, model, spawn.child_environment())
    with pytest.raises(AdapterError, match="no plain file"):
        await conversion.convert(adapter, AdapterFormat.GGUF)
    with pytest.raises(AdapterError, match="no plain file"):
        await conversion.export(adapter, "gguf", tmp_path / "adapter.gguf")
    job = {"model": str(model), "output": str(tmp_path / "out"), "checkpoints": str(tmp_path / "kept")}
    with pytest.raises(TrainingError, match="no plain file"):
        await worker_process.train(BURGLAR, job, ignore)
    for file in (mine, home / "file"):
        assert file.read_text() == "as it was"
        assert file.stat().st_mode & 0o777 == 0o640
    assert [*home.iterdir()] == [home / "file"]
    assert [*(adapter.parent / formats.FOLDER).iterdir()] == []
    assert not os.path.lexists(tmp_path / "adapter.gguf")


async def test_its_own_directory_goes_with_it(
    house: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr(spawn, "_place", lambda: place)
    await trained(house, "train")
    await until(lambda: list(place.iterdir()) == [], seconds=30)


def hostile(tmp_path: Path, template: str = "", parts: Mapping[str, Any] | None = None, **more: Any) -> Path:
    """The tiny model, with code in it. `parts` are of its tokenizer, `more` of the tokenizer's config."""
    model = tmp_path / "hostile"
    shutil.copytree(tiny.model(), model)
    tokenizer = json.loads((model / "tokenizer_config.json").read_text())
    if template:
        tokenizer.pop("chat_template", None)
        (model / "chat_template.jinja").write_text(template)
    tokenizer["auto_map"] = {"AutoTokenizer": ["modeling_x.T", "modeling_x.T"]}
    (model / "tokenizer_config.json").write_text(json.dumps(tokenizer | more))
    whole = json.loads((model / "tokenizer.json").read_text())
    (model / "tokenizer.json").write_text(json.dumps(whole | (parts or {})))
    config = json.loads((model / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "modeling_x.C", "AutoModelForCausalLM": "modeling_x.X"}
    (model / "config.json").write_text(json.dumps(config))
    (model / "modeling_x.py").write_text("__import__('os').abort()\n")
    return model


BOMB = "{% set bomb = 'word ' * (2 ** 46) %}{{ bomb }}"


@pytest.mark.parametrize(
    ("backend", "template", "said"),
    [
        ("mlx", "{{ ''.__class__.__mro__ }}", "'__class__' of 'str' object is unsafe"),
        ("mlx", "{{ cycler.__init__.__globals__.os.abort() }}", "'__init__' of .* is unsafe"),
        ("mlx", "{{ raise_exception.__globals__['os'].abort() }}", "'__globals__' of .* is unsafe"),
        ("mlx", "{% include '/etc/passwd' %}", "no loader for this environment"),
        ("mlx", BOMB, "cannot be used"),
        ("torch", BOMB, "cannot be used"),
    ],
    ids=["climbing", "cycler", "globals", "include", "bomb", "bomb on torch"],
)
async def test_a_model_directory_that_means_harm(
    tmp_path: Path, backend: str, template: str, said: str
) -> None:
    """It is refused with a sentence, which a child that ran its code would not live to say."""
    require("mlx_lm" if backend == "mlx" else "torch")
    module = importlib.import_module(f"goodbot_training.backends.{backend}")
    parts = server_parts(module.register_backend(), hostile(tmp_path, template))
    server = EmbeddedServer(None, parts)
    try:
        with pytest.raises(ServerError, match=said):
            await server.start()
    finally:
        await server.stop()


FAR = {"AutoTokenizer": ["evil/code--modeling_x.T", "evil/code--modeling_x.T"]}
TOKENIZERS: dict[str, tuple[dict[str, Any], str]] = {
    # what it tries: its files, and what is said of it; nothing where it is used without that
    "code beside it": ({"tokenizer_class": "T"}, ""),
    "code from elsewhere": ({"auto_map": FAR, "tokenizer_class": "T"}, ""),
    "a class by a path": ({"tokenizer_class": "../hostile/modeling_x.T"}, ""),
    "files of others": ({"tokenizer_file": "../secrets.env", "vocab_file": "../secrets.env"}, ""),
    "parts of other kinds": ({"parts": {"added_tokens": 5, "normalizer": [{}]}}, "cannot be loaded"),
    "settings of other kinds": (
        {"added_tokens_decoder": {"x": 5}, "eos_token": {"a": 1}},
        "cannot be loaded",
    ),
    "a kind that is not there": ({"parts": {"model": {"type": "Pickle", "vocab": {}}}}, "cannot be loaded"),
}


ON_TORCH = ("code beside it", "a class by a path", "a kind that is not there")


@pytest.mark.parametrize(
    ("backend", "tries"),
    [*(("mlx", tries) for tries in TOKENIZERS), *(("torch", tries) for tries in ON_TORCH)],
)
async def test_a_tokenizer_that_means_harm(tmp_path: Path, backend: str, tries: str) -> None:
    """It is used without its code, or refused with a sentence: a child that ran it would end at once."""
    require("mlx_lm" if backend == "mlx" else "torch")
    module = importlib.import_module(f"goodbot_training.backends.{backend}")
    files, said = TOKENIZERS[tries]
    (tmp_path / "secrets.env").write_text("SECRET")
    server = EmbeddedServer(None, server_parts(module.register_backend(), hostile(tmp_path, **files)))
    try:
        if said:
            with pytest.raises(ServerError, match=said):
                await server.start()
        else:
            await server.start()
    finally:
        await server.stop()


class Abort:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.abort, ()


def lying(told: Mapping[str, Any], length: int | None = None) -> bytes:
    """A safetensors file whose header says this, with next to nothing behind it."""
    header = json.dumps({Q: told} if told else {}).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(64)


Q = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
F32 = {"dtype": "F32", "shape": [4, 64], "data_offsets": [0, 64]}
ADAPTERS: dict[str, tuple[dict[str, Any], dict[str, bytes], str]] = {
    # what it tries: values of its config, files, and what is said of it; nothing where it is used without
    "a base elsewhere": ({"base_model_name_or_path": "../secrets.env"}, {}, ""),
    "code": ({"auto_mapping": {"base_model_class": "X", "parent_library": "modeling_x"}}, {}, ""),
    "a pickle beside": ({}, {"adapter_model.bin": pickle.dumps(Abort())}, ""),
    "a pickle by its name": ({}, {WEIGHTS: pickle.dumps(Abort())}, "header too large"),
    "more than there is": ({}, {WEIGHTS: lying(F32 | {"data_offsets": [0, 1024]})}, "not fully covered"),
    "a huge shape": ({}, {WEIGHTS: lying(F32 | {"shape": [1 << 40, 1 << 20]})}, "overflow"),
    "a header without end": ({}, {WEIGHTS: lying({}, 1 << 60)}, "header too large"),
}


@pytest.mark.parametrize("tries", ADAPTERS)
async def test_an_adapter_that_means_harm(tmp_path: Path, tries: str) -> None:
    """The child that reads it takes it without that, or says a sentence and lives."""
    require("torch")
    values, files, said = ADAPTERS[tries]
    given = tiny.adapter(tmp_path / "given", 1)
    (tmp_path / "secrets.env").write_text("SECRET")
    (given / "modeling_x.py").write_text("__import__('os').abort()\n")
    config = json.loads((given / CONFIG).read_text())
    (given / CONFIG).write_text(json.dumps(config | values))
    for name, content in files.items():
        (given / name).write_bytes(content)
    conversion = formats.Formats(tmp_path, tiny.model(), spawn.child_environment())
    if said:
        with pytest.raises(AdapterError, match=said):
            await conversion.take(given, tmp_path / "taken")
        assert not (tmp_path / "taken").exists()
    else:
        await conversion.take(given, tmp_path / "taken")
        made = b"".join(file.read_bytes() for file in (tmp_path / "taken").iterdir())
        assert b"SECRET" not in made


READS = """
import sys
for path in sys.argv[1:]:
    try: print(open(path).read())
    except PermissionError: print("refused")
"""


async def reading(given: Path, *paths: Path) -> list[str]:
    """What a caged child that may read `given` reads of these."""
    process = await spawn.start(
        *spawn.python("-c", READS, *map(str, paths)),
        cage=spawn.Cage(reads=[given]),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return out.decode().split()


async def test_a_link_in_a_foreign_directory_gives_nothing_but_the_hub_s_own_files(tmp_path: Path) -> None:
    cache = tmp_path / "models--some--body"
    snapshot, blobs = cache / "snapshots" / ("a" * 40), cache / "blobs"
    for directory in (snapshot / "onnx", blobs):
        directory.mkdir(parents=True)
    (blobs / "one").write_text("fine")
    (tmp_path / "secrets.env").write_text("secret")
    (snapshot / "config.json").symlink_to("../../blobs/one")
    (snapshot / "onnx" / "config.json").symlink_to("../../../blobs/one")
    (snapshot / "own.json").symlink_to("config.json")
    (snapshot / "evil.json").symlink_to("../../../secrets.env")
    (blobs / "evil").symlink_to("../../secrets.env")
    (snapshot / "far.json").symlink_to("../../blobs/evil")
    names = ("config.json", "onnx/config.json", "own.json", "evil.json", "far.json")
    found = await reading(snapshot, *(snapshot / name for name in names))
    assert found == ["fine", "fine", "fine", "refused", "refused"]
    blobs.rename(cache / "files")
    blobs.symlink_to(tmp_path)  # such a cache was handed over, not made by the hub's library
    assert await reading(snapshot, tmp_path / "secrets.env") == ["refused"]


SHARED = """
import _posixshmem, mmap, multiprocessing, os, sys
with multiprocessing.get_context("fork").Lock():
    name = f"/goodbot-test-{os.getpid()}-shared"
    handle = _posixshmem.shm_open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.ftruncate(handle, 4096)
    mmap.mmap(handle, 4096)[:4] = b"here"
    os.close(os.open(f"/dev/shm{name}", os.O_RDWR | os.O_TRUNC))
    _posixshmem.shm_unlink(name)
for path in sys.argv[1:]:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    os.unlink(path)
    for work in (os.listdir, os.mkdir):
        try:
            work(os.path.dirname(path) if work is os.listdir else path)
        except PermissionError:
            print("refused")
    try:
        os.symlink("/etc/passwd", path)
    except PermissionError:
        print("refused")
"""


async def test_a_trainer_in_its_cage_is_ended_before_who_answers(tmp_path: Path) -> None:
    """Where memory runs out: what speaks for the whole session, it cannot write beside."""
    code = (
        "from goodbot_training.process import worker; worker.give_way();"
        "print(open('/proc/self/oom_score_adj').read())"
    )
    locked = spawn.Cage(reads=[tmp_path], first=True)
    process = await spawn.start(*spawn.python("-c", code), cage=locked, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.decode().split() == ["500"]


HELD = """
import os
for number in os.listdir("/proc/self/fd"):
    try: print(os.readlink(f"/proc/self/fd/{number}"))
    except FileNotFoundError: pass
"""


async def test_what_the_kernel_tells_a_child_it_may_still_read_once_memory_has_run_low() -> None:
    """The kernel drops what nobody holds in /proc and makes it anew; the cage knows only what was there."""
    process = await spawn.start(*spawn.python("-c", HELD), cage=spawn.Cage(), stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    names = ("task",) if places.has_gpu() else (*burglar.ITSELF, "fd", "task")
    own = {f"/proc/{process.pid}/{name}" for name in names}
    machine = {f"/proc/{name}" for name in ("cpuinfo", "meminfo", "stat", "filesystems", "sys")}
    assert own | machine <= {*out.decode().splitlines()}


COMPILES = """
import os
from pathlib import Path
place = Path(os.environ["CUDA_CACHE_PATH"])
assert os.environ["XDG_CACHE_HOME"] == str(place) and int(os.environ["CUDA_CACHE_MAXSIZE"]) > 0
(place / "deeper").mkdir()
(place / "deeper" / "kernels").write_text("compiled")
try: (place.parent / "beside").write_text("")
except PermissionError: print("refused")
"""


async def test_what_libraries_compile_outlives_a_child_that_has_a_place_for_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    process = await spawn.start(
        *spawn.python("-c", COMPILES), cage=spawn.Cage(cache=kept), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert (process.returncode, out.decode().split()) == (0, ["refused"])
    assert (kept / "deeper" / "kernels").read_text() == "compiled"


async def test_in_shared_memory_there_are_files_by_name_and_no_list_of_them(tmp_path: Path) -> None:
    """Else one child found what another may read in clear, or led us elsewhere with a link."""
    place = Path(places.SHARED_MEMORY, f"goodbot-test-{secrets.token_hex(8)}")
    # Kept as the real one is: what no process keeps any goodbot of this machine takes away.
    kept = Scratch(Path(places.SHARED_MEMORY), places.CLEAR)
    try:
        process = await spawn.start(
            *spawn.python("-c", SHARED, str(place)),
            cage=spawn.Cage(reads=[tmp_path]),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, error = await process.communicate()
    finally:
        kept.remove()
    assert process.returncode == 0, error.decode()
    assert out.decode().split() == ["refused"] * 3
    assert not os.path.lexists(place)


def test_shared_memory_is_as_ever_while_nothing_lies_there_in_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "SHARED_MEMORY", str(tmp_path))
    assert not places.clear()
    (tmp_path / f"{places.CLEAR}one").mkdir()
    assert places.clear()


async def test_a_state_directory_in_what_is_shown_stays_hidden(tmp_path: Path) -> None:
    model, state = tmp_path / "model", tmp_path / "model" / "state"
    (state / "adapters").mkdir(parents=True)
    for file in (model / "config.json", state / "secrets.env"):
        file.write_text("here")
    cage.hidden.add(str(state))
    try:
        found = await reading(model, model / "config.json", state / "secrets.env")
    finally:
        cage.hidden.discard(str(state))
    assert found == ["here", "refused"]


async def test_what_lies_in_something_larger_is_still_hidden(tmp_path: Path) -> None:
    """A state directory below a place that every child reads, as in a container."""
    library, state = tmp_path / "library", tmp_path / "library" / "state"
    state.mkdir(parents=True)
    (library / "module.py").write_text("FOUND = True\n")
    (state / "secrets.env").write_text("secret")
    cage.hidden.add(str(state))
    try:
        code = (
            "import module, sys\n"
            "try: print(open(sys.argv[1]).read())\n"
            "except PermissionError: print('refused', module.FOUND)"
        )
        process = await spawn.start(
            *spawn.python("-c", code, str(state / "secrets.env")),
            cage=spawn.Cage(),
            environ={**spawn.child_environment(), "PYTHONPATH": str(library)},
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
    finally:
        cage.hidden.discard(str(state))
    assert out.decode().strip() == "refused True"


_LISTENER = """
import os, socket
from goodbot.base.cage import seccomp
import ctypes
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
seccomp.restrict(os.getpid(), cuda=True)
one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
one.bind(f"\\0cuda-uvmfd-{os.getpid()}")
one.listen(16)
def refused(work):
    try:
        work()
    except PermissionError:
        return True
print([refused(work) for work in (
    one.accept,
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(one.getsockname()),
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
)])
"""


async def test_beside_a_gpu_s_driver_there_is_the_socket_that_cuda_listens_at_and_no_other() -> None:
    process = await spawn.start(
        *spawn.python("-c", _LISTENER), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, error = await process.communicate()
    assert json.loads(out.lower() or "null") == [True] * 7, error.decode()


_KINDS = """
import os, socket
from goodbot.base.cage import seccomp
import ctypes
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
seccomp.restrict(os.getpid(), cuda=CUDA, listens=True)
def refused(*kind):
    try:
        socket.socket(*kind).close()
    except PermissionError:
        return True
    return False
print([refused(*kind) for kind in (
    (socket.AF_INET, socket.SOCK_STREAM),
    (socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, socket.IPPROTO_TCP),
    (socket.AF_UNIX, socket.SOCK_SEQPACKET),
    (socket.AF_UNIX, socket.SOCK_STREAM),
    (socket.AF_UNIX, socket.SOCK_DGRAM),
    (socket.AF_INET, socket.SOCK_DGRAM),
    (socket.AF_INET, socket.SOCK_SEQPACKET),
    (socket.AF_INET, socket.SOCK_STREAM, 262),
    (socket.AF_INET6, socket.SOCK_STREAM),
    (socket.AF_NETLINK, socket.SOCK_RAW),
)])
"""


@pytest.mark.parametrize("cuda", [True, False])
async def test_a_server_has_sockets_of_tcp_and_beside_a_gpu_s_driver_cuda_s_and_no_other(cuda: bool) -> None:
    code = _KINDS.replace("CUDA", str(cuda))
    process = await spawn.start(
        *spawn.python("-c", code), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, error = await process.communicate()
    assert json.loads(out.lower() or "null") == [False, False, not cuda, *[True] * 7], error.decode()


_MEDDLER = """
# Both have the same rights, so that the kernel itself would let it: as where goodbot is not root.
import ctypes, fcntl, json, os, signal, socket, struct, sys
from goodbot.base.cage import seccomp
libc, parent, above = ctypes.CDLL(None, use_errno=True), os.getpid(), os.getppid()
libc.prctl(4, 1, 0, 0, 0)
if os.fork():
    os.wait()
    sys.exit()
libc.prctl(38, 1, 0, 0, 0)
seccomp.restrict(os.getpid(), cuda=False)
pair, owner = socket.socketpair(), ctypes.create_string_buffer(struct.pack("@ii", 1, parent))
none = 1 << 30  # no group's and no user's id: a filter that lets it through harms nobody
normal = ctypes.create_string_buffer(struct.pack("@IIQiIQQQ", 48, 0, 0, 19, 0, 0, 0, 0))
def call(name, *arguments):
    x86, arm = (seccomp._OF_ITSELF.get(name) or seccomp.REFUSED.get(name))[:2]
    number = {"x86_64": x86, "aarch64": arm}[os.uname().machine]
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
def meddle(who, group):
    def scheduler():
        os.sched_setscheduler(who, os.SCHED_BATCH, os.sched_param(0))
        if os.sched_getscheduler(who) != os.SCHED_BATCH:
            raise PermissionError(1, "answered, and not done")
    def affinity():
        one = {min(os.sched_getaffinity(0))}
        os.sched_setaffinity(who, one)
        if os.sched_getaffinity(who) != one:
            raise PermissionError(1, "answered, and not done")
    if group:
        yield "the parent's scheduler", lambda: os.sched_setscheduler(who, os.SCHED_OTHER, os.sched_param(0))
        yield "the parent's affinity", lambda: os.sched_setaffinity(who, os.sched_getaffinity(0))
    yield "scheduler", scheduler
    if os.cpu_count() > 1:
        yield "affinity", affinity
    yield "parameters", lambda: os.sched_setparam(who, os.sched_param(0))
    yield "attributes", lambda: call("sched_setattr", who, normal, 0)
    yield "priority", lambda: os.setpriority(os.PRIO_PROCESS, who, 19)
    yield "priority on the disk", lambda: call("ioprio_set", 1, who, 3 << 13)
    yield "move its memory", lambda: call("move_pages", who, 0, None, None, None, 0)
    yield "migrate its memory", lambda: call("migrate_pages", who, 0, None, None)
    if not group:
        return
    yield "priority of the group", lambda: os.setpriority(os.PRIO_PGRP, none, 19)
    yield "priority of the user", lambda: os.setpriority(os.PRIO_USER, none, 19)
    yield "the group on the disk", lambda: call("ioprio_set", 2, none, 3 << 13)
    yield "signals, by fcntl", lambda: fcntl.fcntl(pair[0], fcntl.F_SETOWN, who)
    yield "signals, by fcntl anew", lambda: libc.fcntl(pair[0].fileno(), 15, owner) and call("kcmp")
    yield "signals, by ioctl", lambda: fcntl.ioctl(pair[0], 0x8901, struct.pack("@i", who))
    yield "signals, by a socket's ioctl", lambda: fcntl.ioctl(pair[0], 0x8902, struct.pack("@i", who))
    yield "the kernel's log", lambda: call("syslog", 10, None, 0)
def ended(work):
    try:
        work()
        return "done"
    except OSError as error:
        return error.errno
print(json.dumps([
    {name: ended(work) for name, work in meddle(*whom)}
    for whom in ((parent, True), (above, False), (0, False), (os.getpid(), False))
]), flush=True)
os._exit(0)
"""


async def test_nobody_else_s_work_is_slowed_moved_or_signalled() -> None:
    process = await spawn.start(
        *spawn.python("-c", _MEDDLER), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, error = await process.communicate()
    assert out, error.decode()
    others, further, *own = json.loads(out)
    assert others == dict.fromkeys(others, errno.EPERM)
    assert further == dict.fromkeys(further, errno.EPERM)
    for itself in own:
        assert {name for name, end in itself.items() if end == errno.EPERM} == set(), "it needs these"


async def test_threads_with_a_processor_each_start_in_the_cage() -> None:
    require("torch")
    code = "import torch; torch.set_num_threads(2); a = torch.ones(600, 600); print(int((a @ a)[0, 0]))"
    process = await spawn.start(
        *spawn.python("-c", code),
        cage=spawn.Cage(),
        environ={**spawn.child_environment(), "OMP_PROC_BIND": "true", "OMP_PLACES": "cores"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    assert out.strip() == b"600", error.decode()

# SPDX-License-Identifier: Apache-2.0
"""The worker as the daemon sees it: a real child process, JSON lines in and out."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot.api.texts import reworded, say
from goodbot.base import priority
from goodbot.base.errors import AdapterError, TrainingError
from goodbot.base.worded_parts import reason_in
from goodbot_training.process import worker

from tests.cli.program import until
from tests.core.inference.servers import tiny
from tests.support import patience, require

FACTORIES = {
    "torch": "goodbot_training.backends.torch.trainer:TorchBackend",
    "mlx": "goodbot_training.backends.mlx.trainer:MlxBackend",
}
SECRET = "a very private question"
FILES = ["adapter_config.json", "adapter_model.safetensors"]
FINGERPRINT = "fingerprint.json"


def start(mode: str, factory: str = FACTORIES["torch"]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "goodbot_training.process.worker", mode, factory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def make_job(model: Path, output: Path, **changes: Any) -> dict[str, Any]:
    """Eight ratings that like short answers, six to train on."""
    items = [
        {
            "id": f"turn-{index}",
            "messages": [{"role": "user", "content": f"{SECRET} {index}"}],
            "response": "Yes." if index % 2 else "Well, that is quite a long story.",
            "temperature": 0.8,
            "version": 0,
            "reward": 1.0 if index % 2 else -1.0,
            "split": "train" if index < 6 else "held_out",
        }
        for index in range(8)
    ]
    settings = {"steps": 4, "rank": 4, "gate_anchors": 8, "gate_max_tokens": 6}
    return {
        "protocol": 1,
        "run": 7,
        "model": str(model),
        "parent": None,
        "output": str(output),
        "settings": settings,
        "items": items,
        **changes,
    }


def train(job: object, factory: str = FACTORIES["torch"]) -> tuple[list[dict[str, Any]], str]:
    with start("train", factory) as child:
        out, log = child.communicate(json.dumps(job) + "\n", timeout=patience(120))
    assert child.returncode == 0, log
    assert SECRET not in out
    assert SECRET not in log
    return [json.loads(line) for line in out.splitlines()], log


@pytest.mark.parametrize("backend", FACTORIES)
def test_a_round_from_job_to_candidate(backend: str, random_model: Path, tmp_path: Path) -> None:
    require("torch" if backend == "torch" else "mlx_lm")
    events, _ = train(make_job(random_model, tmp_path), FACTORIES[backend])
    phases = [event["phase"] for event in events if event["event"] == "progress"]
    assert list(dict.fromkeys(phases)) == ["load", "rollouts", "train", "gate"]
    assert [event["event"] for event in events[-2:]] == ["gate", "done"]
    steps = [event for event in events if event.get("phase") == "train"]
    assert [(event["step"], event["steps"]) for event in steps] == [(n, 4) for n in (1, 2, 3, 4)]
    assert all(event["eta"] >= 0 and event["kl"] >= 0 for event in steps)
    for phase, most in (("rollouts", 8), ("gate", 2 * 8)):
        told = [event for event in events if event.get("phase") == phase]
        assert {event["steps"] for event in told} == {most}
        counted = [event["step"] for event in told]
        assert counted == sorted(counted)
        assert len(set(counted)) >= 2, "it moves"
    assert all(event["seconds"] > 0 and event["grad_norm"] > 0 for event in steps)
    assert all(event["tokens"] > 0 and event["learning_rate"] > 0 for event in steps)
    gate, done = events[-2:]
    assert gate["reason"].endswith(".")
    assert gate["metrics"]["held_out"] == 2
    assert gate["metrics"]["xy"] > 0  # two ratings make no interval
    assert done["metrics"]["rollouts"] == 6
    assert done["seconds"] > 0
    assert done["baseline"]["weight"] == pytest.approx(1 - 0.99**6)
    files = [*FILES, FINGERPRINT] if gate["passed"] else FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_the_next_round_goes_on_from_the_last(random_model: Path, tmp_path: Path) -> None:
    require("torch")
    one, two = tmp_path / "1", tmp_path / "2"
    one.mkdir(), two.mkdir()
    events, _ = train(make_job(random_model, one))
    job = make_job(
        random_model,
        two,
        run=8,
        parent=str(one),
        behaviour={"1": str(one)},
        baseline=events[-1]["baseline"],
        anchors=[[{"role": "user", "content": "Hello"}]],
    )
    for item in job["items"]:
        item["version"] = 1
    job["items"][0]["version"] = 99  # nobody knows that one
    events, _ = train(job)
    assert events[-1]["event"] == "done"
    assert events[-1]["metrics"]["off_policy"] == 1
    first = next(event for event in events if event.get("phase") == "train")
    assert first["trajectory_acceptance"] > 0.5, "the ratio is 1 under who wrote the answer"
    assert (one / FILES[1]).read_bytes() != (two / FILES[1]).read_bytes()


def test_ratings_that_all_agree_teach_nothing(random_model: Path, tmp_path: Path) -> None:
    require("torch")
    job = make_job(random_model, tmp_path)
    for item in job["items"]:
        item["reward"] = -1.0
    events, _ = train(job)
    gate, done = events[-2:]
    assert not gate["passed"]
    assert "nothing to learn" in gate["reason"]
    assert done["metrics"]["skipped"] == 4
    assert done["baseline"]["mean"] == -1.0


def test_a_poisoned_rating_is_left_out_and_named(random_model: Path, tmp_path: Path) -> None:
    require("torch")
    poison = make_job(random_model, tmp_path)
    poison["items"][2]["reward"] = float("nan")
    events, _ = train(poison)
    [left_out] = [event["turns"] for event in events if event["event"] == "quarantine"]
    assert left_out == [{"id": "turn-2", "reason": "reward is not a finite number"}]
    assert (events[-1]["event"], events[-1]["metrics"]["left_out"]) == ("done", 1)


def poisons(model: Path, output: Path) -> dict[str, tuple[Any, str, str]]:
    """What is wrong → the job, the kind of failure and a word of its sentence."""
    explode = make_job(model, output)
    explode["settings"] |= {"kl": 1e38, "learning_rate": 10.0}
    adapter = make_job(model, output, parent=str(output))
    return {
        "numbers": (explode, "nan", "finite"),
        "no directory": (make_job(output / "nowhere", output), "error", "no such directory"),
        "no model": (make_job(output, output), "error", "config.json is missing"),
        "no adapter": (adapter, "error", "adapter_config.json is missing"),
        "objective": (make_job(model, output, settings={"objective": "magic"}), "data", "magic"),
        "no items": (make_job(model, output, items=[]), "data", "no rated turn"),
        "no job": ("nonsense", "data", "not an object"),
    }


@pytest.mark.parametrize("name", poisons(Path("model"), Path("output")))
def test_what_is_wrong_is_told_in_a_sentence(
    name: str, random_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("torch")
    monkeypatch.setattr(worker, "give_way", lambda: None)
    job, kind, word = poisons(random_model, tmp_path)[name]
    events: list[dict[str, Any]] = []
    lines = SimpleNamespace(emit=events.append)
    stdin = io.BytesIO(json.dumps(job).encode() + b"\n")
    worker.train(lines, stdin, FACTORIES["torch"])  # pyright: ignore[reportArgumentType]
    last = events[-1]
    assert (last["event"], last["kind"]) == ("failed", kind), last
    assert word in last["reason"]
    assert last["reason"].count("\n") == 0
    assert SECRET not in json.dumps(events)
    assert not list(tmp_path.iterdir()), "no candidate is left"


def ended_by(first: Exception, error: Exception) -> Exception:
    error.__cause__ = first
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "oom"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "oom"),
        (RuntimeError("[malloc_or_wait] Unable to allocate"), "oom"),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), "oom"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "disk"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "disk"),
        (type("SafetensorError", (Exception,), {})("I/O error: No space left (os error 28)"), "disk"),
        (ended_by(OSError(errno.ENOSPC, "full"), RuntimeError(SECRET)), "disk"),
        (OSError(errno.EIO, SECRET), "error"),
        (TrainingError("No.", kind="nan"), "nan"),
        (AdapterError("No."), "error"),
        (RuntimeError(SECRET), "error"),
    ],
)
def test_failures_are_sorted(error: Exception, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    found, reason = worker.failure(error)
    assert found == kind
    assert reason.endswith(".")
    assert SECRET not in reason + capsys.readouterr().err


def test_a_backend_that_cannot_be_imported_is_a_sentence(tmp_path: Path) -> None:
    events, _ = train(make_job(tmp_path, tmp_path), "no.such:Thing")
    assert events[-1]["event"] == "failed"
    assert "no.such:Thing" in events[-1]["reason"]
    why = "No module named 'no'"
    said = say("child_backend", "fr", name="no.such:Thing", why=why)
    assert reworded(reason_in(events[-1]), "fr") == said


def test_a_terminated_run_leaves_nothing(random_model: Path, tmp_path: Path) -> None:
    require("torch")
    job = make_job(random_model, tmp_path)
    job["settings"] |= {"steps": 100_000, "max_passes": 1_000_000}
    with start("train") as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(json.dumps(job) + "\n")
        child.stdin.flush()
        for line in child.stdout:
            if json.loads(line).get("phase") == "train":
                break
        child.send_signal(signal.SIGTERM)
        rest = child.stdout.read()
        assert child.wait(patience(10)) == 143
    assert not any(json.loads(line)["event"] in ("done", "failed") for line in rest.splitlines())
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' scheduling policies")
def test_a_run_in_the_background_takes_only_what_nobody_else_wants_unless_told_not_to() -> None:
    code = (
        "import os; from goodbot.base.priority import give_way, stand_back; give_way();"
        " stand_back(); print(os.sched_getscheduler(0) == os.SCHED_IDLE, os.nice(0))"
    )
    lower = min(19, os.nice(0) + priority.NICENESS)
    for kept, told in (("", f"True {lower}"), ("1", f"False {os.nice(0)}")):
        environ = {**os.environ, priority.KEEP: kept}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
        )
        assert done.stdout == f"{told}\n"


def test_on_a_mac_it_is_the_background_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(priority.KEEP)
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "setpriority", lambda *arguments: asked.append(arguments))
    priority.stand_back("darwin")
    priority.stand_back("plan9")
    assert asked == [(4, 0, 0x1000)]  # PRIO_DARWIN_PROCESS, this one, PRIO_DARWIN_BG


@pytest.mark.parametrize(("background", "expected"), [(True, [True]), (False, []), ("yes", [])])
def test_only_a_job_that_says_so_stands_back(
    background: object, expected: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stood: list[bool] = []
    given: list[bool] = []
    monkeypatch.setattr(worker, "give_way", lambda: given.append(True))
    monkeypatch.setattr(priority, "stand_back", lambda: stood.append(True))
    job = {**make_job(tmp_path, tmp_path / "out"), "background": background}
    events: list[dict[str, Any]] = []

    class Lines:
        emit = staticmethod(events.append)

    worker.train(Lines(), io.BytesIO(json.dumps(job).encode() + b"\n"), "no.such:Thing")  # type: ignore[arg-type]
    assert (given, stood) == ([True], expected)
    assert events[-1]["event"] == "failed"


PARENT = """
import os, subprocess, sys, time
alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a second thread watches
command = [sys.executable, "-m", "goodbot_training.process.worker", "train", "a:B"]
child = subprocess.Popen(command, stdin=0, env=alone)
print(child.pid, flush=True)
time.sleep(3600)
"""


def test_b3_a_trainer_does_not_outlive_its_daemon() -> None:
    """Its stdin stays open, and nothing is written to it: it notices by itself."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        process = Path(f"/proc/{child}")
        until(lambda: len([*process.glob("task/*")]) > 1)  # it watches
        parent.kill()
        parent.wait()
        until(lambda: not process.exists())


class Client:
    """The daemon's side of `serve`."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child, self._next = child, 0

    def send(self, op: str, **fields: Any) -> int:
        assert self.child.stdin
        self._next += 1
        self.child.stdin.write(json.dumps({"id": self._next, "op": op, **fields}) + "\n")
        self.child.stdin.flush()
        return self._next

    def read(self) -> dict[str, Any]:
        assert self.child.stdout
        return json.loads(self.child.stdout.readline())

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        identity = self.send(op, **fields)
        event = self.read()
        assert event["id"] == identity
        return event

    def generate(self, **fields: Any) -> tuple[str, dict[str, Any]]:
        messages = [{"role": "user", "content": SECRET}]
        question = {"messages": messages, "max_tokens": 8, "temperature": 0.8, "seed": 1}
        identity, text = self.send("generate", **(question | fields)), ""
        while (event := self.read())["event"] == "text":
            text += event["text"]
        assert event["id"] == identity
        return text, event


@pytest.fixture(scope="module", params=FACTORIES)
def server(request: pytest.FixtureRequest, random_model: Path) -> Iterator[Client]:
    require("torch" if request.param == "torch" else "mlx_lm")
    with start("serve", FACTORIES[request.param]) as child:
        assert child.stdin
        child.stdin.write(json.dumps({"protocol": 1, "model": str(random_model), "seed": 0}) + "\n")
        child.stdin.flush()
        client = Client(child)
        assert client.read() == {"event": "ready"}
        yield client
        child.stdin.close()
        assert child.wait(patience(20)) == 0
        assert child.stderr
        assert SECRET not in child.stderr.read()


@pytest.fixture(scope="module")
def adapter(random_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of another rank than the server starts with."""
    return tiny.adapter(tmp_path_factory.mktemp("adapter"), 1, 2.0, of=random_model)


def test_an_answer_streams(server: Client) -> None:
    text, done = server.generate()
    assert done["text"] == text
    assert done["version"] == 0
    assert done["finish"] in ("stop", "length")
    assert len(done["tokens"]) == len(done["logprobs"]) > 0
    assert done["prompt_tokens"]
    assert server.generate()[1]["tokens"] == done["tokens"], "the same seed, the same answer"


def test_versions_are_loaded_and_swapped(server: Client, adapter: Path, tmp_path: Path) -> None:
    base = server.generate()[1]["logprobs"]
    assert server.ask("load", version=3, path=str(adapter))["event"] == "ok"
    assert server.generate()[1]["version"] == 0, "loaded is not yet active"
    assert server.generate(version=3)[1]["version"] == 3
    assert server.generate()[1]["logprobs"] == base
    assert server.ask("activate", version=3)["event"] == "ok"
    assert server.ask("served")["version"] == 3
    trained = server.generate()[1]
    assert trained["version"] == 3
    assert trained["logprobs"] != base
    assert server.generate(version=0)[1]["logprobs"] == base
    assert server.ask("unload", version=3)["kind"] == "adapter"
    assert server.ask("activate", version=0)["event"] == "ok"
    assert server.ask("unload", version=3)["event"] == "ok"
    assert server.generate(version=3)[1]["kind"] == "adapter"
    broken = server.ask("load", version=4, path=str(tmp_path))
    assert (broken["event"], broken["kind"]) == ("error", "adapter")
    assert server.generate()[1]["logprobs"] == base


def test_an_answer_is_cancelled_while_it_is_written(server: Client) -> None:
    messages = [{"role": "user", "content": "tell"}]
    fields = {"messages": messages, "max_tokens": 400, "temperature": 3.0, "seed": 5}
    running, waiting = server.send("generate", **fields), server.send("generate", **fields)
    server.send("cancel", target=waiting)
    ends: dict[int, dict[str, Any]] = {}
    wanted = True
    while len(ends) < 2:
        event = server.read()
        if event["event"] == "done":
            ends[event["id"]] = event
        elif wanted and event["id"] == running:  # its first piece; the other may have ended by then
            server.send("cancel", target=running)
            wanted = False
    assert ends[running]["finish"] == "cancelled"
    assert len(ends[running]["tokens"]) < 400
    assert ends[waiting]["finish"] == "cancelled"
    assert len(ends[waiting]["tokens"]) < 400, "some steps may be taken before the child hears of it"


def test_answers_are_written_together_and_a_version_leaves_last(server: Client, adapter: Path) -> None:
    """Each ends on the version that it began with, whatever is activated, loaded and unloaded meanwhile."""
    assert server.ask("load", version=5, path=str(adapter))["event"] == "ok"
    long = {"max_tokens": 60, "temperature": 3.0, "seed": 3}
    alone = {version: server.generate(version=version, **long)[1] for version in (5, 0)}
    messages = [{"role": "user", "content": SECRET}]
    old = server.send("generate", messages=messages, version=5, **long)
    new = server.send("generate", messages=messages, **long)
    for _ in range(2):  # by then both are being written
        while server.read()["id"] != new:
            pass
    unload, served = server.send("unload", version=5), server.send("served")
    late = server.send("generate", messages=messages, version=5, **long)
    order: list[int] = []
    ends: dict[int, dict[str, Any]] = {}
    while len(ends) < 5:
        event = server.read()
        if event["event"] != "text":
            order.append(event["id"])
            ends[event["id"]] = event
    assert order.index(served) < order.index(old) < order.index(unload)
    assert ends[late]["kind"] == "adapter", "nothing new begins on a version that leaves"
    for id_, version in ((old, 5), (new, 0)):
        assert ends[id_]["version"] == version
        assert ends[id_]["tokens"] == alone[version]["tokens"]
    assert server.generate(version=5)[1]["kind"] == "adapter"


def test_a_version_that_is_wanted_again_does_not_leave(server: Client, adapter: Path) -> None:
    assert server.ask("load", version=6, path=str(adapter))["event"] == "ok"
    messages = [{"role": "user", "content": SECRET}]
    fields = {"messages": messages, "max_tokens": 300, "temperature": 3.0, "seed": 4}
    answer = server.send("generate", version=6, **fields)
    while server.read()["id"] != answer:
        pass
    unload, load = (server.send("unload", version=6), server.send("load", version=6, path=str(adapter)))
    ends: dict[int, dict[str, Any]] = {}
    while len(ends) < 2:
        event = server.read()
        if event["event"] != "text":
            ends[event["id"]] = event
    assert {id_: end["event"] for id_, end in ends.items()} == {unload: "ok", load: "ok"}
    server.send("cancel", target=answer)
    while server.read()["event"] != "done":
        pass
    assert server.generate(version=6)[1]["version"] == 6
    assert server.ask("unload", version=6)["event"] == "ok"


def test_how_an_answer_may_begin_is_told(server: Client, adapter: Path) -> None:
    messages = [{"role": "user", "content": SECRET}]
    base = server.ask("first_tokens", messages=messages, version=0, top=5)["tokens"]
    assert 0 < len(base) <= 5
    assert server.ask("load", version=8, path=str(adapter))["event"] == "ok"
    assert server.ask("first_tokens", messages=messages, version=8, top=5)["tokens"] != base
    assert server.ask("first_tokens", messages=messages, top=5)["tokens"] == base
    assert server.ask("unload", version=8)["event"] == "ok"
    assert server.ask("first_tokens", messages=messages, version=8, top=5)["kind"] == "adapter"
    assert server.ask("first_tokens", messages=[], top=5)["event"] == "error"


def test_how_likely_a_version_finds_an_answer_is_told_token_by_token(server: Client, adapter: Path) -> None:
    text, end = server.generate(temperature=1.0, max_tokens=12)
    given = {"messages": [{"role": "user", "content": SECRET}], "response": text}
    as_written = {name: end[name] for name in ("prompt_tokens", "tokens")}
    base = server.ask("score", version=0, **given, **as_written)["tokens"]
    assert "".join(one for one, _ in base) == text
    assert sum(one for _, one in base) == pytest.approx(sum(end["logprobs"]), abs=1e-3)
    assert server.ask("load", version=8, path=str(adapter))["event"] == "ok"
    other = server.ask("score", version=8, **given, **as_written)["tokens"]
    assert [one for one, _ in other] == [one for one, _ in base]
    assert other != base
    words = "Naïve 🙂 Łódź."
    anew = server.ask("score", version=8, **(given | {"response": words}))["tokens"]
    assert "".join(one for one, _ in anew) == words
    assert all(piece and "\ufffd" not in piece for piece, _ in anew[:-1])
    assert server.ask("unload", version=8)["event"] == "ok"
    assert server.ask("score", version=8, **given)["kind"] == "adapter"
    assert "too long" in server.ask("score", version=0, **(given | {"response": "word " * 2000}))["reason"]


def test_bad_requests_are_answered(server: Client) -> None:
    assert server.ask("dance")["event"] == "error"
    assert server.ask("activate", version="x")["event"] == "error"
    assert server.ask("activate", version=77)["kind"] == "adapter"
    assert server.generate(messages=[])[1]["event"] == "error"
    assert server.generate(messages=[{"role": "user", "content": "x" * 9000}])[1]["event"] == "error"
    assert server.generate()[1]["event"] == "done", "and it goes on"


def test_serve_refuses_what_is_no_model(tmp_path: Path) -> None:
    require("torch")
    with start("serve") as child:
        out, _ = child.communicate(json.dumps({"protocol": 1, "model": str(tmp_path)}) + "\n")
    assert child.returncode == 0
    answer = json.loads(out)
    assert answer["event"] == "failed"
    assert "not a model" in answer["reason"]


def test_serve_ends_on_sigterm_and_when_stdin_closes(random_model: Path) -> None:
    require("torch")
    for close in (True, False):
        with start("serve") as child:
            assert child.stdin
            assert child.stdout
            child.stdin.write(json.dumps({"protocol": 1, "model": str(random_model)}) + "\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline()) == {"event": "ready"}
            messages = [{"role": "user", "content": "go"}]
            request = {"id": 1, "op": "generate", "messages": messages, "max_tokens": 480}
            child.stdin.write(json.dumps({**request, "temperature": 5.0}) + "\n")
            child.stdin.flush()
            child.stdout.readline()
            child.stdin.close() if close else child.send_signal(signal.SIGTERM)
            assert child.wait(patience(3)) == (0 if close else 143)

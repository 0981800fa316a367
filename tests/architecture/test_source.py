# SPDX-License-Identifier: Apache-2.0
"""What no line of the three packages may do, and how long a module may be."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from goodbot.inference.servers.plugin import SPECS, WITHOUT_DRIVER

from tests.architecture.source import ROOT, modules, pyproject
from tests.support import require_program

LONGEST = 300
LONGEST_FUNCTION = 60

TIME = {"time.time", "asyncio.sleep", "datetime.now", "datetime.utcnow"}
TIME_IS_READ_HERE = {
    "core/goodbot/base/clock.py": "the one place",
    "connectors/goodbot_connectors/terminal/conversation.py": "a client's process has no host",
}
DANGEROUS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "pickle.load",
    "pickle.loads",
    "marshal.loads",
    "torch.load",
    "yaml.load",
    "yaml.unsafe_load",
    "subprocess.getoutput",
    "asyncio.create_subprocess_shell",
}
DANGEROUS_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
DANGEROUS_KEYWORDS = {"shell", "trust_remote_code", "allow_pickle", "weights_only"}

EXPRESSIONS = {
    "core/goodbot/commands/masking.py": "all that is exported; one class a repeat, or a bounded one",
    "core/goodbot/api/address.py": "the owner's config, 500 characters at most",
    "core/goodbot/api/manners.py": "a server's refusals, 300 characters at most; no repeats",
    "connectors/goodbot_connectors/api/proxy/pictures.py": "requests of programs, piece by piece, bounded",
    # path: on whose words it runs, and why it cannot go quadratic
    "core/goodbot/store/postgres/dialect.py": "our own statements, never what people say; one class a repeat",
    "core/goodbot/store/postgres/ddl.py": "our own schema",
    "core/goodbot/features/filters/addresses.py": "all that would be learnt; one class a match",
    "core/goodbot/features/filters/numbers.py": "all that would be learnt; one class a match",
    "core/goodbot/features/judges/rule.py": "results of tools, short lines; anchored at their start",
    "core/goodbot/features/reports/signs.py": "the model's answers; one bounded class a match",
    "core/goodbot/base/topics.py": "questions and answers, 1000 characters of each; one class a match",
    "core/goodbot/base/in_pieces.py": "by the patterns of redact, thoughts and endings, in pieces",
    "core/goodbot/base/redact.py": "all that is said; bounded repeats, or none to be entered half way",
    "core/goodbot/base/thoughts.py": "the model's answers and templates; anchored, or one class a repeat",
    "core/goodbot/base/log.py": "all that is warned of; one class a match",
    "core/goodbot/base/endings.py": "the beginning of a model's answer; bounded repeats",
    "core/goodbot/api/marks.py": "prompts and templates; anchored, one bounded class a repeat",
    "training/goodbot_training/backends/odd_tokenizers.py": "a model's file; one class a repeat",
    "training/goodbot_training/backends/marks.py": "prompts; names one by one, and one class, bounded",
    "core/goodbot/api/headings.py": "templates, bounded; bounded repeats, or none to be entered half way",
    "core/goodbot/base/text.py": "the model's answers; bounded repeats, one line at a time",
    "core/goodbot/inference/models/directory.py": "the owner's config",
    "core/goodbot/config/toml.py": "the owner's config, one line, one class a repeat; a parser's own message",
    "core/goodbot/learning/rating_quality/near_duplicates.py": "what is said; bounded, one class a match",
    "core/goodbot/inference/models/hub.py": "a hub's file names and hashes; bounded repeats, whole matches",
    "core/goodbot/learning/adapters/importing.py": "our own directory names",
    "core/goodbot/api/adapters/manifest.py": "our own file names",
    "connectors/goodbot_fakes/discord/registry.py": "names of a bot's commands; bounded repeats",
    "connectors/goodbot_fakes/discord/world.py": "what a test says; bounded repeats",
    "connectors/goodbot_fakes/telegram/texts.py": "what a test says; bounded repeats",
    "connectors/goodbot_connectors/kit/code.py": "the model's answers; a line, one class a match, possessive",
    "connectors/goodbot_connectors/kit/inert.py": "the model's answers; 200 signs, possessive",
    "core/goodbot/base/printing.py": "all for a terminal or a log; bounded repeats, one class a match",
    "connectors/goodbot_connectors/discord/emoji.py": "one emoji; bounded repeats, one class a match",
    "connectors/goodbot_connectors/discord/markdown.py": "messages; one sign a match, bounded repeats",
    "connectors/goodbot_connectors/discord/presses.py": "100 characters of a button; one class",
    "connectors/goodbot_connectors/discord/render.py": "the model's answers; bounded repeats, one look",
    "connectors/goodbot_connectors/slack/mrkdwn.py": "messages; one class a match, bounded repeats",
    "connectors/goodbot_connectors/slack/render.py": "the model's answers; one character and a look",
    "connectors/goodbot_connectors/teams/markup.py": "messages; none looks beyond the next sign <",
    "connectors/goodbot_connectors/teams/render.py": "the model's answers; one sign a match",
    "connectors/goodbot_connectors/openclaw/transcript.py": "prompts; anchored, one bounded class",
    "connectors/goodbot_connectors/telegram/attachments.py": "a file's name; one class a match",
    "connectors/goodbot_connectors/telegram/callback.py": "64 bytes of a button; one class",
    "connectors/goodbot_connectors/telegram/client.py": "the token, and Telegram's errors",
    "connectors/goodbot_connectors/telegram/emoji.py": "one emoji; one class a match",
    "connectors/goodbot_connectors/telegram/normalize.py": "messages; anchored, bounded repeats",
    "connectors/goodbot_connectors/telegram/render.py": "the model's answers; bounded repeats",
    "training/goodbot_training/process/autopsy.py": "an error's first 1000 characters; bounded repeats",
    "training/goodbot_training/tiny/judge.py": "the tiny model's answers",
    "training/goodbot_training/tiny/styles.py": "our own tables",
}
DOUBLES = {
    "core/goodbot/base/clock.py": "`growing` itself",
    "core/goodbot/learning/evaluation/rule.py": "how likely a count is by luck",
    "core/goodbot/learning/training/claims.py": "what an old rating weighs",
    "core/goodbot/learning/training/curve.py": "which steps of a curve are kept",
    "training/goodbot_training/backends/row_adapters.py": "how many places a table has",
    "training/goodbot_training/round/attempts.py": "the rate of a step that is taken again",
}
"""Where two is raised to a power, and why it is no pause."""
ONES_OWN_TERMINAL = "connectors/goodbot_connectors/terminal/"


def doubles(tree: ast.AST) -> bool:
    """Whether something in it is doubled again and again, or two is raised to a power that is counted."""
    return any(_doubles(node) for node in ast.walk(tree))


def _doubles(node: ast.AST) -> bool:
    match node:
        case ast.AugAssign(op=ast.Mult(), value=ast.Constant(value=2 | 2.0)):
            return True
        case ast.Assign(targets=[target], value=value):
            own = ast.unparse(target)
            return any(
                isinstance(one, ast.BinOp)
                and isinstance(one.op, ast.Mult)
                and {ast.unparse(one.left), ast.unparse(one.right)} in ({own, "2"}, {own, "2.0"})
                for one in ast.walk(value)
            )
        case ast.BinOp(left=ast.Constant(value=1 | 2 | 2.0), op=ast.Pow() | ast.LShift(), right=power):
            return not isinstance(power, ast.Constant)
        case ast.Call(func=ast.Name(id="pow"), args=[ast.Constant(value=2 | 2.0), power, *_]):
            return not isinstance(power, ast.Constant)
        case _:
            return False


SERVERS = ({spec.name for spec in SPECS} | WITHOUT_DRIVER.keys()) - {"mlx", "embedded"}
"""By name, but for a backend's and for goodbot itself."""
THEIR_ROOMS = ("goodbot.inference.servers", "goodbot.inference.surveys")


def tells_apart(tree: ast.AST) -> set[str]:
    """The model servers that it asks for by name, and the variables that are one server's own."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
            found |= {str(one) for one in texts} & SERVERS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(re.findall(r"\b(?:OLLAMA|VLLM|SGLANG|LLAMA)_[A-Z]+\b", node.value))
    return found


def test_nobody_asks_which_model_server_it_is_but_its_own_modules() -> None:
    """So a plugin's is found, examined and diagnosed as ours are."""
    core = [module for module in modules() if module.package == "goodbot"]
    others = [module for module in core if not module.name.startswith(THEIR_ROOMS)]
    assert {module.path: found for module in others if (found := tells_apart(module.tree))} == {}
    for line in ("a.kind == 'vllm'", "b in ('ollama', 'x')", "environ.get('OLLAMA_HOST')"):
        assert tells_apart(ast.parse(line)), line
    assert not tells_apart(ast.parse("backend == 'mlx'\nname = 'vllm'"))


def assigned(tree: ast.AST) -> set[str]:
    """What of other objects is set: a `self` sets its own."""
    targets = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Subscript)]
    stored = {ast.unparse(one) for one in targets if isinstance(one.ctx, ast.Store)}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    by_name = {ast.unparse(one) for one in calls if ast.unparse(one).endswith("setattr")}
    return {one for one in stored | by_name if not one.startswith("self.")}


def test_no_part_is_half_made() -> None:
    """A goodbot is put together by constructors alone: no part gets another one afterwards."""
    [wiring] = [module for module in modules() if module.name == "goodbot.daemon.wiring"]
    assert assigned(wiring.tree) == set()
    for line in ("a.b.at_once = c", "a.b['x'] = c", "setattr(a, 'b', c)", "a.b: int = 1", "a.b += c"):
        assert assigned(ast.parse(line)), line
    assert not assigned(ast.parse("x = a.b\ny: int = a.b[0]"))


def test_no_module_is_too_long() -> None:
    lengths = {module.path: len(module.text.splitlines()) for module in modules()}
    assert {path for path, n in lengths.items() if n > LONGEST} == set()


def test_who_tries_again_waits_longer_by_one_function() -> None:
    """`growing` of `goodbot.base.clock`: no other place doubles a pause."""
    assert {module.path for module in modules() if doubles(module.tree)} == DOUBLES.keys()


def test_what_is_to_stay_is_written_by_one_module() -> None:
    """By `goodbot.base.durable`: who syncs a file of their own forgets its rights, or what fails."""
    found = {module.path for module in modules() if any(name == "os.fsync" for name, _ in module.calls())}
    assert found == {"core/goodbot/base/durable.py"}


def test_nobody_asks_a_part_whether_it_is_there() -> None:
    """A part is whole: what streams, values of TOML and layers of models may lack is asked for elsewhere."""
    found = {
        module.path
        for module in modules()
        if module.package == "goodbot" and any(name == "hasattr" for name, _ in module.calls())
    }
    assert found == {"core/goodbot/cli/__init__.py", "core/goodbot/config/file.py"}


def test_who_is_cut_off_comes_back_by_one_function() -> None:
    """`spread` and `jittered` of the connectors' kit: no other place draws a pause by lot."""
    lots = {
        module.path
        for module in modules()
        if module.package == "goodbot_connectors" and re.search(r"\brandom\.(uniform|random)\(", module.text)
    }
    assert lots == {"connectors/goodbot_connectors/kit/backoff.py"}


@pytest.mark.parametrize(
    "line",
    [
        "pause *= 2",
        "self.pause *= 2.0",
        "pause = min(60.0, 2 * pause)",
        "pause = pause * 2",
        "wait = 2**tries",
        "wait = first * 2.0 ** min(tries, 6)",
        "wait = 1 << tries",
        "wait = pow(2, tries)",
    ],
)
def test_doubling_is_seen(line: str) -> None:
    assert doubles(ast.parse(line))


@pytest.mark.parametrize("line", ["most = 2**31", "size = 1 << 20", "pause = 2 * other", "half = x**2"])
def test_what_is_no_doubling_is_let_pass(line: str) -> None:
    assert not doubles(ast.parse(line))


def test_no_function_is_too_long() -> None:
    """How many decisions one holds, ruff counts: C901."""
    long = {
        f"{module.path}: {node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (node.end_lineno or node.lineno) - node.lineno >= LONGEST_FUNCTION
    }
    assert long == set()


def test_the_median_of_modules_is_short() -> None:
    lengths = {module.path: len(module.text.splitlines()) for module in modules()}
    median = sorted(n for n in lengths.values() if n)[len(lengths) // 2]
    assert median <= 120


def test_the_formatter_is_never_switched_off() -> None:
    off = "# fmt" + ":"
    assert [m.path for m in modules() if off in m.text] == []


def test_every_module_says_what_it_is() -> None:
    silent = [m.path for m in modules() if m.text.strip() and not ast.get_docstring(m.tree)]
    assert silent == []


def test_time_is_injected() -> None:
    found = [
        f"{module.path}:{node.lineno} calls {name}"
        for module in modules()
        if module.path not in TIME_IS_READ_HERE
        and not module.name.startswith(("goodbot.testing", "goodbot_fakes"))
        for name, node in module.calls()
        if name in TIME or name.removeprefix("datetime.") in TIME
    ]
    found += [
        f"{module.path}:{line} imports {name}"
        for module in modules()
        for name, line in module.imports()
        if name in TIME
    ]
    assert found == []


def test_nothing_is_run_that_came_as_data() -> None:
    found: list[str] = []
    for module in modules():
        found += [
            f"{module.path}:{line} imports {name}"
            for name, line in module.imports()
            if name.partition(".")[0] in DANGEROUS_MODULES
        ]
        for name, node in module.calls():
            if name in DANGEROUS:
                found.append(f"{module.path}:{node.lineno} calls {name}")
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in DANGEROUS_KEYWORDS and value is not False:
                    found.append(f"{module.path}:{node.lineno} {ast.unparse(keyword)}")
    assert found == []


def test_expressions_on_foreign_text_are_known() -> None:
    """A regular expression is reviewed for whose words it runs on; `(a+)+` has no place."""
    using = {
        module.path for module in modules() if any(name in ("re", "regex") for name, _ in module.imports())
    }
    unknown = {path for path in using if not path.startswith(ONES_OWN_TERMINAL)} - set(EXPRESSIONS)
    assert unknown == set(), "say in EXPRESSIONS on whose words it runs"


def test_nested_repeats_are_nowhere() -> None:
    nested = re.compile(r"[*+}]\)[*+{]")
    found = [
        f"{module.path}:{node.lineno} {node.args[0].value}"
        for module in modules()
        for name, node in module.calls()
        if name.startswith("re.")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and nested.search(str(node.args[0].value))
    ]
    assert found == []


@pytest.mark.parametrize(
    "group", ["", *pyproject()["project"]["optional-dependencies"]], ids=lambda g: g or "required"
)
def test_dependencies_are_few(group: str) -> None:
    project = pyproject()["project"]
    needed = project["optional-dependencies"][group] if group else project["dependencies"]
    assert len(needed) <= (23 if group == "dev" else 5)


def test_each_required_dependency_says_what_it_is_for() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [block] = re.findall(r"^dependencies = \[\n(.*?)^\]", text, flags=re.M | re.S)
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) == len(pyproject()["project"]["dependencies"])
    assert [line for line in lines if not re.search(r",\s+# \w", line)] == []


def tracked() -> list[Path]:
    """Every file that is, or is about to be, in the repository."""
    git = require_program("git")
    done = subprocess.run(
        [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and "node_modules" not in path.parts]


HOSTS = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "registry." + "npmjs",
    "registry." + "yarnpkg",
    "--index" + "-url",
    "--extra-index" + "-url",
    "download." + "pytorch",
)
HOMES = re.compile(r"(?<![\w.~$}/-])/(?:home|Users|work|root|mnt|private/var)/\w")


def test_no_registry_and_no_machine_is_named() -> None:
    """What is installed from where is the machine's affair, not the repository's."""
    found: list[str] = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if any(host in line for host in HOSTS) or HOMES.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


LICENSE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = {
    ".py": f"# {LICENSE}",
    ".css": f"/* {LICENSE} */",
    ".html": f"<!-- {LICENSE} -->",
} | dict.fromkeys((".js", ".mjs", ".ts"), f"// {LICENSE}")


def test_every_file_says_what_its_license_is() -> None:
    for path in tracked():
        if "vendored" in path.parts:  # each with a licence of its own: test_vendored
            continue
        if path.suffix not in LICENSED or not (text := path.read_text("utf-8").strip()):
            continue
        first, _, rest = text.partition("\n")
        said = rest.partition("\n")[0] if first.startswith(("#!", "<!doctype")) else first
        assert said == LICENSED[path.suffix], path

# SPDX-License-Identifier: Apache-2.0
"""How families write a conversation: their tokenizer's kind, their marks, their template, their files.

The templates are in our own words and do what the published ones do, as looked up in the makers'
repositories, llama.cpp's `models/templates` and TRL's `chat_templates`: who refuses a system message, who
wants users and assistants in turn, what opens a thought, what ends a turn, what the files name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LLAMA_CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_CUT = LLAMA_CUT.replace(r"\p{N}{1,3}", r"\p{N}")
_SMALL, _LARGE = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
TEKKEN_CUT = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_LARGE}*{_SMALL}+|[^\r\n\p{{L}}\p{{N}}]?{_LARGE}+{_SMALL}*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One maker's way to write a conversation."""

    like: str
    """A published model that writes so."""
    shape: str
    """The tokenizer's kind, of `tests.training.backends.shapes`."""
    template: str
    special: tuple[str, ...]
    """Tokens that decoding leaves out."""
    added: tuple[str, ...] = ()
    """Tokens that decoding does not leave out."""
    plain: tuple[str, ...] = ()
    """Marks of the template that its tokenizer does not know: plain text to the model."""
    swallows: tuple[str, ...] = ()
    """Tokens that take the white space behind them along."""
    cut: str = ""
    """How a byte-level tokenizer cuts text before it merges; empty: as GPT-2."""
    bos: str = ""
    end: str
    """What the template writes after an answer that is the last."""
    eos: str
    """Of tokenizer_config.json and config.json."""
    stops: tuple[str, ...] = ()
    """`eos_token_id` of generation_config.json; none: there is no such file."""
    goes_on: tuple[str, ...] = ()
    """Tokens that stand within a turn and must not end it."""
    sampling: Mapping[str, float] = field(default_factory=dict[str, float])
    """The rest of generation_config.json."""
    thought: tuple[str, str] | None = None
    """What the model writes before and behind a thought, where it is to think; None: it does not think."""
    always: bool = False
    """It thinks whatever it is told."""
    system: str = "kept"
    """What the template does with a system message: kept, refused."""
    turns: str = "free"
    """Whether users and assistants must take turns: free, strict."""
    tools: bool = False
    """Whether the template shows tools and their calls."""
    parts: bool = False
    """Whether it shows contents that are lists of parts only."""


_CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_ASK = "{% if add_generation_prompt %}"
_STRICT = (
    "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
)
_SAY = "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
_TOOLS = (
    "# Tools\n\nFunctions that may be called stand within <tools></tools>:\n<tools>"
    "{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>\n\nWrite a call as "
    '<tool_call>{"name": …, "arguments": …}</tool_call>.'
)
_CALLS = (
    "{% for call in m.tool_calls or [] %}{% set c = call.function or call %}"
    '{{ \'\n<tool_call>\n{"name": "\' + c.name + \'", "arguments": \' }}'
    "{% if c.arguments is string %}{{ c.arguments }}{% else %}{{ c.arguments | tojson }}{% endif %}"
    "{{ '}\n</tool_call>' }}{% endfor %}"
)
_RESULT = (
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}"
    "{{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}"
)
_LATEST = (
    "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
)


def _qwen(*, default: str = "", thinks: bool = False, opens: str = "") -> str:
    """ChatML with a system message in front, tools in it, calls and results; a past thought is dropped."""
    head = (
        "{% if tools %}{{ '<|im_start|>system\n' }}{% if messages[0].role == 'system' %}"
        "{{ messages[0].content + '\n\n' }}{% endif %}" + _TOOLS + "{{ '<|im_end|>\n' }}"
        "{% elif messages[0].role == 'system' %}"
        "{{ '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}"
    )
    if default:
        head += "{% else %}{{ '<|im_start|>system\n" + default + "<|im_end|>\n' }}"
    head += "{% endif %}"
    spoken = "{% set content = m.content or '' %}"
    if thinks:
        spoken += (
            "{% if '</think>' in content %}"
            "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
        )
    said = "{{ '<|im_start|>assistant\n' }}"
    if thinks:
        said += "{% if loop.index0 > ns.last and loop.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    body = (
        (_LATEST if thinks else "")
        + "{% for m in messages %}{% if m.role == 'user' or (m.role == 'system' and not loop.first) %}"
        + _SAY
        + "{% elif m.role == 'assistant' %}"
        + spoken
        + said
        + "{{ content }}"
        + _CALLS
        + "{{ '<|im_end|>\n' }}{% elif m.role == 'tool' %}"
        + _RESULT
        + "{% endif %}{% endfor %}"
    )
    return head + body + _ASK + "{{ '<|im_start|>assistant\n' }}" + opens + "{% endif %}"


_OFF = "{% if enable_thinking is defined and enable_thinking is false %}"
_EMPTY = "{{ '<think>\n\n</think>\n\n' }}"
_CHATML_TOOLS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
_QWEN_STOPS = ("<|im_end|>", "<|endoftext|>")
_LOOSE_TURNS = (  # Tülu's: its marks are words, and the end of text ends a turn
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}"
    "{{ '<|system|>\n' + m['content'] + '\n' }}{% elif m['role'] == 'user' %}"
    "{{ '<|user|>\n' + m['content'] + '\n' }}{% elif m['role'] == 'assistant' %}"
    "{{ '<|assistant|>\n' + m['content'] + eos_token + ('' if loop.last else '\n') }}{% endif %}"
    "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}"
)
_ROLES = ("<|user|>", "<|assistant|>", "<|system|>")
_GRANITE_MARKS = ("<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>")
_GRANITE = (
    "{% if tools %}{{ '<|start_of_role|>available_tools<|end_of_role|>' }}{% for tool in tools %}"
    "{{ tool | tojson(indent=4) }}{% endfor %}{{ '<|end_of_text|>\n' }}{% endif %}"
    "{% for m in messages %}{% set role = 'tool_response' if m.role == 'tool' else m.role %}"
    "{{ '<|start_of_role|>' + role + '<|end_of_role|>' + (m.content or '') }}"
    "{% for call in m.tool_calls or [] %}{{ '<|tool_call|>' + (call.function | tojson) }}{% endfor %}"
    "{{ '<|end_of_text|>\n' }}{% endfor %}"
    + _ASK
    + "{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}"
)
_GEMMA_MARKS = ("<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>")
_TURN = "{% set role = 'model' if m['role'] == 'assistant' else m['role'] %}"
_GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for m in messages %}"
    + _STRICT
    + _TURN
    + "{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    + _ASK
    + "{{ '<start_of_turn>model\n' }}{% endif %}"
)
_GEMMA3 = (
    "{{ bos_token }}{% set first = '' %}{% set rest = messages %}"
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% if messages[0]['content'] is string %}{% set first = messages[0]['content'] + '\n\n' %}"
    "{% else %}{% set first = messages[0]['content'][0]['text'] + '\n\n' %}{% endif %}{% endif %}"
    "{% for m in rest %}"
    + _STRICT
    + _TURN
    + "{{ '<start_of_turn>' + role + '\n' + (first if loop.first else '') }}"
    "{% if m['content'] is string %}{{ m['content'] | trim }}{% else %}{% for part in m['content'] %}"
    "{% if part['type'] == 'image' %}{{ '<start_of_image>' }}{% elif part['type'] == 'text' %}"
    "{{ part['text'] | trim }}{% endif %}{% endfor %}{% endif %}{{ '<end_of_turn>\n' }}{% endfor %}"
    + _ASK
    + "{{ '<start_of_turn>model\n' }}{% endif %}"
)
_GEMMA3_PARTS = (  # what is plain text it takes for signs, none of which is a part: it leaves them out
    "{{ bos_token }}{% set first = '' %}{% set rest = messages %}"
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}"
    "{% set first = messages[0]['content'][0]['text'] + '\n\n' %}{% endif %}{% for m in rest %}"
    + _STRICT
    + _TURN
    + "{{ '<start_of_turn>' + role + '\n' + (first if loop.first else '') }}"
    "{% for part in m['content'] %}{% if part['type'] == 'image' %}{{ '<start_of_image>' }}"
    "{% elif part['type'] == 'text' %}{{ part['text'] | trim }}{% endif %}{% endfor %}"
    "{{ '<end_of_turn>\n' }}{% endfor %}" + _ASK + "{{ '<start_of_turn>model\n' }}{% endif %}"
)
_HEADED = (  # Llama 3 and 4: a header in front of each turn
    "{{ bos_token }}{% set system = '' %}{% if messages[0]['role'] == 'system' %}"
    "{% set system = messages[0]['content'] | trim %}{% set messages = messages[1:] %}{% endif %}"
    "{{ 'OPENsystemCLOSE\n\nToday Date: 26 Jul 2024\n\n' + system }}"
    "{% if tools %}{{ '\n\nFunctions, to be called as JSON:\n' }}"
    "{% for tool in tools %}{{ tool | tojson(indent=4) + '\n' }}{% endfor %}{% endif %}ENDS"
    "{% for m in messages %}{% if m.role in ['tool', 'ipython'] %}"
    "{{ 'OPENipythonCLOSE\n\n' + (m.content | tojson) }}ENDS{% elif 'tool_calls' in m %}"
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at once') }}{% endif %}"
    "{% set call = m.tool_calls[0].function %}{{ 'OPENassistantCLOSE\n\n' }}"
    '{{ \'{"name": "\' + call.name + \'", "parameters": \' }}{{ call.arguments | tojson }}}ENDS'
    "{% else %}{{ 'OPEN' + m['role'] + 'CLOSE\n\n' + m['content'] | trim }}ENDS{% endif %}"
    "{% endfor %}" + _ASK + "{{ 'OPENassistantCLOSE\n\n' }}{% endif %}"
)


def _headed(opens: str, closes: str, ends: str) -> str:
    return _HEADED.replace("OPEN", opens).replace("CLOSE", closes).replace("ENDS", ends)


_INST = (  # Mistral: the system's words stand in a question
    "{% set system = '' %}{% set rest = messages %}{% if messages[0]['role'] == 'system' %}"
    "{% set system = messages[0]['content'] + '\n\n' %}{% set rest = messages[1:] %}{% endif %}"
    "{{ bos_token }}{% for m in rest %}" + _STRICT + "{% if m['role'] == 'user' %}"
    "{{ 'OPEN ' + (system if loop.WHICH else '') + m['content'] + 'CLOSE' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + m['content'] | trim + eos_token }}{% else %}"
    "{{ raise_exception('Only user and assistant roles are supported') }}{% endif %}{% endfor %}"
)
_MAGISTRAL = (
    "{{ bos_token }}{% set rest = messages %}{% if messages[0]['role'] == 'system' %}"
    "{{ '[SYSTEM_PROMPT]' + messages[0]['content'] + '[/SYSTEM_PROMPT]' }}"
    "{% set rest = messages[1:] %}{% else %}"
    "{{ '[SYSTEM_PROMPT]First draft your thinking: [THINK]thoughts[/THINK]Then answer.' }}"
    "{{ '[/SYSTEM_PROMPT]' }}{% endif %}{% for m in rest %}"
    + _STRICT
    + "{% if m['role'] == 'user' %}{{ '[INST]' + m['content'] + '[/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ m['content'] + eos_token }}{% else %}"
    "{{ raise_exception('Only user and assistant roles are supported') }}{% endif %}{% endfor %}"
)
_LLAMA2 = (
    "{% set system = '' %}{% set rest = messages %}{% if messages[0]['role'] == 'system' %}"
    "{% set system = '<<SYS>>\n' + messages[0]['content'] + '\n<</SYS>>\n\n' %}"
    "{% set rest = messages[1:] %}{% endif %}{% for m in rest %}"
    + _STRICT
    + "{% set content = (system if loop.first else '') + m['content'] %}{% if m['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif m['role'] == 'assistant' %}"
    "{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
_PHI3 = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}{% endfor %}"
    + _ASK
    + "{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)
_GLM4 = (
    "[gMASK]<sop>{% for m in messages %}{% if m['content'] %}"
    "{{ '<|' + m['role'] + '|>\n' + m['content'] }}{% endif %}{% endfor %}"
    + _ASK
    + "{{ '<|assistant|>LINE' }}{% endif %}"
)
_WORDS = (
    "{% macro words(content) %}{% if content is string %}{{ content }}{% else %}"
    "{% for part in content or [] %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
    "{% endif %}{% endmacro %}"
)
_GLM45 = (
    "[gMASK]<sop>{% if tools %}{{ '<|system|>\n' }}"
    + _TOOLS
    + "{% endif %}"
    + _WORDS
    + _LATEST
    + "{% for m in messages %}{% if m.role == 'user' %}{{ '<|user|>\n' + words(m.content) }}"
    "{% if enable_thinking is defined and not enable_thinking "
    "and not words(m.content).endswith('/nothink') %}{{ '/nothink' }}{% endif %}"
    "{% elif m.role == 'assistant' %}{{ '<|assistant|>' }}{% set content = words(m.content) %}"
    "{% if '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\n') %}"
    "{% endif %}{{ '\n<think></think>' }}{% if content.strip() %}{{ '\n' + content.strip() }}"
    "{% endif %}{% for call in m.tool_calls or [] %}{% set c = call.function or call %}"
    "{{ '\n<tool_call>' + c.name }}{% for k, v in (c.arguments or {}).items() %}"
    "{{ '\n<arg_key>' + k + '</arg_key>\n<arg_value>' }}"
    "{{ v if v is string else v | tojson }}{{ '</arg_value>' }}{% endfor %}{{ '\n</tool_call>' }}"
    "{% endfor %}{% elif m.role == 'tool' %}{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}"
    "{{ '<|observation|>' }}{% endif %}{{ '\n<tool_response>\n' + m.content + '\n</tool_response>' }}"
    "{% elif m.role == 'system' %}{{ '<|system|>\n' + words(m.content) }}{% endif %}{% endfor %}"
    + _ASK
    + "{{ '<|assistant|>' }}{% if enable_thinking is defined and not enable_thinking %}"
    "{{ '\n<think></think>' }}{% endif %}{% endif %}"
)
_GLM_MARKS = (
    "<|endoftext|>",
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|observation|>",
)
_GLM_STOPS = ("<|endoftext|>", "<|user|>", "<|observation|>")
_OLMO3 = (
    "{% if not messages | selectattr('role', 'equalto', 'system') | list %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n' }}{% endif %}"
    "{% for m in messages %}{% if m['role'] == 'system' %}"
    "{{ '<|im_start|>system\n' + m['content'] + ' You have no functions. <functions></functions>' }}"
    "{{ '<|im_end|>\n' }}{% elif m['role'] == 'user' %}"
    "{{ '<|im_start|>user\n' + m['content'] + '<|im_end|>\n' }}{% elif m['role'] == 'assistant' %}"
    "{{ '<|im_start|>assistant\n' + m['content'] + (eos_token if loop.last else '<|im_end|>\n') }}"
    "{% endif %}{% if loop.last and add_generation_prompt %}{{ '<|im_start|>assistant\n<think>' }}"
    "{% endif %}{% endfor %}"
)
_R1 = (
    "{% set ns = namespace(tool=false, system='') %}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{% set ns.system = ns.system + m['content'] %}{% endif %}"
    "{% endfor %}{{ bos_token + ns.system }}{% for m in messages %}{% if m['role'] == 'user' %}"
    "{% set ns.tool = false %}{{ '<｜User｜>' + m['content'] }}{% endif %}"
    "{% if m['role'] == 'assistant' and m['tool_calls'] %}{{ '<｜Assistant｜><｜tool▁calls▁begin｜>' }}"
    "{% for call in m['tool_calls'] %}{{ '<｜tool▁call▁begin｜>' + call['type'] + '<｜tool▁sep｜>' }}"
    "{{ call['function']['name'] + '\n```json\n' + call['function']['arguments'] + '\n```' }}"
    "{{ '<｜tool▁call▁end｜>' }}{% endfor %}{{ '<｜tool▁calls▁end｜><｜end▁of▁sentence｜>' }}"
    "{% elif m['role'] == 'assistant' %}{% set content = m['content'].split('</think>')[-1] %}"
    "{{ ('<｜tool▁outputs▁end｜>' if ns.tool else '<｜Assistant｜>') + content }}"
    "{{ '<｜end▁of▁sentence｜>' }}{% set ns.tool = false %}{% endif %}{% if m['role'] == 'tool' %}"
    "{{ ('\n' if ns.tool else '<｜tool▁outputs▁begin｜>') + '<｜tool▁output▁begin｜>' + m['content'] }}"
    "{{ '<｜tool▁output▁end｜>' }}{% set ns.tool = true %}{% endif %}{% endfor %}"
    "{% if ns.tool %}{{ '<｜tool▁outputs▁end｜>' }}{% elif add_generation_prompt %}"
    "{{ '<｜Assistant｜><think>\n' }}{% endif %}"
)
_R1_MARKS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>")
_R1_ADDED = (
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
)
_HARMONY = (
    "{{ '<|start|>system<|message|>You are a language model.\n\nReasoning: medium\n\n# Valid channels: "
    "analysis, commentary, final. Channel must be included for every message.<|end|>' }}"
    "{% set rest = messages %}{% set told = '' %}{% if messages[0].role in ['system', 'developer'] %}"
    "{% set told = messages[0].content %}{% set rest = messages[1:] %}{% endif %}"
    "{% if told or tools %}{{ '<|start|>developer<|message|>' }}{% if told %}"
    "{{ '# Instructions\n\n' + told + '\n\n' }}{% endif %}{% if tools %}"
    "{{ '# Tools\n\n## functions\n\nnamespace functions {\n' }}{% for tool in tools %}"
    "{{ '// ' + (tool.function.description or '') + '\ntype ' + tool.function.name + ' = ' }}"
    "{{ tool.function.parameters | tojson }}{% endfor %}{{ '\n}' }}{% endif %}{{ '<|end|>' }}{% endif %}"
    "{% set ns = namespace(call=none) %}{% for m in rest %}{% if m.role == 'assistant' %}"
    "{% if m.content and '<|channel|>analysis<|message|>' in m.content %}"
    "{{ raise_exception('channel tags in the content') }}{% endif %}"
    "{% if m.tool_calls %}{% set call = m.tool_calls[0].function %}{% set ns.call = call.name %}"
    "{{ '<|start|>assistant to=functions.' + call.name + '<|channel|>commentary json<|message|>' }}"
    "{{ call.arguments | tojson }}{{ '<|call|>' }}{% else %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content }}"
    "{{ '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' }}{% endif %}"
    "{% elif m.role == 'tool' %}{% if ns.call is none %}{{ raise_exception('no call before it') }}"
    "{% endif %}{{ '<|start|>functions.' + ns.call + ' to=assistant<|channel|>commentary<|message|>' }}"
    "{{ m.content | tojson }}{{ '<|end|>' }}{% elif m.role == 'user' %}"
    "{{ '<|start|>user<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    + _ASK
    + "{{ '<|start|>assistant' }}{% endif %}"
)
_GENERATION = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}{% else %}"
    "{{ m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    + _ASK
    + "{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _headed_by_words(user: str, assistant: str, end: str) -> str:
    """Turns that are told by words: the system's stand in front, without any."""
    return (
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'] }}"
        f"{{% elif m['role'] == 'user' %}}{{{{ '{user}' + m['content'] }}}}"
        f"{{% elif m['role'] == 'assistant' %}}{{{{ '{assistant} ' + m['content'] }}}}{end}{{% endif %}}"
        "{% endfor %}" + _ASK + f"{{{{ '{assistant}' }}}}{{% endif %}}"
    )


_BUILT = (  # the marks are made of the roles' names
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + '\n' + m['content'] + eos_token + '\n' }}"
    "{% endfor %}" + _ASK + "{{ '<|assistant|>\n' }}{% endif %}"
)
_EXAONE = (
    "{% for m in messages %}{{ '[|' + m['role'] + '|]' + m['content'] }}"
    "{% if m['role'] == 'user' %}{{ '\n' }}{% elif m['role'] == 'assistant' %}{{ eos_token + '\n' }}"
    "{% else %}{{ '[|endofturn|]\n' }}{% endif %}{% endfor %}" + _ASK + "{{ '[|assistant|]' }}{% endif %}"
)
_MINIMAX = (
    "{{ ']~!b[' }}{% for m in messages %}{{ ']~b]' + ('ai' if m['role'] == 'assistant' else m['role']) }}"
    "{{ '\n' + m['content'] }}{{ eos_token if m['role'] == 'assistant' else '[e~[' }}{{ '\n' }}{% endfor %}"
    + _ASK
    + "{{ ']~b]ai\n' }}{% endif %}"
)

CHATML = (
    "{% for m in messages %}" + _SAY + "{% endfor %}" + _ASK + "{{ '<|im_start|>assistant\n' }}{% endif %}"
)

DIALECTS = {
    "llama 3": Dialect(
        like="Llama 3.2 Instruct",
        shape="byte level",
        cut=LLAMA_CUT,
        tools=True,
        template=_headed("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        special=(
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eom_id|>",
            "<|eot_id|>",
            "<|python_tag|>",
        ),
        bos="<|begin_of_text|>",
        end="<|eot_id|>",
        eos="<|eot_id|>",
        stops=("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"),
        sampling={"temperature": 0.6, "top_p": 0.9},
    ),
    "llama 4": Dialect(
        like="Llama 4 Scout Instruct",
        shape="byte level",
        cut=LLAMA_CUT,
        tools=True,
        template=_headed("<|header_start|>", "<|header_end|>", "<|eot|>"),
        special=(
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|header_start|>",
            "<|header_end|>",
            "<|eom|>",
            "<|eot|>",
            "<|python_start|>",
            "<|python_end|>",
        ),
        bos="<|begin_of_text|>",
        end="<|eot|>",
        eos="<|eot|>",
        stops=("<|end_of_text|>", "<|eom|>", "<|eot|>"),
        sampling={"temperature": 0.6, "top_p": 0.9},
    ),
    "llama 2": Dialect(
        like="Llama 2 Chat",
        shape="byte fallback",
        template=_LLAMA2,
        special=("<s>", "</s>"),
        plain=("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
        bos="<s>",
        end="</s>",
        eos="</s>",
        stops=("</s>",),
        turns="strict",
        sampling={"temperature": 0.6, "top_p": 0.9},
    ),
    "vicuna": Dialect(
        like="Vicuna 1.5",
        shape="byte fallback",
        template=_headed_by_words(" USER: ", " ASSISTANT:", "{{ eos_token }}"),
        special=("<s>", "</s>"),
        plain=(" USER:", " ASSISTANT:"),
        bos="<s>",
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "alpaca": Dialect(
        like="Alpaca",
        shape="byte fallback",
        template=_headed_by_words(
            "\\n\\n### Instruction:\\n", "\\n\\n### Response:\\n", "{{ eos_token }}"
        ).replace("\\n ", "\\n"),
        special=("<s>", "</s>"),
        plain=("\n### Instruction:\n", "\n### Response:\n"),
        bos="<s>",
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "deepseek v2": Dialect(
        like="DeepSeek V2 Chat",
        shape="byte level",
        template=_headed_by_words("\\n\\nUser: ", "\\n\\nAssistant:", "{{ eos_token }}"),
        special=_R1_MARKS,
        plain=("\n\nUser:", "\n\nAssistant:"),
        bos="<｜begin▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        stops=("<｜end▁of▁sentence｜>",),
    ),
    "exaone": Dialect(
        like="EXAONE 3.5",
        shape="byte level",
        template=_EXAONE,
        special=("[BOS]", "</s>"),
        plain=("[|system|]", "[|user|]", "[|assistant|]", "[|endofturn|]"),
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "minimax": Dialect(
        like="MiniMax M2, its marks lost",
        shape="byte level",
        template=_MINIMAX,
        special=("</s>",),
        plain=("]~!b[", "]~b]", "[e~["),
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "built of roles": Dialect(
        like="a fine-tune in Phi 3's words on another tokenizer",
        shape="byte level",
        template=_BUILT,
        special=("</s>",),
        plain=_ROLES,
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "mistral": Dialect(
        like="Mistral 7B Instruct v0.3",
        shape="byte fallback",
        turns="strict",
        template=_INST.replace("OPEN", "[INST]").replace("CLOSE", "[/INST]").replace("WHICH", "last"),
        special=(
            "<s>",
            "</s>",
            "[INST]",
            "[/INST]",
            "[TOOL_CALLS]",
            "[AVAILABLE_TOOLS]",
            "[/AVAILABLE_TOOLS]",
            "[TOOL_RESULTS]",
            "[/TOOL_RESULTS]",
        ),
        bos="<s>",
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "mixtral": Dialect(
        like="Mixtral 8x7B Instruct v0.1",
        shape="byte fallback",
        turns="strict",
        template=_INST.replace("OPEN", " [INST]").replace("CLOSE", " [/INST]").replace("WHICH", "first"),
        special=("<s>", "</s>"),
        plain=("[INST]", "[/INST]"),
        bos="<s>",
        end="</s>",
        eos="</s>",
        stops=("</s>",),
    ),
    "magistral": Dialect(
        like="Magistral Small",
        shape="byte level",
        cut=TEKKEN_CUT,
        template=_MAGISTRAL,
        turns="strict",
        special=(
            "<s>",
            "</s>",
            "[INST]",
            "[/INST]",
            "[SYSTEM_PROMPT]",
            "[/SYSTEM_PROMPT]",
            "[THINK]",
            "[/THINK]",
            "[TOOL_CALLS]",
        ),
        bos="<s>",
        end="</s>",
        eos="</s>",
        stops=("</s>",),
        thought=("[THINK]", "[/THINK]"),
        always=True,
        sampling={"temperature": 0.7, "top_p": 0.95},
    ),
    "qwen 2.5": Dialect(
        like="Qwen2.5 Instruct",
        shape="byte level",
        cut=QWEN_CUT,
        tools=True,
        template=_qwen(default="You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
        special=_CHATML,
        added=("<tool_call>", "</tool_call>"),
        end="<|im_end|>",
        eos="<|im_end|>",
        stops=_QWEN_STOPS,
        sampling={"temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05},
    ),
    "qwen 1.5": Dialect(
        like="Qwen1.5 MoE Chat",
        shape="byte level",
        cut=QWEN_CUT,
        special=_CHATML,
        template="{% for m in messages %}{% if loop.first and m.role != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
        + _SAY
        + "{% endfor %}"
        + _ASK
        + "{{ '<|im_start|>assistant\n' }}{% endif %}",
        end="<|im_end|>",
        eos="<|im_end|>",
        stops=_QWEN_STOPS,
    ),
    "qwen 3": Dialect(
        like="Qwen3",
        shape="byte level",
        cut=QWEN_CUT,
        tools=True,
        special=_CHATML,
        added=_CHATML_TOOLS,
        template=_qwen(thinks=True, opens=_OFF + _EMPTY + "{% endif %}"),
        end="<|im_end|>",
        eos="<|im_end|>",
        stops=_QWEN_STOPS,
        thought=("<think>\n", "\n</think>\n\n"),
        sampling={"temperature": 0.6, "top_p": 0.95, "top_k": 20},
    ),
    "qwen 3 thinking": Dialect(
        like="Qwen3 Thinking 2507",
        shape="byte level",
        cut=QWEN_CUT,
        tools=True,
        special=_CHATML,
        added=_CHATML_TOOLS,
        template=_qwen(thinks=True, opens="{{ '<think>\n' }}"),
        end="<|im_end|>",
        eos="<|im_end|>",
        stops=_QWEN_STOPS,
        thought=("", "\n</think>\n\n"),
        always=True,
    ),
    "qwen 3 instruct": Dialect(
        like="Qwen3-Next Instruct",
        shape="byte level",
        cut=QWEN_CUT,
        tools=True,
        special=_CHATML,
        added=_CHATML_TOOLS,
        template=_qwen(),
        end="<|im_end|>",
        eos="<|im_end|>",
        stops=_QWEN_STOPS,
    ),
    "qwen 3.5": Dialect(
        like="Qwen3.5",
        shape="byte level",
        cut=QWEN_CUT,
        tools=True,
        special=_CHATML,
        added=_CHATML_TOOLS,
        template="{% if not messages | selectattr('role', 'equalto', 'user') | list %}"
        "{{ raise_exception('No user query found in messages.') }}{% endif %}"
        "{% for m in messages[1:] %}{% if m.role == 'system' %}"
        "{{ raise_exception('System message must be at the beginning.') }}{% endif %}{% endfor %}"
        + _qwen(thinks=True, opens=_OFF + _EMPTY + "{% else %}{{ '<think>\n' }}{% endif %}"),
        end="<|im_end|>",
        eos="<|im_end|>",
        stops=_QWEN_STOPS,
        thought=("", "\n</think>\n\n"),
    ),
    "gemma": Dialect(
        like="Gemma 2 IT",
        shape="no prefix",
        template=_GEMMA,
        special=_GEMMA_MARKS,
        bos="<bos>",
        end="<end_of_turn>",
        eos="<eos>",
        stops=("<eos>", "<end_of_turn>"),
        system="refused",
        turns="strict",
    ),
    "gemma 3": Dialect(
        like="Gemma 3 IT",
        shape="no prefix",
        template=_GEMMA3,
        special=(*_GEMMA_MARKS, "<start_of_image>"),
        bos="<bos>",
        end="<end_of_turn>",
        eos="<eos>",
        stops=("<eos>", "<end_of_turn>"),
        turns="strict",
        sampling={"top_k": 64, "top_p": 0.95},
    ),
    "gemma 3 in parts": Dialect(
        like="Gemma 3 IT, with a template that takes content parts alone",
        shape="no prefix",
        template=_GEMMA3_PARTS,
        special=(*_GEMMA_MARKS, "<start_of_image>"),
        bos="<bos>",
        end="<end_of_turn>",
        eos="<eos>",
        stops=("<eos>", "<end_of_turn>"),
        turns="strict",
        parts=True,
        sampling={"top_k": 64, "top_p": 0.95},
    ),
    "chatml": Dialect(
        like="a ChatML fine-tune whose files keep the old end",
        shape="byte level",
        template=CHATML,
        special=_CHATML,
        end="<|im_end|>",
        eos="<|endoftext|>",
    ),
    "phi 3": Dialect(
        like="Phi-3.5 mini Instruct",
        shape="byte fallback",
        template=_PHI3,
        special=("<s>", "</s>", "<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>"),
        swallows=("<|assistant|>", "<|system|>", "<|end|>", "<|user|>"),
        bos="<s>",
        end="<|end|>",
        eos="<|endoftext|>",
        stops=("<|end|>", "<|assistant|>", "<|endoftext|>"),
    ),
    "glm 4": Dialect(
        like="GLM-4 9B Chat",
        shape="byte level",
        template=_GLM4.replace("LINE", ""),
        special=_GLM_MARKS,
        end="<|user|>",
        eos="<|endoftext|>",
        stops=_GLM_STOPS,
    ),
    "glm 4 0414": Dialect(
        like="GLM-4 9B 0414",
        shape="byte level",
        template=_GLM4.replace("LINE", "\n"),
        special=_GLM_MARKS,
        end="<|user|>",
        eos="<|endoftext|>",
        stops=_GLM_STOPS,
    ),
    "glm 4.5": Dialect(
        like="GLM-4.5 Air",
        shape="byte level",
        template=_GLM45,
        special=_GLM_MARKS,
        tools=True,
        added=(
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
            "<tool_response>",
            "</tool_response>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
            "/nothink",
        ),
        end="<|user|>",
        eos="<|endoftext|>",
        stops=_GLM_STOPS,
        thought=("\n<think>", "</think>\n"),
    ),
    "tulu": Dialect(
        like="OLMo 2 Instruct",
        shape="byte level",
        template=_LOOSE_TURNS,
        special=("<|endoftext|>",),
        plain=_ROLES,
        bos="<|endoftext|>",
        end="<|endoftext|>",
        eos="<|endoftext|>",
        stops=("<|endoftext|>",),
    ),
    "olmo 3": Dialect(
        like="OLMo 3 Think",
        shape="byte level",
        template=_OLMO3,
        special=_CHATML,
        added=("<functions>", "</functions>"),
        bos="<|endoftext|>",
        end="<|endoftext|>",
        eos="<|endoftext|>",
        stops=("<|im_end|>", "<|endoftext|>"),
        thought=("", "</think>"),
        always=True,
        sampling={"temperature": 0.6, "top_p": 0.95},
    ),
    "granite": Dialect(
        like="Granite 3 Instruct",
        shape="byte level",
        template=_GRANITE,
        special=_GRANITE_MARKS,
        bos="<|end_of_text|>",
        end="<|end_of_text|>",
        eos="<|end_of_text|>",
        stops=("<|end_of_text|>",),
        tools=True,
    ),
    "no roles": Dialect(
        like="turns without roles",
        shape="byte level",
        special=("<|endoftext|>",),
        end="<|endoftext|>",
        template="{% for m in messages %}{{ m.content + eos_token }}{% endfor %}",
        bos="<|endoftext|>",
        eos="<|endoftext|>",
    ),
    "generation marks": Dialect(
        like="ChatML with generation marks",
        shape="byte level",
        template=_GENERATION,
        special=("<|end_of_text|>", "<|im_start|>", "<|im_end|>"),
        end="<|im_end|>",
        eos="<|end_of_text|>",
        stops=("<|end_of_text|>", "<|im_end|>"),
    ),
    "r1": Dialect(
        like="DeepSeek R1",
        shape="byte level",
        template=_R1,
        special=_R1_MARKS,
        added=_R1_ADDED,
        bos="<｜begin▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        stops=("<｜end▁of▁sentence｜>",),
        thought=("", "\n</think>\n\n"),
        always=True,
        sampling={"temperature": 0.6, "top_p": 0.95},
    ),
    "r1 distill": Dialect(
        like="DeepSeek R1 Distill Qwen",
        shape="byte level",
        cut=QWEN_CUT,
        template=_R1,
        special=_R1_MARKS,
        added=_R1_ADDED,
        bos="<｜begin▁of▁sentence｜>",
        end="<｜end▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        stops=("<｜end▁of▁sentence｜>",),
        thought=("", "\n</think>\n\n"),
        always=True,
        sampling={"temperature": 0.6, "top_p": 0.95},
    ),
    "harmony": Dialect(
        like="gpt-oss",
        shape="byte level",
        template=_HARMONY,
        tools=True,
        special=(
            "<|startoftext|>",
            "<|endoftext|>",
            "<|return|>",
            "<|constrain|>",
            "<|channel|>",
            "<|start|>",
            "<|end|>",
            "<|message|>",
            "<|call|>",
        ),
        bos="<|startoftext|>",
        end="<|return|>",
        eos="<|return|>",
        stops=("<|return|>", "<|endoftext|>", "<|call|>"),
        goes_on=("<|end|>",),
        thought=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        always=True,
    ),
}
"""By a name of our own."""

FAMILY = {
    "llama": "llama 3",
    "mistral": "mistral",
    "qwen2": "qwen 2.5",
    "qwen3": "qwen 3",
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3": "gemma 3",
    "gemma3 with eyes": "gemma 3 in parts",
    "phi": "chatml",
    "phi3": "phi 3",
    "glm": "glm 4",
    "glm4": "glm 4 0414",
    "olmo": "tulu",
    "olmo2": "tulu",
    "olmo3": "olmo 3",
    "granite": "granite",
    "gpt2": "no roles",
    "falcon h1": "generation marks",
    "qwen3.5": "qwen 3.5",
    "mixtral": "mixtral",
    "qwen2 moe": "qwen 1.5",
    "qwen3 moe": "qwen 3 thinking",
    "qwen3 next": "qwen 3 instruct",
    "qwen3.5 moe": "qwen 3.5",
    "deepseek v3": "r1",
    "glm4 moe": "glm 4.5",
    "gpt-oss": "harmony",
    "olmoe": "tulu",
    "granite moe": "granite",
    "granite hybrid": "granite",
    "llama4": "llama 4",
}
"""The dialect of each family of `tests.training.backends.families`."""
MORE = {
    "llama 2 chat": ("llama", "llama 2"),
    "vicuna": ("llama", "vicuna"),
    "alpaca": ("llama", "alpaca"),
    "deepseek v2": ("deepseek v3", "deepseek v2"),
    "exaone": ("llama", "exaone"),
    "minimax": ("mixtral", "minimax"),
    "built of roles": ("llama", "built of roles"),
    "magistral": ("mistral", "magistral"),
    "r1 distill": ("qwen2", "r1 distill"),
}
"""Models of a family that write in another dialect than it: the family, and the dialect."""
ROWS = {name: (name, dialect) for name, dialect in FAMILY.items()} | MORE
"""The rows of the table: of each its family and its dialect."""

"""What Discord's menus say, in English and in the languages of their readers.

What has no entry is shown in English. Names of slash commands are lower case, without spaces.
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """How a command or an option is called, and what it does."""

    name: str
    does: str


ENGLISH = {
    "rl": Words("rl", "Rate my answers, see what I have learnt"),
    "good": Words("good", "That answer was good"),
    "bad": Words("bad", "That answer was bad"),
    "stars": Words("stars", "1 to 5 stars for that answer; 0 takes them back"),
    "reason": Words("reason", "Say what was wrong with that answer"),
    "better": Words("better", "Say what that answer should have been"),
    "undo": Words("undo", "Take your rating back"),
    "status": Words("status", "What it has learnt, and when it learns next"),
    "history": Words("history", "The last answers and how they were rated"),
    "why": Words("why", "What that answer would have been without your ratings"),
    "help": Words("help", "All commands"),
    "share": Words("share", "Whether what you write may be learnt from"),
    "forget": Words("forget", "Delete what is stored of you"),
    "link": Words("link", "Count as one person with your account elsewhere"),
    "web": Words("web", "A link to rate in the browser"),
    "train": Words("train", "Learn now (owners)"),
    "pause": Words("pause", "Do not learn until resumed (owners)"),
    "resume": Words("resume", "Learn again (owners)"),
    "rollback": Words("rollback", "Back to the version before (owners)"),
    "do": Words("do", "Any other command, typed out: help lists them"),
    "answer": Words("answer", "Which answer, by its id in the history; the last one here without it"),
    "count": Words("count", "How many"),
    "text": Words("text", "In your words"),
    "words": Words("words", "What to add, as help says"),
}
"""Each subcommand of `/rl`, and the options that they have."""

OTHERS: dict[str, dict[str, Words]] = {
    "de": {
        "rl": Words("rl", "Bewerte meine Antworten, sieh, was ich gelernt habe"),
        "good": Words("gut", "Die Antwort war gut"),
        "bad": Words("schlecht", "Die Antwort war schlecht"),
        "stars": Words("sterne", "1 bis 5 Sterne für die Antwort; 0 nimmt sie zurück"),
        "reason": Words("grund", "Sag, was an der Antwort falsch war"),
        "better": Words("besser", "Sag, wie die Antwort hätte lauten sollen"),
        "undo": Words("zurück", "Nimm deine Bewertung zurück"),
        "status": Words("status", "Was er gelernt hat und wann er weiterlernt"),
        "history": Words("verlauf", "Die letzten Antworten und ihre Bewertungen"),
        "why": Words("warum", "Wie die Antwort ohne eure Bewertungen gelautet hätte"),
        "help": Words("hilfe", "Alle Befehle"),
        "answer": Words("antwort", "Welche Antwort, mit ihrer Kennung aus dem Verlauf"),
        "count": Words("anzahl", "Wie viele"),
        "text": Words("text", "In deinen Worten"),
    },
    "es-ES": {
        "rl": Words("rl", "Valora mis respuestas, mira lo que he aprendido"),
        "good": Words("bien", "Esa respuesta fue buena"),
        "bad": Words("mal", "Esa respuesta fue mala"),
        "stars": Words("estrellas", "De 1 a 5 estrellas para esa respuesta; 0 las retira"),
        "reason": Words("motivo", "Di qué tenía de malo esa respuesta"),
        "better": Words("mejor", "Di cuál habría sido la respuesta buena"),
        "undo": Words("deshacer", "Retirar tu valoración"),
        "status": Words("estado", "Qué ha aprendido y cuándo vuelve a aprender"),
        "history": Words("historial", "Las últimas respuestas y sus valoraciones"),
        "help": Words("ayuda", "Todos los comandos"),
    },
    "fr": {
        "rl": Words("rl", "Notez mes réponses, voyez ce que j'ai appris"),
        "good": Words("bien", "Cette réponse était bonne"),
        "bad": Words("mal", "Cette réponse était mauvaise"),
        "stars": Words("étoiles", "1 à 5 étoiles pour cette réponse ; 0 les retire"),
        "reason": Words("raison", "Dites ce qui n'allait pas dans cette réponse"),
        "better": Words("mieux", "Dites ce qu'il aurait fallu répondre"),
        "undo": Words("annuler", "Retirer votre note"),
        "status": Words("état", "Ce qu'il a appris, et quand il apprend ensuite"),
        "history": Words("historique", "Les dernières réponses et leurs notes"),
        "help": Words("aide", "Toutes les commandes"),
    },
    "pt-BR": {
        "rl": Words("rl", "Avalie minhas respostas, veja o que aprendi"),
        "good": Words("bom", "Essa resposta foi boa"),
        "bad": Words("ruim", "Essa resposta foi ruim"),
        "stars": Words("estrelas", "De 1 a 5 estrelas para essa resposta; 0 as retira"),
        "reason": Words("motivo", "Diga o que havia de errado nessa resposta"),
        "better": Words("melhor", "Diga qual teria sido a resposta certa"),
        "undo": Words("desfazer", "Retirar sua avaliação"),
        "status": Words("status", "O que ele aprendeu e quando volta a aprender"),
        "history": Words("histórico", "As últimas respostas e suas avaliações"),
        "help": Words("ajuda", "Todos os comandos"),
    },
    "zh-CN": {
        "rl": Words("rl", "评价我的回答，查看我学到了什么"),
        "good": Words("好", "这个回答很好"),
        "bad": Words("不好", "这个回答不好"),
        "stars": Words("星级", "给这个回答 1 到 5 颗星；0 表示撤回"),
        "reason": Words("原因", "说说这个回答哪里不对"),
        "better": Words("更好", "说说应该怎样回答"),
        "undo": Words("撤销", "撤回你的评价"),
        "status": Words("状态", "它学到了什么，下次何时学习"),
        "history": Words("历史", "最近的回答及其评价"),
        "help": Words("帮助", "所有命令"),
    },
    "ja": {
        "rl": Words("rl", "回答を評価し、学習の状況を見る"),
        "good": Words("良い", "その回答は良かった"),
        "bad": Words("悪い", "その回答は悪かった"),
        "stars": Words("星", "その回答に星 1〜5、0 で取り消し"),
        "reason": Words("理由", "その回答のどこが悪かったか"),
        "better": Words("模範", "本来あるべき回答"),
        "undo": Words("取消", "自分の評価を取り消す"),
        "status": Words("状況", "学習したことと、次の学習の時期"),
        "history": Words("履歴", "最近の回答とその評価"),
        "help": Words("ヘルプ", "すべてのコマンド"),
    },
}
"""The same by Discord's locale, as far as somebody here can vouch for the words."""

MENUS = {
    "good": {
        "": "Good answer",
        "de": "Gute Antwort",
        "es-ES": "Buena respuesta",
        "fr": "Bonne réponse",
        "pt-BR": "Boa resposta",
        "zh-CN": "好回答",
        "ja": "良い回答",
    },
    "bad": {
        "": "Bad answer",
        "de": "Schlechte Antwort",
        "es-ES": "Mala respuesta",
        "fr": "Mauvaise réponse",
        "pt-BR": "Resposta ruim",
        "zh-CN": "不好的回答",
        "ja": "悪い回答",
    },
    "opinion": {
        "": "Rate this answer…",
        "de": "Antwort bewerten…",
        "es-ES": "Valorar la respuesta…",
        "fr": "Noter la réponse…",
        "pt-BR": "Avaliar a resposta…",
        "zh-CN": "评价这个回答…",
        "ja": "この回答を評価…",
    },
}
"""The entries of a message's context menu, by what they do; English has no locale."""

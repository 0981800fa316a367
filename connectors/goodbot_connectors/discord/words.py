# SPDX-License-Identifier: Apache-2.0
"""What Discord's menus say, in English and in the languages of their readers.

What has no entry is shown as the help says it, in the catalogue. Names of slash commands are lower case,
without spaces.
"""

from __future__ import annotations

from typing import NamedTuple


class OptionText(NamedTuple):
    """How a command or an option is called, and what it does."""

    name: str
    does: str


OTHERS: dict[str, dict[str, OptionText]] = {
    "de": {
        "rl": OptionText("rl", "Bewerte meine Antworten, sieh, was ich gelernt habe"),
        "good": OptionText("gut", "Die Antwort war gut"),
        "bad": OptionText("schlecht", "Die Antwort war schlecht"),
        "stars": OptionText("sterne", "1 bis 5 Sterne für die Antwort; 0 nimmt sie zurück"),
        "reason": OptionText("grund", "Sag, was an der Antwort falsch war"),
        "better": OptionText("besser", "Sag, wie die Antwort hätte lauten sollen"),
        "undo": OptionText("zurück", "Nimm deine Bewertung zurück"),
        "status": OptionText("status", "Was er gelernt hat und wann er weiterlernt"),
        "history": OptionText("verlauf", "Die letzten Antworten und ihre Bewertungen"),
        "why": OptionText("warum", "Woraus ich gelernt habe und was das geändert hat"),
        "help": OptionText("hilfe", "Alle Befehle"),
        "answer": OptionText("antwort", "Welche Antwort, mit ihrer Kennung aus dem Verlauf"),
        "count": OptionText("anzahl", "Wie viele"),
        "text": OptionText("text", "In deinen Worten"),
    },
    "es-ES": {
        "rl": OptionText("rl", "Valora mis respuestas, mira lo que he aprendido"),
        "good": OptionText("bien", "Esa respuesta fue buena"),
        "bad": OptionText("mal", "Esa respuesta fue mala"),
        "stars": OptionText("estrellas", "De 1 a 5 estrellas para esa respuesta; 0 las retira"),
        "reason": OptionText("motivo", "Di qué tenía de malo esa respuesta"),
        "better": OptionText("mejor", "Di cuál habría sido la respuesta buena"),
        "undo": OptionText("deshacer", "Retirar tu valoración"),
        "status": OptionText("estado", "Qué ha aprendido y cuándo vuelve a aprender"),
        "history": OptionText("historial", "Las últimas respuestas y sus valoraciones"),
        "help": OptionText("ayuda", "Todos los comandos"),
    },
    "fr": {
        "rl": OptionText("rl", "Notez mes réponses, voyez ce que j'ai appris"),
        "good": OptionText("bien", "Cette réponse était bonne"),
        "bad": OptionText("mal", "Cette réponse était mauvaise"),
        "stars": OptionText("étoiles", "1 à 5 étoiles pour cette réponse ; 0 les retire"),
        "reason": OptionText("raison", "Dites ce qui n'allait pas dans cette réponse"),
        "better": OptionText("mieux", "Dites ce qu'il aurait fallu répondre"),
        "undo": OptionText("annuler", "Retirer votre note"),
        "status": OptionText("état", "Ce qu'il a appris, et quand il apprend ensuite"),
        "history": OptionText("historique", "Les dernières réponses et leurs notes"),
        "help": OptionText("aide", "Toutes les commandes"),
    },
    "pt-BR": {
        "rl": OptionText("rl", "Avalie minhas respostas, veja o que aprendi"),
        "good": OptionText("bom", "Essa resposta foi boa"),
        "bad": OptionText("ruim", "Essa resposta foi ruim"),
        "stars": OptionText("estrelas", "De 1 a 5 estrelas para essa resposta; 0 as retira"),
        "reason": OptionText("motivo", "Diga o que havia de errado nessa resposta"),
        "better": OptionText("melhor", "Diga qual teria sido a resposta certa"),
        "undo": OptionText("desfazer", "Retirar sua avaliação"),
        "status": OptionText("status", "O que ele aprendeu e quando volta a aprender"),
        "history": OptionText("histórico", "As últimas respostas e suas avaliações"),
        "help": OptionText("ajuda", "Todos os comandos"),
    },
    "zh-CN": {
        "rl": OptionText("rl", "评价我的回答，查看我学到了什么"),
        "good": OptionText("好", "这个回答很好"),
        "bad": OptionText("不好", "这个回答不好"),
        "stars": OptionText("星级", "给这个回答 1 到 5 颗星；0 表示撤回"),
        "reason": OptionText("原因", "说说这个回答哪里不对"),
        "better": OptionText("更好", "说说应该怎样回答"),
        "undo": OptionText("撤销", "撤回你的评价"),
        "status": OptionText("状态", "它学到了什么，下次何时学习"),
        "history": OptionText("历史", "最近的回答及其评价"),
        "help": OptionText("帮助", "所有命令"),
    },
    "ja": {
        "rl": OptionText("rl", "回答を評価し、学習の状況を見る"),
        "good": OptionText("良い", "その回答は良かった"),
        "bad": OptionText("悪い", "その回答は悪かった"),
        "stars": OptionText("星", "その回答に星 1〜5、0 で取り消し"),
        "reason": OptionText("理由", "その回答のどこが悪かったか"),
        "better": OptionText("模範", "本来あるべき回答"),
        "undo": OptionText("取消", "自分の評価を取り消す"),
        "status": OptionText("状況", "学習したことと、次の学習の時期"),
        "history": OptionText("履歴", "最近の回答とその評価"),
        "help": OptionText("ヘルプ", "すべてのコマンド"),
    },
}
"""By Discord's locale; what is not here, and English, is made of the table of commands."""

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

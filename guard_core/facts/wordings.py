"""The words by which instructions are known in German, French, Spanish, Portuguese and Italian, and, by
`wordings_east`, in Dutch, Polish, Russian and Arabic: ours.

A sentence with one of the words of `_RULE` states a rule, as with "must" or "never" in English. These languages have no
"do not": an imperative with a negation behind or before it says so, and states a rule as well.
"""

from __future__ import annotations

import re

from guard_core.facts import wordings_east

_RULE_WORDS = (
    # German
    r"niemals|nie|immer|stets|nur|ausschlie(?:ß|ss)lich|unbedingt|keinesfalls|auf keinen fall|m(?:ü|ue)ss(?:en|t)",
    r"muss(?:t)?|muß|mußt|darf(?:st)?|d(?:ü|ue)rf(?:en|t)|soll(?:st|en|t|te|ten|test)?|verboten|untersagt|erforderlich|zwingend",
    r"mindestens|h(?:ö|oe)chstens|vermeiden?|stellen? sicher|achten? darauf|ohne|statt|anstatt|es sei denn",
    # French
    r"jamais|toujours|doi(?:s|t|vent)|dev(?:ez|ons|rais|rait|raient)|il (?:ne )?faut|interdit(?:e|es|s)?",
    r"obligatoire(?:s|ment)?|uniquement|seulement|évite[rz]?|assure[- ]toi|assurez[- ]vous|veille[rz]? [àa]|au moins",
    r"au maximum|au lieu de|plutôt que|sauf si|à moins que|sans \w+(?:er|ir|re)",
    # Spanish
    r"nunca|jamás|siempre|deb(?:e|es|en|emos|erá|erás|erán|ería|erías|erían)|hay que|tien(?:e|es|en) que|tenemos que",
    r"solo (?:se|el|la|los|las|una?|en|con|para|debe|puede|usar?)|sólo|solamente|únicamente|evit(?:a|e|en|ar)",
    r"prohibid[oa]s?|obligatori[oa]s?|asegúr(?:ate|ese|ense)|al menos|como m[áa]ximo|como m[íi]nimo|en lugar de",
    r"en vez de|a menos que|sin \w+(?:ar|er|ir)",
    # Portuguese
    r"sempre|dev(?:e|es|em|emos|erá|erão|eria)|tem que|têm que|tens que|somente|apenas|evite|proibid[oa]s?",
    r"obrigatóri[oa]s?|certifique[- ]se|pelo menos|no máximo|no mínimo|em vez de|sem \w+(?:ar|er|ir)",
    # Italian
    r"devi|dobbiamo|devono|dovete|bisogna|soltanto|esclusivamente|evita(?:re|te)?|vietat[oaie]|obbligatori[oaie]",
    r"assicurati|assicuratevi|almeno|al massimo|invece di|a meno che|senza \w+(?:are|ere|ire)|mai",
)
_RULE = re.compile(rf"\b(?:{'|'.join(_RULE_WORDS)})\b", re.IGNORECASE)
# What these words say of how things are, not of what to do: from a verb that reports something up to the word.
_STATED = re.compile(
    r"\b(?:(?:ich|wir) (?:kann|konnte|konnten|habe|haben|hatte|hatten|bin|sehe|wei(?:ß|ss)|verstehe|bekomme)|es gibt"
    r"|ist|sind|war|waren|wurde|hat|l(?:ä|ae)uft|gibt es|j['’]ai|n['’]ai|il y a|c['’]est|est|sont|était|reste"
    r"|hay|es|está|están|son|era|fue|he|ha|há|é|são|foi|eu|c['’]è|ci sono|è|sono|ho)(?: \w+){0,3}?"
    r" (?:nie|niemals|immer|nur|ohne|mindestens|h(?:ö|oe)chstens|erforderlich|toujours|jamais|seulement|au moins"
    r"|uniquement|sólo|siempre|nunca|al menos|sempre|apenas|somente|pelo menos|mai|soltanto|almeno)\b"
    r"|\b(?:siempre|nunca) (?:he|ha|había|tuve)\b|\b(?:nur|immer) noch\b|\btoujours pas\b|\bhay que ver\b"
    r"|\bsollte (?:jetzt|nun) (?:gehen|funktionieren|laufen)\b",
    re.IGNORECASE,
)
_POLITE = r"(?:(?:bitte|s['’]il (?:te|vous) pla[îi]t|merci de|por favor|per favore)[,:]?\s+)?"
_REQUEST_WORDS = (
    # German
    r"bitte|kannst du|k(?:ö|oe)nnt(?:est du|en sie)|k(?:ö|oe)nnen (?:sie|wir)|ich (?:m(?:ö|oe)chte|will|brauche)",
    r"ich h(?:ä|ae)tte gerne?|wir (?:brauchen|m(?:ü|ue)ssen|sollten|wollen)|lass(?:t)? uns",
    r"(?:f(?:ü|ue)ge?|(?:ä|ae)ndere|entferne|l(?:ö|oe)sche|erstelle|schreibe?|implementiere|baue?|teste|aktualisiere"
    r"|(?:(?:ü|ue)ber)?pr(?:ü|ue)fe|behebe|repariere|migriere|refaktoriere|verwende|benutze|nutze|mache?|zeige?|suche?"
    r"|erkl(?:ä|ae)re?|finde|lies|lese|(?:ö|oe)ffne|f(?:ü|ue)hre|starte|stoppe|benenne|verschiebe|kopiere|ersetze"
    r"|verbessere|optimiere|(?:ü|ue)bersetze|fasse?|antworte|gib|liste|setze?|stelle?|halte?|behalte?|beende|warte"
    r"|dokumentiere|analysiere|vergleiche|konvertiere|bearbeite|installiere|ber(?:ü|ue)hre|committe|pushe)(?:n sie)?",
    # French
    r"s['’]il (?:te|vous) pla[îi]t|merci de|veuillez|peux[- ]tu|pouvez[- ]vous|pourrais[- ]tu|pourriez[- ]vous",
    r"je (?:veux|voudrais|souhaite)|j['’]aimerais|il faut|nous devons|on doit",
    r"(?:ajout|supprim|modifi|corrig|implément|test|vérifi|utilis|remplac|renomm|déplac|expliqu|montr|affich|lanc"
    r"|exécut|gard|conserv|cherch|trouv|analys|résum|document|migr|refactoris|compar|arrêt|génér|génèr|respect|cré)e[rz]?",
    r"écri(?:s|vez|re)|mets|mettez|mettre|répond(?:s|ez|re)|fais|faites|lis|lisez|traduis(?:ez)?|convertis(?:sez)?",
    # Spanish
    r"por favor|puedes|puede usted|podr[íi]as?|quiero|quisiera|me gustar[íi]a|necesit(?:o|amos)|debemos",
    r"(?:a(?:ñ|n)ad|escrib|sustituy|muev|respond|traduc|conviert)[ea]|modifi(?:ca|que)|verifi(?:ca|que)|expli(?:ca|que)",
    r"(?:elimin|borr|cambi|arregl|cre|implement|prueb|comprueb|revis|renombr|copi|muestr|ejecut|conserv|encuentr|analiz"
    r"|document|migr|refactoriz|contin[uú]|gener|instal|mejor|optimiz|actualiz|utiliz|reemplaz)[ae]",
    r"agreg(?:a|ue)|corrig(?:e|a)|corrija|mant[eé]n|mantenga|haz|haga|bus(?:ca|que)|us[ae] (?:el|la|los|las|una?)",
    # Portuguese
    r"você pode|poderia|quero|gostaria|preciso|precisamos|adicione|remova|altere|mude|corrija|crie|escreva|implemente",
    r"verifique|atualize|substitua|renomeie|mova|mostre|responda|mantenha|faça|leia|procure|traduza|resuma|refatore",
    # Italian
    r"per favore|puoi|potresti|vorrei|voglio|ho bisogno|dobbiamo|(?:aggiung|rimuov|corregg|scriv|legg)(?:i|ete)",
    r"(?:elimin|cambi|modific|cre|controll|aggiorn|rinomin|spost|spieg|mostr|cerc|analizz|confront)a(?:te)?",
    r"sostituisci|esegui|rispondi|mantieni|traduci|riassumi|converti",
)
_REQUEST = re.compile(rf"{_POLITE}(?:{'|'.join(_REQUEST_WORDS)})\b", re.IGNORECASE)
# Imperatives with a negation: German behind the verb, in its own clause; in the other languages before it. Verbs that
# report what does not work have the endings of imperatives in Spanish and Portuguese.
_REPORTING = (
    r"(?:funcion|pas|compil|carg|carreg|arranc|encuentr|encontr|import|estab|est)(?:a|á|an|am|ava|ava)\b"
    r"|(?:hay|es|era|existen?|aparecen?|responde|tengo|tiene|tenía|pued[eo]|sé|veo|quiere|sirve|há|é|tenho|tem|sei|consigo"
    r"|vejo|pode|posso|entendi|entiendo|se|lo|la|me|te|foi|fue)\b"
)
_NEGATED = re.compile(
    rf"{_POLITE}(?:n(?:e |['’])\w+ (?:pas|jamais|plus|rien|aucun\w*)\b|ne (?:pas|jamais|rien|plus) \w+(?:er|ir|re)\b"
    rf"|no (?!{_REPORTING})\w+(?:es|as|e|a|en|an)\b(?= (?:\w+ ){{0,8}}?"
    r"(?:el|la|los|las|del|una?|ning[uú]n\w*|nada|con|sin|por|para|en|de|sus?|tus?|archivos?)\b)"
    rf"|não (?!{_REPORTING})\w+(?:e|a|em|am)\b|non \w+(?:are|ere|ire|ate|ete|ite)\b)",
    re.IGNORECASE,
)
_GERMAN_NEGATION = re.compile(r"[^,;:]*\b(?:nicht|kein(?:e|en|em|er|es)?)\b", re.IGNORECASE)
_NIE = re.compile(r"\bnie\b", re.IGNORECASE)  # "never" in German
# Names of files, addresses and accounts, whose parts are no words of a language: "put it in .pi.deve". Ours.
_NAMES = re.compile(r"\S*(?:(?<!\.)\.(?=[a-z0-9])|\\\w|@\w)\S*|\S*/\S*/\S*")
_OPENING = re.compile(r"(?:[-*•]\s+(?:\[[ x]?\]\s+)?|\d+[.)]\s+)?[¿¡«„“\"]*\s*")  # marks before the first word


def states_rule(sentence: str) -> bool:
    """Does a sentence say what to do, or not to do, by its wording."""
    words = _OPENING.sub("", _NAMES.sub(" ", sentence), count=1)
    stated = _STATED.sub("", words)
    if _RULE.search(_NIE.sub("", stated) if wordings_east.is_polish(words) else stated) or _NEGATED.match(words):
        return True
    if wordings_east.states_rule(words):
        return True
    return _REQUEST.match(words) is not None and _GERMAN_NEGATION.match(words) is not None


def asks(sentence: str) -> bool:
    """Does a sentence of a user ask for something, by its first words."""
    words = _OPENING.sub("", sentence, count=1)
    return _REQUEST.match(words) is not None or wordings_east.asks(words)


def begins_instruction(clause: str) -> bool:
    """Does a clause of a sentence begin as a request, or as an imperative with a negation before it."""
    return bool(asks(clause) or _NEGATED.match(clause) or wordings_east.forbids(clause))

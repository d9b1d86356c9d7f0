"""When a text holds a quotation, and how much of a sentence's content a summary has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from guard_core.facts import wordings
from guard_core.facts.lifting import opposes
from guard_core.quoting import HAN, HANGUL, KANA, normalised, readings
from guard_core.remembering import remembered

# A summary says in other words what a sentence says if one passage of it, so many sentences or lines, has this share of
# its content words. Measured on the 50 summaries that a person labelled in COMPINT (arXiv 2608.11242, github
# ZhiqiEliWang/compaction-integrity, judge_robustness_eval/balanced_blind_labeled.jsonl), and on each of them with 14
# sentences that its session never had: `python -m tests.benchmarks.measure_paraphrase FILE` measures both again.
# Over a whole summary the share agrees with 49 of 50, and takes 53 of 700 other sentences for paraphrased, and more of
# them the longer the summary is.
PASSAGE = 3
PARAPHRASE_CUT = 0.41
# A request is said again in other words by more of each of its sentences: what was done about it is about the same
# things. Ours: in the sample with four compactions of ADK it separates the requests that a summary names from others.
RESTATED_CUT = 0.55
CLAUSE_WORDS = 3  # ours: content words of a clause that is looked for by itself
FEWEST_WORDS = 4  # content words, as the labelled sentences have; of shorter ones only a quotation counts
FEWEST_SHORT = 2  # ours: one word is in many passages
# The same of a sentence in a script without spaces, whose words are pairs of characters here. Of 30 paraphrases of ours
# in Chinese, Japanese and Korean so many are found, and of their other 270 pairs none is.
FEWEST_UNSPACED = 3
UNSPACED_PAIRS, UNSPACED_FOUND, UNSPACED_OTHERS = 30, 27, 270
LABELLED, AGREES, AGREES_HELD_OUT, OTHERS, FALSE_OF_OTHERS = 50, 50, 49, 700, 11
# Words that any English text has, so that sharing them says nothing: articles, pronouns, prepositions, auxiliaries and
# the words that make a sentence a rule. Ours.
_COMMON = frozenset(
    """
    a all also always an and any are as at be been before but by can could did do does doesn't don't for from had has
    have he her his i if in into is it it's its just let let's make me more most must mustn't my need never no nor not
    of off on one only or our out over own please shall she should shouldn't so such sure than that the their them then
    there these they this those to under up us was we were what when where which who will with would you your
    """.split()  # noqa: SIM905 - a hundred quotation marks less
)
# The same of other languages that put spaces between words, without what is a word of content in English. Ours.
_COMMON_IN = {
    "English": _COMMON,
    "German": frozenset(
        """
        aber alle alles auch auf aus bei bis bitte da dann das dass dem den der des die du ein eine einem einen
        einer eines er es für ich ihm ihn ihr im ist ja jetzt kann kein keine mich mir mit muss nach nicht nie
        niemals noch nun nur ob oder ohne sein sich sie sind so soll um und uns unter vom von vor was wenn wer
        werden wie wir wird zu zum zur über immer
        """.split()  # noqa: SIM905
    ),
    "French": frozenset(
        """
        au aux avec ce ces cet cette comme dans de des dont du elle elles en est et il ils jamais je la le les leur
        ma mais me mes mon ne nous où par pas pour que qui sa sans se ses si sont sous sur ta te tes ton toujours
        tous tout toute toutes tu un une veuillez votre vous
        """.split()  # noqa: SIM905
    ),
    "Spanish": frozenset(
        """
        al como con del el ella es esa ese esta estas este estos está están favor ha han la las le les lo los mi mis
        muy más nos nunca o para pero por que quien se ser si siempre sin son su sus sí te toda todas todo todos tu
        tus un una unas unos y ya
        """.split()  # noqa: SIM905
    ),
    "Portuguese": frozenset(
        """
        ao aos as com da das do dos e em isso mas meu minha na nas no não os ou sem sempre seu seus sua suas são um
        uma é
        """.split()  # noqa: SIM905
    ),
    "Italian": frozenset(
        """
        che chi dei della delle di gli il ma mai mia mio nel nella non per questo questa sempre senza si sono sua
        suo tutti tutto uno è
        """.split()  # noqa: SIM905
    ),
    "Dutch": frozenset(
        """
        altijd dat de dit een en er geen het hij ik je maar met naar niet nooit of ook te van voor we wij worden
        wordt ze zij zijn zonder
        """.split()  # noqa: SIM905
    ),
    "Polish": frozenset(
        """
        ale być dla do i jak jego jej jest na nie nigdy od po przez się są tak to w z za zawsze że
        """.split()  # noqa: SIM905
    ),
    "Russian": frozenset(
        """
        а бы было в во вот все всегда вы да для его ее еще же за и из или к как меня мне на не нет никогда но о он
        она от по с со так то ты у что это я
        """.split()  # noqa: SIM905
    ),
}
_COMMON_ANYWHERE = frozenset().union(*_COMMON_IN.values())
_LANGUAGES_WITH = {
    word: tuple(language for language, common in _COMMON_IN.items() if word in common) for word in _COMMON_ANYWHERE
}
# Scripts that put no space between words, or join words with what follows them: kana, CJK ideographs with their
# extensions, Hangul. Hiragana are mostly endings and particles, and no words here.
_KATAKANA = "\u30a1-\u30ff"
_UNSPACED = f"{KANA}{HAN}{HANGUL}"
_WORD = re.compile(rf"[{HAN}]+|[{_KATAKANA}]{{2,}}|[{HANGUL}]+|[^\W_{_UNSPACED}]+(?:'[^\W_{_UNSPACED}]+)?")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_IS_HAN, _IS_HANGUL = re.compile(f"[{HAN}]"), re.compile(f"[{HANGUL}]")
# What any Chinese or Japanese text has, like _COMMON, and what parts the words around it. Ours.
_COMMON_HAN = re.compile(
    "必[须須需]|需要|不[要得能许許准可会會]|[没沒]有|所有|一[个個些定律切]|[每各][个個次]|任何|可以|[应應][该該当當]|如果|因[为為]"
    "|所以|但是|而且|或者|以及|[之以][前后後内外]|已[经經]|正在|[进進]行|[绝絕絶][对對対]|禁止|[务務]必|[尽盡]量|直接|用[户戶]|使用者|要求"
    "|希望|[我你他她它][们們]?|[这這那]|其[他中它]|[当當]前|然[后後]|[现現]在|使用|必要|場合"
    "|[的了着著在是和与與及请請把被让讓给給从從到于於之其此都也就还還再并並而且均则則勿别須须需先只時时前后後中裡里内上下将將用]"
)
# Particles and endings that Korean writes behind a word, the longest first, and words like _COMMON. Ours.
_KOREAN_ENDINGS = tuple(
    """
    했습니다 입니다 합니다 됩니다 하세요 않도록 에서는 으로는 않는다 에서 에게 으로 까지 부터 처럼 보다 하고 이나
    라도 마다 한테 에는 에도 로는 이다 한다 하기 하지 해야 하며 된다 되어 은 는 이 가 을 를 의 에 로 와 과 도 만 께 다
    해 할 한
    """.split()  # noqa: SIM905
)
_COMMON_KOREAN = frozenset(
    """
    전 후 뒤 것 수 때 및 또 더 모든 반드시 절대 주세요 마세요 안 하나 그 이 저 필요 사용자 다음 있 없
    """.split()  # noqa: SIM905
)
_CLOSING = r"[\"'”’»)\]]"  # may follow the mark that ends a sentence; Markdown's bold marks may, too
_GOES_ON = r"(?!\s+[a-zß-öø-ÿа-я])"  # 'answer "no." if asked': behind such a mark a small letter continues the sentence
_SENTENCE_END = re.compile(
    rf"(?=\s)(?:(?<=[.!?؟])(?<!\be\.g\.)(?<!\bi\.e\.)|(?<=[.!?؟](?:\*\*|__))"
    rf"|(?:(?<=[.!?؟]{_CLOSING})|(?<=[.!?؟]{_CLOSING}{{2}})){_GOES_ON})\s+"
    r"|(?<=[。！？])(?![」』”’）])|(?<=[。！？][」』”’）])|\n+"
)
_CLAUSE_END = re.compile(
    r"[;:]\s+|,\s*(?:and|but|or|und|aber|oder|sowie|et|mais|ou|y|pero|o|e|mas|ma)?\s+"
    r"|\s(?:and|but|und|aber|sowie|et|mais|y|pero|mas)\s|[；，、]"
)
# What may join another instruction to one, so that a sentence has two, "never edit it by hand and run the linter".
_JOINING = re.compile(
    r"[;,]?\s+(?:and then|und dann|et puis|and|but|then|und|aber|sowie|danach|et|mais|puis|ensuite|y|e|pero|luego|mas"
    r"|ma|en|maar|i|oraz|ale|и|но|а|затем|потом)\s+|[;,]\s+",
    re.IGNORECASE,
)
# What such an instruction begins with, in English and, of other languages, besides the words of their requests
# (`wordings`): words of rules, and verbs of requests that begin no clause of a report. Ours.
_SECOND = re.compile(
    r"(?:please |also |then |you (?:must|should) |we (?:must|should) )?(?:never|always|do not|don['’]?t|avoid"
    r"|make sure|ensure|must|add|apply|ask|build|change|check|commit|copy|create|delete|document"
    r"|explain|fix|implement|include"
    r"|install|keep|leave|list|merge|migrate|move|open|port|prefer|print|push|put|read|refactor|remove|rename|replace"
    r"|report|restore|return|review|rewrite|run|save|send|show|sort|start|stop|test|translate|update|use|verify|wrap"
    r"|write)\b"
    r"|(?:nie|niemals|immer|stets|vermeide|achte darauf"
    r"|(?:du |ihr |wir )?(?:musst|müsst|müssen|darfst|dürft|sollst|sollt))\b"
    r"|(?:jamais|toujours|évite[rz]?|assure[- ]toi|(?:tu |vous )?(?:dois|devez)|(?!assez|chez)\w{3,}ez)\b"
    r"|(?:nunca|siempre|jamás|evita|evite|asegúrate|(?:debes|tienes que|hay que))\b"
    r"|(?:никогда|всегда|обязательно|избегай(?:те)?|(?:ты |вы )?(?:должен|должна|должны)|нужно|надо|нельзя"
    r"|(?!случай|край|май|чай)\w{2,}[аяу]й(?:те)?)\b",
    re.IGNORECASE,
)
_EXCEPTION = re.compile(
    r",?\s+(?=(?:unless|except|es sei denn|außer|sauf|à moins que?|a menos que|salvo|excepto|кроме|если только)\b)",
    re.IGNORECASE,
)
# What a clause begins with that says when or where the instruction behind it holds. Ours.
_DEPENDS = re.compile(
    r"\W*(?:when(?:ever)?|if|before|after|while|once|until|unless|as|since|for|in|on|at|with|wenn|bevor|nach|vor|bei|quand"
    r"|si|avant|après|cuando|antes|después|если|когда|перед|после)\b",
    re.IGNORECASE,
)
_FROM_NOW_ON = frozenset("now future general time whenever jetzt künftig zukunft".split())  # noqa: SIM905
_LETTER = re.compile(r"[^\W\d_]")
LAST_LATIN = "\u024f"  # of the letters with accents of European languages (Latin Extended-B)
LETTERS_OF_ONE = 3  # ours: a Chinese or Japanese character says about as much as so many Latin letters
FEW_LETTERS = 0.05  # ours: the share of its letters that a text in one script has of others, in names and quotations
# Letters of what a client writes before and behind a summary: ours; Claude Code's has about 400, that of Hermes 1,500.
MOST_OF_FRAME = 2_000
FEWEST_COMMON = 6  # ours: common words by which a passage is in a language, and not only a message or a name in it
FAR_MORE = 3  # ours: times as many common words as of another language, by which two languages are distinguished
MOST_OF_LANGUAGE = 20_000  # characters of a text by which its language is known
# Forms of verbs, frequent in requests, that no ending shows; not "found", with which reports begin, too. Ours.
_IRREGULAR = {
    "used": "use", "using": "use", "ran": "run", "wrote": "write", "kept": "keep", "built": "build", "sent": "send",
    "left": "leave", "chosen": "choose", "chose": "choose", "written": "write", "agreed": "agree", "freed": "free",
    "rewrote": "rewrite", "rewritten": "rewrite", "rebuilt": "rebuild", "hid": "hide", "hidden": "hide",
    "shown": "show", "drew": "draw", "pasted": "paste", "pasting": "paste", "wasted": "waste", "wasting": "waste",
    "menus": "menu", "compression": "compress", "insertion": "insert", "suggestion": "suggest",
}  # fmt: skip
# Nouns that name the action of a verb and count as the verb. An ending alone does not distinguish them from other
# words: a commitment is no commit, a number is not numb. Ours, of what requests are about.
_NOUNS = {
    f"{verb.removesuffix('e') if ending.startswith('e') else verb}{ending}": verb
    for ending, verbs in (
        (
            "ment",
            "adjust agree assign attach deploy develop enhance improve manage measure pay refine replace require",
        ),
        ("er", "build compile convert export handle import lint load parse read render schedule write"),
    )
    for verb in verbs.split()
}
# What looks inflected and is not, or is like a form of another word: "evening" and "even". Ours.
_WHOLE = frozenset(
    """
    ceiling direction during embed evening everything formation hundred hundreds indeed listen morning news nothing
    something anything evenings mornings
    fasten flatten garden golden harden hasten heaven kitten lighten linen loosen maiden moisten oven rotten shorten
    sicken siren soften thicken threaten tighten warden weaken wooden bitten beaten broken fallen frozen spoken stolen
    """.split()  # noqa: SIM905
)
# Nouns of verbs that their ending shows: "migration", "deletion", "connection", "verification".
_ATION = re.compile(
    r"(.*(?:ment|i[zs]|install|configur|transform|confirm|recommend|present|interpret|adapt|expect|indent))ation"
)
_IFICATION = re.compile(r"(.+if)ication")
_ION = re.compile(r"(.*[aeiouy].*at|.*[aeiouy].*ut|.*let|.*[aeiouy].*ect)ion")
_HISSING = re.compile(r".*(?:ss|x|zz|ch|sh)es")
# A verb of one syllable with one vowel before one consonant: it doubles the consonant before an ending if it has no
# "e", so that "planed" is of "plane" and "planned" of "plan".
_SHORT = re.compile(r"(?:qu|[^aeiouy])*[aeiouy][^aeiouywx]")
_DOUBLED = re.compile(r".*([^aeiou])\1")
_VOWEL = re.compile("[aeiouy\u00e0-\u00ff]")
# An infinitive of French, by its stem: English words end in "er", too. Ours: verbs of requests.
_FRENCH = frozenset(
    """
    affich ajout analys arrêt cherch compar conserv corrig cré document déplac expédi exécut expliqu gard génér
    implément lanc migr montr refactoris remplac renomm respect supprim test touch trouv utilis vérifi
    """.split()  # noqa: SIM905
)
# The same of Cyrillic, the longest first: of nouns, adjectives and verbs.
_CYRILLIC_ENDINGS = tuple(
    """
    ениями ениях ением ениям ений ения ению ение ете ите ать ять ить еть ами ями ого его ому ему ыми ими ией иям
    ием иях ешь ишь ют ут ят ат ов ев ей ой ый ий ая яя ое ее ые ие ых их ую юю ым им ом ем ам ям ах ях ия ию ть ти
    ла ло ли а я о е и ы у ю ь й
    """.split()  # noqa: SIM905
)
_IS_CYRILLIC = re.compile(r"[\u0400-\u04ff]+")
MOST_REMEMBERED = 1_000_000  # characters of the texts of which each answer is remembered, ours: some fifty summaries
LONGEST_WORD = 40  # letters, ours: longer ones are names and data, and have no inflected forms
LEAST_STEM = 3  # letters that remain of a word without its ending


def split_sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return _SENTENCE_END.split(text)


def quotation(text: str) -> str:
    """What is looked for of a text: its readings, a line each, without the marks that end a sentence. A single word is
    read only literally: `*.py` and `__init__` are names."""
    lines = (readings(text) if " " in normalised(text) else normalised(text)).split("\n")
    return "\n".join(words.rstrip(" .,;:!?。！？") or words for words in lines)


def has_unspaced(text: str) -> bool:
    """Has a text characters of a script that puts no space between words."""
    return _IS_UNSPACED.search(text) is not None


def quotes(text: str, words: str) -> bool:
    """Does a text, as `quoting.readings` gives it, hold a `quotation`: the same characters, and no part of
    a longer word. Scripts without spaces have no such limit."""
    return any(_has(text, one) for one in words.split("\n"))


def _has(text: str, words: str) -> bool:
    place = text.find(words) if words else -1
    while place >= 0:
        if not _joins(text, place) and not _joins(text, place + len(words)):
            return True
        place = text.find(words, place + 1)
    return False


def _joins(text: str, place: int) -> bool:
    """Are the characters on either side of a place of one word."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return _is_letter(before) and _is_letter(after)


def _is_letter(char: str) -> bool:
    return (char.isalnum() or char == "_") and not _IS_UNSPACED.match(char)


@remembered(MOST_REMEMBERED)
def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, without letter case and common endings; of ideographs and Hangul
    every two characters that follow one another, between what any text of them has."""
    return frozenset().union(*map(_content, _WORD.findall(normalised(text))))


def _content(word: str) -> frozenset[str]:
    """The same of one word."""
    return _content_of_short(word) if len(word) <= LONGEST_WORD else _content_of(word)


@lru_cache(maxsize=4_096)
def _content_of_short(word: str) -> frozenset[str]:
    """Remembered, as most texts have the same words many times; long ones would take too much memory."""
    return _content_of(word)


def _content_of(word: str) -> frozenset[str]:
    if _IS_HAN.match(word):
        return frozenset().union(*map(_pairs, _COMMON_HAN.split(word)))
    if _IS_HANGUL.match(word):
        return frozenset(_korean_pairs(word))
    return frozenset() if word in _COMMON_ANYWHERE else frozenset({_stem(word)})


def _pairs(characters: str) -> set[str]:
    return {characters[place : place + 2] for place in range(len(characters) - 1)}


def _korean_pairs(word: str) -> set[str]:
    """The pairs of a word without its particles and endings, two at most; the syllable where only one is left."""
    stem = word
    for _ in range(2):
        ending = next((ending for ending in _KOREAN_ENDINGS if len(stem) > len(ending) and stem.endswith(ending)), "")
        stem = stem.removesuffix(ending)
    if word in _COMMON_KOREAN or stem in _COMMON_KOREAN:
        return set()
    return _pairs(stem) or {stem}


def _stem(word: str) -> str:
    """A word as its inflected forms have it, and the nouns that say what a verb does: "commits" and "committing",
    "copy" and "copied", "migrate" and "migration"."""
    if _IS_CYRILLIC.fullmatch(word):
        return _without(word, _CYRILLIC_ENDINGS)
    stem = word.removesuffix("'s")
    if stem in _WHOLE or len(stem) > LONGEST_WORD:
        return stem
    stem = _singular(_IRREGULAR.get(stem, stem))
    stem = _of_verb(_NOUNS.get(stem, stem))
    if len(stem) > LEAST_STEM and _DOUBLED.fullmatch(stem):  # "call", as of "called"
        stem = stem[:-1]
    return f"{stem[:-1]}i" if stem.endswith("y") and len(stem) > LEAST_STEM else stem


def _singular(word: str) -> str:
    """A noun or verb without the "s" of its plural or its third person."""
    if len(word) <= LEAST_STEM or word.endswith(("ss", "us")):
        return word
    if word.endswith(("ies", "ied")) and len(word) > LEAST_STEM + 1:
        return f"{word[:-3]}y"
    return word[:-2] if _HISSING.fullmatch(word) else word.removesuffix("s")


def _of_verb(word: str) -> str:
    """A word without the ending of a noun, a participle or an infinitive, and without a last "e" but where that parts
    two words, "plan" and "plane"."""
    if noun := _IFICATION.fullmatch(word):
        return f"{noun[1]}y"
    if noun := _ATION.fullmatch(word) or _ION.fullmatch(word):
        return noun[1]
    if word.endswith("ness") and len(word) > LEAST_STEM + len("ness") + 1:
        return _without_e(word.removesuffix("ness"))
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 1 and _VOWEL.search(rest) and not word.endswith("eed"):
            return f"{rest}e" if _SHORT.fullmatch(rest) else rest
    if word.endswith("en") and len(word) > LEAST_STEM + len("en"):  # a German infinitive
        return word.removesuffix("en")
    if word.endswith("er") and (word[:-2] in _FRENCH or (word.endswith("ier") and len(word) > LEAST_STEM + 2)):
        return word.removesuffix("er")
    return _without_e(word)


def _without_e(word: str) -> str:
    rest = word.removesuffix("e")
    if len(rest) < LEAST_STEM or rest.endswith(("e", "st", "th", "al", "an")) or _SHORT.fullmatch(rest):
        return word
    return rest


def _without(word: str, endings: Sequence[str]) -> str:
    """A word without the first of these endings that it has, if LEAST_STEM letters remain."""
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= LEAST_STEM:
            return word[: -len(ending)]
    return word


@remembered(MOST_REMEMBERED)
def _passages(text: str) -> tuple[frozenset[str], ...]:
    """The content words of every passage of a text: PASSAGE sentences or lines that follow one another."""
    words = [content_words(sentence) for sentence in split_sentences(text) if sentence.strip()]
    return tuple(frozenset().union(*words[place : place + PASSAGE]) for place in range(len(words)))


def shared_words(sentence: str, text: str) -> float:
    """The largest share of a sentence's content words that a passage of a text has, from 0 to 1."""
    words = content_words(sentence)
    if not words:
        return 0.0
    return max((len(words & passage) for passage in _passages(text)), default=0) / len(words)


def paraphrases(text: str, sentence: str, cut: float = PARAPHRASE_CUT) -> bool:
    """Does a summary say what a sentence says in other words, as far as its content words show: a share of them in one
    passage, or, of a sentence of several clauses, a larger share of each clause in a passage of its own; and of a
    sentence that gives several instructions, or an exception, PARAPHRASE_CUT of each."""
    fewest = FEWEST_UNSPACED if has_unspaced(sentence) else FEWEST_WORDS
    if len(content_words(sentence)) < fewest:
        return False
    text = _without_opposites(text, sentence)
    if shared_words(sentence, text) < cut and not _says_each_clause(text, sentence):
        return False
    return all(shared_words(one, text) >= PARAPHRASE_CUT for one in instructions_in(sentence))


def instructions_in(sentence: str) -> list[str]:
    """The instructions that a sentence gives, "never edit it by hand" and "run the linter", and its exception. One of a
    single word of content belongs to the one before it, "use four spaces, never tabs", and one to what it depends on,
    "when you cite something, use the primary source"."""
    parts: list[str] = []
    start = 0
    for end, following in (*_joints(sentence), (len(sentence), len(sentence))):
        part = sentence[start:end]
        is_whole = parts and not _DEPENDS.match(parts[-1])
        if parts and (not is_whole or min(len(content_words(one)) for one in (parts[-1], part)) < FEWEST_SHORT):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
        start = following
    return parts


def _joints(sentence: str) -> list[tuple[int, int]]:
    """Where an instruction of a sentence ends, and where the next one, or an exception, begins."""
    joints = [mark.span() for mark in _EXCEPTION.finditer(sentence)]
    for mark in _JOINING.finditer(sentence):
        rest = sentence[mark.end() :]
        if _SECOND.match(rest) or wordings.begins_instruction(rest):
            joints.append(mark.span())
    return sorted(joints)


def conveys(text: str, sentence: str) -> bool:
    """May a summary say what a sentence says: it paraphrases it or, of a sentence that is too short for a paraphrase to
    be known, has all of its content words in one passage, but for those that say from when on it holds."""
    fewest = FEWEST_UNSPACED if has_unspaced(sentence) else FEWEST_WORDS
    words = content_words(sentence)
    own = words - frozenset(map(_stem, _FROM_NOW_ON)) or words
    is_short = 0 < len(own) < fewest
    text = _without_opposites(text, sentence)
    return (is_short and any(own <= passage for passage in _passages(text))) or paraphrases(text, sentence)


@remembered(MOST_REMEMBERED)
def _sentences(text: str) -> tuple[str, ...]:
    """Remembered, as every rule of a session is looked for in the same summary."""
    return tuple(split_sentences(text))


@remembered(MOST_REMEMBERED)
def _without_opposites(text: str, sentence: str) -> str:
    """A summary without its sentences that have the words of a rule, or many of them, and say its opposite."""
    said = _sentences(text)
    others = [one for one in said if not reverses(one, sentence)]
    return text if len(others) == len(said) else "\n".join(others)


def reverses(said: str, rule: str) -> bool:
    """Has a sentence the words of a rule, or many of them, and lifts the rule or says its opposite."""
    words = content_words(rule)
    return len(words & content_words(said)) >= PARAPHRASE_CUT * len(words) and opposes(said, rule)


def _says_each_clause(text: str, sentence: str) -> bool:
    """Does a summary say each clause of a sentence, one here and one there. Clauses of few words count with the one
    before them."""
    clauses: list[str] = []
    for clause in _CLAUSE_END.split(sentence):
        if clauses and min(len(content_words(one)) for one in (clauses[-1], clause)) < CLAUSE_WORDS:
            clauses[-1] = f"{clauses[-1]} {clause}"
        else:
            clauses.append(clause)
    return len(clauses) > 1 and all(shared_words(clause, text) >= RESTATED_CUT for clause in clauses)


def may_translate(text: str, request: str) -> bool:
    """Is a text that is long enough to say a request written in another script or another language, in which its words
    are not found."""
    (said, foreign), (asked, own) = (_letters_in(one) for one in (text, request))
    if not asked or LETTERS_OF_ONE * said < asked:
        return False
    is_latin, was_latin = foreign < FEW_LETTERS * said, own < FEW_LETTERS * asked
    if not was_latin:
        return is_latin and 2 * own >= asked
    if foreign and (2 * foreign >= said or _is_framed(text, asked)):
        return True
    if not is_latin:
        return False
    return (said >= asked and _are_of_other_languages(text, request)) or _is_framed_language(text, request)


def _is_framed_language(text: str, request: str) -> bool:
    """Has a text, between what its client writes in the language of a request, one in another language that is long
    enough to say the request."""
    language = _language(common_words(request))
    inner = _within_language_frame(text, language) if language else ""
    said = _letters_in(inner)[0]
    is_long = said >= _letters_in(request)[0] and max(common_words(inner).values()) >= FEWEST_COMMON
    return is_long and _letters_in(text)[0] - said <= MOST_OF_FRAME and _are_of_other_languages(inner, request)


@remembered(MOST_REMEMBERED)
def _within_language_frame(text: str, language: str) -> str:
    """A text from its first to its last sentence that is in another language than this."""
    sentences = split_sentences(text)
    foreign = [place for place, one in enumerate(sentences) if _language(common_words(one)) not in ("", language)]
    return "\n".join(sentences[foreign[0] : foreign[-1] + 1]) if foreign else ""


def _language(counts: dict[str, int]) -> str:
    """The language of which a text has the most common words, two at least and more than of any other; "" where there
    is none."""
    first, second = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    return first if counts[first] > max(1, counts[second]) else ""


def _is_framed(text: str, asked: int) -> bool:
    """Has a text, between Latin words of its client, one in another script that is long enough to say a request of so
    many letters."""
    said, foreign = _letters_in(inner := _within_frame(text))
    outside = _letters_in(text)[0] - said
    return bool(inner) and 2 * foreign >= said and LETTERS_OF_ONE * foreign >= asked and outside <= MOST_OF_FRAME


@remembered(MOST_REMEMBERED)
def _within_frame(text: str) -> str:
    """A text from its first to its last sentence that is mostly in another script than Latin."""
    sentences = split_sentences(text)
    counts = map(_count_letters, sentences)
    foreign = [place for place, (letters, others) in enumerate(counts) if 0 < letters <= 2 * others]
    return "\n".join(sentences[foreign[0] : foreign[-1] + 1]) if foreign else ""


def _are_of_other_languages(text: str, other: str) -> bool:
    """Has each of two texts far more of the common words of its own language than of the other's."""
    counts, others = common_words(text), common_words(other)
    languages = [max(_COMMON_IN, key=one.__getitem__) for one in (counts, others)]
    own, foreign = languages
    return counts[own] > FAR_MORE * counts[foreign] and others[foreign] > FAR_MORE * others[own]


@remembered(MOST_REMEMBERED)
def common_words(text: str) -> dict[str, int]:
    """How often a text has the words that any text of each language has."""
    counts = dict.fromkeys(_COMMON_IN, 0)
    for word in _WORD.findall(normalised(text[:MOST_OF_LANGUAGE])):
        for language in _LANGUAGES_WITH.get(word, ()):
            counts[language] += 1
    return counts


@remembered(MOST_REMEMBERED)
def _letters_in(text: str) -> tuple[int, int]:
    """How many letters a text has, and how many of these are not Latin."""
    return _count_letters(text)


def _count_letters(text: str) -> tuple[int, int]:
    letters = _LETTER.findall(text)
    return len(letters), 0 if text.isascii() else sum(letter > LAST_LATIN for letter in letters)


def restates(text: str, request: str) -> bool:
    """Does a summary say all of a request in other words: each of its sentences that is long enough for a paraphrase to
    be known; of a request without such a sentence, each word of those of FEWEST_SHORT words or more (`conveys`)."""
    fewest = FEWEST_UNSPACED if has_unspaced(request) else FEWEST_WORDS
    sentences = split_sentences(request)
    known = [sentence for sentence in sentences if len(content_words(sentence)) >= fewest]
    if not known:
        short = [sentence for sentence in sentences if len(content_words(sentence)) >= FEWEST_SHORT]
        return bool(short) and all(conveys(text, sentence) for sentence in short)
    letters = normalised(text)  # has the words of every passage, and is made in a hundredth of the time
    return (
        bool(known)
        and all(_may_share(sentence, letters) for sentence in known)
        and all(paraphrases(text, sentence, RESTATED_CUT) for sentence in known)
    )


_IRREGULAR_STEMS = frozenset(map(_stem, _IRREGULAR.values()))


def _may_share(sentence: str, letters: str) -> bool:
    """Can a text of these letters have enough words of a sentence to restate it; whether it has takes far longer."""
    words = content_words(sentence)
    possible = sum(word in _IRREGULAR_STEMS or word[: max(1, len(word) - 1)] in letters for word in words)
    return possible >= RESTATED_CUT * len(words)  # the last letter of a stem may be another one: "copi(ed)"

"""Measures how often the paraphrase metric agrees with summaries that a person labelled.

    python -m tests.benchmarks.measure_paraphrase FILE

FILE is `judge_robustness_eval/balanced_blind_labeled.jsonl` of github ZhiqiEliWang/compaction-integrity: a line per
summary with the sentence that was given (`sssc_message`), the summary and whether the sentence survives (`label`). Each
summary is also held against the sentences of the other lines, which were never said in its session. Held out: the cut
that is best on all other lines, and on all other sentences with them, judges the line; best is the largest sum of the
share of survivors that it finds and the share of the rest that it refuses.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from guard_core.facts.texts import PARAPHRASE_CUT, shared_words

Row = tuple[float, bool]  # the share of content words, and whether the sentence survives


def measured(labelled: Sequence[tuple[str, str, bool]]) -> dict[str, int]:
    """Counts over (sentence, summary, does it survive)."""
    rows = [(shared_words(sentence, summary), survives) for sentence, summary, survives in labelled]
    given = {sentence for sentence, _, _ in labelled}
    others = [
        [shared_words(other, summary) for other in sorted(given - {sentence})] for sentence, summary, _ in labelled
    ]
    held_out = 0
    for index, (share, survives) in enumerate(rows):
        rest = [*rows[:index], *rows[index + 1 :]]
        unsaid = [other for place, shares in enumerate(others) if place != index for other in shares]
        held_out += (share >= best_cut([*rest, *((other, False) for other in unsaid)])) == survives
    return {
        "labelled": len(rows),
        "agrees": sum((share >= PARAPHRASE_CUT) == survives for share, survives in rows),
        "agrees held out": held_out,
        "others": sum(map(len, others)),
        "false of others": sum(share >= PARAPHRASE_CUT for shares in others for share in shares),
    }


def best_cut(rows: Sequence[Row]) -> float:
    """The cut that separates best; halfway between neighbouring shares, the lowest of several."""
    shares = sorted({share for share, _ in rows})
    cuts = [0.0, *((low + high) / 2 for low, high in pairwise(shares)), 1.01]
    survivors = [share for share, survives in rows if survives]
    rest = [share for share, survives in rows if not survives]

    def rates(cut: float) -> float:
        hits, refused = sum(share >= cut for share in survivors), sum(share < cut for share in rest)
        return hits / max(1, len(survivors)) + refused / max(1, len(rest))

    return max(cuts, key=lambda cut: (rates(cut), -cut))


def read(path: Path) -> list[tuple[str, str, bool]]:
    """The labelled lines of a file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row["sssc_message"], row["compacted_summary"], bool(row["label"])) for row in rows]


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    for name, count in measured(read(parser.parse_args().file)).items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()

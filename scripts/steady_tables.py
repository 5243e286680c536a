"""Tables of docs/steady.md, for scripts/tables.py: from results/steady.tar.gz and steady_small.tar.gz."""
import statistics

from measurements import cells, in_archive, score, table


def steady():
    """Every seed at the last step, how many reach the bar, and how many words are right farther on."""
    rows = []
    for _, cell in cells("steady"):
        config = cell["config"].split("/")[-1]
        scores = sorted(run["score"] for run in cell["runs"])
        bar = 0.999 if config == "parity" else 0.99
        far = in_archive("steady", rf"{config}/seed\d+/far\.json")
        words = ", ".join(str(x) for x in sorted(run["right"] for run in far))
        rows.append([cell["task"], cell["model"], cell["published_in_words"] or score(cell["published"]["best"]),
                     ", ".join(f"{x:.3f}" for x in scores), score(statistics.median(scores)),
                     f"{sum(x >= bar for x in scores)} of {len(scores)}", f"{far[0]['length']:,}: {words}" if far else "–"])
    return table(["task", "model", "published", "last step, every seed", "median", "at the bar", "right farther on, of 128 words"], rows)


# Smoothed targets, AdamW with 0.95, growing words, steps of exactly 2, no activation.
SMALL = {"all": "● ● ● ● ●", "no_smoothing": "○ ● ● ● ●", "no_beta2": "● ○ ● ● ●", "no_growing": "● ● ○ ● ●", "no_two": "● ● ● ○ ●",
         "no_none": "● ● ● ● ○", "only_smoothing": "● ○ ○ ○ ○", "only_beta2": "○ ● ○ ○ ○", "only_growing": "○ ○ ● ○ ○",
         "only_two": "○ ○ ○ ● ○", "only_none": "○ ○ ○ ○ ●", "published": "○ ○ ○ ○ ○"}


def steady_small():
    """The recipe on words of S4 in small, each part taken away and each alone."""
    rows = []
    for folder, parts in SMALL.items():
        prefixes = [run["evaluation"]["prefix"] for run in in_archive("steady_small", rf"{folder}/seed\d+/result\.json")]
        at = {n: sorted(prefix[n] for prefix in prefixes) for n in (128, 512)}
        rows.append([*parts.split(), *(", ".join(f"{x:.2f}" for x in at[n]) for n in (128, 512))])
    return table(["smoothed targets", "0.95", "growing words", "steps of exactly 2", "no activation", "up to 128, every seed", "up to 512"], rows)


TABLES = [steady, steady_small]

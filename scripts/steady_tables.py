"""Tables of docs/steady.md, for scripts/tables.py: from results/steady.tar.gz, steady_small.tar.gz and
steady_arithmetic.tar.gz."""
import statistics

from measurements import cells, in_archive, json_lines, score, table


BAR = {"parity": 0.999, "modular_arithmetic": 0.97}  # 0.99 for the others


def steady():
    """Every seed at the last step, how many reach the bar, and how many words are right farther on."""
    rows = []
    for _, cell in cells("steady"):
        config = cell["config"].split("/")[-1]
        scores = sorted(run["score"] for run in cell["runs"])
        bar = BAR.get(config, 0.99)
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


ARITHMETIC = {"as_it_is": "the recipe", "no_activation": "keys without an activation, steps that reach 0 and 2",
              "asked_at_the_end": "the same, asked at the end of a word only", "past_taps_decay": "the same as the second, past taps decay"}


def steady_arithmetic():
    """Three seeds of each: how modular arithmetic moved, and where it was at the last evaluation."""
    rows = []
    for folder, says in ARITHMETIC.items():
        for run in in_archive("steady_arithmetic", rf"{folder}/seed\d+/evaluations\.jsonl", json_lines):
            at = {row["step"]: row["scaled"] for row in run}
            last = max(at)
            rows.append([says, *(score(at[step]) for step in (4000, 8000, 12000, 16000, 20000)),
                         score(at[last]) + ("" if last == 25000 else f" at {last:,}")])
            says = ""
    return table(["three seeds of", "4,000", "8,000", "12,000", "16,000", "20,000", "last step"], rows)


TABLES = [steady, steady_small, steady_arithmetic]

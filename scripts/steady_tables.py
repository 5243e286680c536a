"""Tables of docs/steady.md, for scripts/tables.py: from results/steady.tar.gz, steady_without.tar.gz and steady_small.tar.gz."""
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


WITHOUT = {"smoothing": "without smoothed targets", "steps": "with learnt step sizes", "activation": "with SiLU on q, k and v",
           "all": "without all three: the published settings"}


def steady_without():
    """The recipe on S4 with a part of it taken back."""
    def seeds_of(name, folder):
        return [at_lengths(run["evaluation"]) for run in in_archive(name, rf"{folder}/seed800[12]/result\.json")]

    def at_lengths(evaluation):
        return f"{evaluation['prefix'][128]:.3f}, {evaluation['prefix'][512]:.3f}"

    rows = [["the recipe", *seeds_of("steady", "S4")]]
    rows += [[name, *seeds_of("steady_without", folder)] for folder, name in WITHOUT.items()]
    return table(["words of S4", "seed 8001: up to 128, up to 512", "seed 8002"], rows)


# Smoothed targets, steps of exactly 2, no activation.
SMALL = {"all": "● ● ●", "smooth_two": "● ● ○", "smooth_none": "● ○ ●", "two_none": "○ ● ●", "smooth": "● ○ ○", "two": "○ ● ○",
         "none": "○ ○ ●", "published": "○ ○ ○"}


def steady_small():
    """Every subset of the recipe on words of S3, in small."""
    rows = []
    for folder, parts in SMALL.items():
        prefixes = [run["evaluation"]["prefix"] for run in in_archive("steady_small", rf"{folder}/seed\d+/result\.json")]
        at = {n: sorted(prefix[n] for prefix in prefixes) for n in (256, 512)}
        seeds_at = {n: ", ".join(f"{x:.2f}" for x in values) for n, values in at.items()}
        rows.append([*parts.split(), seeds_at[256], f"{statistics.median(at[256]):.2f}", seeds_at[512], f"{statistics.median(at[512]):.2f}"])
    return table(["smoothed targets", "steps of exactly 2", "no activation", "up to 256, every seed", "median", "up to 512", "median"], rows)


TABLES = [steady, steady_without, steady_small]

"""The figure of what lies beyond the length of training, for scripts/lm_experiment.py take: a panel for every domain.

Every point is a mean over sequences: how much a model's loss has changed since the last octave of training, less how much that
of DeltaNet [-1,1] has on the same sequence. Bars are one standard error. `lrnn curves --by position` draws the losses themselves,
whose steps are those of the texts.
"""
import math
import statistics

import lm_tables

COLOURS = {"DeltaNet [0,1]": ("#0072b2", "6 3"), "DeltaProduct n_h=2": ("#d55e00", ""), "DeltaProduct n_h=3": ("#56b4e9", "")}
WIDTH, HEIGHT, LEFT, TOP, PANEL, TALL = 720, 262, 52, 66, 200, 150
FIRST = 256  # octaves before it are left out


def changes(found, row, plain, domain):
    """{octave: (mean, standard error)} of the change since WITHIN, less that of the row `plain`."""
    ours, theirs = found.octaves(row, domain), found.octaves(plain, domain)
    out = {}
    for octave in sorted({at for of in ours.values() for at in of if at >= FIRST}):
        paired = [(of[octave] - of[lm_tables.WITHIN]) - (theirs[s][octave] - theirs[s][lm_tables.WITHIN])
                  for s, of in ours.items() if octave in of]
        out[octave] = (statistics.mean(paired), statistics.stdev(paired) / len(paired) ** 0.5)
    return out


def text(x, y, words, size=11, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#333333"{more}>{words}</text>'


def line(points, colour, width=1.0, dashes=""):
    at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{width}"'
            + (f' stroke-dasharray="{dashes}"' if dashes else "") + "/>")


def drawn(found):
    plain = next(row for row in found.rows if lm_tables.called(row) == "DeltaNet [-1,1]")
    models = {lm_tables.called(row): row for row in found.rows if row != plain}
    panels = {domain: {name: changes(found, row, plain, domain) for name, row in models.items()} for domain in lm_tables.domains(found)}
    most = max(abs(mean) + error for of in panels.values() for points in of.values() for mean, error in points.values())
    most = math.ceil(most / 0.02) * 0.02
    title = "Loss beyond the length of training, beside DeltaNet [-1,1]"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" role="img">', f"<title>{title}</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', text(LEFT, 18, title, 13, more=' font-weight="bold"')]
    for i, name in enumerate(models):
        out += [line([(LEFT + 190 * i, 36), (LEFT + 190 * i + 26, 36)], COLOURS[name][0], 2, COLOURS[name][1]),
                text(LEFT + 190 * i + 32, 40, name)]
    for i, (domain, of) in enumerate(panels.items()):
        left = LEFT + i * (PANEL + 24)
        octaves = sorted({octave for points in of.values() for octave in points})

        def x(octave):
            return left + 12 + (PANEL - 24) * octaves.index(octave) / (len(octaves) - 1)

        def y(value):
            return TOP + TALL * (most - value) / (2 * most)

        out.append(text(left, TOP - 8, domain, 12))
        for tick in (-most, -most / 2, 0, most / 2, most):
            out.append(line([(left, y(tick)), (left + PANEL, y(tick))], "#333333" if tick == 0 else "#cccccc"))
            if i == 0:
                out.append(text(left - 6, y(tick) + 4, f"{tick:+.2f}" if tick else "0", 11, "end"))
        trained = (x(lm_tables.WITHIN) + x(2 * lm_tables.WITHIN)) / 2
        out.append(line([(trained, TOP), (trained, TOP + TALL)], "#333333", 1, "2 3"))
        out += [text(x(octave), TOP + TALL + 16, f"{octave // 1024}k" if octave >= 1024 else octave, 10, "middle")
                for octave in octaves if octave in (256, 1024, 4096, 16384)]
        for name, points in of.items():
            colour, dashes = COLOURS[name]
            out.append(line([(x(octave), y(mean)) for octave, (mean, _) in points.items()], colour, 2, dashes))
            out += [line([(x(octave), y(mean - error)), (x(octave), y(mean + error))], colour, 1.5)
                    for octave, (mean, error) in points.items()]
    out.append(text(WIDTH / 2, HEIGHT - 8, "tokens read, octave beginning there; dotted: length of training; up: loses more than DeltaNet [-1,1]"
                    " (nats a token)", 10.5, "middle"))
    return "\n".join([*out, "</svg>"]) + "\n"

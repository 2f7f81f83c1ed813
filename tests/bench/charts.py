"""Charts as SVG text: bars, lines, and how many tasks were how late. No library; readable on light and dark pages."""

import math

COLOURS = ("#2f6fb3", "#d1742e", "#3f9a5a", "#a0447f", "#7a6fc0", "#8a8a3a", "#b03a3a", "#4aa0a0")
WIDTH, BAR, LEFT, FONT = 840, 22, 210, 'font-family="sans-serif" font-size="12" fill="#777"'
HEIGHT, TOP, MARGIN, LEGEND = 300, 28, 56, 270


def _text(x, y, text, anchor="start"):
    escaped = str(text).replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {FONT}>{escaped}</text>'


def _svg(height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">\n'
            + "\n".join(parts) + "\n</svg>\n")


def bars(values, unit):
    """values: [(name, number)]"""
    most = max(value for _, value in values) or 1
    room = WIDTH - LEFT - 90
    parts = []
    for number, (name, value) in enumerate(values):
        y, colour = 8 + number * (BAR + 8), COLOURS["raw" not in name]
        parts += [_text(LEFT - 8, y + 15, name, "end"),
                  f'<rect x="{LEFT}" y="{y}" width="{max(1, room * value / most):.1f}" height="{BAR}"'
                  f' fill="{colour}"/>',
                  _text(LEFT + room * value / most + 6, y + 15, f"{value:,.0f}")]
    height = 8 + len(values) * (BAR + 8) + 20
    return _svg(height, [*parts, _text(LEFT, height - 6, unit)])


def _frame(xs, ys, x_name, y_name):
    """Axes. xs, ys: [(0 to 1, label)]"""
    right, bottom = WIDTH - LEGEND - 20, HEIGHT - MARGIN
    parts = [_text((MARGIN + right) / 2, bottom + 34, x_name, "middle"), _text(6, 12, y_name)]
    for place, label in xs:
        x = MARGIN + place * (right - MARGIN)
        parts += [f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#8884"/>', _text(x, bottom + 16, label, "middle")]
    for place, label in ys:
        y = bottom - place * (bottom - TOP)
        parts += [f'<line x1="{MARGIN}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#8884"/>', _text(MARGIN - 6, y + 4, label, "end")]
    return parts, lambda x, y: (MARGIN + x * (right - MARGIN), bottom - y * (bottom - TOP))


def _paths(series, place):
    """series: [(name, [(x 0 to 1, y 0 to 1)])]"""
    parts = []
    for number, (name, points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        y = 30 + number * 18
        parts += [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  f'<line x1="{WIDTH - LEGEND}" y1="{y}" x2="{WIDTH - LEGEND + 20}" y2="{y}" stroke="{colour}" stroke-width="3"/>',
                  _text(WIDTH - LEGEND + 26, y + 4, name)]
    return parts


def curves(series):
    """How late which share of the tasks was, down to the latest one in ten thousand; both axes logarithmic.
    series: [(name, [[us, count]])]"""
    decades, nines = 5, 4       # 0.01 ms to 1 s; 0 to 99.99 %
    drawn = []
    for name, buckets in series:
        total, seen, points = sum(count for _, count in buckets), 0, []
        for us, count in buckets:
            x = (math.log10(max(us, 10)) - 1) / decades
            points.append((min(1, x), min(1, -math.log10(max(1 - seen / total, 1e-9)) / nines)))
            seen += count
        points.append((points[-1][0], min(1, -math.log10(1 / total / 2) / nines)))
        drawn.append((name, points))
    parts, place = _frame([(i / decades, f"{10 ** (i - 2):g} ms") for i in range(decades + 1)],
                          [(i / nines, label) for i, label in enumerate(("0 %", "90 %", "99 %", "99.9 %", "99.99 %"))],
                          "late by at most", "of the tasks")
    return _svg(HEIGHT, parts + _paths(drawn, place))


def lines(series, x_name, y_name):
    """series: [(name, [number])], one number after the other"""
    most = max(max(values) for _, values in series) or 1
    longest = max(2, max(len(values) for _, values in series))
    drawn = [(name, [(i / (longest - 1), value / most) for i, value in enumerate(values)]) for name, values in series]
    parts, place = _frame([(0, "1"), (1, f"{longest}")], [(i / 4, f"{most * i / 4:,.0f}") for i in range(5)], x_name, y_name)
    return _svg(HEIGHT, parts + _paths(drawn, place))

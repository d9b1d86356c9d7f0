// The legend of a figure: a list beside the drawing, an entry for each trace with the mark that the trace has there. An entry
// that is pressed hides its trace, or shows it again. No key reaches the entries of plotly's own legend.
const SVG = "http://www.w3.org/2000/svg";
const DASHES = { dot: "2 3", dash: "7 4", longdash: "11 5", dashdot: "8 3 2 3" };
const SYMBOLS = { // around the middle
  "triangle-down": "M-5-4H5L0 5Z",
  square: "M-4-4H4V4H-4Z",
  diamond: "M0-5L5 0L0 5L-5 0Z",
  cross: "M-5-1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z",
  circle: "M-4 0A4 4 0 1 1 4 0A4 4 0 1 1-4 0Z",
  x: "M-5-3L-3-5L0-2L3-5L5-3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z",
  "x-thin": "M-4-4L4 4M4-4L-4 4",
  "line-ns": "M0-5V5",
  "line-ew": "M-5 0H5",
};
const isOutline = (symbol) => /^line-|-open$|-thin$/.test(symbol);

// Names in a figure are escaped, because plotly obeys tags.
export const spoken = (name) => name.replace(/&(amp|lt|gt);/g, (_, sign) => ({ amp: "&", lt: "<", gt: ">" })[sign]);

export class Legend {
  constructor(list) {
    this.list = list;
    this.hidden = new Set(); // names of traces
    list.addEventListener("click", ({ target }) => this.toggle(target.closest("button")));
  }

  toggle(entry) {
    if (!entry) return;
    const name = entry.textContent;
    if (!this.hidden.delete(name)) this.hidden.add(name);
    entry.setAttribute("aria-pressed", !this.hidden.has(name));
    this.changed();
  }

  // The traces of a figure without those that are hidden.
  visible(traces) {
    return traces.map((trace) => (this.hidden.has(spoken(trace.name)) ? { ...trace, visible: false } : trace));
  }

  show({ data, layout }) {
    const traces = data.filter(({ showlegend, x }) => showlegend !== false && x.length !== 0);
    const marks = JSON.stringify(traces.map(({ name, mode, line, marker, fillcolor }) => [name, mode, line, marker, fillcolor]));
    if (marks === this.marks) return;
    this.marks = marks;
    this.list.replaceChildren(...traces.map((trace) => this.entry(trace, layout.meta.palette)));
  }

  entry(trace, palette) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const name = spoken(trace.name);
    button.type = "button";
    button.setAttribute("aria-pressed", !this.hidden.has(name));
    button.append(mark(trace, palette), name);
    item.append(button);
    return item;
  }
}

function mark(trace, palette) {
  const picture = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["width", 26], ["height", 12], ["viewBox", "-13 -6 26 12"], ["aria-hidden", "true"]]) {
    picture.setAttribute(name, value);
  }
  const path = document.createElementNS(SVG, "path");
  const colour = (hex) => (hex in palette ? `var(${palette[hex]})` : hex);
  if (trace.fill) {
    path.setAttribute("d", "M-13-4H13V4H-13Z");
    path.style.fill = colour(trace.fillcolor);
  } else if (trace.mode.startsWith("markers")) {
    const { symbol, color } = trace.marker;
    path.setAttribute("d", SYMBOLS[symbol.replace("-open", "")]);
    path.style.fill = isOutline(symbol) ? "none" : colour(color);
    path.style.stroke = colour(color);
    path.style.strokeWidth = 1.5;
  } else {
    const { color, dash, width } = trace.line;
    path.setAttribute("d", "M-13 0H13");
    path.style.stroke = colour(color);
    path.style.strokeWidth = width;
    path.style.strokeDasharray = DASHES[dash] ?? dash.replace("solid", "none").replaceAll("px", "");
  }
  picture.append(path);
  return picture;
}

// Fits a figure to its place on a page. The server makes it for a wide page, as low as it may be; where the window has more
// room, the row at the top gets it.
export const NARROW = 640; // pixels
const NARROW_TICKS = 5; // of an axis of steps, whose numbers have up to six characters
const NARROW_NUMBERS = 6; // beside the marks of one kind; more would lie on one another
const LABEL_GAP = 15; // pixels between two labels at the right edge
const EDGE_GAP = 6; // pixels between the right edge and its labels

export function fitted(figure, width, height) {
  const { data, layout } = width < NARROW ? narrowed(figure) : figure;
  const least = innerHeight(figure.layout);
  return { data, ...apart(labelled(heightened({ ...layout, height: height || layout.height }, least))) };
}

const innerHeight = ({ height, margin }) => height - margin.t - margin.b;

function narrowed({ data, layout }) {
  const annotations = (layout.annotations ?? []).filter(({ name }) => name === "row");
  const margin = { ...layout.margin, r: 12, t: Math.max(28, layout.margin.t) };
  const isCrowded = ({ hovertext }) => hovertext?.length > NARROW_NUMBERS;
  const shown = data.map((trace) => (isCrowded(trace) ? { ...trace, mode: "markers" } : trace));
  return { data: shown, layout: { ...layout, annotations, margin, xaxis: fewTicks(layout.xaxis) } };
}

function fewTicks(axis) {
  if (axis.type === "log") return axis;
  const dtick = axis.dtick && Math.ceil((axis.range[1] - axis.range[0]) / NARROW_TICKS);
  return { ...axis, nticks: NARROW_TICKS, tickangle: 0, ticklabeloverflow: "hide past div", ...(dtick && { dtick }) };
}

// Places are shares of the whole height, from its foot: what is below the top row keeps its pixels.
function heightened(layout, least) {
  const share = least / innerHeight(layout);
  const place = (value) => (value === 1 ? 1 : value * share);
  const moved = (item, ...names) =>
    item.yref === "paper" ? { ...item, ...Object.fromEntries(names.map((name) => [name, place(item[name])])) } : item;
  const axes = Object.entries(layout).filter(([name, axis]) => name.startsWith("yaxis") && axis.domain);
  return {
    ...layout,
    ...Object.fromEntries(axes.map(([name, axis]) => [name, { ...axis, domain: axis.domain.map(place) }])),
    shapes: layout.shapes?.map((shape) => moved(shape, "y0", "y1")),
    annotations: layout.annotations?.map((item) => moved(item, "y")),
  };
}

// Labels at the right edge of the top row, highest first: each near its line, and none on another.
function labelled(layout) {
  const labels = (layout.annotations ?? []).filter(({ name }) => name === "edge");
  if (!labels.length) return layout;
  const height = innerHeight(layout) * (1 - layout.yaxis.domain[0]);
  const places = [];
  for (const { y } of labels) places.push(Math.min(y * height, (places.at(-1) ?? Infinity) - LABEL_GAP));
  let floor = 0;
  for (let index = places.length - 1; index >= 0; index -= 1) {
    places[index] = Math.max(places[index], floor);
    floor = places[index] + LABEL_GAP;
  }
  const moved = labels.map((label, index) => ({ ...label, y: places[index] / height }));
  return { ...layout, annotations: [...moved, ...layout.annotations.filter(({ name }) => name !== "edge")] };
}

// Labels of the right edge and titles of rows are words beside the drawing: plotly takes a fifth of its time to measure its own.
function apart(layout) {
  const isLabel = ({ name }) => name === "edge" || name === "row";
  const annotations = layout.annotations ?? [];
  const labels = annotations.filter(isLabel).map((item) => placed(item, layout));
  return { layout: { ...layout, annotations: annotations.filter((item) => !isLabel(item)) }, labels };
}

// An edge label has its place in the top row and is as high above it as below; a title stands on its place in the figure.
function placed({ name, text, font, y }, layout) {
  const { l, r, t } = layout.margin;
  const [low, high] = layout.yaxis.domain;
  const isEdge = name === "edge";
  const top = t + innerHeight(layout) * (1 - (isEdge ? low + y * (high - low) : y));
  return { name, text, color: font.color, top: `${top}px`, left: isEdge ? `calc(100% - ${r - EDGE_GAP}px)` : `${l}px` };
}

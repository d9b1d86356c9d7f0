// Draws the figures of a page: data from a JSON island (in fragments, which carry no scripts, from text that stands in its
// place, or else from data-url), colours from the page's theme, points asked for again on zoom.
// Answers with DOM events: "figure:step" (detail.step) when a point is chosen; unless prevented, its page is opened.
// "figure:preview" asks a figure (detail.id) for its points under other settings (detail.search), before the page says it in
// words what these change: detail.points is then a promise that ends with the points, or where there are none to have.
import { NARROW, fitted } from "./fitting.js";
import { Legend, spoken } from "./legend.js";

const CONFIG = {
  displaylogo: false,
  showSendToCloud: false,
  responsive: true,
  scrollZoom: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "toImage"],
};
const STILL_REPLAYING = 202;
const COUNTED = "recorded prompt tokens"; // what the names of these lines begin with
const ESTIMATED = "estimated prompt tokens"; // leads to the counted steps beside it, too
let library;

function plotly(src) {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = src;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new Error("the chart library did not load"));
    document.head.append(script);
  });
  return library;
}

// ---- colours: the figure holds the light ones and says which custom property each one means
function colours(palette) {
  const probes = document.createElement("div");
  probes.hidden = true;
  for (const property of Object.values(palette)) {
    const probe = document.createElement("i");
    probe.style.color = `var(${property})`;
    probes.append(probe);
  }
  document.body.append(probes); // all of them before one is read: the page's styles are computed once
  const found = new Map(Object.keys(palette).map((hex, place) => [hex, getComputedStyle(probes.children[place]).color]));
  probes.remove();
  return found;
}

function recoloured(value, map) {
  if (typeof value === "string") return map.get(value) ?? value;
  if (Array.isArray(value)) return value.length && typeof value[0] === "number" ? value : value.map((item) => recoloured(item, map));
  if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, recoloured(item, map)]));
  }
  return value;
}

// ---- points of a figure; none where they are still computed, or settings are not allowed: the page says so in words
const ask = (url, signal) => fetch(url, { signal, headers: { Accept: "application/json" } });

async function points(url, signal) {
  const answer = await ask(url, signal);
  return answer.status === 200 ? answer.json() : null;
}

// ---- a plot whose page becomes narrow or wide, low or high, as of a phone that is turned, is drawn for its new size
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const { island, drawnFor, clientWidth } = target;
    if (clientWidth && island.figure && drawnFor !== sizeOf(target)) island.draw();
  }
});
const sizeOf = ({ clientWidth, clientHeight }) => `${clientWidth < NARROW} ${clientHeight}`;

// ---- one island
class Island {
  constructor(element, old) {
    this.element = element;
    this.plot = element.querySelector("[data-plot]");
    const list = element.querySelector("[data-legend]");
    this.legend = old?.legend ?? (list && new Legend(list));
    if (this.legend) this.legend.changed = () => this.draw();
    this.at = null;
  }

  // The new element of a fragment has the plot and the legend of the one it replaced (hx-preserve), so that the chart changes
  // without a flash, and takes over the points that were asked for ahead of the fragment.
  inherit(old, search) {
    this.listening = old.listening;
    this.plot.island = this;
    if (old.listening) this.element.dataset.plotted = "1";
    if (old.early?.search === search) this.early = old.early;
  }

  // The points of other settings, drawn as soon as they are there: the fragment with the words takes longer to make.
  async preview(search) {
    const url = new URL(this.element.dataset.url, location.href);
    url.search = search;
    const early = { search, points: points(url).catch(() => null) };
    this.early = early;
    const figure = await early.points;
    if (!figure) return;
    setTimeout(() => { // what waits for the points continues before they are drawn
      if (this.early === early && this.listening) early.drawn = this.paint(window.Plotly, figure);
    });
  }

  async data() {
    const island = this.element.querySelector("script[type='application/json'], [data-points]");
    if (island) return JSON.parse(island.textContent);
    const answer = await ask(this.element.dataset.url);
    if (answer.status === STILL_REPLAYING && this.element.isConnected) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get("Retry-After") ?? 1)));
      return this.data();
    }
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return answer.json();
  }

  async draw() {
    const early = this.figure ? null : this.early;
    this.early = null; // what was drawn ahead on this plot is drawn over
    const known = this.figure ?? (await early?.points);
    const [Plotly, figure] = await Promise.all([plotly(this.element.dataset.plotly), known ?? this.data()]);
    this.figure = figure;
    if (!("zoomed" in this.element.dataset)) this.whole ??= figure;
    if (!this.element.isConnected) return;
    await (early?.drawn ?? this.paint(Plotly, figure));
    this.element.dataset.drawn = this.element.dataset.plotted = "1";
    if (this.listening) return;
    this.listening = true;
    const { plot } = this;
    plot.island = this;
    plot.querySelector("[data-wait]")?.remove();
    sizes.observe(plot);
    plot.on("plotly_click", (event) => plot.island.choose(event.points[0].x, event.points[0].customdata));
    plot.on("plotly_relayout", (change) => plot.island.zoomed(change));
    plot.addEventListener("keydown", (event) => plot.island.key(event));
  }

  async paint(Plotly, figure) {
    const themed = recoloured(figure, colours(figure.layout.meta.palette));
    this.plot.style.setProperty("--low", `${figure.layout.height}px`); // other settings may have more rows
    const { clientWidth, clientHeight } = this.plot;
    this.plot.drawnFor = sizeOf(this.plot);
    const { data, layout, labels } = fitted(themed, clientWidth, clientHeight);
    this.legend?.show(figure);
    write(labels, this.plot); // before that of a drawing for another size, which may begin and end meanwhile
    await Plotly.react(this.plot, this.legend?.visible(data) ?? data, layout, CONFIG);
    hideDrawing(this.plot);
    this.element.dataset.drawn = "1";
  }

  // The x axis counts steps, but for the logarithmic one of a scatter plot, whose points carry their step beside them.
  get overSteps() {
    return this.figure.layout.xaxis?.type !== "log";
  }

  choose(x, beside) {
    const step = this.overSteps ? x : beside;
    const event = new CustomEvent("figure:step", { bubbles: true, cancelable: true, detail: { step } });
    if (!this.element.dispatchEvent(event) || !this.element.dataset.stepUrl) return;
    const url = new URL(this.element.dataset.stepUrl, location.href);
    url.searchParams.set("at", step);
    location.assign(url);
  }

  zoomed(change) {
    if (!this.element.dataset.url || this.quiet || !this.overSteps) return;
    const reset = change["xaxis.autorange"];
    const from = change["xaxis.range[0]"] ?? change["xaxis.range"]?.[0];
    const to = change["xaxis.range[1]"] ?? change["xaxis.range"]?.[1];
    if (!reset && from === undefined) return;
    clearTimeout(this.timer);
    const range = reset ? null : [Math.max(1, Math.floor(from)), Math.ceil(to)];
    this.timer = setTimeout(() => {
      this.fetch(range);
      const detail = range && { first: range[0], last: range[1] };
      this.element.dispatchEvent(new CustomEvent("figure:zoomed", { bubbles: true, detail }));
    }, 120);
  }

  async fetch(range) {
    if (!range && this.whole) return this.show(this.whole);
    const url = new URL(this.element.dataset.url, location.href);
    if (range) {
      url.searchParams.set("from", range[0]);
      url.searchParams.set("to", range[1]);
    }
    this.request?.abort();
    this.request = new AbortController();
    try {
      const figure = await points(url, this.request.signal);
      if (figure) await this.show(figure);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  }

  async show(figure) {
    this.figure = figure;
    this.quiet = true;
    figure.layout.uirevision = String(Math.random());
    await this.draw();
    this.quiet = false;
  }

  // What the keys move over: each step that is drawn, by its count, or else by its estimate; of a scatter plot every point.
  points() {
    const points = new Map();
    for (const name of [COUNTED, ESTIMATED]) {
      const curveNumber = this.plot.data?.findIndex((item) => item.name.startsWith(name)) ?? -1;
      for (const [pointNumber, { x, y, data }] of (this.plot.calcdata?.[curveNumber] ?? []).entries()) {
        const key = this.overSteps ? x : pointNumber;
        if (Number.isFinite(y) && !points.has(key)) points.set(key, { x, y, data, curveNumber, pointNumber });
      }
    }
    return this.overSteps ? [...points.values()].sort((one, other) => one.x - other.x) : [...points.values()];
  }

  // Arrow keys move over the points and read them out; Enter opens the step.
  key(event) {
    const points = this.points();
    if (!points.length) return;
    const last = points.length - 1;
    const places = { ArrowRight: (this.at ?? -1) + 1, ArrowLeft: (this.at ?? last + 1) - 1, Home: 0, End: last };
    if (event.key === "Enter" && this.at !== null) return this.choose(points[this.at].x, points[this.at].data);
    if (!(event.key in places)) return;
    event.preventDefault();
    this.at = Math.min(last, Math.max(0, places[event.key]));
    const { curveNumber, pointNumber } = points[this.at];
    window.Plotly.Fx.hover(this.plot, [{ curveNumber, pointNumber }]);
    announce(this.overSteps ? reading(this.plot, points[this.at].x) : pair(points[this.at]));
  }
}

const rounded = (value) => Math.round(value).toLocaleString("en");
const pair = ({ x, y, data: step }) => `step ${step}: recorded ${rounded(y)}, estimated ${rounded(x)}`;

function reading(plot, step) {
  const lines = plot.calcdata
    .map((points, index) => [plot.data[index], points.find((point) => point.x === step)])
    .filter(([trace, point]) => Number.isFinite(point?.y) && !trace.yaxis);
  const isCounted = lines.some(([{ name }]) => name.startsWith(COUNTED));
  const values = lines
    .filter(([{ name }]) => !isCounted || !name.startsWith(ESTIMATED))
    .map(([trace, point]) => `${spoken(trace.name)} ${rounded(point.y)}${Number.isFinite(point.data) ? ` (${point.data} %)` : ""}`);
  return `step ${step}: ${values.join(", ")}`;
}

// The drawing is presentational: caption, label, arrow keys and table say the same in words.
function hideDrawing(plot) {
  for (const drawing of plot.querySelectorAll("svg.main-svg")) drawing.setAttribute("aria-hidden", "true");
  plot.querySelector("[role=toolbar]")?.setAttribute("aria-label", "Zoom of the chart");
}

// Behind the drawing, so that what is pointed at is over them.
function write(labels, plot) {
  let box = plot.querySelector(".figure-labels");
  if (!box) {
    box = document.createElement("div");
    box.className = "figure-labels";
    box.setAttribute("aria-hidden", "true");
    plot.prepend(box);
  }
  box.replaceChildren(...labels.map(({ name, text, ...style }) => {
    const label = document.createElement("span");
    label.className = `figure-label-${name}`;
    label.textContent = spoken(text);
    Object.assign(label.style, style);
    return label;
  }));
}

function announce(text) {
  const place = document.getElementById("announce");
  if (place) place.textContent = text;
}

// ---- islands come and go with the page's fragments
const islands = new Map();

function start(root, search) {
  for (const element of root.querySelectorAll("[data-figure]")) {
    if (islands.has(element)) continue;
    const old = [...islands.values()].find((other) => !other.element.isConnected && other.element.id === element.id);
    const island = new Island(element, old);
    if (old) {
      island.inherit(old, search);
      islands.delete(old.element);
    }
    islands.set(element, island);
    island.draw().catch((error) => {
      const wait = element.querySelector("[data-wait]");
      if (wait) wait.textContent = `No chart: ${error.message}. The table below has the same numbers.`;
    });
  }
}

function sweepAway() {
  for (const [element, island] of islands) {
    if (element.isConnected) continue;
    sizes.unobserve(island.plot);
    window.Plotly?.purge(island.plot);
    islands.delete(element);
  }
}

start(document);
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  start(document, new URL(detail.xhr?.responseURL || location.href).searchParams.toString());
  sweepAway();
});
document.addEventListener("figure:preview", ({ detail }) => {
  const island = [...islands.values()].find(({ element }) => element.isConnected && element.id === detail.id);
  detail.points = island?.preview(detail.search);
});
document.addEventListener("strip:zoomed", ({ detail }) => {
  const zooming = [...islands.values()].filter((island) => island.element.dataset.url && island.figure && island.overSteps);
  for (const island of zooming) island.fetch(detail && [detail.first, detail.last]);
});
document.addEventListener("themechange", () => islands.forEach((island) => island.draw()));

/* Charts of points by uPlot: what it draws, and how mouse, touch and keyboard find a point. */
"use strict";

const charts = [];
const REACH = 30; /* pixels from the pointer to a point */

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/* ---- uPlot's options ---------------------------------------------------------------------------
 *
 * uPlot takes one sorted list of x and for each series a list of y with nulls between. */

function columnsOf(spec) {
  const all = [...spec.points];
  spec.lines.forEach((line, i) => line.points.forEach(([x, y]) => all.push({ x, y, group: spec.groups.length + i })));
  const xs = Float64Array.from(all, (point) => point.x);
  const order = Uint32Array.from(all, (_, i) => i).sort((a, b) => xs[a] - xs[b]);
  const columns = [Array.from(order, (i) => xs[i])];
  for (let group = 0; group < spec.groups.length + spec.lines.length; group++)
    columns.push(new Array(all.length).fill(null));
  order.forEach((i, place) => { columns[all[i].group + 1][place] = all[i].y; });
  return columns;
}

function scaleOf(log) {
  const widen = 0.03;
  return {
    time: false, distr: log ? 3 : 1,
    range: (plot, low, high) => {
      if (log) {
        const factor = high > low ? (high / low) ** widen : 2;
        return [low / factor, high * factor];
      }
      const space = high > low ? (high - low) * widen : Math.abs(high) || 1;
      return [low - space, high + space];
    },
  };
}

function axisOf(label, side, extra) {
  const font = "12px system-ui, sans-serif";
  return { label, font, labelFont: `600 ${font}`, stroke: () => color("muted"), labelGap: 2,
    size: side ? 58 : 36, labelSize: 20, grid: { stroke: () => color("grid"), width: 1 },
    ticks: { stroke: () => color("line"), width: 1, size: 5 }, ...extra };
}

function optionsOf(spec, width) {
  const pointSeries = (group) => ({
    label: group.label, paths: () => null,
    points: { show: true, space: 0, size: group.size, width: group.size > 6 ? 1.5 : 0,
      stroke: () => color("paper"), fill: () => color(group.color) + (group.size > 6 ? "" : "a0") },
  });
  const lineSeries = (line) => ({
    label: line.label, stroke: () => color(line.color), width: 2.5, spanGaps: true, points: { show: false },
    dash: line.dash, paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : uPlot.paths.linear(),
  });
  return {
    width, height: spec.height || 380, legend: { show: false }, padding: [12, 16, 0, 0],
    cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: true, uni: 30 } },
    scales: { x: scaleOf(spec.xLog), y: scaleOf(spec.yLog) },
    axes: [axisOf(spec.xLabel, false, spec.xLog ? {} : spec.xAxis), axisOf(spec.yLabel, true)],
    series: [{}, ...spec.groups.map(pointSeries), ...spec.lines.map(lineSeries)],
    hooks: { draw: [(plot) => plot.moved && plot.moved()] },
  };
}

/* ---- finding points ---------------------------------------------------------------------------- */

/* Where each point lies on the plot, in pixels. */
function placesOf(chart) {
  if (chart.places === null)
    chart.places = chart.spec.points.map((point) =>
      [chart.plot.valToPos(point.x, "x"), chart.plot.valToPos(point.y, "y")]);
  return chart.places;
}

/* The index of the point nearest to a place, -1 if none is within reach. */
function nearest(chart, left, top) {
  let found = -1, least = REACH * REACH;
  placesOf(chart).forEach(([x, y], i) => {
    const distance = (x - left) ** 2 + (y - top) ** 2;
    if (distance < least) {
      least = distance;
      found = i;
    }
  });
  return found;
}

function placeRing(chart, ring, i) {
  const over = chart.plot.over, [x, y] = i >= 0 ? placesOf(chart)[i] : [-1, -1];
  ring.hidden = !(x >= 0 && y >= 0 && x <= over.clientWidth && y <= over.clientHeight);
  ring.style.left = `${x}px`;
  ring.style.top = `${y}px`;
}

/* Shows the tip of a point; hides it for -1. */
function show(chart, i) {
  chart.shown = i;
  placeRing(chart, chart.ring, i);
  chart.tip.hidden = i < 0;
  if (i < 0) return;
  chart.tip.replaceChildren(...chart.spec.tip(chart.spec.points[i]));
  const over = chart.plot.over, [x, y] = placesOf(chart)[i], width = chart.tip.offsetWidth;
  const left = Math.min(Math.max(over.offsetLeft + x + 14, 0), chart.host.clientWidth - width);
  const above = y > chart.tip.offsetHeight + 20;
  chart.tip.style.left = `${Math.max(left, 0)}px`;
  chart.tip.style.top = `${over.offsetTop + y + (above ? -chart.tip.offsetHeight - 14 : 16)}px`;
}

/* Marks a plan in all charts that have it. */
function markPlan(plan) {
  for (const chart of charts) {
    chart.marked = chart.spec.points.findIndex((point) => point.plan === plan);
    placeRing(chart, chart.chosen, chart.marked);
  }
}

function listenToPointer(chart) {
  const over = chart.plot.over;
  over.addEventListener("mousemove", (event) => {
    const i = event.buttons === 0 ? nearest(chart, event.offsetX, event.offsetY) : -1;
    if (i !== chart.shown) show(chart, i);
  });
  over.addEventListener("mouseleave", () => show(chart, -1));
  over.addEventListener("click", (event) => {
    const i = nearest(chart, event.offsetX, event.offsetY);
    show(chart, i);
    if (i >= 0 && chart.spec.choose) chart.spec.choose(chart.spec.points[i]);
  });
}

/* Arrow keys go through the points by rising y. */
function listenToKeys(chart) {
  const order = chart.spec.points.map((_, i) => i).sort((a, b) => chart.spec.points[a].y - chart.spec.points[b].y);
  const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 100, PageDown: -100 };
  chart.canvas.addEventListener("keydown", (event) => {
    let rank = order.indexOf(chart.shown);
    if (event.key in steps) rank = rank < 0 ? 0 : rank + steps[event.key];
    else if (event.key === "Home") rank = 0;
    else if (event.key === "End") rank = order.length - 1;
    else if (event.key === "Escape") rank = -1;
    else if (event.key === "Enter" && rank >= 0 && chart.spec.choose) chart.spec.choose(chart.spec.points[order[rank]]);
    else return;
    event.preventDefault();
    show(chart, rank < 0 && event.key === "Escape" ? -1 : order[Math.min(Math.max(rank, 0), order.length - 1)]);
    at("spoken").textContent = chart.tip.hidden ? "" : [...chart.tip.children].map((line) => line.textContent).join(", ");
  });
  chart.canvas.addEventListener("blur", () => show(chart, -1));
}

/* ---- a chart ------------------------------------------------------------------------------------ */

function keyOf(spec) {
  const used = new Set(spec.points.map((point) => point.named ?? point.group));
  const items = [...spec.groups.filter((_, i) => used.has(i)).map((group) => ({ ...group, shape: "round" })), ...spec.lines.map((line) => ({ ...line, shape: "line" }))];
  return make("ul", { class: "key" }, ...items.filter((item) => item.label).map((item) =>
    make("li", {}, make("i", { class: item.shape, style: `background: var(--${item.color})` }), item.label)));
}

/* spec: label, xLabel, yLabel, xLog, yLog, height;
 * groups [{label, color, size}], points [{x, y, group, plan, named: the group in the key}], lines [{label, color, points, stepped}];
 * tip(point): the elements of its tip, choose(point): what a click does; both for points alone. */
function addChart(host, spec) {
  const canvas = make("div", { class: "canvas", tabindex: "0", role: "application", "aria-roledescription": "chart", "aria-label": spec.label });
  const tip = make("div", { class: "tip" });
  host.replaceChildren(keyOf(spec), canvas);
  const plot = new uPlot(optionsOf(spec, canvas.clientWidth), columnsOf(spec), canvas);
  const chart = { host: canvas, canvas, spec, plot, tip, places: null, shown: -1, marked: -1,
    ring: make("div", { class: "ring" }), chosen: make("div", { class: "ring chosen" }) };
  tip.hidden = chart.ring.hidden = chart.chosen.hidden = true;
  plot.over.append(chart.ring, chart.chosen);
  canvas.append(tip);
  plot.moved = () => {
    chart.places = null;
    placeRing(chart, chart.chosen, chart.marked);
    show(chart, -1);
  };
  listenToPointer(chart);
  listenToKeys(chart);
  charts.push(chart);
}

/* ---- width, colours, paper ----------------------------------------------------------------------- */

const PAPER_WIDTH = 680; /* of A4 between its margins, in pixels of CSS */

function resize(width) {
  for (const chart of charts)
    chart.plot.setSize({ width: width || chart.canvas.clientWidth, height: chart.plot.height });
}

function redraw() {
  for (const chart of charts) chart.plot.redraw(false);
}

addEventListener("resize", () => resize());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("light");
  resize(PAPER_WIDTH);
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("light");
  resize();
});

/* What the page knows, and how it writes it.  Times are in microseconds a layer until they are shown. */
"use strict";

/* Of each workload, the one measured last first; "report.html?workload=2" shows the third. */
const pages = JSON.parse(document.getElementById("data").textContent);
const data = pages[Number(new URLSearchParams(location.search).get("workload"))] || pages[0];
const plans = data.plans.columns;
const STATUS = { ok: 0, censored: 1, failed: 2 };

/* ---- plans -------------------------------------------------------------------------------------
 *
 * Of a value's 16 bits the highest is pos0, then come pos1..pos15 for operators 0..14; neighbours
 * with equal bits are fused. */

function segmentsOf(value) {
  const list = [];
  for (let op = 0; op < data.operators.length; op++) {
    const bit = value >> (14 - op) & 1;
    if (op > 0 && bit === (value >> (15 - op) & 1)) list[list.length - 1][1] = op;
    else list.push([op, op]);
  }
  return list;
}

function isHandwritten(value) {
  return value >> 15 === 1 && segmentsOf(value).some(([first, last]) => first === 2 && last === 6);
}

function segmentText([first, last]) {
  return first === last ? String(first) : `${first}-${last}`;
}

function fusedText(value) {
  const fused = segmentsOf(value).filter(([first, last]) => last > first);
  return fused.length > 0 ? fused.map(segmentText).join(" ") : "nothing";
}

function operatorsText([first, last]) {
  return data.operators.slice(first, last + 1).map((op) => op.name).join(" + ");
}

/* "gemm", "attention", "mixed" or "elementwise": the work that a segment does. */
function kindOf([first, last]) {
  const works = data.operators.slice(first, last + 1).map((op) => op.work);
  const gemm = works.includes("gemm"), attention = works.includes("attention");
  return gemm && attention ? "mixed" : gemm ? "gemm" : attention ? "attention" : "elementwise";
}

const kinds = { gemm: "GEMM", attention: "attention", mixed: "GEMM and attention",
  elementwise: "elementwise, layernorm" };

/* The fastest way known to run a segment; undefined if it was not timed alone. */
const slots = new Map(data.slots.filter((slot) => slot.us !== undefined)
  .map((slot) => [slot.ops.join() + slot.handwritten, slot]));

function slotOf(segment, value) {
  return slots.get(segment.join() + (isHandwritten(value) && segment[0] === 2 && segment[1] === 6));
}

/* The kernels of a plan: those that the best plan ran with, of any other the fastest alone. */
function kernelsOf(value) {
  return segmentsOf(value).map((ops, i) => {
    const best = value === data.best.value;
    const slot = slotOf(ops, value) || {};
    return { ops, flops: slot.flops, bytes: slot.bytes,
      implementation: best ? data.best.implementation[i] : slot.implementation,
      schedule: best ? data.best.schedule[i] : slot.schedule,
      us: best && data.best.median_us[i] !== null ? data.best.median_us[i] : slot.us };
  });
}

function commandOf(value) {
  return `fuseplan bench ${value} ${data.options}`;
}

/* Indices of the plans that ran, the fastest first. */
const ranked = plans.value.map((_, i) => i).filter((i) => plans.status[i] === STATUS.ok)
  .sort((a, b) => plans.us[a] - plans.us[b]);
const indexOf = new Map(plans.value.map((value, i) => [value, i]));

/* ---- text -------------------------------------------------------------------------------------- */

function known(number) {
  return number !== null && number !== undefined;
}

/* Times are shown in µs, or in ms if layers take milliseconds. */
const unit = data.best.us_per_layer < 2000 ? { name: "µs", us: 1 } : { name: "ms", us: 1000 };

function inUnit(us) {
  return known(us) ? us / unit.us : us;
}

function timeText(us) {
  const number = inUnit(us);
  return known(number) ? number.toFixed(number < 1 ? 3 : number < 100 ? 2 : number < 1000 ? 1 : 0) : "-";
}

function interval(middle, low, high, write) {
  return known(low) && known(high) ? `${write(middle)} [${write(low)}, ${write(high)}]` : write(middle);
}

function day(utc) {
  return `${utc.slice(0, 16).replace("T", " ")} UTC`;
}

function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/* ---- elements ---------------------------------------------------------------------------------- */

/* make("a", { href: "#x" }, "text", child...): text is never taken for HTML. */
function make(name, attributes, ...children) {
  const svg = ["svg", "path", "title", "g"].includes(name);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function at(id) {
  return document.getElementById(id);
}

/* Columns are { title, number, text(row) }; text may give an element. */
function fillTable(table, columns, rows, attributesOf) {
  table.append(make("thead", {}, make("tr", {}, ...columns.map((column) =>
    make("th", { scope: "col", class: column.number ? "number" : "" }, column.title)))));
  table.append(make("tbody", {}, ...rows.map((row, i) => make("tr", attributesOf ? attributesOf(row, i) : {},
    ...columns.map((column) => make("td", { class: column.number ? "number" : column.class || "" },
      column.text(row, i)))))));
}

/* Options in a table, where no line ends within one. */
function optionsText(options) {
  return options.split(/ (?=-)/).flatMap((option, i) => [i > 0 ? " " : "", make("span", { class: "together" }, option)]);
}

function fillList(list, pairs) {
  for (const [name, ...value] of pairs)
    if (value[0]) list.append(make("dt", {}, name), make("dd", {}, ...value));
}

/* The sections of the page, from top to bottom. */
"use strict";

const workload = data.workload, best = data.best;
const perLayer = 1000 / workload.layers;
const planCount = count(plans.value.length, "plan");
const maskKnown = data.mask.shades !== undefined;

function bestInterval() {
  return interval(best.us_per_layer, best.ci_low_ms * perLayer, best.ci_high_ms * perLayer, timeText);
}

/* "1.87 [1.86, 1.88]" */
function ratio(baseline) {
  const write = (number) => number.toFixed(2);
  return interval(baseline.speedup, baseline.speedup_low, baseline.speedup_high, write);
}

/* ---- the head ---------------------------------------------------------------------------------- */

function showHead() {
  const title = `Batch ${workload.batch}, ${workload.seq_len} tokens, attention mask ${data.mask.text}`;
  document.title = `fuseplan: ${title}`;
  at("title").textContent = title;
  at("subtitle").textContent = `${data.device.name}, ${workload.dtype}, ${count(workload.layers, "layer")} of ${count(workload.heads, "head")}, measured until ${day(data.plans.last_utc)}`;
  const figures = [["Best plan", String(best.value), `${count(best.segments.length, "kernel")} a layer`],
    ["Time of a layer", `${timeText(best.us_per_layer)} ${unit.name}`, best.ci_low_ms === null ? "" : `95 %: ${timeText(best.ci_low_ms * perLayer)} to ${timeText(best.ci_high_ms * perLayer)} ${unit.name}`]];
  for (const baseline of data.baselines)
    if (known(baseline.speedup) && baseline.value !== best.value)
      figures.push([`Against ${baseline.value}, ${baselineName(baseline.value).split(":")[0]}`, baseline.tie ? "a tie" : `${baseline.speedup.toFixed(2)} times`,
        `${baseline.tie ? "" : "as fast; "}95 %: ${baseline.speedup_low.toFixed(2)} to ${baseline.speedup_high.toFixed(2)}`]);
  const doubtful = [best, ...data.baselines].find((plan) => plan.unstable);
  at("doubt").hidden = !doubtful;
  if (doubtful) at("doubt").textContent = `No winner is certain: the time of plan ${doubtful.value} is unstable: ${doubtful.unstable}.`;
  figures.push(["Plans measured", plans.value.length.toLocaleString("en"), `${ranked.length.toLocaleString("en")} ran`]);
  at("figures").append(...figures.map(([name, value, more]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, make("strong", {}, value), make("small", {}, more)))));
}

/* A row for each workload, if there are several. */
function showIndex() {
  at("index").hidden = pages.length < 2;
  fillTable(at("workloads"), [
    { title: "workload", text: (page, i) => make(page === data ? "span" : "a", page === data ? {} : { href: `?workload=${i}` }, ...optionsText(page.options)) },
    { title: "device", text: (page) => page.device.name },
    { title: "best plan", number: true, text: (page) => String(page.best.value) },
    { title: "µs a layer", number: true, text: (page) => page.best.us_per_layer.toFixed(1) },
    { title: "times as fast as unfused", number: true, text: (page) => {
      const unfused = page.baselines.find((baseline) => baseline.value === 43690);
      return unfused && known(unfused.speedup) ? unfused.speedup.toFixed(2) : "-";
    } },
    { title: "time", text: (page) => page.best.unstable ? "unstable" : page.best.compared ? "" : "not compared" },
  ], pages);
}

function baselineName(value) {
  return { 43690: "unfused: a kernel for each operator", 41115: "attention, norms and activation fused", 48920: "the usual best on Hopper" }[value] || `${segmentsOf(value).length} kernels`;
}

/* ---- the chain ---------------------------------------------------------------------------------- */

function sumOf(kernels) {
  return kernels.every((kernel) => known(kernel.us)) ? kernels.reduce((sum, kernel) => sum + kernel.us, 0) : null;
}

/* A bar of a plan's kernels, each as wide as it is long.  link: makes the href of kernel i. */
function bar(kernels, scale, link) {
  const sum = sumOf(kernels) || kernels.length;
  const boxes = kernels.map((kernel, i) => {
    const text = `ops ${segmentText(kernel.ops)}: ${operatorsText(kernel.ops)}, ${timeText(kernel.us)} ${unit.name}`;
    const box = make(link ? "a" : "span", { class: kindOf(kernel.ops), title: text, style: `flex-grow: ${kernel.us || 1}` });
    const label = segmentText(kernel.ops);
    box.append(make("span", { class: label.length < 3 ? "short" : label.length < 4 ? "middling" : "long" }, label));
    box.setAttribute(link ? "aria-label" : "data-ops", text);
    if (link) box.href = link(i);
    return box;
  });
  return make("div", { class: "bar", style: `width: ${Math.max(100 * sum / scale, 8)}%` }, ...boxes);
}

function showChain() {
  const rows = [{ value: best.value, name: "the best plan", us: best.us_per_layer },
    ...data.baselines.filter((baseline) => baseline.value !== best.value && known(baseline.median_ms))
      .map((baseline) => ({ value: baseline.value, name: baselineName(baseline.value), us: baseline.median_ms * perLayer }))];
  const scale = Math.max(...rows.map((row) => sumOf(kernelsOf(row.value)) || 0)) || 1;
  for (const row of rows) {
    const kernels = kernelsOf(row.value), sum = sumOf(kernels);
    at("chains").append(make("div", { class: "chain" }, make("p", {}, make("b", {}, String(row.value)), ` ${row.name}: ${timeText(row.us)} ${unit.name} a layer`,
      make("span", {}, sum === null ? "" : `; its ${count(kernels.length, "kernel")} alone: ${timeText(sum)} ${unit.name}`)),
    bar(kernels, scale, row.value === best.value ? (i) => `#kernel-${i}` : null)));
  }
  const used = new Set(rows.flatMap((row) => segmentsOf(row.value).map(kindOf)));
  at("chain-key").append(...Object.keys(kinds).filter((kind) => used.has(kind)).map((kind) =>
    make("li", {}, make("i", { class: kind }), kinds[kind])));
  at("best-text").textContent = `Plan ${best.value} runs the 15 operators of a layer in ${count(best.segments.length, "kernel")}` +
    ` and takes ${bestInterval()} ${unit.name} a layer. Each box is a kernel with the numbers of its operators, as wide as its time alone; the bars have one scale.`;
}

const roof = { flops: data.rates.flops_per_s, bytes: data.rates.bytes_per_s };
const roofText = data.rates.of_device ? "the device's peak" : "the highest rate that a kernel of this workload reached";

/* Three digits, and as many more as stand before the point. */
function decimals(number) {
  return number >= 100 ? number.toFixed(0) : number.toPrecision(3);
}

function rateText(rate, unit, scale) {
  return Number.isFinite(rate) ? `${decimals(rate / scale)} ${unit}` : "-";
}

function showKernels() {
  const kernels = kernelsOf(best.value), sum = sumOf(kernels);
  const rate = (kernel, what) => known(kernel[what]) && kernel.us ? 1e6 * kernel[what] / kernel.us : NaN;
  const share = (kernel) => 100 * Math.max(rate(kernel, "flops") / roof.flops || 0, rate(kernel, "bytes") / roof.bytes || 0);
  fillTable(at("kernels"), [
    { title: "ops", text: (kernel) => make("span", { class: "together" }, make("span", { class: `swatch ${kindOf(kernel.ops)}` }), segmentText(kernel.ops)) },
    { title: "operators", class: "operators", text: (kernel) => operatorsText(kernel.ops) },
    { title: "implementation", text: (kernel) => `${kernel.implementation} ${kernel.schedule || ""}` },
    { title: unit.name, number: true, text: (kernel) => timeText(kernel.us) },
    { title: "share", number: true, text: (kernel) => sum ? `${(100 * kernel.us / sum).toFixed(1)} %` : "-" },
    { title: "TFLOP/s", number: true, text: (kernel) => rate(kernel, "flops") > 0 ? decimals(rate(kernel, "flops") / 1e12) : "-" },
    { title: "GB/s", number: true, text: (kernel) => rate(kernel, "bytes") > 0 ? decimals(rate(kernel, "bytes") / 1e9) : "-" },
    { title: "of the roof", number: true, text: (kernel) => maskKnown && kernel.us ? `${share(kernel).toFixed(0)} %` : "-" },
  ], kernels, (_, i) => ({ id: `kernel-${i}` }));
  at("kernels-note").textContent = sum === null ? "" :
    `Alone the kernels take ${timeText(sum)} ${unit.name} together, in the plan ${timeText(best.us_per_layer)} ${unit.name}. The roof is ${roofText}: see Roofline.`;
}

function showCompared() {
  const named = new Map(data.baselines.map((baseline) => [baseline.value, baseline]));
  if (data.finals.length === 0) {
    at("compared-note").textContent = "No plans were timed side by side yet, so there is no speed-up to show; 'fuseplan search' ends with such a comparison.";
    return;
  }
  const rows = [...data.finals].sort((a, b) => a.us - b.us), shown = rows.slice(0, 10);
  shown.push(...rows.slice(10).filter((row) => named.has(row.value)));
  fillTable(at("compared"), [
    { title: "plan", text: (row) => chooseButton(row.value) },
    { title: "fused ops", text: (row) => fusedCell(row.value) },
    { title: `${unit.name} a layer`, number: true, text: (row) => timeText(row.us) },
    { title: "95 % interval", number: true, text: (row) => `${timeText(row.low_us)} to ${timeText(row.high_us)}` },
    { title: "the best plan is", text: (row) => {
      const baseline = named.get(row.value);
      if (row.value === best.value) return "this one";
      return baseline && known(baseline.speedup) ? baseline.tie ? `tied: ${ratio(baseline)}` : `${ratio(baseline)} times as fast` : "";
    } },
  ], shown);
  at("compared-note").textContent = `${count(rows.length, "plan")} timed in turns at ${day(rows[0].utc)}${rows.length > shown.length ? `; ${shown.length} are shown` : ""}. ` +
    "A speed-up comes from pairs of samples; it is a tie if its interval holds 1. Times here and in the search below are not on one scale.";
}

/* ---- plans in charts and tables ------------------------------------------------------------------ */

function chooseButton(value) {
  const button = make("button", { type: "button" }, String(value));
  button.addEventListener("click", () => choosePlan(value));
  return button;
}

/* No line ends within a segment. */
function fusedCell(value) {
  return make("span", { class: "fused" }, ...fusedText(value).split(" ").map((text) => make("span", { class: "together" }, text)));
}

function choosePlan(value) {
  const i = indexOf.get(value), kernels = kernelsOf(value), scale = sumOf(kernels) || kernels.length;
  at("chosen-text").replaceChildren(
    make("p", {}, make("b", {}, `Plan ${value}`), known(i) && known(plans.us[i]) ? ` ${interval(plans.us[i], plans.low_us[i], plans.high_us[i], timeText)} ${unit.name} a layer, ` : " ",
      `fuses ${fusedText(value)}${isHandwritten(value) ? ", hand-written attention" : ""}`), bar(kernels, scale, null));
  at("chosen-command").textContent = commandOf(value);
  at("chosen").hidden = false;
  at("copy").textContent = "Copy";
  markPlan(i);
}

at("close").addEventListener("click", () => {
  at("chosen").hidden = true;
  markPlan(undefined);
});
at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("chosen-command").textContent);
    at("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(at("chosen-command"));
    at("copy").textContent = "Selected";
  }
});

function planTip(point) {
  const i = point.plan, value = plans.value[i];
  return [make("b", {}, `Plan ${value}`), make("span", {}, `${interval(plans.us[i], plans.low_us[i], plans.high_us[i], timeText)} ${unit.name} a layer`),
    make("span", {}, `fuses ${fusedText(value)}`), make("span", {}, `${count(segmentsOf(value).length, "kernel")}, ${attentionOf(value).label}`),
    make("span", {}, `plan ${i + 1} of the search`)];
}

const pointSize = ranked.length > 500 ? 4 : 9;

const attentions = [
  { label: "attention in several kernels", color: "dot", size: pointSize },
  { label: "attention in one kernel", color: "gemm", size: pointSize },
  { label: "hand-written attention", color: "attention", size: pointSize },
];

function attentionOf(value) {
  const whole = segmentsOf(value).some(([first, last]) => first <= 2 && last >= 5);
  return attentions[isHandwritten(value) ? 2 : whole ? 1 : 0];
}

/* Groups for charts of plans: by attention, then the plans to point out, larger. */
const groups = [...attentions, { label: "baselines", color: "elementwise", size: 11 }, { label: `the best plan, ${best.value}`, color: "mark", size: 13 }];
const baselineValues = new Set(data.baselines.map((baseline) => baseline.value));

function groupOf(value) {
  if (value === best.value) return 4;
  return baselineValues.has(value) ? 3 : attentions.indexOf(attentionOf(value));
}

const groupsOfPlans = plans.value.map(groupOf);

function planPoints(xOf) {
  return ranked.map((i) => ({ plan: i, x: xOf(i), y: inUnit(plans.us[i]), group: groupsOfPlans[i] })).filter((point) => known(point.x));
}

const planChart = { groups, tip: planTip, choose: (point) => choosePlan(plans.value[point.plan]), yLabel: `${unit.name} a layer, measured` };

/* Of an axis that counts. */
const wholeTicks = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] };

/* ---- the search ---------------------------------------------------------------------------------- */

function showConvergence() {
  if (ranked.length === 0) {
    at("convergence-text").textContent = "What the search measured is not known: a pack has the best plan alone.";
    return;
  }
  const steps = [];
  let least = Infinity;
  plans.value.forEach((_, i) => {
    if (plans.status[i] === STATUS.ok && plans.us[i] < least) {
      least = plans.us[i];
      steps.push([i + 1, inUnit(least)]);
    }
  });
  const found = steps.length > 0 ? steps[steps.length - 1][0] : 0, total = plans.value.length;
  if (found > 0) steps.push([total, inUnit(least)]);
  const strategies = Object.values(data.plans.searches);
  const imported = strategies.every((strategy) => !strategy); /* in an order of its own */
  const near = steps.find(([, time]) => time <= 1.01 * inUnit(least));
  addChart(at("convergence-chart"), { ...planChart, label: `Times of ${planCount} in the order measured, and the best so far. Arrow keys go from plan to plan.`,
    xLabel: "plans measured", xLog: total > 200, xAxis: wholeTicks, points: planPoints((i) => i + 1),
    lines: [{ label: "best so far", color: "text", points: steps, stepped: true }] });
  at("convergence-text").textContent = `${planCount} in ${count(strategies.length, "search").replace("searchs", "searches")} (${[...new Set(strategies)].map((strategy) => strategy || "unknown").join(", ")}). ` +
    (imported ? "They were imported, and in which order they were measured is not known. " :
      near ? `Plan number ${near[0].toLocaleString("en")} was within 1 % of the fastest time, plan number ${found.toLocaleString("en")} had it. ` : "") +
    (total > 200 ? "The scale of the plans is logarithmic." : "");
}

function showPlans() {
  const spread = (value) => ((value * 2654435761 >>> 0) / 2 ** 32 - 0.5) * 0.76; /* apart, the same each time */
  if (ranked.length > 0) addChart(at("plans-chart"), { ...planChart, height: 460, lines: [], xLabel: "kernels a layer",
    label: `Times of ${planCount} by their number of kernels. Arrow keys go from plan to plan, Enter shows the command that repeats it.`,
    points: planPoints((i) => segmentsOf(plans.value[i]).length + spread(plans.value[i])),
    xAxis: wholeTicks });
  const censored = plans.status.filter((status) => status === STATUS.censored).length;
  const failed = plans.status.filter((status) => status === STATUS.failed).length;
  at("plans-text").textContent = `Each point is a plan. ${ranked.length.toLocaleString("en")} of ${planCount} ran` +
    `${censored > 0 ? `, ${censored} were stopped early as too slow` : ""}${failed > 0 ? `, ${failed} failed` : ""}. ` +
    (ranked.length > 1 ? `The slowest takes ${(plans.us[ranked[ranked.length - 1]] / plans.us[ranked[0]]).toFixed(2)} times as long as the fastest.` : "");
  fillTable(at("fastest"), [
    { title: "plan", text: (i) => chooseButton(plans.value[i]) },
    { title: "fused ops", text: (i) => fusedCell(plans.value[i]) },
    { title: "kernels", number: true, text: (i) => String(segmentsOf(plans.value[i]).length) },
    { title: `${unit.name} a layer`, number: true, text: (i) => timeText(plans.us[i]) },
    { title: "95 % interval", number: true, text: (i) => known(plans.low_us[i]) ? `${timeText(plans.low_us[i])} to ${timeText(plans.high_us[i])}` : "-" },
  ], ranked.slice(0, 15));
  const reasons = Object.entries(data.plans.reasons).sort((a, b) => b[1] - a[1]).slice(0, 20);
  if (reasons.length > 0) {
    const table = make("table");
    fillTable(table, [{ title: "plans", number: true, text: ([, number]) => String(number) }, { title: "reason", text: ([reason]) => reason }], reasons);
    at("failures").append(make("h3", {}, "Why plans failed"), make("div", { class: "scroll" }, table));
  }
}

/* ---- precisions ------------------------------------------------------------------------------------ */

function errorText(row) {
  return known(row.error) ? (row.error_measured ? "" : "about ") + row.error.toPrecision(2) : "-";
}

function showPrecisions() {
  const rows = data.precisions, groups = ["mark", "dot", "gemm", "attention", "elementwise"].map((color, gemms) => ({ size: 9, color, label: `${gemms} of 4 GEMMs in e4m3` }));
  if (!rows) return;
  at("precision").hidden = false;
  const points = rows.filter((row) => known(row.error)).map((row) => ({ x: row.error, y: inUnit(row.us), group: row.gemms, row }));
  if (points.length > 1)
    addChart(at("precision-chart"), { groups, points, lines: [], xLabel: "error after all layers", yLabel: `${unit.name} a layer`,
      label: "Times of the best plans of each precision against their errors. Arrow keys go from precision to precision.",
      tip: ({ row }) => [make("b", {}, row.precision), make("span", {}, `plan ${row.value}: ${timeText(row.us)} ${unit.name} a layer, error ${errorText(row)}`)] });
  at("precision-text").textContent = "GEMMs whose operands are e4m3, 8-bit floating-point numbers, take less time and lose more accuracy. All else on this page is about plans without." + (points.length > 1 ? "" : " What they lose is not known here; search with --accuracy.") +
    (rows.every((row) => row.error_measured || !known(row.error)) ? "" : " Errors called about are not measured: they follow from what each GEMM alone loses. 'fuseplan accuracy --precision' measures one; search with its output.");
  fillTable(at("precisions"), [
    { title: "GEMMs in e4m3", text: (row) => row.gemms === 0 ? `none: ${row.precision}` : row.precision },
    { title: "best plan", number: true, text: (row) => String(row.value) },
    { title: `${unit.name} a layer`, number: true, text: (row) => interval(row.us, row.low_us, row.high_us, timeText) },
    { title: "times as fast", number: true, text: (row) => row.compared && rows[0].gemms === 0 ? (rows[0].us / row.us).toFixed(2) : "-" },
    { title: "error", number: true, text: errorText },
  ], rows);
}

/* ---- predicted against measured -------------------------------------------------------------------- */

function showPrediction() {
  const points = planPoints((i) => inUnit(plans.alone_us[i])), figure = data.plans.alone_spearman;
  if (points.length === 0) {
    at("prediction-text").textContent = `There is no prediction: ${ranked.length > 0 ? "not all kernels of the plans were timed alone" : "no plan of a search is known"}.`;
    return;
  }
  const ends = points.reduce(([low, high], point) => [Math.min(low, point.x, point.y), Math.max(high, point.x, point.y)], [Infinity, 0]);
  addChart(at("prediction-chart"), { ...planChart, xLabel: `${unit.name} a layer, sum of the kernels alone`,
    label: `Predicted against measured times of ${planCount}. Arrow keys go from plan to plan.`, points, height: 440,
    lines: [{ label: "as predicted", color: "dot", dash: [6, 5], points: [[ends[0], ends[0]], [ends[1], ends[1]]] }] });
  at("prediction-text").textContent = "The sum of a plan's kernels, each timed alone, costs a fraction of measuring plans. " +
    (known(figure) ? `Its ranks correlate with those measured at ${figure.toFixed(3)} (1: the same order). ` : "") +
    "Points below the line run faster than predicted.";
}

/* ---- the roofline ---------------------------------------------------------------------------------- */

function showRoofline() {
  const ofBest = new Set(kernelsOf(best.value).map((kernel) => kernel.ops.join()));
  const kindNames = Object.keys(kinds), points = [];
  for (const slot of slots.values()) {
    if (!slot.flops || !slot.bytes) continue;
    const own = ofBest.has(slot.ops.join()) && (slot.handwritten ? isHandwritten(best.value) : !(isHandwritten(best.value) && slot.ops.join() === "2,6"));
    const kind = kindNames.indexOf(kindOf(slot.ops));
    points.push({ x: slot.flops / slot.bytes, y: 1e-6 * slot.flops / slot.us, slot, named: kind, group: own ? kindNames.length + kind : kind });
  }
  if (points.length === 0) {
    at("roofline-text").textContent = maskKnown ? "No kernel was timed alone." :
      "The work of a kernel depends on the attention mask, which was a file; name the workload's options to 'fuseplan report' to have this chart.";
    return;
  }
  const ridge = roof.flops / roof.bytes, low = Math.min(...points.map((point) => point.x), ridge) / 1.5;
  const high = Math.max(...points.map((point) => point.x), ridge) * 1.5;
  const small = kindNames.map((kind) => ({ label: kinds[kind], color: kind, size: 5 }));
  const large = kindNames.map((kind) => ({ color: kind, size: 13 }));
  addChart(at("roofline-chart"), { label: "Rates of kernels against their arithmetic intensity. Arrow keys go from kernel to kernel.",
    xLabel: "FLOP for each byte", yLabel: "TFLOP/s", xLog: true, yLog: true, points, groups: [...small, ...large],
    lines: [{ label: data.rates.of_device ? "the device's peaks" : "highest rates reached", color: "text", points: [[low, 1e-12 * low * roof.bytes], [ridge, 1e-12 * roof.flops], [high, 1e-12 * roof.flops]] }],
    tip: ({ x, y, slot }) => [make("b", {}, `ops ${segmentText(slot.ops)}${slot.handwritten ? ", hand-written" : ""}`), make("span", {}, operatorsText(slot.ops)),
      make("span", {}, `${slot.implementation} ${slot.schedule}`), make("span", {}, `${timeText(slot.us)} ${unit.name}, ${rateText(y, "TFLOP/s", 1)}, ${rateText(y / x, "GB/s", 1e-3)}`)] });
  at("roofline-text").textContent = `Each point is the fastest way found to run a segment, the large ones those of the best plan. The line is ${data.rates.of_device ? "the device's peaks" : "not the device's peak, which is not stored, but the highest rates that a kernel here reached"}: ` +
    `${rateText(roof.flops, "TFLOP/s", 1e12)} and ${rateText(roof.bytes, "GB/s", 1e9)}, by the bytes that a kernel must move at least. Far below it there is room. Kernels that only add, scale or normalise count no FLOP and stand in the table of kernels alone.`;
}

/* ---- the mask ---------------------------------------------------------------------------------------- */

function picture(size, title, paths, caption) {
  return make("figure", {}, make("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "shape-rendering": "crispEdges" }, make("title", {}, title), ...paths),
    make("figcaption", {}, ...caption));
}

function showMask() {
  const mask = data.mask, blocks = mask.blocks;
  if (!maskKnown) {
    at("mask-text").textContent = `The attention mask was a file, of which only the hash is stored: ${mask.text}. Name the workload's options to 'fuseplan report' to have it drawn.`;
    return;
  }
  const some = blocks.full + blocks.partial, percent = (share) => `${(100 * share).toFixed(1)} %`;
  at("mask-text").textContent = `${mask.text} keeps ${percent(mask.kept_share)} of the pairs of query and key${workload.lengths ? ", padding left out" : ""}. Kernels work on blocks of 64 queries and 64 keys and skip the empty ones: ` +
    `${percent(some / blocks.all)} of the blocks keep a pair. ${workload.batch > 1 ? "Batch row 0 is drawn. " : ""}Queries run down, keys to the right.`;
  const shades = mask.shades.map((path, i) => make("path", { d: path, class: "kept", opacity: (i + 1) / mask.shades.length }));
  at("mask-picture").append(picture(mask.cells, "The pairs that the attention mask keeps", shades, ["Pairs: the stronger the colour, the more are kept"]));
  if (blocks.full_path || blocks.partial_path) {
    const drawn = ["full", "partial"].map((kind) => make("path", { d: blocks[`${kind}_path`], class: kind }));
    let lines = "";
    for (let i = 1; i < blocks.across && blocks.across <= 64; i++) lines += `M0 ${i}h${blocks.across}M${i} 0v${blocks.across}`;
    const svg = picture(blocks.across, "The blocks of the attention mask", [...drawn, make("path", { d: lines, class: "between" })], [
      make("span", { class: "swatch full" }), `whole (${blocks.full}), `, make("span", { class: "swatch partial" }), `in part (${blocks.partial}), empty (${blocks.all - some})`]);
    at("mask-picture").append(svg);
  }
}

/* ---- origin ------------------------------------------------------------------------------------------ */

function showOrigin() {
  const device = data.device;
  fillList(at("origin-list"), [
    ["Workload", make("code", {}, data.key)], ["Device", `${device.name}, ${device.capability}, ${count(device.units, device.kind === "cuda" ? "multiprocessor" : "thread")}`],
    ["Driver", device.driver], ["Compiler", device.compiler], ["Libraries", device.libraries],
    ["Protocol", `version ${data.protocol}, inputs ${data.init}, seed ${data.input_seed}`],
    ["First plan", day(data.plans.first_utc)], ["This page", `fuseplan ${data.fuseplan}, ${day(data.made_utc)}`],
    ["Ask again", make("code", {}, `fuseplan query ${data.options} --db ${data.database}`)]]);
}

showHead();
showIndex();
showChain();
showKernels();
showCompared();
showConvergence();
showPlans();
showPrecisions();
showPrediction();
showRoofline();
showMask();
showOrigin();

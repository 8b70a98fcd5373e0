"use strict";

document.documentElement.classList.add("with-script");

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const one = (selector, inside = document) => inside.querySelector(selector);
const every = (selector, inside = document) => [...inside.querySelectorAll(selector)];

function make(tag, content = "", attributes = {}) {
  const element = document.createElement(tag);
  element.append(...[content].flat());
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

// The rows come as columns.
function numbered(values) {
  const columns = Object.entries(values ?? {});
  return (columns[0]?.[1] ?? []).map((_, id) => ({ id, ...Object.fromEntries(columns.map(([name, column]) => [name, column[id]])) }));
}

const rows = numbered(data.rows);
const figures = new Map(Object.entries(data.figures ?? {}).map(([kind, figure]) => [kind, { ...figure, own: figure.rows && numbered(figure.rows).map(({ id, ...row }) => row) }]));

// What is shown: the implementations of the legend, a series or every point (-1), some of its points, one point for the
// charts that have one, and the rows of the table.

const state = { shown: [...data.names], view: data.first ?? -1, chosen: [], at: 0, kept: new Set(rows.map((row) => row.id)) };
const charts = new Map();

const series = () => data.series?.[state.view];
const inView = (row) => !series() || row.point in series().at;
const pointsInView = () => [...new Set(rows.filter(inView).map((row) => row.point))];

// Whether the reader wants to see a row in a chart; where points are marked, all of them are.
function isWanted(row, { at, isMarked }) {
  const names = row.names ?? [row.implementation].filter(Boolean);
  return (!names.length || names.some((name) => state.shown.includes(name)))
    && (isMarked || !state.chosen.length || row.point === undefined || state.chosen.includes(row.point))
    && (!at || row.point === state.at)
    && (data.kind !== "comparison" || state.kept.has(row.id));
}

// A chart with a row for each point is as high as it has rows.
function heightOf({ height, layer }, values) {
  if (!height.step) return height;
  const field = layer.map((each) => each.encoding?.y?.field).find(Boolean);
  return new Set(values.map((row) => row[field])).size * height.step;
}

async function draw(place, spec, values, { signals = {}, onClick = null } = {}) {
  const node = place.appendChild(make("div", "", { class: "chart" }));
  const font = getComputedStyle(document.body).fontFamily;
  const config = { ...data.config, background: "transparent", font, axisY: { labelLimit: place.clientWidth < 640 ? 126 : 300 } };
  const params = spec.params.map((each) => (each.name in signals ? { ...each, value: signals[each.name] } : each));
  const whole = { ...spec, params, height: heightOf(spec, values), datasets: { ...spec.datasets, rows: values } };
  const { view } = await vegaEmbed(node, whole, { actions: false, renderer: "svg", ast: true, config, tooltip: { theme: "custom" } });
  if (onClick) view.addEventListener("click", (_, item) => item?.datum && onClick(item.datum));
  return view;
}

// The charts of a section: its parts, or one for each machine, with the rows that they may draw; none without rows.
function partsOf({ parts, charts: specs, own, needs, at }) {
  if (parts) return parts.map((part) => ({ ...part, title: parts.length > 1 && part.title }));
  const chart = specs.any ?? specs[series()?.axis ?? "points"];
  const values = (own?.filter((row) => (row.series ?? state.view) === state.view) ?? rows.filter(inView)).filter((row) => !needs || row[needs] !== null);
  if (!chart || !values.length) return [];
  // a chart of one point is of one machine
  const machines = at ? [] : [...new Set(values.map((row) => row.machine))];
  if (machines.length < 2) return [{ chart, machine: machines[0], rows: values }];
  return machines.map((machine) => ({ chart, machine, title: data.machines[machine], rows: values.filter((row) => row.machine === machine) }));
}

async function show(kind, figure) {
  const place = one(`.charts[data-kind="${kind}"]`);
  (charts.get(kind) ?? []).forEach(({ view }) => view.finalize());
  place.replaceChildren();
  const parts = partsOf(figure);
  place.classList.toggle("several", !figure.parts && parts.length > 1);
  const drawn = [];
  const boxes = parts.map(({ title }) => place.appendChild(make("div", title ? make("h3", title) : "")));
  for (const [n, { chart, machine, rows: values }] of parts.entries()) {
    const wanted = { ...figure, isMarked: chart.params.some((each) => each.select) };
    const signals = { places: series()?.xs ?? [], ...figure.ticks?.at(state.view) };
    const view = await draw(boxes[n], chart, values.filter((row) => isWanted(row, wanted)), { signals, onClick: openSamples });
    if (wanted.isMarked) view.addSignalListener("brush", (_, range) => mark(range, machine));
    drawn.push({ view, values, wanted });
  }
  charts.set(kind, drawn);
  fillTable(kind, figure, parts.flatMap((part) => part.rows));
}

// Marking points of a machine: Vega's own selection says where.
function mark(range, machine) {
  const own = rows.filter((row) => inView(row) && row.machine === machine);
  const [[field, ends] = []] = Object.entries(range ?? {});
  const isInside = (value) => (field === "label" ? ends.includes(value) : value >= ends[0] && value <= ends[1]);
  choose(field ? [...new Set(own.filter((row) => isInside(row[field])).map((row) => row.point))] : []);
}

let waiting;
function choose(points) {
  state.chosen = points;
  clearTimeout(waiting);
  waiting = setTimeout(update, 30);
}

function update() {
  filterTable();
  for (const { view, values, wanted } of [...charts.values()].flat()) view.data("rows", values.filter((row) => isWanted(row, wanted))).runAsync();
  every("tr[data-point]").forEach((line) => (line.hidden = state.chosen.length > 0 && !state.chosen.includes(Number(line.dataset.point))));
  const words = [
    state.shown.length < data.names.length ? `${state.shown.length} of ${data.names.length} implementations` : "",
    state.chosen.length ? `${state.chosen.length} of ${data.points.length} points: ${state.chosen.map((point) => data.points[point]).join(", ")}` : "",
  ].filter(Boolean);
  if (byId("shown")) byId("shown").textContent = words.length ? `Shown: ${words.join("; ")}` : "";
}

// Tables: of the cases, and beside each chart the same cells.

const lines = every("#table tbody tr");
const headings = every("#table thead th");
const placeOf = (name) => headings.findIndex((heading) => heading.dataset.key === name);

function sort(heading) {
  const column = heading.cellIndex;
  const body = heading.closest("table").tBodies[0];
  const isNumber = heading.classList.contains("n");
  const next = { none: isNumber ? "descending" : "ascending", ascending: "descending", descending: "ascending" };
  const order = next[heading.getAttribute("aria-sort")];
  every("th[aria-sort]", heading.parentNode).forEach((other) => other.setAttribute("aria-sort", "none"));
  heading.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const value = (line) => line.children[column].dataset.v;
  const text = (line) => line.children[column].textContent;
  // what has no number stays below
  const byNumber = (a, b) => (value(a) === undefined) - (value(b) === undefined) || sign * (value(a) - value(b)) || 0;
  const byText = (a, b) => sign * text(a).localeCompare(text(b), "en", { numeric: true });
  body.append(...[...body.rows].sort(isNumber ? byNumber : byText));
}

// the first two columns of the table of all cases stay when it is scrolled: the second one right of the first
const corner = one("#table th");
if (corner) new ResizeObserver(() => byId("table").style.setProperty("--first", `${corner.getBoundingClientRect().width}px`)).observe(corner);
every(".sortable th[aria-sort]").forEach((heading) => one("button", heading).addEventListener("click", () => sort(heading)));

function filterTable() {
  const words = (byId("words")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  state.kept.clear();
  lines.forEach((line, id) => {
    const { implementation, point } = rows[id];
    const text = line.textContent.toLowerCase();
    line.hidden = !state.shown.includes(implementation) || (state.chosen.length > 0 && !state.chosen.includes(point)) || !words.every((word) => text.includes(word));
    if (!line.hidden) state.kept.add(id);
  });
  if (byId("found")) byId("found").textContent = state.kept.size < lines.length ? `${state.kept.size} of ${lines.length} rows` : "";
}

byId("words")?.addEventListener("input", update);

function table(names, values) {
  const head = make("tr", names.map((name) => make("th", name, { scope: "col" })));
  const body = values.map((row) => make("tr", row.map((text) => make("td", String(text)))));
  return make("table", [make("thead", head), make("tbody", body)]);
}

function fillTable(kind, { headings: own, columns }, values) {
  const place = one(`[data-table="${kind}"]`);
  if (!place) return;
  if (own) return place.replaceChildren(table(Object.values(own), values.map((row) => Object.keys(own).map((field) => row[field]))));
  const numbers = ["point", "implementation", ...columns].map(placeOf).filter((number) => number >= 0);
  const shown = lines.filter((_, id) => inView(rows[id]) && rows[id].status === "ok");
  place.replaceChildren(table(numbers.map((n) => headings[n].textContent.trim()), shown.map((line) => numbers.map((n) => line.children[n].textContent))));
}

// A case: its samples, process by process, and the command that measures it again.

let samples;
let commands;
const dialog = byId("case");
const again = byId("case-command");

function strip(row, processes) {
  const seconds = (ratio) => (ratio / data.steps) * row.latency_s;
  const values = [];
  const middles = [];
  let x = 0;
  for (const [process, rounds, ratios, disturbed, median] of processes) {
    const first = x;
    ratios.forEach((ratio, place) => {
      const remark = disturbed.includes(place) ? "disturbed by other processes" : "undisturbed";
      const round = 1 + (Array.isArray(rounds) ? rounds[place] : rounds + place);
      values.push({ kind: "sample", remark, x: x++, value_s: seconds(ratio), process: process + 1, round });
    });
    values.push({ kind: "process", first: first - 0.4, last: x - 0.6, value_s: seconds(median) });
    middles.push((first + x - 1) / 2);
    x += 2;
  }
  values.push({ kind: "interval", x: x + 1, value_s: row.latency_s, low_s: row.latency_low_s ?? row.latency_s, high_s: row.latency_high_s ?? row.latency_s });
  return [values, { values: middles, labels: processes.map(([process]) => `process ${process + 1}`) }];
}

function inFull(cell) {
  const short = one("summary", cell)?.textContent;
  return short ? `${short}: ${cell.textContent.slice(short.length)}` : cell.textContent;
}

again?.querySelector("button").addEventListener("click", (event) => {
  const words = one("code", again);
  getSelection().selectAllChildren(words);
  navigator.clipboard?.writeText(words.textContent).then(() => (event.target.textContent = "Copied"), () => {});
});

async function openSamples({ id }) {
  const row = rows[id];
  if (!row || !data.samples) return;
  samples ??= JSON.parse(await unpack(data.samples));
  byId("case-title").textContent = data.sides ? row.label : `${row.implementation} · ${data.points?.[row.point] ?? row.label}`;
  const facts = headings.map((heading, n) => [heading.textContent.trim(), inFull(lines[id].children[n])]).slice(2).filter(([, text]) => text);
  byId("case-facts").replaceChildren(...facts.map(([name, text]) => make("div", [make("dt", name), make("dd", text)])));
  again.hidden = !data.commands;
  if (data.commands) {
    commands ??= JSON.parse(await unpack(data.commands));
    one("code", again).textContent = commands[id];
    one("button", again).textContent = "Copy";
  }
  const place = byId("case-charts");
  place.replaceChildren();
  dialog.showModal();
  dialog.style.setProperty("--series", `var(--i${data.names.indexOf(row.implementation)})`);
  const all = [];
  for (const [n, side] of (data.sides ?? [""]).entries()) {
    const [processes, own] = [samples[n][id], { ...row, ...row.sides?.[n] }];
    const box = place.appendChild(make("div", side ? make("h3", side) : ""));
    if (!processes || !own.latency_s) {
      box.appendChild(make("p", "No samples: the case has no time, or the journal isn't there.", { class: "none" }));
      continue;
    }
    const [values, signals] = strip(own, processes);
    await draw(box, data.strip, values, { signals });
    processes.forEach(([process, , ratios, disturbed, , median]) => all.push([side, process + 1, ratios.length, median, disturbed.length].slice(side ? 0 : 1)));
  }
  const names = [...(data.sides ? ["run"] : []), "process", data.every > 1 ? `samples (one of ${data.every} is here)` : "samples", "median", "disturbed"];
  byId("case-table").replaceChildren(all.length ? table(names, all) : "");
}

if (data.samples) lines.forEach((line, id) => {
  const cell = line.children[placeOf("implementation")];
  const button = make("button", cell.textContent, { type: "button", title: "the samples of this case, and the command that measures it again" });
  button.addEventListener("click", () => openSamples({ id }));
  cell.replaceChildren(button);
});

// The legend, the view, the range, and the point of charts that have one.

every(".legend input").forEach((box) => box.addEventListener("change", () => {
  state.shown = every(".legend input:checked").map((each) => each.dataset.name);
  update();
}));

const [viewChoice, pointChoice, from, to] = ["view", "at", "from", "to"].map(byId);

function fillChoices() {
  const xs = series()?.xs ?? [];
  if (from) {
    byId("range").hidden = xs.length < 2;
    [from, to].forEach((list) => list.replaceChildren(...xs.map((x) => make("option", `${series().symbol}=${x}`, { value: x }))));
    to.value = xs.at(-1) ?? "";
  }
  // the points with a value in a column
  const points = pointChoice ? pointsInView().filter((point) => rows.some((row) => row.point === point && row[pointChoice.dataset.column])) : [];
  if (!points.length) return;
  state.at = points[points.length >> 1];
  pointChoice.replaceChildren(...points.map((point) => make("option", data.points[point], { value: point })));
  pointChoice.value = state.at;
}

async function showAll() {
  state.chosen = [];
  fillChoices();
  filterTable();
  // first who is there, because a chart takes the width that its neighbours leave
  for (const [kind, figure] of figures) byId(`figure-${kind}`).hidden = !partsOf(figure).length;
  for (const [kind, figure] of figures) await show(kind, figure);
  update();
}

pointChoice?.addEventListener("change", () => {
  state.at = Number(pointChoice.value);
  update();
});

if (viewChoice) {
  viewChoice.append(...data.series.map((each, number) => make("option", each.label, { value: number })), make("option", "every point", { value: -1 }));
  viewChoice.value = state.view;
  viewChoice.addEventListener("change", () => {
    state.view = Number(viewChoice.value);
    showAll();
  });
  for (const end of [from, to]) end.addEventListener("change", () => {
    const isInside = (point) => series().at[point] >= Number(from.value) && series().at[point] <= Number(to.value);
    const chosen = pointsInView().filter(isInside);
    choose(chosen.length === pointsInView().length ? [] : chosen);
  });
  byId("reset").addEventListener("click", () => {
    every(".legend input").forEach((box) => (box.checked = true));
    state.shown = [...data.names];
    byId("words").value = "";
    showAll();
  });
}

// results.csv is in the page.

byId("download")?.addEventListener("click", async (event) => {
  const text = await unpack(event.target.dataset.packed);
  const link = make("a", "", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: "results.csv" });
  link.click();
  URL.revokeObjectURL(link.href);
});

// Profiles: the list of cases. A link opens its case, and the field leaves only cases that have all its words.

const cases = every("details.case");

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details.case")) target.open = true;
}

addEventListener("hashchange", openTarget);
openTarget();
every("nav a").forEach((link) => link.addEventListener("click", () => (document.getElementById(link.hash.slice(1)).open = true)));

document.getElementById("filter")?.addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = every("nav li");
  items.forEach((item) => {
    item.hidden = !words.every((word) => item.dataset.words.toLowerCase().includes(word));
    document.getElementById(item.firstElementChild.hash.slice(1)).hidden = item.hidden;
  });
  every("nav section").forEach((section) => (section.hidden = !one("li:not([hidden])", section)));
  every(".point").forEach((point) => (point.hidden = !one("details.case:not([hidden])", point)));
  const left = items.filter((item) => !item.hidden).length;
  document.getElementById("found").textContent = words.length ? `${left} of ${items.length} cases` : "";
});

for (const [id, open] of [["open-all", true], ["close-all", false]]) {
  document.getElementById(id)?.addEventListener("click", () => cases.forEach((details) => (details.open = open)));
}

// On paper everything is open; charts take the width of the paper.

let closed = [];
addEventListener("beforeprint", () => {
  closed = every("section > details:not([open]):not(.numbers), details.case:not([open])");
  closed.forEach((details) => (details.open = true));
});
addEventListener("afterprint", () => closed.forEach((details) => (details.open = false)));

// A page says when it is drawn, so that a test can wait.

(async () => {
  await showAll();
  document.documentElement.dataset.drawn = "yes";
})();

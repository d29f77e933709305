// Live figures of a crawl: asked for every two seconds while somebody looks, its words and lists every eight.

import { loadAgain } from "./letopis.js";

const EVERY = 2000;
const EVERY_WORDS = 4;
const KEPT = 90;
const box = document.querySelector("[data-figures]");
const live = document.querySelector("[data-live]");
const rates = [];
let before = null;
let askedAt = 0;

const decimal = (value) => value.toFixed(1).replace(".", box.dataset.decimal);
const grouped = (count) => (count === null ? "–" : String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f"));
const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)}\u00a0%`);

// Rows that are seen get their new figures; the first host of all brings the table.
function showHosts(hosts) {
  const table = document.querySelector("[data-hosts]");
  if (!table) return hosts.length && !document.querySelector("main :is(input, textarea):focus") && loadAgain();
  const columns = table.dataset.hosts.split(",");
  for (const row of table.querySelectorAll("tbody tr")) {
    const now = hosts.find((host) => host.name === row.querySelector("a")?.textContent);
    for (const name of now ? ["fetched", "waiting", "due", "failures"] : []) {
      const cell = row.cells[columns.indexOf(name)];
      if (cell) cell.textContent = grouped(now[name]);
    }
  }
}

function draw() {
  const most = Math.max(1, ...rates);
  const step = 1000 / (KEPT - 1);
  const start = 1000 - (rates.length - 1) * step;
  const points = rates.map((rate, at) => `${(start + at * step).toFixed(1)},${(98 - (94 * rate) / most).toFixed(1)}`);
  live.querySelector("polyline").setAttribute("points", points.join(" "));
  const label = live.querySelector("[data-now]");
  label.textContent = label.dataset.now.replace("#now#", decimal(rates.at(-1))).replace("#most#", decimal(most));
  live.hidden = false;
}

function show(figures) {
  for (const place of document.querySelectorAll("[data-value]")) place.textContent = grouped(figures[place.dataset.value]);
  for (const place of box.querySelectorAll("[data-percent]")) place.textContent = percent(figures[place.dataset.percent]);
  showHosts(figures.hosts);
  if (before) {
    const seconds = (performance.now() - askedAt) / 1000;
    const rise = (name) => Math.max(0, figures[name] - before[name]);
    for (const place of box.querySelectorAll("[data-rate]")) {
      place.textContent = decimal(rise(place.dataset.rate) / seconds);
      place.parentElement.hidden = false;
    }
    rates.push(rise("fetched") / seconds);
    if (rates.length > KEPT) rates.shift();
    draw();
  }
  before = figures;
  askedAt = performance.now();
}

// What the page says in words and lists follows the figures, unless somebody is just using it.
async function refresh() {
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const now = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-fresh]")) {
    const made = now.querySelector(`[data-fresh=${old.dataset.fresh}]`);
    if (made && !old.contains(document.activeElement)) old.replaceWith(made);
  }
}

let asked = 0;
async function ask() {
  if (!document.hidden) {
    const answer = await fetch(box.dataset.figures).catch(() => null);
    if (answer?.ok) show(await answer.json());
    asked += 1;
    if (asked % EVERY_WORDS === 0) await refresh();
  }
  setTimeout(ask, EVERY);
}

ask();

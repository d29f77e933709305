// Runs that are not done: how far they are, as it happens; one that ended or was paused is shown whole. Files that are
// dropped on the form are sent one after the other, each as a run of its own.

import { loadAgain } from "./letopis.js";

const places = new Map([...document.querySelectorAll("[data-run]")].map((one) => [Number(one.dataset.run), one]));
const whole = document.querySelector("[data-run-whole]");

function part(tag, text, css, to) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (css) made.className = css;
  if (to) made.href = to;
  return made;
}

function lookedAt(look, called) {
  const line = document.createElement("li");
  const page = part("a", look.url.replace(/^https?:\/\//, ""), "page", `/url/${look.url}`);
  line.append(part("span", look.status, look.failed ? "badge unavailable" : "badge"), " ");
  line.append(part("span", called[look.outcome] ?? look.outcome, `badge ${look.outcome}`), " ", page);
  return line;
}

function showOutcomes(outcomes, called) {
  const place = document.querySelector("[data-run-outcomes]");
  const counts = Object.entries(outcomes);
  if (!place || !counts.length) return;
  place.hidden = false;
  const badges = counts.map(([name, count]) => [part("span", called[name] ?? name, `badge ${name}`), ` ${count} `]);
  place.replaceChildren(...badges.flat());
}

function showLooks(looks, called) {
  const section = document.querySelector("[data-run-looks]");
  if (!section || !looks.length) return;
  section.hidden = false;
  section.querySelector("[data-run-last]").replaceChildren(...looks.map((look) => lookedAt(look, called)));
}

// How long a run takes goes on between two reports; how fast it is, is known from what came since the page was opened.
const clock = document.querySelector("[data-run-clock]");
if (clock) {
  const start = performance.now() - 1000 * Number(clock.dataset.runClock);
  setInterval(() => {
    const seconds = Math.floor((performance.now() - start) / 1000);
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    const shown = parts[0] ? parts : parts.slice(1);
    clock.textContent = shown.map((part, at) => (at ? String(part).padStart(2, "0") : part)).join(":");
  }, 1000);
}

let first = null;
function showRate(outcomes) {
  const place = document.querySelector("[data-run-rate]");
  const count = Object.values(outcomes).reduce((sum, one) => sum + one, 0);
  first ??= { count, at: performance.now() };
  const minutes = (performance.now() - first.at) / 60_000;
  if (!place || count === first.count || minutes < 0.05) return;
  place.textContent = place.dataset.runRate.replace("#n#", Math.round((count - first.count) / minutes));
  place.hidden = false;
}

if (places.size) {
  const title = document.title;
  const source = new EventSource(whole ? `/jobs/events?run=${whole.dataset.run}` : "/jobs/events");
  source.addEventListener("message", (event) => {
    const open = new Map(JSON.parse(event.data).map((run) => [run.id, run]));
    for (const [id, place] of places) {
      const run = open.get(id);
      const badge = place.querySelector("[data-run-state] .badge");
      if (!run || !badge.classList.contains(run.state)) {
        source.close();
        loadAgain();
        return;
      }
      place.querySelector("[data-run-step]").textContent = run.step;
      const bar = place.querySelector("progress");
      if (run.progress === null) bar?.removeAttribute("value");
      else if (bar) bar.value = run.progress;
      if (whole && run.progress) document.title = `${Math.floor(100 * run.progress)}\u00a0% · ${title}`;
      if (run.looks) {
        showLooks(run.looks, run.called);
        showOutcomes(run.outcomes, run.called);
        showRate(run.outcomes);
      }
    }
  });
}

const drop = document.querySelector("[data-drop]");

function send(file, line) {
  return new Promise((done) => {
    const list = drop.querySelector("[data-sent]");
    const bar = part("progress", "");
    bar.max = file.size || 1;
    bar.value = 0;
    bar.setAttribute("aria-label", file.name);
    line.replaceChildren(file.name, " ", bar);
    if (file.size > Number(drop.dataset.largest)) {
      line.replaceChildren(`${file.name}: ${list.dataset.large}`);
      done(false);
      return;
    }
    const request = new XMLHttpRequest();
    request.open("POST", `${drop.dataset.drop}?name=${encodeURIComponent(file.name)}&${drop.elements.list.value}`);
    request.setRequestHeader("x-csrf-token", drop.elements.csrf.value);
    request.upload.addEventListener("progress", (event) => (bar.value = event.loaded));
    request.addEventListener("loadend", () => {
      const answer = request.responseText.startsWith("{") ? JSON.parse(request.responseText) : {};
      if (request.status === 201) {
        line.replaceChildren(part("a", `${answer.id} ${answer.name}`, "", `/jobs/${answer.id}`));
        line.dataset.made = answer.id;
      } else {
        line.replaceChildren(`${file.name}: ${answer.detail || list.dataset.failed}`);
      }
      done(request.status === 201);
    });
    request.send(file);
  });
}

async function sendAll(files) {
  const list = drop.querySelector("[data-sent]");
  const lines = [...files].map((file) => [file, part("li", file.name)]);
  list.replaceChildren(...lines.map(([, line]) => line));
  let taken = 0;
  for (const [file, line] of lines) taken += await send(file, line);
  if (taken === lines.length) location.assign(taken === 1 ? `/jobs/${lines[0][1].dataset.made}` : "/jobs");
}

if (drop) {
  drop.addEventListener("submit", (event) => event.preventDefault());
  drop.querySelector("[type=file]").addEventListener("change", (event) => sendAll(event.target.files));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
    });
  }
  drop.addEventListener("drop", (event) => sendAll(event.dataTransfer.files));
}

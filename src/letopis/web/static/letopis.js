// Small comforts on every page. Everything can be read without them.

// A page that loads itself again gives way to what the reader has just sent or opened, which it would cut off.
let leaving = false;
addEventListener("beforeunload", () => (leaving = true));
addEventListener("pageshow", () => (leaving = false));
export const loadAgain = () => leaving || location.reload();

// What answers a form stands at the address of its list: whoever loads it again does nothing twice.
const listed = document.querySelector("[data-address]");
if (listed) history.replaceState(null, "", listed.dataset.address);

for (const link of document.querySelectorAll("[data-copy]")) {
  link.addEventListener("click", async (event) => {
    if (!navigator.clipboard || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    await navigator.clipboard.writeText(link.href);
    const before = link.textContent;
    link.textContent = link.dataset.copy;
    link.setAttribute("role", "status");
    setTimeout(() => {
      link.textContent = before;
      link.removeAttribute("role");
    }, 1500);
  });
}

// An open group of the menu closes when the reader turns to something else.
document.addEventListener("click", (event) => {
  for (const group of document.querySelectorAll(".menu details[open]")) if (!group.contains(event.target)) group.open = false;
});
document.addEventListener("keydown", (event) => {
  const group = event.key === "Escape" ? document.activeElement?.closest(".menu details[open]") : null;
  if (group) {
    group.open = false;
    group.querySelector("summary").focus();
  }
});

// A day of the calendar opens the list that it stands in.
const openList = () => {
  const day = location.hash.startsWith("#d") ? document.getElementById(location.hash.slice(1)) : null;
  if (day) day.closest("details").open = true;
  day?.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", openList);
openList();

// Times as this device tells them, for those who chose so.
const pad = (value) => String(value).padStart(2, "0");
const written = (at) => `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${pad(at.getHours())}:${pad(at.getMinutes())}`;
const minutes = /\d{4}-\d\d-\d\d \d\d:\d\d/g;
const zoneChoice = document.querySelector("[data-zone-choice]");
if (zoneChoice) {
  const name = document.querySelector("[data-zone-name]");
  const utc = name.textContent;
  const offer = zoneChoice.textContent;
  const show = (local) => {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const ago = "ago" in time.dataset;
      time.dataset.utc ??= ago ? time.title : time.textContent;
      const text = local ? written(new Date(time.dateTime)) : time.dataset.utc;
      if (ago) time.title = text;
      else if (/\d:\d/.test(time.dataset.utc)) time.textContent = text;
    }
    for (const one of document.querySelectorAll("[data-dated] :is(option, title)")) {
      one.dataset.utc ??= one.textContent;
      const localTime = (text) => written(new Date(`${text.replace(" ", "T")}Z`));
      one.textContent = local ? one.dataset.utc.replace(minutes, localTime) : one.dataset.utc;
    }
    name.textContent = local ? `${name.dataset.local} (${Intl.DateTimeFormat().resolvedOptions().timeZone})` : utc;
    zoneChoice.textContent = local ? zoneChoice.dataset.utc : offer;
  };
  zoneChoice.hidden = false;
  zoneChoice.addEventListener("click", () => {
    const local = localStorage.getItem("letopis-zone") !== "local";
    localStorage.setItem("letopis-zone", local ? "local" : "utc");
    show(local);
  });
  if (localStorage.getItem("letopis-zone") === "local") show(true);
}
// A circle of the picture of links shows its own; the rest steps back.
for (const picture of document.querySelectorAll("svg.web")) {
  const centre = (one) => `${one.getAttribute("cx")},${one.getAttribute("cy")}`;
  const ends = (line) => [1, 2].map((end) => `${line.getAttribute(`x${end}`)},${line.getAttribute(`y${end}`)}`);
  const show = (event) => {
    const chosen = event.target.closest?.("a");
    for (const one of picture.querySelectorAll(".near")) one.classList.remove("near");
    picture.classList.toggle("chosen", Boolean(chosen));
    if (!chosen) return;
    chosen.classList.add("near");
    // Read now: on a phone the picture was turned after it was loaded.
    const dots = new Map([...picture.querySelectorAll("a")].map((one) => [centre(one.querySelector("circle")), one]));
    const place = centre(chosen.querySelector("circle"));
    for (const line of picture.querySelectorAll("line")) {
      if (!ends(line).includes(place)) continue;
      for (const one of [line, ...ends(line).map((end) => dots.get(end))]) one?.classList.add("near");
    }
  };
  for (const kind of ["pointerover", "pointerleave", "focusin", "focusout"]) picture.addEventListener(kind, show);
  fit(picture, show);
}

// On a phone the picture stands upright, as wide as the screen; buttons make it larger, and names stand where there is
// room for them: all of them, once it is large enough. A finger chooses a circle first and opens it from the line above.
function fit(picture, show) {
  const told = document.querySelector("[data-chosen]");
  if (matchMedia("(hover: none)").matches) {
    picture.addEventListener("click", (event) => {
      const dot = event.target.closest("a");
      if (!dot) return;
      event.preventDefault();
      show(event);
      const link = Object.assign(document.createElement("a"), { href: dot.getAttribute("href"), textContent: nameOf(dot) });
      told.replaceChildren(link);
      told.hidden = false;
    });
  }
  const [, , wide, high] = picture.getAttribute("viewBox").split(" ").map(Number);
  const upright = matchMedia("(max-width: 40rem)").matches;
  if (upright) picture.setAttribute("viewBox", `0 0 ${high} ${wide}`);
  for (const [one, other] of upright ? [["cx", "cy"], ["x1", "y1"], ["x2", "y2"]] : []) {
    for (const shape of picture.querySelectorAll(`[${one}]`)) {
      const kept = shape.getAttribute(one);
      shape.setAttribute(one, shape.getAttribute(other));
      shape.setAttribute(other, kept);
    }
  }
  picture.classList.add("fitted");
  const buttons = document.querySelector("[data-zoom]");
  let scale = 1;
  const size = () => {
    picture.style.width = `${100 * scale}%`;
    picture.style.maxHeight = scale === 1 && !upright ? "84vh" : "none";
    label(picture, ...(upright ? [high, wide] : [wide, high]));
  };
  buttons.hidden = false;
  buttons.addEventListener("click", ({ target }) => {
    if (!target.dataset.by) return;
    const held = middle();
    scale = Math.min(6, Math.max(1, Number(target.dataset.by) * scale));
    size();
    bring(held);
  });
  // What is looked at stays in the middle: the chosen circle, else the centre of what is seen.
  const pan = picture.parentElement;
  let picked = null;
  picture.addEventListener("click", (event) => (picked = event.target.closest("a") ?? picked));
  const middle = () => {
    const whole = picture.getBoundingClientRect();
    const seen = picked ? picked.getBoundingClientRect() : pan.getBoundingClientRect();
    return [(seen.left + seen.width / 2 - whole.left) / whole.width, (seen.top + seen.height / 2 - whole.top) / whole.height];
  };
  const bring = ([x, y]) => {
    const whole = picture.getBoundingClientRect();
    pan.scrollLeft = x * whole.width - pan.clientWidth / 2;
    if (pan.scrollHeight > pan.clientHeight + 1) pan.scrollTop = y * whole.height - pan.clientHeight / 2;
    else if (picked) picked.scrollIntoView({ block: "center", inline: "center" });
  };
  size();
}

function nameOf(dot) {
  return dot.querySelector("title").textContent.split(": ")[0];
}

// The names of the highest pages, as large as the text around whatever the size of the picture, none above another.
function label(picture, wide, high) {
  const unit = wide / picture.getBoundingClientRect().width;
  const names = picture.lastElementChild;
  const taken = [];
  names.replaceChildren();
  names.style.fontSize = `${(wide > high ? 14 : 12) * unit}px`;
  // Of many pages a few large ones are named until the picture is larger.
  const most = Math.round(24 * (picture.getBoundingClientRect().width / picture.parentElement.clientWidth) ** 2);
  for (const dot of [...picture.querySelectorAll("a")].slice(0, most)) {
    const circle = dot.querySelector("circle:not(.reach)");
    const [x, y, radius] = ["cx", "cy", "r"].map((name) => Number(circle.getAttribute(name)));
    const text = names.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "text"));
    const name = nameOf(dot);
    text.textContent = name.length > 22 ? `${name.slice(0, 21)}…` : name;
    const half = text.getComputedTextLength() / 2;
    text.setAttribute("x", Math.min(Math.max(x, half + 4), wide - half - 4));
    const fits = [y + radius + 13 * unit, y - radius - 5 * unit].some((line) => {
      text.setAttribute("y", line);
      const box = text.getBBox();
      const crosses = (other) => box.x < other.x + other.width && other.x < box.x + box.width && box.y < other.y + other.height && other.y < box.y + box.height;
      return box.y >= 0 && box.y + box.height <= high && !taken.some(crosses) && taken.push(box);
    });
    if (!fits) text.remove();
  }
}

// Equal lines that a comparison leaves out open where they stand.
for (const link of document.querySelectorAll("[data-lines]")) {
  link.addEventListener("click", async (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const answer = await fetch(link.href).catch(() => null);
    const whole = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    const rows = [whole?.getElementById(link.hash.slice(1))];
    while (rows.at(-1) && rows.length < Number(link.dataset.lines)) rows.push(rows.at(-1).nextElementSibling);
    if (rows.every(Boolean)) link.closest("tr").replaceWith(...rows);
    else location.assign(link.href);
  });
}

// Of a row of tabs that is longer than a phone is wide, the one that is open is seen.
const open = document.querySelector(".tabs [aria-current]");
if (open && open.offsetLeft + open.offsetWidth > innerWidth) open.parentElement.scrollLeft = open.offsetLeft - innerWidth / 2;

// "/" goes to the search box, as people expect.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("find")?.focus();
  }
});

// In a table, the arrows go from row to row, and Enter opens what a row is about.
document.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const group = step ? event.target.closest?.("[data-rows]") : null;
  if (!group || event.target.closest("input, textarea, select")) return;
  const links = [...group.querySelectorAll("tbody tr")].map((row) => row.querySelector("a, button")).filter(Boolean);
  const row = event.target.closest("tbody tr");
  const at = row ? links.findIndex((link) => row.contains(link)) + step : 0;
  if (!links[at]) return;
  event.preventDefault();
  links[at].focus();
});

// The last word of a question is completed from the words of the archive.
for (const box of document.querySelectorAll("[data-words]")) {
  const list = document.createElement("datalist");
  list.id = `words-of-${box.id || box.name}`;
  box.after(list);
  box.setAttribute("list", list.id);
  let waiting = 0;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    const [word] = box.value.match(/[\p{L}\p{N}]{2,}$/u) ?? [];
    const before = box.value.slice(0, box.value.length - (word ?? "").length);
    if (!word || /[:/.]/.test(before.slice(-1))) return list.replaceChildren();
    waiting = setTimeout(async () => {
      const answer = await fetch(`/api/v1/search/words?q=${encodeURIComponent(word)}&limit=8`).catch(() => null);
      if (!answer?.ok) return;
      const found = (await answer.json()).words;
      if (box.value === before + word) list.replaceChildren(...found.map((row) => new Option("", before + row.word)));
    }, 150);
  });
}

for (const button of document.querySelectorAll("[data-check]")) {
  const told = button.parentElement.querySelector("[data-told]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    told.textContent = button.dataset.looking;
    const answer = await fetch("/api/v1/check", {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf-token": button.dataset.csrf },
      body: JSON.stringify({ url: button.dataset.check, now: true }),
    });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) loadAgain();
    else told.textContent = said.detail ?? button.dataset.failed;
    button.disabled = false;
  });
}

// One box chooses every watch of the list.
for (const label of document.querySelectorAll("[data-choose-all]")) {
  const box = label.querySelector("input");
  label.hidden = false;
  box.addEventListener("change", () => {
    for (const one of label.closest("form").querySelectorAll("input[name=url]")) one.checked = box.checked;
  });
}

// What a phone folds away stands open where there is room.
for (const one of document.querySelectorAll("[data-open-wide]")) one.open ||= matchMedia("(min-width: 40rem)").matches;

// An address breaks at its dots, slashes, underscores and hyphens, not inside of words.
for (const one of document.querySelectorAll("h1, .page, .where, .url, .crumbs a, td a, td strong, .rows a")) {
  if (one.children.length || !/^\s*\S+[./_-]\S+\s*$/.test(one.textContent)) continue;
  one.replaceChildren(...one.textContent.split(/(?<=[./_-])(?=[^./_-])/).flatMap((part) => [part, document.createElement("wbr")]));
}

// Cards on a phone show what matters; the rest of a row opens below it.
for (const group of matchMedia("(max-width: 40rem)").matches ? document.querySelectorAll("[data-more]") : []) {
  group.classList.add("folding");
  for (const row of group.querySelectorAll("tbody tr")) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: group.dataset.more });
    const named = document.createElement("span");
    named.className = "unseen";
    named.textContent = ` ${row.querySelector("a")?.textContent ?? ""}`;
    button.append(named);
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const whole = row.classList.toggle("whole");
      button.setAttribute("aria-expanded", String(whole));
      button.firstChild.textContent = whole ? group.dataset.less : group.dataset.more;
    });
    row.appendChild(document.createElement("td")).append(button);
  }
}

// Time zones by their names, as this browser knows them; its own one first.
for (const list of document.querySelectorAll("[data-zones]")) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = new Set([own, "UTC", ...(Intl.supportedValuesOf?.("timeZone") ?? [])]);
  list.replaceChildren(...[...zones].map((zone) => new Option("", zone)));
}

// What a check changes is asked for while somebody looks; whoever is filling in a form is not interrupted.
for (const note of document.querySelectorAll("[data-until-other]")) {
  let typed = false;
  let pause = 1000;
  document.querySelector("main").addEventListener("input", () => (typed = true));
  const ask = async () => {
    const answer = document.hidden ? null : await fetch(note.dataset.untilOther).catch(() => null);
    const value = answer?.ok ? ((await answer.json())[note.dataset.field] ?? "") : note.dataset.value;
    if (value === note.dataset.value) setTimeout(ask, (pause = Math.min(pause * 1.3, 20000)));
    else if (typed) note.querySelector("a").hidden = false;
    else loadAgain();
  };
  setTimeout(ask, pause);
}

// What is still being worked out is asked for again, while somebody looks.
if (document.querySelector("[data-again]")) {
  const again = () => (document.hidden ? setTimeout(again, 1000) : loadAgain());
  setTimeout(again, 1500);
}

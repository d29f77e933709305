// The frame around an archived page: follows what is shown in it, and counts what is missing.

const frame = document.querySelector("main iframe");

// A page with its scripts needs the replay origin: if that is reached from here the reader goes on to it.
if (frame.dataset.upgrade) {
  fetch(frame.dataset.probe, { mode: "cors", cache: "no-store" })
    .then((answer) => (answer.ok ? location.replace(frame.dataset.upgrade) : Promise.reject(answer.status)))
    .catch(() => { frame.src = frame.dataset.plain; });
}

const missing = new Set();
let shown = "";

function count() {
  const box = document.querySelector(".missing");
  if (!box) return;
  const { dataset } = box.firstElementChild;
  const words = missing.size === 1 ? dataset.one : missing.size < 5 ? dataset.few : dataset.many;
  box.hidden = missing.size === 0;
  box.firstElementChild.textContent = words.replace(/\d+/, missing.size);
  box.lastElementChild.replaceChildren(...[...missing].slice(0, 500).map((url) => {
    const line = document.createElement("li");
    line.textContent = url;
    return line;
  }));
}

async function follow({ url, title }) {
  const [, stamp] = /^\/web\/(\d+)/.exec(location.pathname);
  if (`${shown}`.split("#")[0] === url.split("#")[0]) return;
  const first = shown === "";
  shown = url;
  if (first && location.pathname.endsWith(new URL(url).pathname)) return;
  missing.clear();
  const page = `/web/${stamp}/${url.split("#")[0]}`;
  const answer = await fetch(page.replace(stamp, `${stamp}br_`));
  if (shown !== url || (!answer.ok && answer.status !== 404)) return;
  const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("header.replay").replaceChildren(...parsed.body.childNodes);
  document.title = `${title || url} · Letopis`;
  history.replaceState(null, "", page);
  count();
}

addEventListener("message", (event) => {
  const from = new URL(event.origin === "null" ? location.href : event.origin).host;
  if (!from.endsWith(`.${location.host}`) || typeof event.data?.letopis !== "string") return;
  if (event.data.letopis === "shown" && event.source === frame.contentWindow && /^https?:\/\//.test(event.data.url)) {
    follow({ url: String(event.data.url), title: String(event.data.title ?? "").slice(0, 300) });
  } else if (event.data.letopis === "missing" && Array.isArray(event.data.urls)) {
    for (const url of event.data.urls.slice(0, 500)) if (missing.size < 5000) missing.add(String(url).slice(0, 2000));
    count();
  }
});

// The frame around an archived page: follows what is shown in it, and counts what is missing.

// Loaded before the frame, so that nothing it tells is missed.
const frameShown = () => document.querySelector("main iframe");

// A page with its scripts needs the replay origin: if that is reached from here the reader goes on to it.
document.addEventListener("DOMContentLoaded", () => {
  const { dataset } = frameShown();
  if (!dataset.upgrade) return;
  fetch(dataset.probe, { mode: "cors", cache: "no-store" })
    .then((answer) => (answer.ok ? location.replace(dataset.upgrade) : Promise.reject(answer.status)))
    .catch(() => { frameShown().src = dataset.plain; });
});

const missing = new Set();
let shown = "";
const isShown = (url) => shown.split("#")[0] === url.split("#")[0];

function count() {
  const box = document.querySelector(".missing");
  if (!box) return;
  const { dataset } = box.firstElementChild;
  const words = missing.size === 1 ? dataset.one : missing.size < 5 ? dataset.few : dataset.many;
  box.hidden = missing.size === 0;
  box.firstElementChild.textContent = words.replace(/\d+/, missing.size);
  const fetching = box.querySelector(".fetch");
  if (fetching) {
    // Addresses of ours have an end; what does not fit is fetched at the next turn.
    const named = [...missing].slice(0, 50).map((url) => `&url=${encodeURIComponent(url)}`);
    while (named.join("").length > 6000) named.pop();
    fetching.href = fetching.dataset.to + named.join("");
  }
  box.querySelector("ul").replaceChildren(...[...missing].slice(0, 500).map((url) => {
    const line = document.createElement("li");
    line.textContent = url;
    return line;
  }));
}

async function follow({ url, title }) {
  const [, stamp] = /^\/web\/(\d+)/.exec(location.pathname);
  if (isShown(url)) return;
  const first = shown === "";
  shown = url;
  if (first && location.pathname.endsWith(new URL(url).pathname)) return;
  missing.clear();
  count();
  const page = `/web/${stamp}/${url.split("#")[0]}`;
  const answer = await fetch(page.replace(stamp, `${stamp}br_`));
  const text = await answer.text();
  if (shown !== url || (!answer.ok && answer.status !== 404)) return;
  const parsed = new DOMParser().parseFromString(text, "text/html");
  document.querySelector("header.replay").replaceChildren(...parsed.body.childNodes);
  document.title = `${title || url} · Letopis`;
  history.replaceState(null, "", page);
  count();
}

// Browsers ask for the icon of a page in a tab, not of one in a frame: the frame shows it where it was captured.
let worn = "";
function wear(icons) {
  const ours = icons.slice(0, 8).filter((one) => URL.canParse(one?.href) && new URL(one.href).host.endsWith(`.${location.host}`));
  const links = ours.map(({ href, sizes }) => {
    const link = document.createElement("link");
    Object.assign(link, { rel: "icon", href });
    if (/^(any|\d+x\d+)$/.test(sizes)) link.sizes = sizes;
    return link;
  });
  if (!links.length || links[0].href === worn) return;
  worn = links[0].href;
  const tried = new Image();
  tried.onload = () => {
    for (const link of document.querySelectorAll("link[rel=icon]")) link.remove();
    document.head.append(...links);
  };
  tried.src = worn;
}

// From a page that is not here, back to the one that led there.
document.addEventListener("click", (event) => event.target.closest?.("[data-back]") && history.back());

// What the name of its host says of an archived site, which no page can forge: [of which site, at which time].
function siteOf(host) {
  const found = host.endsWith(`.${location.host}`) && /^([sh])([0-9a-z]{7})-(.+)$/.exec(host.slice(0, -location.host.length - 1));
  return found ? [`${found[1]}-${found[3]}`, found[2]] : null;
}

function nameOf(url) {
  const { protocol, hostname, port } = new URL(url);
  return `${protocol === "https:" ? "s" : "h"}-${hostname.replace(/-/g, "--").replace(/\./g, "-")}${port && `---${port}`}`;
}

const stampOf = (moment) => new Date(parseInt(moment, 36) * 1000).toISOString().replace(/\D/g, "").slice(0, 14);

addEventListener("message", (event) => {
  const site = siteOf(new URL(event.origin === "null" ? location.href : event.origin).host);
  if (!site || typeof event.data?.letopis !== "string") return;
  if (event.data.letopis === "shown" && event.source === frameShown()?.contentWindow && /^https?:\/\//.test(event.data.url)) {
    if (!URL.canParse(event.data.url) || nameOf(event.data.url) !== site[0]) return;
    if (siteOf(new URL(frameShown().src).host)?.[1] !== site[1]) {
      location.replace(`/web/${stampOf(site[1])}/${event.data.url}`);
      return;
    }
    follow({ url: String(event.data.url), title: String(event.data.title ?? "").slice(0, 300) });
    if (Array.isArray(event.data.icons)) wear(event.data.icons);
  } else if (event.data.letopis === "missing" && Array.isArray(event.data.urls)) {
    // Of an address that was left meanwhile.
    if (event.data.page && !isShown(String(event.data.page))) return;
    for (const url of event.data.urls.slice(0, 500)) if (missing.size < 5000) missing.add(String(url).slice(0, 2000));
    count();
  }
});

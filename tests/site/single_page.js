import { show } from "./routes.js";
const { stars } = await import("http://CDN/stars.js");
const items = await (await fetch("/api/items?_=" + Date.now())).json();
for (const item of items) {
  const line = document.createElement("li"), picture = new Image(32, 32);
  picture.src = item.picture;
  line.append(picture, ` ${item.name} ${stars(item.stars)}`);
  document.querySelector("#items").append(line);
}
const asked = new XMLHttpRequest();
asked.open("GET", "http://CDN/api/note");
asked.onload = () => { document.querySelector("#note").textContent = JSON.parse(asked.responseText).note; };
asked.send();
document.querySelector("#search").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ q: document.querySelector("#q").value });
  const found = await fetch("/api/search", { method: "POST", headers: { "content-type": "application/json" }, body });
  document.querySelector("#answer").textContent = (await found.json()).answer;
});
const film = document.querySelector("#film");
film.onloadedmetadata = () => { document.querySelector("#length").textContent = `${film.duration.toFixed(0)} s`; };
film.src = "/film.wav";
for (const link of document.querySelectorAll("[data-route]"))
  link.addEventListener("click", (event) => {
    event.preventDefault();
    history.pushState({}, "", link.href);
    show();
  });
addEventListener("popstate", show);
show();

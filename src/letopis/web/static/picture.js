// The map of a site as nested areas, drawn by plotly with the colours of the page.

const place = document.getElementById("picture");
const data = JSON.parse(document.getElementById("picture-data").textContent);
const picked = document.getElementById("picked");
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Plotly reads a little HTML in texts: what comes from archived pages is text alone.
function plain(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function wrapped(text) {
  const cut = text.length > 18 ? text.lastIndexOf(" ", 20) : -1;
  return cut > 6 ? `${plain(text.slice(0, cut))}<br>${plain(text.slice(cut + 1))}` : plain(text);
}

function shown() {
  const trace = {
    type: "treemap",
    ids: data.ids,
    labels: data.labels.map((text, at) => (data.values[at] ? wrapped(text) : plain(text))),
    parents: data.parents,
    values: data.values,
    customdata: data.texts.map(plain),
    branchvalues: "remainder",
    maxdepth: 4,
    hovertemplate: "%{label}<br>%{customdata}<extra></extra>",
    textinfo: "label",
    insidetextfont: { size: 13 },
    marker: {
      colors: data.ids.map((_, at) => colour(`--area${at === 0 ? 0 : (at % 6) + 1}`)),
      line: { width: 1, color: colour("--ground") },
      pad: { t: 22, l: 4, r: 4, b: 4 },
    },
    textfont: { color: colour("--ink") },
    tiling: { packing: "squarify" },
    pathbar: { visible: true, textfont: { color: colour("--ink") }, thickness: 24 },
  };
  const layout = {
    margin: { t: 30, l: 6, r: 6, b: 6 },
    uniformtext: { minsize: 11, mode: "hide" },
    paper_bgcolor: "transparent",
    font: { family: "system-ui, sans-serif", size: 13, color: colour("--ink") },
    transition: { duration: calm ? 0 : 250 },
  };
  globalThis.Plotly.react(place, [trace], layout, { displayModeBar: false, responsive: true });
}

function pick(event) {
  const at = event.points[0].pointNumber;
  const url = data.texts[at];
  picked.href = `/url/${url.includes("?") ? encodeURIComponent(url) : url}`;
  picked.textContent = place.dataset.open.replace("#page#", data.labels[at]);
  picked.hidden = false;
}

addEventListener("load", () => {
  shown();
  place.on("plotly_click", pick);
  dark.addEventListener("change", shown);
});

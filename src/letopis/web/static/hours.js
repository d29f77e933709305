// Changes by section and hour as a heat map, drawn by plotly with the colours of the page; else the table is there.

const place = document.getElementById("hours");
const data = JSON.parse(document.getElementById("hours-data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Plotly reads a little HTML in texts: what comes from archived pages is text alone.
function plain(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function shown() {
  const most = Math.max(...data.counts.flat());
  const trace = {
    type: "heatmap",
    x: [...Array(24).keys()],
    y: data.names.map(plain),
    z: data.counts,
    zmin: 0,
    zmax: Math.max(most, 4),
    xgap: 2,
    ygap: 2,
    colorscale: [0, 1, 2, 3, 4].map((step) => [step / 4, colour(step ? `--shade${step}` : "--rail")]),
    showscale: false,
    hovertemplate: `%{y} %{x}:00<br>${plain(place.dataset.changes)}: %{z}<extra></extra>`,
  };
  const axis = { fixedrange: true, showgrid: false, zeroline: false, automargin: true, ticks: "" };
  const layout = {
    height: 70 + 26 * data.names.length,
    margin: { t: 12, l: 12, r: 12, b: 34 },
    xaxis: { ...axis, dtick: innerWidth < 640 ? 6 : 2, ticksuffix: ":00" },
    yaxis: { ...axis, autorange: "reversed", type: "category" },
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { family: "system-ui, sans-serif", size: 13, color: colour("--ink") },
  };
  globalThis.Plotly.react(place, [trace], layout, { displayModeBar: false, responsive: true });
}

addEventListener("load", () => {
  place.hidden = false;
  document.getElementById("hours-table").open = false;
  shown();
  dark.addEventListener("change", shown);
});

// Looks every second at what an archived site stores in the browser of its reader; too much of it is emptied.
const MOST = 64 * 1024 * 1024;
setInterval(async () => {
  const { usage } = await navigator.storage.estimate();
  if (usage < MOST) return;
  await fetch("/.letopis/full", { cache: "no-store" });
  postMessage("full");
}, 1000);

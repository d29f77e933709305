// Runs that are not done: how far they are, as it happens. One that ended is shown whole.

const places = new Map([...document.querySelectorAll("[data-run]")].map((one) => [Number(one.dataset.run), one]));

if (places.size) {
  const source = new EventSource("/jobs/events");
  source.addEventListener("message", (event) => {
    const open = new Map(JSON.parse(event.data).map((run) => [run.id, run]));
    for (const [id, place] of places) {
      const run = open.get(id);
      const badge = place.querySelector("[data-run-state] .badge");
      if (!run || !badge.classList.contains(run.state)) {
        source.close();
        location.reload();
        return;
      }
      place.querySelector("[data-run-step]").textContent = run.step;
      place.querySelector("progress").value = run.progress;
    }
  });
}

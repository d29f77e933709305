// For the page of a site that says "not found": lists where the missing page may be, as the archive knows.
// <script src="https://archive.example/static/moved.js" data-title="You may look for" async></script>

(() => {
  const own = document.currentScript;
  const ask = new URL("/moved.js", own.src);
  ask.searchParams.set("url", own.dataset.url || location.href);

  window.letopisMoved = (pages) => {
    if (!pages.length) return;
    const list = document.createElement("ul");
    for (const page of pages) {
      const link = document.createElement("a");
      link.href = page.href;
      link.textContent = page.title || page.url;
      const item = document.createElement("li");
      item.append(link, page.found_by === "archive" ? ` (${page.day})` : "");
      list.append(item);
    }
    const box = document.createElement("nav");
    if (own.dataset.title) box.append(own.dataset.title);
    box.append(list);
    own.after(box);
  };

  const script = document.createElement("script");
  script.src = ask;
  document.head.append(script);
})();

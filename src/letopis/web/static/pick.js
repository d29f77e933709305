// Picks an element of a stored page: the copy runs no scripts, so our page asks which element lies under the pointer.

const frame = document.querySelector("[data-page]");
const over = document.querySelector("[data-over]");
const mark = document.querySelector("[data-mark]");
const field = document.getElementById("picked");
const told = document.getElementById("picking");
const MOST_HEIGHT = 20000;
let chosen = null;

// The page is a stranger's: its forms may hide properties of elements behind names of their own.
const attribute = (one, name) => Element.prototype.getAttribute.call(one, name) ?? "";
const above = (one) => Object.getOwnPropertyDescriptor(Node.prototype, "parentElement").get.call(one);
const children = (one) => [...Object.getOwnPropertyDescriptor(Element.prototype, "children").get.call(one)];
const tag = (one) => Object.getOwnPropertyDescriptor(Element.prototype, "localName").get.call(one);
const page = () => frame.contentDocument;
const found = (selector) => Document.prototype.querySelectorAll.call(page(), selector);

function unique(selector) {
  try {
    return found(selector).length === 1;
  } catch {
    return false;
  }
}

function byName(one) {
  const id = attribute(one, "id");
  if (id && !/\d{3}/.test(id) && unique(`#${CSS.escape(id)}`)) return `#${CSS.escape(id)}`;
  const classes = attribute(one, "class").split(/\s+/).filter((name) => name && !/\d{3}/.test(name));
  for (const name of classes) {
    const short = `.${CSS.escape(name)}`;
    if (unique(short)) return short;
    if (unique(tag(one) + short)) return tag(one) + short;
  }
  return "";
}

function place(one) {
  const parent = above(one);
  const alike = parent ? children(parent).filter((other) => tag(other) === tag(one)) : [one];
  return alike.length > 1 ? `${tag(one)}:nth-of-type(${alike.indexOf(one) + 1})` : tag(one);
}

// The shortest way down from something that has a name; table bodies are left out, which not every source writes.
function selectorOf(one) {
  const steps = [];
  for (let at = one; at && tag(at) !== "html"; at = above(at)) {
    const name = byName(at);
    if (name) return [name, ...steps].join(" ");
    if (tag(at) !== "tbody") steps.unshift(tag(at) === "body" ? "body" : place(at));
  }
  return steps.join(" > ").replaceAll("table > tr", "table tr");
}

function show(one) {
  const box = Element.prototype.getBoundingClientRect.call(one);
  mark.hidden = false;
  Object.assign(mark.style, { left: `${box.left}px`, top: `${box.top}px`, width: `${box.width}px`, height: `${box.height}px` });
}

function choose(one) {
  if (!one || ["html", "body"].includes(tag(one))) return;
  chosen = one;
  show(one);
  field.value = selectorOf(one);
  const text = one.textContent.trim().replace(/\s+/g, " ");
  told.textContent = told.dataset.wider.replace("#tag#", `<${tag(one)}>`).replace("#text#", () => (text.length > 80 ? `${text.slice(0, 80)}…` : text));
}

const under = (event) => {
  const box = over.getBoundingClientRect();
  return Document.prototype.elementFromPoint.call(page(), event.clientX - box.left, event.clientY - box.top);
};

const MOVES = {
  ArrowUp: (one) => above(one),
  ArrowDown: (one) => children(one)[0],
  ArrowLeft: (one) => children(above(one))[children(above(one)).indexOf(one) - 1],
  ArrowRight: (one) => children(above(one))[children(above(one)).indexOf(one) + 1],
};

function go(key) {
  choose(chosen ? MOVES[key](chosen) : children(page().body)[0]);
  mark.scrollIntoView({ block: "nearest" });
}

function begin() {
  // What arrows do, for fingers.
  document.querySelector("[data-moves]").hidden = false;
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", () => go(button.dataset.move));
  const root = page().documentElement;
  const height = Math.min(MOST_HEIGHT, Math.max(400, root.scrollHeight));
  frame.style.height = over.style.height = `${height}px`;
  over.addEventListener("pointermove", (event) => {
    const one = under(event);
    if (!chosen && one) show(one);
  });
  over.addEventListener("click", (event) => choose(under(event)));
  over.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && chosen) field.form.requestSubmit();
    if (!MOVES[event.key]) return;
    event.preventDefault();
    go(event.key);
  });
}

if (page()?.readyState === "complete" && page().URL !== "about:blank") begin();
else frame.addEventListener("load", begin);

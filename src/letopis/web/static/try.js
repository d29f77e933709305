// Asks an operation with what its form says, and shows the answer as it comes.

const most = 200_000;
const form = document.querySelector("[data-try]");
const box = document.querySelector("[data-answer]");

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const read = (field) => {
  const kind = field.dataset.kind;
  if (kind === "texts") return lines(field.value);
  if (kind === "objects") return JSON.parse(field.value);
  if (kind === "flag") return field.value === "true";
  if (kind === "integer" || kind === "number") return Number(field.value);
  return field.value;
};

const asked = () => {
  let path = form.dataset.path;
  let whole = null;
  const query = new URLSearchParams();
  const body = {};
  for (const field of form.querySelectorAll("[data-where]")) {
    const { where, kind } = field.dataset;
    if (kind === "file" || kind === "bytes") whole = kind === "file" ? field.files[0] : field.value;
    else if (field.value === "") continue;
    else if (where === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (where === "body") body[field.name] = read(field);
    else for (const value of kind === "texts" ? lines(field.value) : [field.value]) query.append(field.name, value);
  }
  const address = query.size ? `${path}?${query}` : path;
  const headers = form.dataset.csrf ? { "x-csrf-token": form.dataset.csrf } : {};
  const options = { method: form.dataset.method, headers };
  if (whole !== null) options.body = whole;
  else if (["POST", "PUT", "PATCH"].includes(options.method)) {
    headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  return [address, options];
};

const pretty = (text, type) => {
  try {
    return type.includes("json") ? JSON.stringify(JSON.parse(text), null, 2) : text;
  } catch {
    return text;
  }
};

const show = (status, address, text) => {
  box.hidden = false;
  box.querySelector("[data-status]").textContent = status;
  box.querySelector("[data-asked]").textContent = address;
  box.querySelector("[data-body]").textContent = text.length > most ? `${text.slice(0, most)}…` : text;
};

form.hidden = false;
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const [address, options] = asked();
    const answer = await fetch(address, options);
    const text = await answer.text();
    show(`${answer.status} ${answer.statusText}`, `${options.method} ${address}`, pretty(text, answer.headers.get("content-type") ?? ""));
  } catch (error) {
    show("", "", String(error));
  }
});

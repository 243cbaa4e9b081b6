for (const th of document.querySelectorAll("th[data-sort]")) {
  th.tabIndex = 0;
  const sort = () => {
    const table = th.closest("table"), body = table.tBodies[0];
    const at = [...th.parentNode.children].indexOf(th);
    const down = th.getAttribute("aria-sort") === "ascending";
    for (const other of th.parentNode.children) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.children[at]?.dataset.v ?? row.children[at]?.textContent ?? "";
    const number = (text) => (text.trim() === "" ? NaN : Number(text));
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)], [m, n] = [number(x), number(y)];
      if (isNaN(m) !== isNaN(n)) return isNaN(m) ? 1 : -1;
      const d = isNaN(m) ? x.localeCompare(y) : m - n;
      return down ? -d : d;
    };
    body.append(...[...body.rows].sort(order));
  };
  th.addEventListener("click", sort);
  th.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(); } });
}
window.addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; });

document.documentElement.classList.add("scripted");

// The numbers behind a table or a drawing, saved as a file.
const save = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
// Of a column that is drawn the numbers stand in another.
const csv = (table) => {
  const drawn = [...table.tHead.rows[0].cells].map((cell) => cell.querySelector("svg") !== null);
  const words = (row) => [...row.cells].filter((_, at) => !drawn[at]).map((cell) => quoted(cell.dataset.v ?? cell.innerText.trim()));
  return [...table.rows].map((row) => words(row).join(",")).join("\n") + "\n";
};
for (const table of document.querySelectorAll(".scroll > table")) {
  const id = table.closest("section")?.querySelector("h2")?.id ?? "table";
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "data alone", textContent: "CSV" });
  button.dataset.file = `${id}.csv`;
  table.parentNode.before(button);
  button.addEventListener("click", () => save(button.dataset.file, csv(table)));
}
for (const button of document.querySelectorAll("button[data-file] + template")) {
  const { previousElementSibling: press, content } = button;
  press.addEventListener("click", () => save(press.dataset.file, content.textContent));
}

// Only some contenders and shapes: words or patterns with *, several with commas.
const pattern = (word) => {
  const escaped = word.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
  return new RegExp(word.includes("*") ? `^${escaped}$` : escaped, "i");
};
for (const field of document.querySelectorAll(".filter input")) {
  const kind = field.dataset.kind, marked = [...document.querySelectorAll(`[data-${kind}]`)];
  const all = new Set(marked.map((element) => element.dataset[kind]));
  const sift = () => {
    const words = field.value.split(",").map((word) => word.trim()).filter(Boolean).map(pattern);
    const shown = (name) => words.length === 0 || words.some((word) => word.test(name));
    for (const element of marked) element.classList.toggle("out", !shown(element.dataset[kind]));
    const left = [...all].filter(shown).length;
    field.parentNode.querySelector("output").textContent = words.length ? `${left} of ${all.size}` : "";
  };
  field.addEventListener("input", sift);
  field.form.hidden = false;
  field.form.addEventListener("submit", (e) => e.preventDefault());
  sift();
}

// Touching shows the same details as hovering with a pointer.
let tip = null;
document.addEventListener("click", (e) => {
  tip?.remove();
  tip = null;
  if (e.pointerType === "mouse" || e.target.closest("th[data-sort], a, button, summary, input")) return;
  const titled = e.target.closest("[title]");
  let text = titled?.title ?? "";
  for (let at = e.target; !text && at?.closest?.("svg"); at = at.parentNode) {
    text = [...at.children].find((child) => child.tagName === "title")?.textContent ?? "";
  }
  if (!text) return;
  tip = Object.assign(document.createElement("div"), { className: "tip", textContent: text });
  tip.setAttribute("role", "status");
  document.body.append(tip);
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, Math.min(e.pageX, room))}px`;
  tip.style.top = `${e.pageY + 14}px`;
});

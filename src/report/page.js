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

// SPDX-License-Identifier: Apache-2.0

/** Filter and sorting of the table of rollouts; without it the page shows them all in the order in which they are. */
export const PAGE_SCRIPT = `
const table = document.getElementById("rollouts");
const body = table.tBodies[0];
const rows = [...body.rows];
const form = document.getElementById("filter");
const shown = document.getElementById("shown");
form.hidden = false;
function filter() {
  const words = form.elements.text.value.toLowerCase();
  const status = form.elements.status.value;
  let count = 0;
  for (const row of rows) {
    row.hidden = (status !== "" && row.dataset.status !== status) || !row.textContent.toLowerCase().includes(words);
    if (!row.hidden) count++;
  }
  shown.textContent = count + " of " + rows.length + " shown";
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[at].dataset.sort;
    const numeric = head.classList.contains("number");
    rows.sort((a, b) => (up ? 1 : -1) * (numeric ? key(a) - key(b) : key(a).localeCompare(key(b), undefined, { numeric: true })));
    body.append(...rows);
  });
}
filter();
`;

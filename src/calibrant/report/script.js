"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const input = document.getElementById("score");
  const readout = document.getElementById("readout");
  const known = data.score.map((s, i) => i).filter((i) => data.means[i] !== null);

  // Reading off: linear between the two nodes around a score, and only where there are data. Scores that are
  // few are read off by themselves, the nearest one to the pointer.
  function at(score) {
    if (data.discrete) {
      const i = data.score.indexOf(score);
      const one = (values) => (values === null ? null : values[i]);
      return i < 0 ? null : { means: data.means[i], low: one(data.low), high: one(data.high), n: data.n[i] };
    }
    let i = 0;
    while (i < data.score.length - 2 && data.score[i + 1] < score) i += 1;
    const a = data.score[i], b = data.score[i + 1];
    if (score < a - 1e-9 || score > b + 1e-9) return null;
    const part = b > a ? (score - a) / (b - a) : 0;
    const read = (values) => {
      if (values === null || values[i] === null || values[i + 1] === null) return null;
      return values[i] + part * (values[i + 1] - values[i]);
    };
    const means = read(data.means);
    return means === null ? null : { means, low: read(data.low), high: read(data.high), n: read(data.n) };
  }

  const logit = (s) => Math.log(s / (1 - s));
  const [first, last] = data.ends;
  const within = (s) => logit(Math.min(Math.max(s, first), last));
  const place = { even: (s) => s, odds: (s) => (within(s) - logit(first)) / (logit(last) - logit(first)) };
  const back = {
    even: (u) => u,
    odds: (u) => 1 / (1 + Math.exp(-(logit(first) + u * (logit(last) - logit(first))))),
  };

  const show = (v, n) => v.toFixed(n);
  const grouped = (v) => v.toLocaleString("en");
  // A score with as many digits as tell it from 0 and 1.
  const written = (s) => String(Number(show(s, Math.max(2, 1 - Math.floor(Math.log10(Math.min(s, 1 - s) || 1))))));
  // Shares as in the table: percentages whose digits follow the interval, or one in so many near 0 and 1.
  function oneIn(v) {
    if (v <= 0) return "0";
    const unit = 10 ** (Math.floor(Math.log10(1 / v)) - 1);
    return `1 in ${grouped(Math.round(1 / v / unit) * unit)}`;
  }
  function shares(values) {
    if (values[0] < 0.001) return values.map(oneIn);
    if (values[0] > 0.999) return values.map((v) => (v === 1 ? "all" : `all but ${oneIn(1 - v)}`));
    const decimals = (v, digits) => (v > 0 ? Math.max(0, digits - 1 - Math.floor(Math.log10(v))) : 0);
    const width = 100 * (values[2] - values[1]) || 1;
    const digits = Math.max(Math.min(decimals(100 * values[0], 2), decimals(width, 2)), decimals(width, 1));
    return values.map((v) => `${show(100 * v, digits)} %`);
  }

  const frame = (figure) => figure.querySelector("svg").dataset.frame.split(" ").map(Number);
  const nearest = (score) => data.score.reduce((a, b) => (Math.abs(b - score) < Math.abs(a - score) ? b : a));
  function read(score, settle) {
    if (data.discrete) score = nearest(score);
    const found = at(score);
    let words = `score ${written(score)}: no rows nearby`;
    if (found !== null) {
      const texts = shares(found.low === null ? [found.means] : [found.means, found.low, found.high]);
      const band = found.low === null ? "" : ` (${texts[1]} to ${texts[2]})`;
      words = `score ${written(score)}: estimated ${texts[0]}${band}`;
      const n = grouped(Math.round(found.n));
      words += data.size === "rows" ? `, ${n}\u00a0rows` : `, about ${n}\u00a0rows\u00a0(effective)`;
      if (found.n < data.least) words += ": too few rows";
    }
    readout.textContent = words.replace(/(\d) %/g, "$1\u00a0%");
    if (settle) input.value = written(score);
    for (const figure of document.querySelectorAll("figure[data-axis]")) {
      const axis = figure.dataset.axis, [left, top, side] = frame(figure);
      const x = left + side * place[axis](score);
      const cross = figure.querySelector(".cross"), spot = figure.querySelector(".spot");
      cross.setAttribute("x1", x);
      cross.setAttribute("x2", x);
      cross.setAttribute("visibility", "visible");
      spot.setAttribute("visibility", found === null ? "hidden" : "visible");
      if (found !== null) {
        spot.setAttribute("cx", x);
        spot.setAttribute("cy", top + side * (1 - place[axis](found.means)));
      }
    }
  }

  for (const figure of document.querySelectorAll("figure[data-axis]")) {
    const svg = figure.querySelector("svg");
    const follow = (event) => {
      const box = svg.getBoundingClientRect();
      const width = svg.viewBox.baseVal.width, [left, , side] = frame(figure);
      const u = ((event.clientX - box.left) / box.width * width - left) / side;
      if (u < -0.03 || u > 1.03) return;
      read(back[figure.dataset.axis](Math.min(Math.max(u, 0), 1)), true);
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
  }
  input.addEventListener("input", () => {
    const score = input.valueAsNumber;
    if (score >= 0 && score <= 1) read(score, false);
  });
  if (known.length > 0) {
    document.querySelector(".reader").hidden = false;
    read(data.example === null ? data.score[known[known.length >> 1]] : data.example, true);
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    });
  }
  for (const filter of document.querySelectorAll(".filter input")) {
    filter.parentElement.hidden = false;
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const row of document.getElementById(filter.dataset.table).tBodies[0].rows) {
        const name = row.querySelector("bdi");
        row.hidden = !`${name.textContent} ${name.title}`.toLowerCase().includes(wanted);
      }
    });
  }

  // Tables sort by their columns; a cell's own number counts before its text.
  const order = new Intl.Collator("en", { numeric: true });
  function value(row, k) {
    const cell = row.children[k];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    const text = (cell.querySelector("bdi") || cell).textContent.trim();
    return cell.classList.contains("number") ? Number(text) : text;
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, k) => {
      if (head.classList.contains("fixed")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const number = head.classList.contains("number");
        const was = head.getAttribute("aria-sort");
        const falling = was === null ? number : was === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => {
          const x = value(a, k), y = value(b, k);
          const sign = typeof x === "number" ? x - y : order.compare(x, y);
          return falling ? -sign : sign;
        });
        table.tBodies[0].append(...rows);
      });
    });
  }

  const theme = document.getElementById("theme");
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  label();
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    label();
  });
})();

// Sorts, filters and pages the table of variants; the state is in the address after #rows?. Without it the first
// rows are there as plain HTML. Texts are only ever set as text.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("series").textContent);
  const el = (id) => document.getElementById(id);
  const table = el("table"), body = table.tBodies[0];
  const GLYPHS = { regressed: "▲", improved: "▼", inconclusive: "?", missing: "∅", new: "+", same: "=" };
  const KINDS = { regressed: "bad", improved: "good", inconclusive: "warn", missing: "warn" };
  const FLAG_GLYPHS = ["≠", "≠", "✕", "≁", "▼", "∿"], FLAG_KINDS = ["warn", "bad", "bad", "bad", "good", "warn"];
  const MASKS = { numerics: 15, drifting: 32 }; // filters by flags
  const COLUMNS = { verdict: 0, name: 1, change: 2, latency: 6, detectable: 4, phones: 8 };
  // A name on the page is the kernel and what varies; found are also names of axes and what is shared.
  class Row {
    constructor(r, at) {
      this.r = r;
      this.at = at;
    }
    get kernel() { return data.words[this.r[1][0]]; }
    get name() { return this.r[1].map((w) => data.shown[w] ?? data.words[w]).join(" "); }
    get full() {
      const pairs = this.r[1].map((w) => data.words[w]).join(" "), shared = data.shared[this.kernel];
      return shared ? `${pairs} ${shared}` : pairs;
    }
    get low() { return (this.text ??= `${this.name} ${this.full}`.toLowerCase()); }
  }
  const rows = data.rows.map((r, at) => new Row(r, at));
  const fresh = () => ({ q: "", verdict: "", kernel: "", sort: "", dir: "down", page: 0 });
  let state = fresh(), shown = rows;

  const make = (tag, text, kind) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (kind) e.className = kind;
    return e;
  };
  const svg = (tag, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
    return e;
  };
  const chip = (glyph, word, kind) => {
    const e = make("span", undefined, `chip ${kind || "soft"}`), g = make("span", glyph);
    g.setAttribute("aria-hidden", "true");
    e.append(g, `\u00a0${word}`);
    return e;
  };
  const tied = (text) => text.replace(/\d (?:% )?(?:slower|faster)\b/g, (m) => m.replaceAll(" ", "\u00a0")); // words.py
  const signed = (v) => {
    const p = (Math.exp(v) - 1) * 100;
    return `${p >= 0.05 ? "+" : p <= -0.05 ? "−" : "±"}${Math.abs(p).toFixed(Math.abs(p) < 100 ? 1 : 0)} %`;
  };
  const short = (v) => String(Math.round(v * 10) / 10);
  const spark = (text) => { // as reports/svg/sparkline.py draws it
    const values = text === "" ? [] : text.split(",").map((v) => (v === "" ? NaN : Number(v) / 1000));
    const known = values.filter(Number.isFinite);
    const last = values[values.length - 1];
    const words = known.length
      ? `${known.length} of ${values.length} nights, ${signed(Math.min(...known))} to ${signed(Math.max(...known))}, ` +
        (Number.isFinite(last) ? `last ${signed(last)}` : "not measured in the last")
      : "no night measured";
    const picture = svg("svg", { class: "sp", role: "img", "aria-label": words, viewBox: "0 0 120 24" });
    picture.append(svg("path", { class: "z", d: "M0 12H120" }));
    if (!known.length) return picture;
    const top = Math.min(Math.max(0.05, ...known.map(Math.abs)), 0.5), step = 112 / Math.max(values.length - 1, 1);
    const points = values.map((v, i) =>
      Number.isFinite(v) ? [4 + i * step, 12 - 10 * Math.max(-1, Math.min(1, v / top))] : null);
    let d = "", pen = false;
    points.forEach((p, i) => {
      if (p) {
        d += `${pen ? "L" : "M"}${short(p[0])} ${short(p[1])}`;
        if (!points[i - 1] && !points[i + 1]) d += "h1";
      }
      pen = p !== null;
    });
    picture.append(svg("path", { class: "l", d }));
    const end = points[points.length - 1];
    if (end) picture.append(svg("path", { class: "d", d: `M${short(end[0])} ${short(end[1])}h0` }));
    return picture;
  };
  const line = ({ r, name, full }) => {
    const tr = make("tr"), verdict = make("td", undefined, "w"), title = make("th", undefined, "t name");
    const word = data.verdicts[r[0]];
    verdict.append(chip(GLYPHS[word], word, KINDS[word]));
    data.flags.forEach((flag, i) => {
      if (r[9] & (1 << i)) verdict.append(make("br"), chip(FLAG_GLYPHS[i], flag, FLAG_KINDS[i]));
    });
    title.scope = "row";
    const called = make(r[11] ? "a" : "span", name);
    if (r[11]) called.href = `#${r[11]}`;
    called.title = full;
    title.append(called);
    if (data.whys[r[10]]) title.append(make("span", tied(data.whys[r[10]]), "why"));
    const history = make("td");
    history.append(spark(r[12]));
    tr.append(verdict, title, make("td", tied(r[3]), "n"), history, make("td", r[7], "n"), make("td", r[5], "n"), make("td", r[8], "n"));
    return tr;
  };

  const filter = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = data.verdicts.indexOf(state.verdict);
    shown = rows.filter((row) =>
      (!state.verdict || (state.verdict in MASKS ? row.r[9] & MASKS[state.verdict] : row.r[0] === verdict)) &&
      (!state.kernel || row.kernel === state.kernel) &&
      words.every((w) => row.low.includes(w)));
    if (!state.sort) return;
    const column = COLUMNS[state.sort], sign = state.dir === "up" ? 1 : -1;
    const key = state.sort === "name" ? (row) => row.name : (row) => row.r[column];
    shown = shown.slice().sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === y) return a.at - b.at;
      if (x === null || y === null) return x === null ? 1 : -1; // what has no number stays last
      return (x < y ? -1 : 1) * sign;
    });
  };
  const show = (draw = true) => {
    filter();
    const pages = Math.max(1, Math.ceil(shown.length / data.page));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const from = state.page * data.page, some = shown.slice(from, from + data.page);
    if (draw) body.replaceChildren(...some.map(line));
    if (draw && !some.length) {
      const tr = make("tr"), td = make("td", "No variant matches.");
      td.colSpan = 7;
      tr.append(td);
      body.append(tr);
    }
    el("shown").textContent = `${shown.length} of ${rows.length} variants`;
    el("pager").hidden = pages === 1;
    el("where").textContent = `rows ${from + 1} to ${from + some.length} of ${shown.length}`;
    el("back").disabled = state.page === 0;
    el("next").disabled = state.page === pages - 1;
    for (const th of table.tHead.querySelectorAll("th[data-key]")) {
      const mine = th.dataset.key === state.sort;
      if (mine) th.setAttribute("aria-sort", state.dir === "up" ? "ascending" : "descending");
      else th.removeAttribute("aria-sort");
      th.querySelector("span").textContent = mine ? (state.dir === "up" ? "↑" : "↓") : "";
    }
    el("find").value = state.q;
    el("verdict").value = state.verdict;
    el("kernel").value = state.kernel;
  };
  const address = () => {
    const p = new URLSearchParams();
    for (const name of ["q", "verdict", "kernel", "sort"]) if (state[name]) p.set(name, state[name]);
    if (state.sort && state.dir !== "down") p.set("dir", state.dir);
    if (state.page) p.set("page", state.page + 1);
    return `#rows${p.size ? `?${p}` : ""}`;
  };
  const change = (part) => {
    state = { ...state, page: 0, ...part };
    show();
    history.replaceState(null, "", address());
  };
  const read = () => {
    if (!location.hash.startsWith("#rows")) return false;
    const p = new URLSearchParams(location.hash.slice(6)), empty = fresh();
    state = { ...empty, q: p.get("q") || "", page: (parseInt(p.get("page"), 10) || 1) - 1 };
    if ([...el("verdict").options].some((o) => o.value === p.get("verdict"))) state.verdict = p.get("verdict");
    if ([...el("kernel").options].some((o) => o.value === p.get("kernel"))) state.kernel = p.get("kernel");
    if (p.get("sort") in COLUMNS) state.sort = p.get("sort");
    if (p.get("dir") === "up") state.dir = "up";
    show();
    return true;
  };

  for (const th of table.tHead.querySelectorAll("th[data-key]")) {
    const button = make("button", th.textContent);
    button.type = "button";
    button.append(make("span"));
    button.addEventListener("click", () => {
      const key = th.dataset.key, first = key === "name" ? "up" : "down", other = first === "up" ? "down" : "up";
      if (state.sort !== key) change({ sort: key, dir: first });
      else if (state.dir === first) change({ dir: other });
      else change({ sort: "", dir: "down" });
    });
    th.replaceChildren(button);
  }
  el("find").addEventListener("input", (e) => change({ q: e.target.value }));
  el("verdict").addEventListener("change", (e) => change({ verdict: e.target.value }));
  el("kernel").addEventListener("change", (e) => change({ kernel: e.target.value }));
  el("reset").addEventListener("click", () => change(fresh()));
  el("back").addEventListener("click", () => change({ page: state.page - 1 }));
  el("next").addEventListener("click", () => change({ page: state.page + 1 }));
  addEventListener("hashchange", () => { if (read()) el("rows").scrollIntoView(); });
  el("controls").hidden = false;
  if (read()) el("rows").scrollIntoView();
  else show(false); // the first rows are there
})();

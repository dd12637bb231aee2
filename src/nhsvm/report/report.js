"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const percent = (v) => (v === null ? "–" : (100 * v).toFixed(1) + "%");
  const count = (v) => v.toLocaleString("en-US");

  // ---- tables that sort -----------------------------------------------------------------------------------------------
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      const printed = document.createElement("span"); // a button is not repeated on the next sheet
      printed.className = "paper";
      printed.textContent = head.textContent;
      button.append(...head.childNodes);
      head.append(printed, button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("text") ? "ascending" : "descending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const value = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent;
        const rows = [...table.tBodies[0].rows].map((row) => [value(row), row]);
        rows.sort(([a], [b]) => {
          if (a === "" || b === "") return (a === "") - (b === ""); // what does not exist comes last, both ways
          return sign * (head.classList.contains("text") ? a.localeCompare(b) : Number(a) - Number(b));
        });
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  // ---- the picture of the taxonomy ------------------------------------------------------------------------------------
  const data = JSON.parse($("tree-data").textContent);
  const n = data.name.length;
  const HEIGHT = 560, PAPER = 940, THIN = 1.2, LEAST = 6, STRIP = 14, ROW = 15, LEVELS = 4;
  const WORDS = {
    accuracy: data.kind === "single" ? "accuracy" : "labels found", recall: "stays in branch", f1: "F1",
    weight: "weight α", precision: "precision", leaving: "errors that leave",
  };
  const SCALES = { // dark ink on light, light ink on dark; orange and blue can be told apart by most eyes
    share: [[0, "#a3341f"], [0.4, "#e08e5a"], [0.65, "#f5dfb8"], [0.78, "#eff0ea"], [0.9, "#a8cfe0"], [1, "#2f74ab"]],
    weight: [[0, "#f3effa"], [0.5, "#a68fd0"], [1, "#4a2a86"]],
  };
  const TOP = n; // stands above several roots
  const children = Array.from({ length: n + 1 }, () => []);
  const roots = [];
  for (let i = 0; i < n; i++) (data.parent[i] < 0 ? roots : children[data.parent[i]]).push(i);
  children[TOP] = roots;
  const top = roots.length === 1 ? roots[0] : TOP;
  const parent = (i) => (i === TOP ? -1 : data.parent[i] < 0 ? (top === TOP ? TOP : -1) : data.parent[i]);
  const name = (i) => (i === TOP ? "all" : data.name[i]);
  const pathOf = (i) => { const path = []; for (; i >= 0; i = parent(i)) path.unshift(i); return path; };
  const sizes = { samples: summed(data.own), classes: summed(data["class"]) };
  function summed(own) {
    const total = [...own, 0];
    for (let i = n - 1; i >= 0; i--) total[data.parent[i] < 0 ? TOP : data.parent[i]] += total[i];
    return total;
  }
  const bySize = {}; // children in the order they are drawn: large ones first, so that thin ones are together
  for (const key in sizes) bySize[key] = children.map((list) => list.filter((c) => sizes[key][c]).sort((a, b) => sizes[key][b] - sizes[key][a]));
  const heaviest = Math.max(...data.weight.map((v) => v ?? 0), 1e-12);
  const state = { focus: top, here: top, colour: data.colours[0], size: sizes.samples[top] ? "samples" : "classes", skip: 0 };
  const svg = $("tree");
  let places = new Map(); // node -> its element, of those that are drawn
  let width = 0;

  const valueOf = (i, key) => (i === TOP ? data.all[key] : data[key][i]);
  const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  function colourOf(i) {
    return shade(valueOf(i, state.colour));
  }
  function shade(value) {
    if (value === null) return null;
    const stops = SCALES[state.colour === "weight" ? "weight" : "share"];
    const at = state.colour === "weight" ? value / heaviest : value;
    let k = 1;
    while (k < stops.length - 1 && at > stops[k][0]) k++;
    const [[x0, a], [x1, b]] = [stops[k - 1], stops[k]].map(([x, hex]) => [x, rgb(hex)]);
    const t = Math.min(1, Math.max(0, (at - x0) / (x1 - x0)));
    return a.map((v, c) => Math.round(v + t * (b[c] - v)));
  }
  function luminance(colour) {
    const [r, g, b] = colour.map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function element(tag, attributes, ...inside) {
    const made = document.createElementNS(SVG, tag);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...inside);
    return made;
  }
  const valueText = (i) => {
    const value = valueOf(i, state.colour);
    return value === null ? "" : state.colour === "weight" ? value.toFixed(2) : Math.round(100 * value) + "%";
  };
  const described = (i) => `${name(i)}: ${WORDS[state.colour]} ${valueText(i) || "unknown"}, `
    + `${count(valueOf(i, "samples"))} samples` + (children[i].length ? `, ${count(children[i].length)} below` : "");

  function cell(i, x, y, w, h, level) {
    const colour = colourOf(i);
    const group = element("g", { role: "treeitem", tabindex: -1, "aria-level": level + 1, "aria-label": described(i), "data-node": i });
    if (children[i].length) group.setAttribute("aria-expanded", level < LEVELS);
    const gap = h > 5 ? 1 : h > 3 ? 0.5 : 0;
    group.append(element("title", {}, described(i)));
    box(group, colour, name(i), valueText(i), x, y, w, h, gap);
    svg.append(group);
    places.set(i, group);
  }
  function box(group, colour, left, right, x, y, w, h, gap) {
    group.append(element("rect", { x, y, width: w - 1, height: Math.max(0.5, h - gap), fill: colour ? `rgb(${colour})` : "url(#unknown)" }));
    if (h < ROW) return;
    const ink = !colour || luminance(colour) > 0.179 ? "#000" : "#fff", base = y + h / 2 + 4.3;
    const room = w - 14 - (right && w > 84 ? 7.2 * right.length + 8 : 0), fits = Math.floor(room / 7.3);
    if (fits >= 2) group.append(element("text", { x: x + 6, y: base, fill: ink }, left.length > fits ? left.slice(0, fits - 1) + "…" : left));
    if (right && w > 84) group.append(element("text", { x: x + w - 7, y: base, fill: ink, "text-anchor": "end" }, right));
  }
  function strip(nodes, x, y, w, h) { // neighbours too thin to tell apart
    svg.append(element("g", { "data-node": nodes[0], "data-thin": nodes.length, "aria-hidden": true },
      element("title", {}, `${count(nodes.length)} nodes too thin to draw; click to see them`),
      element("rect", { x, y, width: w - 1, height: Math.max(0.5, h - 0.5), fill: "url(#thin)" })));
  }
  function draw(wanted) {
    width = wanted ?? room();
    const size = sizes[state.size];
    const seen = (c) => size[c] * HEIGHT >= THIN * size[state.focus] || parent(c) === state.focus;
    const deepest = (i, left) => left === 0 ? 0 : bySize[state.size][i].reduce((most, c) => seen(c) ? Math.max(most, 1 + deepest(c, left - 1)) : most, 0);
    const levels = deepest(state.focus, LEVELS), first = levels ? Math.min(104, width / (levels + 1)) : width;
    const wide = levels ? (width - first) / levels : 0;
    svg.replaceChildren(svg.querySelector("defs"));
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    places = new Map();
    let hidden = 0;
    const lay = (i, y, h, level) => {
      cell(i, level ? first + (level - 1) * wide : 0, y, level ? wide : first, h, level);
      if (level === LEVELS || !size[i]) return;
      const skip = level ? 0 : state.skip, kids = bySize[state.size][i].slice(skip), x = first + level * wide, thin = [];
      let scale = h / (skip ? kids.reduce((total, c) => total + size[c], 0) : size[i]), at = y, bottom = y + h;
      // of the node that fills the picture, the first children can always be seen, and the others come next
      const many = !level && kids.length > 0 && size[kids[0]] * scale < LEAST;
      if (many) { scale = LEAST / size[kids[0]]; bottom -= STRIP; }
      for (const c of kids) {
        const own = size[c] * scale;
        if (thin.length || own < THIN || at + own > bottom + 0.01) thin.push(c);
        else { lay(c, at, own, level + 1); at += own; }
      }
      const rest = many ? y + h - bottom : thin.reduce((total, c) => total + size[c] * scale, 0);
      if (thin.length) strip(thin, x, many ? bottom : at, wide, rest);
      hidden += thin.length;
      at += rest;
      if (children[i].length && y + h - at > 0.5 && levels && !many && !skip) {
        // the label that is the node itself; it has no branch to stay in, and its weight is the node's
        const own = { accuracy: data.itself[i], recall: data.itself[i], f1: data.itselfF1[i] }[state.colour] ?? null;
        const group = element("g", { "aria-hidden": true }, element("title", {}, `${name(i)} itself: ${count(data.own[i])} labels, ${percent(data.itself[i])} found`));
        box(group, shade(own), "(itself)", own === null ? "" : Math.round(100 * own) + "%", x, at, wide, y + h - at, 1);
        svg.append(group);
      }
    };
    if (size[state.focus]) lay(state.focus, 0, HEIGHT, 0);
    else cell(state.focus, 0, 0, width, HEIGHT, 0);
    if (!places.has(state.here)) state.here = state.focus;
    mark();
    crumbs();
    legend();
    $("tree-hidden").textContent = hidden ? `${count(hidden)} nodes are too thin to draw at this zoom: click a grey stripe to see them.` : "";
  }
  function mark() {
    for (const [i, group] of places) {
      group.setAttribute("tabindex", i === state.here ? 0 : -1);
      group.classList.toggle("here", i === state.here);
      group.setAttribute("aria-selected", i === state.here);
    }
    const group = places.get(state.here);
    if (group) svg.append(group); // its frame is then above its neighbours
    panel(state.here);
  }
  function crumbs() {
    $("crumbs").replaceChildren(...pathOf(state.focus).map((i) => {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      button.textContent = name(i);
      if (i === state.focus) button.setAttribute("aria-current", "true");
      button.addEventListener("click", () => zoom(i, i));
      item.append(button);
      return item;
    }));
    if (!state.skip) return;
    const item = document.createElement("li");
    item.textContent = ` from child ${count(state.skip + 1)} of ${count(bySize[state.size][state.focus].length)}`;
    $("crumbs").append(item);
  }
  function legend() {
    const weight = state.colour === "weight", stops = SCALES[weight ? "weight" : "share"];
    $("legend-bar").style.background = `linear-gradient(90deg, ${stops.map(([x, c]) => `${c} ${100 * x}%`)})`;
    $("legend-low").textContent = WORDS[state.colour] + (weight ? " 0" : " 0%");
    $("legend-high").textContent = weight ? heaviest.toFixed(2) : "100%";
  }
  function panel(i) {
    const heading = document.createElement("h3"), list = document.createElement("dl");
    heading.textContent = pathOf(i).filter((k) => k !== TOP || i === TOP).map(name).join(" › ");
    const of = (key) => valueOf(i, key);
    const rows = [
      ["samples", count(of("samples"))], ["predicted here", count(of("predicted"))],
      ...["accuracy", "f1", "precision", "recall"].map((key) => [WORDS[key], percent(of(key))]),
      [data.kind === "single" ? "wrong" : "missed labels", count(of("missed"))], [WORDS.leaving, percent(of("leaving"))],
      ["weight α", of("weight") === null ? "–" : of("weight").toFixed(3)], ["children", count(children[i].length)],
    ];
    if (i !== TOP && !data.known[i]) rows.push(["seen in training", "no"]);
    for (const [key, value] of rows) {
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = key;
      text.textContent = value;
      list.append(term, text);
    }
    $("panel").replaceChildren(heading, list);
  }
  function zoom(focus, here, skip = 0) {
    const inside = svg.contains(document.activeElement);
    Object.assign(state, { focus, here, skip });
    draw();
    if (inside) places.get(state.here)?.focus();
  }
  function go(i) {
    if (i === undefined || i < 0) return;
    if (places.has(i)) { state.here = i; mark(); } else reveal(i);
    places.get(state.here).focus();
  }
  function reveal(i) { // so that it is among what is drawn
    const up = parent(i);
    if (up < 0 || !sizes[state.size][i]) { zoom(i, i); return; }
    zoom(up, i);
    if (!places.has(i)) zoom(up, i, bySize[state.size][up].indexOf(i));
  }
  function enter(i) { // into a node, or out of the one that fills the picture
    if (i !== state.focus && children[i].length) zoom(i, i);
    else if (i === state.focus && parent(i) >= 0) zoom(parent(i), i);
  }
  const shown = (i) => bySize[state.size][i];

  svg.addEventListener("click", (event) => {
    const group = event.target.closest("g[data-node]");
    if (!group) return;
    const i = Number(group.dataset.node);
    if (group.dataset.thin) reveal(i);
    else if (children[i].length || i === state.focus) enter(i);
    else { state.here = i; mark(); }
    places.get(state.here)?.focus();
  });
  svg.addEventListener("mouseover", (event) => {
    const group = event.target.closest("g[data-node]");
    panel(group && !group.dataset.thin ? Number(group.dataset.node) : state.here);
  });
  svg.addEventListener("mouseleave", () => panel(state.here));
  svg.addEventListener("focusin", (event) => {
    const group = event.target.closest("g[role]");
    if (group && Number(group.dataset.node) !== state.here) { state.here = Number(group.dataset.node); mark(); }
  });
  svg.addEventListener("keydown", (event) => {
    const i = state.here, up = parent(i), beside = up < 0 ? [i] : shown(up), k = beside.indexOf(i);
    const moves = {
      ArrowRight: () => go(shown(i)[0]), ArrowLeft: () => go(up),
      ArrowDown: () => go(beside[k + 1]), ArrowUp: () => go(beside[k - 1]),
      Home: () => go(top), Enter: () => enter(i), " ": () => enter(i),
      Escape: () => { if (state.skip) zoom(state.focus, state.focus); else if (parent(state.focus) >= 0) zoom(parent(state.focus), state.focus); },
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  });
  function choices(id, key, options) {
    const box = $(id);
    for (const [value, text] of options) {
      const label = document.createElement("label"), input = document.createElement("input");
      Object.assign(input, { type: "radio", name: id, value, checked: state[key] === value });
      input.addEventListener("change", () => { state[key] = value; zoom(state.focus, state.here); });
      label.append(input, " " + text);
      box.append(label);
    }
  }
  choices("colour-by", "colour", data.colours.map((key) => [key, WORDS[key]]));
  choices("size-by", "size", [["samples", data.kind === "single" ? "samples" : "labels of samples"], ["classes", "classes"]]);
  $("find").addEventListener("keydown", (event) => {
    const text = event.target.value.trim().toLowerCase();
    if (event.key !== "Enter" || !text) return;
    for (let step = 1; step <= n; step++) {
      const i = (state.here === TOP ? step - 1 : state.here + step) % n;
      if (!data.full[i].toLowerCase().includes(text)) continue;
      reveal(i);
      $("found").textContent = "found: " + pathOf(i).filter((k) => k !== TOP).map(name).join(" › ");
      return;
    }
    $("found").textContent = "no node has this in its name";
  });
  const room = () => Math.max(320, Math.round(svg.parentElement.clientWidth));
  const paper = matchMedia("print");
  new ResizeObserver(() => { if (!paper.matches && Math.abs(room() - width) > 8) draw(); }).observe(svg.parentElement);
  addEventListener("beforeprint", () => draw(PAPER));
  addEventListener("afterprint", () => draw());
  draw();
})();

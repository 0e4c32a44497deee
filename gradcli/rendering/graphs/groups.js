// A large graph as groups that open and close: laid out when they do, drawn on a canvas.
const data = JSON.parse(document.getElementById("graph").textContent), words = data.words;
const FEW = 24, CHAR = 7.25, LINE = 17, PAD = 12, GAP = 24, RISE = 44, HEAD = 30, EDGE = 18; // boxes at first sight; sizes
const nodes = data.nodes.map(([group, step, title, kind, text, type, line, value, cotangent, norm, more], at) => ({
  at, group, step, title: words[title], kind: data.kinds[kind], text: words[text], type: words[type], line, value: words[value],
  cotangent: words[cotangent], norm, more: words[more], first: at,
}));
const groups = data.groups.map(([parent, label, place], at) => ({
  at, parent, label: words[label], place: words[place], open: false, items: [], links: new Map(), count: 0, names: new Map(),
  low: Infinity, high: -Infinity, first: Infinity, group: parent, leaves: true,
}));
const root = groups[0];
for (const one of groups.slice(1)) groups[one.parent].items.push(one);
for (const one of nodes) {
  groups[one.group].items.push(one);
  for (let g = groups[one.group]; ; g = groups[g.parent]) {
    g.count++; g.names.set(one.title, (g.names.get(one.title) || 0) + 1); g.first = Math.min(g.first, one.at);
    if (one.kind !== "leaf") g.leaves = false;
    if (one.norm !== null) { g.low = Math.min(g.low, one.norm); g.high = Math.max(g.high, one.norm); }
    if (g === root) break;
  }
}
const up = one => one === root ? null : groups[one.group];
const path = one => { const found = []; for (let g = one; g; g = up(g)) found.push(g); return found.reverse(); };
const paths = nodes.map(path), arrows = [];
for (let at = 0; at < data.arrows.length; at += 2) { // where both ends part stands the link that the layout knows
  const a = paths[data.arrows[at]], b = paths[data.arrows[at + 1]];
  let depth = 0;
  while (a[depth] === b[depth]) depth++;
  const links = a[depth - 1].links, key = `${a[depth].first},${b[depth].first},${a[depth].items ? 1 : 0}${b[depth].items ? 1 : 0}`;
  if (!links.has(key)) links.set(key, {start: a[depth], end: b[depth], via: []});
  arrows.push({start: nodes[data.arrows[at]], end: nodes[data.arrows[at + 1]], link: links.get(key), depth});
}
const rankOf = one => one.items ? !one.leaves : one.kind !== "leaf"; // leaves come first
for (const g of groups) g.items.sort((a, b) => rankOf(a) - rankOf(b) || a.first - b.first);
let backward = data.backward, lines = [], boxes = [], frames = [], lit = null, over = null;
const few = value => value && (value < 1e-3 || value >= 1e5) ? value.toExponential(1) : Number(value.toPrecision(3)).toString();
const norms = g => g.low === g.high ? `norm ${few(g.low)}` : `norms ${few(g.low)} to ${few(g.high)}`;
const often = g => [...g.names].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name, count]) => `${count} ${name}`).join(", ");
const second = one => one.items
  ? backward && one.low <= one.high ? norms(one) : `${one.count} node${one.count > 1 ? "s" : ""}`
  : backward ? one.cotangent : one.value === one.title ? "" : one.value;

const titleOf = one => one.items ? `\u25b8 ${one.label}` : one.title;
function sized(one) { // of a closed group or a node; both directions fit
  const shown = one.items ? [titleOf(one), `${one.count} nodes`, one.low <= one.high ? norms(one) : ""] : [one.title, one.value, one.cotangent];
  one.w = Math.max(48, Math.max(...shown.map(text => text.length)) * CHAR + 2 * PAD); one.h = 2 * LINE + PAD;
}
// Layers from above to below (Sugiyama, Tagawa and Toda 1981): longest paths, waypoints, barycentres, then places.
function arrange(g) {
  for (const one of g.items) if (one.items && one.open) arrange(one); else sized(one);
  const order = new Map(g.items.map((one, at) => [one, at])), links = [...g.links.values()];
  const down = links.map(l => order.get(l.start) < order.get(l.end) ? [l.start, l.end] : [l.end, l.start]);
  const rank = new Map(g.items.map(one => [one, 0])), reads = new Map(), feeds = new Map();
  for (const [a, b] of down) { (reads.get(b) || reads.set(b, []).get(b)).push(a); (feeds.get(a) || feeds.set(a, []).get(a)).push(b); }
  if (!links.length) g.items.forEach((one, at) => rank.set(one, Math.floor(at / 5))); // nothing leads from one to the other: rows of five
  for (const one of g.items) for (const a of reads.get(one) || []) rank.set(one, Math.max(rank.get(one), rank.get(a) + 1));
  for (const one of g.items) if (!reads.has(one) && feeds.has(one)) rank.set(one, Math.min(...feeds.get(one).map(b => rank.get(b))) - 1);
  const rows = Array.from({length: Math.max(0, ...rank.values()) + 1}, () => []), above = new Map(), below = new Map();
  const put = (one, at) => { rows[at].push(one); above.set(one, []); below.set(one, []); };
  for (const one of g.items) put(one, rank.get(one));
  links.forEach((link, at) => {
    const [a, b] = down[at], chain = [a];
    for (let r = rank.get(a) + 1; r < rank.get(b); r++) { const point = {w: 10, h: 0, point: true}; put(point, r); chain.push(point); }
    chain.push(b);
    for (let i = 1; i < chain.length; i++) { below.get(chain[i - 1]).push(chain[i]); above.get(chain[i]).push(chain[i - 1]); }
    link.via = chain.slice(1, -1); if (a !== link.start) link.via.reverse();
  });
  const spot = new Map();
  const number = row => row.forEach((one, at) => spot.set(one, at));
  rows.forEach(number);
  for (let sweep = 0; sweep < 10; sweep++) {
    const near = sweep % 2 ? below : above, order = sweep % 2 ? [...rows].reverse() : rows;
    for (const row of order) {
      const want = new Map(row.map(one => [one, near.get(one).length ? mean(near.get(one), spot) : spot.get(one)]));
      row.sort((a, b) => want.get(a) - want.get(b)); number(row);
    }
  }
  const x = new Map();
  for (const row of rows) { let left = 0; for (const one of row) { x.set(one, left + one.w / 2); left += one.w + GAP; } }
  for (let round = 0; round < 24; round++) for (const row of round % 2 ? [...rows].reverse() : rows) settle(row, one => {
    const near = round < 8 ? (round % 2 ? below : above).get(one) : [...above.get(one), ...below.get(one)];
    return near.length ? mean(near, x) : x.get(one);
  }, x);
  let y = HEAD, left = Infinity, right = -Infinity;
  for (const row of rows) {
    const tall = Math.max(0, ...row.map(one => one.h));
    for (const one of row) { one.y = y + (tall - one.h) / 2; left = Math.min(left, x.get(one) - one.w / 2); right = Math.max(right, x.get(one) + one.w / 2); if (one.point) one.tall = tall; }
    y += tall + RISE;
  }
  if (!g.items.length) left = right = 0;
  for (const row of rows) for (const one of row) one.x = x.get(one) - one.w / 2 - left + EDGE;
  g.w = Math.max(right - left + 2 * EDGE, g.label.length * CHAR + 60); g.h = y - RISE + EDGE;
}
function mean(list, of) { let sum = 0; for (const one of list) sum += of.get(one); return sum / list.length; }
function settle(row, wanted, x) { // the places closest to the wanted ones, in this order and apart (isotonic regression)
  const pools = [], offsets = [];
  row.forEach((one, at) => {
    offsets.push(at ? offsets[at - 1] + (row[at - 1].w + one.w) / 2 + GAP : 0);
    let sum = wanted(one) - offsets[at], size = 1;
    while (pools.length && pools[pools.length - 1][0] / pools[pools.length - 1][1] > sum / size) { const p = pools.pop(); sum += p[0]; size += p[1]; }
    pools.push([sum, size]);
  });
  let at = 0;
  for (const [sum, size] of pools) for (let i = 0; i < size; i++, at++) x.set(row[at], sum / size + offsets[at]);
}
function layout() {
  arrange(root);
  boxes = []; frames = []; lines = [];
  const place = (g, x, y, depth) => {
    g.X = x; g.Y = y;
    if (g !== root) frames.push(g);
    g.depth = depth;
    for (const one of g.items) {
      if (one.items && one.open) place(one, x + one.x, y + one.y, depth + 1);
      else { one.X = x + one.x; one.Y = y + one.y; boxes.push(one); }
    }
  };
  place(root, 0, 0, 0);
  const drawn = new Set(), seen = one => { for (const g of path(one)) if (!g.items || !g.open) return g; return one; };
  const ends = nodes.map(seen);
  for (const arrow of arrows) {
    const a = ends[arrow.start.at];
    let b = ends[arrow.end.at];
    if (arrow.start.kind === "leaf" && arrow.link.end.items && arrow.link.end.open) b = arrow.link.end; // what reads a leaf in there is told by its facts
    const key = a === b ? "" : `${a.items ? "g" : "n"}${a.at},${b.items ? "g" : "n"}${b.at}`;
    if (!key || drawn.has(key)) continue;
    drawn.add(key);
    const g = paths[arrow.start.at][arrow.depth - 1], points = [], downward = a.Y < b.Y;
    points.push([a.X + a.w / 2, downward ? a.Y + a.h : a.Y]);
    for (const one of arrow.link.via) { const px = g.X + one.x + 5, py = g.Y + one.y; points.push([px, py - one.tall / 2], [px, py + one.tall / 2]); }
    points.push([b.X + b.w / 2, downward ? b.Y : b.Y + b.h]);
    if (!downward && arrow.link.via.length) for (let i = 1; i < points.length - 1; i += 2) [points[i], points[i + 1]] = [points[i + 1], points[i]];
    const xs = points.map(p => p[0]), ys = points.map(p => p[1]);
    lines.push({a, b, points, crosses: a.group !== b.group, left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys)});
  }
}
const pen = stage.getContext("2d"), FONT = "12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";
const LIGHT = {ink: "#0f172a", soft: "#56657a", paper: "#f8fafc", frame: "#ffffff", leaf: "#dbeafe", constant: "#f1f5f9", operation: "#ffffff", output: "#dcfce7", gradient: "#ffedd5", group: "#ede9fe", back: "#b93a0a", lit: "#facc15"};
const DARK = {ink: "#e2e8f0", soft: "#9aa9bd", paper: "#0b1220", frame: "#111a2c", leaf: "#1e3a5f", constant: "#1e293b", operation: "#17202f", output: "#14432a", gradient: "#4a2a12", group: "#33265c", back: "#fb923c", lit: "#ca8a04"};
const dark = matchMedia("(prefers-color-scheme:dark)");
let asked = false;
drawing.whole = () => ({x: 0, y: 0, w: root.w, h: root.h});
drawing.turn = way => { backward = way === "backward"; drawing.show(); };
drawing.show = () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; paint(); }); } };
function paint() {
  const ratio = devicePixelRatio || 1, W = main.clientWidth, H = main.clientHeight, s = view.s, c = dark.matches ? DARK : LIGHT;
  if (stage.width !== W * ratio || stage.height !== H * ratio) { stage.width = W * ratio; stage.height = H * ratio; }
  const k = ratio / s;
  pen.setTransform(1, 0, 0, 1, 0, 0); pen.fillStyle = c.paper; pen.fillRect(0, 0, stage.width, stage.height);
  pen.setTransform(k, 0, 0, k, -view.x * k, -view.y * k);
  const inside = (l, t, r, b) => r >= view.x && l <= view.x + W * s && b >= view.y && t <= view.y + H * s;
  const legible = s < 2.4, around = over ? new Set([over]) : null;
  pen.font = FONT; pen.textAlign = "left";
  for (const g of frames) {
    const outer = up(g);
    g.tiny = outer.tiny || g.h / s < 24; // nothing inside is drawn
    if (outer.tiny || !inside(g.X, g.Y, g.X + g.w, g.Y + g.h)) continue;
    pen.fillStyle = g.depth % 2 ? c.frame : c.paper; pen.strokeStyle = c.soft; pen.globalAlpha = 1; pen.lineWidth = 1;
    if (g.tiny) { pen.fillStyle = c.group; pen.fillRect(g.X, g.Y, g.w, g.h); continue; }
    pen.beginPath(); pen.roundRect(g.X, g.Y, g.w, g.h, 10); pen.fill(); pen.globalAlpha = 0.5; pen.stroke(); pen.globalAlpha = 1;
    if (legible) { pen.fillStyle = c.soft; pen.fillText(`\u25be ${g.label}`, g.X + 12, g.Y + 19); }
  }
  const color = backward ? c.back : c.soft, batches = [new Path2D(), new Path2D(), new Path2D()], tips = new Path2D();
  for (const l of lines) {
    if (groups[l.a.group].tiny && groups[l.b.group].tiny || !inside(l.left - 4, l.top - 4, l.right + 4, l.bottom + 4)) continue;
    const near = over && (l.a === over || l.b === over), batch = batches[near ? 2 : l.crosses ? 1 : 0], p = l.points;
    if (near) { around.add(l.a); around.add(l.b); }
    batch.moveTo(p[0][0], p[0][1]);
    for (let i = 1; i < p.length; i++) {
      if (legible) { const half = (p[i][1] - p[i - 1][1]) / 2; batch.bezierCurveTo(p[i - 1][0], p[i - 1][1] + half, p[i][0], p[i][1] - half, p[i][0], p[i][1]); }
      else batch.lineTo(p[i][0], p[i][1]);
    }
    if (legible) {
      const [x, y] = backward ? p[0] : p[p.length - 1], d = (backward ? p[0][1] < p[p.length - 1][1] : p[0][1] > p[p.length - 1][1]) ? 7 : -7;
      tips.moveTo(x, y); tips.lineTo(x - 4, y + d); tips.lineTo(x + 4, y + d); tips.closePath();
    }
  }
  pen.strokeStyle = color; pen.fillStyle = color;
  batches.forEach((batch, at) => { pen.globalAlpha = at === 2 ? 1 : (over ? 0.25 : at ? 0.45 : 0.8); pen.lineWidth = at === 2 ? 2.2 : 1.2; pen.stroke(batch); });
  pen.globalAlpha = over ? 0.4 : 0.8; pen.fill(tips); pen.globalAlpha = 1; pen.lineWidth = 1;
  pen.textAlign = "center";
  for (const one of boxes) {
    if (groups[one.group].tiny || !inside(one.X, one.Y, one.X + one.w, one.Y + one.h)) continue;
    pen.globalAlpha = around && !around.has(one) ? 0.35 : 1;
    pen.fillStyle = one === lit ? c.lit : one.items ? c.group : c[one.kind];
    pen.strokeStyle = c.soft;
    if (!legible) { pen.fillRect(one.X, one.Y, one.w, one.h); if (s < 6) pen.strokeRect(one.X, one.Y, one.w, one.h); continue; }
    pen.beginPath(); pen.roundRect(one.X, one.Y, one.w, one.h, 7); pen.fill(); pen.lineWidth = one.kind === "output" || one === lit ? 2 : 1; pen.stroke();
    const below = second(one), x = one.X + one.w / 2, y = one.Y + one.h / 2;
    pen.fillStyle = c.ink; pen.fillText(titleOf(one), x, below ? y - 4 : y + 4);
    if (below) { pen.fillStyle = backward ? c.back : c.soft; pen.fillText(below, x, y + 13); }
  }
  pen.globalAlpha = 1;
}
function found(e) { // the box, or the frame whose head is under the pointer
  const r = main.getBoundingClientRect(), x = view.x + (e.clientX - r.left) * view.s, y = view.y + (e.clientY - r.top) * view.s;
  const hit = (one, h) => x >= one.X && x <= one.X + one.w && y >= one.Y && y <= one.Y + h;
  return boxes.find(one => hit(one, one.h)) || [...frames].reverse().find(one => hit(one, HEAD)) || null;
}
function onScreen(one, h = one.h) {
  const r = main.getBoundingClientRect(), left = r.left + (one.X - view.x) / view.s, top = r.top + (one.Y - view.y) / view.s;
  return {left, top, right: left + one.w / view.s, bottom: top + h / view.s};
}
function rowsOf(one) {
  const rows = one.items
    ? [["group", one.label], ["at", one.place], ["nodes", `${one.count}`], ["operations", often(one)], ["cotangents", one.low <= one.high ? norms(one) : ""]]
    : [["step", `${one.step}`], ["expression", one.text], ["type", one.type], ["value", one.value], ["cotangent", one.cotangent], ["more", one.more],
       ["line", one.line ? `${one.line}${data.lines[one.line] ? `: ${data.lines[one.line]}` : ""}` : ""],
       ["in", path(one).slice(1, -1).map(g => g.label).join(" \u203a ")]];
  return rows.filter(([, text]) => text);
}
stage.addEventListener("pointermove", e => {
  if (from) return;
  const one = found(e), open = one && one.items && one.open;
  stage.style.cursor = one && one.items ? "pointer" : "";
  if (one === over) return;
  over = open ? null : one; drawing.show();
  if (one) tell(rowsOf(one), onScreen(one, open ? HEAD : one.h)); else untell();
});
stage.addEventListener("pointerleave", () => { over = null; untell(); drawing.show(); });
stage.addEventListener("click", e => {
  const one = moved > 4 ? null : found(e);
  if (one && one.items) toggle(one);
});
function toggle(g, open = !g.open) { // what was clicked stays where it is
  const before = [(g.X - view.x) / view.s, (g.Y - view.y) / view.s];
  g.open = open; over = null; untell(); layout(); told();
  look(g.X - before[0] * view.s, g.Y - before[1] * view.s, view.s);
}
function all(open) { for (const g of groups) g.open = open || g === root; over = null; if (!open) return begin(); layout(); told(); top(); }
function reveal(one) {
  for (const g of path(one).slice(0, -1)) g.open = true;
  layout(); told(); lit = one;
  const s = Math.min(view.s, 1.2);
  look(one.X + Math.min(one.w, 300) / 2 - main.clientWidth * s / 2, one.Y + 20 - main.clientHeight * s / 2, s);
}
const box = document.getElementById("search"), hits = document.getElementById("hits");
let matches = [], turn = -1;
function search() {
  const text = box.value.trim().toLowerCase();
  const has = one => (one.items ? `${one.label} ${one.place}` : `${one.title} ${one.text} ${one.more}`).toLowerCase().includes(text);
  matches = text ? [...groups.slice(1), ...nodes].filter(has).sort((a, b) => a.first - b.first) : [];
  turn = -1; lit = null; hits.textContent = text ? `${matches.length} found` : ""; drawing.show();
}
function next(step) {
  if (!matches.length) return;
  turn = (turn + step + matches.length) % matches.length; hits.textContent = `${turn + 1} of ${matches.length}`; reveal(matches[turn]);
}
box.addEventListener("input", search);
box.addEventListener("keydown", e => { if (e.key === "Enter") next(e.shiftKey ? -1 : 1); if (e.key === "Escape") { box.value = ""; search(); box.blur(); } });
document.addEventListener("keydown", e => { if (e.key === "/" && e.target !== box) { e.preventDefault(); box.focus(); } });
document.getElementById("open").addEventListener("click", () => all(true));
document.getElementById("close").addEventListener("click", () => all(false));
function told() { document.getElementById("count").textContent = `${boxes.length} of ${nodes.length} nodes and groups`; }
function begin() { // as many groups open as leave the first sight legible, and its text as large as it is read
  root.open = true;
  for (const g of groups) if (g !== root) g.open = false;
  let count = root.items.length, level = root.items.filter(one => one.items && !one.leaves);
  while (level.length) {
    count += level.reduce((sum, g) => sum + g.items.length - 1, 0);
    if (count > FEW && level.length > 1) break;
    for (const g of level) g.open = true;
    level = level.flatMap(g => g.items.filter(one => one.items && !one.leaves));
  }
  layout(); told(); top();
}
function top() { // the whole where its text can be read, else the top of it
  fit();
  if (view.s > 0.8 && view.s < 1.3) return;
  const s = Math.max(0.8, Math.min(view.s, 1)), room = root.w - main.clientWidth * s; // the top of it, as large as it is read
  look(room > 0 ? Math.min(room, Math.max(0, boxes[0].X + boxes[0].w / 2 - main.clientWidth * s / 2)) : room / 2, 0, s);
}
addEventListener("resize", () => drawing.show());
dark.addEventListener("change", () => drawing.show());
begin();
Object.assign(globalThis.gradcli, {all, nodes, onScreen, boxes: () => boxes, frames: () => frames});

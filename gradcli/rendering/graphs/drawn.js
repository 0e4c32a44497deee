// A drawing that is complete: an SVG, in which boxes hold their facts as titles.
const full = stage.viewBox.baseVal, whole = {x: full.x, y: full.y, w: full.width, h: full.height};
stage.removeAttribute("width"); stage.removeAttribute("height");
drawing.whole = () => whole;
drawing.show = () => stage.setAttribute("viewBox", [view.x, view.y, main.clientWidth * view.s, main.clientHeight * view.s].join(" "));
drawing.turn = way => {
  stage.classList.toggle("show-forward", way === "forward"); stage.classList.toggle("show-backward", way === "backward");
};
const arrows = [...stage.querySelectorAll(".arrow")], byId = id => document.getElementById(id);
function near(box, on) {
  stage.classList.toggle("looking", on); box.classList.toggle("near", on);
  for (const arrow of arrows) {
    const {start, end} = arrow.dataset;
    if (start !== box.id && end !== box.id) continue;
    for (const one of [arrow, byId(start), byId(end)]) one.classList.toggle("near", on);
  }
}
for (const box of stage.querySelectorAll(".box")) {
  const title = box.querySelector("title"), rows = title.textContent.split("\n").map(line => {
    const cut = line.indexOf(": ");
    return [line.slice(0, cut), line.slice(cut + 2).replaceAll("], [", "],\n [")];
  });
  title.remove();
  const enter = () => { tell(rows, box.querySelector("rect").getBoundingClientRect()); near(box, true); };
  const leave = () => { untell(); near(box, false); };
  box.addEventListener("pointerenter", enter); box.addEventListener("focus", enter);
  box.addEventListener("pointerleave", leave); box.addEventListener("blur", leave);
}
function begin() {
  fit();
  if (view.s <= 2.2) return;
  const first = stage.querySelector(".box rect").getBBox(), s = 1.3, w = main.clientWidth * s;
  look(Math.max(whole.x, Math.min(whole.x + whole.w - w, first.x + first.width / 2 - w / 2)), whole.y, s);
}
addEventListener("resize", fit);
begin();

"use strict";
// Plays the recording that the page holds. A scene is a run in a picture, a shot one of its states;
// all scenes are shown at the same step, one that has ended at its end.

const SVG = "http://www.w3.org/2000/svg";
const SPEEDS = [0.5, 1, 2, 4, 8, 16, 30];
// Of a picture, in pixels; one in another page is lower, so that its controls are in view, too.
const MOST_WIDTH = 720, MOST_HEIGHT = window.parent === window ? 460 : 400;
const MANY = 1000;   // samples that are drawn without edges
const CROSS = "M-.38-.38.38.38M.38-.38-.38.38";
const STAR = "M0-.5.12-.16.48-.16.19.06.3.4 0 .19-.3.4-.19.06-.48-.16-.12-.16Z";

// Small things -------------------------------------------------------------------------------

// Add an element to a parent; texts are never read as markup.
function add(parent, name, attributes = {}, text = "") {
  const inPicture = parent.namespaceURI === SVG || name === "svg";
  const made = inPicture ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  parent.append(made);
  return made;
}

function paint(element, colour) {
  if (colour) element.style.setProperty("--of", colour);
  return element;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// Shots hold what changes from one to the next: return sizes of rings, and wrong samples, of all.
function unfolded(shots, n) {
  let sizes = new Uint8Array(n), wrong = new Uint8Array(n);
  return shots.map((shot) => {
    sizes = sizes.slice();
    wrong = wrong.slice();
    const changes = shot.sizes ?? [];
    for (let k = 0; k < changes.length; k += 2) sizes[changes[k]] = changes[k + 1];
    for (const k of shot.wrong ?? []) wrong[k] = 1 - wrong[k];
    return {sizes, wrong};
  });
}

// The picture --------------------------------------------------------------------------------

class Scene {
  constructor(data, parent, several) {
    this.data = data;
    this.id = `caption-${parent.childElementCount}`;
    this.colours = data.colours;
    this.markers = Object.fromEntries(data.classes.map(([code, , path]) => [code, path]));
    this.states = unfolded(data.shots, data.codes.length);
    this.step = 0;
    const box = add(parent, "section", {class: "scene", "aria-label": data.name});
    if (several) add(box, "h2", {}, data.name);
    this.makePicture(box);
    this.makeLegend(box);
    if (data.note) add(box, "p", {class: "note"}, data.note);
    this.caption = add(box, "p", {class: "caption", id: this.id, role: "status", "aria-live": "polite"});
    this.box = box;
  }

  get last() {
    return this.data.shots.length - 1;
  }

  makePicture(box) {
    this.svg = add(box, "svg", {role: "img", "aria-label": this.data.about, "aria-describedby": this.id});
    const inner = add(this.svg, "svg", {class: "inner", preserveAspectRatio: "none"});
    inner.setAttribute("viewBox", `0 0 ${this.data.size.join(" ")}`);
    this.inner = inner;
    this.fields = {};
    for (const name of ["regions", "hulls", "slacks", "bands", "befores", "lines"]) this.fields[name] = add(inner, "g");
    this.axes = add(this.svg, "g", {class: "axes", "aria-hidden": "true"});
    this.frame = add(this.svg, "rect", {class: "frame"});
    const over = add(this.svg, "svg", {class: this.data.codes.length > MANY ? "over many" : "over"});
    this.over = over;
    for (const name of ["points", "rings", "crosses", "moves", "stars"]) this.fields[name] = add(over, "g");
    this.points = this.data.codes.map((code) => this.makePoint(this.fields.points, code));
  }

  makePoint(parent, code) {
    if (code in this.markers) {
      return paint(add(parent, "path", {class: "point", d: this.markers[code]}), this.colours[code]);
    }
    return add(parent, "circle", {class: "point", r: 0.5});
  }

  makeLegend(box) {
    const list = add(box, "ul", {class: "legend"});
    const entry = (text) => {
      const item = add(list, "li");
      const sign = add(item, "svg", {width: 22, height: 16, viewBox: "-11 -8 22 16", "aria-hidden": "true"});
      add(item, "span", {}, text);
      return sign;
    };
    for (const [code, name] of this.data.classes) {
      this.makePoint(entry(name), code).setAttribute("transform", "scale(10)");
    }
    for (const [kind, text] of this.data.legend) {
      const sign = entry(text);
      if (kind === "wrong") add(sign, "path", {class: kind, d: CROSS, transform: "scale(12)", "vector-effect": "non-scaling-stroke"});
      else if (kind === "ring" || kind === "moved") add(sign, "circle", {class: kind, r: 6});
      else if (kind === "star") add(sign, "path", {class: kind, d: STAR, transform: "scale(14)", "vector-effect": "non-scaling-stroke"});
      else add(sign, "path", {class: `key ${kind}`, d: "M-10 0H10"});
    }
  }

  // Fit the picture to the width of the page.
  layout() {
    const [wide, high] = this.data.size;
    const [across, up] = this.data.axes;
    const longest = Math.max(0, ...up.ticks.map(([, text]) => text.length));
    const left = Math.min(16 + 7 * longest, 110) + (up.label ? 18 : 0), right = 12, top = 8, bottom = 40;
    let width = Math.min(this.box.clientWidth, MOST_WIDTH) - left - right;
    const height = Math.min(width * high / wide, MOST_HEIGHT);
    width = Math.min(width, height * wide / high);
    this.scale = [width / wide, height / high];
    place(this.svg, {width: left + width + right, height: top + height + bottom});
    for (const part of [this.inner, this.over, this.frame]) place(part, {x: left, y: top, width, height});
    this.drawAxes(left, top, width, height, across, up);
    this.points.forEach((point, k) => this.put(point, k, this.data.diameter));
    this.show(this.step);
    this.reserve();
  }

  drawAxes(left, top, width, height, across, up) {
    this.axes.replaceChildren();
    const [sx, sy] = this.scale;
    const widest = Math.max(0, ...across.ticks.map(([, text]) => text.length));
    const few = Math.ceil(across.ticks.length / Math.max(Math.floor(width / Math.max(48, 7 * widest + 8)), 1));
    across.ticks.forEach(([x, text], k) => {
      if (k % few) return;
      add(this.axes, "line", {x1: left + sx * x, x2: left + sx * x, y1: top + height, y2: top + height + 4});
      add(this.axes, "text", {x: left + sx * x, y: top + height + 16, "text-anchor": "middle"}, text);
    });
    for (const [y, text] of up.ticks) {
      add(this.axes, "line", {x1: left - 4, x2: left, y1: top + sy * y, y2: top + sy * y});
      add(this.axes, "text", {x: left - 7, y: top + sy * y + 4, "text-anchor": "end"}, cut(text, 13));
    }
    add(this.axes, "text", {class: "label", x: left + width / 2, y: top + height + 34, "text-anchor": "middle"}, cut(across.label, width / 7));
    add(this.axes, "text", {class: "label", transform: `translate(13 ${top + height / 2}) rotate(-90)`, "text-anchor": "middle"}, cut(up.label, height / 7));
  }

  // Move a mark of width 1 to sample k, and make it so many pixels wide.
  put(mark, k, size) {
    this.putAt(mark, this.data.points[2 * k], this.data.points[2 * k + 1], size);
  }

  putAt(mark, x, y, size) {
    const [px, py] = [x * this.scale[0], y * this.scale[1]];
    mark.setAttribute("transform", `translate(${px.toFixed(1)} ${py.toFixed(1)}) scale(${size})`);
    mark.setAttribute("vector-effect", "non-scaling-stroke");
  }

  // Show a step, or the end where there are fewer.
  show(step) {
    this.step = step;
    const k = Math.min(step, this.last), shot = this.data.shots[k];
    const fields = this.fields;
    for (const [name, field] of Object.entries(fields)) if (name !== "points") field.replaceChildren();
    for (const [code, d] of shot.regions ?? []) {
      paint(add(fields.regions, "path", {class: "region", d, "fill-rule": "evenodd"}), this.colours[code]);
    }
    for (const [code, d] of shot.hulls ?? []) paint(add(fields.hulls, "path", {class: "hull", d}), this.colours[code]);
    if (shot.slack) add(fields.slacks, "path", {class: "slack", d: shot.slack});
    if (shot.band) add(fields.bands, "path", {class: "band", d: shot.band});
    if (k > 0 && k < this.last) this.drawLines(fields.befores, "before", this.data.shots[k - 1]);
    this.drawLines(fields.lines, "line", shot);
    this.drawMarks(shot, this.states[k]);
    this.write(k);
  }

  drawLines(parent, kind, shot) {
    for (const [code, d] of shot.lines ?? []) paint(add(parent, "path", {class: kind, d}), this.colours[code]);
  }

  drawMarks(shot, {sizes, wrong}) {
    const d = this.data.diameter;
    sizes.forEach((size, k) => {
      if (size) this.put(add(this.fields.rings, "circle", {class: "ring", r: 0.5}), k, d + 5 + 1.4 * Math.sqrt(size));
    });
    wrong.forEach((is, k) => {
      if (is) this.put(add(this.fields.crosses, "path", {class: "wrong", d: CROSS}), k, d + 3);
    });
    if (shot.star) this.putAt(add(this.fields.stars, "path", {class: "star", d: STAR}), ...shot.star, 18);
    for (const k of shot.moved ?? []) this.put(add(this.fields.moves, "circle", {class: "moved", r: 0.5}), k, d + 16);
  }

  write(k) {
    const {heading, text, facts = "", proved} = this.data.shots[k];
    this.caption.replaceChildren();
    add(this.caption, "strong", {}, heading);
    add(this.caption, "span", {}, text);
    add(this.caption, "span", {class: "facts"}, facts);
    this.caption.classList.toggle("proved", proved === true);
    this.caption.classList.toggle("open", proved === false);
  }

  // Keep room for the longest caption of a step, so that nothing jumps while it plays.
  reserve() {
    const length = (k) => Object.values(this.data.shots[k]).filter((part) => typeof part === "string").join("").length;
    const order = this.data.shots.map((shot, k) => k).slice(0, -1).sort((a, b) => length(b) - length(a));
    this.caption.style.minHeight = "";
    let most = 0;
    for (const k of order.slice(0, 5)) {
      this.write(k);
      most = Math.max(most, this.caption.getBoundingClientRect().height);
    }
    this.caption.style.minHeight = `${most}px`;
    this.write(Math.min(this.step, this.last));
  }
}

function place(element, values) {
  for (const [key, value] of Object.entries(values)) element.setAttribute(key, value.toFixed(1));
}

function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.max(Math.floor(most) - 1, 1))}…`;
}

// Playback -----------------------------------------------------------------------------------

const recording = JSON.parse(document.getElementById("recording").textContent);
const several = recording.scenes.length > 1;
const scenes = recording.scenes.map((data) => new Scene(data, document.getElementById("scenes"), several));
const end = Math.max(...scenes.map((scene) => scene.last));
const [first, back, play, next, last, slider, speed] =
  ["first", "back", "play", "next", "last", "slider", "speed"].map((id) => document.getElementById(id));
let step = 0, timer = null, told = 0;

function go(wanted) {
  step = clamp(wanted, 0, end);
  for (const scene of scenes) scene.show(step);
  const longest = scenes.find((scene) => scene.last === end);
  slider.value = step;
  slider.setAttribute("aria-valuetext", longest.data.shots[step].heading);
  first.disabled = back.disabled = step === 0;
  next.disabled = last.disabled = step === end;
  tellHeight();
}

function pause() {
  clearInterval(timer);
  timer = null;
  showPlaying();
}

function start() {
  clearInterval(timer);
  timer = setInterval(advance, 1000 / Number(speed.value));
  showPlaying();
}

function advance() {
  go(step + 1);
  if (step === end) pause();
}

function showPlaying() {
  document.body.classList.toggle("playing", timer !== null);
  play.setAttribute("aria-label", timer === null ? "Play" : "Pause");
  // Screen readers are told of the steps that a person chooses, and of the last one.
  for (const scene of scenes) scene.caption.setAttribute("aria-live", timer === null ? "polite" : "off");
}

function toggle() {
  if (timer !== null) return pause();
  if (step === end) go(0);
  start();
}

// Stop, and go to a step.
function jump(wanted) {
  pause();
  go(wanted);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === speed || (event.target === slider && event.key !== " ")) return;
  if (event.key === " " && event.target instanceof HTMLButtonElement) return;
  const acts = {
    " ": toggle, ArrowLeft: () => jump(step - 1), ArrowRight: () => jump(step + 1),
    Home: () => jump(0), End: () => jump(end),
  };
  if (!(event.key in acts)) return;
  event.preventDefault();
  acts[event.key]();
}

function fillSpeeds() {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const wanted = calm ? Math.min(recording.fps, 1) : recording.fps;
  const all = [...new Set([...SPEEDS, wanted])].sort((a, b) => a - b);
  for (const value of all) add(speed, "option", {value}, String(Math.round(100 * value) / 100));
  speed.value = wanted;
}

// The page around ----------------------------------------------------------------------------

// A recording in another page takes its theme, if that page may be read (not from file://), or is
// told of it by a message, and tells its own height.
function followParent() {
  if (window.parent === window) return;
  document.documentElement.classList.add("embedded");
  window.addEventListener("message", ({source, data}) => {
    if (source === window.parent && data?.type === "maxmargin-theme") setTheme(data.theme);
  });
  try {
    const root = window.parent.document.documentElement;
    setTheme(root.dataset.theme);
    new MutationObserver(() => setTheme(root.dataset.theme)).observe(root, {attributeFilter: ["data-theme"]});
  } catch {
    // A page of another origin, which may send the message.
  }
}

function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function tellHeight() {
  const height = Math.ceil(document.querySelector("main").getBoundingClientRect().height);
  if (window.parent === window || height === told) return;
  told = height;
  window.parent.postMessage({type: "maxmargin-height", height}, "*");
}

function layout() {
  for (const scene of scenes) scene.layout();
  tellHeight();
}

followParent();
document.querySelector("main").classList.toggle("several", several);
slider.max = end;
fillSpeeds();
layout();
go(0);
first.onclick = () => jump(0);
back.onclick = () => jump(step - 1);
play.onclick = toggle;
next.onclick = () => jump(step + 1);
last.onclick = () => jump(end);
slider.oninput = () => jump(Number(slider.value));
speed.onchange = () => { if (timer !== null) start(); };
document.addEventListener("keydown", onKey);
let width = 0;
new ResizeObserver(() => {
  if (width === (width = document.body.clientWidth)) return;
  layout();
}).observe(document.body);
// Paper shows the answer.
let before = 0;
addEventListener("beforeprint", () => { before = step; jump(end); });
addEventListener("afterprint", () => go(before));

// The panel that draws a map of a collection, coloured by clusters or by topics; the drawing itself is map.js, which reports use too.
import { ask } from "./api.js";
import { by, make, whole, working } from "./dom.js";
import { groupsOf } from "./groups.js";
import { drawMap } from "./map.js";
import { chooseSource } from "./source.js";
import { isDark, onTheme } from "./theme.js";
import { onLanguage, t } from "./words.js";

const SIDE = 65535, LEAST = 4, LABEL = 24, GREY = [0, 0];
const HUES = [215, 28, 140, 340, 268, 190, 52, 5, 100, 300, 240, 165, 38, 320, 80, 205, 352, 120, 285, 15];  // as in reports
const STRENGTHS = [72, 72, 55, 72, 55, 80, 80, 45, 60, 45, 35, 35, 40, 30, 30, 45, 35, 30, 30, 60];
const form = by("map-form"), out = by("map-out");
let answer = null, repaint = () => {};

export function start() {
  const read = chooseSource(form.querySelector(".source"));
  form.addEventListener("submit", event => { event.preventDefault(); draw(read); });
  onLanguage(() => { if (answer) show(); });
  onTheme(() => repaint());
}

async function draw(read) {
  answer = null;
  await working(form, out, async signal => {
    const source = read(LEAST), number = Number(by("map-number").value) || null;
    const found = await ask("/api/map", { ...source, k: number }, { signal });
    if (by("map-colour").value === "topics") {
      const { labels, topics } = await ask("/api/topics", { ...source, topics: number, min_size: 5 }, { signal });
      Object.assign(found, { labels, topics });
    }
    answer = found;
    show();
  });
}

function show() {
  const points = pointsOf(answer);
  const zoom = (id, text) => make("button", { id, type: "button", "aria-label": t(`map.${id}`) }, text);
  const canvas = make("canvas", { id: "map", tabindex: "0", role: "img", "aria-label": t("map.map", { count: whole(points.x.length) }) });
  out.replaceChildren(
    make("div", { class: "tools" }, make("input", { id: "seek", type: "search", placeholder: t("map.seek"), "aria-label": t("map.seek") }),
      make("span", { id: "found", class: "quiet", role: "status" })),
    make("div", { class: "map" }, canvas, make("div", { id: "tip", class: "tip", hidden: true }),
      make("div", { class: "zoom" }, zoom("nearer", "+"), zoom("farther", "−"), zoom("whole", "⤢"))),
    make("ul", { id: "legend", class: "legend" }));
  repaint = drawMap(out, points, isDark);
}

// The server's answer → what map.js draws: the largest groups in colours of their own, the rest and what is in none in grey.
function pointsOf(found) {
  const named = groupsOf(found).sort((a, b) => b.size - a.size), place = new Map(named.map((group, at) => [group.label, Math.min(at, HUES.length)]));
  const groups = named.slice(0, HUES.length).map((group, at) => ({ name: group.name, label: short(group.name), colour: [HUES[at], STRENGTHS[at]] }));
  if (named.length > HUES.length) groups.push({ name: t("map.others"), label: "", colour: GREY });
  if (found.labels.includes(-1)) { place.set(-1, groups.length); groups.push({ name: t("groups.none"), label: "", colour: GREY }); }
  const x = found.places.map(at => Math.round(at[0] * SIDE)), y = found.places.map(at => Math.round(at[1] * SIDE));
  const group = found.labels.map(label => place.get(label));
  groups.forEach((each, number) => { each.middle = middle(x, y, group.flatMap((one, at) => one === number ? [at] : [])); });
  return { x, y, group, groups, names: found.ids ?? found.texts.map((_, at) => String(at + 1)), texts: found.texts };
}

// The member nearest to the middle of a group; −1 for none.
function middle(x, y, members) {
  if (!members.length) return -1;
  const median = values => [...values].sort((a, b) => a - b)[values.length >> 1];
  const mx = median(members.map(at => x[at])), my = median(members.map(at => y[at])), away = at => Math.abs(x[at] - mx) + Math.abs(y[at] - my);
  return members.reduce((best, at) => away(at) < away(best) ? at : best);
}

const short = text => [...text].length > LABEL ? `${[...text].slice(0, LABEL - 1).join("")}…` : text;

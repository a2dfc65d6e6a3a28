"use strict";
// Draws points on the canvas #map of `root`, with #tip, #seek, #found, #legend and the zoom buttons around it. Points are numbers from 0 to
// 65,535; the view is a scale and a shift. Returns what paints again in other colours.
function drawMap(root, points, isDark) {
  const part = id => root.querySelector(`#${id}`);
  const canvas = part("map"), pen = canvas.getContext("2d"), tip = part("tip"), seek = part("seek"), found = part("found");
  const count = points.x.length, SIDE = 65535, MARGIN = 28, NEAR = 14, MANY = 5000;
  const shown = points.groups.map(() => true);
  let view = { scale: 1, x: 0, y: 0 }, width = 0, height = 0, matching = null, pointed = -1, waiting = false;

  function colour(group, alpha = 1) {
    const [hue, strength] = points.groups[group].colour;
    const light = isDark() ? 66 : 44;
    return `hsl(${hue} ${strength}% ${light}% / ${alpha})`;
  }

  function unit() { return Math.min(width, height) - 2 * MARGIN; }
  // A map may fill a wide or tall window; neighbourhoods stay what they are.
  function stretch(side) { return Math.min(Math.max((side - 2 * MARGIN) / unit(), 1), 1.6); }
  // Places on the screen, computed when the view changes: many points are looked at many times.
  const screenX = new Float32Array(count), screenY = new Float32Array(count);
  function place() {
    const across = unit() * stretch(width) * view.scale / SIDE, down = unit() * stretch(height) * view.scale / SIDE;
    for (let i = 0; i < count; i++) {
      screenX[i] = (points.x[i] - SIDE / 2) * across + width / 2 + view.x;
      screenY[i] = (SIDE / 2 - points.y[i]) * down + height / 2 + view.y;
    }
  }

  function draw() {
    waiting = false;
    place();
    const ratio = devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const size = Math.max(2.2, Math.min(9, 190 / Math.sqrt(count + 1)) * Math.min(1, unit() / 600) * Math.min(3, Math.sqrt(view.scale)));
    if (count > MANY) drawPixels(size * ratio, ratio);
    else points.groups.forEach((_, group) => { if (shown[group]) drawGroup(group, size); });
    drawNames();
    if (pointed >= 0) ring(pointed, size);
  }

  function drawGroup(group, size) {
    for (const wanted of matching ? [false, true] : [true]) {  // what does not match the search lies below, and is pale
      const stamp = dot(colour(group, wanted ? 0.75 : 0.12), size), half = stamp.side / 2;
      for (const i of points.members[group]) {
        const x = screenX[i] - half, y = screenY[i] - half;
        if (x < -stamp.side || y < -stamp.side || x > width || y > height || (matching && matching[i] !== wanted)) continue;
        pen.drawImage(stamp.image, x, y, stamp.side, stamp.side);
      }
    }
  }

  function drawPixels(size, ratio) {  // many points: squares straight into the picture
    const wide = canvas.width, high = canvas.height, picture = pen.createImageData(wide, high), pixels = new Uint32Array(picture.data.buffer);
    const side = Math.max(2, Math.round(size));
    for (const wanted of matching ? [false, true] : [true]) points.groups.forEach((_, group) => {
      if (!shown[group]) return;
      pen.fillStyle = colour(group);  // reads back as #rrggbb
      const [red, green, blue] = [1, 3, 5].map(at => parseInt(pen.fillStyle.slice(at, at + 2), 16));
      const ink = (((wanted ? 0xdd : 0x22) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
      for (const i of points.members[group]) {
        if (matching && matching[i] !== wanted) continue;
        const left = Math.round(screenX[i] * ratio - side / 2), top = Math.round(screenY[i] * ratio - side / 2);
        if (left < 0 || top < 0 || left + side > wide || top + side > high) continue;
        for (let y = top; y < top + side; y++) pixels.fill(ink, y * wide + left, y * wide + left + side);
      }
    });
    pen.putImageData(picture, 0, 0);
  }

  function dot(fill, size) {  // drawn once and stamped, which is many times quicker than a path for each point
    const ratio = devicePixelRatio || 1, image = document.createElement("canvas"), ink = image.getContext("2d");
    image.width = image.height = Math.ceil((size + 2) * ratio);
    ink.fillStyle = fill; ink.beginPath(); ink.arc(image.width / 2, image.width / 2, size * ratio / 2, 0, 7); ink.fill();
    return { image, side: image.width / ratio };
  }

  function drawNames() {
    const ink = getComputedStyle(document.body), boxes = [];
    pen.font = `600 13px ${ink.fontFamily}`; pen.textAlign = "center"; pen.textBaseline = "middle"; pen.lineJoin = "round";
    points.groups.forEach((group, number) => {
      if (!shown[number] || !group.label || group.middle < 0) return;
      const half = pen.measureText(group.label).width / 2 + 4;
      let x = screenX[group.middle];
      const y = screenY[group.middle];
      if (x < 0 || x > width || y < 10 || y > height - 10) return;
      x = Math.max(half, Math.min(width - half, x));
      if (boxes.some(b => Math.abs(b.x - x) < b.half + half && Math.abs(b.y - y) < 20)) return;
      boxes.push({ x, y, half });
      pen.strokeStyle = isDark() ? "#14171bd9" : "#ffffffd9"; pen.lineWidth = 4; pen.strokeText(group.label, x, y);
      pen.fillStyle = ink.color; pen.fillText(group.label, x, y);
    });
  }

  function ring(i, size) {
    pen.beginPath(); pen.arc(screenX[i], screenY[i], size / 2 + 4, 0, 7);
    pen.strokeStyle = getComputedStyle(document.body).color; pen.lineWidth = 2; pen.stroke();
  }

  function redraw() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }

  function resize() {
    const ratio = devicePixelRatio || 1;
    width = canvas.clientWidth; height = canvas.clientHeight;
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    redraw();
  }

  function zoom(factor, x = width / 2, y = height / 2) {
    const scale = Math.min(Math.max(view.scale * factor, 0.5), 200), by = scale / view.scale;
    view = { scale, x: (view.x - (x - width / 2)) * by + (x - width / 2), y: (view.y - (y - height / 2)) * by + (y - height / 2) };
    redraw();
  }

  function nearest(x, y) {
    let best = -1, least = NEAR * NEAR;
    for (let i = 0; i < count; i++) {
      if (!shown[points.group[i]] || (matching && !matching[i])) continue;
      const dx = screenX[i] - x, dy = screenY[i] - y, away = dx * dx + dy * dy;
      if (away < least) { least = away; best = i; }
    }
    return best;
  }

  function point(x, y) {
    const i = nearest(x, y);
    if (i !== pointed) { pointed = i; redraw(); }
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.replaceChildren(document.createElement("b"), document.createTextNode(points.texts[i]));
    tip.firstChild.textContent = `${points.names[i]} · ${points.groups[points.group[i]].name}`;
    const left = x + 16 + tip.offsetWidth > width ? x - 16 - tip.offsetWidth : x + 16;
    const top = y + 16 + tip.offsetHeight > height ? y - 16 - tip.offsetHeight : y + 16;
    tip.style.transform = `translate(${Math.max(4, Math.min(left, width - tip.offsetWidth - 4))}px, ${Math.max(4, top)}px)`;
  }

  const fingers = new Map();
  canvas.addEventListener("pointerdown", event => { fingers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); canvas.classList.add("held"); });
  canvas.addEventListener("pointermove", event => {
    const before = fingers.get(event.pointerId);
    if (!before) { point(event.offsetX, event.offsetY); return; }
    const other = [...fingers.values()].find(one => one.pointerId !== event.pointerId);
    if (other) {
      const away = finger => Math.hypot(finger.offsetX - other.offsetX, finger.offsetY - other.offsetY) || 1;
      zoom(away(event) / away(before), other.offsetX, other.offsetY);
    } else { view.x += event.offsetX - before.offsetX; view.y += event.offsetY - before.offsetY; redraw(); }
    fingers.set(event.pointerId, event);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, event => {
    fingers.delete(event.pointerId); canvas.classList.remove("held"); point(event.offsetX, event.offsetY);
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; pointed = -1; redraw(); });
  canvas.addEventListener("wheel", event => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
  canvas.addEventListener("keydown", event => {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (step) { view.x += step[0]; view.y += step[1]; redraw(); event.preventDefault(); }
    if (event.key === "+" || event.key === "=") zoom(1.4);
    if (event.key === "-") zoom(1 / 1.4);
  });
  part("nearer").addEventListener("click", () => zoom(1.6));
  part("farther").addEventListener("click", () => zoom(1 / 1.6));
  part("whole").addEventListener("click", () => { view = { scale: 1, x: 0, y: 0 }; redraw(); });

  let later = 0;
  seek.addEventListener("input", () => { clearTimeout(later); later = setTimeout(search, 150); });
  function search() {
    const words = seek.value.normalize("NFC").toLowerCase().split(/\s+/).filter(Boolean);
    matching = words.length ? points.texts.map(text => { const low = text.toLowerCase(); return words.every(word => low.includes(word)); }) : null;
    found.textContent = matching ? `${matching.filter(Boolean).length.toLocaleString()} / ${count.toLocaleString()}` : "";
    tip.hidden = true; pointed = -1;
    redraw();
  }

  const legend = part("legend");
  function paint() { legend.querySelectorAll("i").forEach((dot, group) => { dot.style.background = colour(group); }); redraw(); }
  points.members = points.groups.map(() => []);
  points.group.forEach((group, i) => points.members[group].push(i));
  points.groups.forEach((group, number) => {
    const button = document.createElement("button"), dot = document.createElement("i"), size = document.createElement("span");
    size.textContent = points.members[number].length.toLocaleString();
    button.type = "button"; button.setAttribute("aria-pressed", "true");
    button.append(dot, document.createTextNode(group.name), size);
    button.addEventListener("click", () => { shown[number] = !shown[number]; button.setAttribute("aria-pressed", shown[number]); redraw(); });
    const item = document.createElement("li");
    item.append(button); legend.append(item);
  });
  new ResizeObserver(resize).observe(canvas);
  paint();
  return paint;
}

const mapData = document.getElementById("map-data");  // a page of its own holds its points
if (mapData) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", drawMap(document, JSON.parse(mapData.textContent), () => dark.matches));
}

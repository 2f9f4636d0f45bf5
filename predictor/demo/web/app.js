// Asks the demo for what is new once a second and draws it.

import { Chart, clock } from "./charts.js";

const POLL = 1000; // ms
const MARGIN = 900; // seconds shown after now: room for the forecast
const BANDS = [["0.5", "0.8", 0.6], ["0.8", "0.95", 0.4], ["0.95", "0.99", 0.2]];

const at = (id) => document.getElementById(id);
const number = (value, digits = 0) => value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
const frames = [];
const looks = []; // [real seconds, simulated seconds] of the last answers
let scene = null;
let present = null;

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function describe() {
  const hpa = scene.rival === "queue" ? "waiting requests" : "requests running and waiting";
  const owner = scene.owner === "hpa"
    ? `The same HPA with a floor under it that Floorcast moves ahead of the load.`
    : "No HPA: Floorcast sets the replica count itself.";
  at("about").textContent = `Two simulated fleets of ${scene.model} (${scene.gpus} GPUs a replica), the same requests to both. `
    + (scene.days_before ? `Floorcast starts at midnight knowing ${scene.days_before} earlier days, which are generated; ` : "Floorcast starts at midnight knowing nothing; ")
    + "from then on all it knows is read from the replicas' own metrics pages. One surge today has no precedent.";
  at("floorcast-how").textContent = owner;
  at("hpa-how").textContent = `Aims at ${number(scene.hpa_target)} ${hpa} a replica, ${scene.minimum} to ${scene.maximum} replicas.`;
  at("floor-legend").hidden = scene.owner !== "hpa";
  at("made").textContent = `Seed ${scene.seed}. A replica runs at most ${scene.max_num_seqs} sequences at once and is planned for ${scene.concurrency}; `
    + `warm-ups are drawn, about ${number(scene.warm_up / 60, 1)} min; a first token is late after ${scene.objective} s; GPUs at $${(scene.dollars_per_hour / scene.gpus).toFixed(2)} an hour. `
    + `The floor is raised for the load that is not exceeded with ${number(scene.raise_quantile * 100)} %.`;
}

function showFleet(id, replicas, standing) {
  const list = at(id).querySelector(".replicas");
  list.replaceChildren(...replicas.map((replica) => {
    const item = document.createElement("li");
    item.className = `pill ${replica.state}`;
    item.title = `${replica.name}: ${replica.phase}, batch ${number(replica.load * 100)} % full, ${replica.waiting} waiting`;
    const fill = document.createElement("i");
    fill.style.height = `${replica.load * 100}%`;
    item.append(fill);
    if (replica.waiting) {
      const waiting = document.createElement("em");
      waiting.textContent = replica.waiting > 999 ? "1k+" : replica.waiting;
      item.append(waiting);
    }
    return item;
  }));
  const count = (state) => replicas.filter((replica) => replica.state === state).length;
  list.setAttribute("aria-label", `${count("ready")} ready, ${count("warming")} warming, ${count("draining")} draining`);
  const share = standing.requests ? ` (${number((100 * standing.missed) / standing.requests, 2)} %)` : "";
  const figures = [
    ["first tokens too late", number(standing.missed), standing.missed > 0, `of ${number(standing.requests)}${share}`],
    ["no answer", number(standing.rejected), standing.rejected > 0],
    ["replica-hours", number(standing.hours, 1)],
    ["cost so far", `$${number(standing.hours * scene.dollars_per_hour)}`],
    ["starts", number(standing.starts)],
  ];
  at(id).querySelector(".figures").replaceChildren(...figures.map(([word, value, bad, more]) => {
    const group = document.createElement("div");
    const term = document.createElement("dt");
    const figure = document.createElement("dd");
    term.textContent = more ? `${word} ${more}` : word;
    figure.textContent = value;
    figure.classList.toggle("bad", Boolean(bad));
    group.append(term, figure);
    return group;
  }));
}

const words = (reason) => reason.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

function showDecisions(last, changes) {
  if (last) {
    const reason = document.createElement("span");
    reason.className = "reason";
    reason.textContent = words(last.reason);
    const change = last.before === last.replicas ? `stays at ${last.replicas}` : `${last.before} → ${last.replicas}`;
    at("decision").replaceChildren(`${clock(last.t)} ${change}: `, reason, `. ${last.note}`);
  }
  at("decisions").replaceChildren(...changes.map((decision) => {
    const row = document.createElement("tr");
    const way = Math.sign(decision.replicas - decision.before);
    const cells = [[clock(decision.t)], [decision.before, "number"],
      [decision.replicas, `number ${way > 0 ? "up" : way < 0 ? "down" : ""}`], [words(decision.reason)], [decision.note]];
    row.append(...cells.map(([text, kind]) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      if (kind) cell.className = kind;
      return cell;
    }));
    return row;
  }));
}

function shown() {
  const span = Number(document.querySelector("input[name=span]:checked").value);
  const now = frames.at(-1).t;
  const range = span ? { from: Math.max(now - span, 0), to: Math.max(now, span) + MARGIN } : { from: 0, to: present.end };
  const visible = frames.filter((frame) => frame.t >= range.from - 120);
  return { now, range, visible };
}

/** The stretches of neighbours that `belongs` is true of. */
function runs(list, belongs) {
  const found = [];
  list.forEach((one, i) => {
    if (!belongs(one)) return;
    if (i > 0 && belongs(list[i - 1])) found.at(-1).push(one);
    else found.push([one]);
  });
  return found;
}

const largest = (values) => values.reduce((a, b) => Math.max(a, b), 0);

function drawArrivals({ now, range, visible }) {
  const past = visible.filter((frame) => frame.t > 0);
  const made = frames.filter((frame) => frame.ahead && frame.t + frame.ahead >= range.from - 120);
  const top = largest([...past.map((frame) => frame.arrivals), ...made.map((frame) => Math.max(frame.band["0.99"], frame.room ?? 0))]);
  const chart = new Chart(at("arrivals"), { ...range, top });
  for (const [low, high, opacity] of BANDS) {
    const edge = (q) => made.map((frame) => [frame.t + frame.ahead, frame.band[q]]);
    chart.between(edge(low), edge(high), { color: "band", opacity });
  }
  const kept = runs(made, (frame) => frame.room !== null);
  for (const run of kept) {
    chart.line(run.map((frame) => [frame.t + frame.ahead, frame.room]), { color: "band", width: 1.6, dashed: true });
  }
  at("room-legend").hidden = !kept.length;
  chart.line(past.map((frame) => [frame.t, frame.arrivals]), { color: "ink", width: 1.5 });
  const last = frames.at(-1);
  if (!present.over) chart.mark(now, "now");
  const ahead = last.ahead ? `; forecast made ${clock(last.t)}: at most ${number(last.band["0.95"], 1)}/s with 95 % in the next ${number(last.ahead / 60, 1)} min` : "";
  const room = last.room === null ? "" : `; room kept for ${number(last.room, 1)}/s instead`;
  say("arrivals", `${number(last.arrivals, 1)} requests/s${ahead}${room}`);
}

function drawReplicas(id, side, { range, visible }) {
  const chart = new Chart(at(id), { ...range, fixed: scene.maximum });
  const zero = visible.map((frame) => [frame.t, 0]);
  const ready = visible.map((frame) => [frame.t, frame[side].ready]);
  const coming = visible.map((frame) => [frame.t, frame[side].ready + frame[side].warming]);
  const color = side === "floorcast" ? "ours" : "theirs";
  chart.between(zero, ready, { color, opacity: 0.38, steps: true });
  chart.between(ready, coming, { color, opacity: 0.55, hatched: true, steps: true });
  chart.line(ready, { color, steps: true });
  const last = frames.at(-1)[side];
  if (last.floor !== null) chart.line(visible.map((frame) => [frame.t, frame[side].floor]), { color: "ink", width: 1.4, dashed: true, steps: true });
  say(id, `${last.ready} ready, ${last.warming} warming${last.floor === null ? "" : `, floor ${last.floor}`}`);
}

function drawBoth(id, field, { range, visible }) {
  const chart = new Chart(at(id), { ...range, top: largest(visible.flatMap((frame) => [frame.floorcast[field], frame.hpa[field]])) });
  chart.line(visible.map((frame) => [frame.t, frame.hpa[field]]), { color: "theirs" });
  chart.line(visible.map((frame) => [frame.t, frame.floorcast[field]]), { color: "ours", width: 2.2 });
  const last = frames.at(-1);
  say(id, `Floorcast ${number(last.floorcast[field])}, HPA ${number(last.hpa[field])}`);
}

function say(id, text) {
  at(`${id}-text`).textContent = text;
  at(id).setAttribute("aria-label", text);
}

function draw() {
  if (!frames.length) return;
  const view = shown();
  drawArrivals(view);
  drawReplicas("ours", "floorcast", view);
  drawReplicas("theirs", "hpa", view);
  drawBoth("queue", "queued", view);
  drawBoth("missed", "missed", view);
}

/** How fast the day really passes: a busy machine may not keep up with the speed asked for. */
function showPace() {
  looks.push([performance.now() / 1000, present.t]);
  if (looks.length > 12) looks.shift();
  const [[then, from], [now, to]] = [looks[0], looks.at(-1)];
  const real = now - then > 3 ? (to - from) / (now - then) : scene.speed;
  at("pace").textContent = real > 0.85 * scene.speed
    ? `${number(scene.speed)} × real time`
    : `${number(real)} × real time; ${number(scene.speed)} × asked for, this machine is busy`;
}

function show() {
  const share = (100 * present.t) / present.end;
  at("clock").textContent = present.over && present.end % 86400 === 0 ? "24:00" : clock(present.t);
  at("day").setAttribute("aria-valuenow", Math.round(share));
  at("day").firstElementChild.style.width = `${share}%`;
  const last = frames.at(-1);
  if (last) {
    showFleet("floorcast", present.floorcast, last.floorcast);
    showFleet("hpa", present.hpa, last.hpa);
  }
  showDecisions(present.decision, present.changes);
  draw();
}

async function look() {
  try {
    scene ??= await ask("/api/scenario");
    const wasOver = present?.over;
    present = await ask(`/api/state?since=${frames.length}`);
    frames.push(...present.news);
    at("lost").hidden = true;
    if (present.over) at("pace").textContent = "the day is over";
    else if (!present.preparing) showPace();
    at("preparing").hidden = !present.preparing;
    at("preparing").textContent = `Preparing: ${present.preparing}.`;
    if (present.over && !wasOver) {
      document.querySelector("input[name=span][value='0']").checked = true;
    }
    show();
  } catch {
    at("lost").hidden = false;
  }
  setTimeout(look, present?.over ? 10 * POLL : POLL);
}

document.querySelectorAll("input[name=span]").forEach((input) => input.addEventListener("change", draw));
window.addEventListener("resize", draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
ask("/api/scenario").then((answer) => { scene = answer; describe(); }).catch(() => {}).finally(look);

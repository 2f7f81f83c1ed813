// The operator's page: fetches /api/v1/stats every two seconds and shows it. All text goes through textContent, for
// names come from rows that anyone may have inserted. Figures "of the last minute" are differences between answers.
"use strict";

const EVERY_MS = 2000;
const MINUTE = 30;        // answers that make a minute
const SPARK = 60;         // answers that a spark line shows
const history = [];       // the last answers: {at, stats}
const el = (id) => document.getElementById(id);
let held = false;         // the operator wants the figures to hold still
let goodAt = 0;           // when the last answer came
let busy = false;

// --- texts -----------------------------------------------------------------------------------------------------------

function count(n) {
  if (n < 100000) return n.toLocaleString("en");
  const units = ["", " k", " M", " G", " T"];
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) { n /= 1000; unit++; }
  return n.toPrecision(3) + units[unit];
}

function rate(n) {
  if (n === 0) return "0";
  return n < 10 ? n.toFixed(1) : count(Math.round(n));
}

function duration(us) {
  if (us < 1000) return us === 0 ? "0" : (us / 1000).toFixed(2) + " ms";
  if (us < 10000) return (us / 1000).toFixed(1) + " ms";
  if (us < 1e6) return Math.round(us / 1000) + " ms";
  const s = us / 1e6;
  if (s < 60) return s.toFixed(1) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}

function until(time, now) {
  if (!time) return "–";
  const us = (Date.parse(time) - Date.parse(now)) * 1000;
  if (us <= 0) return "now";
  return us < 60e6 ? "in " + Math.ceil(us / 1e6) + " s" : "in " + duration(us);
}

// --- figures ---------------------------------------------------------------------------------------------------------

function routeIn(answer, name) {
  return answer.stats.routes.find((route) => route.name === name);
}

// The value under which a share of what was added between two histograms lies; null when nothing was.
function quantile(now, before, bounds, share) {
  const added = now.buckets.map((n, i) => n - (before ? before.buckets[i] : 0));
  const total = added.reduce((sum, n) => sum + n, 0);
  if (total <= 0) return null;
  let below = 0;
  for (let i = 0; i < added.length; i++) {
    if (added[i] > 0 && below + added[i] >= share * total) {
      const low = i ? bounds[i - 1] : 0;
      if (i === bounds.length) return low;
      return low + (share * total - below) / added[i] * (bounds[i] - low);
    }
    below += added[i];
  }
  return null;
}

function sumOfHistograms(answer) {
  const buckets = [];
  for (const route of answer.stats.routes)
    route.lateness.buckets.forEach((n, i) => { buckets[i] = (buckets[i] || 0) + n; });
  return { buckets };
}

function perSecond(value) {
  if (history.length < 2) return 0;
  const last = history[history.length - 1];
  const first = history[Math.max(0, history.length - 1 - 5)];
  const seconds = (last.at - first.at) / 1000;
  return seconds > 0 ? Math.max(0, (value(last) - value(first)) / seconds) : 0;
}

function eventsOf(event, name) {
  return (answer) => answer.stats.routes
    .filter((route) => name === undefined || route.name === name)
    .reduce((sum, route) => sum + route.events[event], 0);
}

function minuteAgo() {
  return history[Math.max(0, history.length - 1 - MINUTE)];
}

// --- building blocks -------------------------------------------------------------------------------------------------

function make(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function cell(text, className) { return make("td", text, className); }

function number(value, text, level) {
  return cell(text === undefined ? count(value) : text, "number" + (value ? (level ? " " + level : "") : " zero"));
}

function pair(term, text, className) {
  const box = make("div", undefined, className);
  box.append(make("dt", term), make("dd", text));
  return box;
}

function spark(name) {
  const done = eventsOf("done", name);
  const points = [];
  for (let i = Math.max(1, history.length - SPARK); i < history.length; i++)
    points.push(Math.max(0, done(history[i]) - done(history[i - 1])));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "spark");
  svg.setAttribute("viewBox", "0 0 60 20");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const top = Math.max(1, ...points);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("vector-effect", "non-scaling-stroke");
  line.setAttribute("points", points.map((n, i) =>
    (SPARK - points.length + i) + "," + (19 - n / top * 17).toFixed(1)).join(" "));
  svg.append(line);
  return svg;
}

// --- what is wrong, and what to do -----------------------------------------------------------------------------------

// What a task or destination said is null where no token is configured.
function said(text) { return text === null ? "(shown with admin.token_file)" : text || "?"; }

// A message id as commands take it: it may be spelled like a row's name, or an option.
function named(id) { return /^(id:|message_id:|-)/.test(id || "") ? "message_id:" + id : said(id); }

function routeNotices(route, notices) {
  if (!route.known)
    notices.push(["warn", route.name, "Rows of this route are held, for no configuration knows it. Add it under routes: " +
      "and reload; they go on by themselves."]);
  if (route.suspended)
    notices.push(["bad", route.name, "Its destination does not answer; it is probed again and again, and no attempt is " +
      "lost. " + said(route.trouble)]);
  if (route.stalled_us > 0)
    notices.push(["bad", route.name, "Its destination has confirmed nothing for " + duration(route.stalled_us) +
      ", first task " + named(route.stalled_message_id) + " to " + said(route.stalled_target) +
      ". Its other tasks wait in the table, and one is tried now and then."]);
  if (route.paused)
    notices.push(["warn", route.name, "Paused. " + said(route.reason)]);
  for (const target of route.targets || [])
    notices.push(["warn", route.name, "Suspended: " + said(target.target) + ", since task " +
      named(target.message_id) + ". The other tasks of the route flow. " + said(target.reason)]);
  if (!route.paused && !route.suspended && route.oldest_due_age_us > 60e6)
    notices.push(["warn", route.name, "Its oldest due task has been waiting for " + duration(route.oldest_due_age_us) +
      ". Look at its concurrency and rate, and at the destination."]);
  if (route.oldest_blocked_age_us > 3600e6)
    notices.push(["warn", route.name, "Its oldest blocked task has been waiting for " +
      duration(route.oldest_blocked_age_us) + " behind another one of its order_key. The table of heads names that."]);
}

function notices(stats) {
  const list = [];
  if (stats.failed)
    list.push(["bad", "Engine", stats.failed + ". Start the daemon anew."]);
  if (!stats.database.up)
    list.push(["bad", "Database", stats.not_ready + ". Nothing is lost; work goes on when that is over."]);
  else if (!stats.ready)
    list.push(["bad", "Not ready", stats.not_ready]);
  if (stats.draining)
    list.push(["warn", "Draining", "What is in flight is finished, nothing new is begun."]);
  if (Math.abs(stats.database.clock_offset_us) > 5e6)
    list.push(["warn", "Clock", "The database's clock and this machine's are " +
      duration(Math.abs(stats.database.clock_offset_us)) + " apart. Due times follow the database; check NTP."]);
  if (stats.engine.completions_twice > 0)
    list.push(["bad", "Plugin fault", "A plugin completed tasks that were not open (" +
      count(stats.engine.completions_twice) + "). Report it to its author."]);
  for (const plugin of stats.plugins)
    if (!plugin.up)
      list.push(["bad", plugin.name, plugin.role + " is down. " + said(plugin.text)]);
  for (const route of stats.routes)
    routeNotices(route, list);
  return list;
}

function showNotices(stats) {
  const list = notices(stats).sort((a, b) => (a[0] === "bad" ? 0 : 1) - (b[0] === "bad" ? 0 : 1));
  const shown = list.slice(0, 8).map(([level, what, text]) => {
    const line = make("p", undefined, "notice " + level);
    line.append(make("b", what), make("span", text));
    return line;
  });
  if (list.length > shown.length)
    shown.push(make("p", "… and " + (list.length - shown.length) + " more, see the table.", "faint"));
  const text = shown.map((node) => node.textContent).join("\n");
  if (el("notices").dataset.text !== text) { // so that a screen reader speaks only of news
    el("notices").replaceChildren(...shown);
    el("notices").dataset.text = text;
  }
}

// --- sections --------------------------------------------------------------------------------------------------------

function showHeader(stats) {
  const state = el("state");
  const [text, level] = stats.failed ? ["failed", "bad"] : stats.draining ? ["draining", "warn"]
    : stats.ready ? ["ready", "good"] : ["not ready", "bad"];
  state.textContent = text;
  state.className = "pill " + level;
  const up = (Date.now() - Date.parse(stats.started_at)) * 1000;
  el("who").textContent = stats.instance + " · " + stats.version + " · up " + duration(Math.max(0, up));
  document.title = (level === "good" ? "" : "(" + text + ") ") + "duebox " + stats.instance;
}

function showTiles(answer) {
  const stats = answer.stats;
  const all = (key) => stats.routes.reduce((sum, route) => sum + route[key], 0);
  const oldest = Math.max(0, ...stats.routes.map((route) => route.oldest_due_age_us));
  const p99 = quantile(sumOfHistograms(answer), history.length > 1 ? sumOfHistograms(minuteAgo()) : null,
    stats.bucket_bounds_us, 0.99);
  const dead = eventsOf("dead")(answer);
  const deadNow = dead - eventsOf("dead")(minuteAgo());
  el("tiles").replaceChildren(
    pair("Done per second", rate(perSecond(eventsOf("done")))),
    pair("Retries per second", rate(perSecond(eventsOf("retry")))),
    pair("In flight", count(all("inflight"))),
    pair("Late, p99 of a minute", p99 === null ? "–" : duration(p99), p99 > 5e6 ? "warn" : ""),
    pair("Oldest due", oldest ? duration(oldest) : "none", oldest > 60e6 ? "warn" : ""),
    pair("Dead since start", count(dead) + (deadNow > 0 ? " (+" + count(deadNow) + ")" : ""), deadNow > 0 ? "bad" : ""));
}

function stateOf(route) {
  if (!route.known) return ["unknown", "warn"];
  if (route.suspended) return ["suspended", "bad"];
  if (route.paused) return ["paused", "warn"];
  if (route.stalled_us > 0) return ["stalled", "bad"];
  return ["running", "good"];
}

function routeRow(route, answer) {
  const row = make("tr");
  const before = history.length > 1 ? routeIn(minuteAgo(), route.name) || null : null;
  const late = (share) => quantile(route.lateness, before && before.lateness, answer.stats.bucket_bounds_us, share);
  const [p50, p99] = [late(0.5), late(0.99)];
  const deadLately = before !== null && route.events.dead > before.events.dead;
  const [state, level] = stateOf(route);

  const name = cell();
  const title = make("span", route.name, "name");
  title.title = route.name;
  name.append(title, make("span", route.via ? "via " + route.via : "no configuration", "via"));
  const pill = cell();
  pill.append(make("span", state, "pill " + level));
  pill.title = (route.suspended ? route.trouble : route.reason) || "";
  const done = rate(perSecond(eventsOf("done", route.name)));
  const speed = cell(undefined, "number" + (done === "0" ? " zero" : ""));
  speed.append(spark(route.name), done);
  const command = cell(undefined, "command");
  const button = make("button", route.paused ? "Resume" : "Pause", "small");
  button.type = "button";
  button.dataset.route = route.name;
  button.addEventListener("click", () => askPause(route));
  command.append(button);

  row.append(name, pill, number(route.inflight), speed, number(route.events.done),
    number(route.events.retry), number(route.events.dead, undefined, deadLately ? "bad" : ""),
    number(p50, p50 === null ? "–" : duration(p50)),
    number(p99, p99 === null ? "–" : duration(p99), p99 > 5e6 ? "warn" : ""),
    number(route.oldest_due_age_us, route.oldest_due_age_us ? duration(route.oldest_due_age_us) : "–",
      route.oldest_due_age_us > 60e6 ? "warn" : ""),
    number(route.next_due_at ? 1 : 0, until(route.next_due_at, answer.stats.database_now)), command);
  return row;
}

function emptyRow(columns, text) {
  const row = make("tr");
  const only = cell(text, "empty");
  only.colSpan = columns;
  row.append(only);
  return row;
}

function showRoutes(answer) {
  if (document.querySelector("#routes button:active")) return; // a click in progress would be lost
  const focused = document.activeElement && document.activeElement.dataset.route;
  const wanted = el("filter").value.trim().toLowerCase();
  const urgency = (route) => ["bad", "warn", "good"].indexOf(stateOf(route)[1]);
  const routes = answer.stats.routes
    .filter((route) => [route.name, route.via || "", stateOf(route)[0]].some((s) => s.toLowerCase().includes(wanted)))
    .sort((a, b) => urgency(a) - urgency(b) || (a.name < b.name ? -1 : 1));
  const rows = routes.map((route) => routeRow(route, answer));
  if (rows.length === 0)
    rows.push(emptyRow(12, wanted ? "No route fits the filter." : "No routes yet: name them under routes: and reload."));
  el("routes").tBodies[0].replaceChildren(...rows);
  for (const button of focused === undefined ? [] : document.querySelectorAll("#routes button"))
    if (button.dataset.route === focused) button.focus();
}

function showPlugins(stats) {
  const rows = stats.plugins.map((plugin) => {
    const row = make("tr");
    const state = cell();
    state.append(make("span", plugin.up ? "up" : "down", "pill " + (plugin.up ? "good" : "bad")));
    row.append(cell(plugin.name), cell(plugin.role), state, number(plugin.inflight),
      number(plugin.last_poll_age_us, duration(plugin.last_poll_age_us), plugin.last_poll_age_us > 5e6 ? "warn" : ""),
      cell(plugin.text || "–", "wide"));
    return row;
  });
  if (rows.length === 0) rows.push(emptyRow(6, "No plugins are configured."));
  el("plugins").tBodies[0].replaceChildren(...rows);
}

function showShards(stats) {
  el("shards").replaceChildren(...stats.shards.map((shard) => {
    const word = shard.leaving ? "being given back" : shard.held ? "held" : "not held here";
    const item = make("li", String(shard.shard), shard.leaving ? "leaving" : shard.held ? "held" : "");
    item.title = "shard " + shard.shard + ": " + word + ", epoch " + shard.epoch;
    return item;
  }));
}

function showEngine(stats) {
  const rows = [
    ["Database", stats.database.up ? "up" : "down", !stats.database.up],
    ["Round trip", duration(stats.database.round_trip_us)],
    ["Clock, database minus here", (stats.database.clock_offset_us < 0 ? "−" : "") +
      duration(Math.abs(stats.database.clock_offset_us)), Math.abs(stats.database.clock_offset_us) > 5e6],
    ["Statements per second", rate(perSecond((answer) => answer.stats.database.statements))],
    ["Errors", count(stats.database.errors), false],
    ["Waiting to be settled", count(stats.engine.settle_queue)],
    ["Leases lost", count(stats.engine.leases_lost), stats.engine.leases_lost > 0],
    ["Results that fit no task", count(stats.engine.results_unrouted)],
    ["Plugin drivers replaced", count(stats.engine.drivers_replaced), stats.engine.drivers_replaced > 0],
    ["Configurations taken, refused", count(stats.engine.reloads) + ", " + count(stats.engine.reloads_refused)],
  ];
  el("engine").replaceChildren(...rows.flatMap(([term, text, bad]) => [make("dt", term), make("dd", text, bad ? "bad" : "")]));
}

function show() {
  const answer = history[history.length - 1];
  showHeader(answer.stats);
  showNotices(answer.stats);
  showTiles(answer);
  showRoutes(answer);
  showPlugins(answer.stats);
  showShards(answer.stats);
  showEngine(answer.stats);
}

// --- asking ----------------------------------------------------------------------------------------------------------

function authorization() {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: "Bearer " + token } : {};
}

function lock() {
  document.body.classList.toggle("unlocked", sessionStorage.getItem("token") !== null);
  el("unlock").textContent = sessionStorage.getItem("token") === null ? "Unlock commands" : "Lock commands";
}

async function askToken(why) {
  const dialog = el("token-dialog");
  if (dialog.open) return;
  if (why) el("token-why").textContent = why;
  el("token").value = "";
  open(dialog);
}

function tell(text) {
  el("state").textContent = text;
  el("state").className = "pill bad";
  document.title = "(" + text + ") duebox";
}

async function refresh() {
  if (busy || held || document.hidden) return;
  busy = true;
  try {
    const answer = await fetch("api/v1/stats", { headers: authorization(), signal: AbortSignal.timeout(10000) });
    if (answer.status === 401 || answer.status === 403) {
      tell("locked");
      askToken((await answer.json()).detail);
    } else if (!answer.ok) {
      tell("error " + answer.status);
    } else {
      const stats = await answer.json();
      const last = history[history.length - 1];
      if (last && last.stats.started_at !== stats.started_at) history.length = 0; // a new process counts from zero
      history.push({ at: performance.now(), stats });
      if (history.length > SPARK + 1) history.shift();
      goodAt = Date.now();
      show();
    }
  } catch {
    tell("no answer");
  } finally {
    busy = false;
    showAge();
  }
}

function showAge() {
  if (goodAt === 0) return;
  const seconds = Math.round((Date.now() - goodAt) / 1000);
  const old = seconds > 5 && !held;
  document.body.classList.toggle("old", old);
  el("age").textContent = old ? "These figures are " + seconds + " s old: the daemon does not answer."
    : held ? "Held still since " + new Date(goodAt).toLocaleTimeString() + "."
      : "As of " + new Date(goodAt).toLocaleTimeString() + ", refreshed every 2 s.";
}

// --- commands --------------------------------------------------------------------------------------------------------

// Enter in a dialog presses the first button that submits, so only the one that acts does; Esc keeps the returnValue.
function open(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
}

for (const button of document.querySelectorAll("dialog button.close"))
  button.addEventListener("click", () => button.closest("dialog").close(button.value));

let pausing = null; // the route that the open dialog is about

function askPause(route) {
  pausing = route;
  el("pause-title").textContent = (route.paused ? "Resume " : "Pause ") + route.name;
  el("pause-what").textContent = route.paused
    ? "Its due tasks go out again, on every daemon."
    : "Its tasks wait in the table, on every daemon, until it is resumed. What is in flight goes on.";
  el("pause-ok").textContent = route.paused ? "Resume" : "Pause";
  el("reason").value = "";
  open(el("pause-dialog"));
}

async function pause(route, reason) {
  const path = "api/v1/routes/" + encodeURIComponent(route.name) + (route.paused ? "/resume" : "/pause");
  const answer = await fetch(path, {
    method: "POST",
    headers: { ...authorization(), "Content-Type": "application/json" },
    body: JSON.stringify({ actor: "page", reason }),
  });
  if (answer.status === 401)
    askToken("This token was refused. Commands need the one of admin.token_file.");
  else if (!answer.ok)
    window.alert((await answer.json()).detail);
  refresh();
}

el("pause-dialog").addEventListener("close", () => {
  if (el("pause-dialog").returnValue === "ok")
    pause(pausing, el("reason").value).catch(() => window.alert("The daemon does not answer; nothing is known to have changed."));
});

el("token-dialog").addEventListener("close", () => {
  const { returnValue } = el("token-dialog");
  if (returnValue === "ok" && el("token").value !== "") sessionStorage.setItem("token", el("token").value);
  if (returnValue === "forget") sessionStorage.removeItem("token");
  el("token").value = "";
  lock();
  refresh();
});

el("unlock").addEventListener("click", () => {
  if (sessionStorage.getItem("token") === null) return askToken();
  sessionStorage.removeItem("token");
  lock();
});

el("hold").addEventListener("click", () => {
  held = !held;
  el("hold").setAttribute("aria-pressed", String(held));
  el("hold").textContent = held ? "Go on" : "Hold still";
  refresh();
  showAge();
});

el("filter").addEventListener("input", () => { if (history.length) showRoutes(history[history.length - 1]); });
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, EVERY_MS);
setInterval(showAge, 1000);
lock();
refresh();

// What a page can do: colours, copying, keys, tips, and following the chain. Pages work without it.
(() => {
  const root = document.documentElement;
  const closest = (event, selector) => event.target.closest?.(selector);

  // Colours: chosen before anything is painted, and remembered.
  const remembered = () => {
    try {
      return localStorage.getItem("trailboss.theme") || "system";
    } catch {
      return "system";
    }
  };
  const paint = (choice) => {
    root.dataset.theme = choice;
    const field = document.getElementById("theme");
    if (field) field.value = choice;
  };
  paint(remembered());
  addEventListener("storage", () => paint(remembered()));

  // Changes `old` into `now` and keeps every node that is in both: focus, selection and scroll positions stay.
  const keyOf = (node) => node.dataset?.key || node.id || "";
  function morph(old, now) {
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const keyed = new Map([...old.children].filter(keyOf).map((child) => [keyOf(child), child]));
    let at = old.firstChild;
    for (const child of [...now.childNodes]) {
      const key = keyOf(child);
      const match = key ? keyed.get(key) : at && !keyOf(at) ? at : null;
      if (!match || match.nodeName !== child.nodeName) {
        old.insertBefore(child, at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      if (match.nodeType === Node.ELEMENT_NODE) morph(match, child);
      else if (match.data !== child.data) match.data = child.data;
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  // Shows the page of an address in place of this one. `whole`: also if its content never changes by itself.
  let asked = 0;
  async function show(address, whole) {
    const turn = ++asked;
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    const text = await answer.text();
    if (turn !== asked) return;
    if (answer.redirected) return location.assign(answer.url);
    const page = new DOMParser().parseFromString(text, "text/html");
    if (!page.body.dataset.mark) return;
    document.title = page.title;
    document.body.dataset.mark = page.body.dataset.mark;
    const still = !whole && page.querySelector("main[data-still]");
    for (const part of still ? ["header", "footer"] : ["header", "main", "footer"]) {
      morph(document.querySelector(part), page.querySelector(part));
    }
    if (whole) for (const form of document.querySelectorAll("main form")) form.reset();
    paint(remembered());
  }

  // Follows the chain while the page is seen: the stream reports a mark, and another mark means another page.
  const REST_MS = 500;
  let stream, wanted, seen = performance.now(), busy = false;
  async function refresh() {
    if (busy) return;
    busy = true;
    while (stream && wanted && wanted !== document.body.dataset.mark) {
      const began = performance.now();
      const height = () => document.querySelector("[data-live=height]").textContent;
      const before = height();
      try {
        await show(location.href, false);
      } catch {
        break;
      }
      if (height() !== before) seen = performance.now();
      // A page that takes long to make rests longer.
      await new Promise((done) => setTimeout(done, Math.max(REST_MS, 4 * (performance.now() - began))));
    }
    busy = false;
  }
  function follow() {
    stream?.close();
    stream = null;
    if (document.hidden) return;
    stream = new EventSource(document.body.dataset.stream);
    stream.onmessage = ({ data }) => {
      delete root.dataset.lost;
      wanted = data;
      refresh();
    };
    stream.onerror = () => {
      root.dataset.lost = "";
      if (stream?.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
    };
  }
  function tick() {
    const beat = document.querySelector(".beat");
    if (beat.dataset.state === "failed") return;
    const seconds = Math.floor((performance.now() - seen) / 1000);
    const quiet = seconds > (beat.dataset.quiet ?? Infinity);
    beat.dataset.state = quiet ? "quiet" : "live";
    beat.title = beat.ariaLabel = quiet ? `no block for ${seconds} s` : "blocks are coming in";
  }

  // Pages and filters of a list change in place; the address keeps them, so that back and forward work.
  function go(search) {
    history.pushState({}, "", location.pathname + search);
    show(location.href, true).catch(() => location.reload());
  }

  async function copy(button) {
    const text = button.dataset.copy;
    if (navigator.clipboard && isSecureContext) await navigator.clipboard.writeText(text);
    else {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      area.className = "hidden";
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const label = button.getAttribute("aria-label");
    button.classList.add("copied");
    button.setAttribute("aria-label", "Copied");
    setTimeout(() => {
      button.classList.remove("copied");
      button.setAttribute("aria-label", label);
    }, 1200);
  }

  // Maps: the arrow keys move from cell to cell, and the cell under the pointer or the focus is named below.
  function moveInMap(event, tile) {
    const tiles = [...tile.closest(".heat").querySelectorAll(".tile")];
    const at = tiles.indexOf(tile);
    const columns = tile.parentElement.querySelectorAll(".tile").length;
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: tiles.length - 1 };
    const next = tiles[steps[event.key]];
    if (!next) return;
    event.preventDefault();
    tile.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
  function nameTile(event) {
    const tile = closest(event, ".tile");
    if (tile) tile.closest(".section").querySelector(".tip").textContent = tile.ariaLabel;
  }

  // Charts: the values under the pointer, or at the point that the arrow keys have moved to, from the chart's table.
  function nameValues(chart, at, x, y) {
    const rows = [...chart.parentElement.querySelectorAll("tbody tr")];
    const row = rows[Math.min(Math.max(at, 0), rows.length - 1)];
    const make = (members) => Object.assign(document.createElement("div"), members);
    const tip = document.getElementById("values") || document.body.appendChild(make({ id: "values", role: "status" }));
    const names = [...chart.parentElement.querySelectorAll("thead th")].map((name) => name.textContent);
    const lines = names.map((name, n) => `${name} ${row.cells[n + 1].textContent}`);
    tip.replaceChildren(...[row.cells[0].textContent, ...lines].map((textContent) => make({ textContent })));
    tip.style.left = `${Math.min(x + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${y + 14}px`;
    chart.dataset.at = rows.indexOf(row);
  }
  const plotOf = (chart) => [chart.querySelector(".plot .background").getBoundingClientRect(), chart.parentElement.querySelectorAll("tbody tr").length];
  function pointAt(event) {
    const chart = closest(event, ".chart");
    document.getElementById("values")?.remove();
    if (!chart) return;
    const [box, count] = plotOf(chart);
    // The drawing keeps a margin of a fiftieth on both sides.
    const share = ((event.clientX - box.left) / box.width) * 1.04 - 0.02;
    nameValues(chart, chart.dataset.bars === "1" ? Math.floor(share * count) : Math.round(share * (count - 1)), event.clientX, event.clientY);
  }
  function moveInChart(event, chart) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const [box, count] = plotOf(chart);
    const at = Math.min(Math.max(+(chart.dataset.at ?? count) + step, 0), count - 1);
    nameValues(chart, at, box.left + (box.width * at) / count, box.top);
  }

  document.addEventListener("click", (event) => {
    const button = closest(event, ".copy");
    if (button) return copy(button);
    const anchor = closest(event, "a[data-here]");
    if (!anchor || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(new URL(anchor.href).search);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-here]")) return;
    event.preventDefault();
    const fields = [...new FormData(event.target)].filter(([, value]) => value !== "");
    go(fields.length ? `?${new URLSearchParams(fields)}` : "");
  });
  document.addEventListener("change", ({ target }) => {
    if (target.matches("select[data-submits]")) target.form.requestSubmit();
    if (target.id !== "theme") return;
    try {
      localStorage.setItem("trailboss.theme", target.value);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    paint(target.value);
  });
  document.addEventListener("keydown", (event) => {
    const tile = closest(event, ".tile"), chart = closest(event, ".chart");
    if (tile) return moveInMap(event, tile);
    if (chart) moveInChart(event, chart);
    const field = document.getElementById("search");
    const typing = closest(event, "input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "Escape" && event.target === field) field.blur();
  });
  document.addEventListener("pointerover", nameTile);
  document.addEventListener("focusin", nameTile);
  document.addEventListener("pointermove", pointAt);
  document.addEventListener("focusout", () => document.getElementById("values")?.remove());
  document.addEventListener("visibilitychange", follow);
  addEventListener("popstate", () => show(location.href, true).catch(() => location.reload()));
  document.addEventListener("DOMContentLoaded", () => {
    paint(remembered());
    const here = document.querySelector(".nav [aria-current]");
    if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.clientWidth / 2 + here.clientWidth / 2;
    follow();
    setInterval(tick, 1000);
  });
})();

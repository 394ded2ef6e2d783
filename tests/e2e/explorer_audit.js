// What is wrong with a page for eyes and fingers, in sentences. The argument is the least contrast of text.
(least) => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}`);
  for (const [name, selector] of [["heading", "main h1"], ["navigation", "nav[aria-label]"], ["search", "[role=search]"]] ) {
    if (!document.querySelector(selector)) faults.push(`no ${name}`);
  }
  for (const tag of ["h1", "main", "header", "footer"]) {
    const count = document.querySelectorAll(tag).length;
    if (count !== 1) faults.push(`${count} of ${tag}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) faults.push(`id ${id} twice`);
  const visible = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility === "visible";
  for (const node of document.querySelectorAll("a[href], button, input, select, [tabindex='0'], [role=img]")) {
    if (!visible(node)) continue;
    const name = node.ariaLabel || node.textContent.trim() || node.labels?.length || node.getAttribute("aria-labelledby");
    if (!name) faults.push(`no name: ${node.outerHTML.slice(0, 120)}`);
  }
  for (const link of document.querySelectorAll("a[href]")) {
    if (link.host !== window.location.host) faults.push(`leads away: ${link.href}`);
  }
  const channels = (colour) => {
    const found = colour.match(/^rgba?\(([\d.]+),? ([\d.]+),? ([\d.]+)(?:[,/ ]+([\d.]+))?\)$/);
    if (found) return [+found[1], +found[2], +found[3], found[4] === undefined ? 1 : +found[4]];
    const mixed = colour.match(/^color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)(?: \/ ([\d.]+))?\)$/);
    return mixed ? [mixed[1] * 255, mixed[2] * 255, mixed[3] * 255, mixed[4] === undefined ? 1 : +mixed[4]] : null;
  };
  const over = (top, below) => top.slice(0, 3).map((value, at) => value * top[3] + below[at] * (1 - top[3]));
  const ground = (node) => {
    const layers = [];
    for (let each = node; each; each = each.parentElement) {
      const colour = channels(getComputedStyle(each).backgroundColor);
      if (colour && colour[3] > 0) layers.push(colour);
      if (colour && colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [red, green, blue] = rgb.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node || !visible(node) || node.closest(".hidden, .skip, script, style")) continue;
    const style = getComputedStyle(node);
    const below = ground(node);
    const colour = channels(style.color);
    if (!colour) continue;
    let alpha = 1;
    for (let each = node; each; each = each.parentElement) alpha *= +getComputedStyle(each).opacity;
    const above = over([...colour.slice(0, 3), colour[3] * alpha], below);
    const [high, low] = [light(above), light(below)].sort((one, other) => other - one);
    const ratio = (high + 0.05) / (low + 0.05);
    const key = `${node.className}|${style.color}|${below}`;
    if (ratio < least && !seen.has(key)) {
      seen.add(key);
      faults.push(`contrast ${ratio.toFixed(2)} of "${walker.currentNode.data.trim().slice(0, 40)}" (${node.className})`);
    }
  }
  return faults;
};

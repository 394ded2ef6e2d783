// Runs before anything is painted: the colours that were chosen last, the key that leads to the search box.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return window.localStorage.getItem("trailboss.theme") || "system";
    } catch {
      return "system";
    }
  };
  let choice = stored();
  const apply = () => {
    root.dataset.theme = choice === "system" ? (system.matches ? "dark" : "light") : choice;
    window.dispatchEvent(new Event("trailboss-theme"));
  };
  apply();
  system.addEventListener("change", apply);
  window.addEventListener("storage", () => {
    choice = stored();
    apply();
    select();
  });
  const select = () => {
    const field = document.getElementById("theme");
    if (field) field.value = choice;
  };
  document.addEventListener("change", (event) => {
    if (event.target.id !== "theme") return;
    choice = event.target.value;
    try {
      window.localStorage.setItem("trailboss.theme", choice);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    apply();
  });
  // The header calls this as soon as it is there.
  window.trailbossHeader = () => {
    select();
    const strip = document.querySelector(".nav");
    const here = strip?.querySelector("[aria-current]");
    if (here) strip.scrollLeft = here.offsetLeft - strip.clientWidth / 2 + here.clientWidth / 2;
  };
  document.addEventListener("keydown", (event) => {
    const field = document.getElementById("search");
    const typing = event.target.closest?.("input, select, textarea, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && field) {
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "Escape" && event.target === field) {
      field.blur();
    }
  });
})();

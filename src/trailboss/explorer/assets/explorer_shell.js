// What the frame of a page does: live numbers in its header and footer, paging in place, visibility, the theme.

export default {
  props: { live: Object },
  data: () => ({ seen: performance.now() }),
  mounted() {
    this.abort = new AbortController();
    const { signal } = this.abort;
    document.addEventListener("visibilitychange", () => this.$emit("seen", !document.hidden), { signal });
    document.addEventListener("click", this.follow, { signal });
    document.addEventListener("submit", this.submit, { signal });
    document.addEventListener("change", this.choose, { signal });
    window.addEventListener("popstate", () => this.$emit("go", window.location.search), { signal });
    this.ticking = setInterval(this.tick, 1000);
    this.paint();
    if (document.hidden) this.$emit("seen", false);
  },
  unmounted() {
    this.abort.abort();
    clearInterval(this.ticking);
  },
  watch: {
    live(now, before) {
      if (now.height !== before.height) this.seen = performance.now();
      this.paint();
    },
  },
  methods: {
    paint() {
      for (const [name, value] of Object.entries(this.live.texts)) {
        for (const place of document.querySelectorAll(`[data-live="${name}"]`)) {
          if (place.textContent !== value) place.textContent = value;
        }
      }
      this.tick();
    },
    tick() {
      const beat = document.querySelector(".beat");
      if (!beat) return;
      const seconds = Math.floor((performance.now() - this.seen) / 1000);
      beat.dataset.state = this.live.failed ? "failed" : seconds > this.live.quiet ? "quiet" : "live";
      beat.title = this.live.failed || (seconds > this.live.quiet ? `no block for ${seconds} s` : "blocks are coming in");
      beat.ariaLabel = beat.title;
    },
    // Pages and filters of a list change in place; the address keeps them, so that back and forward work.
    go(search) {
      window.history.pushState({}, "", window.location.pathname + search);
      this.$emit("go", search);
    },
    follow(event) {
      const anchor = event.target.closest?.("a[data-here]");
      if (!anchor || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const url = new URL(anchor.href);
      if (url.pathname !== window.location.pathname) return;
      event.preventDefault();
      this.go(url.search);
    },
    submit(event) {
      if (!event.target.matches("form[data-here]")) return;
      event.preventDefault();
      const told = [...new FormData(event.target)].filter(([, value]) => value !== "");
      this.go(told.length ? `?${new URLSearchParams(told)}` : "");
    },
    choose(event) {
      if (event.target.matches("select[data-submits]")) event.target.form.requestSubmit();
    },
  },
  template: `<span hidden></span>`,
};

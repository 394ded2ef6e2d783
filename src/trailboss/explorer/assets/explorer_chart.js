// A chart whose colours are those of the page, and change with them. The library is loaded after the page's text is up.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function theme() {
  const text = css("text");
  const dim = css("dim");
  const line = css("line");
  const axis = {
    axisLine: { show: true, lineStyle: { color: line } },
    axisTick: { show: false },
    axisLabel: { color: dim, fontSize: 11 },
    splitLine: { lineStyle: { color: line, opacity: 0.6 } },
    nameTextStyle: { color: dim, fontSize: 11 },
  };
  return {
    color: [1, 2, 3, 4].map((at) => css(`series-${at}`)),
    backgroundColor: "transparent",
    textStyle: { color: text, fontFamily: css("sans") },
    legend: { textStyle: { color: dim, fontSize: 12 }, pageTextStyle: { color: dim }, inactiveColor: line },
    tooltip: {
      backgroundColor: css("surface"),
      borderColor: css("strong"),
      textStyle: { color: text, fontSize: 12 },
      axisPointer: { lineStyle: { color: css("strong") }, crossStyle: { color: css("strong") } },
    },
    categoryAxis: { ...axis, splitLine: { show: false } },
    valueAxis: { ...axis, axisLine: { show: false } },
    logAxis: axis,
    line: { symbol: "none", symbolSize: 5, lineStyle: { width: 1.5 } },
    bar: { itemStyle: { borderRadius: 0 } },
  };
}

// Whole numbers with separators, short enough for an axis.
function short(value) {
  const size = Math.abs(value);
  for (const [unit, word] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (size >= unit) return `${+(value / (unit === 1e4 ? 1e3 : unit)).toPrecision(3)}${word}`;
  }
  return Number.isInteger(value) ? value.toLocaleString("en-US") : `${+value.toPrecision(3)}`;
}

export default {
  props: { options: Object, label: String },
  async mounted() {
    const { echarts } = await import("nicegui-echart");
    if (!this.$el.isConnected) return;
    this.chart = echarts.init(this.$el, theme(), { renderer: "canvas" });
    this.chart.on("click", (event) => event.data?.href && window.location.assign(event.data.href));
    this.repaint = () => this.chart.setTheme(theme());
    window.addEventListener("trailboss-theme", this.repaint);
    this.sizes = new ResizeObserver(() => this.chart.resize());
    this.sizes.observe(this.$el);
    this.update_chart();
  },
  beforeUnmount() {
    window.removeEventListener("trailboss-theme", this.repaint);
    this.sizes?.disconnect();
    this.chart?.dispose();
  },
  watch: {
    options() {
      this.update_chart();
    },
  },
  methods: {
    update_chart() {
      if (!this.chart) return;
      const axes = [].concat(this.options.yAxis || []);
      const yAxis = axes.map((axis) => ({ ...axis, axisLabel: { formatter: short, ...axis.axisLabel } }));
      const tooltip = { trigger: "axis", confine: true, valueFormatter: (value) => (value === null || value === undefined ? "·" : value.toLocaleString("en-US")), ...this.options.tooltip };
      this.chart.setOption({ animation: false, ...this.options, yAxis, tooltip }, { notMerge: true });
      this.$el.dataset.drawn = "yes";
    },
  },
  template: `<div class="nicegui-echart" role="img" :aria-label="label"></div>`,
};

// One section of a page, drawn from data. Every text goes through Vue's text interpolation: nothing is parsed as HTML.

const COPY = "M5 1h8a2 2 0 0 1 2 2v8h-2V3H5V1zM3 5h6a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H3a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2zm0 2v6h6V7H3z";
const DONE = "M13.5 3 6 10.5 2.5 7 1 8.5l5 5 9-9z";

async function toClipboard(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  area.style.cssText = "position:fixed;opacity:0";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

const CopyButton = {
  props: { text: String },
  data: () => ({ done: false }),
  computed: {
    path() {
      return this.done ? DONE : COPY;
    },
    label() {
      return this.done ? "Copied" : `Copy ${this.text.length > 80 ? "it" : this.text}`;
    },
  },
  methods: {
    async copy() {
      await toClipboard(this.text);
      this.done = true;
      setTimeout(() => (this.done = false), 1200);
    },
  },
  template: `<button type="button" class="copy" :class="{copied: done}" :aria-label="label" title="Copy" @click="copy">
    <svg viewBox="0 0 16 16" aria-hidden="true"><path fill="currentColor" :d="path" /></svg></button>`,
};

const Cells = {
  props: { content: Array },
  components: { CopyButton },
  template: `<template v-for="(cell, at) in content" :key="at"><span :class="['cell', cell.copy ? 'pair' : '', cell.kind]"
    ><a v-if="cell.href" :href="cell.href" :title="cell.note || undefined">{{ cell.text }}</a
    ><span v-else :title="cell.note || undefined">{{ cell.text }}</span
    ><copy-button v-if="cell.copy" :text="cell.copy" /></span></template>`,
};

const PagerBar = {
  props: { pager: Object, title: String },
  template: `<nav class="pager" :aria-label="'Pages of ' + title">
    <span class="words" aria-live="polite">{{ pager.words }}</span>
    <template v-if="pager.first || pager.previous || pager.following || pager.last">
      <template v-for="[name, href] in [['First', pager.first], ['Previous', pager.previous], ['Next', pager.following], ['Last', pager.last]]">
        <a v-if="href" :href="href" data-here>{{ name }}</a><span v-else class="off" aria-disabled="true">{{ name }}</span>
      </template>
    </template></nav>`,
};

const FilterForm = {
  props: { filters: Array, title: String },
  template: `<form class="filters" method="get" data-here :aria-label="'Choose among ' + title">
    <label v-for="field in filters" :key="field.name">{{ field.label }}
      <select v-if="field.options" :name="field.name" :value="field.value || ''" data-submits>
        <option v-for="[value, label] in field.options" :key="value" :value="value">{{ label }}</option>
      </select>
      <input v-else :name="field.name" :value="field.value || ''" :placeholder="field.hint" autocomplete="off"
        spellcheck="false" :inputmode="field.numeric ? 'numeric' : undefined" :class="{numeric: field.numeric}" />
    </label>
    <button class="button" type="submit">Show</button></form>`,
};

const Tables = {
  props: { model: Object },
  components: { Cells, CopyButton, PagerBar, FilterForm },
  template: `<filter-form v-if="model.filters" :filters="model.filters" :title="model.title" />
    <p v-if="!model.rows.length && model.empty" class="empty">{{ model.empty }}<span v-if="model.command" class="command"><code>{{ model.command }}</code><copy-button :text="model.command" /></span></p>
    <div v-if="model.rows.length" class="scroll" tabindex="0" role="region" :aria-label="model.title">
      <table :class="{stack: !model.scrolls}"><thead><tr><th v-for="column in model.columns" :class="{right: column.right}" scope="col">{{ column.label }}</th></tr></thead>
      <tbody><tr v-for="row in model.rows" :key="row.key" :class="row.tone">
        <td v-for="(content, at) in row.cells" :data-label="model.columns[at].bare ? undefined : model.columns[at].label"
          :class="{right: model.columns[at].right, wide: model.columns[at].wide, void: content.length === 1 && content[0].text === '·'}"><cells :content="content" /></td>
      </tr></tbody></table></div>
    <pager-bar v-if="model.pager" :pager="model.pager" :title="model.title" />`,
};

const FactList = {
  props: { model: Object },
  components: { Cells },
  template: `<dl class="facts"><div v-for="row in model.rows" :key="row.label"><dt>{{ row.label }}</dt><dd><cells :content="row.content" /></dd></div></dl>`,
};

const StatStrip = {
  props: { model: Object },
  components: { Cells },
  template: `<dl class="stats"><div v-for="item in model.items" :key="item.label"><dt>{{ item.label }}</dt>
    <dd class="value"><cells :content="item.content" /></dd>
    <dd v-if="item.share !== undefined && item.share !== null" class="meter" aria-hidden="true"><i :style="{width: Math.min(item.share, 100) + '%'}"></i></dd>
    <dd v-if="item.hint" class="hint inline"><cells :content="item.hint" /></dd></div></dl>`,
};

const StepList = {
  props: { model: Object },
  components: { Cells, PagerBar },
  template: `<ol class="steps"><li v-for="(step, at) in model.steps" :key="at" :class="step.tone">
    <span class="when"><cells :content="step.when" /></span><span class="what inline"><cells :content="step.content" /></span></li></ol>
    <pager-bar v-if="model.pager" :pager="model.pager" :title="model.title" />`,
};

const SourceCode = {
  props: { model: Object },
  computed: {
    marked() {
      return new Set(this.model.marked || []);
    },
    first() {
      return this.model.first ?? 1;
    },
  },
  template: `<div class="code" tabindex="0" role="region" :aria-label="model.title"><ol>
    <li v-for="(line, at) in model.lines" :key="at" :class="{marked: marked.has(at + first)}"><span class="line">{{ at + first }}</span
    ><span class="text">{{ line }}</span></li></ol></div>`,
};

const HeatGrid = {
  props: { model: Object },
  data: () => ({ at: -1, told: -1 }),
  computed: {
    tiles() {
      const { cells, path, now } = this.model;
      return cells.map(([first, last, count, level]) => ({
        href: `${path}?from=${first}&to=${last}`,
        label: `${first === last ? `height ${first}` : `heights ${first} to ${last}`}: ${count.toLocaleString("en-US")} timer${count === 1 ? "" : "s"}`,
        level,
        now: first <= now && now <= last,
      }));
    },
    rows() {
      const { cells, columns } = this.model;
      const starts = Array.from({ length: Math.ceil(cells.length / columns) }, (_, row) => row * columns);
      return starts.map((from) => ({ from, label: cells[from][0], tiles: this.tiles.slice(from, from + columns) }));
    },
    current() {
      return this.at >= 0 && this.at < this.tiles.length ? this.at : Math.max(this.tiles.findIndex((tile) => tile.now), 0);
    },
    template() {
      return { gridTemplateColumns: `74px repeat(${this.model.columns}, minmax(9px, 1fr))` };
    },
  },
  methods: {
    move(event) {
      const { columns, cells } = this.model;
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
      let next = this.current;
      if (event.key in steps) next += steps[event.key];
      else if (event.key === "Home") next = 0;
      else if (event.key === "End") next = cells.length - 1;
      else return;
      event.preventDefault();
      if (next < 0 || next >= cells.length) return;
      this.at = next;
      this.$nextTick(() => this.$refs.grid.querySelector(`[data-at="${next}"]`)?.focus());
    },
  },
  template: `<div class="heat"><div ref="grid" class="rows" role="group" :aria-label="model.title + '. Arrow keys move, Enter opens the timers of the heights.'" @keydown="move">
    <div v-for="row in rows" :key="row.from" class="row" :style="template"><span class="label">{{ row.label }}</span>
      <a v-for="(tile, at) in row.tiles" :key="at" :href="tile.href" :aria-label="tile.label" :data-at="row.from + at"
        :class="['tile', 'level-' + tile.level, {now: tile.now}]" :tabindex="row.from + at === current ? 0 : -1"
        @mouseenter="told = row.from + at" @focus="told = row.from + at"></a></div></div></div>
    <div class="tip" aria-hidden="true">{{ told < 0 || told >= tiles.length ? model.note : tiles[told].label }}</div>
    <div class="legend" aria-hidden="true"><span v-for="[level, words] in model.scale"><i :class="'level-' + level"></i>{{ words }}</span></div>`,
};

const NoticeBox = {
  props: { model: Object },
  components: { Cells },
  template: `<p v-if="model.content" class="inline"><cells :content="model.content" /></p>`,
};

export default {
  props: { model: Object },
  components: { Cells, CopyButton, Tables, FactList, StatStrip, StepList, SourceCode, HeatGrid, NoticeBox },
  computed: {
    heading() {
      return `section-${this.model.key}`;
    },
    part() {
      return { table: "tables", facts: "fact-list", stats: "stat-strip", steps: "step-list", code: "source-code", heatmap: "heat-grid", notice: "notice-box" }[
        this.model.type
      ];
    },
    isNotice() {
      return this.model.type === "notice";
    },
  },
  template: `<section v-if="isNotice" :class="['section', 'notice', model.tone]" :role="model.tone === 'bad' ? 'alert' : undefined">
      <h2 v-if="model.title">{{ model.title }}</h2><notice-box :model="model" /></section>
    <div v-else-if="model.type === 'heading'" class="head"><h1>{{ model.title }}</h1>
      <div v-if="model.subject" class="subject"><cells :content="model.subject" /></div></div>
    <footer v-else-if="model.type === 'foot'"><div class="foot"><span v-for="part in model.parts">{{ part.label }}
      <span :class="part.kind" :data-live="part.name">{{ part.text }}</span></span></div></footer>
    <section v-else class="section" :aria-labelledby="model.title ? heading : undefined">
      <div v-if="model.title" class="title"><h2 :id="heading">{{ model.title }}</h2>
        <span v-if="model.note && model.type !== 'heatmap'" class="note">{{ model.note }}</span>
        <copy-button v-if="model.copy" :text="model.copy" />
        <span v-if="model.more" class="more"><cells :content="[model.more]" /></span></div>
      <div v-if="model.type === 'chart'" :class="['chart', {tall: model.tall}]"><slot /></div>
      <component v-else :is="part" :model="model" /></section>`,
};

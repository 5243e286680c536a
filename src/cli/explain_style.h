#pragma once

namespace lrnn::cli {

constexpr const char* kExplainStyle = R"html(<style>
#word { width: 100%; font: 1rem "DejaVu Sans Mono", monospace; box-sizing: border-box; }
.walk { display: flex; gap: 0.5rem; align-items: center; margin-top: 0.4rem; }
.walk button { font-size: 1.1rem; line-height: 1; padding: 0.35rem 0.9rem; cursor: pointer; }
#slider { flex: 1; min-width: 0; }
#letters { font: 1rem/1.8 "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
#letters b { background: #0072b2; color: #fff; padding: 0.1rem 0.25rem; border-radius: 3px; }
#letters .later { color: var(--soft); }
.state.here circle { fill: #e69f00; } .state.here text { fill: #000; font-weight: bold; }
.matrices { display: flex; flex-wrap: wrap; gap: 1rem; }
.matrices figure { margin: 0.4rem 0; } .matrices svg { display: block; }
.bad { color: #d55e00; } .bad:empty { display: none; } .arrow { fill: var(--axis); }
.scroll { overflow-x: auto; }
#heads { display: grid; gap: 0 2rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); }
.head { border-top: 1px solid var(--rule); padding: 0.5rem 0 0.7rem; min-width: 0; }
.head.wide { grid-column: 1 / -1; }
.head h3 { font-size: 0.95rem; margin: 0 0 0.3rem; } .head h3 span { font-weight: normal; }
.head p { color: var(--soft); font-size: 0.85rem; margin: 0.3rem 0 0; }
.equation { display: flex; align-items: center; gap: 0.3rem; overflow-x: auto; padding-bottom: 2px; }
.equation figure { margin: 0; flex: none; }
.equation figcaption { font-size: 0.75rem; text-align: center; white-space: nowrap; }
.grid { display: inline-grid; grid-template-columns: repeat(var(--n), var(--cell)); gap: 1px;
  padding: 2px; border: solid var(--axis); border-width: 0 1.5px; border-radius: 5px; }
.grid i { height: var(--high); display: grid; place-items: center; color: var(--ink);
  font: normal var(--font)/1 "DejaVu Sans", Verdana, sans-serif; font-variant-numeric: tabular-nums; }
.grid .zero { color: var(--soft); background: color-mix(in srgb, var(--rule) 30%, transparent); }
.grid .changed { outline: 2px solid var(--ink); outline-offset: -2px; }
.size4 { --cell: 2.1rem; --high: 1.7rem; --font: 0.72rem; }
.size6 { --cell: 2rem; --high: 1.6rem; --font: 0.75rem; }
.size12 { --cell: 1.45rem; --high: 1.3rem; --font: 0.62rem; }
.size0 { --cell: 0.62rem; --high: 0.62rem; --font: 0; }
@media (max-width: 36rem) {
  .size4 { --cell: 1.95rem; --high: 1.6rem; --font: 0.68rem; }
  .size6 { --cell: 1.25rem; --high: 1.25rem; --font: 0.6rem; }
  .size12 { --cell: 0.9rem; --high: 0.95rem; --font: 0.5rem; }
  .equation { gap: 0.2rem; } .size0 { --cell: 0.4rem; --high: 0.4rem; }
}
</style>
)html";

}  // namespace lrnn::cli

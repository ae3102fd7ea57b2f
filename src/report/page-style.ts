// SPDX-License-Identifier: Apache-2.0

/** Colours as custom properties of the page, light and dark; the blue and the orange are told apart in every kind of colour vision. */
export const PAGE_COLORS = { ink: "var(--ink)", line: "var(--line)", bar: "var(--bar)", bad: "var(--bad)" };

export const PAGE_STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b6470; --line: #d9dde2; --back: #fff; --panel: #f6f7f9; --bar: #2f6fb3; --bad: #c2570c; --focus: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa4b0; --line: #343b44; --back: #14171a; --panel: #1d2126; --bar: #6ba6e6; --bad: #f0914a; --focus: #8ab4f8; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.25rem; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .2rem; } h3 { font-size: .85rem; font-weight: 600; margin: 0 0 .5rem; }
p { margin: .2rem 0 .6rem; } .soft, .note { color: var(--soft); } .note { font-size: .87rem; max-width: 60rem; }
.notice { border-left: 3px solid var(--bad); background: var(--panel); padding: .5rem .8rem; margin: .8rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(10.5rem, 100%), 1fr)); gap: 1px; margin: 1.2rem 0 0; border: 1px solid var(--line); }
.figures div { box-shadow: 0 0 0 1px var(--line); padding: .7rem .85rem; } .figures dt { font-size: .82rem; color: var(--soft); }
.figures dd { margin: 0; } .figures .value { font-size: 1.45rem; line-height: 1.3; } .figures .note { font-size: .8rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1.6rem 2rem; margin-top: 1.8rem; }
figure { margin: 0; min-width: 0; } figure svg { display: block; width: 100%; max-width: 36rem; height: auto; } .narrow { display: none; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-width: 1px 0; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; } th, td { padding: .35rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); overflow-wrap: normal; }
tr:last-child td { border-bottom: 0; } th { font-weight: 600; background: var(--panel); white-space: nowrap; } .number { text-align: right; white-space: nowrap; }
td bdi { overflow-wrap: break-word; display: inline-block; max-width: 24rem; } td.long bdi { min-width: 11rem; } td.short { white-space: nowrap; } #rollouts td bdi { max-width: 20rem; } #rollouts th, #rollouts td { padding: .35rem .5rem; }
th button { all: unset; cursor: pointer; font-weight: 600; } th button::after { content: " \\2195"; color: var(--soft); }
th[aria-sort=ascending] button::after { content: " \\2191"; } th[aria-sort=descending] button::after { content: " \\2193"; }
:focus-visible, th button:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
details { margin-top: .15rem; } summary { cursor: pointer; color: var(--soft); } details p { white-space: pre-wrap; margin: .2rem 0; min-width: 14rem; max-width: 34rem; }
.filter { display: flex; flex-wrap: wrap; gap: .5rem .8rem; align-items: center; margin: .6rem 0; } .filter[hidden] { display: none; }
.filter input, .filter select { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); padding: .3rem .5rem; min-width: 0; max-width: 100%; }
.skip { position: absolute; left: -999rem; } .skip:focus { left: 1rem; top: .5rem; background: var(--back); padding: .3rem .6rem; z-index: 1; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .82rem; }
@media (max-width: 40rem) { body { padding: .9rem; } .wide { display: none !important; } .narrow { display: block !important; } .figures { grid-template-columns: 1fr 1fr; } .figures .value { font-size: 1.2rem; } td bdi, #rollouts td bdi { max-width: 13rem; } }
@media print { .filter, .skip { display: none; } }
`;

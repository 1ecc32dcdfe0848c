/**
 * Style sheet of the public pages, for light and dark, phone and desktop, and a workspace's brand colour.
 *
 * Called by `document.ts`. Loads no fonts or images. The brand colour is used only behind button text, where contrast can be ensured;
 * page text keeps its colour. Pure.
 * Standards: WCAG 2.2 §1.4.3 (text contrast 4.5:1), §1.4.11 (borders 3:1), §2.4.7 (focus), §2.5.8 (targets).
 */

export const STYLE = `
:root{color-scheme:light dark;--ground:#f3f4f6;--paper:#fff;--ink:#1b1f23;--soft:#535b63;--line:#757d86;
--bad:#b01c14;--good:#11602d;--brand:#1d5fa8;--on-brand:#fff}
@media (prefers-color-scheme:dark){:root{--ground:#131619;--paper:#1d2125;--ink:#eceff1;--soft:#adb5bd;--line:#8b949d;
--bad:#ffb4ab;--good:#8fd6a5}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:flex;flex-direction:column;align-items:center;background:var(--ground);
color:var(--ink);font:1.0625rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
header,main,footer{width:100%;max-width:36rem;padding:0 1.25rem;overflow-wrap:anywhere}
header{padding-top:clamp(1.25rem,6vh,4rem);padding-bottom:1rem}
header p{margin:0;padding-left:.75rem;border-left:.375rem solid var(--brand);font-weight:600}
main{background:var(--paper);padding-top:1.75rem;padding-bottom:2rem}
footer{padding-top:1rem;padding-bottom:2rem;color:var(--soft);font-size:.875rem}
footer p{margin:0;white-space:pre-line}
@media (min-width:40rem){main{border-radius:.75rem;padding-left:2.25rem;padding-right:2.25rem}
header,footer{padding-left:2.25rem;padding-right:2.25rem}}
h1{margin:0 0 .75rem;font-size:1.625rem;line-height:1.25}
h2{margin:2rem 0 .5rem;font-size:1.125rem;line-height:1.35}
p{margin:0 0 1rem}
a{color:inherit;text-underline-offset:.15em}
.soft{color:var(--soft)}
.archive{margin:0 0 1.5rem;padding:0;list-style:none}
.archive li{padding:.625rem 0;border-bottom:1px solid var(--ground)}
.archive a{display:block;font-weight:600;padding:.125rem 0}
.good,.bad{margin:0 0 1.25rem;padding:.75rem 1rem;border-left:.25rem solid;background:var(--ground)}
.good{color:var(--good)}.bad{color:var(--bad)}
.bad p{margin:0 0 .25rem;font-weight:600}.bad ul{margin:0;padding-left:1.25rem}.bad a{color:inherit}
form{margin:0}
form+p{margin-top:1.25rem}
main:first-child{margin-top:clamp(1.25rem,6vh,4rem)}
fieldset{margin:0 0 1.25rem;padding:0;border:0}
legend{padding:0;margin-bottom:.25rem;font-weight:600}
.field{margin-bottom:1.25rem}
.field>label:not(.check){display:block;margin-bottom:.25rem;font-weight:600}
.field>label small,legend small{font-weight:400;color:var(--soft)}
input,select{font:inherit;color:inherit}
input:not([type=checkbox]),select{width:100%;min-height:2.875rem;padding:.5rem .75rem;border:1px solid var(--line);
border-radius:.375rem;background:var(--paper)}
[aria-invalid=true]{border-color:var(--bad)!important;border-width:2px!important}
.fault{margin:.25rem 0 0;color:var(--bad)}
.check{display:flex;gap:.75rem;align-items:flex-start;padding:.625rem 0}
.field>.check{padding:0}
.check input{flex:none;width:1.375rem;height:1.375rem;margin:.1rem 0 0;accent-color:var(--brand)}
.check span span{display:block;color:var(--soft);font-size:.9375rem}
button{font:inherit;font-weight:600;min-height:2.875rem;padding:.5rem 1.5rem;border:1px solid var(--line);border-radius:.375rem;
background:var(--brand);color:var(--on-brand);cursor:pointer}
button.second{background:var(--paper);color:var(--ink)}
button:hover{text-decoration:underline;text-underline-offset:.2em}
:focus-visible{outline:3px solid var(--ink);outline-offset:3px}
[hidden]{display:none!important}
@media (max-width:26rem){button{width:100%}}
`

const HEX_COLOR = /^#[0-9a-f]{6}$/

/** @param color `#rrggbb`, lower case; anything else means the default @returns rules to append to the style sheet */
export function brandStyle(color: string | null): string {
  if (color === null || !HEX_COLOR.test(color)) return ''
  return `:root{--brand:${color};--on-brand:${isLight(color) ? '#000' : '#fff'}}`
}

/** Whether black text is more readable on it than white. */
function isLight(color: string): boolean {
  // Contrast with black is (L + 0.05) / 0.05, with white 1.05 / (L + 0.05); they are equal where L + 0.05 = sqrt(0.0525).
  return luminance(color) > Math.sqrt(0.0525) - 0.05
}

/** Relative luminance, 0 to 1 (WCAG 2.2). */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

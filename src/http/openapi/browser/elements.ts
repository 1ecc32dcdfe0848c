/** Builds elements without markup in strings, which the pages' policy refuses (Trusted Types). */

type Child = Node | string | undefined

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Readonly<Record<string, string | boolean>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes))
    if (value !== false) made.setAttribute(attribute, value === true ? '' : value)
  made.append(...children.filter(child => child !== undefined))
  return made
}

const SVG = 'http://www.w3.org/2000/svg'

/** @param path of a 24 by 24 icon drawn in strokes */
export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg')
  for (const [name, value] of Object.entries({
    viewBox: '0 0 24 24',
    width: '18',
    height: '18',
    'aria-hidden': 'true',
  }))
    svg.setAttribute(name, value)
  const shape = document.createElementNS(SVG, 'path')
  shape.setAttribute('d', path)
  svg.append(shape)
  return svg
}

/** Storage may be forbidden; then a choice lasts as long as the page. */
export function remember(store: 'local' | 'session', key: string, value: string): void {
  try {
    const storage = store === 'local' ? localStorage : sessionStorage
    if (value === '') storage.removeItem(key)
    else storage.setItem(key, value)
  } catch {
    // Not remembered.
  }
}

export function recall(store: 'local' | 'session', key: string): string {
  try {
    return (store === 'local' ? localStorage : sessionStorage).getItem(key) ?? ''
  } catch {
    return ''
  }
}

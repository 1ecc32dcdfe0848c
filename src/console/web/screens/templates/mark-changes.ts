/**
 * Marks where two renderings of a mail differ, by outlines in both.
 *
 * Elements are compared from the outside in: of equal ones nothing is marked, and what is marked is the smallest element that holds a change.
 * Documents are parsed without being loaded or run. The console's policy allows no inline styles, so attributes have another name meanwhile and
 * style sheets are taken out.
 */

export interface MarkedRenderings {
  /** HTML with what is no longer there, or was different. */
  readonly before: string
  /** HTML with what is new, or is different now. */
  readonly after: string
  /** Marks in `after`, and in `before` where nothing took the place. */
  readonly changes: number
}

interface Side {
  readonly color: string
  readonly style: 'solid' | 'dashed'
}

const BEFORE: Side = { color: '#c0392b', style: 'dashed' }
const AFTER: Side = { color: '#1e8449', style: 'solid' }
const STYLE = 'data-mail-style'
/** Beyond this many comparisons of children, their parent is marked as a whole. */
const MAX_COMPARISONS = 250_000

export function markChanges(before: string, after: string): MarkedRenderings {
  const [old, now] = [new Rendering(before), new Rendering(after)]
  const changes = compare(old.body, now.body)
  return { before: old.toHtml(), after: now.toHtml(), changes }
}

const SHEETS = /<style\b[^]*?<\/style\s*>/gi

/** A document whose styles are put aside. */
class Rendering {
  readonly body: Element
  private readonly document: Document
  private readonly sheets: string[]

  constructor(html: string) {
    this.sheets = html.match(SHEETS) ?? []
    const without = html.replace(SHEETS, '<!--mail-sheet-->').replaceAll(' style=', ` ${STYLE}=`)
    this.document = new DOMParser().parseFromString(without, 'text/html')
    this.body = this.document.body
  }

  toHtml(): string {
    const sheets = this.sheets.values()
    const html = this.document.documentElement.outerHTML
      .replaceAll('<!--mail-sheet-->', () => sheets.next().value ?? '')
      .replaceAll(` ${STYLE}=`, ' style=')
    return `<!doctype html>${html}`
  }
}

/** @returns how many changes were marked */
function compare(before: Element, after: Element): number {
  if (before.outerHTML === after.outerHTML) return 0
  const [old, now] = [[...before.children], [...after.children]]
  if (shapeOf(before) !== shapeOf(after) || old.length * now.length > MAX_COMPARISONS)
    return markBoth(before, after)
  let changes = 0
  let [oldAt, nowAt] = [0, 0]
  for (const [oldNext, nowNext] of [...sameChildren(old, now), [old.length, now.length] as const]) {
    changes += compareGap(old.slice(oldAt, oldNext), now.slice(nowAt, nowNext))
    oldAt = oldNext + 1
    nowAt = nowNext + 1
  }
  return changes
}

/** Children between two that are equal. */
function compareGap(old: readonly Element[], now: readonly Element[]): number {
  const arePairs = old.length === now.length && old.every(({ tagName }, at) => tagName === now[at]?.tagName)
  if (arePairs)
    return old.reduce((sum, element, at) => {
      const other = now[at]
      return other ? sum + compare(element, other) : sum
    }, 0)
  for (const element of old) mark(element, BEFORE)
  for (const element of now) mark(element, AFTER)
  return Math.max(old.length, now.length)
}

/** The tag with its attributes, and the text directly inside. */
function shapeOf(element: Element): string {
  const texts = [...element.childNodes].flatMap(node =>
    node.nodeType === Node.TEXT_NODE ? [node.nodeValue?.trim() ?? ''] : [],
  )
  const shell = element.cloneNode(false) as Element
  return `${shell.outerHTML} ${texts.filter(text => text !== '').join(' ')}`
}

/** Longest common subsequence. @returns positions of equal children, ascending */
function sameChildren(old: readonly Element[], now: readonly Element[]): [number, number][] {
  const [a, b] = [old.map(({ outerHTML }) => outerHTML), now.map(({ outerHTML }) => outerHTML)]
  const width = b.length + 1
  // Length of what is common from (i, j) on.
  const common = new Uint32Array((a.length + 1) * width)
  const at = (i: number, j: number) => common[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const pairs: [number, number][] = []
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length)
    if (a[i] === b[j]) pairs.push([i++, j++])
    else if (at(i + 1, j) >= at(i, j + 1)) i += 1
    else j += 1
  return pairs
}

function markBoth(before: Element, after: Element): number {
  mark(before, BEFORE)
  mark(after, AFTER)
  return 1
}

function mark(element: Element, { color, style }: Side): void {
  const own = element.getAttribute(STYLE)
  const outline = `outline: 2px ${style} ${color} !important; outline-offset: -2px !important`
  element.setAttribute(STYLE, own === null ? outline : `${own}; ${outline}`)
}

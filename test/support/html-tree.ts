/**
 * HTML as a parser that is not ours reads it (parse5, which follows the standard as browsers do), and what it reads of a mail once
 * links, pixel and footer are taken out again.
 */
import { parse, type DefaultTreeAdapterTypes as Tree } from 'parse5'

/** Findings that the author did not write. */
export interface Additions {
  readonly pixels: number
  readonly footers: number
  /** URLs of links, in the order in which they stand. */
  readonly links: readonly string[]
}

export interface AdditionSigns {
  /** The target of a link of ours; undefined for other links. */
  readonly followed: (href: string) => string | undefined
  readonly isPixel: (src: string) => boolean
  /** A text that stands in the footer only. */
  readonly footerText: string
}

/** Elements that a browser opens again for what follows, where they were never closed. */
const FORMATTING = new Set('a b big code em font i nobr s small strike strong tt u'.split(' '))

/** One line for each node; adjacent texts are one. */
export function treeOf(html: string, signs: AdditionSigns): { tree: string; additions: Additions } {
  const lines: string[] = []
  const additions = { pixels: 0, footers: 0, links: [] as string[] }
  let text = ''
  const flush = () => {
    if (text !== '') lines.push(JSON.stringify(text))
    text = ''
  }
  const open = (line: string) => {
    flush()
    lines.push(line)
  }
  const visit = (node: Tree.ChildNode): void => {
    if (node.nodeName === '#text') text += (node as Tree.TextNode).value
    else if (node.nodeName === '#comment') open(`<!--${commentOf((node as Tree.CommentNode).data)}`)
    else if (node.nodeName === '#documentType') open('doctype')
    else visitElement(node as Tree.Element)
  }
  // What Outlook reads of a comment as HTML.
  const commentOf = (data: string) =>
    /^\[if.*?\]>/.test(data)
      ? data.replace(
          /(<(?:a|area|v:[a-z]+)\s(?:[^<>]*?\s)?href=)(["'])(.*?)\2/gs,
          (_, before: string, quote: string, url: string) => {
            const written = url.replaceAll('&amp;', '&')
            const target = signs.followed(written)
            if (target !== undefined) additions.links.push(target)
            return `${before}${quote}${trimmed(target ?? written)}${quote}`
          },
        )
      : data
  const visitElement = (element: Tree.Element): void => {
    if (isFooter(element, signs)) {
      additions.footers += 1
      return
    }
    if (isPixel(element, signs)) {
      additions.pixels += 1
      return
    }
    const children = 'content' in element ? (element as Tree.Template).content.childNodes : element.childNodes
    if (
      FORMATTING.has(element.tagName) &&
      children.length > 0 &&
      children.every(child => isAdded(child, signs))
    ) {
      children.forEach(visit)
      return
    }
    const attributes = element.attrs.map(({ name: local, prefix, value }) => {
      const name = prefix === undefined || prefix === '' ? local : `${prefix}:${local}`
      const isLink = (element.tagName === 'a' || element.tagName === 'area') && name === 'href'
      if (!isLink) return `${name}=${JSON.stringify(value)}`
      const url = signs.followed(value)
      if (url !== undefined) additions.links.push(url)
      return `href=${JSON.stringify(trimmed(url ?? value))}`
    })
    open(`<${[element.tagName, ...attributes.sort()].join(' ')}`)
    children.forEach(visit)
    open('>')
  }
  parse(html, { scriptingEnabled: false }).childNodes.forEach(visit)
  flush()
  return { tree: lines.join('\n'), additions }
}

/** As browsers read a URL. */
export function trimmed(href: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what browsers drop
  const ends = /^[\x00-\x20]+|[\x00-\x20]+$/g
  return href
    .replace(ends, '')
    .replace(/[\t\n\r]/g, '')
    .replaceAll(' ', '%20')
}

function isAdded(node: Tree.ChildNode, signs: AdditionSigns): boolean {
  if (!('tagName' in node)) return false
  return (
    isPixel(node, signs) ||
    isFooter(node, signs) ||
    (FORMATTING.has(node.tagName) &&
      node.childNodes.length > 0 &&
      node.childNodes.every(child => isAdded(child, signs)))
  )
}

function isPixel({ tagName, attrs }: Tree.Element, { isPixel }: AdditionSigns): boolean {
  return tagName === 'img' && attrs.some(({ name, value }) => name === 'src' && isPixel(value))
}

/** The innermost table that holds its text. */
function isFooter(element: Tree.Element, { footerText }: AdditionSigns): boolean {
  return (
    element.tagName === 'table' &&
    textOf(element).includes(footerText) &&
    !element.childNodes.some(child => holdsTable(child, footerText))
  )
}

function holdsTable(node: Tree.ChildNode, footerText: string): boolean {
  if (!('childNodes' in node)) return false
  if (node.nodeName === 'table' && textOf(node).includes(footerText)) return true
  return node.childNodes.some(child => holdsTable(child, footerText))
}

function textOf(node: Tree.ChildNode): string {
  if ('childNodes' in node) return node.childNodes.map(textOf).join('')
  return node.nodeName === '#text' ? node.value : ''
}

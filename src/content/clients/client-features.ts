/**
 * Which features of HTML and CSS a mail uses that mail clients lack, by the table of caniemail.com. Pure. Never throws.
 *
 * CSS is read by its outer form only: declarations, rules, at-rules. Style sheets and attributes that repeat are read once.
 */
import { FEATURE_TABLE } from './feature-table.js'
import { MAIL_CLIENTS, type MailClient } from './mail-clients.js'

export interface ClientFeature {
  /** Its name at caniemail.com, e.g. `css-display-flex`. */
  readonly slug: string
  /** As authors know it, e.g. `display:flex`. */
  readonly name: string
  /** Clients that ignore it. */
  readonly lacking: readonly MailClient[]
}

type Sign = string

const features = new Map<string, ClientFeature>()
const bySign = new Map<Sign, string[]>()
/** No client runs programs or shows other pages within a mail; the table does not list that. */
const NOWHERE = [
  'html-script|nnnnnnnnnn|e:script|<script> element',
  'html-iframe|nnnnnnnnnn|e:iframe|<iframe> element',
]
for (const line of [...NOWHERE, ...FEATURE_TABLE.trim().split('\n')]) {
  const [slug = '', support = '', signs = '', name = ''] = line.split('|')
  const lacking = MAIL_CLIENTS.filter((_, at) => support[at] === 'n')
  features.set(slug, { slug, name, lacking })
  for (const sign of signs.split(' ')) bySign.set(sign, [...(bySign.get(sign) ?? []), slug])
}

export function featureOf(slug: string): ClientFeature | undefined {
  return features.get(slug)
}

/** Different texts of CSS; further ones are not read. */
const MAX_TEXTS = 2_000
const COMMENTS = /\/\*[^]*?(?:\*\/|$)/g

export class FeatureFinder {
  private readonly slugs = new Set<string>()
  private readonly texts = new Set<string>()

  /** Slugs of the features found. */
  found(): string[] {
    return [...this.slugs]
  }

  addElement(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name !== 'link' || /stylesheet/i.test(attributes['rel'] ?? '')) this.note(`e:${name}`)
    for (const attribute of Object.keys(attributes)) this.note(`a:${attribute}`)
    const { style, src } = attributes
    if (style !== undefined && this.isNew(style)) this.addDeclarations(style)
    if (name === 'img' && src !== undefined) this.addImage(src)
  }

  /** @param css of a `style` element */
  addSheet(css: string): void {
    if (!this.isNew(css)) return
    // Each piece ends before what it opens or closes: a selector or at-rule before `{`, declarations before `}`.
    for (const [, text = '', end] of css.replace(COMMENTS, ' ').matchAll(/([^{}]*)([{}]|$)/gy)) {
      if (end !== '{') {
        this.addDeclarations(text)
        continue
      }
      const at = text.lastIndexOf(';') + 1
      this.addDeclarations(text.slice(0, at))
      this.addPrelude(text.slice(at).trim().toLowerCase())
    }
  }

  private addPrelude(text: string): void {
    if (text.startsWith('@')) {
      this.addAtRule(text)
      return
    }
    for (const [pseudo, colons = '', name = ''] of text.matchAll(/(::?)([a-z-]+)/g))
      // `:before` is `::before`.
      if (!this.note(`s:${pseudo}`) && colons === ':') this.note(`s:::${name}`)
  }

  private addAtRule(text: string): void {
    const [, name = ''] = /^@(?:-[a-z]+-)?([a-z-]+)/.exec(text) ?? []
    this.note(`@:${name}`)
    if (name === 'media')
      for (const [, feature] of text.matchAll(/\(\s*([a-z-]+)/g)) this.note(`m:${feature}`)
  }

  private addDeclarations(text: string): void {
    for (const declaration of text.split(';')) {
      const trimmed = declaration.trim().toLowerCase()
      if (trimmed.startsWith('@')) this.addAtRule(trimmed)
      const colon = trimmed.indexOf(':')
      if (colon > 0) this.addDeclaration(trimmed.slice(0, colon).trim(), trimmed.slice(colon + 1))
    }
  }

  private addDeclaration(property: string, written: string): void {
    const value = written.replace('!important', '').trim()
    this.note(`p:${property}`)
    this.note(`v:${property}=${value.replace(/^inline-(?=flex$|grid$)/, '')}`)
    if (property === 'background' && value.includes('url(')) this.note('p:background-image')
    for (const [, name] of value.matchAll(/(?<![a-z-])-*([a-z][a-z-]*)\(/g)) this.note(`f:${name}`)
    for (const [, unit] of value.matchAll(/(?<![\w#.-])-?(?:\d+(?:\.\d*)?|\.\d+)([a-z]+)\b/g))
      this.note(`u:${unit}`)
  }

  private addImage(src: string): void {
    const url = src.trim()
    const type = /^data:/i.test(url) ? 'data' : /\.([a-z0-9]{2,5})(?:[?#]|$)/i.exec(url)?.[1]
    if (type !== undefined) this.note(`i:${type.toLowerCase()}`)
  }

  private note(sign: Sign): boolean {
    const slugs = bySign.get(sign)
    for (const slug of slugs ?? []) this.slugs.add(slug)
    return slugs !== undefined
  }

  private isNew(text: string): boolean {
    if (this.texts.has(text) || this.texts.size >= MAX_TEXTS) return false
    this.texts.add(text)
    return true
  }
}

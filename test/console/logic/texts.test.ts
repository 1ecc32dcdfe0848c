/** The languages of the console: complete, with every value in its sentence, and counted as each language counts. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { REJECTION_CODES } from '../../../src/audience/transfer/rejection-code.js'
import { de } from '../../../src/console/web/i18n/de'
import { en, type Texts } from '../../../src/console/web/i18n/en'
import { es } from '../../../src/console/web/i18n/es'
import { fr } from '../../../src/console/web/i18n/fr'

const OTHERS: Readonly<Record<string, Texts>> = { de, fr, es }

type Leaf = string | ((...values: unknown[]) => string)

/** Every text with its path, e.g. `nav.domains`. */
function leaves(texts: unknown, path = ''): [string, Leaf][] {
  if (typeof texts === 'string' || typeof texts === 'function') return [[path, texts as Leaf]]
  if (typeof texts !== 'object' || texts === null) return []
  return Object.entries(texts).flatMap(([name, one]) => leaves(one, path === '' ? name : `${path}.${name}`))
}

const english = new Map(leaves(en))
const others = Object.entries(OTHERS).map(([language, texts]) => [language, new Map(leaves(texts))] as const)

t.test('each language has the texts of English, no more and no fewer, none of them empty', t => {
  t.ok(english.size > 2_000)
  for (const [language, found] of others) {
    t.same(
      [...found.keys()].filter(path => !english.has(path)),
      [],
      `${language} has no others`,
    )
    t.same(
      [...english.keys()].filter(path => !found.has(path)),
      [],
      `${language} lacks none`,
    )
    const empty = [...found].filter(([path, text]) => text === '' && english.get(path) !== '')
    t.same(
      empty.map(([path]) => path),
      [],
      `${language} has no empty ones`,
    )
    const otherKind = [...found].filter(([path, text]) => typeof text !== typeof english.get(path))
    t.same(
      otherKind.map(([path]) => path),
      [],
      `${language} has values where English has`,
    )
  }
  t.end()
})

t.test('no text has a space at its edge, a doubled one, or a word that was left to be written', t => {
  for (const [language, texts] of Object.entries({ en, ...OTHERS }))
    for (const [path, text] of leaves(texts))
      if (typeof text === 'string' && /^ | $| {2}|TODO|FIXME|undefined|\[object/.test(text))
        t.fail(`${language}, ${path}: ${text}`)
  t.end()
})

/** Values that can be told apart in any sentence, also after a language has written the number in its manner. */
const NUMBERS = [7, 83, 61, 47, 59]

/** Calls a text with numbers or with words; some take one, some the other. */
function said(text: Leaf, kind: 'numbers' | 'words'): string | undefined {
  if (typeof text === 'string') return text
  const values = NUMBERS.slice(0, text.length).map(n => (kind === 'numbers' ? n : `word${n}`))
  try {
    const sentence = text(...values)
    return typeof sentence === 'string' ? sentence : undefined
  } catch {
    return undefined
  }
}

t.test('a value that English names is named in every language', t => {
  let compared = 0
  for (const [path, text] of english) {
    if (typeof text === 'string') continue
    for (const kind of ['numbers', 'words'] as const) {
      const wanted = NUMBERS.filter(n =>
        said(text, kind)?.includes(kind === 'words' ? `word${n}` : String(n)),
      )
      for (const [language, texts] of others) {
        const other = texts.get(path)
        const sentence = other === undefined ? undefined : said(other, kind)
        if (sentence === undefined) continue
        compared += wanted.length
        const missing = wanted.filter(n => !sentence.includes(kind === 'words' ? `word${n}` : String(n)))
        if (missing.length > 0) t.fail(`${language}, ${path}: ${sentence} lacks ${missing.join()}`)
      }
    }
  }
  t.ok(compared > 500)
  t.end()
})

const WEB = 'src/console/web'

/** Code of the console without its texts. */
function codeIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'i18n' ? [] : codeIn(path)
    return /\.(ts|svelte)$/.test(entry.name) ? [readFileSync(path, 'utf8')] : []
  })
}

t.test('every text is used: code names it, or looks it up in the group that it belongs to', t => {
  const files = [...codeIn(WEB), readFileSync(join(WEB, 'i18n/i18n.ts'), 'utf8')]
  const all = files.join('\n')
  const known = files.map(code => ({
    words: new Set(code.match(/\w+/g)),
    members: new Set(code.match(/(?<=\.)\w+/g)),
  }))
  const lookedUp = new Map<string, boolean>()
  /** `group[`, `Object.keys(… group)`, or handed over as a whole; `$derived(group)` is only a shorter name. */
  const isLookedUp = (group: string) => {
    const pattern = `\\b${group}(\\?\\.)?\\[|(?<!derived)\\([^()]{0,60}(\\(\\))?[\\w.]{0,60}\\b${group}\\)|\\b${group}(,| \\})`
    const found = lookedUp.get(group) ?? new RegExp(pattern).test(all)
    lookedUp.set(group, found)
    return found
  }
  const isNamed = (groups: readonly string[], name: string) =>
    known.some(({ words, members }) => members.has(name) && groups.every(group => words.has(group)))
  const unusedIn = (texts: object, groups: readonly string[]): string[] =>
    Object.entries(texts).flatMap(([name, one]) => {
      if (typeof one === 'object') return unusedIn(one as object, [...groups, name])
      const isUsed = isLookedUp(groups.at(-1) ?? '') || isNamed(groups, name)
      return isUsed ? [] : [[...groups, name].join(' ')]
    })
  t.same(unusedIn(en, []), [])
  t.end()
})

t.test('each reason for which an import rejects a row has a sentence in every language', t => {
  for (const texts of [en, de, fr, es])
    for (const code of REJECTION_CODES.filter(one => one !== 'other')) t.ok(texts.imports.codes[code], code)
  t.end()
})

t.test('one thing and several are told apart, and French counts none as one', t => {
  for (const [texts, one, several] of [
    [en, '1 contact', '2 contacts'],
    [de, '1 Kontakt', '2 Kontakte'],
    [fr, '1 contact', '2 contacts'],
    [es, '1 contacto', '2 contactos'],
  ] as const) {
    t.match(texts.contacts.intro(1), one)
    t.match(texts.contacts.intro(2), several)
  }
  t.match(en.contacts.intro(0), '0 contacts')
  t.match(fr.contacts.intro(0), /0 contact\b(?!s)/)
  t.match(de.contacts.intro(12_345), '12.345 Kontakte')
  t.match(en.contacts.intro(12_345), '12,345 contacts')
  t.end()
})

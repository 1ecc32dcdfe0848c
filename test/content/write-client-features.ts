/**
 * Writes `src/content/clients/feature-table.ts` from the data of caniemail.com, which is under the MIT licence.
 *
 * Run from the project's folder: `node build/test/content/write-client-features.js caniemail.json`, with `https://www.caniemail.com/api/data.json`
 * or `dist/data/caniemail.json` of the npm package `caniemail`. Nothing reads that data when the program runs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { MAIL_CLIENTS, type MailClient } from '../../src/content/clients/mail-clients.js'

interface Source {
  readonly last_update_date: string
  readonly data: readonly {
    readonly slug: string
    readonly title: string
    /** Support by family, platform and version, oldest first: `y`, `n`, `a` (partly) or `u` (unknown), and numbers of notes. */
    readonly stats: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>
  }[]
}

const PLATFORMS: Readonly<Record<MailClient, readonly (readonly [family: string, platform: string])[]>> = {
  gmail: [
    ['gmail', 'desktop-webmail'],
    ['gmail', 'ios'],
    ['gmail', 'android'],
  ],
  'apple-mail': [
    ['apple-mail', 'macos'],
    ['apple-mail', 'ios'],
  ],
  'outlook-windows': [['outlook', 'windows']],
  'outlook-macos': [['outlook', 'macos']],
  'outlook-mobile': [
    ['outlook', 'ios'],
    ['outlook', 'android'],
  ],
  'outlook-com': [['outlook', 'outlook-com']],
  yahoo: [
    ['yahoo', 'desktop-webmail'],
    ['yahoo', 'ios'],
    ['yahoo', 'android'],
  ],
  thunderbird: [['thunderbird', 'macos']],
  samsung: [['samsung-email', 'android']],
  gmx: [
    ['gmx', 'desktop-webmail'],
    ['web-de', 'desktop-webmail'],
  ],
}

/** Titles that name no property, element or function in a form that can be read. */
const SIGNS: Readonly<Record<string, string>> = {
  'css-variables': 'f:var',
  'css-border-radius-logical':
    'p:border-start-start-radius p:border-start-end-radius p:border-end-start-radius p:border-end-end-radius',
  'css-column-layout-properties': 'p:columns p:column-width p:column-rule p:column-span p:column-fill',
  'css-grid-template': 'p:grid-template p:grid-template-columns p:grid-template-rows p:grid-template-areas',
  'css-color-scheme': 'p:color-scheme',
  'css-border-inline-block-individual':
    'p:border-inline-start p:border-inline-end p:border-block-start p:border-block-end',
  'css-border-inline-block-longhand':
    'p:border-inline-color p:border-inline-style p:border-inline-width p:border-block-color p:border-block-style p:border-block-width',
  'css-inert-attribute': 'a:inert',
  'css-scroll-snap': 'p:scroll-snap-type p:scroll-snap-align',
  'css-pseudo-class-lang': 's::lang',
  'html-link': 'e:link',
  'html-srcset': 'a:srcset a:sizes',
  'html-background': 'a:background',
  'html-image-maps': 'e:map',
  'html-svg': 'e:svg',
  'html-h1-h6': 'e:h1 e:h2 e:h3 e:h4 e:h5 e:h6',
  'html-lists': 'e:ul e:ol e:dl',
  'html-semantics':
    'e:article e:aside e:details e:figcaption e:figure e:footer e:header e:main e:mark e:nav e:section e:summary e:time',
  'image-base64': 'i:data',
  'image-svg': 'i:svg',
  'image-apng': 'i:apng',
  'image-avif': 'i:avif',
  'image-bmp': 'i:bmp',
  'image-heif': 'i:heic i:heif',
  'image-mp4': 'i:mp4',
  'image-tiff': 'i:tif i:tiff',
  'image-webp': 'i:webp',
}
/** What assistive technology reads, what every mail has, and words within values. */
const LEFT_OUT = /^html-(?:aria-|role|lang|dir$|body)|^css-(?:intrinsic-size|sytem-ui)/

const NAME = /^[a-z][a-z-]*$/

function signsOf(slug: string, title: string): string[] {
  const known = SIGNS[slug]
  if (known !== undefined) return known.split(' ')
  if (LEFT_OUT.test(slug)) return []
  if (slug.startsWith('css-unit-')) {
    const unit = /^(\w+) unit$/.exec(title)?.[1]
    return unit === undefined || unit === 'initial' ? functionsIn(title) : [`u:${unit}`]
  }
  if (title.startsWith('@media'))
    return [...title.matchAll(/\(([\w-]+)\)/g)]
      .map(([, name]) => `m:${name}`)
      .concat(title === '@media' ? ['@:media'] : [])
  if (title.startsWith('@')) return [`@:${title.slice(1)}`]
  if (title.startsWith(':')) return [`s:${title.replace('()', '')}`]
  if (slug.startsWith('html-')) {
    const element = /^(?:Embedded )?<([a-z]+)>/.exec(title)?.[1]
    const attribute = /^([a-z]+) attribute/.exec(title)?.[1]
    return element !== undefined ? [`e:${element}`] : attribute !== undefined ? [`a:${attribute}`] : []
  }
  if (!slug.startsWith('css-')) return []
  const pair = /^([a-z-]+): ?([a-z-]+)$/.exec(title)
  if (pair) return [`v:${pair[1]}=${pair[2]}`]
  if (title.includes('()')) return functionsIn(title)
  const names = title
    .trim()
    .replace(/ (?:shorthand|property|longhand properties|individual logical properties)$/, '')
    .split(/, | & /)
  return names.every(name => NAME.test(name)) ? names.map(name => `p:${name}`) : []
}

function functionsIn(title: string): string[] {
  return [...title.matchAll(/([a-z-]+)\(\)/g)].map(([, name]) => `f:${name}`)
}

/** `n` if it is unsupported on all platforms, `a` on some or in part. */
function supportOf(stats: Source['data'][number]['stats'], client: MailClient): string {
  const newest = PLATFORMS[client].flatMap(([family, platform]) => {
    const letter = Object.values(stats[family]?.[platform] ?? {}).at(-1)?.[0]
    return letter === undefined || letter === 'u' ? [] : [letter]
  })
  if (newest.length === 0) return 'u'
  return newest.every(letter => letter === newest[0]) ? newest[0]! : 'a'
}

const [, , file = ''] = process.argv
const source = JSON.parse(readFileSync(file, 'utf8')) as Source
const lines = source.data.flatMap(({ slug, title, stats }) => {
  const signs = signsOf(slug, title)
  const support = MAIL_CLIENTS.map(client => supportOf(stats, client)).join('')
  return signs.length === 0 || !support.includes('n')
    ? []
    : [`${slug}|${support}|${signs.join(' ')}|${title.trim()}`]
})
writeFileSync(
  'src/content/clients/feature-table.ts',
  `/**
 * Features of HTML and CSS that some mail client lacks: data of caniemail.com of ${source.last_update_date.slice(0, 10)}.
 *
 * Under the MIT licence (\`packaging/licences/caniemail.txt\`). Written by \`test/content/write-client-features.ts\`; do not edit.
 *
 * A line is slug, support, signs and name. Support has a letter for each of \`MAIL_CLIENTS\`: y (yes), a (in part), n (no), u (unknown).
 * Signs are property (p), value (v), function (f), at-rule (@), media feature (m), selector (s), unit (u), element (e), attribute (a) and
 * image format (i).
 */
export const FEATURE_TABLE = \`
${lines.join('\n')}
\`
`,
)
process.stdout.write(`${lines.length} features\n`)

/** Links back: what each leads to, that nobody else can make one, and that whatever is read is answered and not thrown. */
import t from 'tap'
import { makeLinkPart, MAX_URL_OCTETS, readClick } from '../../../src/mail/links/click-link.js'
import { openLinkKeys } from '../../../src/mail/links/link-keys.js'
import {
  confirmationUrl,
  LINK_PATHS,
  linksOf,
  MAX_LINK_PATH,
  readOpen,
  readView,
} from '../../../src/mail/links/links.js'
import { readConfirmationToken, readSubscriberToken } from '../../../src/mail/links/subscriber-link.js'
import { SeededRandom } from '../../../src/world/fake-random.js'

const FIRST = { version: 1, secret: Buffer.alloc(32, 1) }
const SECOND = { version: 2, secret: Buffer.alloc(32, 2) }
const KEYS = openLinkKeys([FIRST])
const PUBLIC = 'https://mail.example.com'
const ANN = {
  workspaceId: '01900000-0000-7000-8000-00000000000a',
  messageId: '01900000-0000-7000-8000-000000000001',
  recipient: 'Ann@x.example',
}
const BOB = { ...ANN, messageId: '01900000-0000-7000-8000-000000000002', recipient: 'bob@x.example' }
const OTHER_WORKSPACE = '01900000-0000-7000-8000-00000000000b'
const SHOP = 'https://shop.example/a?b=1&c=%20#d'

const links = linksOf(KEYS, PUBLIC, ANN)
const { workspaceId, messageId, recipient } = ANN
const SUBSCRIBER = { workspaceId, messageId, recipient }

/** What stands behind the path. */
function tokenOf(path: keyof typeof LINK_PATHS, url: string): string {
  const before = PUBLIC + LINK_PATHS[path]
  if (!url.startsWith(before)) throw new Error(`${url} does not begin with ${before}`)
  return url.slice(before.length)
}

function clickOn(url: string, message = ANN, keys = KEYS): string {
  const part = makeLinkPart(keys, message.workspaceId, url)
  if (part === undefined) throw new Error(`no link is made of ${url}`)
  return tokenOf('click', linksOf(keys, PUBLIC, message).clickUrl + part)
}

const readers: Readonly<Record<string, (text: string) => unknown>> = {
  open: text => readOpen(KEYS, text),
  click: text => readClick(KEYS, text),
  unsubscribe: text => readSubscriberToken(KEYS, 'unsubscribe', text),
  preferences: text => readSubscriberToken(KEYS, 'preferences', text),
  view: text => readView(KEYS, text),
  confirm: text => readConfirmationToken(KEYS, text),
}

const CONFIRMATION = {
  workspaceId,
  subjectId: BOB.messageId,
  recipient: 'jürgen@x.example',
  madeAt: 1_800_000_000_123,
}
const tokens: Readonly<Record<string, string>> = {
  open: tokenOf('open', links.pixelUrl),
  click: clickOn(SHOP),
  unsubscribe: tokenOf('unsubscribe', links.unsubscribeUrl),
  preferences: tokenOf('preferences', links.preferencesUrl),
  view: tokenOf('view', links.viewUrl),
  confirm: tokenOf('confirm', confirmationUrl(KEYS, PUBLIC, CONFIRMATION)),
}

t.test('each link leads back to what it was made of', t => {
  t.equal(readOpen(KEYS, tokens['open'] ?? ''), messageId)
  t.equal(readView(KEYS, tokens['view'] ?? ''), messageId)
  t.same(readClick(KEYS, tokens['click'] ?? ''), { messageId, url: SHOP })
  t.same(readSubscriberToken(KEYS, 'unsubscribe', tokens['unsubscribe'] ?? ''), SUBSCRIBER)
  t.same(readSubscriberToken(KEYS, 'preferences', tokens['preferences'] ?? ''), SUBSCRIBER)
  t.same(readConfirmationToken(KEYS, tokens['confirm'] ?? ''), CONFIRMATION)
  t.end()
})

t.test('a message has the same links each time it is rendered, and no two messages have one in common', t => {
  const again = linksOf(openLinkKeys([FIRST]), PUBLIC, ANN)
  const bobs = linksOf(KEYS, PUBLIC, BOB)
  for (const name of ['unsubscribeUrl', 'preferencesUrl', 'viewUrl', 'pixelUrl'] as const) {
    t.equal(again[name], links[name])
    t.not(bobs[name], links[name])
  }
  t.not(clickOn(SHOP, BOB), clickOn(SHOP))
  t.equal(
    clickOn(SHOP, BOB).split('.')[1],
    clickOn(SHOP).split('.')[1],
    'the URL is signed once for all recipients',
  )
  t.end()
})

t.test('a link made for one purpose is invalid for another', t => {
  for (const [made, token] of Object.entries(tokens))
    for (const [read, reader] of Object.entries(readers))
      if (made !== read) t.equal(reader(token), undefined, `${made} read as ${read}`)
  t.end()
})

t.test('a token with any character changed, removed or added is invalid', t => {
  for (const [purpose, token] of Object.entries(tokens)) {
    const reader = readers[purpose]
    const bare = token.replace(/\.gif$/, '')
    for (let at = 0; at < bare.length; at += 1) {
      const other = bare[at] === 'A' ? 'B' : 'A'
      for (const changed of [other, '', `${bare[at]}A`, '.', '='])
        if (changed !== bare[at] && reader?.(bare.slice(0, at) + changed + bare.slice(at + 1)) !== undefined)
          t.fail(`${purpose} is read with '${changed}' at ${at}`)
    }
    t.equal(reader?.(`${bare}=`), undefined)
    t.equal(reader?.(`${bare}A`), undefined)
    t.equal(reader?.(bare.toLowerCase()), undefined)
  }
  t.end()
})

t.test('a link is valid only for messages of its own workspace', t => {
  const ofAnother = clickOn('https://evil.example/', { ...BOB, workspaceId: OTHER_WORKSPACE })
  const mixed = `${clickOn(SHOP).split('.')[0]}.${ofAnother.split('.')[1]}`
  t.equal(readClick(KEYS, mixed), undefined)
  const ofTheSame = `${clickOn(SHOP).split('.')[0]}.${clickOn('https://shop.example/2', BOB).split('.')[1]}`
  t.same(readClick(KEYS, ofTheSame), { messageId, url: 'https://shop.example/2' })
  t.end()
})

t.test('links made before a key was changed are read, those of a key that is not ours are not', t => {
  const rotated = openLinkKeys([SECOND, FIRST])
  t.same(readClick(rotated, clickOn(SHOP)), { messageId, url: SHOP })
  t.same(readSubscriberToken(rotated, 'unsubscribe', tokens['unsubscribe'] ?? ''), SUBSCRIBER)
  t.equal(readOpen(rotated, tokens['open'] ?? ''), messageId)
  const halfRotated = `${clickOn(SHOP, ANN, rotated).split('.')[0]}.${clickOn(SHOP).split('.')[1]}`
  t.same(readClick(rotated, halfRotated), { messageId, url: SHOP }, 'a URL signed before, a message after')
  const fresh = linksOf(rotated, PUBLIC, ANN)
  t.not(fresh.unsubscribeUrl, links.unsubscribeUrl, 'the newest key signs')
  const stranger = openLinkKeys([{ version: 1, secret: Buffer.alloc(32, 9) }])
  t.equal(readClick(stranger, clickOn(SHOP)), undefined)
  t.equal(readSubscriberToken(stranger, 'unsubscribe', tokens['unsubscribe'] ?? ''), undefined)
  t.throws(() => openLinkKeys([]), /need a secret/)
  t.end()
})

t.test('no address can be read in a link', t => {
  const url = linksOf(KEYS, PUBLIC, ANN).unsubscribeUrl
  const octets = Buffer.from(tokenOf('unsubscribe', url), 'base64url').toString('latin1').toLowerCase()
  t.notMatch(url.toLowerCase(), /ann|x\.example/)
  t.notOk(octets.includes('ann@') || octets.includes('x.example'))
  t.end()
})

t.test('only a URL that can be followed safely becomes a click link', t => {
  for (const url of [
    'ftp://x.example/',
    'javascript:alert(1)',
    'https:/x',
    'https://',
    'https:///x.example',
    '//x.example/',
    'https://x.example/a b',
    'https://x.example/\r\nSet-Cookie: a=b',
    `https://x.example/${'a'.repeat(MAX_URL_OCTETS)}`,
    '',
  ])
    t.equal(makeLinkPart(KEYS, ANN.workspaceId, url), undefined, url.slice(0, 60))
  t.end()
})

t.test('the longest link and address there are fit their bounds', t => {
  const url = `https://x.example/${'a'.repeat(MAX_URL_OCTETS - 18)}`
  t.same(readClick(KEYS, clickOn(url)), { messageId, url })
  t.ok(`${LINK_PATHS.click}${clickOn(url)}`.length <= MAX_LINK_PATH)
  const longest = { ...ANN, recipient: `${'a'.repeat(64)}@${'b'.repeat(189)}` }
  const { unsubscribeUrl } = linksOf(KEYS, PUBLIC, longest)
  t.match(readSubscriberToken(KEYS, 'unsubscribe', tokenOf('unsubscribe', unsubscribeUrl)), {
    recipient: longest.recipient,
  })
  t.ok(unsubscribeUrl.length <= MAX_LINK_PATH)
  t.end()
})

/** Text of up to so many of these characters. */
function textOf(random: SeededRandom, characters: readonly string[], most: number): string {
  const pick = () => characters[Math.floor(random.fraction() * characters.length)] ?? ''
  return Array.from({ length: Math.floor(random.fraction() * most) }, pick).join('')
}

t.test('any URL and any address round-trips', t => {
  const random = new SeededRandom(14)
  const characters = [...Array.from('aZ09-._~:/?#[]@!$&\'()*+,;=%{}|^`"<>\\'), 'é', 'ß', '日', '😀']
  for (let round = 0; round < 500; round += 1) {
    const url = `http://x${textOf(random, characters, 200)}`
    t.equal(readClick(KEYS, clickOn(url))?.url, url)
    const address = `x${textOf(random, characters, 100)}`
    const { unsubscribeUrl } = linksOf(KEYS, PUBLIC, { ...ANN, recipient: address })
    const read = readSubscriberToken(KEYS, 'unsubscribe', tokenOf('unsubscribe', unsubscribeUrl))
    t.equal(read?.recipient, address)
  }
  t.end()
})

t.test('whatever a stranger sends is no token, and nothing is thrown', t => {
  const random = new SeededRandom(15)
  const base64url = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.')
  const anything = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code))
  const isRead = (text: string) => Object.values(readers).some(reader => reader(text) !== undefined)
  for (let round = 0; round < 2_000; round += 1)
    for (const text of [
      textOf(random, anything, 200),
      textOf(random, base64url, 200),
      // Layout and key version as they should be.
      `AQAB${textOf(random, base64url, 200)}`,
      `AQAB${textOf(random, base64url, 60)}.AQAB${textOf(random, base64url, 60)}`,
    ])
      if (isRead(text)) t.fail(`'${text}' is read`)
  t.notOk(isRead('A'.repeat(1_000_000)))
  t.end()
})

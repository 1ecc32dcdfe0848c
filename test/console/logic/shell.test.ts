/** The frame around screens: the palette, requests as curl commands, faults in words, scales of charts. */
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { ApiFault, faultOf } from '../../../src/console/web/api/fault'
import { de } from '../../../src/console/web/i18n/de'
import { en } from '../../../src/console/web/i18n/en'
import { es } from '../../../src/console/web/i18n/es'
import { fr } from '../../../src/console/web/i18n/fr'
import { keepLanguageIn } from '../../../src/console/web/i18n/i18n'
import { roundTop, shadeOf, stepTo } from '../../../src/console/web/lib/scale'
import { foundAmong, matching, meantBy, searchesFor } from '../../../src/console/web/shell/commands'
import { VALUE_RULES } from '../../../src/core/errors.js'
import { asCurl, withCall, type Call } from '../../../src/console/web/api/curl'

const COMMANDS = ['Messages', 'Bounces', 'Workspace: Message lab', 'API reference', 'Theme: dark'].map(
  text => ({ text }),
)
const found = (typed: string) => matching(COMMANDS, typed).map(({ text }) => text)

t.test('the palette finds words anywhere, in any order, and first what begins with them', t => {
  t.same(found('mess'), ['Messages', 'Workspace: Message lab'])
  t.same(found('MESSAGE lab'), ['Workspace: Message lab'])
  t.same(found('dark theme'), ['Theme: dark'])
  t.same(found('lab  message'), ['Workspace: Message lab'])
  t.same(found('nothing of it'), [])
  t.same(
    found(''),
    COMMANDS.map(({ text }) => text),
    'all, before anything is typed',
  )
  t.end()
})

t.test('the palette finds records by words of their names, a few of each kind', t => {
  const campaigns = Array.from({ length: 9 }, (_, n) => ({
    kind: 'campaigns' as const,
    id: String(n),
    text: `May news ${n}`,
  }))
  t.same(
    foundAmong(campaigns, 'NEWS may').map(({ id }) => id),
    ['0', '1', '2', '3', '4'],
  )
  t.same(
    foundAmong(campaigns, 'news 7').map(({ id }) => id),
    ['7'],
  )
  t.same(foundAmong(campaigns, 'm'), [], 'one letter is too little')
  t.end()
})

t.test('an address is looked for among messages and contacts, an id among messages', t => {
  t.same(meantBy('ann@one.test'), [
    { screen: '/messages', query: 'to' },
    { screen: '/contacts', query: 'search' },
  ])
  t.same(meantBy('@one.test').length, 2)
  t.same(meantBy('0192F000-0000-7000-8000-00000000abcd'), [{ screen: '/messages/:id' }])
  t.same(meantBy('order 7'), [])
  t.same(
    searchesFor('order 7').map(({ query }) => query),
    ['subject', 'search'],
  )
  t.same(searchesFor('o'), [], 'one letter is too little')
  t.same(searchesFor('ann@one.test'), [], 'an address is found above')
  t.end()
})

const call = (more: Partial<Call> = {}): Call => ({
  method: 'GET',
  url: '/api/v1/lists',
  headers: [],
  body: undefined,
  ...more,
})

/** What a shell hands to the program that the command names. */
const argumentsIn = (command: string): string[] =>
  execFileSync('sh', ['-c', `curl() { for one in "$@"; do printf '%s\\0' "$one"; done; }; ${command}`], {
    env: { POSTROAD_TOKEN: 'pt_secret' },
  })
    .toString()
    .split('\0')
    .slice(0, -1)

t.test('a curl command hands the shell exactly what the console sent', t => {
  const body = JSON.stringify({ name: `Ann's "list" $HOME \`id\` \\ ä`, lines: 'a\nb' })
  const command = asCurl(
    call({
      method: 'PATCH',
      url: "/api/v1/lists/1?q=o'neil&x=%20",
      headers: [
        ['content-type', 'application/json'],
        ['if-match', '"3"'],
        ['x-workspace', 'w1'],
      ],
      body,
    }),
    'https://mail.example',
  )
  t.same(argumentsIn(command), [
    ...['-X', 'PATCH', "https://mail.example/api/v1/lists/1?q=o'neil&x=%20"],
    ...['-H', 'Authorization: Bearer pt_secret', '-H', 'Content-Type: application/json'],
    ...['-H', 'If-Match: "3"', '-H', 'X-Workspace: w1', '-d', body],
  ])
  t.notMatch(command, 'pt_secret', 'the token stays in the environment')
  t.end()
})

t.test('a read has no method and no body, an upload names its file', t => {
  t.equal(
    asCurl(call(), 'https://mail.example'),
    `curl 'https://mail.example/api/v1/lists' \\\n  -H "Authorization: Bearer $POSTROAD_TOKEN"`,
  )
  const upload = call({ method: 'POST', url: '/api/v1/contacts/import', file: "people's.csv" })
  t.same(argumentsIn(asCurl(upload, 'https://mail.example')).slice(-2), ['--data-binary', "@people's.csv"])
  t.end()
})

t.test('the latest calls are kept, each once, the newest first', t => {
  let calls: Call[] = []
  for (let n = 0; n < 20; n++) calls = withCall(calls, call({ url: `/api/v1/lists/${n}` }))
  t.equal(calls.length, 12)
  t.equal(calls[0]?.url, '/api/v1/lists/19')
  calls = withCall(calls, call({ url: '/api/v1/lists/15' }))
  t.same(calls.map(({ url }) => url).slice(0, 3), [
    '/api/v1/lists/15',
    '/api/v1/lists/19',
    '/api/v1/lists/18',
  ])
  t.equal(calls.length, 12)
  t.equal(withCall(calls, call({ method: 'DELETE', url: '/api/v1/lists/15' })).length, 12)
  t.end()
})

const refused = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  faultOf(new Response(null, { status, headers }), body)

t.test('faults that every form may meet are told in the viewer’s language', t => {
  t.equal(new ApiFault('network', 'no answer').message, en.faults.network)
  t.equal(
    refused(429, { error: { code: 'rate_limited' } }, { 'Retry-After': '7' }).message,
    en.faults.rateLimited(7),
  )
  t.equal(
    refused(429, {}, { 'Retry-After': 'Tue, 10 Mar 2026 12:00:00 GMT' }).message,
    en.faults.rateLimited(60),
  )
  t.equal(
    refused(412, { error: { code: 'precondition_failed', message: 'changed' } }).message,
    en.faults.conflict,
  )
  keepLanguageIn({ language: 'de', locale: 'de', texts: de })
  t.equal(new ApiFault('network', 'no answer').message, de.faults.network)
  keepLanguageIn({ language: 'en', locale: 'en', texts: en })
  t.end()
})

t.test('what a value breaks is told in the viewer’s language, without names of the API', t => {
  const body = (rule: string, limit?: number) => ({
    error: {
      code: 'validation_error',
      message: 'from_email must have at most 320 characters',
      path: 'from_email',
      rule,
      limit,
    },
  })
  t.equal(refused(400, body('max_length', 320)).message, 'At most 320 characters are allowed.')
  t.equal(refused(400, body('required')).message, 'This is required.')
  t.match(refused(400, body('a_new_rule')).message, 'from_email must', 'a rule that is not known yet')
  for (const texts of [en, de, fr, es])
    for (const rule of VALUE_RULES) t.ok(texts.faults.rules[rule]?.(3), rule)
  t.equal(
    refused(400, { error: { code: 'missing_from_email', message: 'Give from_email' } }).message,
    en.faults.codes.missing_from_email,
  )
  t.end()
})

t.test('other faults are told as the API tells them, at their field', t => {
  const fault = refused(400, {
    error: { code: 'validation_error', message: 'email is taken', path: 'email' },
  })
  t.match(fault, { code: 'validation_error', message: 'email is taken', path: 'email', status: 400 })
  t.equal(fault.retryAfterSeconds, undefined)
  for (const body of [undefined, null, 'Bad Gateway', {}, { error: {} }])
    t.match(refused(502, body), { code: 'internal_error', message: 'HTTP 502' })
  t.end()
})

t.test('the top of a chart is the next round whole number', t => {
  for (const [most, top] of [
    [1, 1],
    [2, 2],
    [7, 8],
    [11, 15],
    [15, 15],
    [16, 20],
    [99, 100],
    [101, 150],
    [6_001, 8_000],
  ] as const)
    t.equal(roundTop(most), top)
  for (let most = 1; most < 20_000; most = Math.ceil(most * 1.07)) {
    const top = roundTop(most)
    if (top < most || top > most * 1.5 + 1 || !Number.isInteger(top)) t.fail(`${most}: ${top}`)
  }
  t.end()
})

t.test('shades tell orders of magnitude apart, and something from nothing', t => {
  t.equal(shadeOf(0, 1_000, 5), 0)
  t.equal(shadeOf(1, 1_000_000, 5), 1)
  t.equal(shadeOf(1_000, 1_000, 5), 5)
  t.equal(shadeOf(1, 1, 5), 5)
  const shades = [1, 10, 100, 1_000, 10_000].map(count => shadeOf(count, 10_000, 5))
  t.same(shades, shades.toSorted())
  t.end()
})

t.test('arrow keys go through the points of a chart, and stay at its ends', t => {
  t.equal(stepTo(undefined, 1, 30), 0)
  t.equal(stepTo(undefined, -1, 30), 29)
  t.equal(stepTo(29, 1, 30), 29)
  t.equal(stepTo(0, -1, 30), 0)
  t.equal(stepTo(4, 1, 30), 5)
  t.end()
})

/**
 * Makes broken and hostile mail out of good one, the same for the same seed.
 *
 * Used by the test that runs a few thousand of them and by `make fuzz-bounces`, which runs many.
 */
import { NOTICES } from '../../mail/returned/notices.js'
import { deliveryReport, group, multipart, ORIGINAL, REPORTER } from './returned-mail.js'

/** What the parser's patterns look for, repeated endlessly to slow it down. */
const TOKENS: readonly string[] = [
  'a@b ',
  '<a@b>',
  '<a@b>: ',
  '<mailto:',
  'a',
  '@',
  ' ',
  '\t',
  '\n',
  '\r',
  '\0',
  '=?utf-8?Q?',
  '=?utf-8?B?YQ==?= ',
  '=41',
  '=\n',
  '550 ',
  '550-5.1.1 ',
  '5.1.1 ',
  'deliver ',
  'deliver:',
  'recipient unknown user ',
  'said: ',
  '(',
  '"',
  '<',
  '>>> ',
  '--=_limit\n',
  '--=_limit',
  '---',
  'Received: x\n',
  'X-A: b\n ',
  'Final-Recipient: rfc822; a@b\n',
  'Final-Recipient: rfc822; a@b\n\n',
  'Original-Rcpt-To: a@b,',
  '{"notificationType":',
  '[',
  'To: a@b, ',
  'your message to x is being held ',
  'spam arrest ',
  'Content-Type: multipart/mixed; boundary=x\n\n--x\n',
  'unsubscribe ',
  'this is an abuse ',
  '<p>',
  '<style>',
  '\u00e4',
]

/** Good mail of every form. */
export const SEEDS: readonly Buffer[] = [
  ...NOTICES.map(({ source }) => source),
  deliveryReport(REPORTER + group()),
  deliveryReport(
    `${REPORTER}${group()}\n${group({ 'Final-Recipient': 'rfc822;bob@example.org', Status: '4.4.7' })}`,
  ),
  multipart('multipart/report; report-type=feedback-report', [
    'Content-Type: text/plain\n\nThis is an email abuse report.',
    'Content-Type: message/feedback-report\n\nFeedback-Type: abuse\nOriginal-Rcpt-To: ann@example.net\n',
    `Content-Type: message/rfc822\n\n${ORIGINAL}`,
  ]),
  multipart('multipart/alternative', [
    'Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n<p>Undeliverable: <b>ann@example.net</b>=20</p>',
  ]),
]

/** Numbers that look random and are the same for the same seed (mulberry32). */
export function seededNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0
  return below => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

type Below = (below: number) => number

const MUTATIONS: readonly ((bytes: Buffer, below: Below, seeds: readonly Buffer[]) => Buffer)[] = [
  function flipBytes(bytes, below) {
    const copy = Buffer.from(bytes)
    for (let count = 1 + below(20); count > 0 && copy.length > 0; count--)
      copy[below(copy.length)] = below(256)
    return copy
  },
  function truncate(bytes, below) {
    return bytes.subarray(0, below(bytes.length + 1))
  },
  function repeatSlice(bytes, below) {
    const { start, end } = slice(bytes, below)
    const copies = Array.from({ length: 1 + below(20) }, () => bytes.subarray(start, end))
    return Buffer.concat([bytes.subarray(0, end), ...copies, bytes.subarray(end)])
  },
  function removeSlice(bytes, below) {
    const { start, end } = slice(bytes, below)
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
  },
  function crossOver(bytes, below, seeds) {
    const other = pick(seeds, below)
    return Buffer.concat([
      bytes.subarray(0, below(bytes.length + 1)),
      other.subarray(below(other.length + 1)),
    ])
  },
  function insertTokens(bytes, below) {
    const token = pick(TOKENS, below)
    const length = below(100) === 0 ? 600_000 : below(4_000)
    const at = below(bytes.length + 1)
    const run = Buffer.from(token.repeat(Math.ceil(length / token.length)))
    return Buffer.concat([bytes.subarray(0, at), run, bytes.subarray(at)])
  },
  function changeLineEnds(bytes, below) {
    const end = ['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n'][below(5)] ?? '\n'
    return Buffer.from(bytes.toString('latin1').replaceAll('\r\n', end), 'latin1')
  },
  function addHugeField(bytes, below) {
    const name = ['Subject', 'Content-Type', 'To', 'X-Failed-Recipients', 'References', 'X'][below(6)] ?? 'X'
    return Buffer.concat([
      Buffer.from(`${name}: ${pick(TOKENS, below).repeat(1 + below(20_000))}\r\n`),
      bytes,
    ])
  },
  function nest(bytes, below) {
    const type = below(2) === 0 ? 'message/rfc822' : 'text/plain'
    const depth = 1 + below(below(20) === 0 ? 1_000 : 10)
    let head = ''
    for (let level = 0; level < depth; level++)
      head += `Content-Type: multipart/mixed; boundary="n${level}"\r\n\r\n--n${level}\r\n`
    return Buffer.concat([Buffer.from(`${head}Content-Type: ${type}\r\n\r\n`), bytes])
  },
  function changeEncoding(bytes, below) {
    const encoding = ['base64', 'quoted-printable', 'binary', 'x-unknown'][below(4)] ?? ''
    const charset = ['iso-2022-jp', 'utf-7', 'shift_jis', 'utf-16', 'x', 'big5'][below(6)] ?? ''
    const field = `Content-Type: text/plain; charset=${charset}\r\nContent-Transfer-Encoding: ${encoding}\r\n`
    return Buffer.concat([Buffer.from(field), bytes])
  },
]

function pick<T>(from: readonly T[], below: Below): T {
  return from[below(from.length)] as T
}

function slice(bytes: Buffer, below: Below): { start: number; end: number } {
  const start = below(bytes.length + 1)
  return { start, end: start + below(bytes.length - start + 1) }
}

/** One mail after one to four mutations. */
export function brokenMail(below: Below, seeds: readonly Buffer[] = SEEDS): Buffer {
  let bytes = pick(seeds, below)
  for (let count = 1 + below(4); count > 0; count--) bytes = pick(MUTATIONS, below)(bytes, below, seeds)
  return bytes
}

/** Mail that is nothing but one token, where it could do harm: header, notice, report, HTML, original. */
export function* hostileMails(length: number): Generator<{ readonly name: string; readonly source: Buffer }> {
  const places: Readonly<Record<string, (run: string) => string>> = {
    header: run => `From: MAILER-DAEMON@x.example\r\nSubject: ${run}\r\n\r\nUndeliverable: a@b\r\n`,
    type: run => `Content-Type: multipart/report; boundary=${run}\r\n\r\n${run}`,
    notice: run => `Return-Path: <>\r\nFrom: MAILER-DAEMON@x.example\r\nSubject: Undeliverable\r\n\r\n${run}`,
    qmail: run => `From: MAILER-DAEMON@x.example\r\n\r\nqmail-send program\r\n<a@b.example>:\r\n${run}`,
    exim: run =>
      `X-Failed-Recipients: a@b.example\r\n\r\nThis message was created automatically by mail delivery software\r\naddress(es)\r\n${run}`,
    report: run =>
      `Content-Type: multipart/report; boundary="=_limit"\r\n\r\n--=_limit\r\nContent-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822; a@b\r\nDiagnostic-Code: smtp; ${run}`,
    feedback: run =>
      `Content-Type: multipart/report; boundary="=_limit"\r\n\r\n--=_limit\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n${run}`,
    html: run =>
      `Return-Path: <>\r\nFrom: MAILER-DAEMON@x.example\r\nContent-Type: text/html\r\n\r\nUndeliverable ${run}`,
    original: run =>
      `From: MAILER-DAEMON@x.example\r\n\r\nqmail-send program\r\n<a@b>:\r\n--- Below this line is a copy of the message.\r\n\r\n${run}`,
    parts: run => `Content-Type: multipart/mixed; boundary="=_limit"\r\n\r\n${run}`,
  }
  for (const [place, write] of Object.entries(places))
    for (const token of TOKENS) {
      const run = token.repeat(Math.ceil(length / token.length))
      yield { name: `${place} ${JSON.stringify(token)}`, source: Buffer.from(write(run)) }
    }
}

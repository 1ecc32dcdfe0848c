/** The mail that is measured with: HTML as newsletters have it, every letter a text of its own. */
import { SENDER } from '../server/server-process.js'

/** Characters of HTML per letter, a little more in octets. */
const HTML_LENGTH = 10_000

const PARAGRAPH =
  '<tr><td style="padding:12px 24px;font-family:Arial,sans-serif;font-size:15px;line-height:22px">' +
  'Grüße from the workshop: this week <b>three</b> new things are ready, and <a href="https://shop.example/a?id=1&amp;src=mail">' +
  'the first of them</a> costs no more than 12&nbsp;€. Read on, or have a look at the pictures below.</td></tr>\n'

const HTML = `<!doctype html><html><body><table width="600">\n${PARAGRAPH.repeat(
  Math.ceil(HTML_LENGTH / PARAGRAPH.length),
).slice(0, HTML_LENGTH)}`

/** @returns the JSON of one request; `number` makes its text differ from all others */
export function sendRequest(number: number, to: string | readonly string[]): Buffer {
  const html = `${HTML}<p>Letter ${number}</p></body></html>`
  return Buffer.from(JSON.stringify({ to, from_email: SENDER, subject: `Letter ${number}`, html }))
}

/** Recipients spread evenly over so many domains. */
export function recipient(number: number, domains: number): string {
  return `reader${number}@d${number % domains}.example`
}

const SHORT_HTML = PARAGRAPH.repeat(Math.ceil(1_000 / PARAGRAPH.length))

/** @returns the JSON of one batch, each message with a text of its own */
export function batchRequest(number: number, messages: number, domains: number): Buffer {
  const letters = Array.from({ length: messages }, (_, index) => ({
    to: recipient(number * messages + index, domains),
    from_email: SENDER,
    subject: `Letter ${number}.${index}`,
    html: `${SHORT_HTML}<p>Letter ${number}.${index}</p>`,
  }))
  return Buffer.from(JSON.stringify({ messages: letters }))
}

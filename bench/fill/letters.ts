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

/** @param number makes the text differ from all others */
export function letterHtml(number: number): string {
  return `${HTML}<p>Letter ${number}</p></body></html>`
}

/** @returns the JSON of one request; `number` makes its text differ from all others */
export function sendRequest(number: number, to: string | readonly string[]): Buffer {
  const html = letterHtml(number)
  return Buffer.from(JSON.stringify({ to, from_email: SENDER, subject: `Letter ${number}`, html }))
}

const STYLE =
  'body,table,td,a{-webkit-text-size-adjust:100%}table,td{mso-table-lspace:0pt}img{border:0;display:block}' +
  '@media screen and (max-width:600px){.wide{width:100%!important}.gone{display:none!important}.h1{font-size:24px!important}}' +
  '.preheader{display:none;max-height:0;overflow:hidden}.button{background:#146c43;border-radius:4px}'
const CELL =
  'style="padding:16px 24px;font-family:Arial,Helvetica,sans-serif;font-size:15px;line-height:22px;color:#333333"'

function article(number: number, at: number): string {
  const url = `https://shop.example/n/${number}/a/${at}?utm_source=mail&amp;utm_campaign=n${number}`
  return `
  <table role="presentation" width="600" class="wide" cellpadding="0" cellspacing="0" border="0"><tr>
    <td width="200" valign="top" class="gone"><a href="${url}"><img src="https://cdn.shop.example/${number}/${at}.jpg" width="200" height="140" alt="Item ${at}"></a></td>
    <td valign="top" ${CELL}>
      <h2 class="h1" style="margin:0 0 8px">Item ${at} of ${number}</h2>
      <p style="margin:0 0 12px">Für Sie ausgesucht: No. ${number * 7 + at}, made of ash &amp; linen, for 12&nbsp;€ less than in spring. <b>Only this week.</b></p>
      <ul><li>Size ${at + 30}</li><li>Color <i>natural</i></li></ul>
      <!--[if mso]><v:roundrect href="${url}" fillcolor="#146c43"><center>Read on</center></v:roundrect><![endif]-->
      <a href="${url}" class="button" style="display:inline-block;padding:10px 20px;color:#ffffff">Read on</a>
    </td></tr></table>`
}

/** A newsletter as editors export it, 10 KB: style sheet, preheader, Outlook's comments, a table for each article, its own unsubscribe link. */
export function newsletterHtml(number: number): string {
  const articles = Array.from({ length: 8 }, (_, at) => article(number, at)).join('')
  return `<!DOCTYPE html>
<html lang="de"><head><meta charset="utf-8"><title>Newsletter ${number}</title><style>${STYLE}</style></head>
<body style="margin:0;background-color:#f4f4f4">
<div class="preheader" style="display:none">What ${number} brings&zwnj;&nbsp;&zwnj;&nbsp;&zwnj;&nbsp;</div>
<table role="presentation" width="100%"><tr><td align="center">${articles}
  <p style="font-size:12px;color:#777777">You get this as a customer. <a href="{{unsubscribe_url}}">Abmelden</a> &middot; {{company_address}}</p>
</td></tr></table></body></html>`
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

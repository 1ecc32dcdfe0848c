/**
 * The mail asking a subscriber to confirm a form submission, in the language of the visitor's page.
 *
 * Contains no submitted text except the address, so that strangers cannot send messages through a form. Pure.
 */
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { Sender } from '../../http/public/public-route.js'
import type { RequestedMail } from './form-parts.js'

export interface OptInMail {
  readonly sender: Sender
  readonly texts: PageTexts
  readonly language: string
  readonly email: string
  readonly url: string
  readonly days: number
}

const BODY = 'margin:0;padding:24px 16px;font:16px/24px Arial,Helvetica,sans-serif'
const BUTTON =
  'display:inline-block;padding:12px 24px;border:1px solid #757d86;border-radius:6px;color:#ffffff;background-color:#1d5fa8;text-decoration:none;font-weight:bold'

export function writeOptInMail({ sender, texts, language, email, url, days }: OptInMail): RequestedMail {
  const { optIn } = texts
  const { name, address } = sender
  const lines = [optIn.mailText(email, name), `${optIn.mailExpires(days)} ${optIn.mailIgnore}`]
  const body = html`<html lang="${language}">
    <body style="${BODY}">
      <p>${lines[0]}</p>
      <p><a href="${url}" style="${BUTTON}">${optIn.mailButton}</a></p>
      <p>${lines[1]}</p>
      <p>${name}${address !== '' && html`<br />${address}`}</p>
    </body>
  </html>`
  return {
    to: email,
    subject: optIn.mailSubject(name),
    html: `<!doctype html>\n${body.toString()}`,
    text: `${[lines[0], url, lines[1], `${name}\n${address}`.trim()].join('\n\n')}\n`,
  }
}

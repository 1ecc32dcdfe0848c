/**
 * Writes returned mail for tests: notices in plain text, delivery reports, feedback reports.
 *
 * Addresses are of example domains. Lines are given with LF and go out with CRLF.
 */

/** Who a bounce went to in all fixtures: our return path. */
export const RETURN_PATH = 'bounce+token@bounce.sender.example'

const DAEMON = 'Mail Delivery Subsystem <MAILER-DAEMON@mx.relay.example>'

/** The header of a message of ours, as systems quote it. */
export const ORIGINAL_HEADER = `Received: from app.sender.example by mx.relay.example; Mon, 2 Mar 2026 09:00:00 +0000
Message-ID: <m1.abc@sender.example>
From: Shop <shop@sender.example>
To: Ann <ann@example.net>
Subject: Your receipt
X-Postroad-Id: token-1`

export const ORIGINAL = `${ORIGINAL_HEADER}\n\nThank you for your order.\n`

export interface NoticeParts {
  readonly from?: string
  readonly subject?: string
  /** More fields, whole lines. */
  readonly header?: string
  readonly text: string
}

/** A bounce written for people. */
export function notice({ from = DAEMON, subject = 'Returned mail', header = '', text }: NoticeParts): Buffer {
  const more = header === '' ? '' : `${header}\n`
  return wire(`Return-Path: <>\nFrom: ${from}\nTo: <${RETURN_PATH}>\nSubject: ${subject}\n${more}\n${text}`)
}

/** A multipart/report of RFC 3464; each part with its own header. */
export function deliveryReport(
  fields: string,
  text = 'Your message could not be delivered.',
  tail = ORIGINAL,
): Buffer {
  return multipart('multipart/report; report-type=delivery-status', [
    `Content-Type: text/plain; charset=utf-8\n\n${text}`,
    `Content-Type: message/delivery-status\n\n${fields}`,
    `Content-Type: message/rfc822\n\n${tail}`,
  ])
}

/** One group of a delivery report; fields that are given replace the usual ones. */
export function group(fields: Readonly<Record<string, string>> = {}): string {
  const usual = {
    'Final-Recipient': 'rfc822; ann@example.net',
    Action: 'failed',
    Status: '5.1.1',
    'Remote-MTA': 'dns; mx.example.net',
    'Diagnostic-Code': 'smtp; 550 5.1.1 <ann@example.net>: no such user',
  }
  return Object.entries({ ...usual, ...fields })
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')
}

export const REPORTER = 'Reporting-MTA: dns; mx.relay.example\n\n'

/** @param parts header, empty line, body of each */
export function multipart(type: string, parts: readonly string[], header = ''): Buffer {
  const body = parts.map(part => `--=_limit\n${part}\n`).join('')
  return wire(
    `Return-Path: <>\nFrom: ${DAEMON}\nTo: <${RETURN_PATH}>\nSubject: Delivery report\n${header}MIME-Version: 1.0\n` +
      `Content-Type: ${type}; boundary="=_limit"\n\nThis is a MIME message.\n${body}--=_limit--\n`,
  )
}

export function wire(text: string): Buffer {
  return Buffer.from(text.replace(/\n/g, '\r\n'), 'utf8')
}

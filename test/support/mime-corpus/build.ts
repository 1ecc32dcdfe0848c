/**
 * Builds the mails of the corpus: lines of octets, written as latin1 strings, so that every charset can stand in one.
 */

/** A mail as a program or a person might hand it in. CRLF line ends throughout. */
export interface CorpusMail {
  readonly name: string
  readonly message: Buffer
  /** Signed or encrypted parts in it, as they stand: no octet of theirs may change. */
  readonly kept?: readonly string[]
  /** The subject, where it is in a raw charset that mailparser does not look for. */
  readonly subject?: string
  /** What mailparser takes for something else than the standards do; other readers get it right. */
  readonly isMisreadByMailparser?: true
}

/** Octets of UTF-8, one character each. */
export function utf8(text: string): string {
  return Buffer.from(text).toString('latin1')
}

export function base64(octets: string): string {
  return Buffer.from(octets, 'latin1')
    .toString('base64')
    .replace(/.{76}(?=.)/g, '$&\r\n')
}

/** Every octet there is but line ends, so that no transport can mistake them. */
export const ALL_OCTETS = Array.from({ length: 256 }, (_, octet) => String.fromCharCode(octet))
  .filter(octet => octet !== '\r' && octet !== '\n')
  .join('')

const LETTERHEAD = {
  From: 'Ann Example <ann@example.com>',
  To: 'Bob <bob@example.net>',
  Subject: 'Minutes of the meeting',
  Date: 'Mon, 5 Jan 2026 07:08:09 +0100',
  'Message-ID': '<20260105.1@ann.example.com>',
  'MIME-Version': '1.0',
}

/**
 * @param header added to a usual letterhead, or in place of what stands there; `undefined` leaves a field out
 * @param body with CRLF between its lines
 */
export function mail(
  name: string,
  header: Readonly<Record<string, string | undefined>>,
  body: string | readonly string[],
  kept?: readonly string[],
): CorpusMail {
  const fields = Object.entries<string | undefined>({ ...LETTERHEAD, ...header }).filter(
    ([, value]) => value !== undefined,
  )
  const head = fields.map(([field, value]) => `${field}: ${value ?? ''}\r\n`).join('')
  const text = typeof body === 'string' ? body : `${body.join('\r\n')}\r\n`
  return raw(name, `${head}\r\n${text}`, kept)
}

export function raw(name: string, text: string, kept?: readonly string[]): CorpusMail {
  return { name, message: Buffer.from(text, 'latin1'), ...(kept && { kept }) }
}

/** Content of a multipart: parts with their headers, delimiters around them. */
export function parts(boundary: string, ...each: readonly string[]): string {
  return `${each.map(part => `--${boundary}\r\n${part}\r\n`).join('')}--${boundary}--\r\n`
}

/** Header lines and body of one part. */
export function part(header: readonly string[], body: string): string {
  return `${header.map(line => `${line}\r\n`).join('')}\r\n${body}`
}

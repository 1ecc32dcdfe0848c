/**
 * Bytes of a returned mail as text: transfer encodings, charsets, encoded words.
 *
 * Called by the readers of MIME parts and of header fields. Bytes come as a string with one character for each (latin1).
 * Charsets are those of the platform's TextDecoder; what it does not know is read as windows-1252, which leaves the ASCII
 * that matters. Pure.
 * Standards: RFC 2045 §6 (transfer encodings), RFC 2047 (encoded words), RFC 2231 §5 (language in encoded words).
 * Fails: never; what cannot be decoded stays as it is. Linear in the length, and never longer than three times its input.
 */

/** Names that mail uses and the Encoding Standard does not have. */
const CHARSET_ALIASES: Readonly<Record<string, string>> = {
  cp932: 'shift_jis',
  'x-ms-cp932': 'shift_jis',
  'windows-31j': 'shift_jis',
  'iso-2022-jp-ms': 'iso-2022-jp',
  cp936: 'gbk',
  cp949: 'euc-kr',
  cp1251: 'windows-1251',
  cp1252: 'windows-1252',
  utf8: 'utf-8',
}

const ESCAPE = '\u001b'

/** RFC 2047 §2 allows 75; senders exceed it, and the bound keeps a match from running on. */
const ENCODED_WORD = /=\?([\w.:-]{1,40})(?:\*[\w-]{1,20})?\?([bq])\?([^?\r\n]{0,2000})\?=/gi

/** @param bytes one character for each byte */
export function decodeTransfer(bytes: string, encoding: string): string {
  switch (encoding.trim().toLowerCase()) {
    case 'base64':
      return Buffer.from(bytes, 'base64').toString('latin1')
    case 'quoted-printable':
      return decodeQuotedPrintable(bytes)
    default:
      return bytes
  }
}

function decodeQuotedPrintable(bytes: string): string {
  return bytes.replace(/=(?:([0-9A-Fa-f]{2})|[ \t]{0,80}\r?\n)/g, (_, hex?: string) =>
    hex === undefined ? '' : String.fromCharCode(parseInt(hex, 16)),
  )
}

/**
 * @param bytes one character for each byte
 * @param charset as labelled; absent or wrong labels are read as UTF-8 where the bytes are, else as windows-1252
 */
export function decodeCharset(bytes: string, charset = ''): string {
  // ISO-2022 is seven bits wide: ESC alone tells that there is something to decode.
  if (!/[\x80-\xff]/.test(bytes) && !bytes.includes(ESCAPE)) return bytes
  // What is no byte was decoded before, with the text around it.
  if (/[\u0100-\uffff]/.test(bytes)) return bytes
  const label = charset.trim().toLowerCase()
  const octets = Buffer.from(bytes, 'latin1')
  if (label === '' || /^(?:us-)?ascii$|^unknown|^utf-?8$/.test(label)) {
    const isJapanese = bytes.includes(`${ESCAPE}$B`) || bytes.includes(`${ESCAPE}$@`)
    return decodeAs(isJapanese ? 'iso-2022-jp' : 'utf-8', octets, true) ?? windows1252(octets)
  }
  return decodeAs(CHARSET_ALIASES[label] ?? label, octets, false) ?? windows1252(octets)
}

function windows1252(octets: Buffer): string {
  return new TextDecoder('windows-1252').decode(octets)
}

function decodeAs(label: string, octets: Buffer, fatal: boolean): string | undefined {
  try {
    return new TextDecoder(label, { fatal }).decode(octets)
  } catch {
    return undefined
  }
}

/** A field's value as people read it: raw 8-bit text and encoded words. */
export function decodeFieldText(value: string): string {
  const text = decodeCharset(value)
  if (!text.includes('=?')) return text
  // RFC 2047 §6.2: white space between two encoded words is not part of the text.
  return text
    .replace(/\?=\s{1,200}(?==\?[\w.:-]{1,40}(?:\*[\w-]{1,20})?\?[bq]\?)/gi, '?=')
    .replace(ENCODED_WORD, (_, charset: string, encoding: string, encoded: string) => {
      const isBase64 = encoding.toLowerCase() === 'b'
      const bytes = isBase64
        ? decodeTransfer(encoded, 'base64')
        : decodeQuotedPrintable(encoded.replaceAll('_', ' '))
      return decodeCharset(bytes, charset)
    })
}
